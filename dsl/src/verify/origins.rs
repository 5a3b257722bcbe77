//! Which buffer parameters and LDS arrays a pointer can come from.

use crate::ir::{Access, Block, Kernel, Op, ParamKind, Space, Type, Value};

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

/// The LDS arrays that a value can point into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrays {
    None,
    /// By number.
    One(u32),
    /// Several, or nobody knows which: its address was an integer.
    Any,
}

impl Arrays {
    /// For every value.
    pub(super) fn of(kernel: &Kernel) -> Vec<Self> {
        let flow = Flow::of(kernel);
        let mut arrays = vec![Self::None; kernel.values.len()];
        let mut open = vec![];
        kernel.walk(&mut |inst| {
            let [result] = inst.results[..] else { return };
            match inst.op {
                Op::LdsBase(array) => open.push((result, Self::One(array))),
                Op::IntToPtr(_) if matches!(kernel.ty(result), Type::Ptr(Space::Lds, _)) => {
                    open.push((result, Self::Any));
                }
                _ => {}
            }
        });
        // Each value rises at most twice.
        while let Some((v, with)) = open.pop() {
            let was = arrays[v.index()];
            let now = if was == Self::None || was == with { with } else { Self::Any };
            if now != was {
                arrays[v.index()] = now;
                open.extend(flow.to[v.index()].iter().map(|to| (*to, now)));
            }
        }
        arrays
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
