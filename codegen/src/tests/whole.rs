//! A kernel like those that Lathe is for, from Kernel IR to machine code.

use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;
use lathe_dsl::builder::{Builder, Bytes, Vector, bf16};
use lathe_dsl::ir::{Access, Axis, Kernel, Launch, Param, Scalar};
use lathe_dsl::kernel::{In, Out};

use object::{Object, ObjectSymbol};

use super::{buffer_of, count, has, kernel_with, lacks, text};
use crate::{Level, Options, compile, emit};

const RANKS: u32 = 8;
const TOKENS: u32 = 8;
const HEADS: u32 = 12;
const ROW: u32 = 512;

/// Combines `RANKS` bf16 rows by their log-sum-exp weights; 128 threads a row.
fn combine(target: Target) -> Kernel {
    let rows = u64::from(RANKS * TOKENS * HEADS);
    let params: Vec<Param> = vec![
        buffer_of("rows", Scalar::Bf16, rows * u64::from(ROW), Access::Read),
        buffer_of("lse", Scalar::F32, rows, Access::Read),
        buffer_of("out", Scalar::Bf16, u64::from(TOKENS * HEADS * ROW), Access::Write),
    ];
    let launch = Launch { waves_per_eu: Some(2), maxnreg: Some(128), ..Launch::linear(HEADS * TOKENS / 4, 512) };
    kernel_with(target, launch, params, body)
}

fn body<'k>(k: &'k Builder<'k>) {
    let (rows, lse) = (k.buffer::<bf16, In>(0), k.buffer::<f32, In>(1));
    let out = k.buffer::<bf16, Out>(2);
    let lat = k.lds::<u32>("lat", 4 * 260);
    let (tid, bid) = (k.thread_id(Axis::X), k.block_id(Axis::X));
    let (row, column) = (tid.div_floor(128), tid.rem_floor(128));
    let item = bid * 4 + row;
    let at = |r: u32| item + r * TOKENS * HEADS;
    let lse: Vec<_> = (0..RANKS).map(|r| k.buffer_load::<f32>(lse, at(r))).collect();
    let m = lse.iter().copied().reduce(|a, b| a.maximum(b)).expect("ranks");
    let m = m.eq(f32::NEG_INFINITY).select(0.0, m);
    let e: Vec<_> = lse.iter().map(|l| ((*l - m) * std::f32::consts::LOG2_E).hw_exp2()).collect();
    let total = e.iter().copied().reduce(|a, b| a + b).expect("ranks");
    let inverse = total.hw_rcp();
    let mut sums = [k.constant(0.0f32); 4];
    for (r, e) in e.iter().enumerate() {
        let weight = e.eq(0.0).select(0.0, *e * inverse);
        let words = k.buffer_load::<Vector<u32, 2>>(rows.cast(), Bytes(at(r as u32) * (ROW * 2) + column * 8));
        let [a, b] = words.elements();
        for (sum, p) in sums.iter_mut().zip([a.bf_lo(), a.bf_hi(), b.bf_lo(), b.bf_hi()]) {
            *sum = *sum + weight.eq(0.0).select(0.0, p) * weight;
        }
    }
    let words = [k.bf16_pair(sums[0], sums[1]), k.bf16_pair(sums[2], sums[3])];
    k.ptr_store(k.vector(words), lat + (row * 260 + column * 2));
    k.barrier();
    // Each thread reads its neighbour's words, four at a time, so that LDS is needed.
    let other = (tid & 0xFF) * 2;
    let (r, c) = (other.div_floor(128), other.rem_floor(128));
    let four = k.ptr_load::<Vector<u32, 4>>(lat + (r * 260 + c * 2));
    let store = tid.lt(256);
    k.if_(store, || k.buffer_store(four, out.cast(), Bytes((bid * 4 + r) * (ROW * 2) + c * 8)));
}

fn artifact(target: Target) -> Artifact {
    compile(&combine(target), target, &Options::default()).unwrap()
}

#[test]
fn gfx950_code_is_what_an_author_would_write() {
    let asm = text(&combine(Target::GFX950), Target::GFX950, Level::Asm);
    assert_eq!(count(&asm, "buffer_load_dwordx2"), RANKS as usize, "{asm}");
    assert_eq!(count(&asm, "v_cvt_pk_bf16_f32"), 2, "{asm}");
    assert_eq!(count(&asm, "v_exp_f32"), RANKS as usize, "{asm}");
    has(&asm, &["ds_read_b128", "v_rcp_f32", "s_barrier", "buffer_store_dwordx4", "v_maximum3_f32"]);
    // Nothing is contracted, nothing goes to scratch, nothing is called.
    lacks(&asm, &["v_fma", "v_pk_fma", "v_mac", "scratch_", "s_swappc", "s_setpc"]);
}

