//! Buffer accesses, and the guards that their exact meaning needs.

use lathe_dsl::facts::Fact;
use lathe_dsl::ir::{self, AtomicOp, Cache, OffsetUnit, Scope, Type as IrType};
use melior::dialect::llvm;
use melior::ir::{Type, Value, ValueLike};

use super::Lowering;
use super::atomic::{Ordering, Rmw};
use super::emit::{Emitter, GLOBAL, GepIndex, IntPredicate, Result};
use super::memory::carrier;
use crate::target::Backend;

/// How many bytes a buffer has.
#[derive(Clone, Copy)]
pub struct Extent<'c, 'a> {
    /// 64 bits, if it is known only at run time.
    pub value: Option<Value<'c, 'a>>,
    /// At least so many.
    pub min: u64,
    /// At most so many.
    pub max: u64,
}

impl<'c, 'a> Extent<'c, 'a> {
    /// An extent that is known when the kernel is compiled.
    pub fn known(bytes: u64) -> Self {
        Self { value: None, min: bytes, max: bytes }
    }

    /// As a value of 64 bits.
    pub fn get(&self, e: &Emitter<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.value.map_or_else(|| e.word64(self.max), Ok)
    }
}

/// A buffer that accesses take.
#[derive(Clone, Copy)]
pub struct Buffer<'c, 'a> {
    /// What [`Backend::open_buffer`] made of it.
    pub handle: Value<'c, 'a>,
    /// Its first byte, in global memory.
    pub pointer: Value<'c, 'a>,
    /// Its size.
    pub extent: Extent<'c, 'a>,
    /// Known alignment of the first byte.
    pub align: u64,
}

impl<'c, 'a> Buffer<'c, 'a> {
    /// A buffer at an address.
    pub fn open(
        e: &Emitter<'c, 'a>,
        backend: &dyn Backend,
        pointer: Value<'c, 'a>,
        extent: Extent<'c, 'a>,
        align: u64,
    ) -> Result<Self> {
        Ok(Self { handle: backend.open_buffer(e, pointer, &extent)?, pointer, extent, align })
    }
}

/// A buffer access, with what is known about it.
pub struct BufferAccess<'c, 'a> {
    /// Where.
    pub buffer: Buffer<'c, 'a>,
    /// Offset in units: `offset_bits` wide, unsigned.
    pub offset: Value<'c, 'a>,
    /// 32, or 64 of an `idx` that may need them.
    pub offset_bits: u32,
    /// Largest offset there can be, in units.
    pub max_offset: u64,
    /// Bytes a unit: 1, 2, 4 or 8.
    pub scale: u32,
    /// Bytes to be added, 32 bits, the same in all lanes; and the most there can be.
    pub scalar: Option<(Value<'c, 'a>, u64)>,
    /// Where false, there is no access.
    pub mask: Option<Value<'c, 'a>>,
    /// Bytes accessed: 1, 2, 4, 8, 12 or 16; of a scalar load up to 64.
    pub bytes: u32,
    /// A power of two that divides every byte offset there can be.
    pub divisor: u64,
    /// Known alignment of the accessed address, in bytes.
    pub align: u64,
    /// Cache behaviour.
    pub cache: Cache,
}

/// Where a buffer access may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounds {
    /// Always within the buffer.
    Inside,
    /// Never within it.
    Outside,
    /// Within it if the offset, in units, is at most this.
    UpTo(u32),
    /// Within it if the sum of everything is.
    Sum,
}

impl<'c, 'a> BufferAccess<'c, 'a> {
    /// Where the last byte lies at most, plus one.
    fn end(&self) -> u128 {
        let scalar = self.scalar.map_or(0, |(_, max)| u128::from(max));
        u128::from(self.max_offset) * u128::from(self.scale) + scalar + u128::from(self.bytes)
    }

