//! Blocks, branches, loops and barriers.

use lathe_dsl::ir::{self, Inst, Op, Unroll};
use melior::ir::operation::OperationRef;
use melior::ir::{Type, Value};

use super::buffer::Place;
use super::emit::{Emitter, Result};
use super::{Blame, Lowering};

type Outcome<T> = std::result::Result<T, Blame>;

/// Most copies of a body that a loop, with those around it, becomes here, before LLVM; longer ones LLVM is asked to unroll.
const MOST_COPIES: u64 = 1024;

/// A loop to be lowered.
struct Loop<'k> {
    lo: ir::Value,
    hi: ir::Value,
    step: u32,
    init: &'k [ir::Value],
    body: &'k ir::Block,
    unroll: Unroll,
}

/// How a loop counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counter {
    /// Its index, in so many bits, from `lo` to `hi`.
    Index(u32),
    /// Its iterations, in 64 bits: the index itself could wrap.
    Iterations,
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// Lowers a block into the current place.
    pub(super) fn block(&mut self, block: &ir::Block) -> Outcome<()> {
        for inst in &block.insts {
            let outer = self.emit.location;
            self.emit.location = self.location_of(inst.number);
            self.whole = self.is_for_whole_waves(inst.number);
            self.inst(inst)?;
            self.emit.location = outer;
        }
        Ok(())
    }

    fn inst(&mut self, inst: &Inst) -> Outcome<()> {
        let blame = |message| Blame { op: Some(inst.number), message };
        match &inst.op {
            Op::If { condition, then, otherwise } => self.if_(inst, *condition, then, otherwise),
            Op::For { lo, hi, step, init, body, unroll } => {
                self.for_(inst, &Loop { lo: *lo, hi: *hi, step: *step, init, body, unroll: *unroll })
            }
            Op::While { init, before, after } => self.while_(inst, init, before, after),
            Op::Native { args, forms, meaning } => self.native(inst, args, forms, meaning),
            Op::MakeBuffer { address, bytes } => {
                let [result] = inst.results[..] else { return Err(blame("has not one result".into())) };
                self.make_buffer(result, *address, *bytes).map_err(blame)
            }
            Op::WaitAsyncMark(n) if self.copies_to_lds => {
                let outstanding = self.marks.outstanding(inst.number);
                self.backend.wait_asyncmark(&self.lanes(), *n, outstanding).map_err(blame)
            }
            op if inst.results.is_empty() => self.effect(op).map_err(blame),
            op => {
                let [result] = inst.results[..] else { return Err(blame("has not one result".into())) };
                let value = match self.access_or_exchange(op, result).map_err(blame)? {
                    Some(value) => value,
                    None => self.simple(op, result).map_err(blame)?,
                };
                self.set(result, value);
                Ok(())
            }
        }
    }

    /// Operations without a result.
    fn effect(&self, op: &Op) -> Result<()> {
        let (e, backend) = (&self.emit, self.backend);
        match op {
            Op::PtrStore { value, pointer, memory } => self.pointer_store(*value, *pointer, *memory),
            Op::BufferStore { value, buffer, offset, unit, scalar, mask, cache } => {
                let place = Place {
                    buffer: *buffer,
                    offset: *offset,
                    unit: *unit,
                    scalar: *scalar,
                    mask: *mask,
                    cache: *cache,
                };
                self.buffer_store(&place, *value)
            }
            Op::CopyToLds { buffer, offset, pointer, unit, scalar, bytes, cache } => {
                let place =
                    Place { buffer: *buffer, offset: *offset, unit: *unit, scalar: *scalar, mask: None, cache: *cache };
                self.copy_to_lds(&place, *pointer, *bytes)
            }
            Op::SurfaceStore { value, surface, x, y } => self.surface_store(*value, *surface, [*x, *y]),
            Op::Barrier => e.op("gpu.barrier", &[], &[], &[]).map(drop),
            Op::Fence { order, scope } => self.fence(*order, *scope),
            Op::Drain { scope } => backend.drain(&self.lanes(), *scope, self.copies_to_lds),
            Op::AsyncMark if self.copies_to_lds => backend.asyncmark(e),
            // Without copies there is nothing to wait for.
            Op::AsyncMark | Op::WaitAsyncMark(_) => Ok(()),
            Op::SWaitcnt { vmcnt, lgkmcnt, expcnt } => self.s_waitcnt(*vmcnt, *lgkmcnt, *expcnt),
            Op::SSleep(amount) => backend.s_sleep(e, *amount),
            Op::SSetprio(level) => backend.s_setprio(e, *level),
            Op::SchedBarrier(mask) => backend.sched_barrier(e, *mask),
            Op::SchedGroupBarrier { mask, size, group } => backend.sched_group_barrier(e, *mask, *size, *group),
            Op::Assume(condition) => self.assume(*condition),
            op => Err(format!("`{}` without a result", op.def().name)),
        }
    }

    /// Operations with one result that touch memory, pointers or other lanes; `None` for all others.
    fn access_or_exchange(&self, op: &Op, result: ir::Value) -> Result<Option<Value<'c, 'a>>> {
        let (e, ty) = (&self.emit, self.kernel.ty(result));
        let value = match op {
            Op::LaneId => self.backend.lane_id(&self.lanes()),
            Op::Clock => self.backend.clock(e),
            Op::LdsBase(array) => self.lds_base(*array),
            Op::PtrAdd(pointer, count) => self.pointer_add(*pointer, *count),
            Op::PtrCast(pointer) => self.get(*pointer),
            Op::BufferPtr(buffer) => self.buffer(*buffer).map(|b| b.pointer),
            Op::IntToPtr(address) => match ty {
                ir::Type::Ptr(ir::Space::Lds, _) => self.lds_pointer(self.get(*address)?),
                _ => e.value("llvm.inttoptr", &[self.get(*address)?], e.ty(ty), &[]),
            },
            Op::PtrToInt(pointer) => match self.space(*pointer)? {
                ir::Space::Lds => self.lds_address(self.get(*pointer)?),
                ir::Space::Global => e.value("llvm.ptrtoint", &[self.get(*pointer)?], e.int(64), &[]),
            },
            Op::PtrLoad { pointer, memory } => self.pointer_load(*pointer, *memory, ty),
            Op::LdsReadTr { pointer, bits } => self.lds_read_tr(*pointer, *bits, ty),
            Op::AtomicRmw { op, pointer, value, order, scope } => {
                self.atomic_rmw(*op, *pointer, *value, *order, *scope)
            }
            Op::AtomicCas { pointer, expected, value, order, scope } => {
                self.atomic_cas([*pointer, *expected, *value], *order, *scope)
            }
            Op::BufferLoad { buffer, offset, unit, scalar, mask, fill, cache } => {
                let place = Place {
                    buffer: *buffer,
                    offset: *offset,
                    unit: *unit,
                    scalar: *scalar,
                    mask: *mask,
                    cache: *cache,
                };
                self.buffer_load(&place, *fill, ty)
            }
            Op::SBufferLoad { buffer, offset, unit } => {
                let cache = ir::Cache::default();
                let (buffer, offset, unit) = (*buffer, *offset, *unit);
                self.s_buffer_load(&Place { buffer, offset, unit, scalar: None, mask: None, cache }, ty)
            }
            Op::TextureFetch { texture, x, y } => self.texture_fetch(*texture, [*x, *y], ty),
            Op::TextureSample { texture, u, v } => self.texture_sample(*texture, [*u, *v], ty),
            Op::BufferAtomic { kind, value, buffer, offset, unit, scalar, mask, nontemporal, scope } => {
                let cache = ir::Cache { nontemporal: *nontemporal, ..ir::Cache::default() };
                let (buffer, offset, unit, scalar, mask) = (*buffer, *offset, *unit, *scalar, *mask);
                let place = Place { buffer, offset, unit, scalar, mask, cache };
                self.buffer_atomic(&place, kind.0, *value, *scope)
            }
            Op::BufferAtomicCas { expected, value, buffer, offset, unit, scalar, mask, nontemporal, scope } => {
                let cache = ir::Cache { nontemporal: *nontemporal, ..ir::Cache::default() };
                let (buffer, offset, unit, scalar, mask) = (*buffer, *offset, *unit, *scalar, *mask);
                let place = Place { buffer, offset, unit, scalar, mask, cache };
                self.buffer_atomic_cas(&place, *expected, *value, *scope)
            }
            Op::LaneShuffle { op, value, amount, width } => self.lane_shuffle(*op, *value, *amount, *width),
            Op::Butterfly { op, value, offset, width } => self.butterfly(*op, *value, *offset, *width, result),
            Op::Ballot(condition) => self.ballot(*condition),
            Op::ReadFirstLane(value) => self.read_first_lane(*value),
            Op::ReadLane(value, lane) => self.read_lane(*value, *lane),
            Op::Transpose8x8(value) => self.backend.transpose8x8(&self.lanes(), self.get(*value)?),
            Op::PermB32(a, b, selector) => {
                let selector = e.same("arith.andi", &[self.get(*selector)?, e.word(0x0707_0707)?])?;
                self.backend.perm_b32(e, [self.get(*a)?, self.get(*b)?, selector])
            }
            op @ (Op::Mma { .. } | Op::MfmaScaled { .. }) => self.matrix_product(op),
            Op::Opaque(a) => self.opaque(*a),
            Op::Expect { condition, likely } => self.expect(*condition, *likely),
            // What is promised of it has no code.
            Op::AssumeUniform { value, .. } => self.get(*value),
            _ => return Ok(None),
        };
        value.map(Some)
    }

    /// Lowers a nested block into `place` and ends it with its yields, in these types.
    fn nested(&mut self, block: &ir::Block, place: Emitter<'c, 'a>, end: &str, types: &[ir::Type]) -> Outcome<()> {
        let outer = std::mem::replace(&mut self.emit, place);
        self.block(block)?;
        let yields = self.gets(&block.yields, types);
        let place = std::mem::replace(&mut self.emit, outer);
        yields.and_then(|y| place.op(end, &y, &[], &[])).map(drop).map_err(|m| Blame { op: None, message: m })
    }

    /// Values in these types.
    fn gets(&self, values: &[ir::Value], types: &[ir::Type]) -> Result<Vec<Value<'c, 'a>>> {
        if values.len() != types.len() {
            return Err(format!("{} values for {}", values.len(), types.len()));
        }
        values.iter().zip(types).map(|(v, t)| self.get_in(*v, *t)).collect()
    }

    /// Types that values of two lists share.
    fn joint(&self, a: &[ir::Value], b: &[ir::Value]) -> Vec<ir::Type> {
        a.iter().zip(b).map(|(a, b)| self.work_type(&[*a, *b])).collect()
    }

    fn mlir(&self, types: &[ir::Type]) -> Vec<Type<'c>> {
        types.iter().map(|t| self.emit.ty(*t)).collect()
    }

    /// Names the parameters of a block, from the one with this index on.
    fn open(&mut self, inside: &Emitter<'c, 'a>, params: &[ir::Value], first: usize, types: &[ir::Type]) -> Result<()> {
        for (i, (p, ty)) in params.iter().zip(types).enumerate() {
            let outer = std::mem::replace(&mut self.emit, *inside);
            let value = inside.param(first + i).and_then(|v| self.fit(v, *ty, *p));
            self.emit = outer;
            self.set(*p, value?);
        }
        Ok(())
    }

    fn if_(&mut self, inst: &Inst, condition: ir::Value, then: &ir::Block, otherwise: &ir::Block) -> Outcome<()> {
        let blame = |message| Blame { op: Some(inst.number), message };
        let e = self.emit;
        let types = self.joint(&inst.results, &inst.results);
        let condition = self.get(condition).map_err(blame)?;
        let branch = e.op_with_regions("scf.if", &[condition], &self.mlir(&types), &[], 2).map_err(blame)?;
        self.nested(then, e.enter(branch, 0, &[]).map_err(blame)?, "scf.yield", &types)?;
        if !(otherwise.insts.is_empty() && types.is_empty()) {
            self.nested(otherwise, e.enter(branch, 1, &[]).map_err(blame)?, "scf.yield", &types)?;
        }
        self.set_results(inst, branch, &types).map_err(blame)
    }

    /// How a loop counts without wrapping, given its index's own bits: the last index plus the step must fit.
    fn counter(&self, l: &Loop<'_>, bits: u32, signed: bool) -> Counter {
        let most = u64::MAX >> (64 - bits + u32::from(signed));
        let end = self.facts.get(l.hi).max.clamp(0, i128::from(most)) as u64;
        // An index below `hi` plus 1 is at most `hi`.
        if l.step == 1 || u128::from(end) + u128::from(l.step) - 1 <= u128::from(most) {
            Counter::Index(bits)
        } else if bits < 64 {
            Counter::Index(64)
        } else {
            Counter::Iterations
        }
    }

    fn for_(&mut self, inst: &Inst, l: &Loop<'_>) -> Outcome<()> {
        let blame = |message| Blame { op: Some(inst.number), message };
        let Some((index, carried)) = l.body.params.split_first() else {
            return Err(blame("a loop without an index".into()));
        };
        if l.unroll == Unroll::Full
            && let Some(indices) = self.known_indices(l)
        {
            return self.unrolled(inst, l, &indices);
        }
        let e = self.emit;
        let own = self.work_type(&[l.lo, l.hi, *index]);
        let (own_bits, signed) = (own.scalar().bits(), own.scalar().is_signed());
        let counter = self.counter(l, own_bits, signed);
        let [lo, hi] = [l.lo, l.hi].map(|v| self.get_in(v, own));
        let (lo, hi) = (lo.map_err(blame)?, hi.map_err(blame)?);
        let (bits, range) = match counter {
            Counter::Index(bits) => {
                let resize = |v| e.resize(v, own_bits, bits, signed);
                (bits, [resize(lo), resize(hi), e.int_const(bits, i64::from(l.step))])
            }
            Counter::Iterations => (64, [e.word64(0), self.iterations([lo, hi], l.step, signed), e.word64(1)]),
        };
        let types = self.joint(&inst.results, carried);
        let mut operands = range.into_iter().collect::<Result<Vec<_>>>().map_err(blame)?;
        operands.extend(self.gets(l.init, &types).map_err(blame)?);
        let mut attributes = vec![];
        if !signed || counter == Counter::Iterations {
            attributes.push(("unsignedCmp", e.unit()));
        }
        if let Some(annotation) = annotation(l.unroll) {
            attributes.push(("llvm.loop_annotation", e.attribute(annotation).map_err(blame)?));
        }
        let results = self.mlir(&types);
        let loop_ = e.op_with_regions("scf.for", &operands, &results, &attributes, 1).map_err(blame)?;
        let params: Vec<_> = std::iter::once(e.int(bits)).chain(results).collect();
        let inside = e.enter(loop_, 0, &params).map_err(blame)?;
        let counted = inside.param(0).and_then(|i| match counter {
            Counter::Index(bits) => inside.resize(i, bits, own_bits, signed),
            Counter::Iterations => Self::index_of(&inside, lo, i, l.step),
        });
        let counted = counted.and_then(|i| {
            let bits = self.work_type(&[*index]).scalar().bits();
            inside.resize(i, own_bits, bits, signed)
        });
        self.set(*index, counted.map_err(blame)?);
        self.open(&inside, carried, 1, &types).map_err(blame)?;
        self.nested(l.body, inside, "scf.yield", &types)?;
        self.set_results(inst, loop_, &types).map_err(blame)
    }

    /// How often a loop over 64-bit indices runs.
    fn iterations(&self, [lo, hi]: [Value<'c, 'a>; 2], step: u32, signed: bool) -> Result<Value<'c, 'a>> {
        use super::emit::IntPredicate::{Slt, Ult};
        let e = &self.emit;
        let some = e.cmpi(if signed { Slt } else { Ult }, lo, hi, e.int(1))?;
        // The distance is right as an unsigned number, even where it is not as a signed one.
        let last = e.same("arith.subi", &[e.same("arith.subi", &[hi, lo])?, e.word64(1)?])?;
        let rounds = e.same("arith.divui", &[last, e.word64(u64::from(step))?])?;
        e.select(some, e.same("arith.addi", &[rounds, e.word64(1)?])?, e.word64(0)?)
    }

    fn index_of(e: &Emitter<'c, 'a>, lo: Value<'c, 'a>, iteration: Value<'c, 'a>, step: u32) -> Result<Value<'c, 'a>> {
        let distance = e.same("arith.muli", &[iteration, e.word64(u64::from(step))?])?;
        e.same("arith.addi", &[lo, distance])
    }

    /// The indices of a loop between constants, if they are not too many.
    fn known_indices(&self, l: &Loop<'_>) -> Option<Vec<u64>> {
        let scalar = self.kernel.ty(l.lo).scalar();
        let read = |v: ir::Value| {
            let bits = self.constant(v)?;
            Some(match scalar.is_signed() {
                true => i128::from(super::emit::sign_extend(bits, scalar.bits())),
                false => i128::from(bits),
            })
        };
        let (lo, hi) = (read(l.lo)?, read(l.hi)?);
        let n = ((hi - lo).max(0) + i128::from(l.step) - 1) / i128::from(l.step);
        let mask = u64::MAX >> (64 - scalar.bits());
        (n * i128::from(self.copies) <= i128::from(MOST_COPIES))
            .then(|| (0..n).map(|i| (lo + i * i128::from(l.step)) as u64 & mask).collect())
    }

    /// A loop as copies of its body.
    fn unrolled(&mut self, inst: &Inst, l: &Loop<'_>, indices: &[u64]) -> Outcome<()> {
        let blame = |message| Blame { op: Some(inst.number), message };
        let copies = self.copies;
        self.copies *= (indices.len() as u64).max(1);
        let mut carried = l.init;
        for index in indices {
            let (param, params) = l.body.params.split_first().ok_or_else(|| blame("a loop without an index".into()))?;
            let ty = self.work_type(&[*param]);
            let index = self.emit.constant(ty, index & u64::MAX >> (64 - ty.scalar().bits())).map_err(blame)?;
            // All of them are read before any is named anew.
            let values = self.gets(carried, &self.joint(params, params)).map_err(blame)?;
            self.set(*param, index);
            for (p, value) in params.iter().zip(values) {
                self.set(*p, value);
            }
            self.block(l.body)?;
            carried = &l.body.yields;
        }
        self.copies = copies;
        let values = self.gets(carried, &self.joint(&inst.results, &inst.results)).map_err(blame)?;
        for (r, value) in inst.results.iter().zip(values) {
            self.set(*r, value);
        }
        Ok(())
    }

    fn while_(&mut self, inst: &Inst, init: &[ir::Value], before: &ir::Block, after: &ir::Block) -> Outcome<()> {
        let blame = |message| Blame { op: Some(inst.number), message };
        let e = self.emit;
        let again = self.joint(&before.params, &before.params);
        let results = self.joint(&inst.results, &after.params);
        let operands = self.gets(init, &again).map_err(blame)?;
        let loop_ = e.op_with_regions("scf.while", &operands, &self.mlir(&results), &[], 2).map_err(blame)?;
        let inside = e.enter(loop_, 0, &self.mlir(&again)).map_err(blame)?;
        self.open(&inside, &before.params, 0, &again).map_err(blame)?;
        let handed: Vec<_> = std::iter::once(ir::Type::BOOL).chain(results.iter().copied()).collect();
        self.nested(before, inside, "scf.condition", &handed)?;
        let inside = e.enter(loop_, 1, &self.mlir(&results)).map_err(blame)?;
        self.open(&inside, &after.params, 0, &results).map_err(blame)?;
        self.nested(after, inside, "scf.yield", &again)?;
        self.set_results(inst, loop_, &results).map_err(blame)
    }

    fn set_results(&mut self, inst: &Inst, operation: OperationRef<'c, 'a>, types: &[ir::Type]) -> Result<()> {
        for (i, (r, ty)) in inst.results.iter().zip(types).enumerate() {
            let value: Value<'c, 'a> = operation.result(i).map_err(|e| e.to_string())?.into();
            let value = self.fit(value, *ty, *r)?;
            self.set(*r, value);
        }
        Ok(())
    }
}

/// Whether any loop says how it is to be unrolled.
pub fn has_loop_hints(kernel: &ir::Kernel) -> bool {
    let mut any = false;
    kernel.walk(&mut |inst| any |= matches!(inst.op, Op::For { unroll, .. } if unroll != Unroll::Auto));
    any
}

/// What LLVM's unroller is told.
fn annotation(unroll: Unroll) -> Option<&'static str> {
    match unroll {
        Unroll::Auto => None,
        Unroll::Full => Some("#llvm.loop_annotation<unroll = <full = true>>"),
        Unroll::Never => Some("#llvm.loop_annotation<unroll = <disable = true>>"),
    }
}
