//! Raw buffer instructions.

use lathe_dsl::ir::{AtomicOp, Cache, Coherence, MAX_BUFFER_BYTES, Scalar, Scope};
use lathe_dsl::target::Generation;
use melior::dialect::llvm;
use melior::ir::{Attribute, Type, Value};

use super::Amdgpu;
use super::lanes::first_lane;
use crate::lower::buffer::{Bounds, BufferAccess, Extent, Hinted, scale};
use crate::lower::emit::{Emitter, LDS, Result};

/// LLVM address space of buffer descriptors.
const BUFFER: u32 = 8;

/// Word 3 of a raw buffer descriptor: 32-bit data format, no swizzle, no typed conversion.
///
/// RDNA also wants bit 24, and its out-of-bounds select (bits 28, 29) set to 3: an access is outside if its offset and
/// size pass `num_records`. 2, as some descriptors have it, turns the check off. Source: RDNA 4 ISA, buffer resource;
/// MLIR's `convert-amdgpu-to-rocdl` writes the same with and without `boundsCheck`.
const fn descriptor_word3(generation: Generation) -> u32 {
    if generation.is_gfx9() { 0x27000 } else { 0x27000 | 1 << 24 | 3 << 28 }
}

/// A byte offset outside every buffer.
const OUT_OF_RANGE: u32 = MAX_BUFFER_BYTES as u32;

/// Where an instruction's operands place an access.
struct Operands<'c, 'a> {
    /// A lane's byte offset.
    lane: Value<'c, 'a>,
    /// The wave's.
    wave: Value<'c, 'a>,
    /// Cache behaviour.
    aux: Value<'c, 'a>,
}

impl Amdgpu {
    /// Operands of an access, such that the hardware's check gives the access its exact meaning.
    ///
    /// The hardware checks dword by dword, so it splits an access that straddles the end. And it adds an instruction's
    /// constant offset without wrapping, while LLVM moves there what was added with wrapping. So wherever an access is
    /// not provably inside, the offset is made plain first: as it is, or outside.
    fn operands<'c, 'a>(&self, e: &Emitter<'c, 'a>, access: &BufferAccess<'c, 'a>) -> Result<Operands<'c, 'a>> {
        let aux = e.word(self.aux(access.cache))?;
        let zero = e.word(0)?;
        if let (Bounds::UpTo(_), false, None) = (access.bounds(), access.straddles(), access.mask) {
            // Past the end is past the end: the first unit outside stands for all of them.
            let end = access.buffer.extent.max.div_ceil(u64::from(access.scale));
            let end = e.int_const(access.offset_bits, i64::from(end as u32 as i32) & i64::MAX >> (63 - 31))?;
            let offset = e.same("arith.minui", &[access.offset, end])?;
            let lane = scale(e, e.resize(offset, access.offset_bits, 32, false)?, access.scale)?;
            return Ok(Operands { lane, wave: zero, aux });
        }
        let permitted = access.permitted(e)?;
        let mut lane = access.bytes32(e)?;
        let wave = match access.scalar {
            None => zero,
            // Whether the check counts it, and wraps, differs between chips and their descriptions: it stands alone only
            // where nothing is left to check.
            Some((scalar, _)) if permitted.is_none() => first_lane(e, scalar)?,
            Some((scalar, _)) => {
                lane = e.same("arith.addi", &[lane, scalar])?;
                zero
            }
        };
        if let Some(permitted) = permitted {
            lane = e.select(permitted, lane, e.word(OUT_OF_RANGE)?)?;
        }
        Ok(Operands { lane, wave, aux })
    }

    /// The instruction's cache bits.
    fn aux(&self, cache: Cache) -> u32 {
        // gfx9: 1 SC0, 2 NT, 16 SC1. gfx12: temporal hint in bits 0 to 2, scope in bits 3 and 4.
        let gfx9 = self.chip.generation.is_gfx9();
        let scope = match cache.coherence {
            Coherence::Own => 0,
            Coherence::Device => 16,
            Coherence::System if gfx9 => 17,
            Coherence::System => 24,
        };
        let hint = match cache.nontemporal {
            false => 0,
            true if gfx9 => 2,
            true => 1,
        };
        scope | hint
    }

    /// Stops the compiler from serving an access that others are to see, or to be seen through, out of an earlier one.
    fn separate(e: &Emitter<'_, '_>, cache: Cache) -> Result<()> {
        if cache.coherence == Coherence::Own { Ok(()) } else { e.compiler_barrier() }
    }