    /// Whether the access ends within the buffer.
    pub fn bounds(&self) -> Bounds {
        let extent = &self.buffer.extent;
        if extent.max < u64::from(self.bytes) {
            Bounds::Outside
        } else if self.end() <= u128::from(extent.min) {
            Bounds::Inside
        } else if extent.min == extent.max && self.scalar.is_none() {
            Bounds::UpTo(((extent.max - u64::from(self.bytes)) / u64::from(self.scale)) as u32)
        } else {
            Bounds::Sum
        }
    }

    /// Whether an access may begin inside the buffer and end outside it.
    pub fn straddles(&self) -> bool {
        let (bytes, extent) = (u64::from(self.bytes), &self.buffer.extent);
        let rest = extent.max % self.divisor;
        self.divisor < bytes || extent.min != extent.max || (rest != 0 && rest < bytes)
    }

    /// The condition under which the access ends within its buffer; `None` if it always does.
    pub fn in_range(&self, e: &Emitter<'c, 'a>) -> Result<Option<Value<'c, 'a>>> {
        let bool_ = e.int(1);
        match self.bounds() {
            Bounds::Inside => return Ok(None),
            Bounds::Outside => return e.bit(false).map(Some),
            Bounds::UpTo(last) => {
                let last = e.int_const(self.offset_bits, sized(u64::from(last), self.offset_bits))?;
                return e.cmpi(IntPredicate::Ule, self.offset, last, bool_).map(Some);
            }
            Bounds::Sum => {}
        }
        // In 32 bits if nothing can wrap there (no extent is beyond them), else in 64.
        let bits = if self.end() <= u128::from(u32::MAX) { 32 } else { 64 };
        let limit = e.resize(self.buffer.extent.get(e)?, 64, bits, false)?;
        let mut end = e.resize(self.offset, self.offset_bits, bits, false)?;
        if self.scale > 1 {
            end = e.same("arith.muli", &[end, e.int_const(bits, i64::from(self.scale))?])?;
        }
        if let Some((scalar, _)) = self.scalar {
            end = e.same("arith.addi", &[end, e.resize(scalar, 32, bits, false)?])?;
        }
        end = e.same("arith.addi", &[end, e.int_const(bits, i64::from(self.bytes))?])?;
        let fits = e.cmpi(IntPredicate::Ule, end, limit, bool_)?;
        if self.max_offset <= u64::from(u32::MAX) {
            return Ok(Some(fits));
        }
        // Beyond that the sum could wrap even here; every extent ends before.
        let near = e.cmpi(IntPredicate::Ule, self.offset, e.int_const(64, i64::from(u32::MAX))?, bool_)?;
        e.both(Some(near), Some(fits))
    }

    /// The condition under which there is an access at all; `None` if there always is.
    pub fn permitted(&self, e: &Emitter<'c, 'a>) -> Result<Option<Value<'c, 'a>>> {
        let range = self.in_range(e)?;
        e.both(self.mask, range)
    }

    /// The offset in bytes, without the scalar one, in 32 bits: right wherever the access is within the buffer.
    pub fn bytes32(&self, e: &Emitter<'c, 'a>) -> Result<Value<'c, 'a>> {
        scale(e, e.resize(self.offset, self.offset_bits, 32, false)?, self.scale)
    }

    /// The accessed address in global memory: right wherever the access is within the buffer.
    pub fn address(&self, e: &Emitter<'c, 'a>) -> Result<Value<'c, 'a>> {
        let offset = e.resize(self.offset, self.offset_bits, 64, false)?;
        let at = e.gep(self.buffer.pointer, GepIndex::Value(offset), e.int(self.scale * 8))?;
        match self.scalar {
            Some((scalar, _)) => e.gep(at, GepIndex::Value(e.resize(scalar, 32, 64, false)?), e.int(8)),
            None => Ok(at),
        }
    }
}

