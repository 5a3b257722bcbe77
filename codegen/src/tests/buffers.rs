//! Buffer accesses with masks, scalar offsets, wide offsets, cache behaviour and run-time extents; copies to LDS.

use lathe_dsl::builder::Data;
use lathe_dsl::prelude::*;

use super::{Body, asm, becomes, count, has, kernel, lacks, text, usual_params};
use crate::Level;

const AMD: [Target; 3] = [Target::GFX950, Target::GFX942, Target::GFX1201];
const NVIDIA: [Target; 3] = [Target::SM_90, Target::SM_89, Target::SM_120A];

fn mlir(target: Target, body: Body) -> String {
    text(&kernel(target, usual_params(), body), target, Level::Mlir)
}

fn x<'k>(k: &'k Builder<'k>) -> Buffer<'k, f32, In> {
    k.buffer(0)
}

fn y<'k, T: Element>(k: &'k Builder<'k>) -> Buffer<'k, T, InOut> {
    k.buffer(1)
}

fn tid<'k>(k: &'k Builder<'k>) -> V<'k, u32> {
    k.thread_id(Axis::X)
}

fn coherent<'k, D: Data + lathe_dsl::builder::Plain>(k: &'k Builder<'k>, cache: Cache) {
    let at = tid(k) * D::TYPE.lanes();
    let v: V<D> = k.buffer_load_with(y(k), at, LoadOptions::new().cache(cache));
    k.buffer_store_with(v, y(k), at + 1024, StoreOptions::new().cache(cache));
}

#[test]
fn cache_behaviour_becomes_each_generation_s_bits() {
    let amd = |body: Body, gfx9: &str, gfx12: &str| {
        for target in [Target::GFX950, Target::GFX942] {
            let text = asm(target, body);
            let access = |what: &str| text.lines().find(|l| l.contains(what)).unwrap_or_default().trim().to_owned();
            for line in [access("buffer_load_dword "), access("buffer_store_dword ")] {
                assert!(line.ends_with(&format!("offen{gfx9}")) || line.contains(gfx9), "{target}: {line}");
            }
        }
        let text = asm(Target::GFX1201, body);
        assert_eq!(count(&text, gfx12), 2, "{text}");
    };
    amd(|k| coherent::<u32>(k, Cache::DEV), " sc1", "scope:SCOPE_DEV");
    amd(|k| coherent::<u32>(k, Cache::SYS), " sc0 sc1", "scope:SCOPE_SYS");
    amd(|k| coherent::<u32>(k, Cache::NT), " nt", "th:TH_");
    amd(|k| coherent::<u32>(k, Cache::DEV.nontemporal()), " nt sc1", "scope:SCOPE_DEV");
    for target in NVIDIA {
        has(
            &asm(target, |k| coherent::<u32>(k, Cache::DEV)),
            &["ld.relaxed.gpu.global.b32", "st.relaxed.gpu.global.b32"],
        );
        has(
            &asm(target, |k| coherent::<u32>(k, Cache::SYS)),
            &["ld.relaxed.sys.global.b32", "st.relaxed.sys.global.b32"],
        );
        has(&asm(target, |k| coherent::<u16>(k, Cache::SYS)), &["ld.relaxed.sys.global.b16"]);
        has(&asm(target, |k| coherent::<u8>(k, Cache::SYS)), &["ld.relaxed.sys.global.b8"]);
    }
}

#[test]
fn pairs_arrive_together() {
    let pair: Body = |k| coherent::<Vector<u32, 2>>(k, Cache::SYS);
    let four: Body = |k| coherent::<Vector<u32, 4>>(k, Cache::DEV);
    for target in NVIDIA {
        has(&asm(target, pair), &["ld.relaxed.sys.global.b64", "st.relaxed.sys.global.b64"]);
        has(&asm(target, four), &["ld.relaxed.gpu.global.v2.b64", "st.relaxed.gpu.global.v2.b64"]);
    }
    becomes(pair, &[(Target::GFX950, &["buffer_load_dwordx2", "buffer_store_dwordx2"])]);
    becomes(four, &[(Target::GFX1201, &["buffer_load_b128", "buffer_store_b128"])]);
    // Of an address that is not known to be aligned, together if it is.
    let loose: Body = |k| {
        let b = k.make_buffer::<u32>(k.param::<u64>(2), 4096u32);
        let v: V<Vector<u32, 2>> = k.buffer_load_with(b, tid(k), LoadOptions::new().cache(Cache::SYS));
        k.buffer_store_with(v, b, tid(k) + 512, StoreOptions::new().cache(Cache::SYS));
    };
    let ptx = asm(Target::SM_90, loose);
    for (what, n) in [("ld.relaxed.sys.global.b64", 1), ("ld.relaxed.sys.global.b32", 2)] {
        assert_eq!(count(&ptx, what), n, "{what} {ptx}");
        assert_eq!(count(&ptx, &what.replace("ld.", "st.")), n, "{what} {ptx}");
    }
}

