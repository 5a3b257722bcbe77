//! Programs that the verifier refuses or warns of, each with its exact message: the sections of `tests/refused/*.kir`.
//!
//! A section is a kernel as Kernel IR text and, behind it, `refused: MESSAGE` or `warning: MESSAGE`; a line `on TARGET` before
//! the kernel names the chip, gfx950 otherwise. `LATHE_BLESS=1` writes the messages anew: read what it wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lathe_dsl::{Target, ir, verify};

/// A program and what is said of it.
struct Section {
    /// Line of `kernel_ir`, from 0.
    line: usize,
    target: Target,
    text: String,
    /// The line with the message, if there is one already.
    expected: Option<(usize, String)>,
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_string_lossy().into_owned()
}

fn sections(text: &str) -> Vec<Section> {
    let mut out: Vec<Section> = vec![];
    let (mut target, mut open) = (Target::GFX950, false);
    for (i, line) in text.lines().enumerate() {
        if let Some(chip) = line.strip_prefix("on ") {
            target = chip.parse().unwrap();
        } else if line.starts_with("kernel_ir") {
            let text = format!("{}{line}\n", "\n".repeat(i));
            out.push(Section { line: i, target: std::mem::replace(&mut target, Target::GFX950), text, expected: None });
            open = true;
        } else if open {
            out.last_mut().unwrap().text.push_str(&format!("{line}\n"));
            open = line != "}";
        } else if line.starts_with("refused:") || line.starts_with("warning:") {
            out.last_mut().unwrap().expected = Some((i, line.to_owned()));
        } else {
            assert!(line.is_empty() || line.starts_with(';'), "line {}: `{line}` belongs to no section", i + 1);
        }
    }
    out
}

/// What is said of a program, and where the operation stands that it is said of; an error if nothing is.
fn said(section: &Section, file: &str) -> Result<String, String> {
    let kernel = ir::parse(&section.text, file).map_err(|e| e.to_string())?;
    match verify::verify(&kernel, section.target) {
        Err(refusal) => Ok(format!("refused: {refusal}")),
        Ok(warnings) => match warnings.first() {
            Some(warning) => Ok(format!("warning: {warning}")),
            None => Err(format!("{file}:{}: the program is accepted", section.line + 1)),
        },
    }
}

fn messages() -> Vec<String> {
    let mut all = vec![];
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        all.extend(sections(&text).iter().map(|s| said(s, &name(&file)).unwrap()));
    }
    all
}