/// An offset in units of so many bytes, in bytes.
pub fn scale<'c, 'a>(e: &Emitter<'c, 'a>, offset: Value<'c, 'a>, bytes: u32) -> Result<Value<'c, 'a>> {
    match bytes {
        1 => Ok(offset),
        bytes => e.same("arith.muli", &[offset, e.word(bytes)?]),
    }
}

/// These bits as MLIR reads a constant of a width.
fn sized(value: u64, bits: u32) -> i64 {
    if bits == 32 { i64::from(value as u32 as i32) } else { value as i64 }
}

/// `load` where `condition` holds, else zeros.
pub fn load_if<'c, 'a>(
    e: &Emitter<'c, 'a>,
    condition: Option<Value<'c, 'a>>,
    ty: Type<'c>,
    load: impl FnOnce(&Emitter<'c, 'a>) -> Result<Value<'c, 'a>>,
) -> Result<Value<'c, 'a>> {
    match condition {
        Some(condition) => e.branch(condition, ty, load, |e| e.zeros(ty)),
        None => load(e),
    }
}

/// `store` where `condition` holds.
pub fn store_if<'c, 'a>(
    e: &Emitter<'c, 'a>,
    condition: Option<Value<'c, 'a>>,
    store: impl FnOnce(&Emitter<'c, 'a>) -> Result<()>,
) -> Result<()> {
    match condition {
        Some(condition) => e.when(condition, store),
        None => store(e),
    }
}

/// An atomic operation that carries a hint.
pub enum Hinted<'r, 'c, 'a> {
    /// A read-modify-write.
    Rmw(&'r Rmw<'c, 'a>),
    /// A compare-and-swap of bits.
    Cas {
        /// What must be there.
        expected: Value<'c, 'a>,
        /// What is stored then.
        value: Value<'c, 'a>,
        /// Type of the element.
        ty: IrType,
        /// Among whom.
        scope: Scope,
    },
}

/// The operands that place a buffer access.
pub(super) struct Place {
    pub buffer: ir::Value,
    pub offset: ir::Value,
    pub unit: OffsetUnit,
    pub scalar: Option<ir::Value>,
    pub mask: Option<ir::Value>,
    pub cache: Cache,
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    pub(super) fn buffer(&self, v: ir::Value) -> Result<Buffer<'c, 'a>> {
        self.buffers.get(&v).copied().ok_or_else(|| format!("{v:?} is not a buffer"))
    }