#[test]
fn a_loop_that_waits_for_others_loads_every_time() {
    let wait: Body = |k| {
        let flag = |k| k_load(k);
        fn k_load<'k>(k: &'k Builder<'k>) -> V<'k, f32> {
            k.buffer_load_with(k.buffer::<f32, In>(0), 0u32, LoadOptions::new().cache(Cache::DEV))
        }
        let seen = k.while_(
            k.constant(0u32),
            |n| (flag(k).lt(1.0), n),
            |n| {
                k.s_sleep(1);
                n + 1
            },
        );
        k.buffer_store(seen, y(k), tid(k));
    };
    for target in Target::all() {
        let text = asm(target, wait);
        let load = if target.chip().triple.starts_with("nvptx") { "ld.relaxed.gpu" } else { "buffer_load" };
        // A load stands between a label and a branch that leads back to it.
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let label = |l: &str| (l.starts_with(".LBB") || l.starts_with("$L__BB")) && l.contains(':');
        let back = (0..lines.len()).filter(|i| label(lines[*i])).any(|from| {
            let name = lines[from].split(':').next().unwrap_or_default();
            let leads = |l: &&str| !label(l) && l.contains("bra") && l.trim_end_matches(';').ends_with(name);
            let inside = lines[from..].iter().rposition(leads).map_or(&[][..], |to| &lines[from..from + to]);
            inside.iter().any(|l| l.contains(load))
        });
        assert!(back, "{target}\n{text}");
    }
}

#[test]
fn a_mask_costs_a_select_on_amd_and_a_branch_on_nvidia() {
    let masked: Body = |k| {
        let i = tid(k);
        let mask = i.lt(k.param::<u32>(3));
        let v = k.buffer_load_with::<f32>(x(k), i, LoadOptions::new().mask(mask, 7.0f32));
        k.buffer_store_with(v, y(k), i, StoreOptions::new().mask(mask));
        // A fill of zeros costs nothing more.
        let w = k.buffer_load_with::<f32>(x(k), i + 256, LoadOptions::new().mask(mask, 0.0f32));
        k.buffer_store(w, y(k), i + 256);
    };
    for target in AMD {
        let m = mlir(target, masked);
        has(&m, &["arith.constant -256 : i32"]);
        lacks(&m, &["scf.if"]);
        // Three offsets, one fill.
        assert_eq!(count(&m, "arith.select"), 4, "{m}");
    }
    for target in NVIDIA {
        let m = mlir(target, masked);
        assert_eq!((count(&m, "scf.if"), count(&m, "arith.select")), (3, 1), "{m}");
    }
}

#[test]
fn a_scalar_offset_is_an_operand_of_the_instruction_where_that_is_exact() {
    let inside: Body = |k| {
        let by = k.block_id(Axis::X) * 4096;
        let v = k.buffer_load_with::<f32>(x(k), tid(k), LoadOptions::new().soffset(by));
        k.buffer_store_with(v, y(k), tid(k), StoreOptions::new().soffset(by));
    };
    for target in AMD {
        let m = mlir(target, inside);
        lacks(&m, &["arith.select", "arith.addi"]);
        let text = asm(target, inside);
        let load = text.lines().find(|l| l.contains("buffer_load")).unwrap_or_default();
        assert!(load.contains("], s"), "{load}");
        // Written once in a lane's offset, it would not fit there.
        lacks(&text, &["v_add"]);
    }
    // The whole sum is guarded where it may leave the buffer.
    let outside: Body = |k| {
        let v = k.buffer_load_with::<f32>(x(k), tid(k), LoadOptions::new().soffset(k.param::<u32>(3)));
        k.buffer_store(v, y(k), tid(k));
    };
    for target in Target::all() {
        has(&mlir(target, outside), &["arith.extui", "arith.cmpi ule", "16384 : i64"]);
    }
    let load = |target| {
        let text = asm(target, outside);
        text.lines().find(|l| l.contains("buffer_load")).unwrap_or_default().to_owned()
    };
    // Chips may check the scalar offset too, and wrap.
    assert!(load(Target::GFX950).contains("], 0"), "{}", load(Target::GFX950));
    assert!(load(Target::GFX1201).contains("], null"), "{}", load(Target::GFX1201));
}

