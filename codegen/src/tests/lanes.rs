//! Exchanges between lanes, in the cheapest form that each chip has.

use lathe_dsl::ir::{Access, Scalar};
use lathe_dsl::prelude::*;

use super::{Body, asm, becomes, buffer, count, has, kernel_with, lacks, text};
use crate::Level;

const NVIDIA: [Target; 3] = [Target::SM_90, Target::SM_89, Target::SM_120A];

fn load<'k>(k: &'k Builder<'k>) -> V<'k, f32> {
    k.buffer_load(k.buffer::<f32, In>(0), k.thread_id(Axis::X))
}

fn save<'k, T: lathe_dsl::builder::Element + lathe_dsl::builder::Plain>(k: &'k Builder<'k>, v: V<'k, T>) {
    k.buffer_store(v, k.buffer::<u32, InOut>(1).cast(), k.thread_id(Axis::X));
}

#[test]
fn the_lane_comes_from_the_thread_index_where_that_is_cheap() {
    let lane: Body = |k| save(k, k.lane_id());
    becomes(lane, &[(Target::GFX950, &["v_and_b32"]), (Target::SM_90, &["and.b32", "%tid.x"])]);
    lacks(&asm(Target::GFX950, lane), &["mbcnt"]);
    for target in Target::MAIN {
        let launch = Launch { block: [8, 8, 4], ..Launch::linear(1, 64) };
        let params = vec![buffer("x", Scalar::F32, Access::Read), buffer("y", Scalar::U32, Access::ReadWrite)];
        let text = text(&kernel_with(target, launch, params, |k| save(k, k.lane_id())), target, Level::Asm);
        has(&text, &[if target == Target::SM_90 { "%laneid" } else { "v_mbcnt_lo" }]);
        assert_eq!(text.contains("v_mbcnt_hi"), target.chip().wave == 64);
    }
}

fn butterfly<'k>(k: &'k Builder<'k>, offset: u32) {
    save(k, load(k).butterfly([offset], ButterflyOp::Add));
}

#[test]
fn butterflies_take_the_cheapest_step() {
    let steps: [(Body, [&[&str]; 3]); 6] = [
        (|k| butterfly(k, 1), [&["quad_perm:[1,0,3,2]"]; 3]),
        (|k| butterfly(k, 2), [&["quad_perm:[2,3,0,1]"]; 3]),
        (
            |k| butterfly(k, 4),
            [
                &["row_half_mirror", "quad_perm:[3,2,1,0]"],
                &["row_half_mirror", "quad_perm:[3,2,1,0]"],
                &["row_xmask:4"],
            ],
        ),
        (|k| butterfly(k, 8), [&["row_ror:8"], &["row_ror:8"], &["row_xmask:8"]]),
        (
            |k| butterfly(k, 16),
            [&["v_permlane16_swap_b32"], &["ds_swizzle_b32", "swizzle(SWAP,16)"], &["v_permlanex16_b32"]],
        ),
        (|k| butterfly(k, 16), [&[], &[], &[]]),
    ];
    for (body, wanted) in steps {
        for (target, wanted) in [Target::GFX950, Target::GFX942, Target::GFX1201].into_iter().zip(wanted) {
            has(&asm(target, body), wanted);
            // None of them goes through LDS's addressed crossbar.
            lacks(&asm(target, body), &["ds_bpermute"]);
        }
        for target in NVIDIA {
            has(&asm(target, body), &["shfl.sync.bfly.b32", ", -1;"]);
        }
    }
    let half: Body = |k| butterfly(k, 32);
    if Target::GFX950.chip().wave == 64 {
        let text = text(&super::kernel(Target::GFX950, super::usual_params(), half), Target::GFX950, Level::Asm);
        has(&text, &["v_permlane32_swap_b32"]);
        // The sum of both operands of the swap needs no select.
        lacks(&text, &["v_cndmask", "ds_"]);
    }
    has(&asm(Target::GFX942, half), &["ds_bpermute_b32"]);
    // DPP moves fold into the sum.
    let text = asm(Target::GFX950, |k| butterfly(k, 8));
    has(&text, &["v_add_f32_dpp"]);
}

