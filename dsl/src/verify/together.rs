//! What threads must do together: barriers and exchanges stand where control flow is the same for all whom they are about.

use crate::error::Refusal;
use crate::ir::{Block, Inst, Kernel, Op, Scope, Value};
use crate::uniform::{Cause, Span, Uniformity};

/// Refuses what stands in control flow that is not uniform enough, and operands that must be the same for a wave and are not
/// seen to be.
pub(super) fn check(kernel: &Kernel, uniform: &Uniformity<'_>) -> Result<(), Refusal> {
    Walk { kernel, uniform, around: vec![] }.block(&kernel.body)
}

struct Walk<'k, 'u> {
    kernel: &'k Kernel,
    uniform: &'u Uniformity<'k>,
    /// Operations with regions around the current place, outermost first.
    around: Vec<&'k Inst>,
}

/// Whom an operation is about.
#[derive(Clone, Copy)]
enum Whom {
    Workgroup,
    Wave,
    /// Aligned groups of so many lanes.
    Group(u32),
}

impl<'k> Walk<'k, '_> {
    fn block(&mut self, block: &'k Block) -> Result<(), Refusal> {
        for inst in &block.insts {
            self.inst(inst)
                .map_err(|message| Refusal { location: Some(self.kernel.location(inst.number)), message })?;
            self.around.push(inst);
            for region in inst.op.blocks() {
                self.block(region)?;
            }
            self.around.pop();
        }
        Ok(())
    }

    fn inst(&self, inst: &'k Inst) -> Result<(), String> {
        if let Some(whom) = whom(&inst.op) {
            self.together(inst, whom)?;
        }
        match &inst.op {
            Op::ReadLane(_, lane) => self.same_for_wave(inst, "the lane", *lane),
            Op::CopyToLds { pointer, scalar, .. } => {
                self.same_for_wave(inst, "the LDS pointer", *pointer)?;
                scalar.map_or(Ok(()), |v| self.same_for_wave(inst, "the scalar offset", v))
            }
            Op::BufferLoad { scalar: Some(v), .. }
            | Op::BufferStore { scalar: Some(v), .. }
            | Op::BufferAtomic { scalar: Some(v), .. }
            | Op::BufferAtomicCas { scalar: Some(v), .. } => self.same_for_wave(inst, "the scalar offset", *v),
            Op::SBufferLoad { offset, .. } => self.same_for_wave(inst, "the offset", *offset),
            _ => Ok(()),
        }
    }

    fn together(&self, inst: &'k Inst, whom: Whom) -> Result<(), String> {
        let (control, wave) = (self.uniform.control(inst.number), Span::of(self.kernel.wave));
        let (needed, who) = match whom {
            Whom::Workgroup => (Span::WORKGROUP, "the whole workgroup".to_owned()),
            Whom::Wave => (wave, "all lanes of the wave".to_owned()),
            Whom::Group(width) => (Span::of(width), format!("all lanes of each group of {width}")),
        };
        let name = inst.op.def().name;
        if control >= needed {
            return self.whole_groups(inst, control);
        }
        // The outermost one to blame: inner ones may be fine once it is.
        let guard = self.around.iter().find(|i| self.uniform.guard(i.number) < needed).unwrap_or(&inst);
        let lanes = self.uniform.guard(guard.number) < wave;
        let between = if lanes { "lanes of a wave" } else { "waves of the workgroup" };
        let place = self.kernel.location(guard.number);
        let (given, out) = match guard.op {
            Op::If { .. } => (format!("the condition at {place}"), "branch"),
            Op::For { .. } => (format!("the number of rounds of the loop at {place}"), "loop"),
            _ => (format!("the condition of the loop at {place}"), "loop"),
        };
        let cause = self.uniform.why_apart(guard);
        let from = cause.as_ref().map_or(String::new(), |c| format!(" depends on {} at {}", c.what, c.location));
        let promise = cause.map_or(String::new(), |c| promised(&c, needed));
        Err(format!(
            "`{name}` in control flow that differs between {between}: {given}{from}; {who} must come to it together: move \
             it out of the {out}{promise}"
        ))
    }

    /// Exchanges that need all lanes of a group, where it is the workgroup's shape that leaves some out.
    fn whole_groups(&self, inst: &Inst, control: Span) -> Result<(), String> {
        let width = match inst.op {
            Op::Butterfly { width, .. } => width,
            Op::Transpose8x8(_) => 32,
            _ => return Ok(()),
        };
        let threads = self.kernel.launch.block_threads();
        if control != Span::WORKGROUP || threads.is_multiple_of(width) {
            return Ok(());
        }
        let (name, last) = (inst.op.def().name, threads % width);
        Err(format!(
            "`{name}` over groups of {width} lanes in a workgroup of {threads} threads, whose last group has {last} lanes; it \
             needs all of them: make the workgroup a multiple of {width} threads, or leave the last group out by an `if`"
        ))
    }

    fn same_for_wave(&self, inst: &Inst, what: &str, v: Value) -> Result<(), String> {
        if self.uniform.value(v) >= Span::of(self.kernel.wave) {
            return Ok(());
        }
        let name = inst.op.def().name;
        let from = self.uniform.why_differs(v).map_or(String::new(), |c| format!(" by {} at {}", c.what, c.location));
        Err(format!(
            "{what} of `{name}` differs between lanes of a wave{from}; it must be the same for all of them: compute it from a \
             value that `.uniform()` or `.assume_uniform(Scope::Wave)` gives"
        ))
    }
}

/// The promise that helps, if the cause is one that the author may know more about.
fn promised(cause: &Cause, needed: Span) -> String {
    if !cause.loads {
        return String::new();
    }
    let scope = if needed == Span::WORKGROUP { "Workgroup" } else { "Wave" };
    format!(", or if what is loaded is the same for all of them say so by `.assume_uniform(Scope::{scope})`")
}

/// Whom an operation needs to come to it together.
fn whom(op: &Op) -> Option<Whom> {
    match op {
        Op::Barrier | Op::AssumeUniform { scope: Scope::Workgroup, .. } => Some(Whom::Workgroup),
        Op::AssumeUniform { .. }
        | Op::Ballot(_)
        | Op::ReadFirstLane(_)
        | Op::ReadLane(..)
        | Op::LdsReadTr { .. }
        | Op::Mma { .. }
        | Op::MfmaScaled { .. }
        | Op::CopyToLds { .. } => Some(Whom::Wave),
        Op::LaneShuffle { width, .. } | Op::Butterfly { width, .. } => Some(Whom::Group(*width)),
        Op::Transpose8x8(_) => Some(Whom::Group(32)),
        _ => None,
    }
}
