//! Every operation has a method of the builder, and each method records the operation that its documentation names.

mod memory;

use std::collections::BTreeSet;

use lathe_dsl::builder::{build, sched};
use lathe_dsl::ir::{Access, Kernel, Op, Param, ParamKind, Predicate, Scalar};
use lathe_dsl::kernel::{In, InOut};
use lathe_dsl::prelude::*;
use lathe_dsl::verify::verify;

const LAUNCH: Launch = Launch::linear(2, 64);

fn params() -> Vec<Param> {
    let buffer = |name, elem, access| Param { name, kind: ParamKind::Buffer { elem, len: 1024, access, align: 16 } };
    vec![buffer("x", Scalar::F32, Access::ReadWrite), buffer("table", Scalar::U64, Access::Read)]
}

fn kernel_for(target: Target, f: impl for<'k> FnOnce(&'k Builder<'k>)) -> Kernel {
    let kernel = build("k", target, LAUNCH, params(), f).unwrap();
    verify(&kernel, target).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    kernel
}

fn kernel(f: impl for<'k> FnOnce(&'k Builder<'k>)) -> Kernel {
    kernel_for(Target::GFX950, f)
}

/// Names of the operations, constants aside, in order.
fn names(kernel: &Kernel) -> Vec<&'static str> {
    let mut names = vec![];
    kernel.walk(&mut |inst| {
        if !matches!(inst.op, Op::Const(_)) {
            names.push(inst.op.def().name);
        }
    });
    names
}

#[track_caller]
fn records(f: impl for<'k> FnOnce(&'k Builder<'k>), expected: &[&str]) {
    assert_eq!(names(&kernel(f)), expected);
}

/// The printed body without its first two lines (version, head), the parameters and the closing brace.
fn body(k: &Kernel) -> String {
    let text = k.to_string();
    let lines: Vec<&str> =
        text.lines().skip(2).filter(|l| !l.starts_with("  param") && !l.starts_with("  lds #")).collect();
    lines[..lines.len() - 1].join("\n")
}

fn drop_value<T>(_: T) {}

fn arithmetic<'k>(k: &'k Builder<'k>) {
    let (x, y) = (k.constant(1.5f32), k.constant(2.5f32));
    drop_value([x + y, x - y, x * y, x / y, -x, x.abs(), x.maximum(y), x.minimum(y), x.maxnum(y), x.minnum(y)]);
    drop_value([x.floor(), x.ceil(), x.trunc(), x.round(), x.roundeven(), x.sqrt(), x.rsqrt(), x.copysign(y)]);
    drop_value([x.exp(), x.exp2(), x.log(), x.log2(), x.sin(), x.cos(), x.tanh(), x.erf(), x.pow(y), x.fma(y, 1.0)]);
    drop_value([x.hw_exp2(), x.hw_log2(), x.hw_rcp(), x.hw_rsq(), x.hw_sqrt()]);
    drop_value([x.eq(y), x.ne(y), x.lt(y), x.le(y), x.gt(y), x.ge(y)]);
}

fn integers<'k>(k: &'k Builder<'k>) {
    let (a, b) = (k.constant(-7i32), k.constant(2i32));
    drop_value([a.div_floor(b), a.rem_floor(b), a.div_trunc(b), a.rem_trunc(b), a.ceildiv(b)]);
    drop_value([a & b, a | b, a ^ b, !a, a << b, a >> b, a.shrui(b), a.ctpop(), a.ctlz(), a.cttz()]);
}

fn data<'k>(k: &'k Builder<'k>) {
    let lane = k.lane_id();
    let v = k.vector([lane, lane + 1, lane, lane]);
    drop_value((lane.lt(3).select(lane, 0), lane.to::<f16>(), lane.bitcast::<i32>(), lane.opaque()));
    drop_value((v.element(1), v.at(lane.rem_floor(4)), v.shuffle(v, [7, 0]), v.slice::<2>(1), v.concat::<8>(v)));
    drop_value([v.reduce_add(), v.reduce_mul(), v.reduce_max(), v.reduce_min()]);
    drop_value([v.reduce_and(), v.reduce_or(), v.reduce_xor()]);
}

