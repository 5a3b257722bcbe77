//! Which buffer parameters a pointer can come from.

use crate::ir::{Access, Block, Kernel, Op, ParamKind, Value};

/// For every value, buffer parameters that it may be an address in and that not everything may be done to: one that is only
/// read and one that is only written stand for all others of their kind.
///
/// Addresses that were integers in between may lie anywhere; nothing is known of them, and nothing is asked.
pub(super) struct Origins {
    restricting: [Vec<Option<Value>>; 2],
}

impl Origins {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let flow = Flow::of(kernel);
        Self { restricting: [Access::Read, Access::Write].map(|access| flow.reached(kernel, access)) }
    }

    /// Parameters whose declarations restrict accesses through `v`.
    pub(super) fn restricting(&self, v: Value) -> impl Iterator<Item = Value> {
        self.restricting.iter().filter_map(move |of| of.get(v.index()).copied().flatten())
    }
}

/// For every value, the pointers that are made of it.
struct Flow {
    to: Vec<Vec<Value>>,
}

impl Flow {
    fn of(kernel: &Kernel) -> Self {
        let mut this = Self { to: vec![vec![]; kernel.values.len()] };
        kernel.walk(&mut |inst| match &inst.op {
            Op::PtrAdd(p, _) | Op::PtrCast(p) | Op::BufferPtr(p) => this.flow(&inst.results, &[*p]),
            Op::Opaque(p) => this.flow(&inst.results, &[*p]),
            Op::If { then, otherwise, .. } => {
                this.flow(&inst.results, &then.yields);
                this.flow(&inst.results, &otherwise.yields);
            }
            Op::For { init, body, .. } => {
                for from in [init, &body.yields] {
                    this.flow(&inst.results, from);
                    this.flow(body.params.get(1..).unwrap_or(&[]), from);
                }
            }
            Op::While { init, before, after } => {
                this.flow(&before.params, init);
                this.flow(&before.params, &after.yields);
                let handed = before.yields.get(1..).unwrap_or(&[]);
                this.flow(&after.params, handed);
                this.flow(&inst.results, handed);
            }
            Op::Native { args, meaning, .. } => {
                let Block { params, yields, .. } = meaning;
                this.flow(params, args);
                this.flow(&inst.results, yields);
            }
            _ => {}
        });
        this
    }

    fn flow(&mut self, to: &[Value], from: &[Value]) {
        for (to, from) in to.iter().zip(from) {
            if let Some(list) = self.to.get_mut(from.index()) {
                list.push(*to);
            }
        }
    }

    /// For every value, a parameter declared with `access` that it can come from. Every value is visited once.
    fn reached(&self, kernel: &Kernel, access: Access) -> Vec<Option<Value>> {
        let mut from = vec![None; self.to.len()];
        let declared = |kind| matches!(kind, ParamKind::Buffer { access: a, .. } if a == access);
        for (i, _) in kernel.params.iter().enumerate().filter(|(_, p)| declared(p.kind)) {
            let param = Value(i as u32);
            let mut open = vec![param];
            while let Some(v) = open.pop() {
                if let Some(of @ None) = from.get_mut(v.index()) {
                    *of = Some(param);
                    open.extend_from_slice(&self.to[v.index()]);
                }
            }
        }
        from
    }
}