#[test]
fn every_program_is_refused_with_its_message() {
    let bless = std::env::var_os("LATHE_BLESS").is_some();
    let mut wrong = vec![];
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for section in sections(&text).iter().rev() {
            let said = match said(section, &name(&file)) {
                Ok(said) => said,
                Err(e) => {
                    wrong.push(e);
                    continue;
                }
            };
            match &section.expected {
                Some((_, expected)) if *expected == said => continue,
                Some((at, _)) if bless => lines[*at] = said,
                None if bless => {
                    let end = section.line + lines[section.line..].iter().position(|l| l == "}").unwrap();
                    lines.insert(end + 1, said);
                }
                expected => {
                    let expected = expected.as_ref().map_or("nothing", |(_, e)| e);
                    wrong.push(format!("{}:{}: expected\n  {expected}\nis\n  {said}", name(&file), section.line + 1));
                }
            }
        }
        if bless {
            fs::write(&file, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_hundred_programs_and_more_are_refused_for_different_reasons() {
    let all = messages();
    let reason = |m: &String| match m.split_once(".kir:") {
        Some((_, rest)) => rest.split_once(": ").unwrap().1.to_owned(),
        None => m.clone(),
    };
    let different: BTreeSet<String> = all.iter().map(reason).collect();
    assert!(different.len() >= 100, "{} programs, {} reasons", all.len(), different.len());
}

/// Words of the program text and of Rust that no author wrote.
#[test]
fn no_message_has_a_name_of_our_own_in_it() {
    for message in messages() {
        for word in ["Op::", "Value(", "Scalar(", "Type::", "Some(", "None", "OpNumber", "Inst", "Ptr(", "Vector("] {
            assert!(!message.contains(word), "`{word}` in: {message}");
        }
    }
}

/// The book's page about refusals quotes messages; it quotes them as they are, and each group and the warnings have one.
#[test]
fn the_books_messages_are_these() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/refusals.md");
    let page = fs::read_to_string(page).unwrap();
    let all = messages();
    let said: BTreeSet<&str> = all.iter().filter_map(|m| m.split_once(": ")).map(|(_, message)| message).collect();
    let (mut groups, mut quoted) = (0, vec![]);
    for line in page.lines() {
        groups += usize::from(line.starts_with("**") || line == "## Warnings");
        if line.split_once(":").is_some_and(|(file, _)| file.ends_with(".kir")) {
            assert!(said.contains(line), "no program is refused with: {line}");
            quoted.push(groups);
        }
    }
    let with: BTreeSet<usize> = quoted.into_iter().collect();
    assert!(groups >= 8 && with.into_iter().eq(1..=groups), "a group of {groups} has no message");
}

/// What no short text gives: the parser keeps these rules itself, or the program is long. `tests/rules.rs` and
/// `tests/refusals.rs` have programs made by hand.
const NOT_FROM_TEXT: &[&str] = &[
    "a parameter has no value",
    "constant 0x{:x} does not fit {ty}, which has {width} bits",
    "parameter `{}` is {}, its value {}",
    "{v} is defined twice or has no type",
    "operation number {number} has no location",
    "a result has no type",
    "LDS array #{i} is not declared",
    "control flow nested deeper than {MAX_DEPTH} regions",
    "kernel name `{name}` is not made of letters, digits and `_`, starting with no digit",
    "{much}: this place alone was traced {n} times; a loop in Rust is unrolled while the kernel is traced, `for_range` is not",
    "{much}; use `for_range` for what repeats, or make it several kernels",
];

/// Every message that stands in the verifier's sources has a program that is refused with it.
#[test]
fn every_rule_has_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verify");
    let said = messages();
    let mut missing = vec![];
    for file in fs::read_dir(folder).unwrap() {
        let source = fs::read_to_string(file.unwrap().path()).unwrap();
        for template in templates(&source) {
            let known = NOT_FROM_TEXT.contains(&template.as_str());
            if !known && !said.iter().any(|m| fits(&template, m)) {
                missing.push(template);
            }
        }
    }
    assert!(missing.is_empty(), "no program is refused with:\n{}", missing.join("\n"));
}

/// The messages of a source: string literals of several words, outside comments.
fn templates(source: &str) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
    // A literal goes on behind a line that ends with `\`.
    let code = code.join("\n");
    let mut out = vec![];
    let mut rest = code.as_str();
    while let Some(start) = rest.find('"') {
        let mut text = String::new();
        let mut chars = rest[start + 1..].char_indices();
        let mut end = rest.len();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    end = start + 2 + i;
                    break;
                }
                '\\' => {
                    if let Some((_, '\n')) = chars.next() {
                        text.push('\n');
                    }
                }
                c => text.push(c),
            }
        }
        // The blanks that begin a continued line are not part of it.
        let lines: Vec<&str> =
            text.split('\n').enumerate().map(|(i, l)| if i == 0 { l } else { l.trim_start() }).collect();
        let text = lines.concat();
        if text.contains(' ') && text.split(' ').filter(|w| w.chars().all(|c| c.is_ascii_lowercase())).count() >= 2 {
            out.push(text);
        }
        rest = &rest[end..];
    }
    out
}

/// Whether a message holds the fixed parts of a template, in order.
fn fits(template: &str, message: &str) -> bool {
    let mut rest = message;
    let mut fixed = String::new();
    let mut depth = 0;
    let mut parts = vec![];
    for c in template.chars() {
        match c {
            '{' => {
                depth += 1;
                parts.push(std::mem::take(&mut fixed));
            }
            '}' => depth -= 1,
            c if depth == 0 => fixed.push(c),
            _ => {}
        }
    }
    parts.push(fixed);
    parts.iter().all(|part| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}
