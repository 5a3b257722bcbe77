//! Atomic read-modify-writes, compare-and-swap, fences and drains.

use lathe_dsl::builder::{Atomic, Data};
use lathe_dsl::prelude::*;

use super::{Body, asm, becomes, has, lacks};

fn words<'k>(k: &'k Builder<'k>) -> V<'k, GlobalPtr<u32>> {
    k.param::<u64>(2).to_ptr::<u32>()
}

fn add_f32<'k>(k: &'k Builder<'k>, scope: Scope) {
    let p = k.param::<u64>(2).to_ptr::<f32>();
    k.atomic_add(p + k.thread_id(Axis::X), 1.5f32, Order::Relaxed, scope);
}

#[test]
fn a_float_sum_in_device_memory_is_one_instruction() {
    let device: Body = |k| add_f32(k, Scope::Device);
    for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
        let text = asm(target, device);
        has(&text, &["global_atomic_add_f32"]);
        lacks(&text, &["cmpswap"]);
    }
    for target in [Target::SM_90, Target::SM_89, Target::SM_120A] {
        // PTX's scope is the device if none is named.
        has(&asm(target, device), &["atom.global.add.f32"]);
    }
    // Memory of the host or of another device may not know it.
    let system: Body = |k| add_f32(k, Scope::System);
    becomes(
        system,
        &[(Target::GFX950, &["global_atomic_cmpswap"]), (Target::SM_90, &["atom.relaxed.sys.global.add.f32"])],
    );
}

#[test]
fn lds_has_float_atomics_too() {
    let add: Body = |k| {
        let p = k.lds::<f32>("sums", 8);
        k.ptr_store(k.constant(0.0f32), p);
        let before = k.atomic_add(p + (k.thread_id(Axis::X) & 7), 1.5f32, Order::Relaxed, Scope::Workgroup);
        let q = k.lds::<f64>("wide", 8);
        k.ptr_store(k.constant(0.0f64), q);
        k.atomic_add(q + (k.thread_id(Axis::X) & 7), 1.5f64, Order::Relaxed, Scope::Workgroup);
        k.buffer_store(before, k.buffer::<u32, InOut>(1).cast(), k.thread_id(Axis::X));
    };
    becomes(
        add,
        &[
            (Target::GFX950, &["ds_add_rtn_f32", "ds_add_f64"]),
            (Target::GFX942, &["ds_add_rtn_f32", "ds_add_f64"]),
            (Target::GFX1201, &["ds_add_rtn_f32", "ds_cmpstore"]),
            (Target::SM_90, &["shared.add.f32", "shared.add.f64"]),
        ],
    );
}

#[test]
fn every_operation_on_every_type_in_both_memories() {
    fn all<'k, T: Atomic + Data<Mask = bool>>(k: &'k Builder<'k>, one: T, sum: &mut V<'k, u32>) {
        let global = k.param::<u64>(2).to_ptr::<T>() + k.thread_id(Axis::X);
        let lds = k.lds::<T>("array", 256) + k.thread_id(Axis::X);
        let one = k.constant(one);
        k.ptr_store(one, lds);
        for order in [Order::Relaxed, Order::AcqRel] {
            let olds = [
                k.atomic_add(global, one, order, Scope::Device),
                k.atomic_sub(global, one, order, Scope::Device),
                k.atomic_min(global, one, order, Scope::Device),
                k.atomic_max(global, one, order, Scope::System),
                k.atomic_xchg(global, one, order, Scope::Device),
                k.atomic_cas(global, one, one, order, Scope::Device),
                k.atomic_add(lds, one, order, Scope::Workgroup),
                k.atomic_sub(lds, one, order, Scope::Workgroup),
                k.atomic_min(lds, one, order, Scope::Workgroup),
                k.atomic_max(lds, one, order, Scope::Workgroup),
                k.atomic_xchg(lds, one, order, Scope::Wave),
                k.atomic_cas(lds, one, one, order, Scope::Workgroup),
            ];
            for old in olds {
                *sum = *sum + old.eq(one).select(1u32, 0u32);
            }
        }
    }
    let body: Body = |k| {
        let mut sum = k.constant(0u32);
        all(k, 1i32, &mut sum);
        all(k, 1u32, &mut sum);
        all(k, 1i64, &mut sum);
        all(k, 1u64, &mut sum);
        all(k, 1f32, &mut sum);
        all(k, 1f64, &mut sum);
        let p = words(k);
        sum = sum + k.atomic_and(p, 1u32, Order::SeqCst, Scope::Device);
        sum = sum + k.atomic_or(p, 1u32, Order::Acquire, Scope::Device);
        sum = sum + k.atomic_xor(p, 1u32, Order::Release, Scope::Device);
        k.buffer_store(sum, k.buffer::<u32, InOut>(1), k.thread_id(Axis::X));
    };
    for target in Target::all() {
        asm(target, body);
    }
    becomes(
        body,
        &[
            (
                Target::GFX950,
                &["global_atomic_smin", "global_atomic_umin", "global_atomic_cmpswap_x2", "ds_max_rtn_u32"],
            ),
            (Target::GFX1201, &["global_atomic_min_i32", "global_atomic_cmpswap_b64", "ds_cmpstore_rtn_b32"]),
            (Target::SM_90, &["atom.global.min.s32", "atom.relaxed.sys.global.max.u64", ".cas.b64"]),
        ],
    );
}