#[test]
fn an_index_that_may_be_anything_is_checked_in_64_bits() {
    let wide: Body = |k| {
        let i = k.param::<u64>(2).to::<i64>().to::<Idx>();
        k.buffer_store(k.buffer_load::<f32>(x(k), i), y(k), i);
    };
    for target in Target::all() {
        let m = mlir(target, wide);
        assert!(m.contains("4095 : i64") || m.contains("4096 : i64"), "{m}");
        asm(target, wide);
    }
    // One that is small costs what a u32 does.
    let small: Body = |k| {
        let i = tid(k).to::<Idx>() * Idx(4) + Idx(3);
        k.buffer_store(k.buffer_load::<f32>(x(k), i), y(k), i);
    };
    for target in AMD {
        lacks(&mlir(target, small), &["arith.extsi", "arith.select"]);
    }
}

#[test]
fn a_buffer_made_at_run_time_has_its_extent_checked() {
    let made: Body = |k| {
        let bytes = k.param::<u32>(3);
        let b = k.make_buffer::<f32>(k.param::<u64>(2), bytes);
        k.buffer_store(k.buffer_load::<f32>(b, tid(k)), b, tid(k) + 256);
    };
    for target in Target::all() {
        let m = mlir(target, made);
        has(&m, &["llvm.inttoptr", "arith.cmpi ule"]);
        // Offsets are small: 32 bits are enough.
        lacks(&m, &["arith.cmpi ule, %c : i64"]);
        asm(target, made);
    }
    has(&mlir(Target::GFX950, made), &["rocdl.make.buffer.rsrc"]);
    // What is known of the extent is used.
    let known: Body = |k| {
        let b = k.make_buffer::<f32>(k.param::<u64>(2), 4096u32);
        k.buffer_store(k.buffer_load::<f32>(b, tid(k)), b, tid(k) + 256);
    };
    for target in Target::all() {
        lacks(&mlir(target, known), &["arith.cmpi"]);
    }
}

#[test]
fn an_atomic_outside_the_buffer_does_nothing() {
    let inside: Body = |k| {
        k.buffer_atomic(AtomicOp::Add, k.constant(1u32), y(k), tid(k), Scope::Device);
    };
    let outside: Body = |k| {
        let old = k.buffer_atomic(AtomicOp::Max, tid(k), y(k), k.param::<u32>(3), Scope::Device);
        k.buffer_store(old, y(k), tid(k));
    };
    for target in Target::all() {
        lacks(&mlir(target, inside), &["scf.if"]);
        has(&mlir(target, outside), &["scf.if", "llvm.atomicrmw umax"]);
        asm(target, outside);
    }
    becomes(
        inside,
        &[
            (Target::GFX950, &["global_atomic_add "]),
            (Target::GFX1201, &["global_atomic_add_u32"]),
            (Target::SM_90, &["atom.global.add.u32"]),
        ],
    );
}

/// Copies `bytes` bytes a lane from `x` to LDS, drains and stores what arrived.
fn copy<'k>(k: &'k Builder<'k>, bytes: u32, at: V<'k, u32>) {
    let lds = k.lds_aligned::<f32>("tile", 1024, 16);
    let wave = tid(k).div_floor(k.wave());
    let row = lds + wave * (k.wave() * bytes / 4);
    k.copy_to_lds(x(k), at, row, bytes);
    k.drain(Scope::Workgroup);
    k.barrier();
    let v = k.ptr_load::<f32>(lds + (255 - tid(k)));
    k.buffer_store(v, y(k), tid(k));
}

