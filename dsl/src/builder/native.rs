//! Code of a target's own, with its meaning.

use super::Builder;
use super::control::{Values, ids, rebuilt};
use crate::ir::{NativeCode, NativeForm, Op};

impl NativeForm {
    /// Inline assembly for a chip (`gfx950`) or a family (`amdgpu`, `nvptx`): LLVM's template (`$0`, `$1`, …) and constraints
    /// of results and operands.
    pub fn asm(target: &str, template: &str, constraints: &str) -> Self {
        let code = NativeCode::Asm { template: template.to_owned(), constraints: constraints.to_owned() };
        Self { target: target.to_owned(), code, effects: false }
    }

    /// A call of an LLVM intrinsic by its full name, such as `llvm.amdgcn.rsq.f32`.
    pub fn intrinsic(target: &str, name: &str) -> Self {
        let code = NativeCode::Intrinsic { name: name.to_owned() };
        Self { target: target.to_owned(), code, effects: false }
    }

    /// It does something besides its results: it is never left out, merged or moved.
    #[must_use]
    pub fn effects(self) -> Self {
        Self { effects: true, ..self }
    }
}

impl<'k> Builder<'k> {
    /// Inline assembly or raw intrinsics, one form a kind of target (the first that fits is taken), with their meaning: a
    /// closure that computes the same from the same arguments and uses no other device values. `cpu`, and targets that no form
    /// fits, run the meaning.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let forms = [
    ///     NativeForm::asm("amdgpu", "v_lshl_add_u32 $0, $1, 4, $2", "=v,v,v"),
    ///     NativeForm::asm("nvptx", "mad.lo.u32 $0, $1, 16, $2;", "=r,r,r"),
    /// ];
    /// let at = k.native((k.lane_id(), k.thread_id(Axis::Y)), forms, |(lane, row)| (lane << 4) + row);
    /// # let _ = at;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn native<A: Values<'k>, R: Values<'k>>(
        &'k self,
        args: A,
        forms: impl IntoIterator<Item = NativeForm>,
        meaning: impl FnOnce(A) -> R,
    ) -> R {
        let (arg_ids, types) = ids(&args);
        let params = self.new_values(types.iter().copied());
        let inside = rebuilt(self, &args, &params);
        let (meaning, shape) = self.region(params, || meaning(inside));
        let results = ids(&shape).1;
        let op = Op::Native { args: arg_ids, forms: forms.into_iter().collect(), meaning };
        let results = self.emit_op(op, &results);
        rebuilt(self, &shape, &results)
    }
}
