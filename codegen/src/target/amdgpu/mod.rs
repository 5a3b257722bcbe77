//! AMD: raw buffer instructions, a linked code object.

use lathe_dsl::Target;
use lathe_dsl::artifact::Resources;
use lathe_dsl::ir::{self, Axis, Kernel, MAX_BUFFER_BYTES, Scalar, UnaryOp};
use lathe_dsl::target::{Chip, Generation};
use melior::dialect::llvm;
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::{Type, Value};

use super::{Backend, Output, range};
use crate::lower::Blame;
use crate::lower::emit::{Emitter, Named, Result};
use crate::lower::memory::{Bounds, BufferAccess, in_range};
use crate::{link, resources};

/// LLVM address space of buffer descriptors.
const BUFFER: u32 = 8;

/// Word 3 of a raw buffer descriptor: 32-bit data format, no swizzle, no typed conversion.
///
/// RDNA also wants bit 24, and its out-of-bounds select (bits 28, 29) set to 3: an access is outside if its offset and
/// size pass `num_records`. 2, as some descriptors have it, turns the check off. Source: RDNA 4 ISA, buffer resource;
/// MLIR's `convert-amdgpu-to-rocdl` writes the same with and without `boundsCheck`.
const fn descriptor_word3(generation: Generation) -> i64 {
    if generation.is_gfx9() { 0x27000 } else { 0x27000 | 1 << 24 | 3 << 28 }
}

/// A byte offset outside every buffer.
const OUT_OF_RANGE: u32 = MAX_BUFFER_BYTES as u32;

pub struct Amdgpu {
    pub chip: &'static Chip,
}

impl Amdgpu {
    /// Byte offset of an access, such that the hardware's check gives the access its exact meaning.
    ///
    /// The hardware checks dword by dword, so it splits an access that straddles the end. And it adds an instruction's
    /// constant offset without wrapping, while LLVM moves there what was added with wrapping. So wherever an access is
    /// not provably inside, the offset is made plain first: as it is, or outside.
    fn guard<'c, 'a>(e: &Emitter<'c, 'a>, access: &BufferAccess<'c, 'a>) -> Result<Value<'c, 'a>> {
        let scaled = |offset| match access.scale {
            1 => Ok(offset),
            scale => e.same("arith.muli", &[offset, e.int_const(32, i64::from(scale))?]),
        };
        let Bounds::UpTo(last) = access.bounds() else { return scaled(access.offset) };
        if !access.straddles() {
            // Past the end is past the end: the first unit outside stands for all of them.
            let end = access.extent.div_ceil(u64::from(access.scale));
            return scaled(e.same("arith.minui", &[access.offset, e.int_const(32, end as i64)?])?);
        }
        let outside = e.int_const(32, i64::from(OUT_OF_RANGE as i32))?;
        e.same_as_second("arith.select", &[in_range(e, access, last)?, scaled(access.offset)?, outside])
    }
}

impl Backend for Amdgpu {
    fn chip(&self) -> &'static Chip {
        self.chip
    }

    fn check(&self, _: &Kernel) -> std::result::Result<(), Blame> {
        Ok(())
    }

    fn kernel_attributes<'c>(&self, e: &Emitter<'c, '_>, kernel: &Kernel) -> Result<Vec<Named<'c>>> {
        let block = kernel.launch.block.map(|n| n as i32);
        let mut attributes = vec![("known_block_size", DenseI32ArrayAttribute::new(e.context, &block).into())];
        if let Some(waves) = kernel.launch.waves_per_eu {
            attributes.push(("rocdl.waves_per_eu", e.int_attribute(32, i64::from(waves))));
        }
        Ok(attributes)
    }

    fn thread_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>> {
        let name = ["rocdl.workitem.id.x", "rocdl.workitem.id.y", "rocdl.workitem.id.z"][axis.index()];
        e.value(name, &[], e.int(32), &range(e, extent)?)
    }

    fn block_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>> {
        let name = ["rocdl.workgroup.id.x", "rocdl.workgroup.id.y", "rocdl.workgroup.id.z"][axis.index()];
        e.value(name, &[], e.int(32), &range(e, extent)?)
    }

    fn open_buffer<'c, 'a>(&self, e: &Emitter<'c, 'a>, pointer: Value<'c, 'a>, bytes: u64) -> Result<Value<'c, 'a>> {
        let operands = [
            pointer,
            e.int_const(16, 0)?,
            e.int_const(64, bytes as i64)?,
            e.int_const(32, descriptor_word3(self.chip.generation))?,
        ];
        e.value("rocdl.make.buffer.rsrc", &operands, llvm::r#type::pointer(e.context, BUFFER), &[])
    }

    fn buffer_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        carrier: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        let (at, zero) = (Self::guard(e, access)?, e.int_const(32, 0)?);
        e.value("rocdl.raw.ptr.buffer.load", &[access.buffer, at, zero, zero], carrier, &[])
    }

    fn buffer_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()> {
        let (at, zero) = (Self::guard(e, access)?, e.int_const(32, 0)?);
        e.op("rocdl.raw.ptr.buffer.store", &[value, access.buffer, at, zero, zero], &[], &[])?;
        Ok(())
    }

    fn pipeline(&self, target: Target) -> String {
        format!(
            "builtin.module(gpu.module(convert-scf-to-cf,convert-gpu-to-rocdl{{chipset={} index-bitwidth=32}},\
             reconcile-unrealized-casts),ensure-debug-info-scope-on-llvm-func{{emission-kind=LineTablesOnly}})",
            target.chip().name
        )
    }

    fn output(&self) -> Output {
        Output::Object
    }

    fn finish(&self, emitted: Vec<u8>) -> std::result::Result<Vec<u8>, String> {
        link::shared(&emitted)
    }

    fn resources(&self, target: Target, kernel: &Kernel, code: &[u8]) -> std::result::Result<Resources, String> {
        resources::of_code_object(target, &kernel.name, code)
    }

    // Arithmetic.

    fn hardware<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        op: UnaryOp,
        x: Value<'c, 'a>,
        _: bool,
        flags: &[Named<'c>],
    ) -> Result<Value<'c, 'a>> {
        let single = Type::float32(e.context);
        if let UnaryOp::Sin | UnaryOp::Cos = op {
            // The instructions take turns instead of radians, of one turn.
            let turn = e.float_constant(ir::Type::Scalar(Scalar::F32), std::f32::consts::FRAC_1_PI / 2.0)?;
            let turns = e.same("arith.mulf", &[x, turn])?;
            let part = e.intrinsic("llvm.amdgcn.fract.f32", &[turns], single, flags)?;
            let name = if op == UnaryOp::Sin { "llvm.amdgcn.sin.f32" } else { "llvm.amdgcn.cos.f32" };
            return e.intrinsic(name, &[part], single, flags);
        }
        let name = match op {
            UnaryOp::HwExp2 => "llvm.amdgcn.exp2.f32",
            UnaryOp::HwLog2 => "llvm.amdgcn.log.f32",
            UnaryOp::HwRcp => "llvm.amdgcn.rcp.f32",
            UnaryOp::HwRsq => "llvm.amdgcn.rsq.f32",
            UnaryOp::HwSqrt => "llvm.amdgcn.sqrt.f32",
            op => return Err(format!("`{op}` is no instruction")),
        };
        e.intrinsic(name, &[x], single, flags)
    }
}
