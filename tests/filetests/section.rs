//! Compiles and runs one section.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use lathe_codegen::{Error, Options};
use lathe_dsl::artifact::Artifact;
use lathe_dsl::ir::{self, Access, Agreement, FastMath, ParamKind, Type};
use lathe_dsl::{Target, verify};
use lathe_runtime::device::Device;
use lathe_runtime::interp::Program;

use super::code;
use super::format::{Failure, Given, Kernel, Launch, Place, Section, fail};
use super::lists::{Content, Known, content, expected};
use super::machine::{self, Arg, Done};
use super::snippet::{self, Signature};
use super::values::{Exactness, Want, show};
use crate::golden::llvm_is_pinned;

/// Orders of workgroups and waves that each launch is run with.
const CPU_SEEDS: [Option<u64>; 3] = [None, Some(1), Some(2)];
const GCN_SEEDS: [u64; 2] = [0, 1];

/// Differing elements that a failure shows.
const SHOWN: usize = 6;

/// What a section's test gave.
#[derive(Default)]
pub struct Outcome {
    pub failures: Vec<Failure>,
    /// Lines of code to replace, and by what, for each target.
    pub proposals: Vec<(usize, Target, Vec<String>)>,
}

/// A kernel at one wave width.
struct Instance {
    wave: u32,
    kernel: ir::Kernel,
}

/// A launch with its arguments and expectations worked out.
struct Prepared<'a> {
    launch: &'a Launch,
    args: Vec<Arg>,
    /// By parameter.
    wants: Vec<Option<Vec<Want>>>,
    /// Line to blame, and number of elements that each of `lines` has, of a snippet's results.
    lines: Vec<usize>,
}

pub fn run(file: &Path, section: &Section) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(failure) = (Runner { file, section }).run(&mut outcome) {
        outcome.failures.push(failure);
    }
    outcome
}

/// What the verifier and the CPU device say of a whole kernel at each wave width, with one line (its number in the file)
/// replaced if that is asked for: the refusal, or else the faults and findings of all launches, with the orders of workgroups
/// and waves that are tried; and, of the kernel as it stands, what is wrong with its results.
pub fn reports(file: &Path, section: &Section, edit: Option<(usize, &str)>) -> Reports {
    let mut all = Reports::default();
    for wave in [64, 32] {
        if let Err(failure) = (Runner { file, section }).reports(wave, edit, &mut all) {
            all.texts.push(failure.message);
        }
    }
    all.texts.sort();
    all.texts.dedup();
    all
}

/// What was said of a kernel.
#[derive(Default)]
pub struct Reports {
    /// Sorted, one of a kind.
    pub texts: Vec<String>,
    /// Runs of which nothing was said.
    pub silent: usize,
}

impl Reports {
    fn say(&mut self, texts: impl IntoIterator<Item = String>) {
        let before = self.texts.len();
        self.texts.extend(texts);
        self.silent += usize::from(self.texts.len() == before);
    }
}

struct Runner<'a> {
    file: &'a Path,
    section: &'a Section,
}

impl<'a> Runner<'a> {
    fn run(&self, outcome: &mut Outcome) -> Result<(), Failure> {
        let mut instances = vec![];
        for wave in [64, 32] {
            if let Some(kernel) = self.kernel(wave)? {
                instances.push(Instance { wave, kernel });
            }
        }
        for Instance { wave, kernel } in &instances {
            let mut judge = None;
            let mut artifacts = vec![];
            let mut on_gpu = None;
            for target in self.targets().into_iter().filter(|t| t.chip().wave == *wave) {
                match self.compile(kernel, target, outcome) {
                    Some(made) if machine::executes(target) => artifacts.push(made),
                    Some(made) if machine::gpu().is_ok_and(|gpu| gpu.target() == target) => on_gpu = Some(made),
                    Some(_) => {}
                    None => continue,
                }
                judge.get_or_insert(target);
            }
            // The width is refused everywhere, or failed to compile: nothing to run.
            let Some(judge) = judge else { continue };
            let mut prepared = self.prepare(kernel, *wave)?;
            if !self.section.skips(Place::Cpu)
                && let Err(failure) = self.run_cpu(kernel, judge, &mut prepared, outcome)
            {
                outcome.failures.push(failure);
            }
            for artifact in artifacts.iter().filter(|_| !self.section.skips(Place::Gcn)) {
                self.run_gcn(kernel, artifact, &prepared, outcome);
            }
            if let Some(artifact) = on_gpu.filter(|_| !self.section.skips(Place::Cuda)) {
                self.run_cuda(kernel, &artifact, &prepared, outcome);
            }
        }
        Ok(())
    }