#[test]
fn butterflies_of_every_kind() {
    let all: Body = |k| {
        use ButterflyOp::{Add, And, Maximum, Minimum, Or, Xor};
        let x = load(k);
        let offsets = [16, 8, 4, 2, 1];
        let mut sum = x.butterfly(offsets, Add) + x.butterfly(offsets, Maximum) + x.butterfly(offsets, Minimum);
        sum = sum + x.to::<f16>().butterfly(offsets, Add).to::<f32>();
        sum = sum + x.to::<bf16>().butterfly(offsets, Maximum).to::<f32>();
        sum = sum + x.to::<f64>().butterfly(offsets, Add).to::<f32>();
        let u = x.bitcast::<u32>();
        sum = sum + u.butterfly(offsets, And).butterfly(offsets, Or).butterfly(offsets, Xor).to::<f32>();
        sum = sum + u.to::<i8>().butterfly(offsets, Minimum).to::<f32>();
        sum = sum + u.to::<u64>().butterfly(offsets, Add).to::<f32>();
        sum = sum + (u & 255).to::<Idx>().butterfly(offsets, Add).to::<i64>().to::<f32>();
        save(k, sum);
    };
    for target in Target::all() {
        asm(target, all);
    }
}

#[test]
fn shuffles_with_known_patterns() {
    let xor: Body = |k| save(k, load(k).shuffle_xor(20, 32));
    becomes(
        xor,
        &[
            (Target::GFX950, &["ds_swizzle_b32"]),
            (Target::GFX942, &["ds_swizzle_b32"]),
            (Target::GFX1201, &["v_permlanex16_b32"]),
            (Target::SM_90, &["shfl.sync.bfly.b32"]),
        ],
    );
    // The pattern is taken modulo the group.
    let none: Body = |k| save(k, load(k).shuffle_xor(32, 16));
    for target in Target::all() {
        lacks(&asm(target, none), &["dpp", "ds_", "permlane", "shfl"]);
    }
    let down: Body = |k| save(k, load(k).shuffle_down(3, 16));
    becomes(
        down,
        &[
            (Target::GFX950, &["row_shl:3"]),
            (Target::GFX1201, &["row_shl:3"]),
            (Target::SM_90, &["shfl.sync.down.b32", "4127"]),
        ],
    );
    let up: Body = |k| save(k, load(k).shuffle_up(3, 16));
    becomes(up, &[(Target::GFX950, &["row_shr:3"]), (Target::SM_90, &["shfl.sync.up.b32", "4096"])]);
    let idx: Body = |k| save(k, load(k).shuffle_idx(3, 8));
    becomes(idx, &[(Target::GFX950, &["ds_swizzle_b32"]), (Target::SM_90, &["shfl.sync.idx.b32", "6175"])]);
    let quad: Body = |k| save(k, load(k).shuffle_idx(7, 4));
    becomes(quad, &[(Target::GFX950, &["quad_perm:[3,3,3,3]"]), (Target::GFX1201, &["quad_perm:[3,3,3,3]"])]);
    let whole: Body = |k| save(k, load(k).shuffle_idx(5, k.wave()));
    becomes(whole, &[(Target::GFX950, &["v_readlane_b32"]), (Target::GFX1201, &["v_readlane_b32"])]);
}

#[test]
fn shuffles_with_patterns_of_the_moment() {
    let any: Body = |k| {
        let (x, n) = (load(k), k.buffer_load::<u32>(k.buffer::<u32, InOut>(1), k.thread_id(Axis::X)));
        let v = x.shuffle_xor(n, 8) + x.shuffle_up(n, 8) + x.shuffle_down(n, 32) + x.shuffle_idx(n, 16);
        save(k, v);
    };
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        let text = asm(target, any);
        assert_eq!(count(&text, "ds_bpermute_b32"), 4, "{text}");
    }
    for target in NVIDIA {
        let text = asm(target, any);
        has(&text, &["shfl.sync.bfly", "shfl.sync.up", "shfl.sync.down", "shfl.sync.idx"]);
        // Distances beyond the five bits that the instruction reads.
        has(&text, &["setp", "selp"]);
    }
}

#[test]
fn values_of_every_width_are_exchanged() {
    let all: Body = |k| {
        let (x, n) = (load(k), k.param::<u32>(3));
        let mut sum = x.to::<f16>().shuffle_idx(n, 8).to::<f32>();
        sum = sum + x.to::<bf16>().shuffle_idx(n, 8).to::<f32>();
        sum = sum + x.to::<f64>().shuffle_idx(n, 8).to::<f32>();
        sum = sum + x.to::<i8>().shuffle_up(n, 8).to::<f32>();
        sum = sum + x.to::<u16>().shuffle_down(n, 8).to::<f32>();
        sum = sum + x.to::<i64>().shuffle_xor(n, 8).to::<f32>();
        sum = sum + x.to::<i64>().uniform().to::<f32>() + x.to::<f16>().readlane(n).to::<f32>();
        save(k, sum);
    };
    for target in Target::all() {
        asm(target, all);
    }
    // One word for 8 and 16 bits, two for 64.
    let text = asm(Target::SM_90, all);
    assert_eq!(count(&text, "shfl.sync."), 1 + 1 + 2 + 1 + 1 + 2 + 2 + 1, "{text}");
}