fn pointers<'k>(k: &'k Builder<'k>) {
    let lds = k.lds::<u32>("words", 64);
    let p = k.buffer::<f32, InOut>(0).ptr() + k.thread_id(Axis::X);
    let q = (p.to_int() + 16).to_ptr::<u32>();
    k.ptr_store(k.ptr_load::<u32>(q), lds.cast::<u32>() + 1);
    drop_value(lds.cast::<f32>());
    let (order, scope) = (Order::Relaxed, Scope::Device);
    drop_value([k.atomic_add(q, 1, order, scope), k.atomic_sub(lds, 1, order, scope)]);
    drop_value([k.atomic_min(q, 1, order, scope), k.atomic_max(q, 1, order, scope), k.atomic_xchg(q, 1, order, scope)]);
    drop_value([k.atomic_and(q, 1, order, scope), k.atomic_or(q, 1, order, scope), k.atomic_xor(q, 1, order, scope)]);
    drop_value(k.atomic_cas(q, 1, 2, Order::AcqRel, scope));
    k.fence(Order::SeqCst, Scope::System);
    k.drain(Scope::System);
    k.barrier();
}

fn buffers<'k>(k: &'k Builder<'k>) {
    let x = k.buffer::<f32, InOut>(0);
    let i = k.thread_id(Axis::X);
    k.buffer_store(k.buffer_load::<f32>(x, i), x, Bytes(i));
    drop_value(k.buffer_atomic(AtomicOp::Add, k.constant(1.0f32), x, i, Scope::Device));
    drop_value(k.buffer_atomic_cas(0.0, k.constant(1.0f32), x, i, Scope::Thread));
    let made = k.make_buffer::<u32>(k.constant(4096u64), 64);
    drop_value(k.s_buffer_load::<Vector<f32, 16>>(made.cast(), 0));
    k.copy_to_lds(x, i, k.lds::<f32>("landing", 256), 16);
}

fn lanes<'k>(k: &'k Builder<'k>) {
    let lane = k.lane_id();
    drop_value([lane.shuffle_xor(1, 32), lane.shuffle_up(1, 32), lane.shuffle_down(1, 32), lane.shuffle_idx(1, 32)]);
    for op in ButterflyOp::ALL {
        drop_value(lane.butterfly([1], *op));
    }
    drop_value((lane.lt(3).ballot(), lane.uniform(), lane.readlane(5), lane.transpose8x8()));
    drop_value(lane.uniform().assume_uniform(Scope::Wave));
    drop_value(k.perm_b32(lane, lane, 0x0706_0504));
}

fn vectors_across_lanes<'k>(k: &'k Builder<'k>) {
    let lane = k.lane_id();
    let row = k.vector([lane, lane + 1]);
    drop_value((row.shuffle_xor(1, 32), row.butterfly([1], ButterflyOp::Add), row.uniform(), row.readlane(5)));
    let (halves, bytes) = (k.lds::<bf16>("halves", 256), k.lds::<i8>("bytes", 512));
    let (fours, sixes) = (k.lds::<u32>("fours", 128), k.lds::<u32>("sixes", 256));
    k.ptr_store(k.constant(bf16::ONE), halves);
    k.ptr_store(k.constant(1i8), bytes);
    k.ptr_store(lane, fours);
    k.ptr_store(lane, sixes);
    drop_value((k.lds_read_tr(halves), k.lds_read_tr(bytes), k.lds_read_tr4(fours), k.lds_read_tr6(sixes)));
}

fn stochastic_rounding<'k>(k: &'k Builder<'k>) {
    let (lane, x) = (k.lane_id(), k.constant(1.5f32));
    drop_value((x.cvt_sr_bf16(lane), x.cvt_sr_f16(lane), x.div_floor(3.0)));
    let (lanes, xs) = (k.vector([lane, lane]), k.vector([x, x]));
    drop_value((xs.cvt_sr_bf16(lanes), xs.cvt_sr_f16(lanes)));
}

