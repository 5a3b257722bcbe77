//! NVIDIA: plain global accesses behind explicit range checks, PTX text.

mod copy;
mod image;
mod lanes;
mod matrix;
mod matrix_scaled;
mod memory;
mod narrow;

use lathe_dsl::Target;
use lathe_dsl::artifact::Resources;
use lathe_dsl::ir::{self, Axis, FastFlags, Kernel, Scalar, Scope, ShuffleOp, UnaryOp};
use lathe_dsl::target::Chip;
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::{Attribute, Type, Value};

use super::{Backend, Output, range};
use crate::lower::atomic::{Ordering, Rmw};
use crate::lower::buffer::{BufferAccess, Extent, Hinted, load_if, store_if};
use crate::lower::emit::{Emitter, Named, Result};
use crate::lower::lanes::{Amount, Lanes};
use crate::lower::matrix::{Product, Scaled};
use crate::lower::narrow::{Decoding, Encoded, Encoding};
use crate::resources;

/// Most statically allocated shared memory of a workgroup that `ptxas` takes, in bytes.
const STATIC_SHARED: u32 = 48 * 1024;

pub struct Nvptx {
    pub chip: &'static Chip,
}

impl Backend for Nvptx {
    fn chip(&self) -> &'static Chip {
        self.chip
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

    // Memory

    fn dynamic_lds(&self, kernel: &Kernel) -> u32 {
        match kernel.lds_layout().1 {
            bytes if bytes > STATIC_SHARED => bytes,
            _ => 0,
        }
    }

