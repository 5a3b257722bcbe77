//! Promise: every operation means what the files beside this one say, on the CPU device and in the code made for it, and becomes
//! the instructions that they name. `README.md` describes the files.

mod code;
mod coverage;
mod expression;
mod format;
mod itself;
mod lists;
pub mod machine;
mod reference;
pub mod section;
mod snippet;
mod values;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use format::Section;
use format::{Failure, File};
use section::Outcome;

/// Part of the paths of the files to run, for working on one of them.
const FILTER: &str = "LATHE_FILETEST";
/// Whether lines `TARGET: ?` are filled in.
const BLESS: &str = "LATHE_BLESS";

/// The crate's folder; where the test program was built elsewhere, the environment says where it is here.
fn here() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Paths of all test files in a folder, in order.
fn paths(folder: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut folders = vec![here().join(folder)];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = item.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "kir") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Reads all files of a folder beside this one; what is wrong with one is a failure of it.
pub fn read_folder(folder: &str, failures: &mut Vec<String>) -> Vec<File> {
    let mut files = vec![];
    let base = here().join(folder);
    for path in paths(folder) {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.strip_prefix(&base).unwrap_or(&path).display().to_string();
        match format::read(&path, name.clone(), &text) {
            Ok(file) => files.push(file),
            Err(Failure { line, message }) => failures.push(format!("{name}:{line}: {message}")),
        }
    }
    files
}

fn files(failures: &mut Vec<String>) -> Vec<File> {
    read_folder("filetests", failures)
}

#[test]
fn every_file_holds() {
    let filter = std::env::var(FILTER).unwrap_or_default();
    let bless = std::env::var_os(BLESS).is_some();
    let mut failures = vec![];
    let mut files = files(&mut failures);
    files.retain(|f| f.name.contains(&filter));
    failures.retain(|f| f.contains(&filter));
    assert!(!files.is_empty() || !failures.is_empty(), "no file's path contains `{filter}`");

    let jobs: Vec<(usize, usize)> =
        files.iter().enumerate().flat_map(|(f, file)| (0..file.sections.len()).map(move |s| (f, s))).collect();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(BTreeMap::new());
    let work = || {
        while let Some(&(f, s)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let section = &files[f].sections[s];
            let run = catch_unwind(AssertUnwindSafe(|| section::run(Path::new(&files[f].name), section)));
            let outcome = run.unwrap_or_else(|payload| {
                let message = payload.downcast_ref::<String>().cloned();
                let message = message.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                let message = format!("panic: {}", message.unwrap_or_default());
                let failure = Failure { line: section.kernel.line(), message };
                Outcome { failures: vec![failure], ..Outcome::default() }
            });
            outcomes.lock().expect("no panic holds it").insert((f, s), outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });

    let mut proposals: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for ((f, _), outcome) in outcomes.into_inner().expect("no panic held it") {
        let name = &files[f].name;
        failures.extend(outcome.failures.iter().map(|Failure { line, message }| format!("{name}:{line}: {message}")));
        if !bless {
            let line = |p: &(usize, _, _)| format!("{name}:{}: to be filled in by `cargo xtask bless`", p.0);
            failures.extend(outcome.proposals.iter().map(line));
        }
        proposals.entry(f).or_default().extend(outcome.proposals);
    }
    if bless {
        for (f, list) in proposals.into_iter().filter(|(_, list)| !list.is_empty()) {
            fill_in(&files[f], &list);
        }
    }
    failures.dedup();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Replaces the lines `TARGET: ?` of a file.
fn fill_in(file: &File, proposals: &[(usize, lathe_dsl::Target, Vec<String>)]) {
    let text = std::fs::read_to_string(&file.path).expect("it was read before");
    let mut out = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        // Targets with the same instructions share their lines.
        let mut groups: Vec<(String, &Vec<String>)> = vec![];
        for (_, target, list) in proposals.iter().filter(|(l, _, _)| *l == number) {
            match groups.iter_mut().find(|(_, other)| *other == list) {
                Some((targets, _)) => *targets = format!("{targets},{target}"),
                None => groups.push((target.to_string(), list)),
            }
        }
        if groups.is_empty() {
            out.push_str(line);
            out.push('\n');
        }
        for (targets, list) in groups {
            for text in list {
                out.push_str(&format!("{targets}: {text}\n"));
            }
            println!("{}:{number}: {targets}: {} instructions", file.name, list.len());
        }
    }
    std::fs::write(&file.path, out).expect("the file can be written");
}

#[test]
fn the_op_reference_is_what_the_definitions_and_these_files_say() {
    let mut failures = vec![];
    let files = files(&mut failures);
    failures.extend(reference::check(&files, std::env::var_os(BLESS).is_some()).err());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_operation_is_covered() {
    let mut failures = vec![];
    let files = files(&mut failures);
    coverage::check(&files, &mut failures);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
