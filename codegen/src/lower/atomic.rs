//! Atomic operations, fences and drains.

use lathe_dsl::ir::{self, AtomicOp, Family, FastFlags, Order, Scope, Space, Type as IrType};
use melior::dialect::llvm;
use melior::ir::{Attribute, Value, ValueLike};

use super::Lowering;
use super::emit::{Emitter, Named, Result};

/// LLVM's atomic orderings, numbered as MLIR numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ordering {
    NotAtomic = 0,
    Monotonic = 2,
    Acquire = 4,
    Release = 5,
    AcqRel = 6,
    SeqCst = 7,
}

impl Ordering {
    /// As an attribute.
    pub fn attribute<'c>(self, e: &Emitter<'c, '_>) -> Attribute<'c> {
        e.int_attribute(64, self as i64)
    }

    fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel | Self::SeqCst)
    }

    fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel | Self::SeqCst)
    }

    /// Without its release half: what a compare-and-swap that stores nothing has.
    fn of_failure(self) -> Self {
        match self {
            Self::Release => Self::Monotonic,
            Self::AcqRel => Self::Acquire,
            other => other,
        }
    }
}

/// A memory order in LLVM's words.
pub fn ordering(order: Order) -> Ordering {
    match order {
        Order::Plain => Ordering::NotAtomic,
        Order::Relaxed => Ordering::Monotonic,
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        Order::AcqRel => Ordering::AcqRel,
        Order::SeqCst => Ordering::SeqCst,
    }
}

/// `llvm.atomicrmw`'s operations, numbered as MLIR numbers them.
fn bin_op(op: AtomicOp, ty: IrType) -> i64 {
    let s = ty.scalar();
    match op {
        AtomicOp::Xchg => 0,
        AtomicOp::Add if s.is_float() => 11,
        AtomicOp::Add => 1,
        AtomicOp::Sub => 2,
        AtomicOp::And => 3,
        AtomicOp::Or => 5,
        AtomicOp::Xor => 6,
        AtomicOp::Max if s.is_signed() => 7,
        AtomicOp::Max => 9,
        AtomicOp::Min if s.is_signed() => 8,
        AtomicOp::Min => 10,
    }
}

/// A read-modify-write.
#[derive(Clone, Copy)]
pub struct Rmw<'c, 'a> {
    /// What is done.
    pub op: AtomicOp,
    /// Where.
    pub pointer: Value<'c, 'a>,
    /// In which memory.
    pub space: Space,
    /// With what.
    pub value: Value<'c, 'a>,
    /// Its type.
    pub ty: IrType,
    /// Among whom.
    pub scope: Scope,
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// A fence.
    pub(super) fn fence(&self, order: Order, scope: Scope) -> Result<()> {
        self.fence_at(&self.emit, ordering(order), scope)
    }

    fn fence_at(&self, e: &Emitter<'c, 'a>, order: Ordering, scope: Scope) -> Result<()> {
        if self.backend.is_ordered_within(scope) {
            return e.compiler_barrier();
        }
        let attributes = [("ordering", order.attribute(e)), ("syncscope", e.string(self.backend.sync_scope(scope)))];
        e.op("llvm.fence", &[], &[], &attributes).map(drop)
    }

    /// An atomic access with its order: LLVM's NVIDIA target takes only relaxed ones, to be surrounded by fences.
    fn ordered(
        &self,
        e: &Emitter<'c, 'a>,
        order: Ordering,
        scope: Scope,
        access: impl FnOnce(Ordering) -> Result<Value<'c, 'a>>,
    ) -> Result<Value<'c, 'a>> {
        if !self.backend.orders_atomics_by_fences() {
            return access(order);
        }
        if order.releases() {
            let before = if order == Ordering::SeqCst { order } else { Ordering::AcqRel };
            self.fence_at(e, before, scope)?;
        }
        let value = access(Ordering::Monotonic)?;
        if order.acquires() {
            self.fence_at(e, Ordering::AcqRel, scope)?;
        }
        Ok(value)
    }

    /// Read-modify-write.
    pub(super) fn atomic_rmw(
        &self,
        op: AtomicOp,
        pointer: ir::Value,
        value: ir::Value,
        order: Order,
        scope: Scope,
    ) -> Result<Value<'c, 'a>> {
        let rmw = Rmw {
            op,
            pointer: self.get(pointer)?,
            space: self.space(pointer)?,
            value: self.get(value)?,
            ty: self.kernel.ty(value),
            scope,
        };
        self.rmw_at(&self.emit, rmw, ordering(order))
    }

