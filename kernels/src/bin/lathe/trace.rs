//! `lathe trace`: what a kernel costs, by source line and instruction, without a GPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use lathe_dsl::Target;
use lathe_dsl::ir::Location;
use lathe_kernels::registry::{Entry, RunReport};
use lathe_runtime::Engine;
use lathe_runtime::device::{Costs, Gcn};
use lathe_runtime::gcn;
use lathe_runtime::gcn::profile::{Assumptions, Cost};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, say};
use crate::setup::CacheArgs;

#[derive(clap::Args)]
pub struct Trace {
    /// Which kernel; `lathe list` names them.
    kernel: String,
    /// Sets a key field.
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = crate::setting)]
    settings: Vec<(String, String)>,
    /// Which chip's code object: gcn:gfx950, gcn:gfx942 or gcn:gfx1201.
    #[arg(long, value_parser = target, default_value = "gcn:gfx950")]
    device: Target,
    /// Seed of the input data and of the order in which workgroups begin and waves are interleaved.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Lines, and instructions, that the tables show: those that cost most.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print one JSON object, with every line and instruction.
    #[arg(long)]
    json: bool,
}

/// A `--device gcn:CHIP`.
fn target(text: &str) -> Result<Target, String> {
    let known = || gcn::targets().map(|t| format!("gcn:{t}")).collect::<Vec<_>>().join(", ");
    let chip = text.strip_prefix("gcn:").and_then(|chip| chip.parse().ok());
    chip.filter(|chip| gcn::targets().any(|t| t == *chip))
        .ok_or_else(|| format!("`{text}` executes no code object; devices that do: {}", known()))
}

/// The whole outcome, as JSON has it.
#[derive(Serialize)]
struct Report<'a> {
    kernel: &'static str,
    key: BTreeMap<&'static str, u32>,
    device: &'a str,
    seed: u64,
    ok: bool,
    workgroups: u64,
    /// What the estimate of cycles takes for granted.
    assumptions: Assumptions,
    total: Cost,
    lines: Vec<Line>,
    instructions: Vec<Instruction<'a>>,
}

/// All that an author's line became.
#[derive(Serialize)]
struct Line {
    /// `FILE:LINE`, if the code has one.
    line: Option<String>,
    #[serde(flatten)]
    cost: Cost,
}

#[derive(Serialize)]
struct Instruction<'a> {
    pc: u64,
    text: &'a str,
    line: Option<String>,
    #[serde(flatten)]
    cost: Cost,
}

fn place(location: Option<Location>) -> Option<String> {
    location.map(|l| format!("{}:{}", l.file, l.line))
}

impl<'a> Report<'a> {
    fn new(run: &'a RunReport, costs: &'a Costs) -> Self {
        let mut total = Cost::default();
        let mut by_line: BTreeMap<Option<String>, Cost> = BTreeMap::new();
        for i in &costs.instructions {
            total.add(&i.cost);
            by_line.entry(place(i.location)).or_default().add(&i.cost);
        }
        let mut lines: Vec<Line> = by_line.into_iter().map(|(line, cost)| Line { line, cost }).collect();
        lines.sort_by_key(|l| std::cmp::Reverse(l.cost.cycles.total()));
        let instruction = |i: &'a lathe_runtime::device::InstructionCost| Instruction {
            pc: i.pc,
            text: &i.text,
            line: place(i.location),
            cost: i.cost,
        };
        Self {
            kernel: run.kernel,
            key: run.key.iter().copied().collect(),
            device: &run.device,
            seed: run.seed,
            ok: run.ok,
            workgroups: costs.workgroups,
            assumptions: costs.assumptions,
            total,
            lines,
            instructions: costs.instructions.iter().map(instruction).collect(),
        }
    }
}

impl Trace {
    pub fn execute(&self) -> Result<(), Failure> {
        let kernel = Entry::find(&self.kernel).map_err(Failure::request)?;
        let build = kernel.build(&self.settings).map_err(Failure::request)?;
        let device = Arc::new(Gcn::counting(self.device, Some(self.seed)));
        let engine = Engine { device: Arc::<Gcn>::clone(&device), jit: self.cache.jit()? };
        let run = build.run(&engine, self.seed).map_err(|error| match error.is_request() {
            true => Failure::request(error),
            false => Failure::outcome(error),
        })?;
        output::warn(&run.record.warnings);
        let costs = device.costs().ok_or_else(|| Failure::outcome("the kernel was not launched"))?;
        let report = Report::new(&run, &costs);
        if self.json {
            say!("{}", serde_json::to_string(&report).map_err(Failure::outcome)?);
        } else {
            self.print(&report)?;
        }
        if report.ok { Ok(()) } else { Err(Failure::check()) }
    }

