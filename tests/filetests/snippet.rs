//! Wraps a snippet into a kernel: a lane a run, operands and results in buffers.

use std::fmt::Write as _;

use lathe_dsl::ir::{Scalar, Type};

use super::format::{Failure, Launch, Section, fail};
use super::values::{Want, data_type, operand, split, wants};

/// Threads of a workgroup: a wave of 64, or two of 32.
const BLOCK: usize = 64;

/// Types of a snippet's operands and results.
pub struct Signature {
    pub operands: Vec<Type>,
    pub results: Vec<Type>,
}

pub fn signature(line: usize, text: &str) -> Result<Signature, Failure> {
    let types = |text: &str| split(text).into_iter().map(data_type).collect::<Result<Vec<_>, _>>();
    let Some((operands, results)) = text.split_once("->") else { return fail(line, "`(TYPE, …) -> TYPE` is wanted") };
    let Some(operands) = operands.trim().strip_prefix('(').and_then(|t| t.strip_suffix(')')) else {
        return fail(line, "`(TYPE, …) -> TYPE` is wanted");
    };
    let results = results.trim();
    let results = results.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(results);
    let all = types(operands).and_then(|o| Ok(Signature { operands: o, results: types(results)? }));
    all.or_else(|e| fail(line, e))
}

/// How values of a type lie in their buffer.
fn in_memory(ty: Type) -> Type {
    match ty.scalar() {
        Scalar::Bool => ty.with_scalar(Scalar::U32),
        Scalar::Idx => ty.with_scalar(Scalar::I64),
        _ => ty,
    }
}

/// Whether one access can load or store a value.
fn in_one(memory: Type) -> bool {
    memory.bytes().is_power_of_two() && memory.bytes() <= 16
}

/// Lanes of the launch.
fn threads(runs: usize) -> usize {
    runs.next_multiple_of(BLOCK)
}

fn param(text: &mut String, name: &str, ty: Type, threads: usize, access: &str) {
    let memory = in_memory(ty);
    let (elem, len) = (memory.scalar(), threads * memory.lanes() as usize);
    let align = if in_one(memory) { memory.bytes() } else { elem.bytes() };
    let _ = write!(text, " param %t.{name} {name}: buffer<{elem}> len {len} {access} align {align}");
}

/// Loads operand `number`.
fn load(text: &mut String, number: usize, ty: Type) {
    let memory = in_memory(ty);
    let (s, lanes) = (memory.scalar(), memory.lanes());
    let target = if memory == ty { format!("%{number}") } else { format!("%t.m{number}") };
    let at = offset(text, &format!("i{number}"), lanes);
    if in_one(memory) {
        let _ = write!(text, " {target}: {memory} = buffer_load %t.in{number}, {at}");
    } else {
        let mut elements = vec![];
        for e in 0..lanes {
            let name = format!("%t.i{number}e{e}");
            let _ = write!(text, " {name}k: u32 = const {e} {name}o: u32 = add {at}, {name}k");
            let _ = write!(text, " {name}: {s} = buffer_load %t.in{number}, {name}o");
            elements.push(name);
        }
        let _ = write!(text, " {target}: {memory} = vector [{}]", elements.join(", "));
    }
    match ty.scalar() {
        Scalar::Bool => {
            let _ = write!(text, " %t.z{number}: {memory} = const 0 %{number}: {ty} = cmp_ne {target}, %t.z{number}");
        }
        Scalar::Idx => {
            let _ = write!(text, " %{number}: {ty} = convert {target}");
        }
        _ => {}
    }
}

/// Stores result `number`, which is `value`.
fn store(text: &mut String, number: usize, ty: Type, value: &str) {
    let memory = in_memory(ty);
    let (s, lanes) = (memory.scalar(), memory.lanes());
    let mut source = value.to_owned();
    if memory != ty {
        source = format!("%t.r{number}");
        let _ = match ty.scalar() {
            Scalar::Bool => write!(
                text,
                " %t.r{number}y: {memory} = const 1 %t.r{number}n: {memory} = const 0 \
                 {source}: {memory} = select {value}, %t.r{number}y, %t.r{number}n"
            ),
            _ => write!(text, " {source}: {memory} = convert {value}"),
        };
    }
    let at = offset(text, &format!("o{number}"), lanes);
    if in_one(memory) {
        let _ = write!(text, " buffer_store {source}, %t.out{number}, {at}");
        return;
    }
    for e in 0..lanes {
        let name = format!("%t.o{number}e{e}");
        let _ = write!(text, " {name}k: u32 = const {e} {name}o: u32 = add {at}, {name}k");
        let _ = write!(text, " {name}: {s} = extract {source}, {e} buffer_store {name}, %t.out{number}, {name}o");
    }
}

