//! Instructions of a compiled kernel against what a test expects of them.

use lathe_dsl::artifact::Artifact;
use lathe_dsl::{Arch, Target};

use super::format::{CodeLine, Failure, Section};

/// The instructions of a kernel, blanks made one.
pub fn listing(artifact: &Artifact) -> Result<Vec<String>, String> {
    let lines = lathe_codegen::listing(artifact)?;
    Ok(lines.iter().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect())
}

/// Checks a target's lines in order.
pub fn check(section: &Section, target: Target, listing: &[String], failures: &mut Vec<Failure>) {
    let mut at = 0;
    for line in section.code.iter().filter(|l| l.targets.contains(&target) && l.text != "?") {
        let CodeLine { text, not, line, .. } = line;
        let holds = |l: &String| l.contains(text.as_str());
        let message = match (not, listing[at..].iter().position(holds)) {
            (false, Some(found)) => {
                at += found + 1;
                continue;
            }
            (false, None) => match listing.iter().position(holds) {
                Some(_) => format!("`{text}` does not stand behind the instruction of the line before"),
                None => format!("no instruction contains `{text}`"),
            },
            (true, _) => match listing.iter().find(|l| holds(l)) {
                Some(found) => format!("`{found}` contains `{text}`"),
                None => continue,
            },
        };
        failures
            .push(Failure { line: *line, message: format!("{target}: {message}; the kernel is\n{}", shown(listing)) });
    }
}

fn shown(listing: &[String]) -> String {
    listing.iter().map(|l| format!("    {l}\n")).collect()
}

/// Most lines that are filled in.
const MOST: usize = 40;

/// The mnemonics that replace a `?`: between the last load of an operand and the first store of a result.
pub fn proposal(target: Target, listing: &[String], snippet: bool) -> Vec<String> {
    let words: Vec<&str> = listing
        .iter()
        .map(|l| {
            let mut words = l.split(' ');
            let first = words.next().unwrap_or_default();
            // A guard of PTX stands before the mnemonic.
            let word = if first.starts_with('@') { words.next().unwrap_or_default() } else { first };
            word.trim_end_matches(';')
        })
        .collect();
    let amd = target.chip().arch == Arch::Amdgpu;
    let starts = |w: &str, list: &[&str]| list.iter().any(|p| w.starts_with(p));
    let store = |w: &str| starts(w, &["buffer_store", "global_store", "st.global"]);
    let load = |w: &str| starts(w, &["buffer_load", "global_load", "s_buffer_load", "ld.global"]);
    let noise = |w: &str| {
        let amd = ["s_waitcnt", "s_wait_", "s_nop", "s_delay_alu", "s_endpgm", "s_load_", "s_clause", "s_code_end"];
        // Descriptors and addresses of the buffers.
        let access = ["s_mov_b", "s_movk_i32", "s_and_b32", "add.s64", "mul.wide.u32", "mad.wide.u32"];
        starts(w, &amd) || starts(w, &["ld.param", "cvta.", "ret"]) || (snippet && starts(w, &access))
    };
    let region = if snippet {
        let end = words.iter().position(|w| store(w)).unwrap_or(words.len());
        let start = words[..end].iter().rposition(|w| load(w)).map_or(0, |i| i + 1);
        &words[start..end]
    } else {
        &words[..]
    };
    let plain = |w: &str| {
        let short = ["_e32", "_e64"].iter().find_map(|s| w.strip_suffix(s)).unwrap_or(w);
        if amd { short.to_owned() } else { w.to_owned() }
    };
    region.iter().filter(|w| !noise(w)).take(MOST).map(|w| plain(w)).collect()
}
