//! Kernel parameters: what LLVM may assume of them, and the buffers made of them.

use std::collections::HashSet;

use lathe_dsl::ir::{self, Access, Coherence, Kernel, Op, Order, ParamKind, Space, Type};
use melior::ir::attribute::DictionaryAttribute;
use melior::ir::{Attribute, Identifier};

use super::Lowering;
use super::buffer::{Buffer, Extent};
use super::emit::{Emitter, Result};

impl Lowering<'_, '_, '_> {
    /// Makes the parameters' values.
    pub(super) fn open_params(&mut self) -> Result<()> {
        for (i, p) in self.kernel.params.iter().enumerate() {
            let argument = self.emit.param(i)?;
            self.values[i] = Some(argument);
            if let ParamKind::Buffer { align, .. } = p.kind {
                let extent = Extent::known(p.kind.buffer_bytes().unwrap_or(0));
                let buffer = Buffer::open(&self.emit, self.backend, argument, extent, u64::from(align))?;
                self.buffers.insert(ir::Value(i as u32), buffer);
            }
        }
        Ok(())
    }
}

/// What LLVM may assume of every parameter.
pub fn attributes<'c>(e: &Emitter<'c, '_>, kernel: &Kernel) -> Vec<Attribute<'c>> {
    let talk = Talk::of(kernel);
    let one = |(i, p): (usize, &ir::Param)| {
        let shared = talk.addressed.contains(&ir::Value(i as u32))
            || matches!(p.kind, ParamKind::Buffer { access, .. } if talk.reaches(access));
        of_one(e, p.kind, shared)
    };
    kernel.params.iter().enumerate().map(one).collect()
}

fn of_one<'c>(e: &Emitter<'c, '_>, kind: ParamKind, shared: bool) -> Attribute<'c> {
    let unit = e.unit();
    let mut attributes = vec![("llvm.noundef", unit)];
    if let ParamKind::Buffer { access, align, .. } = kind {
        // Buffers of one launch do not overlap unless none of them is written.
        if !shared {
            attributes.push(("llvm.noalias", unit));
            match access {
                Access::Read => attributes.push(("llvm.readonly", unit)),
                Access::Write => attributes.push(("llvm.writeonly", unit)),
                Access::ReadWrite => {}
            }
        }
        attributes.push(("llvm.align", e.int_attribute(64, i64::from(align))));
        // An empty buffer may be a null pointer.
        if let Some(bytes @ 1..) = kind.buffer_bytes() {
            attributes.push(("llvm.nonnull", unit));
            attributes.push(("llvm.dereferenceable", e.int_attribute(64, bytes as i64)));
        }
    }
    let named: Vec<_> = attributes.into_iter().map(|(n, a)| (Identifier::new(e.context, n), a)).collect();
    DictionaryAttribute::new(e.context, &named).into()
}

/// How a kernel's threads talk to each other, and to other kernels', through global memory.
///
/// Of memory that takes part LLVM must not be told that nobody else touches it: it would move accesses across fences and
/// out of the loops that wait for them.
#[derive(Default)]
struct Talk {
    /// Buffer parameters that are accessed in ways which others are meant to take part in, or whose address gets away.
    addressed: HashSet<ir::Value>,
    /// Something is published to others, or heard from them.
    publishes: bool,
    /// Something is heard from others, so that what was only read may have been written by them before.
    hears: bool,
    /// The workgroup's threads wait for each other.
    meets: bool,
    /// Addresses come from elsewhere, and may be those of parameters.
    raw: bool,
}

impl Talk {
    fn of(kernel: &Kernel) -> Self {
        let mut talk = Self::default();
        let global = |v: &ir::Value| matches!(kernel.ty(*v), Type::Ptr(Space::Global, _));
        let acquires = |order: &Order| matches!(order, Order::Acquire | Order::AcqRel | Order::SeqCst);
        kernel.walk(&mut |inst| match &inst.op {
            Op::BufferLoad { buffer, cache, .. } | Op::CopyToLds { buffer, cache, .. }
                if cache.coherence != Coherence::Own =>
            {
                talk.addressed.insert(*buffer);
                talk.hears = true;
            }
            Op::BufferStore { buffer, cache, .. } if cache.coherence != Coherence::Own => {
                talk.addressed.insert(*buffer);
                talk.publishes = true;
            }
            Op::BufferAtomic { buffer, .. } | Op::BufferAtomicCas { buffer, .. } => {
                talk.addressed.insert(*buffer);
                talk.publishes = true;
            }
            Op::BufferPtr(buffer) => {
                talk.addressed.insert(*buffer);
            }
            Op::IntToPtr(_) => talk.raw |= inst.results.iter().any(global),
            Op::MakeBuffer { .. } => talk.raw = true,
            Op::Native { forms, .. } => talk.hears |= forms.iter().any(|f| f.effects),
            Op::Drain { .. } | Op::SWaitcnt { .. } => talk.publishes = true,
            Op::Barrier => talk.meets = true,
            Op::Fence { order, .. } => {
                talk.publishes = true;
                talk.hears |= acquires(order);
            }
            Op::AtomicRmw { pointer, order, .. } | Op::AtomicCas { pointer, order, .. } if global(pointer) => {
                talk.publishes = true;
                talk.hears |= acquires(order);
            }
            Op::PtrLoad { pointer, memory } | Op::PtrStore { pointer, memory, .. } if global(pointer) => {
                let special = memory.volatile || memory.order != Order::Plain;
                talk.publishes |= special;
                talk.hears |= special && matches!(inst.op, Op::PtrLoad { .. });
            }
            _ => {}
        });
        talk
    }

    /// Whether others may touch a buffer that is used like this.
    fn reaches(&self, access: Access) -> bool {
        self.raw
            || self.hears
            || (self.publishes && access != Access::Read)
            || (self.meets && access == Access::ReadWrite)
    }
}