    fn print(&self, r: &Report<'_>) -> Result<(), Failure> {
        let key: Vec<String> = r.key.iter().map(|(field, value)| format!("{field}={value}")).collect();
        say!("{} {} on {}, seed {}: {} workgroups", r.kernel, key.join(" "), r.device, r.seed, r.workgroups);
        let a = &r.assumptions;
        say!(
            "cycles are estimates, as if no unit worked beside another: VALU {}, transcendental {}, MFMA 4 a pass, memory {} a line of {} \
             B, LDS {} banks of 4 B in lane order, scalar {}",
            a.valu_cycles,
            a.transcendental_cycles,
            a.line_cycles,
            a.line_bytes,
            a.lds_banks,
            a.issue_cycles
        );
        say!("counts (waves, bytes, lines of the cache, conflicts) are exact for this input");
        let (t, c) = (&r.total, &r.total.cycles);
        let share = |cycles: u64| 100.0 * cycles as f64 / c.total().max(1) as f64;
        say!("");
        say!(
            "total    {} cycles: VALU {:.1} %, MFMA {:.1} %, memory {:.1} %, LDS {:.1} %, scalar {:.1} %",
            c.total(),
            share(c.valu),
            share(c.mfma),
            share(c.vmem),
            share(c.lds),
            share(c.salu)
        );
        say!(
            "         {} instructions, {} waits; {} loaded, {} stored, {} cache lines for what fills {}; {} through LDS, {} cycles of \
             conflicts",
            t.executions,
            t.waits,
            crate::size(t.bytes_loaded),
            crate::size(t.bytes_stored),
            t.cache_lines,
            t.full_lines,
            crate::size(t.lds_bytes),
            t.lds_conflicts
        );
        say!("");
        let head =
            row(["cycles", "%", "waves", "memory B", "lines", "full", "LDS B", "conflicts", "waits"], "source line");
        say!("{head}");
        let shown = self.top as usize;
        for line in r.lines.iter().take(shown) {
            say!(
                "{}",
                cost_row(&line.cost, share(line.cost.cycles.total()), line.line.as_deref().unwrap_or("(no line)"))
            );
        }
        more(r.lines.len(), shown, "lines")?;
        say!("");
        let head =
            row(["cycles", "%", "waves", "memory B", "lines", "full", "LDS B", "conflicts", "waits"], "instruction");
        say!("{head}");
        let mut instructions: Vec<_> = r.instructions.iter().collect();
        instructions.sort_by_key(|i| std::cmp::Reverse(i.cost.cycles.total()));
        for i in instructions.iter().take(shown) {
            let line = i.line.as_deref().map_or(String::new(), |line| format!("  ; {line}"));
            say!("{}", cost_row(&i.cost, share(i.cost.cycles.total()), &format!("{:#x} {}{line}", i.pc, i.text)));
        }
        more(instructions.len(), shown, "instructions")
    }
}

fn more(all: usize, shown: usize, what: &str) -> Result<(), Failure> {
    if all > shown {
        say!("{:>9} {what} more: --top {all} shows them all", all - shown);
    }
    Ok(())
}

fn row(cells: [&str; 9], last: &str) -> String {
    const WIDTHS: [usize; 9] = [10, 5, 9, 10, 8, 8, 10, 9, 7];
    let cells = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:>width$}")).collect::<Vec<_>>();
    format!("{} {last}", cells.join(" "))
}

fn cost_row(cost: &Cost, share: f64, last: &str) -> String {
    // A dot where there is nothing, so that what there is stands out.
    let n = |n: u64| if n == 0 { "·".to_owned() } else { n.to_string() };
    let cells = [
        n(cost.cycles.total()),
        format!("{share:.1}"),
        n(cost.executions),
        n(cost.bytes_loaded + cost.bytes_stored),
        n(cost.cache_lines),
        n(cost.full_lines),
        n(cost.lds_bytes),
        n(cost.lds_conflicts),
        n(cost.waits),
    ];
    row(cells.each_ref().map(String::as_str), last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_devices_that_execute_code_objects_are_taken() {
        assert_eq!(target("gcn:gfx942"), Ok(Target::GFX942));
        for wrong in ["cpu", "gcn", "gcn:", "gcn:sm_90", "gcn:gfx9", "hip"] {
            let message = target(wrong).unwrap_err();
            assert!(message.contains(wrong) && message.contains("gcn:gfx950, gcn:gfx942, gcn:gfx1201"), "{message}");
        }
    }

    #[test]
    fn rows_line_up() {
        let cost = Cost { executions: 8, lds_conflicts: 56, ..Cost::default() };
        let (head, line) = (row([""; 9], "x"), cost_row(&cost, 12.34, "x"));
        assert_eq!(head.chars().count(), line.chars().count());
        assert!(line.contains(" 12.3 ") && line.contains(" 56 ") && line.contains('·'), "{line}");
    }
}