    /// `make_buffer`.
    pub(super) fn make_buffer(&mut self, result: ir::Value, address: ir::Value, bytes: ir::Value) -> Result<()> {
        let e = self.emit;
        let pointer = e.value("llvm.inttoptr", &[self.get(address)?], llvm::r#type::pointer(e.context, GLOBAL), &[])?;
        let fact = self.facts.get(bytes);
        // More than the most that is allowed is a broken promise.
        let known = |n: i128| n.clamp(0, i128::from(ir::MAX_BUFFER_BYTES)) as u64;
        let (min, max) = (known(fact.min), known(fact.max));
        let value = match min == max {
            true => None,
            false => Some(e.resize(self.get(bytes)?, self.work_type(&[bytes]).scalar().bits(), 64, false)?),
        };
        // What the element promises, or what is known of the address.
        let align = 1 << self.facts.get(result).zeros.min(12);
        let extent = Extent { value, min, max };
        let buffer = Buffer::open(&e, self.backend, pointer, extent, align)?;
        self.buffers.insert(result, buffer);
        self.set(result, buffer.handle);
        Ok(())
    }

    /// `data` is what is accessed; a copy accesses `bytes` of it.
    fn access(&self, place: &Place, data: IrType, bytes: u32) -> Result<BufferAccess<'c, 'a>> {
        let unit = match place.unit {
            OffsetUnit::Bytes => 1,
            OffsetUnit::Elements => data.scalar().bytes(),
        };
        let buffer = self.buffer(place.buffer)?;
        let offset = self.facts.get(place.offset);
        let scalar = place.scalar.map(|v| self.facts.get(v));
        let zeros = |f: Fact| if f.single() == Some(0) { 32 } else { f.zeros.min(32) };
        let divisor_log = (zeros(offset) + unit.trailing_zeros()).min(scalar.map_or(32, zeros)).min(32);
        let divisor = 1u64 << divisor_log;
        let mut work = self.work_type(&[place.offset]);
        if offset.min < 0 {
            // Read as unsigned, a negative index lies past every end only if it has 64 bits.
            work = work.with_scalar(ir::Scalar::I64);
        }
        Ok(BufferAccess {
            buffer,
            offset: self.get_in(place.offset, work)?,
            offset_bits: work.scalar().bits(),
            max_offset: if offset.min < 0 { u64::MAX } else { offset.max as u64 },
            scale: unit,
            scalar: match (place.scalar, scalar) {
                (Some(v), Some(f)) if f.max > 0 => Some((self.get(v)?, f.max as u64)),
                _ => None,
            },
            mask: place.mask.map(|m| self.get(m)).transpose()?,
            bytes,
            divisor,
            align: divisor.min(buffer.align).min(u64::from(bytes.next_power_of_two())),
            cache: place.cache,
        })
    }

    /// Load from a buffer; zeros outside it, `fill` where it is masked.
    pub(super) fn buffer_load(&self, place: &Place, fill: Option<ir::Value>, ty: IrType) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let access = self.access(place, ty, ty.bytes())?;
        let loaded = match access.bounds() {
            Bounds::Outside => e.constant(ty, 0)?,
            _ => e.bitcast(self.backend.buffer_load(e, &access, carrier(e, access.bytes))?, e.ty(ty))?,
        };
        match (access.mask, fill) {
            (Some(mask), Some(fill)) if self.constant(fill) != Some(0) => e.select(mask, loaded, self.get(fill)?),
            _ => Ok(loaded),
        }
    }

