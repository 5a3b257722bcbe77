//! Which operations the files cover, and for which targets.

use std::collections::{BTreeMap, BTreeSet};

use lathe_dsl::Target;
use lathe_dsl::ir::Op;

use super::format::{File, Kernel, Section, without_comment};

/// Names of operations that a section is a test of.
pub fn covered<'a>(section: &'a Section, all: &BTreeSet<&str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = section.covers.iter().map(String::as_str).collect();
    if let (Kernel::Snippet { body, .. }, true) = (&section.kernel, names.is_empty()) {
        let words = |line: &'a String| {
            let word = |c: char| c.is_ascii_alphanumeric() || "_%.=".contains(c);
            without_comment(line).split(move |c| !word(c))
        };
        names.extend(body.iter().flat_map(words).filter(|w| all.contains(w)));
    }
    names
}

pub fn check(files: &[File], failures: &mut Vec<String>) {
    let all: BTreeSet<&str> = Op::all_defs().iter().map(|d| d.name).collect();
    let mut run: BTreeSet<&str> = BTreeSet::new();
    let mut told: BTreeMap<&str, Vec<Target>> = BTreeMap::new();
    for file in files {
        for section in &file.sections {
            for name in covered(section, &all) {
                if !all.contains(name) {
                    let line = section.kernel.line();
                    failures.push(format!("{}:{line}: covers `{name}`, which is no operation", file.name));
                }
                if !section.launches.is_empty() {
                    run.insert(name);
                }
                let targets = told.entry(name).or_default();
                targets.extend(section.code.iter().flat_map(|l| &l.targets));
                targets.extend(section.refused.iter().map(|(t, _)| t));
            }
        }
    }
    for name in &all {
        let missing: Vec<String> = Target::MAIN
            .iter()
            .filter(|t| !told.get(name).is_some_and(|told| told.contains(t)))
            .map(ToString::to_string)
            .collect();
        if !run.contains(name) {
            failures.push(format!("no file runs `{name}`"));
        } else if !missing.is_empty() {
            failures.push(format!("no file says which instructions `{name}` becomes on {}", missing.join(", ")));
        }
    }
}