fn narrow_floats<'k>(k: &'k Builder<'k>) {
    let (word, x) = (k.constant(0x3838_3838u32), k.filled::<f32, 4>(k.constant(1.5f32)));
    let codes: V<'_, u32> = x.encode(Narrow::E4m3, Overflow::Saturate);
    let scaled: V<'_, u32> = x.encode_scaled(Narrow::E5m2, Overflow::Ieee, k.pow2(word & 0xFF));
    let into = x.slice::<2>(0).encode_into(word, 2, Narrow::E4m3, Overflow::Saturate, None);
    let one: V<'_, u8> = x.element(0).encode(Narrow::E8m0, Overflow::Saturate);
    let (back, half): (V<'_, Vector<f32, 4>>, V<'_, Vector<f16, 8>>) =
        (codes.decode(Narrow::E4m3), scaled.decode_scaled(Narrow::E2m1, 2.0));
    let packed = k.pk_fp4_f32(k.pk_fp4_bf16(word, into, 2.0, 1), x.element(1), 0.5, 4.0, 3);
    let fp8 = k.cvt_pk_f32_fp8(k.cvt_pk_fp8_f32(1.0, -0.5, packed, true), true);
    let (even, up) = (k.even_code(word & 0x7FFF).maximum(1), k.e8m0_roundup(x.element(2)));
    drop_value((one, back, half, fp8, even, up, k.rcp_pow2(word & 0x7F)));
}

fn matrix_products<'k>(k: &'k Builder<'k>) {
    let sum: FragmentC<'_, MmaE4m3> = k.mma(k.zero_fragment(), k.zero_fragment(), k.zero_fragment());
    let unit = k.lanes(64).filled(k.constant(127u32));
    let (a, b) = (k.zero_fragment(), k.zero_fragment());
    let scaled: FragmentC<'_, MfmaScaled<E4m3, E2m1>> =
        k.mfma_scaled_bytes(a, b, k.zero_fragment(), (unit, 1), (unit, 3));
    drop_value((sum, scaled));
}

fn scheduling<'k>(k: &'k Builder<'k>) {
    if k.chip().generation.is_gfx9() {
        k.s_waitcnt(Waitcnt::new().vmcnt(0).lgkmcnt(15).expcnt(7));
    }
    k.asyncmark();
    k.wait_asyncmark(31);
    k.s_sleep(127);
    drop_value(k.clock());
    k.s_setprio(3);
    k.sched_barrier(0);
    k.sched_group_barrier(sched::VALU | sched::DS, 4, 1);
}

fn control<'k>(k: &'k Builder<'k>) {
    let (t, block) = (k.thread_id(Axis::Y), k.block_id(Axis::Z));
    k.assume(t.lt(64));
    k.if_(t.lt(block).expect(true), || ());
    drop_value(k.for_range(0, t, 1, block, |i, n| n + i));
    drop_value(k.while_(t, |t| (t.lt(9), t), |t| t + 1));
    drop_value(k.native(t, [NativeForm::asm("gfx950", "v_mov_b32 $0, $1", "=v,v")], |t| t));
}

fn everything<'k>(k: &'k Builder<'k>) {
    let parts = [
        arithmetic,
        integers,
        data,
        pointers,
        buffers,
        lanes,
        vectors_across_lanes,
        stochastic_rounding,
        narrow_floats,
        matrix_products,
        scheduling,
        control,
    ];
    for part in parts {
        part(k);
    }
}