#[test]
fn copies_to_lds_bypass_the_registers_where_the_chip_can() {
    let four: Body = |k| copy(k, 4, tid(k));
    let sixteen: Body = |k| copy(k, 16, tid(k) * 4);
    for (target, body, native) in [
        (Target::GFX950, four, "buffer_load_dword v"),
        (Target::GFX950, sixteen, "buffer_load_dwordx4 v"),
        (Target::GFX942, four, "buffer_load_dword v"),
    ] {
        let text = asm(target, body);
        let line = text.lines().find(|l| l.contains(native)).unwrap_or_else(|| panic!("{target}\n{text}"));
        assert!(line.ends_with(" lds"), "{line}");
        has(&text, &["s_mov_b32 m0", "s_waitcnt vmcnt(0)"]);
        lacks(&text, &["ds_write"]);
    }
    has(&asm(Target::GFX942, sixteen), &["buffer_load_dwordx4", "ds_write_b128"]);
    has(&asm(Target::GFX1201, sixteen), &["buffer_load_b128", "ds_store_b128"]);
    for target in NVIDIA {
        let text = asm(target, sixteen);
        has(
            &text,
            &["cp.async.cg.shared.global", "cp.async.wait_all", "bar.warp.sync", "fence.acq_rel.cta", "bar.sync"],
        );
        lacks(&text, &["st.shared"]);
        has(&asm(target, four), &["cp.async.ca.shared.global"]);
        // What must be coherent has no asynchronous form.
        let coherent = asm(target, |k| {
            let lds = k.lds::<f32>("tile", 1024);
            k.copy_to_lds_with(x(k), tid(k), lds, 4, CopyOptions::new().cache(Cache::DEV));
            k.barrier();
            k.buffer_store(k.ptr_load::<f32>(lds + (tid(k) ^ 32)), y(k), tid(k));
        });
        has(&coherent, &["ld.relaxed.gpu.global.b32", "st.shared.b32"]);
        lacks(&coherent, &["cp.async"]);
    }
    // Lanes that read outside write zeros: the guard is that of a load.
    let outside: Body = |k| copy(k, 16, tid(k) * 20);
    for target in AMD {
        let m = mlir(target, outside);
        assert!(m.contains("arith.minui") || m.contains("arith.select"), "{m}");
    }
    let never: Body = |k| {
        let lds = k.lds_aligned::<f32>("tile", 1024, 16);
        let b = k.make_buffer::<f32>(k.param::<u64>(2), 8u32);
        k.copy_to_lds(b, 0u32, lds, 16);
    };
    for target in Target::all() {
        has(&mlir(target, never), &["dense<0> : vector<4xi32>", "llvm.store"]);
    }
}

#[test]
fn only_buffers_that_nobody_else_touches_are_said_to_be_so() {
    let attributes = |target, body: Body| {
        let ir = text(&kernel(target, usual_params(), body), target, Level::LlvmIr);
        let signature = ir.lines().find(|l| l.starts_with("define")).expect("a kernel").to_owned();
        let parts: Vec<String> =
            signature.split("ptr addrspace(1)").skip(1).map(|p| p.split('%').next().unwrap_or("").to_owned()).collect();
        (parts[0].clone(), parts[1].clone())
    };
    for target in Target::MAIN {
        // Plain accesses.
        let (x, y) =
            attributes(target, |k| k.buffer_store(k.buffer_load::<f32>(self::x(k), tid(k)), self::y(k), tid(k)));
        has(&x, &["noalias", "readonly"]);
        has(&y, &["noalias"]);
        // Coherent ones, of both.
        let (x, y) = attributes(target, |k| {
            let v = k.buffer_load_with::<f32>(self::x(k), tid(k), LoadOptions::new().cache(Cache::DEV));
            k.buffer_store(v, self::y(k), tid(k));
        });
        lacks(&x, &["noalias", "readonly"]);
        lacks(&y, &["noalias"]);
        // A fence: what is only read stays private.
        let (x, y) = attributes(target, |k| {
            k.buffer_store(k.buffer_load::<f32>(self::x(k), tid(k)), self::y(k), tid(k));
            k.fence(Order::Release, Scope::Device);
        });
        has(&x, &["noalias", "readonly"]);
        lacks(&y, &["noalias"]);
        // One that hears of others: not even that.
        let (x, y) = attributes(target, |k| {
            k.fence(Order::Acquire, Scope::Device);
            k.buffer_store(k.buffer_load::<f32>(self::x(k), tid(k)), self::y(k), tid(k));
        });
        lacks(&x, &["noalias", "readonly"]);
        lacks(&y, &["noalias"]);
        // An address from elsewhere may be that of any buffer.
        let (x, y) = attributes(target, |k| {
            let raw = k.make_buffer::<f32>(k.constant(64u64), 4u32);
            k.buffer_store(k.buffer_load::<f32>(self::x(k), tid(k)), raw, 0u32);
            k.buffer_store(k.buffer_load::<f32>(self::x(k), tid(k)), self::y(k), tid(k));
        });
        lacks(&x, &["noalias"]);
        lacks(&y, &["noalias"]);
        // An address that got away.
        let (x, y) = attributes(target, |k| {
            k.buffer_store(k.ptr_load::<f32>(self::x(k).ptr() + tid(k)), self::y(k), tid(k));
        });
        lacks(&x, &["noalias"]);
        has(&y, &["noalias"]);
    }
}
