//! Structured control flow by closures.

use super::element::Ty;
use super::value::{Operand, V};
use super::{Builder, State};
use crate::ir::{Block, Op, Type, Unroll, Value};
use crate::verify::listed;

/// Device values that a region hands out or a loop carries: a handle, a tuple, an array or a `Vec` of such.
pub trait Values<'k>: Sized {
    /// Calls `f` on every value's id and type, in order.
    fn each(&self, f: &mut impl FnMut(Value, Type));

    /// A bundle of the same shape from other ids, taken in order from `next`.
    fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> Value) -> Self;
}

impl<'k> Values<'k> for () {
    fn each(&self, _: &mut impl FnMut(Value, Type)) {}
    fn rebuild(&self, _: &'k Builder<'k>, _: &mut impl FnMut() -> Value) -> Self {}
}

impl<'k, T: Ty> Values<'k> for V<'k, T> {
    fn each(&self, f: &mut impl FnMut(Value, Type)) {
        f(self.id, T::TYPE);
    }
    fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> Value) -> Self {
        V::new(k, next())
    }
}

impl<'k, T: Values<'k>, const N: usize> Values<'k> for [T; N] {
    fn each(&self, f: &mut impl FnMut(Value, Type)) {
        self.iter().for_each(|v| v.each(f));
    }
    fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> Value) -> Self {
        std::array::from_fn(|i| self[i].rebuild(k, next))
    }
}

impl<'k, T: Values<'k>> Values<'k> for Vec<T> {
    fn each(&self, f: &mut impl FnMut(Value, Type)) {
        self.iter().for_each(|v| v.each(f));
    }
    fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> Value) -> Self {
        self.iter().map(|v| v.rebuild(k, next)).collect()
    }
}

macro_rules! tuple {
    ($($t:ident $i:tt),*) => {
        impl<'k, $($t: Values<'k>),*> Values<'k> for ($($t,)*) {
            fn each(&self, f: &mut impl FnMut(Value, Type)) {
                $(self.$i.each(f);)*
            }
            fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> Value) -> Self {
                ($(self.$i.rebuild(k, next),)*)
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

fn ids<'k>(values: &impl Values<'k>) -> (Vec<Value>, Vec<Type>) {
    let mut out = (vec![], vec![]);
    values.each(&mut |id, ty| {
        out.0.push(id);
        out.1.push(ty);
    });
    out
}

impl<'k> Builder<'k> {
    fn with_state<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.borrow_mut())
    }

    /// Runs `body` into a block of its own.
    fn region<R: Values<'k>>(&'k self, params: Vec<Value>, body: impl FnOnce() -> R) -> (Block, R) {
        self.with_state(|s| s.blocks.push(Block { params, ..Block::default() }));
        let result = body();
        let mut block = self.with_state(|s| s.blocks.pop()).unwrap_or_default();
        block.yields = ids(&result).0;
        (block, result)
    }

    /// Runs `then` in the lanes where `condition` holds.
    #[track_caller]
    pub fn if_(&'k self, condition: V<'k, bool>, then: impl FnOnce()) {
        let (then, ()) = self.region(vec![], then);
        self.emit_void(Op::If { condition: condition.id, then, otherwise: Block::default() });
    }

    /// Runs `then` or `otherwise`, by lane, and hands out the values of the one that ran. Both must hand out the same
    /// types; `Vec`s of different lengths are refused.
    #[track_caller]
    pub fn if_else<R: Values<'k>>(
        &'k self,
        condition: V<'k, bool>,
        then: impl FnOnce() -> R,
        otherwise: impl FnOnce() -> R,
    ) -> R {
        let (then, shape) = self.region(vec![], then);
        let (mut otherwise, other) = self.region(vec![], otherwise);
        let (types, other_types) = (ids(&shape).1, ids(&other).1);
        if types != other_types {
            let (a, b) = (listed(&types), listed(&other_types));
            self.refuse(format!("the two sides of `if_else` hand out different values: {a} and {b}"));
            otherwise.yields.clone_from(&then.yields);
        }
        let results = self.emit_op(Op::If { condition: condition.id, then, otherwise }, &types);
        let mut results = results.into_iter();
        shape.rebuild(self, &mut || results.next().unwrap_or(condition.id))
    }

    /// Runs `body(i, carried)` for `i = lo, lo + step, …` while `i < hi` (no wrap-around); `body`'s result is the next
    /// iteration's `carried`, the last one's is returned (`init` if there is no iteration). Pass `()` to carry nothing.
    /// A Rust `for` unrolls instead. `step` 0 is refused.
    #[track_caller]
    pub fn for_range<C: Values<'k>>(
        &'k self,
        lo: impl Operand<'k, u32>,
        hi: impl Operand<'k, u32>,
        step: u32,
        init: C,
        body: impl FnOnce(V<'k, u32>, C) -> C,
    ) -> C {
        let (lo, hi) = (lo.value(self), hi.value(self));
        if step == 0 {
            self.refuse("`for_range` with step 0 never ends; the step must be at least 1".to_owned());
        }
        let (init_ids, types) = ids(&init);
        let params: Vec<Value> =
            self.with_state(|s| std::iter::once(u32::TYPE).chain(types.iter().copied()).map(|t| s.value(t)).collect());
        let index = V::new(self, params[0]);
        let mut carried = params[1..].iter().copied();
        let carried = init.rebuild(self, &mut || carried.next().unwrap_or(index.id));
        let (mut block, next) = self.region(params, || body(index, carried));
        let next_types = ids(&next).1;
        if next_types != types {
            let (a, b) = (listed(&types), listed(&next_types));
            self.refuse(format!("`for_range` carries {a}, but its body hands on {b}"));
            block.yields.clone_from(&init_ids);
        }
        let op = Op::For { lo: lo.id, hi: hi.id, step: step.max(1), init: init_ids, unroll: Unroll::Auto, body: block };
        let mut results = self.emit_op(op, &types).into_iter();
        init.rebuild(self, &mut || results.next().unwrap_or(lo.id))
    }
}