    fn line(&self) -> usize {
        self.section.kernel.line()
    }

    fn signature(&self) -> Result<Option<Signature>, Failure> {
        match &self.section.kernel {
            Kernel::Snippet { line, signature, .. } => snippet::signature(*line, signature).map(Some),
            Kernel::Whole { .. } => Ok(None),
        }
    }

    fn lanes(&self) -> Vec<&'a Launch> {
        self.section.launches.iter().filter(|l| l.fault.is_none()).collect()
    }

    /// The section's kernel for waves of that width, unless it is for another.
    fn kernel(&self, wave: u32) -> Result<Option<ir::Kernel>, Failure> {
        let text = match &self.section.kernel {
            Kernel::Snippet { body, body_line, line, .. } => {
                let signature = self.signature()?.unwrap_or(Signature { operands: vec![], results: vec![] });
                let yields = snippet::yields(body);
                if yields != signature.results.len() {
                    return fail(*line, format!("{yields} yields for {} results", signature.results.len()));
                }
                let runs = self.lanes().len().max(1);
                snippet::text(self.section, &signature, body, *body_line, runs, wave)
            }
            Kernel::Whole { line, text } => {
                let text = text.replacen("wave any", &format!("wave {wave}"), 1);
                format!("{}{text}", "\n".repeat(line - 1))
            }
        };
        let kernel = ir::parse(&text, &self.file.display().to_string())
            .or_else(|e| fail(e.location.line as usize, format!("column {}: {}", e.location.column, e)))?;
        Ok((kernel.wave == wave).then_some(kernel))
    }

    fn reports(&self, wave: u32, edit: Option<(usize, &str)>, all: &mut Reports) -> Result<(), Failure> {
        let Some((line, text)) = self.section.whole() else { return fail(self.line(), "no whole kernel") };
        let mut lines: Vec<&str> = text.lines().collect();
        if let Some((number, replacement)) = edit {
            lines[number - line] = replacement;
        }
        let text = lines.join("\n").replacen("wave any", &format!("wave {wave}"), 1);
        let text = format!("{}{text}", "\n".repeat(line - 1));
        let kernel = match ir::parse(&text, &self.file.display().to_string()) {
            Ok(kernel) if kernel.wave == wave => kernel,
            Ok(_) => return Ok(()),
            Err(error) => {
                all.say([format!("{}: {error}", error.location)]);
                return Ok(());
            }
        };
        let target = if wave == 64 { Target::GFX950 } else { Target::SM_90 };
        if let Err(refusal) = verify::verify(&kernel, target) {
            all.say([refusal.to_string()]);
            return Ok(());
        }
        let program = Program::new(&kernel).or_else(|e| fail(self.line(), e.to_string()))?;
        for p in self.prepare(&kernel, wave)? {
            for seed in CPU_SEEDS {
                match machine::cpu(&kernel, &program, &p.args, seed) {
                    Err(fault) => all.say([fault]),
                    Ok(done) if edit.is_none() => {
                        let mut outcome = Outcome::default();
                        self.judge(&kernel, &p, Ok(done), None, Exactness::Bounded, "cpu", &mut outcome);
                        all.say(outcome.failures.into_iter().map(|f| f.message));
                    }
                    Ok(done) => all.say(done.findings),
                }
            }
        }
        Ok(())
    }

    /// Targets that the section is about.
    fn targets(&self) -> Vec<Target> {
        let named = self.section.code.iter().flat_map(|l| &l.targets);
        let refused = self.section.refused.iter().map(|(t, _)| t);
        let mut all = Target::MAIN.to_vec();
        for target in named.chain(refused) {
            if !all.contains(target) {
                all.push(*target);
            }
        }
        all.retain(|t| !self.section.skips(Place::Target(*t)));
        all
    }

    /// Compiles for a target and looks at the code; nothing if there is none.
    fn compile(&self, kernel: &ir::Kernel, target: Target, outcome: &mut Outcome) -> Option<Artifact> {
        let failures = &mut outcome.failures;
        let mut failed = |message: String| failures.push(Failure { line: self.line(), message });
        let compiled = lathe_codegen::compile(kernel, target, &Options::default());
        let artifact = match (compiled, self.section.refusal(target)) {
            (Ok(artifact), None) => artifact,
            (Ok(_), Some(text)) => {
                failed(format!("{target}: compiled, where a refusal with `{text}` is expected"));
                return None;
            }
            (Err(error @ Error::Refused { .. }), Some(text)) => {
                if !error.to_string().contains(text) {
                    failed(format!("{target}: refused, but without `{text}`: {error}"));
                }
                return None;
            }
            (Err(error), _) => {
                failed(format!("{target}: {error}"));
                return None;
            }
        };
        if !llvm_is_pinned() {
            return Some(artifact);
        }
        let listing = match code::listing(&artifact) {
            Ok(listing) => listing,
            Err(error) => {
                failed(format!("{target}: {error}"));
                return None;
            }
        };
        code::check(self.section, target, &listing, &mut outcome.failures);
        for line in self.section.code.iter().filter(|l| l.text == "?" && l.targets.contains(&target)) {
            let snippet = matches!(self.section.kernel, Kernel::Snippet { .. });
            outcome.proposals.push((line.line, target, code::proposal(target, &listing, snippet)));
        }
        Some(artifact)
    }

    fn prepare(&self, kernel: &ir::Kernel, wave: u32) -> Result<Vec<Prepared<'a>>, Failure> {
        let Some(signature) = self.signature()? else {
            return self.section.launches.iter().map(|l| whole(kernel, l, wave)).collect();
        };
        let lanes = self.lanes();
        let mut all = vec![];
        if let Some(first) = lanes.first() {
            let lines = lanes.iter().map(|l| l.line).collect();
            all.push(of_lanes(&signature, &lanes, first, lines)?);
        }
        for launch in self.section.launches.iter().filter(|l| l.fault.is_some()) {
            // The kernel is made for all lanes.
            let copies = vec![launch; lanes.len().max(1)];
            all.push(of_lanes(&signature, &copies, launch, vec![])?);
        }
        Ok(all)
    }

    fn run_cpu(
        &self,
        kernel: &ir::Kernel,
        target: Target,
        prepared: &mut [Prepared<'_>],
        outcome: &mut Outcome,
    ) -> Result<(), Failure> {
        let place = format!("cpu with waves of {}", target.chip().wave);
        verify::verify(kernel, target).or_else(|e| fail(self.line(), format!("{place}: {e}")))?;
        let program = Program::new(kernel).or_else(|e| fail(self.line(), format!("{place}: {e}")))?;
        let (bits, agrees) = agreement(kernel);
        let exactness = if bits { Exactness::Bounded } else { Exactness::Exact };
        for p in prepared.iter_mut().filter(|p| p.launch.gcn_fault.is_none() || p.launch.fault.is_none()) {
            for seed in CPU_SEEDS {
                let place = seed.map_or(place.clone(), |s| format!("{place}, seed {s}"));
                let before = outcome.failures.len();
                let done = machine::cpu(kernel, &program, &p.args, seed);
                let made = done.as_ref().ok().filter(|_| agrees).map(|d| d.buffers.clone());
                self.judge(kernel, p, done, p.launch.fault.as_deref(), exactness, &place, outcome);
                if outcome.failures.len() > before {
                    break;
                }
                if let Some(made) = made {
                    p.pin(&made);
                }
            }
        }
        Ok(())
    }

    fn run_gcn(&self, kernel: &ir::Kernel, artifact: &Artifact, prepared: &[Prepared<'_>], outcome: &mut Outcome) {
        for p in prepared.iter().filter(|p| p.launch.fault.is_none()) {
            for seed in GCN_SEEDS {
                let before = outcome.failures.len();
                let mut done = machine::gcn(kernel, artifact, &p.args, seed);
                if let Ok(done) = &mut done {
                    // Only the CPU device reports them.
                    done.findings.clone_from(&p.launch.findings);
                }
                let place = format!("gcn:{}, seed {seed}", artifact.target);
                self.judge(kernel, p, done, p.launch.gcn_fault.as_deref(), Exactness::Bounded, &place, outcome);
                if outcome.failures.len() > before {
                    break;
                }
            }
        }
    }

    fn run_cuda(&self, kernel: &ir::Kernel, artifact: &Artifact, prepared: &[Prepared<'_>], outcome: &mut Outcome) {
        let Ok(gpu) = machine::gpu() else { return };
        let kernel = Arc::new(kernel.clone());
        for p in prepared.iter().filter(|p| p.launch.fault.is_none()) {
            let mut done = machine::cuda(gpu, &kernel, artifact, &p.args);
            if let Ok(done) = &mut done {
                done.findings.clone_from(&p.launch.findings);
            }
            let place = format!("{}:{}", gpu.name(), artifact.target);
            self.judge(&kernel, p, done, None, Exactness::Bounded, &place, outcome);
        }
    }

    #[allow(clippy::too_many_arguments)] // All of one launch.
    fn judge(
        &self,
        kernel: &ir::Kernel,
        p: &Prepared<'_>,
        done: Result<Done, String>,
        fault: Option<&str>,
        exactness: Exactness,
        place: &str,
        outcome: &mut Outcome,
    ) {
        let mut failed = |line: usize, what: String| {
            outcome.failures.push(Failure { line, message: format!("{place}: {what}") });
        };
        let line = p.launch.line;
        let done = match (done, fault) {
            (Err(error), Some(text)) if error.contains(text) => return,
            (Err(error), Some(text)) => return failed(line, format!("a fault without `{text}`: {error}")),
            (Err(error), None) => return failed(line, error),
            (Ok(_), Some(text)) => return failed(line, format!("no fault, where one with `{text}` is expected")),
            (Ok(done), None) => done,
        };
        let wanted = &p.launch.findings;
        for finding in done.findings.iter().filter(|f| !wanted.iter().any(|w| f.contains(w.as_str()))) {
            failed(line, format!("finding: {finding}"));
        }
        for wanted in wanted.iter().filter(|w| !done.findings.iter().any(|f| f.contains(w.as_str()))) {
            failed(line, format!("no finding with `{wanted}`"));
        }
        for ((param, wants), got) in kernel.params.iter().zip(&p.wants).zip(&done.buffers) {
            let (Some(wants), Some((elem, len, _))) = (wants, param.kind.elements()) else { continue };
            let mut wrong = 0;
            for (i, (want, got)) in wants.iter().zip(got).enumerate() {
                if want.holds(elem, *got, exactness) {
                    continue;
                }
                wrong += 1;
                if wrong > SHOWN {
                    continue;
                }
                let (got, want) = (show(elem, *got), want.show(elem));
                match p.lines.len() {
                    0 => {
                        let line = p.launch.expects.iter().find(|e| e.name == param.name).map_or(line, |e| e.line);
                        failed(line, format!("{}[{i}] is {got}, wanted {want}", param.name));
                    }
                    runs => {
                        let line = p.lines[i * runs / wants.len()];
                        let element = i % (wants.len() / runs);
                        failed(line, format!("{} element {element} is {got}, wanted {want}", param.name));
                    }
                }
            }
            if wrong > SHOWN {
                failed(line, format!("{} more elements of {}'s {len} are wrong", wrong - SHOWN, param.name));
            }
        }
    }
}

/// Whether no operation has bits of its own on each chip, and whether every device computes the same bits.
fn agreement(kernel: &ir::Kernel) -> (bool, bool) {
    let mut bits = true;
    kernel.walk(&mut |inst| bits &= !matches!(inst.op.def().agreement, Agreement::Bound(_)));
    (bits, bits && kernel.fast_math == FastMath::STRICT)
}

impl Prepared<'_> {
    /// From now on wants these bits where values near something are wanted.
    fn pin(&mut self, buffers: &[Vec<u64>]) {
        for (wants, got) in self.wants.iter_mut().zip(buffers) {
            for (want, got) in wants.iter_mut().flatten().zip(got) {
                if matches!(want, Want::Near { .. }) {
                    *want = Want::Bits(*got);
                }
            }
        }
    }
}

/// Lanes of a snippet as one launch.
fn of_lanes<'a>(
    signature: &Signature,
    lanes: &[&'a Launch],
    launch: &'a Launch,
    lines: Vec<usize>,
) -> Result<Prepared<'a>, Failure> {
    let snippet::Lanes { inputs, outputs } = snippet::lanes(signature, lanes)?;
    let args = inputs.into_iter().map(|e| Arg::Buffer(Content::Elements(e)));
    let results = signature.results.iter().map(|_| Arg::Buffer(Content::Filler));
    let wants = signature.operands.iter().map(|_| None).chain(outputs.into_iter().map(Some));
    // A bool is 0 or 1 in its buffer.
    Ok(Prepared { launch, args: args.chain(results).collect(), wants: wants.collect(), lines })
}