    /// Store to a buffer; nothing outside it or where it is masked.
    pub(super) fn buffer_store(&self, place: &Place, value: ir::Value) -> Result<()> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let access = self.access(place, ty, ty.bytes())?;
        if access.bounds() == Bounds::Outside {
            return Ok(());
        }
        let bits = e.bitcast(self.get(value)?, carrier(e, access.bytes))?;
        self.backend.buffer_store(e, &access, bits)
    }

    /// Atomic on a buffer's element; zero where there is no access.
    pub(super) fn buffer_atomic(
        &self,
        place: &Place,
        op: AtomicOp,
        value: ir::Value,
        scope: Scope,
    ) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let access = self.access(place, ty, ty.bytes())?;
        let operand = self.get(value)?;
        let atomic = |e: &Emitter<'c, 'a>| {
            let pointer = access.address(e)?;
            let rmw = Rmw { op, pointer, space: ir::Space::Global, value: operand, ty, scope };
            match access.cache.nontemporal {
                true => match self.backend.hinted_atomic(e, &access, Hinted::Rmw(&rmw))? {
                    Some(old) => Ok(old),
                    None => self.rmw_at(e, rmw, Ordering::Monotonic),
                },
                false => self.rmw_at(e, rmw, Ordering::Monotonic),
            }
        };
        match access.permitted(e)? {
            None => atomic(e),
            Some(condition) => e.branch(condition, operand.r#type(), atomic, |e| e.constant(ty, 0)),
        }
    }

    /// Compare-and-swap of a buffer's element; zero where there is no access.
    pub(super) fn buffer_atomic_cas(
        &self,
        place: &Place,
        expected: ir::Value,
        value: ir::Value,
        scope: Scope,
    ) -> Result<Value<'c, 'a>> {
        let (e, ty) = (&self.emit, self.kernel.ty(value));
        let access = self.access(place, ty, ty.bytes())?;
        let swap = |e: &Emitter<'c, 'a>| {
            if access.cache.nontemporal {
                let bits = e.int(ty.bytes() * 8);
                let [expected, value] = [self.get(expected)?, self.get(value)?];
                let words =
                    Hinted::Cas { expected: e.bitcast(expected, bits)?, value: e.bitcast(value, bits)?, ty, scope };
                if let Some(old) = self.backend.hinted_atomic(e, &access, words)? {
                    return e.bitcast(old, e.ty(ty));
                }
            }
            self.cas_at(e, access.address(e)?, [expected, value], Ordering::Monotonic, scope)
        };
        match access.permitted(e)? {
            None => swap(e),
            Some(condition) => e.branch(condition, e.ty(ty), swap, |e| e.constant(ty, 0)),
        }
    }

    /// Load that is the same in all lanes, from memory that nobody writes; zeros outside the buffer.
    pub(super) fn s_buffer_load(&self, place: &Place, ty: IrType) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let mut access = self.access(place, ty, ty.bytes())?;
        if access.bounds() == Bounds::Outside {
            return e.constant(ty, 0);
        }
        // Anything else is reported on `cpu`.
        access.align = access.align.max(4);
        let bits = access.offset_bits;
        let words = self.backend.scalar_words(e, pieces(e, access.offset, bits / 8, 4)?)?;
        access.offset = e.bitcast(joined(e, &words, bits / 8)?, e.int(bits))?;
        let words = match ty.lanes() {
            1 => e.int(32),
            n => Type::vector(&[u64::from(n)], e.int(32)),
        };
        let permitted = access.permitted(e)?;
        let loaded = load_if(e, permitted, words, |e| self.backend.scalar_load(e, &access, words))?;
        e.bitcast(loaded, e.ty(ty))
    }

    /// Copy from a buffer to LDS, every lane to its own place behind the pointer.
    pub(super) fn copy_to_lds(&self, place: &Place, pointer: ir::Value, bytes: u32) -> Result<()> {
        let e = &self.emit;
        let elem = IrType::Scalar(self.kernel.ty(pointer).scalar());
        let access = self.access(place, elem, bytes)?;
        let pointer = self.get(pointer)?;
        let at = self.lanes();
        if access.bounds() != Bounds::Outside && self.backend.copy_to_lds(&at, &access, pointer, self.copies_apart)? {
            return Ok(());
        }
        let ty = carrier(e, bytes);
        let loaded = match access.bounds() {
            Bounds::Outside => e.zeros(ty)?,
            _ => self.backend.buffer_load(e, &access, ty)?,
        };
        let lane = self.backend.lane_id(&at)?;
        let at = e.gep(pointer, GepIndex::Value(scale(e, lane, bytes)?), e.int(8))?;
        e.store(loaded, at, u64::from(bytes))
    }
}

/// A value of `words` words taken apart or put together in pieces of `piece` bytes; used where one access is made of
/// several.
pub fn pieces<'c, 'a>(e: &Emitter<'c, 'a>, v: Value<'c, 'a>, bytes: u32, piece: u32) -> Result<Vec<Value<'c, 'a>>> {
    if bytes == piece {
        return Ok(vec![e.bitcast(v, e.int(bytes * 8))?]);
    }
    let n = bytes / piece;
    let vector = e.bitcast(v, Type::vector(&[u64::from(n)], e.int(piece * 8)))?;
    (0..n).map(|i| e.part(vector, i, e.int(piece * 8))).collect()
}

/// The reverse of [`pieces`], as the carrier of so many bytes.
pub fn joined<'c, 'a>(e: &Emitter<'c, 'a>, parts: &[Value<'c, 'a>], bytes: u32) -> Result<Value<'c, 'a>> {
    let piece = bytes / parts.len() as u32;
    let whole = match parts {
        [one] => *one,
        parts => {
            let ty = Type::vector(&[parts.len() as u64], e.int(piece * 8));
            e.value("vector.from_elements", parts, ty, &[])?
        }
    };
    e.bitcast(whole, carrier(e, bytes))
}
