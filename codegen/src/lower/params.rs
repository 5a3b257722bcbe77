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
    let (shared, communicates) = shared(kernel);
    let one = |(i, p): (usize, &ir::Param)| {
        let shared = shared.contains(&ir::Value(i as u32))
            || matches!(p.kind, ParamKind::Buffer { access, .. } if communicates && access != Access::Read);
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

/// Buffer parameters that are accessed in ways which other threads are meant to take part in, or whose address gets
/// away; and whether the kernel talks to other threads through global memory at all.
///
/// Of such memory LLVM must not be told that nobody else touches it: it would move accesses across fences and out of the
/// loops that wait for them.
fn shared(kernel: &Kernel) -> (HashSet<ir::Value>, bool) {
    let (mut shared, mut communicates) = (HashSet::new(), false);
    let global = |v: &ir::Value| matches!(kernel.ty(*v), Type::Ptr(Space::Global, _));
    kernel.walk(&mut |inst| match &inst.op {
        Op::BufferLoad { buffer, cache, .. }
        | Op::BufferStore { buffer, cache, .. }
        | Op::CopyToLds { buffer, cache, .. }
            if cache.coherence != Coherence::Own =>
        {
            shared.insert(*buffer);
            communicates = true;
        }
        Op::BufferAtomic { buffer, .. } => {
            shared.insert(*buffer);
            communicates = true;
        }
        Op::BufferPtr(buffer) => {
            shared.insert(*buffer);
        }
        Op::Native { forms, .. } => communicates |= forms.iter().any(|f| f.effects),
        Op::Fence { .. } | Op::Drain { .. } | Op::SWaitcnt { .. } => communicates = true,
        Op::AtomicRmw { pointer, .. } | Op::AtomicCas { pointer, .. } => communicates |= global(pointer),
        Op::PtrLoad { pointer, memory } | Op::PtrStore { pointer, memory, .. } => {
            communicates |= global(pointer) && (memory.volatile || memory.order != Order::Plain);
        }
        _ => {}
    });
    (shared, communicates)
}
