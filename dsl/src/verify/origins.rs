//! Which buffer parameters a pointer can come from.

use crate::ir::{Block, Kernel, Op, Value};

/// For every pointer, the pointers and buffers that it is made of.
pub(super) struct Origins {
    from: Vec<Vec<Value>>,
}

impl Origins {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let mut this = Self { from: vec![vec![]; kernel.values.len()] };
        kernel.walk(&mut |inst| match &inst.op {
            Op::PtrAdd(p, _) | Op::PtrCast(p) | Op::BufferPtr(p) => this.flow(&inst.results, &[*p]),
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
            if let Some(list) = self.from.get_mut(to.index()) {
                list.push(*from);
            }
        }
    }

    /// Everything that `v` can come from, itself included.
    pub(super) fn all(&self, v: Value) -> Vec<Value> {
        let mut seen = vec![v];
        let mut next = 0;
        while let Some(v) = seen.get(next).copied() {
            next += 1;
            for from in self.from.get(v.index()).into_iter().flatten() {
                if !seen.contains(from) {
                    seen.push(*from);
                }
            }
        }
        seen
    }
}
