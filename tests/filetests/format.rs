//! A test file as its sections.

use std::path::{Path, PathBuf};

use lathe_dsl::Target;

/// A file of tests.
pub struct File {
    pub path: PathBuf,
    /// For messages: relative to this folder.
    pub name: String,
    pub sections: Vec<Section>,
}

/// A kernel and what is expected of it.
pub struct Section {
    pub kernel: Kernel,
    pub with: String,
    pub covers: Vec<String>,
    pub launches: Vec<Launch>,
    pub code: Vec<CodeLine>,
    pub refused: Vec<(Target, String)>,
    /// Where, and why.
    pub skips: Vec<(Place, String)>,
}

/// A place where a section is compiled or run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Target(Target),
    Cpu,
    Gcn,
    Cuda,
}

/// Text of the kernel and the line where it begins.
pub enum Kernel {
    /// Types of operands and results, and a body with its yield.
    Snippet { line: usize, signature: String, body: Vec<String>, body_line: usize },
    /// Whole, without its comments' meaning.
    Whole { line: usize, text: String },
}

impl Kernel {
    pub fn line(&self) -> usize {
        match self {
            Self::Snippet { line, .. } | Self::Whole { line, .. } => *line,
        }
    }
}

/// One launch, or one lane of a snippet's.
#[derive(Default)]
pub struct Launch {
    pub line: usize,
    /// A snippet's operands and results; empty for a whole kernel.
    pub operands: String,
    pub results: String,
    /// `arg` lines.
    pub args: Vec<Given>,
    /// `expect` lines.
    pub expects: Vec<Given>,
    pub fault: Option<String>,
    pub gcn_fault: Option<String>,
    pub findings: Vec<String>,
}

/// `NAME = LIST`.
pub struct Given {
    pub line: usize,
    pub name: String,
    pub list: String,
}

/// `TARGET: TEXT` or `TARGET-not: TEXT`.
pub struct CodeLine {
    pub line: usize,
    pub targets: Vec<Target>,
    pub not: bool,
    pub text: String,
}

/// Something wrong with a file, or a failed test, with its line.
#[derive(Debug)]
pub struct Failure {
    pub line: usize,
    pub message: String,
}

/// A failure at a line.
pub fn fail<T>(line: usize, message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure { line, message: message.into() })
}

impl Section {
    fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            with: String::new(),
            covers: vec![],
            launches: vec![],
            code: vec![],
            refused: vec![],
            skips: vec![],
        }
    }

    /// The text of a whole kernel, with the number of its first line.
    pub fn whole(&self) -> Option<(usize, &str)> {
        match &self.kernel {
            Kernel::Whole { line, text } => Some((*line, text)),
            Kernel::Snippet { .. } => None,
        }
    }

    pub fn skips(&self, place: Place) -> bool {
        self.skips.iter().any(|(p, _)| *p == place)
    }

    pub fn refusal(&self, target: Target) -> Option<&str> {
        self.refused.iter().find(|(t, _)| *t == target).map(|(_, text)| text.as_str())
    }
}

/// Without the comment at its end and without blanks around it.
pub fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    let end = line.find(|c| {
        quoted ^= c == '"';
        c == ';' && !quoted
    });
    line[..end.unwrap_or(line.len())].trim()
}

/// The lines of a file with their numbers; a line that ends with `\` is one with the next.
struct Lines<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Lines<'a> {
    /// The number of the next line.
    fn number(&self) -> usize {
        self.at + 1
    }

    fn raw(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at)?;
        self.at += 1;
        Some(line)
    }

    fn joined(&mut self) -> Option<String> {
        let mut text = without_comment(self.raw()?).to_owned();
        while let Some(head) = text.strip_suffix('\\') {
            let Some(next) = self.raw() else { break };
            text = format!("{} {}", head.trim_end(), without_comment(next));
        }
        Some(text)
    }
}

/// Reads a file's text.
pub fn read(path: &Path, name: String, text: &str) -> Result<File, Failure> {
    if !text.starts_with("; ") {
        return fail(1, "the first line is a comment that says what the file shows");
    }
    let mut lines = Lines { lines: text.lines().collect(), at: 0 };
    let mut sections: Vec<Section> = vec![];
    loop {
        let number = lines.number();
        let Some(line) = lines.joined() else { break };
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let rest = rest.trim();
        match word {
            "" => continue,
            "sig" => {
                sections.push(Section::new(snippet(&mut lines, number, rest)?));
                continue;
            }
            "kernel_ir" => {
                sections.push(Section::new(whole(&mut lines, number)?));
                continue;
            }
            _ => {}
        }
        let Some(section) = sections.last_mut() else {
            return fail(number, format!("`{word}` before the first `sig` or `kernel_ir`"));
        };
        directive(section, number, word, rest, &line)?;
    }
    if sections.is_empty() {
        return fail(1, "no `sig` and no `kernel_ir`");
    }
    for section in &sections {
        check(section)?;
    }
    Ok(File { path: path.to_owned(), name, sections })
}

fn check(section: &Section) -> Result<(), Failure> {
    let line = section.kernel.line();
    if section.launches.is_empty() && section.refused.len() < Target::MAIN.len() {
        return fail(line, "no `run`");
    }
    if matches!(section.kernel, Kernel::Whole { .. }) && section.covers.is_empty() {
        return fail(line, "a whole kernel says what it `covers`");
    }
    Ok(())
}

