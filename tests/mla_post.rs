//! Promise: `mla_post` gives the bits of plain Rust by its AMD code on `gcn`, and its code is smaller than what FlyDSL 0.5.0 makes of
//! the same stages. On `cpu` it runs for every batch in `kernels/tests/sweep.rs`.

use half::bf16;
use lathe_codegen::mnemonics;
use lathe_dsl::Target;
use lathe_kernels::mla::post::{MlaPost, Seat, Tensors, View, mla_post};
use lathe_kernels::mla::uv::ROW;
use lathe_kernels::mla::{LATENTS, VALUES};
use lathe_kernels::registry::Build;
use lathe_runtime::device::PeerTable;
use lathe_runtime::{DeviceBuffer, Engine, gcn};

use crate::{compiled, hip};

/// A key with as many workgroups as have work.
pub const fn key(tokens: u32, q: u32, splits: u32) -> MlaPost {
    MlaPost { ranks: 1, tokens, q, splits, ctas: 0, wait_us: 0 }
}

/// Runs `key` and holds it against the reference.
pub fn is_right(key: &MlaPost, device: &str, seed: u64) {
    // Turns at random among the workgroups of many ranks would be many: tests of the exchange take them.
    let engine = Engine::open(device, (key.ranks == 1).then_some(seed)).expect("a device");
    let report = Build::run(key, &engine, seed).expect("it runs");
    assert!(report.ok, "{device} {key:?} seed {seed}: {:?} {:?}", report.checks, report.findings);
    // Products that are not single instructions are sums of blocks, which round more than once.
    if device.starts_with("cpu") || device.ends_with("gfx950") {
        assert_eq!(report.checks[0].max_abs_error, 0.0, "{device} {key:?} seed {seed}");
    }
}

/// As [`key`], of ranks that send each other their rows.
pub const fn of_ranks(ranks: u32, tokens: u32, q: u32) -> MlaPost {
    MlaPost { ranks, ..key(tokens, q, 0) }
}

/// A key of each class: whole rows, and splits in tasks of one, two and four tokens; one and many tasks a workgroup.
#[test]
fn the_code_object_agrees_with_plain_rust() {
    let keys = [
        key(1, 1, 0),
        key(8, 8, 0),
        MlaPost { ctas: 5, ..key(5, 1, 0) },
        key(4, 4, 2),
        key(2, 2, 100),
        key(8, 8, 128),
        MlaPost { ctas: 7, ..key(3, 1, 48) },
        MlaPost { ctas: 100, ..key(16, 8, 16) },
        MlaPost { ctas: 3, ..of_ranks(2, 3, 1) },
        MlaPost { ctas: 2, ..of_ranks(4, 2, 2) },
        MlaPost { ctas: 12, wait_us: 60_000_000, ..of_ranks(8, 1, 1) },
    ];
    for (seed, key) in (0..).zip(keys) {
        for target in gcn::targets() {
            is_right(&key, &format!("gcn:{target}"), seed);
        }
    }
}

/// Instructions to the last `s_endpgm`, and bytes of LDS, of FlyDSL 0.5.0's `mla_post` for gfx950 with 8 tokens in a request.
#[test]
fn code_is_smaller_than_that_of_flydsl() {
    let classes = [(of_ranks(8, 8, 8), 1426, 4160), (key(8, 8, 0), 671, 4160), (key(8, 8, 128), 1174, 16448)];
    for (key, instructions, lds) in classes {
        let artifact = compiled(&key, Target::GFX950);
        let resources = &artifact.record.resources;
        println!("{key:?}: {} instructions, {} bytes of LDS", resources.instructions, resources.lds_bytes);
        assert!(resources.instructions < instructions, "{key:?}: {}", resources.instructions);
        assert!(resources.lds_bytes <= lds, "{key:?}: {}", resources.lds_bytes);
        assert_eq!((resources.spills, resources.scratch_bytes), (Some(0), Some(0)), "{key:?}");
        assert!(resources.vgpr.is_some_and(|n| n <= 128), "{key:?}: {:?}", resources.vgpr);
        assert!(mnemonics(&artifact).expect("an object")["v_mfma_scale_f32_16x16x128_f8f6f4"] == 4, "{key:?}");
    }
}

