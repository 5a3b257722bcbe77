//! AMD: raw buffer instructions, a linked code object.

mod buffer;
mod lanes;
mod matrix;
mod matrix_scaled;
mod narrow;
mod wait;

use lathe_dsl::Target;
use lathe_dsl::artifact::Resources;
use lathe_dsl::ir::{self, Axis, FastFlags, Kernel, Scalar, Scope, ShuffleOp, UnaryOp};
use lathe_dsl::target::{Chip, Generation};
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::{Attribute, Type, Value};

use self::lanes::first_lane;
use super::{Backend, Output, range};
use crate::lower::atomic::Rmw;
use crate::lower::buffer::{BufferAccess, Extent, Hinted};
use crate::lower::emit::{Emitter, GepIndex, Named, Result};
use crate::lower::lanes::{Amount, Lanes};
use crate::lower::matrix::{Product, Scaled};
use crate::lower::narrow::{Decoding, Encoded, Encoding};
use crate::{link, resources};

pub struct Amdgpu {
    pub chip: &'static Chip,
}

impl Amdgpu {
    /// The verifier refuses such kernels before.
    fn no_units(&self) -> String {
        format!("Lathe uses no texture units of {}", self.chip.name)
    }
}

impl Backend for Amdgpu {
    fn chip(&self) -> &'static Chip {
        self.chip
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

    // Memory

    fn dynamic_lds(&self, _: &Kernel) -> u32 {
        0
    }