#[test]
fn every_operation_has_a_method() {
    let recorded: BTreeSet<&str> = {
        let mut names = BTreeSet::new();
        kernel(everything).walk(&mut |inst| {
            names.insert(inst.op.def().name);
        });
        names
    };
    let recorded: BTreeSet<&str> = recorded.into_iter().chain(names(&memory::images(Units::Hardware))).collect();
    let declared: BTreeSet<&str> = Op::all_defs().into_iter().map(|d| d.name).collect();
    assert_eq!(declared.difference(&recorded).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn every_operation_is_accepted_on_every_target() {
    for target in Target::all() {
        kernel_for(target, everything);
    }
}

#[test]
fn arithmetic_records_its_own_name() {
    records(
        arithmetic,
        &[
            "add",
            "sub",
            "mul",
            "div",
            "neg",
            "abs",
            "maximum",
            "minimum",
            "maxnum",
            "minnum",
            "floor",
            "ceil",
            "trunc",
            "round",
            "roundeven",
            "sqrt",
            "rsqrt",
            "copysign",
            "exp",
            "exp2",
            "log",
            "log2",
            "sin",
            "cos",
            "tanh",
            "erf",
            "pow",
            "fma",
            "hw_exp2",
            "hw_log2",
            "hw_rcp",
            "hw_rsq",
            "hw_sqrt",
            "cmp_eq",
            "cmp_ne",
            "cmp_lt",
            "cmp_le",
            "cmp_gt",
            "cmp_ge",
        ],
    );
    records(
        integers,
        &[
            "div_floor",
            "rem_floor",
            "div_trunc",
            "rem_trunc",
            "ceildiv",
            "and",
            "or",
            "xor",
            "not",
            "shl",
            "shr",
            "shrui",
            "ctpop",
            "ctlz",
            "cttz",
        ],
    );
}

#[test]
fn data_and_vectors() {
    records(
        data,
        &[
            "lane_id",
            "add",
            "vector",
            "cmp_lt",
            "select",
            "convert",
            "bitcast",
            "opaque",
            "extract",
            "rem_floor",
            "extract_at",
            "shuffle",
            "shuffle",
            "shuffle",
            "reduce_add",
            "reduce_mul",
            "reduce_max",
            "reduce_min",
            "reduce_and",
            "reduce_or",
            "reduce_xor",
        ],
    );
}

#[test]
fn vectors_travel_whole() {
    records(
        vectors_across_lanes,
        &[
            "lane_id",
            "add",
            "vector",
            "shuffle_xor",
            "butterfly_add",
            "readfirstlane",
            "readlane",
            "lds_base",
            "lds_base",
            "lds_base",
            "lds_base",
            "ptr_store",
            "ptr_store",
            "ptr_store",
            "ptr_store",
            "lds_read_tr",
            "lds_read_tr",
            "lds_read_tr",
            "lds_read_tr",
        ],
    );
    records(stochastic_rounding, &["lane_id", "cvt_sr", "cvt_sr", "div_floor", "vector", "vector", "cvt_sr", "cvt_sr"]);
}

#[test]
fn narrow_floats_and_scales() {
    records(
        narrow_floats,
        &[
            "vector", "encode", "and", "shl", "bitcast", "encode", "shuffle", "encode", "extract", "encode", "decode",
            "decode", "bitcast", "encode", "extract", "vector", "encode", "vector", "encode", "decode", "shuffle",
            "and", "add", "shr", "bitcast", "sub", "maximum", "extract", "mul", "bitcast", "add", "shr", "bitcast",
            "sub", "minimum", "and", "sub", "shl", "bitcast", "maximum", "bitcast",
        ],
    );
}

#[test]
fn exchanges_between_lanes() {
    records(
        lanes,
        &[
            "lane_id",
            "shuffle_xor",
            "shuffle_up",
            "shuffle_down",
            "shuffle_idx",
            "butterfly_add",
            "butterfly_max",
            "butterfly_min",
            "butterfly_and",
            "butterfly_or",
            "butterfly_xor",
            "cmp_lt",
            "ballot",
            "readfirstlane",
            "readlane",
            "transpose8x8",
            "readfirstlane",
            "assume_uniform",
            "perm_b32",
        ],
    );
    records(
        |k| drop_value(k.ds_bpermute(k.lane_id() << 2, k.lane_id()).readfirstlane()),
        &["lane_id", "shl", "lane_id", "shr", "shuffle_idx", "readfirstlane"],
    );
}

#[test]
fn waits_and_hints() {
    records(
        scheduling,
        &[
            "s_waitcnt",
            "asyncmark",
            "wait_asyncmark",
            "s_sleep",
            "clock",
            "s_setprio",
            "sched_barrier",
            "sched_group_barrier",
        ],
    );
    let k = kernel(|k| {
        k.s_waitcnt(Waitcnt::new().vmcnt(0));
        k.sched_mfma(1);
        k.sched_vmem(2);
        k.sched_dsrd(3);
        k.sched_dswr(4);
    });
    assert_eq!(
        body(&k),
        "  s_waitcnt vmcnt=0\n  sched_group_barrier mask=8 size=1 group=0\n  sched_group_barrier mask=32 size=2 group=0\n  \
         sched_group_barrier mask=256 size=3 group=0\n  sched_group_barrier mask=512 size=4 group=0"
    );
}

#[test]
fn control_flow_and_promises() {
    records(
        control,
        &[
            "thread_id",
            "block_id",
            "cmp_lt",
            "assume",
            "cmp_lt",
            "expect",
            "if",
            "for",
            "add",
            "while",
            "cmp_lt",
            "add",
            "native",
        ],
    );
}

#[test]
fn numbers_stand_on_either_side() {
    records(
        |k| {
            let (x, h, b, i) = (k.constant(1.0f32), k.constant(f16::ONE), k.constant(bf16::ONE), k.constant(Idx(4)));
            drop_value((2.0 * x, x - 2.0, 1.0 / k.filled::<f32, 2>(x), 0.5 + h, b * 0.25, 1 + i, i - 3u32, i * 5i64));
            drop_value((1u32 << k.lane_id(), 7 & k.constant(3u8), k.constant(9i16) + 1, k.constant(1.0f64) * 3.0));
        },
        &["mul", "sub", "vector", "div", "add", "mul", "add", "sub", "mul", "lane_id", "shl", "and", "add", "mul"],
    );
}

#[test]
fn conversions_to_the_same_type_are_nothing() {
    records(
        |k| drop_value(k.lane_id().to::<u32>().to::<Idx>().to::<Idx>().to::<f64>()),
        &["lane_id", "convert", "convert"],
    );
    records(|k| drop_value(k.lds::<u32>("a", 4).cast::<u32>()), &["lds_base"]);
}

#[test]
fn every_element_type_converts_to_every_number() {
    fn all<'k, T: Element>(k: &'k Builder<'k>, x: T) {
        let v = k.constant(x);
        drop_value((v.to::<i8>(), v.to::<u8>(), v.to::<i16>(), v.to::<u16>(), v.to::<i32>(), v.to::<u32>()));
        drop_value((v.to::<i64>(), v.to::<u64>(), v.to::<Idx>(), v.to::<f16>(), v.to::<bf16>()));
        drop_value((v.to::<f32>(), v.to::<f64>()));
    }
    let k = kernel(|k| {
        all(k, true);
        all(k, 1i8);
        all(k, 1u8);
        all(k, 1i16);
        all(k, 1u16);
        all(k, 1i32);
        all(k, 1u32);
        all(k, 1i64);
        all(k, 1u64);
        all(k, 1f32);
        all(k, 1f64);
        all(k, Idx(1));
        all(k, f16::ONE);
        all(k, bf16::ONE);
        drop_value(k.filled::<bool, 4>(true).to::<Vector<f16, 4>>());
    });
    assert_eq!(names(&k).iter().filter(|n| **n == "convert").count(), 13 + 13 * 12 + 1);
}

#[test]
fn clamp_and_nan() {
    let k = kernel(|k| drop_value(k.constant(1.0f32).clamp(0.0, 6.0).is_nan()));
    assert_eq!(names(&k), ["maximum", "minimum", "cmp_ne"]);
    let mut same = false;
    k.walk(&mut |inst| {
        if let Op::Compare(Predicate::Ne, a, b) = inst.op {
            same = a == b;
        }
    });
    assert!(same, "a NaN is what differs from itself");
}

#[test]
fn a_mask_chooses_elements() {
    let k = kernel(|k| {
        let v = k.filled::<f32, 4>(k.lane_id().to::<f32>());
        let picked: V<Vector<f32, 4>> = v.lt(2.0).select(v, 0.0);
        let whole = k.lane_id().lt(2).select(v, 0.0);
        drop_value((picked, whole));
    });
    let text = body(&k);
    assert!(text.contains("boolx4 = cmp_lt"), "{text}");
    assert_eq!(text.matches("f32x4 = select").count(), 2, "{text}");
}

#[test]
fn a_butterfly_is_over_the_smallest_group() {
    let widths = |offsets: &'static [u32]| {
        let k = kernel(|k| drop_value(k.lane_id().butterfly(offsets.iter().copied(), ButterflyOp::Add)));
        let mut all = vec![];
        k.walk(&mut |inst| {
            if let Op::Butterfly { offset, width, .. } = inst.op {
                all.push((offset, width));
            }
        });
        all
    };
    assert_eq!(widths(&[32, 16, 1]), [(32, 64), (16, 64), (1, 64)]);
    assert_eq!(widths(&[1, 4]), [(1, 8), (4, 8)]);
    assert_eq!(widths(&[]), []);
}

