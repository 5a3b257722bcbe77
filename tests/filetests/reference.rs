//! The op reference of the book: made of the operations' definitions and of what the file tests say they become.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lathe_dsl::Target;
use lathe_dsl::ir::{Agreement, Class, Op, OpDef};

use super::coverage::covered;
use super::format::File;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/op-reference.md");

/// Headings of the page, and the operations under each, in order. `NAME*` stands for all that begin so.
const GROUPS: &[(&str, &[&str])] = &[
    ("Values", &["const", "thread_id", "block_id", "lane_id"]),
    (
        "Arithmetic",
        &["add", "sub", "mul", "div", "fma", "neg", "abs", "copysign", "maximum", "minimum", "maxnum", "minnum"],
    ),
    ("Division to integers", &["div_floor", "rem_floor", "div_trunc", "rem_trunc", "ceildiv"]),
    ("Bits", &["and", "or", "xor", "not", "shl", "shr", "shrui", "ctpop", "ctlz", "cttz", "perm_b32"]),
    ("Rounding", &["floor", "ceil", "trunc", "round", "roundeven"]),
    ("Functions", &["sqrt", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "pow"]),
    ("The chip's approximations", &["hw_*"]),
    ("Comparison and choice", &["cmp_*", "select"]),
    ("Conversion", &["convert", "cvt_sr", "bitcast"]),
    ("Narrow floats", &["encode", "decode"]),
    ("Vectors", &["vector", "extract", "extract_at", "shuffle", "reduce_*"]),
    (
        "Buffers",
        &[
            "make_buffer",
            "buffer_load",
            "buffer_store",
            "s_buffer_load",
            "buffer_atomic",
            "buffer_atomic_cas",
            "copy_to_lds",
        ],
    ),
    ("Images", &["texture_fetch", "texture_sample", "surface_store"]),
    (
        "Pointers",
        &["lds_base", "buffer_ptr", "int_to_ptr", "ptr_to_int", "ptr_add", "ptr_cast", "ptr_load", "ptr_store"],
    ),
    ("Atomics", &["atomic_*"]),
    (
        "Order and waiting",
        &["barrier", "fence", "drain", "asyncmark", "wait_asyncmark", "s_waitcnt", "s_sleep", "clock"],
    ),
    ("Lanes", &["shuffle_*", "butterfly_*", "ballot", "readfirstlane", "readlane", "transpose8x8", "lds_read_tr"]),
    ("Matrix products", &["mma", "mfma_scaled"]),
    ("Control flow", &["if", "for", "while"]),
    (
        "Hints and escapes",
        &[
            "opaque",
            "expect",
            "assume",
            "assume_uniform",
            "native",
            "s_setprio",
            "sched_barrier",
            "sched_group_barrier",
        ],
    ),
];

const HEAD: &str = "\
# Op reference

Made from the operations' definitions (`dsl/src/ir/op.rs`) and their file tests (`tests/filetests/`) by `cargo xtask bless`; a test
holds this page against both.

Under each name: how it is written in Rust, what fx, bo or rocdl call it, its types, and its meaning, which is what the CPU device does.
Then the instructions that tell it on each chip, as its file tests check them (in the type of the first test; loads, stores and
address arithmetic left out; \u{2014} where no instruction is its own), and how the targets agree:

* *bit-equal*: the same bits on every target and on `cpu`. A NaN that arithmetic made is a NaN everywhere, with bits of its own.
* a bound: each target's result is that near to the exact value.

[The language](language.md) has what operations have in common.

Not operations, but numbers that Rust knows while it builds: `k.wave()` (fx `num_warp_threads`), `k.block_dim()`, `k.grid_dim()`
(`known_block_size`, `gpu.block_dim`, `gpu.grid_dim`), `k.chip()`. Made of operations: `x.clamp(lo, hi)`, `x.is_nan()`, `k.bf16_pair(a, b)`,
`w.bf_lo()`, `w.bf_hi()`, `k.rsrc(address)`, `k.load_ptr64(table, i)`, `v.butterfly(offsets, op)`, `k.lanes(size)`, `k.for_range_while`,
`k.exit_if(c)`, `k.sched_mfma(n)` and its like, `k.pk_fp4_bf16(old, word, scale, j)`, `k.cvt_pk_fp8_f32(a, b, old, high)`, `k.pow2(code)`,
`k.scale_code(rule, format, amax)` and their like, `k.step_tag(epoch, slot)`, `k.message_region(address, bytes, cache, id)`, and
what [a mailbox](mailbox.md) does.
";

/// An error if the page in the book is not what it would be now; in bless mode it is written instead.
pub fn check(files: &[File], bless: bool) -> Result<(), String> {
    let page = page(files)?;
    if bless {
        return std::fs::write(PAGE, page).map_err(|e| format!("op reference: {e}"));
    }
    match std::fs::read_to_string(PAGE) {
        Ok(text) if text == page => Ok(()),
        Ok(text) => {
            let line = text.lines().zip(page.lines()).take_while(|(a, b)| a == b).count() + 1;
            Err(format!("docs/src/op-reference.md:{line}: out of date; `cargo xtask bless` writes it anew"))
        }
        Err(e) => Err(format!("docs/src/op-reference.md: {e}")),
    }
}