    fn sync_scope(&self, scope: Scope) -> &'static str {
        match scope {
            Scope::System => "",
            Scope::Device => "agent",
            Scope::Workgroup => "workgroup",
            Scope::Wave => "wavefront",
            Scope::Thread => "singlethread",
            Scope::SystemOneAs => "one-as",
            Scope::DeviceOneAs => "agent-one-as",
            Scope::WorkgroupOneAs => "workgroup-one-as",
            Scope::WaveOneAs => "wavefront-one-as",
            Scope::ThreadOneAs => "singlethread-one-as",
        }
    }

    fn is_ordered_within(&self, _: Scope) -> bool {
        false
    }

    fn orders_atomics_by_fences(&self) -> bool {
        false
    }

    fn own_atomic<'c, 'a>(&self, _: &Emitter<'c, 'a>, _: &Rmw<'c, 'a>) -> Result<Option<Value<'c, 'a>>> {
        Ok(None)
    }

    fn float_atomic_attributes<'c>(&self, e: &Emitter<'c, '_>, scope: Scope) -> Vec<Named<'c>> {
        // What several devices or the host share may lie where the instructions do not work.
        match scope.wide() {
            Scope::System => vec![],
            _ => vec![("rocdl.no_fine_grained_memory", e.unit()), ("rocdl.no_remote_memory", e.unit())],
        }
    }

    fn apart<'c, 'a>(&self, e: &Emitter<'c, 'a>, pointer: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        // A zero out of a vector register counts as one that differs between lanes.
        let zero = e.asm("", "=v,0", &[e.word(0)?], &[e.int(32)], false)?[0];
        e.gep(pointer, GepIndex::Value(e.resize(zero, 32, 64, false)?), e.int(8))
    }

    fn open_buffer<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        pointer: Value<'c, 'a>,
        extent: &Extent<'c, 'a>,
    ) -> Result<Value<'c, 'a>> {
        self.descriptor(e, pointer, extent)
    }

    fn buffer_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        carrier: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        self.load(e, access, carrier)
    }

    fn buffer_store<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Result<()> {
        self.store(e, access, value)
    }

    fn scalar_words<'c, 'a>(&self, e: &Emitter<'c, 'a>, words: Vec<Value<'c, 'a>>) -> Result<Vec<Value<'c, 'a>>> {
        words.into_iter().map(|w| first_lane(e, w)).collect()
    }

    fn scalar_load<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        words: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        self.load_scalar(e, access, words)
    }

    fn hinted_atomic<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        atomic: Hinted<'_, 'c, 'a>,
    ) -> Result<Option<Value<'c, 'a>>> {
        self.atomic(e, access, &atomic)
    }

    fn copy_to_lds<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        access: &BufferAccess<'c, 'a>,
        pointer: Value<'c, 'a>,
        scope: Option<Attribute<'c>>,
    ) -> Result<bool> {
        self.load_lds(at.e, access, pointer, scope)
    }

    // Images

    fn texture_fetch<'c, 'a>(
        &self,
        _: &Emitter<'c, 'a>,
        _: Value<'c, 'a>,
        _: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>> {
        Err(self.no_units())
    }

    fn texture_sample<'c, 'a>(
        &self,
        _: &Emitter<'c, 'a>,
        _: Value<'c, 'a>,
        _: [Value<'c, 'a>; 2],
    ) -> Result<Vec<Value<'c, 'a>>> {
        Err(self.no_units())
    }

    fn surface_store<'c, 'a>(
        &self,
        _: &Emitter<'c, 'a>,
        _: Value<'c, 'a>,
        _: [Value<'c, 'a>; 2],
        _: &[Value<'c, 'a>],
    ) -> Result<()> {
        Err(self.no_units())
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
        _: u32,
    ) -> Result<(Vec<Value<'c, 'a>>, Vec<Value<'c, 'a>>)> {
        self.exchange_words(at, words, offset)
    }

    fn ballot<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, condition: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.ballot_of(at.e, condition)
    }

    fn read_first_lane<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, words: &[Value<'c, 'a>]) -> Result<Vec<Value<'c, 'a>>> {
        words.iter().map(|w| first_lane(at.e, *w)).collect()
    }

    fn read_lane<'c, 'a>(
        &self,
        at: &Lanes<'_, 'c, 'a>,
        words: &[Value<'c, 'a>],
        lane: Value<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let e = at.e;
        words.iter().map(|w| e.call("llvm.amdgcn.readlane.i32", &[*w, lane], e.int(32))).collect()
    }

    fn transpose8x8<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, word: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.transpose(at, word)
    }

    fn perm_b32<'c, 'a>(&self, e: &Emitter<'c, 'a>, operands: [Value<'c, 'a>; 3]) -> Result<Value<'c, 'a>> {
        e.call("llvm.amdgcn.perm", &operands, e.int(32))
    }

    fn transposing_read<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        pointer: Value<'c, 'a>,
        bits: u32,
    ) -> Result<Option<Value<'c, 'a>>> {
        if self.chip.generation != Generation::Cdna4 {
            return Ok(None);
        }
        let (name, n, element) = match bits {
            16 => ("llvm.amdgcn.ds.read.tr16.b64.v4i16", 4, 16),
            8 => ("llvm.amdgcn.ds.read.tr8.b64.v2i32", 2, 32),
            4 => ("llvm.amdgcn.ds.read.tr4.b64.v2i32", 2, 32),
            _ => ("llvm.amdgcn.ds.read.tr6.b96.v3i32", 3, 32),
        };
        e.call(name, &[pointer], Type::vector(&[n], e.int(element))).map(Some)
    }

    fn mma<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, product: &Product<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.product(at, product)
    }

    fn mfma_scaled<'c, 'a>(&self, at: &Lanes<'_, 'c, 'a>, product: &Scaled<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.scaled_product(at, product)
    }

    // Waiting

    fn drain(&self, at: &Lanes<'_, '_, '_>, _: Scope, _: bool) -> Result<()> {
        self.wait_for_stores(at.e)
    }

    fn counts_copies(&self, bytes: u32) -> bool {
        self.copies_natively(bytes)
    }

    fn asyncmark(&self, e: &Emitter<'_, '_>) -> Result<()> {
        if self.chip.generation.is_gfx9() { e.compiler_barrier() } else { Ok(()) }
    }

    fn wait_asyncmark(&self, at: &Lanes<'_, '_, '_>, _: u32, outstanding: Option<u32>) -> Result<()> {
        outstanding.map_or(Ok(()), |n| Self::wait_for_loads(at.e, n))
    }

    fn clock<'c, 'a>(&self, e: &Emitter<'c, 'a>) -> Result<Value<'c, 'a>> {
        // 100 MHz on every chip.
        let ticks = e.call("llvm.readsteadycounter", &[], e.int(64))?;
        e.same("arith.muli", &[ticks, e.word64(10)?])
    }

    fn s_sleep(&self, e: &Emitter<'_, '_>, amount: u32) -> Result<()> {
        e.call_void("llvm.amdgcn.s.sleep", &[e.word(amount)?])
    }

    fn s_setprio(&self, e: &Emitter<'_, '_>, level: u32) -> Result<()> {
        e.call_void("llvm.amdgcn.s.setprio", &[e.int_const(16, i64::from(level))?])
    }

    fn sched_barrier(&self, e: &Emitter<'_, '_>, mask: u32) -> Result<()> {
        e.call_void("llvm.amdgcn.sched.barrier", &[e.word(mask)?])
    }

    fn sched_group_barrier(&self, e: &Emitter<'_, '_>, mask: u32, size: u32, group: u32) -> Result<()> {
        e.call_void("llvm.amdgcn.sched.group.barrier", &[e.word(mask)?, e.word(size)?, e.word(group)?])
    }

    fn register_constraint(&self) -> &'static str {
        "v"
    }

    // Stages

    fn features(&self, _: &Kernel) -> &'static str {
        self.chip.features
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
        licence: FastFlags,
    ) -> Result<Value<'c, 'a>> {
        let (single, flags) = (Type::float32(e.context), &e.llvm_flags(licence)?);
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

    fn has_tanh(&self) -> bool {
        false
    }

    fn saturating_int<'c, 'a>(
        &self,
        e: &Emitter<'c, 'a>,
        x: Value<'c, 'a>,
        from: Scalar,
        signed: bool,
    ) -> Result<Option<Value<'c, 'a>>> {
        // LLVM's saturating conversion spends comparisons on what the instruction does by itself.
        let template = match (from, signed) {
            (Scalar::F32, true) => "v_cvt_i32_f32 $0, $1",
            (Scalar::F32, false) => "v_cvt_u32_f32 $0, $1",
            (_, true) => "v_cvt_i32_f64 $0, $1",
            (_, false) => "v_cvt_u32_f64 $0, $1",
        };
        Ok(Some(e.asm(template, "=v,v", &[x], &[e.int(32)], false)?[0]))
    }

    fn reversed<'c, 'a>(&self, _: &Emitter<'c, 'a>, _: Value<'c, 'a>, _: u32) -> Result<Option<Value<'c, 'a>>> {
        Ok(None)
    }

    fn short_copysign_keeps_nan(&self) -> bool {
        true
    }

    fn encode<'c, 'a>(&self, e: &Emitter<'c, 'a>, encoding: &Encoding<'c, 'a>) -> Result<Option<Encoded<'c, 'a>>> {
        self.encode_natively(e, encoding)
    }

    fn decode<'c, 'a>(&self, e: &Emitter<'c, 'a>, decoding: &Decoding<'c, 'a>) -> Result<Option<Vec<Value<'c, 'a>>>> {
        self.decode_natively(e, decoding)
    }

    fn bf16_is_dear(&self) -> bool {
        self.chip.generation != Generation::Cdna4
    }
}
