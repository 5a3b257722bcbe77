//! The book's pages and links, as far as they can be checked without building it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// An error unless `SUMMARY.md` names every page, and every relative link of the book and of the README leads somewhere.
pub fn check(root: &Path) -> Result<(), String> {
    let root = &normal(root);
    let book = root.join("docs").join("src");
    let mut files = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    pages(&book, &mut files)?;

    let mut wrong = Vec::new();
    let mut named = BTreeSet::new();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        for link in links(&text) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            let target = normal(&file.parent().unwrap_or(root).join(path));
            if !target.exists() {
                wrong.push(format!("{}: no such file: {link}", shown(file, root)));
            }
            if file.ends_with("SUMMARY.md") {
                named.insert(target);
            }
        }
    }
    for page in files.iter().filter(|f| f.starts_with(&book) && !f.ends_with("SUMMARY.md")) {
        if !named.contains(page) {
            wrong.push(format!("{}: not in SUMMARY.md", shown(page, root)));
        }
    }
    if wrong.is_empty() {
        println!("{} pages", named.len());
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

fn shown<'a>(file: &'a Path, root: &Path) -> std::path::Display<'a> {
    file.strip_prefix(root).unwrap_or(file).display()
}

/// Every Markdown file under a folder.
fn pages(folder: &Path, out: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        if path.is_dir() {
            pages(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "md") {
            out.push(path);
        }
    }
    Ok(())
}

/// Targets of inline links, those in code left out.
fn links(markdown: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut fenced = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second piece between backticks is code. A link whose text is code keeps its `](target)` in one piece.
        for text in line.split('`').step_by(2) {
            let mut rest = text;
            while let Some((_, after)) = rest.split_once("](") {
                let Some((target, after)) = after.split_once(')') else { break };
                out.push(target);
                rest = after;
            }
        }
    }
    out
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "See [a](a.md) and [`b`](b.md#part), not `[c](c.md)`.\n```\n[d](d.md)\n```\n[e](../e.md)";
        assert_eq!(links(text), ["a.md", "b.md#part", "../e.md"]);
    }

    #[test]
    fn a_lost_page_and_a_dead_link_are_named() {
        let root = std::env::temp_dir().join(format!("lathe-book-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("README.md", "[book](docs/src/a.md) [site](https://example.org/x) [above](#above)");
        write("CHANGELOG.md", "");
        write("docs/src/SUMMARY.md", "- [A](a.md)\n");
        write("docs/src/a.md", "[readme](../../README.md)");
        assert_eq!(check(&root), Ok(()));

        write("docs/src/part/b.md", "[gone](../gone.md#x)");
        let error = check(&root).unwrap_err();
        fs::remove_dir_all(&root).unwrap();
        assert!(error.contains("docs/src/part/b.md: no such file: ../gone.md#x"), "{error}");
        assert!(error.contains("docs/src/part/b.md: not in SUMMARY.md"), "{error}");
    }
}