/// The stand-in's GPU has 8 compute units with room for two of its workgroups each.
#[test]
fn more_workgroups_than_run_at_once_are_refused() {
    let engine = hip::engine(0);
    let device = &engine.device;
    let stream = device.stream().expect("a stream");
    let launched = |ranks: u32, ctas: u32| {
        let key = MlaPost { ctas, ranks, ..key(8, 8, 0) };
        let compiled = engine.jit.get(&key, device.target()).expect("it compiles");
        let regions: Vec<_> = (0..if ranks > 1 { ranks } else { 0 })
            .map(|_| device.peer_region(key.messages().region_bytes()).expect("fits"))
            .collect();
        let table = PeerTable::new(device, &regions).expect("they are opened");
        let seat = Seat::new(device, 0, table, key.ctas()).expect("fits");
        let (heads, rows) = (u64::from(key.heads()), (key.tokens * key.heads()) as usize);
        let o = DeviceBuffer::from_slice(device, &vec![bf16::ZERO; rows * LATENTS as usize]).expect("fits");
        let lse = DeviceBuffer::from_slice(device, &vec![0f32; rows]).expect("fits");
        let seq_lens = DeviceBuffer::from_slice(device, &[1]).expect("fits");
        let qsl = DeviceBuffer::from_slice(device, &[0, 8]).expect("fits");
        let codes = DeviceBuffer::from_slice(device, &vec![0u8; (ROW * LATENTS / 2) as usize]).expect("fits");
        let scales = DeviceBuffer::from_slice(device, &vec![127u8; (ROW * LATENTS / 32) as usize]).expect("fits");
        let gate = DeviceBuffer::from_slice(device, &vec![bf16::ONE; (key.tokens * ROW) as usize]).expect("fits");
        let core = DeviceBuffer::<bf16>::uninit(device, gate.len()).expect("fits");
        let tensors = Tensors {
            o: View::dense(&o, [0, heads, u64::from(LATENTS)]),
            lse: Some(View::dense(&lse, [0, heads])),
            seq_lens: &seq_lens,
            qsl: &qsl,
            w_v: View::dense(&codes, [0, u64::from(VALUES), u64::from(LATENTS / 2)]),
            w_v_scale: View::dense(&scales, [0, u64::from(VALUES), u64::from(LATENTS / 32)]),
            gate: &gate,
        };
        let args = key.host_args(&tensors, &core, &seat, 3).expect("they are taken");
        mla_post(&key, &compiled, &stream, &args)?;
        stream.synchronize()
    };
    let error = launched(2, 17).expect_err("they do not fit").to_string();
    assert_eq!(error, "`mla_post` has 17 workgroups that must be on hip:0 at once, which has room for 16");
    let error = launched(8, 0).expect_err("they do not fit").to_string();
    assert_eq!(error, "`mla_post` has 96 workgroups that must be on hip:0 at once, which has room for 16");
    // A rank that waits for nobody may have any number.
    launched(1, 24).expect("it runs");
}

/// NVIDIA's assembler takes it for chips with block-scaled products and without.
#[test]
fn ptxas_takes_every_class_of_key() {
    let ptxas = || std::process::Command::new("ptxas");
    if ptxas().arg("--version").output().is_err() {
        println!("skipped: there is no ptxas on this machine");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mla_post.ptx");
    for target in [Target::SM_90, Target::SM_89, Target::SM_120A] {
        for key in [key(8, 8, 0), key(8, 8, 128), of_ranks(8, 8, 8), MlaPost { wait_us: 9, ..of_ranks(2, 8, 8) }] {
            std::fs::write(&file, &compiled(&key, target).code).expect("it writes");
            let arch = format!("-arch={target}");
            let out = ptxas().arg(arch).arg(&file).args(["-o", "/dev/null"]).output().expect("it runs");
            assert!(out.status.success(), "{target} {key:?}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}