fn find<'l>(list: &'l [Given], name: &str) -> Option<&'l Given> {
    list.iter().find(|g| g.name == name)
}

/// `NAME` or `NAME + BYTES`.
fn address(kernel: &ir::Kernel, text: &str) -> Result<Arg, String> {
    let (name, plus) = text.split_once('+').unwrap_or((text, "0"));
    let plus = plus.trim().parse().map_err(|_| format!("`{}` is no number of bytes", plus.trim()))?;
    let of = kernel.params.iter().position(|p| p.name == name.trim() && matches!(p.kind, ParamKind::Buffer { .. }));
    of.map(|of| Arg::Address { of, plus }).ok_or_else(|| format!("the kernel has no buffer `{}`", name.trim()))
}

fn whole<'a>(kernel: &ir::Kernel, launch: &'a Launch, wave: u32) -> Result<Prepared<'a>, Failure> {
    let mut names = HashMap::new();
    for param in &kernel.params {
        names.insert(param.name, param.ty());
    }
    for given in launch.args.iter().chain(&launch.expects) {
        if !names.contains_key(given.name.as_str()) {
            return fail(given.line, format!("the kernel has no parameter `{}`", given.name));
        }
    }
    // Scalars first: contents may depend on them.
    let mut known = Known { wave, ..Known::default() };
    let mut addresses = HashMap::new();
    for param in &kernel.params {
        let Type::Scalar(scalar) = param.ty() else { continue };
        let Some(given) = find(&launch.args, param.name) else {
            return fail(launch.line, format!("no `arg` for scalar `{}`", param.name));
        };
        if let Some(text) = given.list.strip_prefix("address ") {
            addresses.insert(param.name, address(kernel, text).or_else(|e| fail(given.line, e))?);
            continue;
        }
        let bits = super::values::operand(param.ty(), &given.list).or_else(|e| fail(given.line, e))?[0];
        known.scalars.insert(param.name, (scalar, bits));
    }
    let mut args = vec![];
    for param in &kernel.params {
        args.push(match param.kind.elements() {
            None => match addresses.remove(param.name) {
                Some(address) => address,
                None => Arg::Scalar(known.scalars[param.name].1),
            },
            Some((elem, len, _)) => {
                let content = match find(&launch.args, param.name) {
                    Some(given) => content(elem, len, &given.list, &known).or_else(|e| fail(given.line, e))?,
                    None => Content::Filler,
                };
                known.buffers.insert(param.name, (elem, content.clone()));
                Arg::Buffer(content)
            }
        });
    }
    let mut wants = vec![];
    for param in &kernel.params {
        let Some((elem, len, access)) = param.kind.elements() else {
            wants.push(None);
            continue;
        };
        match find(&launch.expects, param.name) {
            Some(given) => {
                let own = &known.buffers[param.name].1;
                let list = expected(elem, len, &given.list, &known, own).or_else(|e| fail(given.line, e))?;
                wants.push(Some(list));
            }
            None if access == Access::Read || launch.fault.is_some() => wants.push(None),
            None => return fail(launch.line, format!("no `expect` for buffer `{}`", param.name)),
        }
    }
    Ok(Prepared { launch, args, wants, lines: vec![] })
}
