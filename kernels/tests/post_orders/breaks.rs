//! Breaks of the protocol, each an edit of the printed kernel, that some order must show.

use lathe_dsl::{Target, ir, verify};

/// The lines of a printed kernel.
pub struct Text(Vec<String>);

/// A break.
pub struct Break {
    pub name: &'static str,
    /// Query tokens of the kernel.
    pub tokens: u32,
    pub edit: fn(&mut Text),
    /// What is told: one of these.
    pub says: &'static [&'static str],
}

impl Text {
    /// `kernel` after an edit, which must have changed it into something that is still accepted.
    pub fn edited(kernel: &ir::Kernel, Break { name, edit, .. }: &Break) -> ir::Kernel {
        let before = kernel.to_string();
        let mut text = Self(before.lines().map(str::to_owned).collect());
        edit(&mut text);
        let after = text.0.join("\n");
        assert_ne!(after.trim(), before.trim(), "{name}: nothing changed");
        let kernel = ir::parse(&after, "mla_post.kir").unwrap_or_else(|e| panic!("{name}: {e}"));
        verify::verify(&kernel, Target::GFX950).unwrap_or_else(|e| panic!("{name}: {e}"));
        kernel
    }

    /// Number of the `n`th line (from 0) that contains `part`.
    fn at(&self, part: &str, n: usize) -> usize {
        let mut found = (0..self.0.len()).filter(|i| self.0[*i].contains(part));
        found.nth(n).unwrap_or_else(|| panic!("line {n} with `{part}`"))
    }

    /// Numbers of all lines that contain each of `parts`.
    fn all(&self, parts: &[&str]) -> Vec<usize> {
        (0..self.0.len()).filter(|i| parts.iter().all(|part| self.0[*i].contains(part))).collect()
    }

    fn replace(&mut self, at: usize, from: &str, to: &str) {
        assert!(self.0[at].contains(from), "`{from}` in `{}`", self.0[at]);
        self.0[at] = self.0[at].replacen(from, to, 1);
    }

    fn remove(&mut self, part: &str, n: usize) {
        let at = self.at(part, n);
        self.0.remove(at);
    }

    /// Moves lines, which keep their order, to before line `to`; none of them is `to`.
    fn move_up(&mut self, lines: &[usize], to: usize) {
        let moved: Vec<String> = lines.iter().map(|i| self.0[*i].clone()).collect();
        lines.iter().rev().for_each(|i| drop(self.0.remove(*i)));
        self.0.splice(to..to, moved);
    }

    /// Moves lines to behind line `to`, which comes after them.
    fn move_down(&mut self, lines: &[usize], to: usize) {
        let moved: Vec<String> = lines.iter().map(|i| self.0[*i].clone()).collect();
        self.0.splice(to + 1..to + 1, moved);
        lines.iter().rev().for_each(|i| drop(self.0.remove(*i)));
    }

    /// The constant 0 of u32.
    fn zero(&self) -> String {
        self.name(self.at(": u32 = const 0", 0))
    }

    /// What a line defines.
    fn name(&self, at: usize) -> String {
        self.0[at].trim().split(':').next().expect("a name").to_owned()
    }

    /// The last operand of the line becomes `other`.
    fn last_operand(&mut self, at: usize, other: &str) {
        let (rest, _) = self.0[at].rsplit_once(' ').expect("operands");
        self.0[at] = format!("{rest} {other}");
    }

    /// The line that defines `name`.
    fn definition(&self, name: &str) -> usize {
        self.at(&format!(" {name}: "), 0)
    }

    /// Operands of a line.
    fn operands(&self, at: usize) -> Vec<String> {
        let (_, right) = self.0[at].split_once(" = ").expect("an operation");
        let words = right.split([' ', ',', '[', ']']).filter(|word| word.starts_with('%'));
        words.map(str::to_owned).collect()
    }

    /// Stores of rows to other ranks, of the flags behind them, and loads of what came.
    fn row_stores(&self) -> Vec<usize> {
        self.all(&["buffer_store", "unit=bytes", "coherence=system"])
    }

    fn flag_stores(&self) -> Vec<usize> {
        self.all(&["buffer_store", "mask=", "coherence=system"])
    }

    fn flag_loads(&self) -> Vec<usize> {
        self.all(&[": u64 = buffer_load", "coherence=system"])
    }

    fn row_loads(&self) -> Vec<usize> {
        self.all(&[": u32x2 = buffer_load", "coherence=system"])
    }

    fn coherence(&mut self, lines: &[usize], to: &str) {
        lines.iter().for_each(|at| self.replace(*at, " coherence=system", to));
    }

    /// The loop that waits.
    fn wait(&self) -> usize {
        self.at("while", 0)
    }

    /// The line of the step's tag, whose operands the flags have twice.
    fn tag(&self) -> usize {
        let flags = self.at(": u32x4 = vector [", 0);
        // Of the words of a flag: payload, tag, 0, tag.
        let flags = (flags..self.0.len()).find(|at| {
            let words = if self.0[*at].contains("u32x4 = vector [") { self.operands(*at) } else { vec![] };
            words.len() == 4 && words[1] == words[3]
        });
        self.definition(&self.operands(flags.expect("flags"))[1])
    }
}