#[test]
fn ballots_and_single_lanes() {
    let ballot: Body = |k| {
        let mask = load(k).lt(0.0f32).ballot();
        save(k, mask);
    };
    becomes(
        ballot,
        &[
            (Target::GFX950, &["v_cmp_", "s["]),
            (Target::GFX1201, &["v_cmp_"]),
            (Target::SM_90, &["vote.sync.ballot.b32", "-1;"]),
        ],
    );
    let lanes: Body = |k| {
        let x = load(k);
        save(k, x.uniform() + x.readlane(k.param::<u32>(3)));
    };
    becomes(
        lanes,
        &[
            (Target::GFX950, &["v_readfirstlane_b32", "v_readlane_b32"]),
            (Target::GFX1201, &["v_readfirstlane_b32", "v_readlane_b32"]),
            (Target::SM_90, &["shfl.sync.idx.b32"]),
        ],
    );
}

fn swap_if<'k>(k: &'k Builder<'k>, condition: V<'k, bool>) {
    let x = load(k);
    save(k, k.if_else(condition, || x.shuffle_xor(1, 2), || x));
}

#[test]
fn lanes_of_a_branch_that_whole_waves_take_are_the_whole_wave() {
    // A parameter; the number of the wave; and what differs from pair to pair, which each pair enters by itself.
    let cases: [(Body, bool); 3] = [
        (|k| swap_if(k, k.param::<u32>(3).lt(7)), true),
        (|k| swap_if(k, k.thread_id(Axis::X).div_floor(k.wave()).lt(1)), true),
        (|k| swap_if(k, k.thread_id(Axis::X).div_floor(2).lt(k.param::<u32>(3))), false),
    ];
    for (body, whole) in cases {
        for target in NVIDIA {
            let text = asm(target, body);
            let exchange = text.lines().find(|l| l.contains("shfl.sync.bfly")).unwrap();
            assert_eq!(exchange.trim_end().ends_with(", -1;"), whole, "{text}");
            lacks(&text, &["activemask"]);
        }
    }
}

#[test]
fn transposition_and_byte_permutation() {
    let transpose: Body = |k| save(k, load(k).bitcast::<u32>().transpose8x8());
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        let text = asm(target, transpose);
        assert_eq!((count(&text, "ds_bpermute_b32"), count(&text, "v_perm_b32")), (2, 1), "{text}");
    }
    for target in NVIDIA {
        has(&asm(target, transpose), &["movmatrix.sync.aligned.m8n8.trans.b16"]);
    }
    let known: Body = |k| {
        let x = load(k).bitcast::<u32>();
        save(k, k.perm_b32(x, x + 1, 0x0F04_0102u32));
    };
    // Bytes above 7 count modulo 8.
    becomes(known, &[(Target::GFX950, &["v_perm_b32", "0x7040102"]), (Target::SM_90, &["prmt.b32", "0x7412"])]);
    let any: Body = |k| {
        let x = load(k).bitcast::<u32>();
        save(k, k.perm_b32(x, x + 1, x + 2));
    };
    for target in Target::all() {
        asm(target, any);
    }
}

/// Exchanges a vector with the lane at distance 5.
fn exchanged<'k, T>(k: &'k Builder<'k>)
where
    T: lathe_dsl::builder::Data + lathe_dsl::builder::Plain,
    T::Elem: lathe_dsl::builder::Plain,
{
    let first = k.thread_id(Axis::X) * T::TYPE.lanes();
    let from = k.param::<u64>(2).to_ptr::<T::Elem>() + first;
    k.ptr_store(k.ptr_load::<T>(from).shuffle_xor(5, 32), from);
}

#[test]
fn a_vector_travels_in_as_few_words_as_hold_it() {
    let cases: [(Body, usize); 5] = [
        (|k| exchanged::<Vector<u8, 4>>(k), 1),
        (|k| exchanged::<Vector<f16, 2>>(k), 1),
        (|k| exchanged::<Vector<u8, 8>>(k), 2),
        (|k| exchanged::<Vector<f32, 4>>(k), 4),
        (|k| exchanged::<Vector<f64, 2>>(k), 4),
    ];
    for (body, words) in cases {
        assert_eq!(count(&asm(Target::SM_90, body), "shfl.sync.bfly.b32"), words);
        assert_eq!(count(&asm(Target::GFX1201, body), "row_xmask:5"), words);
    }
}