#[test]
fn larger_and_smaller_floats_are_exact() {
    // The chips' own instructions only compare.
    let body: Body = |k| {
        let p = k.param::<u64>(2).to_ptr::<f64>();
        k.atomic_max(p, 1.5f64, Order::Relaxed, Scope::Device);
        k.atomic_min(p.cast::<f32>() + 2u32, 1.5f32, Order::Relaxed, Scope::Device);
    };
    for target in Target::MAIN {
        let text = asm(target, body);
        has(
            &text,
            &[if target == Target::SM_90 { "atom.relaxed.gpu.global.cas.b64" } else { "global_atomic_cmpswap" }],
        );
        lacks(&text, &["global_atomic_max", "global_atomic_min", "global.max", "global.min"]);
    }
}

#[test]
fn orders_of_an_atomic_are_kept() {
    let body: Body = |k| {
        k.atomic_add(words(k), 1u32, Order::AcqRel, Scope::Device);
    };
    let order = |target, parts: &[&str]| {
        let text = asm(target, body);
        let mut from = 0;
        for part in parts {
            let at = text[from..].find(part).unwrap_or_else(|| panic!("no {part} after {from} in\n{text}"));
            from += at + part.len();
        }
    };
    order(Target::GFX950, &["buffer_wbl2 sc1", "global_atomic_add", "s_waitcnt vmcnt(0)", "buffer_inv sc1"]);
    order(Target::GFX1201, &["global_atomic_add_u32", "global_inv scope:SCOPE_DEV"]);
    order(Target::SM_90, &["fence.acq_rel.gpu", "atom.global.add.u32", "fence.acq_rel.gpu"]);
    let relaxed: Body = |k| {
        k.atomic_add(words(k), 1u32, Order::Relaxed, Scope::Device);
    };
    for target in Target::all() {
        lacks(&asm(target, relaxed), &["fence", "buffer_wbl2", "buffer_inv", "global_wb", "global_inv"]);
    }
    let strong: Body = |k| {
        k.atomic_add(words(k), 1u32, Order::SeqCst, Scope::Device);
    };
    becomes(strong, &[(Target::SM_90, &["fence.sc.gpu"])]);
}

#[test]
fn compare_and_swap_is_one_instruction() {
    let body: Body = |k| {
        let old = k.atomic_cas(words(k), 1u32, 2u32, Order::Relaxed, Scope::Device);
        k.buffer_store(old, k.buffer::<u32, InOut>(1), k.thread_id(Axis::X));
    };
    becomes(
        body,
        &[
            (Target::GFX950, &["global_atomic_cmpswap"]),
            (Target::GFX1201, &["global_atomic_cmpswap_b32"]),
            (Target::SM_90, &["global.cas.b32"]),
        ],
    );
}

#[test]
fn fences_and_drains() {
    let fence: Body = |k| {
        k.buffer_store(k.constant(1u32), k.buffer::<u32, InOut>(1), 0u32);
        k.fence(Order::Release, Scope::Device);
        k.buffer_store(k.constant(2u32), k.buffer::<u32, InOut>(1), 1u32);
    };
    becomes(
        fence,
        &[
            (Target::GFX950, &["buffer_wbl2 sc1", "s_waitcnt vmcnt(0)"]),
            (Target::GFX1201, &["s_wait_storecnt 0x0"]),
            (Target::SM_90, &["fence.acq_rel.gpu"]),
        ],
    );
    let drain: Body = |k| {
        let y = k.buffer::<u32, InOut>(1);
        k.buffer_store_with(k.constant(1u32), y, 0u32, StoreOptions::new().cache(Cache::SYS));
        k.drain(Scope::System);
        k.buffer_store_with(k.constant(2u32), y, 1u32, StoreOptions::new().cache(Cache::SYS));
    };
    let between = |target, [store, wait]: [&str; 2]| {
        let text = asm(target, drain);
        let lines: Vec<&str> = text.lines().collect();
        let stores: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].contains(store)).collect();
        let wait = lines.iter().position(|l| l.contains(wait)).unwrap_or_else(|| panic!("no {wait} in\n{text}"));
        assert!(stores.len() == 2 && stores[0] < wait && wait < stores[1], "{text}");
    };
    between(Target::GFX950, ["buffer_store_dword", "s_waitcnt vmcnt(0)"]);
    between(Target::GFX942, ["buffer_store_dword", "s_waitcnt vmcnt(0)"]);
    between(Target::GFX1201, ["buffer_store_b32", "s_wait_storecnt 0x0"]);
    between(Target::SM_90, ["st.relaxed.sys.global.b32", "fence.acq_rel.sys"]);
    let scopes: Body = |k| {
        k.drain(Scope::Device);
        k.drain(Scope::Workgroup);
    };
    becomes(scopes, &[(Target::SM_90, &["fence.acq_rel.gpu", "fence.acq_rel.cta"])]);
}