/// The offset of this thread's value of so many elements.
fn offset(text: &mut String, name: &str, lanes: u32) -> String {
    if lanes == 1 {
        return "%t.i".to_owned();
    }
    let _ = write!(text, " %t.{name}n: u32 = const {lanes} %t.{name}: u32 = mul %t.i, %t.{name}n");
    format!("%t.{name}")
}

/// The kernel's text, with the body on its own lines: places in it are places in the file.
pub fn text(
    section: &Section,
    signature: &Signature,
    body: &[String],
    body_line: usize,
    runs: usize,
    wave: u32,
) -> String {
    let threads = threads(runs);
    let (grid, with) = (threads / BLOCK, &section.with);
    let mut text = format!("kernel_ir 2 kernel @snippet wave {wave} grid {grid}x1x1 block {BLOCK}x1x1 {with} {{");
    for (i, ty) in signature.operands.iter().enumerate() {
        param(&mut text, &format!("in{i}"), *ty, threads, "read");
    }
    for (i, ty) in signature.results.iter().enumerate() {
        param(&mut text, &format!("out{i}"), *ty, threads, "write");
    }
    let _ = write!(
        text,
        " %t.n: u32 = const {BLOCK} %t.b: u32 = block_id x %t.t: u32 = thread_id x %t.f: u32 = mul %t.b, %t.n \
         %t.i: u32 = add %t.f, %t.t"
    );
    for (i, ty) in signature.operands.iter().enumerate() {
        load(&mut text, i, *ty);
    }
    text.push_str(&"\n".repeat(body_line - 1));
    let (last, rest) = body.split_last().map_or(("", body), |(last, rest)| (last.as_str(), rest));
    for line in rest {
        text.push_str(line);
        text.push('\n');
    }
    let yields = super::format::without_comment(last).trim_start_matches("yield");
    for (i, (ty, value)) in signature.results.iter().zip(split(yields)).enumerate() {
        store(&mut text, i, *ty, value);
    }
    text.push_str(" }\n");
    text
}

/// Values that the body yields.
pub fn yields(body: &[String]) -> usize {
    body.last().map_or(0, |last| split(super::format::without_comment(last).trim_start_matches("yield")).len())
}

/// The lanes of a launch: for each operand the bits of its buffer, for each result what its elements must be. Lanes without a
/// run repeat the last one.
pub struct Lanes {
    pub inputs: Vec<Vec<u64>>,
    pub outputs: Vec<Vec<Want>>,
}

pub fn lanes(signature: &Signature, runs: &[&Launch]) -> Result<Lanes, Failure> {
    let mut inputs = vec![vec![]; signature.operands.len()];
    let mut outputs = vec![vec![]; signature.results.len()];
    for run in runs {
        let operands = split(&run.operands);
        if operands.len() != inputs.len() {
            return fail(run.line, format!("{} operands where {} are wanted", operands.len(), inputs.len()));
        }
        for ((text, ty), input) in operands.iter().zip(&signature.operands).zip(&mut inputs) {
            input.extend(operand(*ty, text).or_else(|e| fail(run.line, e))?);
        }
        if run.fault.is_some() {
            continue;
        }
        let inner = run.results.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
        let results = inner.map_or(vec![run.results.as_str()], split);
        if results.len() != outputs.len() {
            return fail(run.line, format!("{} results where {} are wanted", results.len(), outputs.len()));
        }
        for ((text, ty), output) in results.iter().zip(&signature.results).zip(&mut outputs) {
            output.extend(wants(*ty, text).or_else(|e| fail(run.line, e))?);
        }
    }
    for (input, ty) in inputs.iter_mut().zip(&signature.operands) {
        let lanes = ty.lanes() as usize;
        let last = input[input.len() - lanes..].to_vec();
        input.extend(last.iter().cycle().take((threads(runs.len()) - runs.len()) * lanes));
    }
    Ok(Lanes { inputs, outputs })
}