const fn of(name: &'static str, edit: fn(&mut Text), says: &'static [&'static str]) -> Break {
    Break { name, tokens: 1, edit, says }
}

const WRONG: &[&str] = &["wrong values"];
const RACE: &[&str] = &["race"];
const ENDLESS: &[&str] = &["endless wait"];
/// Old messages are taken for new ones, or new ones overwritten before they are read.
const MIXED_UP: &[&str] = &["wrong values", "endless wait"];

pub const BREAKS: &[Break] = &[
    // How rows and flags go out.
    of("no drain", |t| t.remove("drain", 0), WRONG),
    of("drained for the workgroup only", |t| t.replace(t.at("drain", 0), "drain", "drain scope=workgroup"), WRONG),
    of("drained for the device only", |t| t.replace(t.at("drain", 0), "drain", "drain scope=device"), WRONG),
    of(
        "drained behind the flags",
        |t| t.move_down(&[t.at("drain", 0)], *t.flag_stores().last().expect("flags")),
        WRONG,
    ),
    of("flags before their rows", |t| t.move_down(&t.row_stores(), *t.flag_stores().last().expect("flags")), WRONG),
    of("one row behind its flag", |t| t.move_down(&t.row_stores()[1..], t.flag_stores()[1]), WRONG),
    of("rows that stay in a cache", |t| t.coherence(&t.row_stores(), ""), RACE),
    of("rows for this device only", |t| t.coherence(&t.row_stores(), " coherence=device"), &["race", "wrong values"]),
    of("flags that stay in a cache", |t| t.coherence(&t.flag_stores(), ""), RACE),
    of("flags for this device only", |t| t.coherence(&t.flag_stores(), " coherence=device"), &["race", "endless wait"]),
    // Tags.
    of("flags without a tag", no_tag, ENDLESS),
    of("a tag without the slot", |t| t.last_operand(t.tag() - 1, &t.zero()), MIXED_UP),
    of("a tag without the epoch", |t| t.last_operand(t.tag() - 3, &t.zero()), MIXED_UP),
    of("a tag that is not one more", |t| t.last_operand(t.tag(), &t.zero()), MIXED_UP),
    // Halves and slots.
    of("one half for all epochs", |t| t.last_operand(t.tag() + 1, &t.zero()), MIXED_UP),
    of("halves that overlap", overlapping, MIXED_UP),
    of("one slot for all sources", same_slot, MIXED_UP),
    // How they come in.
    of("nobody waits", no_wait, &["wrong values", "never written"]),
    of("only the first rank is waited for", first_only, WRONG),
    of("rows loaded before their flags", early_rows, WRONG),
    of("flags out of a cache", |t| t.coherence(&t.flag_loads(), ""), RACE),
    of("flags out of the device's cache", |t| t.coherence(&t.flag_loads(), " coherence=device"), RACE),
    of("rows out of a cache", |t| t.coherence(&t.row_loads(), ""), RACE),
    of("rows out of the device's cache", |t| t.coherence(&t.row_loads(), " coherence=device"), RACE),
    // What is sent, and what lies in LDS.
    of("what an empty request left is believed", |t| believed(t, 0), WRONG),
    Break { tokens: 2, ..of("what padding left is believed", |t| believed(t, 1), WRONG) },
    of("latents used before all are there", |t| t.remove("barrier", 0), &["race", "wrong values", "never written"]),
    of("latents overwritten before all are used", |t| t.remove("barrier", 1), &["race", "wrong values"]),
];

fn no_tag(t: &mut Text) {
    let (zero, tag) = (t.zero(), t.name(t.tag()));
    let lines = t.all(&["u32x4 = vector [", &format!(" {tag}, ")]);
    for at in lines {
        t.0[at] = t.0[at]
            .replace(&format!(" {tag},"), &format!(" {zero},"))
            .replace(&format!(" {tag}]"), &format!(" {zero}]"));
    }
}

/// The offset of the second half becomes 16 bytes.
fn overlapping(t: &mut Text) {
    let sixteen = t.name(t.at(": u64 = const 16", 0));
    t.last_operand(t.tag() + 3, &sixteen);
}

/// A source's slot becomes that of source 0.
fn same_slot(t: &mut Text) {
    // `(rank · tokens + token) · 12 + head`, of which the first product is.
    let rank =
        format!("mul {}, ", t.name(t.at(" rank: u32", 0)).replace("param ", "").split(' ').next().expect("a name"));
    let products = t.all(&[&rank]);
    let zero = t.zero();
    let at = *products.last().expect("the slot");
    let (left, right) = t.0[at].split_once("mul ").expect("a product");
    let (_, other) = right.split_once(", ").expect("two factors");
    t.0[at] = format!("{left}mul {zero}, {other}");
}

fn no_wait(t: &mut Text) {
    let (at, zero) = (t.at("= not ", 0), t.zero());
    t.0[at] = format!("{}= cmp_ne {zero}, {zero}", t.0[at].split("= not").next().expect("a name"));
}

fn first_only(t: &mut Text) {
    let at = t.at("= not ", 0);
    let all = t.definition(&t.operands(at)[0]);
    let first = t.operands(all)[0].clone();
    t.last_operand(at, &first);
}

fn early_rows(t: &mut Text) {
    let wait = t.wait();
    let mut lines = vec![];
    for load in t.row_loads().into_iter().filter(|at| *at > wait) {
        let sum = t.definition(&t.operands(load)[1]);
        lines.extend([t.definition(&t.operands(sum)[0]), sum, load]);
    }
    t.move_up(&lines, wait);
}

/// Of `empty = no rows | padding` one of the two remains.
fn believed(t: &mut Text, which: usize) {
    let select = t.all(&["= select "]).into_iter().find(|at| {
        let condition = t.definition(&t.operands(*at)[0]);
        t.0[condition].contains("= or ")
    });
    let or = t.definition(&t.operands(select.expect("the LSE sent"))[0]);
    let kept = t.operands(or)[1 - which].clone();
    let (left, _) = t.0[or].split_once("= or ").expect("or");
    t.0[or] = format!("{left}= or {kept}, {kept}");
}