fn page(files: &[File]) -> Result<String, String> {
    let defs = Op::all_defs();
    let code = instructions(files, &defs.iter().map(|d| d.name).collect());
    let mut out = HEAD.to_owned();
    let mut placed = BTreeSet::new();
    for (heading, patterns) in GROUPS {
        write!(out, "\n## {heading}\n").unwrap();
        for pattern in *patterns {
            let fits = |name: &str| pattern.strip_suffix('*').map_or(*pattern == name, |p| name.starts_with(p));
            let group: Vec<_> = defs.iter().filter(|d| fits(d.name)).collect();
            if group.is_empty() {
                return Err(format!("op reference: no operation `{pattern}`"));
            }
            for def in group {
                if !placed.insert(def.name) {
                    return Err(format!("op reference: `{}` stands under two headings", def.name));
                }
                entry(&mut out, def, &code);
            }
        }
    }
    match defs.iter().find(|d| !placed.contains(d.name)) {
        Some(def) => Err(format!("op reference: `{}` stands under no heading", def.name)),
        None => Ok(out),
    }
}

fn entry(out: &mut String, def: &OpDef, code: &BTreeMap<(&str, usize), Vec<String>>) {
    write!(out, "\n### `{}`\n\n`{}`", def.name, def.builder).unwrap();
    if !def.peer.is_empty() {
        let peers: Vec<String> = def.peer.split(", ").map(|p| format!("`{p}`")).collect();
        write!(out, " \u{b7} {}", peers.join(", ")).unwrap();
    }
    write!(out, " \u{b7} `{}`", def.signature).unwrap();
    if def.signature.contains('T') {
        write!(out, ", T: {}", class(def.on)).unwrap();
    }
    let meaning: Vec<&str> = def.meaning.iter().map(|l| l.trim()).collect();
    // Links of the source's documentation lead nowhere here.
    let meaning = meaning.join(" ").replace("[`", "`").replace("`]", "`");
    write!(out, "\n\n{meaning}\n\n").unwrap();
    out.push_str("| gfx950 | gfx942 | gfx1201 | sm_90 | targets |\n| --- | --- | --- | --- | --- |\n|");
    for (i, _) in Target::MAIN.iter().enumerate() {
        match code.get(&(def.name, i)) {
            Some(lines) if !lines.is_empty() => {
                write!(out, " {} |", lines.iter().map(|l| format!("`{l}`")).collect::<Vec<_>>().join("<br>")).unwrap();
            }
            _ => out.push_str(" \u{2014} |"),
        }
    }
    let agreement = match def.agreement {
        Agreement::Bits => "bit-equal",
        Agreement::Bound(bound) => bound,
        Agreement::None => "no result to compare",
    };
    writeln!(out, " {agreement} |").unwrap();
}

/// A class in words where it has a name.
fn class(on: Class) -> String {
    let named = [
        (Class::ALL, "every element type"),
        (Class::NUMBER, "integers, idx, floats"),
        (Class::INT, "integers, idx"),
        (Class::SIZED, "integers"),
        (Class::BITS, "integers, bool"),
        (Class::FLOAT, "floats"),
        (Class::MATH, "f16, bf16, f32"),
        (Class::PLAIN, "integers, floats"),
    ];
    named.iter().find(|(c, _)| *c == on).map_or_else(|| on.to_string(), |(_, words)| (*words).to_owned())
}

/// For each operation and main target, what the first section that covers it expects, those of the file with its name before
/// others; refusals in words.
fn instructions<'a>(files: &'a [File], all: &BTreeSet<&'a str>) -> BTreeMap<(&'a str, usize), Vec<String>> {
    let mut code: BTreeMap<(&str, usize), Vec<String>> = BTreeMap::new();
    let own = |file: &File, name: &str| file.path.file_stem().is_some_and(|stem| stem == name);
    let sections = |file: &'a File| file.sections.iter().map(move |s| (file, s));
    for (file, section, first) in [true, false]
        .into_iter()
        .flat_map(|first| files.iter().flat_map(sections).map(move |(file, section)| (file, section, first)))
    {
        for name in covered(section, all).into_iter().filter(|name| own(file, name) == first) {
            for (i, target) in Target::MAIN.into_iter().enumerate() {
                let lines: Vec<String> = section
                    .code
                    .iter()
                    .filter(|l| !l.not && l.targets.contains(&target))
                    .map(|l| l.text.clone())
                    .collect();
                let refused = section.refusal(target).map(|_| vec!["refused".to_owned()]);
                let known = code.entry((name, i)).or_default();
                if known.is_empty() {
                    *known = if lines.is_empty() { refused.unwrap_or_default() } else { lines };
                }
            }
        }
    }
    code
}
