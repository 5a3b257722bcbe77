//! Structured control flow by closures.

use super::element::{Idx, LoopIndex, Ty};
use super::value::V;
use super::{Builder, Exit, State};
use crate::ir::{BinaryOp, Block, Inst, Location, Op, Predicate, Scalar, Type, UnaryOp, Unroll, Value};
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
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// First or last index of a loop that counts in `T`: a device value or a Rust number.
#[diagnostic::on_unimplemented(
    message = "a loop that counts in `{T}` is not bounded by `{Self}`",
    note = "both ends of a loop have one type: i32, u32, i64, u64 or Idx"
)]
pub trait LoopBound<'k, T> {
    /// The device value.
    #[doc(hidden)]
    #[track_caller]
    fn bound(self, k: &'k Builder<'k>) -> V<'k, T>;
}

impl<'k, T: LoopIndex> LoopBound<'k, T> for V<'k, T> {
    fn bound(self, _: &'k Builder<'k>) -> V<'k, T> {
        self
    }
}

macro_rules! loop_bound {
    ($($number:ty => $t:ty;)*) => {$(
        impl<'k> LoopBound<'k, $t> for $number {
            #[track_caller]
            fn bound(self, k: &'k Builder<'k>) -> V<'k, $t> {
                k.constant(<$t>::from(self))
            }
        }
    )*};
}

loop_bound! {
    i32 => i32;
    u32 => u32;
    i64 => i64;
    u64 => u64;
    Idx => Idx;
    i64 => Idx;
}