#[test]
fn one_group_of_64_lanes_on_two_wave_widths() {
    let kernel = |target| {
        kernel_for(target, |k| {
            let group = k.lanes(64);
            let x = group.lane_index().map(|l| l.to::<f32>());
            let sum = x.butterfly([32, 16], ButterflyOp::Add);
            drop_value(sum.zip(x.shuffle_xor(33), |a, b| a * b).map(|v| v.lt(0.0)).all());
        })
    };
    assert_eq!(
        names(&kernel(Target::GFX950)),
        [
            "lane_id",
            "convert",
            "butterfly_add",
            "butterfly_add",
            "shuffle_xor",
            "mul",
            "cmp_lt",
            "not",
            "ballot",
            "cmp_ne",
            "not"
        ]
    );
    // The step of 32 is between the two halves that a lane holds, and so is that part of an exchange.
    assert_eq!(
        names(&kernel(Target::SM_90)),
        [
            "lane_id",
            "add",
            "convert",
            "convert",
            "add",
            "butterfly_add",
            "butterfly_add",
            "shuffle_xor",
            "shuffle_xor",
            "mul",
            "mul",
            "cmp_lt",
            "cmp_lt",
            "not",
            "not",
            "or",
            "ballot",
            "cmp_ne",
            "not"
        ]
    );
    let mut operands = vec![];
    kernel(Target::SM_90).walk(&mut |inst| {
        if matches!(inst.op.def().name, "shuffle_xor" | "mul" | "convert") {
            operands.push((inst.op.operands(), inst.results[0]));
        }
    });
    // x0, x1 = convert; exchanged over 33: part 0 gets part 1's, over 1.
    let [(_, x0), (_, x1), (first, s0), (second, s1), (m0, _), (m1, _)] = &operands[..] else { panic!("{operands:?}") };
    assert_eq!((first[0], second[0], m0[1], m1[1]), (*x1, *x0, *s0, *s1));
}

