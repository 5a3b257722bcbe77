//! Promise: a wrong kernel does not run, or its run is reported, and the report names the line. `planted/README.md` describes
//! the files; bugs in the kernels that Lathe ships are in `planted/shipped.rs`.

mod shipped;

use std::collections::HashMap;
use std::path::Path;

use crate::filetests::{Section, read_folder, section};

/// Part of the paths of the files to run, for working on one of them.
const FILTER: &str = "LATHE_PLANTED";

/// A bug: another text in the place of one line.
struct Bug {
    name: String,
    /// Whether it shows in some orders only, and not in all.
    sometimes: bool,
    /// Number of the line, from 1.
    line: usize,
    replacement: String,
    /// What the report says.
    text: String,
    /// Lines of which the report names one.
    at: Vec<usize>,
}

/// The bugs that a kernel's text names; `first` is the number of the text's first line in its file.
fn bugs(text: &str, first: usize) -> Result<Vec<Bug>, String> {
    let mut labels: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, line) in (first..).zip(text.lines()) {
        if let Some((_, label)) = line.split_once(";@") {
            labels.entry(label.trim()).or_default().push(number);
        }
    }
    let mut found = vec![];
    let mut above = first;
    for (number, line) in (first..).zip(text.lines()) {
        let line = line.trim();
        let always = line.strip_prefix(";!");
        let Some(bug) = always.or_else(|| line.strip_prefix(";?")) else {
            if !line.starts_with(';') {
                above = number;
            }
            continue;
        };
        let parts: Vec<&str> = bug.split('|').map(str::trim).collect();
        let [name, replacement, text, rest @ ..] = parts.as_slice() else {
            return Err(format!("{number}: `NAME | REPLACEMENT | TEXT` is wanted"));
        };
        let at = match rest {
            [] => vec![above],
            [list] => {
                let lines = list.split(',').map(|l| {
                    labels
                        .get(l.trim())
                        .cloned()
                        .ok_or_else(|| format!("{number}: no line has the label `{}`", l.trim()))
                });
                lines.collect::<Result<Vec<_>, _>>()?.concat()
            }
            _ => return Err(format!("{number}: more than four parts")),
        };
        found.push(Bug {
            name: (*name).to_owned(),
            sometimes: always.is_none(),
            line: above,
            replacement: if *replacement == "-" { String::new() } else { replacement.replace("\\n", " ") },
            text: (*text).to_owned(),
            at,
        });
    }
    Ok(found)
}

#[test]
fn every_planted_bug_is_found_and_nothing_else() {
    let filter = std::env::var(FILTER).unwrap_or_default();
    let mut failures = vec![];
    let mut planted = 0;
    for file in read_folder("planted", &mut failures) {
        if !file.name.contains(&filter) {
            continue;
        }
        for section in &file.sections {
            planted += plant(&file.name, section, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(planted >= 60 || !filter.is_empty(), "only {planted} bugs");
}

/// Runs a section as it is, and with each of its bugs.
fn plant(file: &str, section: &Section, failures: &mut Vec<String>) -> usize {
    let path = Path::new(file);
    for report in section::reports(path, section, None).texts {
        failures.push(format!("{file}: as it stands, {report}"));
    }
    let bugs = match section.whole() {
        Some((line, text)) => bugs(text, line),
        None => Err("no whole kernel".to_owned()),
    };
    let bugs = match bugs {
        Ok(bugs) => bugs,
        Err(wrong) => {
            failures.push(format!("{file}:{wrong}"));
            return 0;
        }
    };
    for bug in &bugs {
        let found = section::reports(path, section, Some((bug.line, &bug.replacement)));
        let Bug { name, line, text, at, .. } = bug;
        let names_it = |r: &String| {
            text.split(" or ").any(|t| r.contains(t.trim()))
                && at.iter().any(|line| r.contains(&format!("{file}:{line}:")))
        };
        match (found.texts.as_slice(), found.silent, bug.sometimes) {
            ([], ..) => failures.push(format!("{file}:{line}: {name}: not found")),
            // One bug may have several true consequences; one report must be of it.
            ([first, ..], ..) if !found.texts.iter().any(names_it) => {
                failures.push(format!("{file}:{line}: {name}: wanted `{text}` at one of lines {at:?}, got: {first}"));
            }
            (_, 1.., false) => failures.push(format!("{file}:{line}: {name}: not found in {} runs", found.silent)),
            (_, 0, true) => failures.push(format!("{file}:{line}: {name}: found in every run; plant it with `;!`")),
            _ => {}
        }
    }
    bugs.len()
}