    /// The buffer's descriptor.
    pub(super) fn descriptor<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        pointer: Value<'c, 'a>,
        extent: &Extent<'c, 'a>,
    ) -> Result<Value<'c, 'a>> {
        let word3 = descriptor_word3(self.chip.generation);
        let operands = [pointer, e.int_const(16, 0)?, extent.get(e)?, e.word(word3)?];
        e.value("rocdl.make.buffer.rsrc", &operands, llvm::r#type::pointer(e.context, BUFFER), &[])
    }

    pub(super) fn load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        carrier: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        let mut at = self.operands(e, access)?;
        Self::separate(e, access.cache)?;
        if access.cache.coherence != Coherence::Own {
            // Memory may change while the lanes of a wave are served: one place is then not one value, as LLVM takes it to be,
            // and a branch that it makes for the whole wave would be wrong for some lanes.
            at.lane = e.asm("", "=v,0", &[at.lane], &[e.int(32)], false)?[0];
        }
        let operands = [access.buffer.handle, at.lane, at.wave, at.aux];
        e.value("rocdl.raw.ptr.buffer.load", &operands, carrier, &[])
    }

    pub(super) fn store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()> {
        let at = self.operands(e, access)?;
        Self::separate(e, access.cache)?;
        let operands = [value, access.buffer.handle, at.lane, at.wave, at.aux];
        e.op("rocdl.raw.ptr.buffer.store", &operands, &[], &[]).map(drop)
    }

    /// Lanes out of range write zeros to LDS, as any other buffer load does to its register.
    pub(super) fn load_lds<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        pointer: Value<'c, 'a>,
        scope: Option<Attribute<'c>>,
    ) -> Result<bool> {
        if !self.copies_natively(access.bytes) {
            return Ok(false);
        }
        let at = self.operands(e, access)?;
        match scope {
            Some(_) => e.compiler_barrier()?,
            None => Self::separate(e, access.cache)?,
        }
        let address = e.value("llvm.ptrtoint", &[pointer], e.int(32), &[])?;
        let address = first_lane(e, address)?;
        let pointer = e.value("llvm.inttoptr", &[address], llvm::r#type::pointer(e.context, LDS), &[])?;
        let (bytes, zero) = (e.word(access.bytes)?, e.word(0)?);
        let operands = [access.buffer.handle, pointer, bytes, at.lane, at.wave, zero, at.aux];
        match scope {
            Some(scope) => {
                e.op("rocdl.raw.ptr.buffer.load.lds", &operands, &[], &[("alias_scopes", scope)])?;
            }
            None => e.call_void("llvm.amdgcn.raw.ptr.buffer.load.lds", &operands)?,
        }
        Ok(true)
    }

    /// Whether a copy to LDS of so many bytes a lane is one instruction.
    pub(super) fn copies_natively(&self, bytes: u32) -> bool {
        match self.chip.generation {
            Generation::Cdna4 => matches!(bytes, 4 | 16),
            Generation::Cdna3 => bytes == 4,
            _ => false,
        }
    }

    /// By the scalar unit: every operand out of scalar registers, so that LLVM does not take a vector load for it.
    pub(super) fn load_scalar<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        words: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        let four = Type::vector(&[4], e.int(32));
        let bits = e.value("llvm.ptrtoint", &[access.buffer.handle], e.int(128), &[])?;
        let descriptor = e.bitcast(bits, four)?;
        let words_of = (0..4).map(|i| first_lane(e, e.part(descriptor, i, e.int(32))?)).collect::<Result<Vec<_>>>()?;
        let descriptor = e.value("vector.from_elements", &words_of, four, &[])?;
        let offset = first_lane(e, access.bytes32(e)?)?;
        let name = match access.bytes / 4 {
            1 => "llvm.amdgcn.s.buffer.load.i32".to_owned(),
            n => format!("llvm.amdgcn.s.buffer.load.v{n}i32"),
        };
        e.call(&name, &[descriptor, offset, e.word(0)?], words)
    }

    /// As a buffer instruction, which has bits for the hint; those that LLVM makes of its own atomics have none.
    pub(super) fn atomic<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        atomic: &Hinted<'_, 'c, 'a>,
    ) -> Result<Option<Value<'c, 'a>>> {
        let gfx9 = self.chip.generation.is_gfx9();
        let (name, mut operands, ty, scope) = match atomic {
            Hinted::Cas { expected, value, ty, scope } => ("cmpswap", vec![*value, *expected], *ty, *scope),
            Hinted::Rmw(rmw) => {
                let s = rmw.ty.scalar();
                let name = match (rmw.op, s) {
                    (AtomicOp::Add, Scalar::F32) if rmw.scope.wide() != Scope::System => "fadd",
                    (AtomicOp::Xchg, _) if !s.is_float() => "swap",
                    (_, s) if s.is_float() => return Ok(None),
                    (AtomicOp::Add, _) => "add",
                    (AtomicOp::Sub, _) => "sub",
                    (AtomicOp::Min, _) if s.is_signed() => "smin",
                    (AtomicOp::Min, _) => "umin",
                    (AtomicOp::Max, _) if s.is_signed() => "smax",
                    (AtomicOp::Max, _) => "umax",
                    (AtomicOp::And, _) => "and",
                    (AtomicOp::Or, _) => "or",
                    (AtomicOp::Xor, _) => "xor",
                    (AtomicOp::Xchg, _) => return Ok(None),
                };
                (name, vec![rmw.value], rmw.ty, rmw.scope)
            }
        };
        let mut lane = access.bytes32(e)?;
        if let Some((scalar, _)) = access.scalar {
            lane = e.same("arith.addi", &[lane, scalar])?;
        }
        // Not to be kept: 2 on all chips. Scope: gfx9 SC1 for the system, gfx12 bits 3 and 4.
        let scope = match (scope.wide(), gfx9) {
            (Scope::System, true) => 16,
            (_, true) => 0,
            (Scope::System, false) => 24,
            (Scope::Device | Scope::Workgroup, false) => 16,
            (_, false) => 0,
        };
        operands.extend([access.buffer.handle, lane, e.word(0)?, e.word(2 | scope)?]);
        let (suffix, result) = match (atomic, ty.scalar()) {
            (Hinted::Rmw(_), Scalar::F32) => ("f32".to_owned(), e.ty(ty)),
            _ => (format!("i{}", ty.scalar().bits()), e.int(ty.scalar().bits())),
        };
        e.call(&format!("llvm.amdgcn.raw.ptr.buffer.atomic.{name}.{suffix}"), &operands, result).map(Some)
    }
}