#[test]
fn two_groups_of_32_lanes_in_a_wave_of_64() {
    let k = |target| {
        kernel_for(target, |k| {
            let group = k.lanes(32);
            assert_eq!((group.size(), group.parts(), group.width()), (32, 1, 32));
            let word = group.lane_index().transpose8x8();
            drop_value(word.map(|w| w.eq(0)).any());
        })
    };
    assert_eq!(
        names(&k(Target::GFX942)),
        ["lane_id", "and", "transpose8x8", "cmp_eq", "ballot", "lane_id", "and", "convert", "shr", "and", "cmp_ne"]
    );
    assert_eq!(names(&k(Target::GFX1201)), ["lane_id", "transpose8x8", "cmp_eq", "ballot", "cmp_ne"]);
}

#[test]
fn grouped_values_are_carried() {
    let k = kernel_for(Target::SM_90, |k| {
        let start = k.lanes(64).lane_index();
        drop_value(k.for_range(0u32, 4, 1, start, |i, v| v.map(|l| l + i)));
    });
    k.walk(&mut |inst| {
        if let Op::For { init, .. } = &inst.op {
            assert_eq!((init.len(), inst.results.len()), (2, 2));
        }
    });
}

#[test]
fn loops_count_in_the_type_of_their_ends() {
    let k = kernel(|k| {
        drop_value(k.for_range(0i32, 4, 1, k.constant(0i32), |i, n| n + i));
        drop_value(k.for_range(0, k.block_id(Axis::X).to::<Idx>(), 2, k.constant(Idx(0)), |i, n| n + i));
        drop_value(k.for_range_with(k.constant(1u64), 9, 3, Unroll::Full, k.constant(0u64), |i, n| n + i));
        k.for_range(-3i64, k.constant(4i64), 1, (), |_, ()| ());
    });
    let mut types = vec![];
    k.walk(&mut |inst| {
        if let Op::For { lo, unroll, .. } = &inst.op {
            types.push((k.ty(*lo).to_string(), *unroll));
        }
    });
    let auto = Unroll::Auto;
    let expected = [("i32", auto), ("idx", auto), ("u64", Unroll::Full), ("i64", auto)];
    assert_eq!(types, expected.map(|(t, u)| (t.to_owned(), u)));
}