    /// The same at a place.
    pub(super) fn rmw_at(&self, e: &Emitter<'c, 'a>, mut rmw: Rmw<'c, 'a>, order: Ordering) -> Result<Value<'c, 'a>> {
        let float = rmw.ty.scalar().is_float();
        if float && rmw.op == AtomicOp::Sub {
            // Adding the negated operand is the same, and what the chips have.
            rmw.value = e.same("arith.negf", &[rmw.value])?;
            rmw.op = AtomicOp::Add;
        }
        self.ordered(e, order, rmw.scope, |order| {
            if float && matches!(rmw.op, AtomicOp::Min | AtomicOp::Max) {
                return self.extremum(e, &rmw, order);
            }
            if float && rmw.op == AtomicOp::Add && !self.kernel.fast_math.of(Family::Arith).has(FastFlags::REASSOC) {
                // LLVM would add up the lanes of a wave first where they have one address, which rounds elsewhere.
                rmw.pointer = self.backend.apart(e, rmw.pointer)?;
            }
            if let Some(old) = self.backend.own_atomic(e, &rmw)? {
                return Ok(old);
            }
            let mut attributes: Vec<Named<'c>> = vec![
                ("bin_op", e.int_attribute(64, bin_op(rmw.op, rmw.ty))),
                ("ordering", order.attribute(e)),
                ("syncscope", e.string(self.backend.sync_scope(rmw.scope))),
                ("alignment", e.int_attribute(64, i64::from(rmw.ty.bytes()))),
            ];
            if rmw.space == Space::Global && float {
                attributes.extend(self.backend.float_atomic_attributes(e, rmw.scope));
            }
            e.value("llvm.atomicrmw", &[rmw.pointer, rmw.value], rmw.value.r#type(), &attributes)
        })
    }

    /// Smaller or larger float, by compare-and-swap until it holds: the chips' own instructions only compare, so that a NaN
    /// in memory would stay, and so would a zero of the wrong sign.
    fn extremum(&self, e: &Emitter<'c, 'a>, rmw: &Rmw<'c, 'a>, order: Ordering) -> Result<Value<'c, 'a>> {
        let (bits, ty) = (e.int(rmw.ty.bytes() * 8), e.ty(rmw.ty));
        let scope = ("syncscope", e.string(self.backend.sync_scope(rmw.scope)));
        let align = ("alignment", e.int_attribute(64, i64::from(rmw.ty.bytes())));
        let relaxed = ("ordering", Ordering::Monotonic.attribute(e));
        let seen = match rmw.space {
            // As quick as a load there: the first round fails, or changes nothing.
            Space::Lds => e.bitcast(rmw.value, bits)?,
            Space::Global => e.value("llvm.load", &[rmw.pointer], bits, &[align, relaxed, scope])?,
        };
        let again = e.op_with_regions("scf.while", &[seen], &[bits], &[], 2)?;
        let inside = e.enter(again, 0, &[bits])?;
        let seen = inside.param(0)?;
        let name = if rmw.op == AtomicOp::Max { "llvm.maximumnum" } else { "llvm.minimumnum" };
        let best = inside.float_intrinsic(name, rmw.ty, &[inside.bitcast(seen, ty)?, rmw.value], &[])?;
        let attributes = [
            ("success_ordering", order.attribute(e)),
            ("failure_ordering", order.of_failure().attribute(e)),
            scope,
            align,
        ];
        let both = llvm::r#type::r#struct(e.context, &[bits, e.int(1)], false);
        let operands = [rmw.pointer, seen, inside.bitcast(best, bits)?];
        let both = inside.value("llvm.cmpxchg", &operands, both, &attributes)?;
        let (old, done) = (inside.field(both, 0, bits)?, inside.field(both, 1, e.int(1))?);
        let failed = inside.same("arith.xori", &[done, inside.int_const(1, 1)?])?;
        inside.op("scf.condition", &[failed, old], &[], &[])?;
        let retry = e.enter(again, 1, &[bits])?;
        retry.op("scf.yield", &[retry.param(0)?], &[], &[])?;
        let old: Value<'c, 'a> = again.result(0).map_err(|e| e.to_string())?.into();
        e.bitcast(old, ty)
    }

    /// Compare-and-swap; the value before.
    pub(super) fn atomic_cas(
        &self,
        [pointer, expected, value]: [ir::Value; 3],
        order: Order,
        scope: Scope,
    ) -> Result<Value<'c, 'a>> {
        self.cas_at(&self.emit, self.get(pointer)?, [expected, value], ordering(order), scope)
    }

    /// The same at a place.
    pub(super) fn cas_at(
        &self,
        e: &Emitter<'c, 'a>,
        pointer: Value<'c, 'a>,
        [expected, value]: [ir::Value; 2],
        order: Ordering,
        scope: Scope,
    ) -> Result<Value<'c, 'a>> {
        let ty = self.kernel.ty(value);
        let bits = e.int(ty.bytes() * 8);
        let operands = [pointer, e.bitcast(self.get(expected)?, bits)?, e.bitcast(self.get(value)?, bits)?];
        let old = self.ordered(e, order, scope, |order| {
            let attributes = [
                ("success_ordering", order.attribute(e)),
                ("failure_ordering", order.of_failure().attribute(e)),
                ("syncscope", e.string(self.backend.sync_scope(scope))),
                ("alignment", e.int_attribute(64, i64::from(ty.bytes()))),
            ];
            let both = llvm::r#type::r#struct(e.context, &[bits, e.int(1)], false);
            let both = e.value("llvm.cmpxchg", &operands, both, &attributes)?;
            e.field(both, 0, bits)
        })?;
        e.bitcast(old, e.ty(ty))
    }
}