fn snippet(lines: &mut Lines<'_>, line: usize, signature: &str) -> Result<Kernel, Failure> {
    let body_line = lines.number();
    let mut body = vec![];
    while let Some(text) = lines.raw() {
        body.push(text.to_owned());
        if text.starts_with("yield") {
            return Ok(Kernel::Snippet { line, signature: signature.to_owned(), body, body_line });
        }
    }
    fail(line, "the body has no `yield` in the first column")
}

fn whole(lines: &mut Lines<'_>, line: usize) -> Result<Kernel, Failure> {
    let mut text = format!("{}\n", lines.lines[line - 1]);
    while let Some(next) = lines.raw() {
        text.push_str(next);
        text.push('\n');
        if next.trim_end() == "}" {
            return Ok(Kernel::Whole { line, text });
        }
    }
    fail(line, "the kernel has no `}` in the first column")
}

fn directive(section: &mut Section, number: usize, word: &str, rest: &str, line: &str) -> Result<(), Failure> {
    let snippet = matches!(section.kernel, Kernel::Snippet { .. });
    match word {
        "with" if snippet => section.with = rest.to_owned(),
        "covers" => section.covers.extend(rest.split(',').map(|n| n.trim().to_owned())),
        "skip" => {
            let (place, reason) = quoted(number, rest)?;
            section.skips.push((self::place(number, place)?, reason));
        }
        "refused" => {
            let (target, text) = quoted(number, rest)?;
            let list = if target == "all" { Target::MAIN.to_vec() } else { targets(number, target)? };
            section.refused.extend(list.into_iter().map(|t| (t, text.clone())));
        }
        "run" if snippet => section.launches.push(lane(number, rest)?),
        "run" if rest.is_empty() => section.launches.push(Launch { line: number, ..Launch::default() }),
        "arg" | "expect" | "fault" | "finding" if !snippet => {
            let Some(launch) = section.launches.last_mut() else { return fail(number, "no `run` before it") };
            match word {
                "arg" => launch.args.push(given(number, rest)?),
                "expect" => launch.expects.push(given(number, rest)?),
                "finding" => launch.findings.push(quoted(number, rest)?.1),
                _ => match quoted(number, rest)? {
                    ("", text) => launch.fault = Some(text),
                    ("gcn", text) => launch.gcn_fault = Some(text),
                    (other, _) => return fail(number, format!("`fault {other}`; there are `fault` and `fault gcn`")),
                },
            }
        }
        _ => {
            let Some((list, text)) = line.split_once(':') else {
                return fail(number, format!("`{word}` is no directive here; see tests/filetests/README.md"));
            };
            let (list, not) = list.strip_suffix("-not").map_or((list, false), |list| (list, true));
            let (targets, text) = (targets(number, list)?, text.trim().to_owned());
            if text.is_empty() {
                return fail(number, "no text of an instruction");
            }
            section.code.push(CodeLine { line: number, targets, not, text });
        }
    }
    Ok(())
}

fn targets(line: usize, list: &str) -> Result<Vec<Target>, Failure> {
    let parse = |t: &str| t.trim().parse::<Target>().or_else(|e| fail(line, e.to_string()));
    list.split(',').map(parse).collect()
}

fn place(line: usize, text: &str) -> Result<Place, Failure> {
    match text {
        "cpu" => Ok(Place::Cpu),
        "gcn" => Ok(Place::Gcn),
        "cuda" => Ok(Place::Cuda),
        name => Ok(Place::Target(name.parse().or_else(|e| fail(line, format!("{e}, or cpu, gcn, cuda")))?)),
    }
}

/// What stands before a text in quotes, and the text.
fn quoted(line: usize, rest: &str) -> Result<(&str, String), Failure> {
    let text = rest.split_once('"').and_then(|(head, text)| Some((head.trim(), text.strip_suffix('"')?)));
    match text {
        Some((_, "")) | None => fail(line, "a text in quotes is missing"),
        Some((head, text)) => Ok((head, text.to_owned())),
    }
}

fn given(line: usize, rest: &str) -> Result<Given, Failure> {
    match rest.split_once('=') {
        Some((name, list)) => Ok(Given { line, name: name.trim().to_owned(), list: list.trim().to_owned() }),
        None => fail(line, "`NAME = LIST` is wanted"),
    }
}

/// `(VALUE, …) = RESULTS` or `(VALUE, …) fault "TEXT"`.
fn lane(line: usize, rest: &str) -> Result<Launch, Failure> {
    let parts = rest.strip_prefix('(').and_then(|r| r.split_once(')'));
    let Some((operands, rest)) = parts else { return fail(line, "`(VALUE, …)` is wanted") };
    let mut launch = Launch { line, operands: operands.to_owned(), ..Launch::default() };
    let rest = rest.trim();
    if let Some(results) = rest.strip_prefix('=') {
        launch.results = results.trim().to_owned();
    } else if let Some(text) = rest.strip_prefix("fault") {
        launch.fault = Some(quoted(line, text)?.1);
    } else {
        return fail(line, "`= RESULT` or `fault \"TEXT\"` is wanted");
    }
    Ok(launch)
}