#[test]
fn a_loop_that_may_stop_early() {
    let k = kernel(|k| {
        drop_value(k.for_range_while(-2i32, 5, 3, k.lane_id(), |i, n| (n + 1, i.lt(2))));
    });
    assert_eq!(
        body(&k),
        "  %2: i32 = const -2\n  %3: i32 = const 5\n  %4: u32 = const 1\n  %5: i32 = const 2\n  %6: u32 = const 3\n  \
         %7: i32 = const 3\n  %8: i32 = const 0\n  %9: u32 = lane_id\n  %10: bool = cmp_lt %2, %3\n  \
         %25: bool, %26: i32, %27: u32 = while [%10, %2, %9] {\n    (%11: bool, %12: i32, %13: u32)\n    \
         yield %11, %11, %12, %13\n  } {\n    (%14: bool, %15: i32, %16: u32)\n    %17: u32 = add %16, %4\n    \
         %18: bool = cmp_lt %15, %5\n    %19: i32 = sub %3, %15\n    %20: u32 = bitcast %19\n    \
         %21: bool = cmp_gt %20, %6\n    %22: bool = and %18, %21\n    %23: i32 = select %21, %7, %8\n    \
         %24: i32 = add %15, %23\n    yield %22, %24, %17\n  }"
    );
}

#[test]
fn what_follows_an_exit_runs_where_it_was_not_taken() {
    let k = kernel(|k| {
        let t = k.thread_id(Axis::X);
        k.exit_if(t.ge(40));
        k.exit_if(t.eq(3));
        k.buffer_store(t.to::<f32>(), k.buffer::<f32, InOut>(0), t);
    });
    assert_eq!(
        body(&k),
        "  %2: u32 = const 40\n  %3: u32 = const 3\n  %4: u32 = thread_id x\n  %5: bool = cmp_ge %4, %2\n  %6: bool = not %5\n  \
         if %6 {\n    %7: bool = cmp_eq %4, %3\n    %8: bool = not %7\n    if %8 {\n      %9: f32 = convert %4\n      \
         buffer_store %9, %0, %4\n    } {\n    }\n  } {\n  }"
    );
}

#[test]
fn a_native_operation_carries_its_meaning() {
    let k = kernel(|k| {
        let forms = [
            NativeForm::intrinsic("gfx950", "llvm.amdgcn.rcp.f32"),
            NativeForm::asm("nvptx", "rcp.approx.f32 $0, $1;", "=f,f").effects(),
        ];
        drop_value(k.native(k.constant(3.0f32), forms, |x| (1.0 / x, x)));
    });
    assert_eq!(
        body(&k),
        "  %2: f32 = const 3.0\n  %3: f32 = const 1.0\n  %6: f32, %7: f32 = native [%2] form=\"gfx950\" \
         intrinsic=\"llvm.amdgcn.rcp.f32\" form=\"nvptx\" asm=\"rcp.approx.f32 $0, $1;\" constraints=\"=f,f\" effects=true {\n    \
         (%4: f32)\n    %5: f32 = div %3, %4\n    yield %5, %4\n  }"
    );
}

#[test]
fn licences_are_the_kernels() {
    let k = kernel(|k| {
        assert_eq!((k.block_dim(), k.grid_dim()), ([64, 1, 1], [2, 1, 1]));
        k.fast_math(FastMath::STRICT.allow(Family::Arith, FastFlags::CONTRACT).flush());
    });
    assert!(k.fast_math.of(Family::Arith).has(FastFlags::CONTRACT) && k.fast_math.flush_subnormals);
    assert_eq!(kernel(|_| ()).fast_math, FastMath::STRICT);
}