pub(super) fn ids<'k>(values: &impl Values<'k>) -> (Vec<Value>, Vec<Type>) {
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
    pub(super) fn region<R: Values<'k>>(&'k self, params: Vec<Value>, body: impl FnOnce() -> R) -> (Block, R) {
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
        rebuilt(self, &shape, &results)
    }

    /// Runs `body(i, carried)` for `i = lo, lo + step, …` while `i < hi` (no wrap-around); `body`'s result is the next
    /// iteration's `carried`, the last one's is returned (`init` if there is no iteration). Pass `()` to carry nothing.
    /// It counts in the type of its ends; at least one of them must show it (`0u32`). A Rust `for` unrolls instead. `step` 0
    /// is refused.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let sum = k.for_range(0, k.thread_id(Axis::X), 1, k.constant(0u32), |i, sum| sum + i * i);
    /// # let _ = sum;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn for_range<T: LoopIndex, C: Values<'k>>(
        &'k self,
        lo: impl LoopBound<'k, T>,
        hi: impl LoopBound<'k, T>,
        step: u32,
        init: C,
        body: impl FnOnce(V<'k, T>, C) -> C,
    ) -> C {
        self.for_range_with(lo, hi, step, Unroll::Auto, init, body)
    }

    /// As [`Builder::for_range`], with a hint on unrolling.
    #[track_caller]
    pub fn for_range_with<T: LoopIndex, C: Values<'k>>(
        &'k self,
        lo: impl LoopBound<'k, T>,
        hi: impl LoopBound<'k, T>,
        step: u32,
        unroll: Unroll,
        init: C,
        body: impl FnOnce(V<'k, T>, C) -> C,
    ) -> C {
        let (lo, hi) = (lo.bound(self), hi.bound(self));
        let step = self.at_least_one("for_range", step);
        let (init_ids, types) = ids(&init);
        let params = self.new_values(std::iter::once(T::TYPE).chain(types.iter().copied()));
        let index = V::new(self, params[0]);
        let carried = rebuilt(self, &init, &params[1..]);
        let (mut block, next) = self.region(params, || body(index, carried));
        self.hands_on("for_range", &types, &next, &mut block.yields, &init_ids);
        let op = Op::For { lo: lo.id, hi: hi.id, step, init: init_ids, unroll, body: block };
        let results = self.emit_op(op, &types);
        rebuilt(self, &init, &results)
    }

    /// As [`Builder::for_range`], but `body` also hands on whether to go on; it is asked after every iteration.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let words = k.lds::<u32>("words", 64);
    /// // The first word that is 0, or 64.
    /// let first = k.for_range_while(0u32, 64, 1, k.constant(64u32), |i, _| {
    ///     let zero = k.ptr_load::<u32>(words + i).eq(0);
    ///     (zero.select(i, 64), !zero)
    /// });
    /// # let _ = first;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn for_range_while<T: LoopIndex, C: Values<'k>>(
        &'k self,
        lo: impl LoopBound<'k, T>,
        hi: impl LoopBound<'k, T>,
        step: u32,
        init: C,
        body: impl FnOnce(V<'k, T>, C) -> (C, V<'k, bool>),
    ) -> C {
        let location = Location::caller();
        let (lo, hi) = (lo.bound(self), hi.bound(self));
        let step = self.at_least_one("for_range_while", step);
        let types = ids(&init).1;
        let distance = |a: V<'k, T>, b: V<'k, T>| {
            // What is left may not fit a signed type, but its bits as an unsigned one are right.
            let left: V<'k, T> = self.emit_at(Op::Binary(BinaryOp::Sub, a.id, b.id), location);
            let unsigned = match T::SCALAR {
                Scalar::I32 => Type::U32,
                Scalar::I64 => Type::U64,
                s => return (left.id, Type::Scalar(s)),
            };
            (self.emit_op_at(Op::Bitcast(left.id), &[unsigned], location)[0], unsigned)
        };
        let step_of = |ty: Type| self.const_value(ty, crate::ir::Bits(step.into()));
        let start: V<'k, bool> = self.emit(Op::Compare(Predicate::Lt, lo.id, hi.id));
        let (_, _, carried) = self.while_(
            (start, lo, init),
            |(go_on, i, carried)| (go_on, (go_on, i, carried)),
            |(_, i, carried)| {
                let (next, go_on) = body(i, carried);
                let next_types = ids(&next).1;
                if next_types != types {
                    let (a, b) = (listed(&types), listed(&next_types));
                    self.refuse_at(format!("`for_range_while` carries {a}, but its body hands on {b}"), location);
                }
                let (left, ty) = distance(hi, i);
                let more = self.emit_at::<bool>(Op::Compare(Predicate::Gt, left, step_of(ty)), location);
                let both = self.emit_at(Op::Binary(BinaryOp::And, go_on.id, more.id), location);
                (both, self.next_index(i, step, more, location), next)
            },
        );
        carried
    }

    /// `i + step` where there is a next iteration, else `i`: an index must not overflow, not even unused.
    fn next_index<T: LoopIndex>(&'k self, i: V<'k, T>, step: u32, more: V<'k, bool>, location: Location) -> V<'k, T> {
        let step = self.const_value(T::TYPE, crate::ir::Bits(step.into()));
        let zero = self.const_value(T::TYPE, crate::ir::Bits(0));
        let by: V<'k, T> = self.emit_at(Op::Select { condition: more.id, on_true: step, on_false: zero }, location);
        self.emit_at(Op::Binary(BinaryOp::Add, i.id, by.id), location)
    }

    /// Runs `before(state)`, which gives a condition and what goes on from it; while the condition holds in a lane, runs
    /// `after` there, whose result is the next `state`. Gives what went on from the `before` that ended it.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// // Halve until odd.
    /// let odd = k.while_(k.thread_id(Axis::X) + 1, |x| ((x & 1).eq(0), x), |x| x >> 1);
    /// # let _ = odd;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn while_<C: Values<'k>, D: Values<'k>>(
        &'k self,
        init: C,
        before: impl FnOnce(C) -> (V<'k, bool>, D),
        after: impl FnOnce(D) -> C,
    ) -> D {
        let (init_ids, state) = ids(&init);
        let params = self.new_values(state.iter().copied());
        let start = rebuilt(self, &init, &params);
        let (before, (_, handed)) = self.region(params, || before(start));
        let types = ids(&handed).1;
        let params = self.new_values(types.iter().copied());
        let body_params = rebuilt(self, &handed, &params);
        let (mut after, next) = self.region(params, || after(body_params));
        self.hands_on("while_", &state, &next, &mut after.yields, &init_ids);
        let results = self.emit_op(Op::While { init: init_ids, before, after }, &types);
        rebuilt(self, &handed, &results)
    }

    /// Ends the kernel for the lanes where `condition` holds: what follows runs only where it does not. Allowed at the
    /// kernel's top level only. Barriers and exchanges between lanes that follow are refused unless
    /// all threads that they are about go on together.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// k.exit_if(k.thread_id(Axis::X).ge(40));
    /// // Threads 0 to 39 go on.
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn exit_if(&'k self, condition: V<'k, bool>) {
        if self.with_state(|s| s.blocks.len() != 1 + s.exits.len()) {
            self.refuse(
                "`exit_if` inside a region; it is allowed at the kernel's top level only, use `if_` here".to_owned(),
            );
            return;
        }
        let stays: V<'k, bool> = self.emit(Op::Unary(UnaryOp::Not, condition.id));
        let location = Location::caller();
        self.with_state(|s| {
            s.exits.push(Exit { stays: stays.id, location });
            s.blocks.push(Block::default());
        });
    }

    /// Promises that `condition` holds. A broken promise is reported on `cpu`, undefined elsewhere. Outside all regions, and of a
    /// scalar argument compared with a constant, it declares the argument's bounds, from which offsets are worked out.
    #[track_caller]
    pub fn assume(&'k self, condition: V<'k, bool>) {
        self.emit_void(Op::Assume(condition.id));
    }

    pub(super) fn new_values(&self, types: impl Iterator<Item = Type>) -> Vec<Value> {
        self.with_state(|s| types.map(|t| s.value(t)).collect())
    }

    #[track_caller]
    fn at_least_one(&self, name: &str, step: u32) -> u32 {
        if step == 0 {
            self.refuse(format!("`{name}` with step 0 never ends; the step must be at least 1"));
        }
        step.max(1)
    }

    /// Refuses a body that hands on other types than are carried, and then hands on something that fits.
    #[track_caller]
    fn hands_on(&self, name: &str, types: &[Type], next: &impl Values<'k>, yields: &mut Vec<Value>, instead: &[Value]) {
        let next = ids(next).1;
        if next != types {
            let (a, b) = (listed(types), listed(&next));
            self.refuse(format!("`{name}` carries {a}, but its body hands on {b}"));
            *yields = instead.to_vec();
        }
    }
}

/// A bundle shaped like `shape` of these values.
pub(super) fn rebuilt<'k, C: Values<'k>>(k: &'k Builder<'k>, shape: &C, values: &[Value]) -> C {
    let mut values = values.iter().copied();
    // Shapes and types have been compared, so there are enough; a refused kernel may run out.
    shape.rebuild(k, &mut || values.next().unwrap_or(Value(0)))
}

impl State {
    /// Closes the regions that [`Builder::exit_if`] opened.
    pub(super) fn close_exits(&mut self) {
        while let Some(exit) = self.exits.pop() {
            let then = self.blocks.pop().unwrap_or_default();
            let number = self.number(exit.location);
            let op = Op::If { condition: exit.stays, then, otherwise: Block::default() };
            if let Some(block) = self.blocks.last_mut() {
                block.insts.push(Inst { number, op, results: vec![] });
            }
        }
    }
}
