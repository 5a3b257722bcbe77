//! NVIDIA: plain global accesses behind explicit range checks, PTX text.

use lathe_dsl::Target;
use lathe_dsl::artifact::Resources;
use lathe_dsl::ir::{Axis, Kernel, UnaryOp};
use lathe_dsl::target::Chip;
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::{Type, Value};

use super::{Backend, Output, range};
use crate::lower::Blame;
use crate::lower::emit::{Emitter, GepIndex, Named, Result};
use crate::lower::memory::{Bounds, BufferAccess, in_range, load_if, store_if};
use crate::resources;

pub struct Nvptx {
    pub chip: &'static Chip,
}

impl Nvptx {
    /// Address of an access, in 64 bits.
    fn address<'c, 'a>(e: &Emitter<'c, 'a>, access: &BufferAccess<'c, 'a>) -> Result<Value<'c, 'a>> {
        let offset = e.value("arith.extui", &[access.offset], e.int(64), &[])?;
        e.gep(access.buffer, GepIndex::Value(offset), e.int(access.scale * 8))
    }
}

impl Backend for Nvptx {
    fn chip(&self) -> &'static Chip {
        self.chip
    }

    fn check(&self, _: &Kernel) -> std::result::Result<(), Blame> {
        Ok(())
    }

    fn kernel_attributes<'c>(&self, e: &Emitter<'c, '_>, kernel: &Kernel) -> Result<Vec<Named<'c>>> {
        let block = kernel.launch.block.map(|n| n as i32);
        let mut attributes = vec![("nvvm.reqntid", DenseI32ArrayAttribute::new(e.context, &block).into())];
        if let Some(registers) = kernel.launch.maxnreg {
            attributes.push(("nvvm.maxnreg", e.int_attribute(32, i64::from(registers))));
        }
        Ok(attributes)
    }

    fn thread_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>> {
        let name = ["nvvm.read.ptx.sreg.tid.x", "nvvm.read.ptx.sreg.tid.y", "nvvm.read.ptx.sreg.tid.z"][axis.index()];
        e.value(name, &[], e.int(32), &range(e, extent)?)
    }

    fn block_id<'c, 'a>(&self, e: &Emitter<'c, 'a>, axis: Axis, extent: u32) -> Result<Value<'c, 'a>> {
        let name =
            ["nvvm.read.ptx.sreg.ctaid.x", "nvvm.read.ptx.sreg.ctaid.y", "nvvm.read.ptx.sreg.ctaid.z"][axis.index()];
        e.value(name, &[], e.int(32), &range(e, extent)?)
    }

    fn open_buffer<'c, 'a>(&self, _: &Emitter<'c, 'a>, pointer: Value<'c, 'a>, _: u64) -> Result<Value<'c, 'a>> {
        Ok(pointer)
    }

    fn buffer_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        carrier: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        let load = |e: &Emitter<'c, 'a>| e.load(Self::address(e, access)?, carrier, access.align);
        match access.bounds() {
            Bounds::UpTo(last) => load_if(e, in_range(e, access, last)?, carrier, load),
            Bounds::Inside | Bounds::Outside => load(e),
        }
    }

    fn buffer_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()> {
        let store = |e: &Emitter<'c, 'a>| e.store(value, Self::address(e, access)?, access.align);
        match access.bounds() {
            Bounds::UpTo(last) => store_if(e, in_range(e, access, last)?, store),
            Bounds::Inside | Bounds::Outside => store(e),
        }
    }

    fn pipeline(&self, _: Target) -> String {
        // `LineTablesOnly` would mark the whole PTX as a debug build, which ptxas does not optimise.
        "builtin.module(gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm{index-bitwidth=32},\
         reconcile-unrealized-casts),ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly})"
            .into()
    }

    fn output(&self) -> Output {
        Output::Assembly
    }

    fn finish(&self, emitted: Vec<u8>) -> std::result::Result<Vec<u8>, String> {
        Ok(emitted)
    }

    fn resources(&self, _: Target, kernel: &Kernel, code: &[u8]) -> std::result::Result<Resources, String> {
        resources::of_ptx(kernel, code)
    }

    // Arithmetic.

    fn hardware<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        op: UnaryOp,
        x: Value<'c, 'a>,
        flush: bool,
        flags: &[Named<'c>],
    ) -> Result<Value<'c, 'a>> {
        let single = Type::float32(e.context);
        let name = match (op, flush) {
            (UnaryOp::HwExp2, false) => "llvm.nvvm.ex2.approx.f32",
            (UnaryOp::HwExp2, true) => "llvm.nvvm.ex2.approx.ftz.f32",
            (UnaryOp::HwLog2, false) => "llvm.nvvm.lg2.approx.f",
            (UnaryOp::HwLog2, true) => "llvm.nvvm.lg2.approx.ftz.f",
            (UnaryOp::HwRsq, false) => "llvm.nvvm.rsqrt.approx.f",
            (UnaryOp::HwRsq, true) => "llvm.nvvm.rsqrt.approx.ftz.f",
            (UnaryOp::HwSqrt, false) => "llvm.nvvm.sqrt.approx.f",
            (UnaryOp::HwSqrt, true) => "llvm.nvvm.sqrt.approx.ftz.f",
            (UnaryOp::HwRcp, true) => "llvm.nvvm.rcp.approx.ftz.f",
            (UnaryOp::HwRcp, false) => {
                // LLVM's intrinsic exists only with flush to zero.
                let attributes =
                    [("asm_string", e.string("rcp.approx.f32 $0, $1;")), ("constraints", e.string("=f,f"))];
                return e.value("llvm.inline_asm", &[x], single, &attributes);
            }
            (op, _) => return Err(format!("`{op}` is no instruction")),
        };
        e.intrinsic(name, &[x], single, flags)
    }
}
