//! Bugs planted in the kernels that Lathe ships: one line of their printed form is changed.

use lathe_dsl::ir::{self, Access, ParamKind};
use lathe_dsl::{Target, trace, verify};
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::mla::problem::Problem;
use lathe_runtime::interp::{ArgValue, GlobalBuffer, Options, Program, launch};

/// A bug in `mla_combine`.
struct Bug {
    name: &'static str,
    ranks: u32,
    tokens: u32,
    /// Which line: the how-manyth (from 0) that contains a text.
    line: (&'static str, usize),
    /// What of it is replaced, and by what; all of it if the first is empty.
    edit: (&'static str, &'static str),
    /// What the report says: one of these.
    says: &'static [&'static str],
    /// Lines of which the report names one, by texts in them; the planted line if there are none.
    at: &'static [&'static str],
}

/// A key whose workgroups have one task each, with a last one that is not full.
const SMALL: (u32, u32) = (2, 6);
/// A key whose workgroups loop over tasks.
const LOOP: (u32, u32) = (1, 90);

const RACE: &[&str] = &["race"];
const LDS: &[&str] = &["ptr_store", "ptr_load"];

#[rustfmt::skip] // A table.
const BUGS: &[Bug] = &[
    bug("dropped barrier", SMALL, ("barrier", 0), ("", ""), &["race", "never written"], LDS),
    bug("dropped barrier in the loop", LOOP, ("barrier", 0), ("", ""), &["race", "never written"], LDS),
    bug("no barrier before the next task", LOOP, ("barrier", 1), ("", ""), RACE, LDS),
    bug("barrier where only some threads come by", SMALL, ("ptr_load", 0), ("%", "barrier %"), &["barrier"], &[]),
    bug("rows never stored", SMALL, ("ptr_store", 0), ("", ""), &["never"], &["ptr_load"]),
    bug("LDS rows too far apart", SMALL, ("= const 260", 0), ("260", "280"), &["LDS array `lat`"], LDS),
    bug("LDS rows too close", SMALL, ("= const 260", 0), ("260", "252"), RACE, LDS),
    bug("token not held within the last", SMALL, ("minimum", 0), ("minimum", "maximum"), &["buffer `lse`", "buffer `partial`"], &["buffer_load"]),
    bug("rows of another pitch", SMALL, ("= const 256", 0), ("256", "512"), &["buffer `partial`", "buffer `latents`", "LDS array"], &["buffer_load", "buffer_store", "ptr_load"]),
    bug("bytes as elements", SMALL, ("buffer_store", 0), ("unit=bytes", ""), &["write to buffer `latents`"], &[]),
    bug("rows past the last token stored", SMALL, ("cmp_lt", 2), ("cmp_lt", "cmp_ne"), RACE, &["buffer_store"]),
    bug("threads past the rows at work", SMALL, ("cmp_lt", 1), ("cmp_lt", "cmp_ne"), &["LDS array `lat`"], &["ptr_load"]),
    bug("a task done twice", LOOP, ("step=", 0), ("step=256", "step=128"), RACE, &["buffer_store", "ptr_load", "ptr_store"]),
    bug("thread as row", SMALL, ("div_floor", 1), ("div_floor", "rem_floor"), &["LDS array `lat`"], LDS),
];

const fn bug(
    name: &'static str,
    (ranks, tokens): (u32, u32),
    line: (&'static str, usize),
    edit: (&'static str, &'static str),
    says: &'static [&'static str],
    at: &'static [&'static str],
) -> Bug {
    Bug { name, ranks, tokens, line, edit, says, at }
}

/// The report of a run with the order of the waves that `seed` gives; nothing if there is none.
fn report(text: &str, key: &MlaCombine, seed: Option<u64>) -> Option<String> {
    let kernel = match ir::parse(text, "mla.kir") {
        Ok(kernel) => kernel,
        Err(error) => return Some(error.to_string()),
    };
    if let Err(refusal) = verify::verify(&kernel, Target::GFX950) {
        return Some(refusal.to_string());
    }
    let program = Program::new(&kernel).expect("verified");
    let problem = Problem::new(key.ranks as usize, key.tokens as usize, 5);
    let partial: Vec<u8> = problem.partial.iter().flat_map(|x| x.to_bits().to_le_bytes()).collect();
    let lse: Vec<u8> = problem.lse.iter().flat_map(|x| x.to_le_bytes()).collect();
    let buffers: Vec<GlobalBuffer> = kernel
        .params
        .iter()
        .map(|param| match (param.name, param.kind) {
            ("partial", _) => GlobalBuffer::from_bytes(&partial),
            ("lse", _) => GlobalBuffer::from_bytes(&lse),
            (_, ParamKind::Buffer { access: Access::Write, .. }) => {
                GlobalBuffer::uninit(param.kind.buffer_bytes().unwrap_or(0) as usize)
            }
            (name, _) => panic!("parameter `{name}`"),
        })
        .collect();
    let args: Vec<ArgValue<'_>> = buffers.iter().map(ArgValue::Buffer).collect();
    let options = Options { seed, threads: Some(1), ..Options::default() };
    match launch(&program, &args, &options) {
        Err(error) => Some(error.to_string()),
        Ok(report) if report.findings.is_empty() => None,
        Ok(report) => Some(report.findings.iter().map(|f| format!("{f}\n")).collect()),
    }
}

#[test]
fn bugs_planted_in_mla_combine_are_found() {
    let mut failures = vec![];
    for Bug { name, ranks, tokens, line, edit, says, at } in BUGS {
        let key = MlaCombine { ranks: *ranks, tokens: *tokens };
        let kernel = trace(&key, Target::GFX950).expect("accepted");
        let lines: Vec<String> = kernel.to_string().lines().map(str::to_owned).collect();
        let containing = |text: &str| -> Vec<usize> { (0..lines.len()).filter(|i| lines[*i].contains(text)).collect() };
        let planted = containing(line.0)[line.1];
        let mut text = lines.clone();
        text[planted] = if edit.0.is_empty() { edit.1.to_owned() } else { lines[planted].replacen(edit.0, edit.1, 1) };
        assert_ne!(text[planted], lines[planted], "{name}: nothing changed");
        let named: Vec<usize> =
            if at.is_empty() { vec![planted] } else { at.iter().flat_map(|t| containing(t)).collect() };
        for seed in [None, Some(1), Some(2)] {
            match report(&text.join("\n"), &key, seed) {
                None => failures.push(format!("{name}: not found")),
                Some(said) => {
                    let here = named.iter().any(|i| said.contains(&format!("mla.kir:{}:", i + 1)));
                    if !here || !says.iter().any(|s| said.contains(s)) {
                        failures.push(format!("{name}: wanted {says:?} at one of lines {named:?}, got: {said}"));
                    }
                }
            }
        }
    }
    failures.dedup();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn mla_combine_as_it_is_gives_no_report() {
    for ranks in [1, 2, 4, 8] {
        for tokens in [1, 3, 8, 90] {
            let key = MlaCombine { ranks, tokens };
            let text = trace(&key, Target::GFX950).expect("accepted").to_string();
            for seed in std::iter::once(None).chain((0..6).map(Some)) {
                let said = report(&text, &key, seed);
                assert_eq!(said, None, "ranks {ranks}, tokens {tokens}, seed {seed:?}");
            }
        }
    }
}