    fn sync_scope(&self, scope: Scope) -> &'static str {
        match scope.wide() {
            Scope::System => "",
            Scope::Device => "device",
            // PTX has no scope that is smaller.
            _ => "block",
        }
    }

    fn is_ordered_within(&self, scope: Scope) -> bool {
        scope.wide() == Scope::Thread
    }

    fn orders_atomics_by_fences(&self) -> bool {
        true
    }

    fn own_atomic<'c, 'a>(&self, e: &Emitter<'c, 'a>, atomic: &Rmw<'c, 'a>) -> Result<Option<Value<'c, 'a>>> {
        Self::system_atomic(e, atomic)
    }

    fn float_atomic_attributes<'c>(&self, _: &Emitter<'c, '_>, _: Scope) -> Vec<Named<'c>> {
        vec![]
    }

    fn apart<'c, 'a>(&self, _: &Emitter<'c, 'a>, pointer: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        Ok(pointer)
    }

    fn open_buffer<'c, 'a>(
        &self,
        _: &Emitter<'c, 'a>,
        pointer: Value<'c, 'a>,
        _: &Extent<'c, 'a>,
    ) -> Result<Value<'c, 'a>> {
        Ok(pointer)
    }

    fn buffer_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        carrier: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        load_if(e, access.permitted(e)?, carrier, |e| self.load(e, access, carrier))
    }

    fn buffer_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()> {
        store_if(e, access.permitted(e)?, |e| self.store(e, access, value))
    }

    fn scalar_words<'c, 'a>(&self, _: &Emitter<'c, 'a>, words: Vec<Value<'c, 'a>>) -> Result<Vec<Value<'c, 'a>>> {
        Ok(words)
    }

    fn scalar_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        words: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        Self::load_unwritten(e, access, words)
    }

    fn hinted_atomic<'c, 'a>(
        &self,
        _: &Emitter<'c, 'a>,
        _: &BufferAccess<'c, 'a>,
        _: Hinted<'_, 'c, 'a>,
    ) -> Result<Option<Value<'c, 'a>>> {
        Ok(None)
    }

    fn copy_to_lds<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        pointer: Value<'c, 'a>,
        _: Option<Attribute<'c>>,
    ) -> Result<bool> {
        self.copy_async(at, access, pointer)
    }

    // Images

    fn texture_fetch<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        texture: Value<'c, 'a>,
        at: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>> {
        Self::tex(e, "s32", texture, at)
    }

    fn texture_sample<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        texture: Value<'c, 'a>,
        at: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>> {
        Self::tex(e, "f32", texture, at)
    }

    fn surface_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        surface: Value<'c, 'a>,
        at: [Value<'c, 'a>; 2],
        elements: &[Value<'c, 'a>],
    ) -> Result<()> {
        Self::sust(e, surface, at, elements)
    }

    // Lanes

    fn lane_id<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>) -> Result<Value<'c, 'a>> {
        self.lane(at)
    }

    fn shuffle<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        op: ShuffleOp,
        words: &[Value<'c, 'a>],
        amount: Amount<'c, 'a>,
        width: u32,
    ) -> Result<Vec<Value<'c, 'a>>> {
        self.shuffle_words(at, op, words, amount, width)
    }

    fn exchange<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        words: &[Value<'c, 'a>],
        offset: u32,
        width: u32,
    ) -> Result<(Vec<Value<'c, 'a>>, Vec<Value<'c, 'a>>)> {
        let amount = Amount { value: at.e.word(offset)?, constant: Some(offset), max: u64::from(offset) };
        Ok((words.to_vec(), self.shuffle_words(at, ShuffleOp::Xor, words, amount, width)?))
    }

    fn ballot<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, condition: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        let mask = e.call("llvm.nvvm.vote.ballot.sync", &[e.word(u32::MAX)?, condition], e.int(32))?;
        e.resize(mask, 32, 64, false)
    }

    fn read_first_lane<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, words: &[Value<'c, 'a>]) -> Result<Vec<Value<'c, 'a>>> {
        // All lanes of the warp are there: the verifier sees to it.
        self.read_lane(at, words, at.e.word(0)?)
    }

    fn read_lane<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        words: &[Value<'c, 'a>],
        lane: Value<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        self.shfl(at, self.chip.wave, "idx", words, lane, at.e.word(31)?)
    }

    fn transpose8x8<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, word: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        let e = at.e;
        let asm = "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;";
        e.asm(asm, "=r,r", &[word], &[e.int(32)], true).map(|r| r[0])
    }

    fn perm_b32<'c, 'a>(&self, e: &Emitter<'c, 'a>, [a, b, selector]: [Value<'c, 'a>; 3]) -> Result<Value<'c, 'a>> {
        // PTX's selector has a nibble where this one has a byte.
        let pairs = e.same("arith.ori", &[selector, e.same("arith.shrui", &[selector, e.word(4)?])?])?;
        let low = e.same("arith.andi", &[pairs, e.word(0xFF)?])?;
        let high = e.same("arith.andi", &[e.same("arith.shrui", &[pairs, e.word(8)?])?, e.word(0xFF00)?])?;
        let nibbles = e.same("arith.ori", &[low, high])?;
        e.call("llvm.nvvm.prmt", &[b, a, nibbles], e.int(32))
    }

    fn transposing_read<'c, 'a>(&self, _: &Emitter<'c, 'a>, _: Value<'c, 'a>, _: u32) -> Result<Option<Value<'c, 'a>>> {
        Ok(None)
    }

    fn mma<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, product: &Product<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.product(at.e, product)
    }

    fn mfma_scaled<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, product: &Scaled<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.scaled_product(at, product)
    }

    // Waiting

    fn drain(&self, at: &Lanes<'_, '_, '_>, scope: Scope, copies: bool) -> Result<()> {
        let e = at.e;
        if copies {
            e.call_void("llvm.nvvm.cp.async.wait.all", &[])?;
            Self::meet(at)?;
        }
        if self.is_ordered_within(scope) {
            return e.compiler_barrier();
        }
        // The lanes meet before the fence, not behind it: the fence of the one that raises the flag is then about the stores of all.
        if !copies {
            Self::meet(at)?;
        }
        let order = Ordering::AcqRel.attribute(e);
        let attributes = [("ordering", order), ("syncscope", e.string(self.sync_scope(scope)))];
        e.op("llvm.fence", &[], &[], &attributes).map(drop)
    }

    fn counts_copies(&self, _: u32) -> bool {
        false
    }

    fn asyncmark(&self, e: &Emitter<'_, '_>) -> Result<()> {
        e.call_void("llvm.nvvm.cp.async.commit.group", &[])
    }

    fn wait_asyncmark(&self, at: &Lanes<'_, '_, '_>, n: u32, _: Option<u32>) -> Result<()> {
        at.e.call_void("llvm.nvvm.cp.async.wait.group", &[at.e.word(n)?])?;
        Self::meet(at)
    }

    fn clock<'c, 'a>(&self, e: &Emitter<'c, 'a>) -> Result<Value<'c, 'a>> {
        e.call("llvm.readsteadycounter", &[], e.int(64))
    }

    fn s_sleep(&self, e: &Emitter<'_, '_>, amount: u32) -> Result<()> {
        e.call_void("llvm.nvvm.nanosleep", &[e.word(64 * amount)?])
    }

    fn s_setprio(&self, _: &Emitter<'_, '_>, _: u32) -> Result<()> {
        Ok(())
    }

    fn sched_barrier(&self, _: &Emitter<'_, '_>, _: u32) -> Result<()> {
        Ok(())
    }

    fn sched_group_barrier(&self, _: &Emitter<'_, '_>, _: u32, _: u32, _: u32) -> Result<()> {
        Ok(())
    }

    fn register_constraint(&self) -> &'static str {
        "r"
    }

    // Stages

    fn features(&self, kernel: &Kernel) -> &'static str {
        self.features_for_products(kernel)
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
        resources::of_ptx(kernel, self.dynamic_lds(kernel), code)
    }

    // Arithmetic.

    fn hardware<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        op: UnaryOp,
        x: Value<'c, 'a>,
        flush: bool,
        licence: FastFlags,
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
            (UnaryOp::HwRcp, _) => {
                // LLVM's intrinsic exists only with flush to zero; this becomes `rcp.approx`, with it where it is allowed.
                let one = e.float_constant(ir::Type::Scalar(Scalar::F32), 1.0)?;
                return e.value("llvm.fdiv", &[one, x], single, &e.llvm_flags(licence | FastFlags::AFN)?);
            }
            (UnaryOp::Sin, false) => "llvm.nvvm.sin.approx.f",
            (UnaryOp::Sin, true) => "llvm.nvvm.sin.approx.ftz.f",
            (UnaryOp::Cos, false) => "llvm.nvvm.cos.approx.f",
            (UnaryOp::Cos, true) => "llvm.nvvm.cos.approx.ftz.f",
            (op, _) => return Err(format!("`{op}` is no instruction")),
        };
        e.intrinsic(name, &[x], single, &e.llvm_flags(licence)?)
    }

    fn has_tanh(&self) -> bool {
        true
    }

    fn saturating_int<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        x: Value<'c, 'a>,
        from: Scalar,
        signed: bool,
    ) -> Result<Option<Value<'c, 'a>>> {
        // Of `f64` a NaN becomes the smallest number.
        match (from, signed) {
            (Scalar::F32, true) => e.intrinsic("llvm.nvvm.f2i.rz", &[x], e.int(32), &[]).map(Some),
            (Scalar::F32, false) => e.intrinsic("llvm.nvvm.f2ui.rz", &[x], e.int(32), &[]).map(Some),
            _ => Ok(None),
        }
    }

    fn reversed<'c, 'a>(&self, e: &Emitter<'c, 'a>, x: Value<'c, 'a>, bits: u32) -> Result<Option<Value<'c, 'a>>> {
        // Not by LLVM's intrinsic, which it would take for a count from below, and that for a branch.
        let (template, constraints) =
            if bits == 64 { ("brev.b64 $0, $1;", "=l,l") } else { ("brev.b32 $0, $1;", "=r,r") };
        Ok(Some(e.asm(template, constraints, &[x], &[e.int(bits)], false)?[0]))
    }

    fn short_copysign_keeps_nan(&self) -> bool {
        false // It goes through `f32`.
    }

    fn encode<'c, 'a>(&self, e: &Emitter<'c, 'a>, encoding: &Encoding<'c, 'a>) -> Result<Option<Encoded<'c, 'a>>> {
        self.encode_natively(e, encoding)
    }

    fn decode<'c, 'a>(&self, e: &Emitter<'c, 'a>, decoding: &Decoding<'c, 'a>) -> Result<Option<Vec<Value<'c, 'a>>>> {
        self.decode_natively(e, decoding)
    }

    fn bf16_is_dear(&self) -> bool {
        false
    }
}