#[test]
fn sm_90_code_is_what_an_author_would_write() {
    let ptx = text(&combine(Target::SM_90), Target::SM_90, Level::Asm);
    assert_eq!(count(&ptx, "ld.global.nc.v2.b32"), RANKS as usize, "{ptx}");
    assert_eq!(count(&ptx, "cvt.rn.bf16x2.f32"), 2, "{ptx}");
    assert_eq!(count(&ptx, "ex2.approx.f32"), RANKS as usize, "{ptx}");
    has(&ptx, &["rcp.approx.f32", "bar.sync", "ld.shared.v4", "st.global.v4", "max.NaN.f32", ".maxnreg 128"]);
    lacks(&ptx, &["fma.", ".ftz", ".local", "call", ", debug"]);
}

#[test]
fn a_record_tells_resources_and_stages() {
    let a = artifact(Target::GFX950);
    let r = &a.record.resources;
    assert_eq!((a.symbol.as_str(), &a.code[..4]), ("k", &b"\x7fELF"[..]));
    assert_eq!((r.lds_bytes, r.spills, r.scratch_bytes), (4 * 260 * 4, Some(0), Some(0)));
    assert!((16..=256).contains(&r.vgpr.unwrap()), "{r:?}");
    assert!((8..=106).contains(&r.sgpr.unwrap()), "{r:?}");
    assert!((100..600).contains(&r.instructions) && r.code_bytes >= u64::from(r.instructions) * 4, "{r:?}");
    let stages: Vec<_> = a.record.stages.iter().map(|s| s.stage.as_ref()).collect();
    assert_eq!(stages, ["verify", "mlir", "passes", "llvm", "optimise", "codegen", "link"]);
    let sum: f64 = a.record.stages.iter().map(|s| s.ms).sum();
    assert!(a.record.stages.iter().all(|s| s.ms > 0.0) && sum <= a.record.compile_ms, "{:?}", a.record);

    let n = artifact(Target::SM_90);
    let r = &n.record.resources;
    assert_eq!((r.lds_bytes, r.vgpr, r.spills), (4 * 260 * 4, None, None));
    assert!(r.ptx_registers.unwrap() > 30 && r.instructions > 100, "{r:?}");
    assert_eq!(r.code_bytes, n.code.len() as u64);
}

#[test]
fn the_same_kernel_gives_the_same_bytes_wherever_it_was_written() {
    for target in Target::MAIN {
        let kernel = combine(target);
        let mut moved = kernel.clone();
        for l in &mut moved.locations {
            l.line += 1000;
            l.file = "elsewhere.rs";
        }
        for level in [Level::Mlir, Level::LlvmIr, Level::Asm, Level::Obj] {
            let one = emit(&kernel, target, &Options::default(), level).unwrap();
            let two = emit(&moved, target, &Options::default(), level).unwrap();
            assert!(one == two, "{target} {level:?}");
            let shown = String::from_utf8_lossy(&one);
            for path in ["elsewhere", "whole.rs", "/tmp", "codegen/src"] {
                assert!(!shown.contains(path), "{target} {level:?} holds {path}");
            }
        }
        assert_eq!(artifact(target).code, emit(&kernel, target, &Options::default(), Level::Obj).unwrap());
    }
}

#[test]
fn llvm_is_the_shared_library() {
    let binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let binary = object::File::parse(&*binary).unwrap();
    // A static copy beside the shared one would have its own targets, options and handlers.
    let imported: Vec<_> =
        binary.dynamic_symbols().filter(|s| s.is_undefined()).filter_map(|s| s.name().ok()).collect();
    for symbol in ["LLVMContextCreate", "LLVMTargetMachineEmitToMemoryBuffer", "LLVMInstallFatalErrorHandler"] {
        assert!(imported.contains(&symbol), "{symbol} is not imported");
    }
    assert!(std::fs::read_to_string("/proc/self/maps").unwrap().contains("libLLVM.so.22.1"));
    assert!(crate::toolchain().llvm.starts_with("22.1."), "{:?}", crate::toolchain());
}

#[test]
fn compiles_run_side_by_side() {
    let expected = artifact(Target::GFX950).code;
    std::thread::scope(|s| {
        let all: Vec<_> = (0..4).map(|_| s.spawn(|| artifact(Target::GFX950).code)).collect();
        for one in all {
            assert!(one.join().unwrap() == expected);
        }
    });
}
