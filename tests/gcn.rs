//! Promise: the AMD code object that is emitted, run as it stands, gives what the Rust stage means; and a wait or barrier
//! that it needs cannot be taken out unseen.

use std::fmt::Write as _;
use std::sync::Arc;

use lathe_dsl::Target;
use lathe_kernels::mla::combine::MlaCombine;
use lathe_kernels::mla::problem::Problem;
use lathe_kernels::mla::reference::combine;
use lathe_kernels::registry::Entry;
use lathe_runtime::Engine;
use lathe_runtime::device::Gcn;
use lathe_runtime::gcn::mutate::{Needs, candidates, without};
use lathe_runtime::gcn::{self, CodeObject, ErrorKind, GcnError, Memory, Options, Stats, is_implemented};

use crate::{GOLDEN, compiled};

/// Three-way agreement: each device must equal the plain-Rust stage bit for bit, on the same input.
#[test]
fn the_code_object_the_interpreter_and_plain_rust_agree() {
    let entry = Entry::find("mla_combine").unwrap();
    for (ranks, tokens) in [(1, 8), (2, 8), (4, 8), (8, 8), (1, 1), (2, 3), (4, 5), (8, 2), (2, 101)] {
        let settings = [("ranks".to_owned(), ranks.to_string()), ("tokens".to_owned(), tokens.to_string())];
        let build = entry.build(&settings).unwrap();
        for seed in [0, 1, 2] {
            let machines = gcn::targets().map(|t| format!("gcn:{t}"));
            for device in ["cpu", "cpu:gfx1201"].map(str::to_owned).into_iter().chain(machines) {
                let engine = Engine::open(&device, Some(seed)).unwrap();
                let report = build.run(&engine, seed).unwrap();
                assert!(report.ok, "{device} ranks {ranks} tokens {tokens} seed {seed}: {:?}", report.checks);
                assert_eq!(report.checks[0].max_abs_error, 0.0);
            }
        }
    }
}

/// As above, with splits: tasks of four, two and one tokens, rounds of loads with and without a rest, and more tasks than workgroups.
#[test]
fn the_code_object_of_combined_splits_agrees_with_plain_rust() {
    let entry = Entry::find("mla_combine_splits").unwrap();
    let keys = [(2, 4, 4), (16, 8, 4), (12, 2, 2), (100, 2, 2), (128, 8, 8), (136, 1, 1), (184, 23, 1), (64, 64, 64)];
    for (seed, (splits, tokens, q)) in (0..).zip(keys) {
        let key = [("splits", splits), ("tokens", tokens), ("q", q)];
        let build = entry.build(&key.map(|(name, value): (&str, u32)| (name.to_owned(), value.to_string()))).unwrap();
        for target in gcn::targets() {
            let engine = Engine::open(&format!("gcn:{target}"), Some(seed)).unwrap();
            let report = build.run(&engine, seed).unwrap();
            assert!(report.ok, "{target} {key:?}: {:?}", report.checks);
            assert_eq!(report.checks[0].max_abs_error, 0.0);
        }
    }
}

/// What one rank pushes, and what another one combines, with and without a limit for its waits.
#[test]
fn the_code_objects_of_messages_agree_with_plain_rust() {
    let push = [(2, 1, 1, 256), (4, 3, 3, 1), (2, 16, 4, 3), (8, 5, 1, 7), (8, 8, 8, 16)];
    let push = push.map(|(ranks, tokens, q, ctas)| {
        ("mla_push", vec![("ranks", ranks), ("tokens", tokens), ("q", q), ("ctas", ctas)])
    });
    let combine = [(2, 1), (4, 3), (8, 2), (8, 8), (2, 16), (2, 101)];
    let combine = combine.into_iter().flat_map(|(ranks, tokens)| {
        [0, 1_000_000].map(|wait| ("mla_combine_ranks", vec![("ranks", ranks), ("tokens", tokens), ("wait_us", wait)]))
    });
    for (seed, (name, key)) in (0..).zip(push.into_iter().chain(combine)) {
        let settings: Vec<_> = key.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        let build = Entry::find(name).unwrap().build(&settings).unwrap();
        for target in gcn::targets() {
            let engine = Engine::open(&format!("gcn:{target}"), Some(seed)).unwrap();
            let report = build.run(&engine, seed).unwrap();
            assert!(report.ok, "{target} {name} {key:?}: {:?}", report.checks);
            assert_eq!(report.checks[0].max_abs_error, 0.0);
        }
    }
}

/// Every chip's code object keeps the bounds of its products; where these are single instructions, it gives the bits of plain Rust.
#[test]
fn the_code_object_of_gated_values_agrees_with_plain_rust() {
    let entry = Entry::find("mla_uv").unwrap();
    for target in gcn::targets() {
        for (tokens, seed) in [(1, 0), (3, 1), (8, 2), (101, 3)] {
            let build = entry.build(&[("tokens".to_owned(), tokens.to_string())]).unwrap();
            let engine = Engine::open(&format!("gcn:{target}"), Some(seed)).unwrap();
            let report = build.run(&engine, seed).unwrap();
            assert!(report.ok, "{target} tokens {tokens}: {:?}", report.checks);
            if target == Target::GFX950 {
                assert_eq!(report.checks[0].max_abs_error, 0.0, "tokens {tokens}");
            }
        }
    }
}

#[test]
fn every_golden_amd_object_uses_only_implemented_instructions() {
    let mut gaps = vec![];
    for target in gcn::targets() {
        for (name, key) in GOLDEN {
            let object = CodeObject::load(&compiled(key, target).code, target).unwrap();
            let used = object.mnemonics();
            assert!(used.len() > 20, "{name} for {target} has a real kernel's variety");
            let missing = used.iter().filter(|m| !is_implemented(target, m).unwrap());
            gaps.extend(missing.map(|m| format!("{name} for {target}: {m}")));
            println!("{name} for {target}: {} mnemonics", used.len());
        }
        println!("{target}: {} mnemonics implemented", gcn::implemented_mnemonics(target).unwrap().len());
    }
    assert!(gaps.is_empty(), "not implemented:\n{}", gaps.join("\n"));
}

/// The largest product that issue reports ask for: a block-scaled one, in a time that a test suite can spend.
#[test]
fn a_block_scaled_product_is_right_and_soon_done() {
    let run = |device: &str, sizes: [(&str, u32); 3]| {
        let settings = sizes.map(|(name, value)| (name.to_owned(), value.to_string()));
        let build = Entry::find("gemm_mx").unwrap().build(&settings).unwrap();
        let engine = Engine::open(device, Some(1)).unwrap();
        let report = build.run(&engine, 1).unwrap();
        assert!(report.ok, "{device} {sizes:?}: {:?}", report.checks);
        report
    };
    for target in gcn::targets() {
        run(&format!("gcn:{target}"), [("m", 33), ("n", 70), ("k", 160)]);
    }
    let report = run("gcn:gfx950", [("m", 256), ("n", 256), ("k", 1024)]);
    println!("256 × 256 × 1024 on gcn:gfx950: {:.0} ms", report.launch_ms);
    assert!(report.launch_ms < 2000.0, "{:.0} ms", report.launch_ms);
}

/// A compiled kernel with its input in memory, to be run again and again.
struct Bench {
    key: MlaCombine,
    object: CodeObject,
    symbol: String,
    problem: Problem,
}

impl Bench {
    fn new(key: MlaCombine, target: Target) -> Self {
        let artifact = compiled(&key, target);
        let object = CodeObject::load(&artifact.code, target).unwrap();
        let problem = Problem::new(key.ranks as usize, key.tokens as usize, 5);
        Self { key, object, symbol: artifact.symbol, problem }
    }

    /// Runs `object` in place of the kernel's own; also tells whether the output is right.
    fn run(&self, object: &CodeObject, options: &Options) -> Result<(Stats, bool), GcnError> {
        let mut memory = Memory::default();
        let mut put = |bytes: Vec<u8>| {
            let address = memory.alloc(bytes.len());
            memory.write(address, &bytes).unwrap();
            address
        };
        let expected =
            combine(self.key.ranks as usize, self.key.tokens as usize, &self.problem.partial, &self.problem.lse);
        let partial = put(self.problem.partial.iter().flat_map(|x| x.to_bits().to_le_bytes()).collect());
        let lse = put(self.problem.lse.iter().flat_map(|x| x.to_le_bytes()).collect());
        let latents = put(vec![0xA5; expected.len() * 2]);
        let kernarg: Vec<u8> = [partial, lse, latents].iter().flat_map(|a| a.to_le_bytes()).collect();
        let launch = lathe_dsl::Kernel::launch(&self.key);
        let stats = gcn::launch(object, &self.symbol, launch.grid, launch.block, &kernarg, &mut memory, options)?;
        let got = memory.read(latents, expected.len() * 2)?;
        let right = got.chunks(2).zip(&expected).all(|(g, e)| g == e.to_bits().to_le_bytes());
        Ok((stats, right))
    }
}

/// Every `s_waitcnt` and `s_barrier` is replaced by `s_nop`, one at a time. Whether that must be noticed is decided by
/// [`Needs`], an analysis of what the intact run did that shares no code with the checks; the snapshot lists what it
/// says of each, so that one that is not needed stands there with the reason.
#[test]
fn a_missing_wait_or_barrier_is_found() {
    let keys = [(1, 8), (8, 8), (2, 101)].map(|(ranks, tokens)| MlaCombine { ranks, tokens });
    for key in keys {
        let bench = Bench::new(key, Target::GFX950);
        let intact = Options { record: true, ..Options::default() };
        let (stats, right) = bench.run(&bench.object, &intact).unwrap();
        assert!(right);
        let (needs, all) = (Needs::of(&stats.traces), candidates(&bench.object, &bench.symbol).unwrap());
        assert!(all.iter().any(|c| c.text.starts_with("s_barrier")) && all.len() > 3);
        let mut listing = String::new();
        let mut needed = 0;
        for candidate in &all {
            let verdict = needs.verdict(candidate.pc);
            let mutant = without(&bench.object, candidate.pc).unwrap();
            // A race shows in every order of the waves: it is a missing order, not a bad one.
            let errors: Vec<_> = [0, 1, 2, 3]
                .iter()
                .filter_map(|seed| bench.run(&mutant, &Options { seed: *seed, ..Options::default() }).err())
                .collect();
            let reason = match errors.first() {
                Some(e) => {
                    // Without its barrier a wave may read LDS before another one has written it at all.
                    let unwritten = matches!(e.kind, ErrorKind::Undefined { .. }) && candidate.text == "s_barrier";
                    let as_meant = matches!(
                        e.kind,
                        ErrorKind::UseBeforeWait { .. } | ErrorKind::LdsRace { .. } | ErrorKind::LdsBeforeWait { .. }
                    );
                    assert!(unwritten || as_meant, "{key:?} {candidate:?}: noticed, but as something else: {e}");
                    let site = e.site.as_ref().expect("a place");
                    assert!(site.line.is_some(), "{e}");
                    e.kind.to_string()
                }
                None => format!("not needed: {verdict:?}"),
            };
            assert_eq!(
                errors.len(),
                if verdict.is_needed() { 4 } else { 0 },
                "{key:?} {candidate:?}: the trace says {verdict:?}, the runs say {errors:?}"
            );
            needed += u32::from(verdict.is_needed());
            writeln!(listing, "{}: {reason}", candidate.text).unwrap();
        }
        assert!(needed >= 3, "{listing}");
        println!("{key:?}: {needed} of {} are needed, all found", all.len());
        if crate::golden::llvm_is_pinned() {
            crate::golden::pin_text(&format!("mutants.ranks_{}.tokens_{}", key.ranks, key.tokens), &listing);
        }
    }
}

/// Every `s_wait_alu` of gfx1201's code is taken out in turn. LLVM puts them where some path needs one; the snapshot lists which of them
/// this run is found to need, by which rule, and its result is right without the others.
#[test]
fn a_missing_wait_for_the_vector_alu_is_found() {
    let bench = Bench::new(MlaCombine { ranks: 8, tokens: 8 }, Target::GFX1201);
    let kernel = bench.object.kernel(&bench.symbol).unwrap();
    let waits: Vec<_> = bench.object.listing(kernel).filter(|(_, text)| text.starts_with("s_wait_alu")).collect();
    let mut listing = String::new();
    let mut found = 0;
    for (pc, text) in &waits {
        let mutant = without(&bench.object, *pc).unwrap();
        let reason = match bench.run(&mutant, &Options::default()) {
            Ok((_, right)) => {
                assert!(right, "{text}");
                "not needed on this path".to_owned()
            }
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::NothingBetween { .. }), "{text}: {error}");
                let site = error.site.as_ref().expect("a place");
                assert!(site.line.is_some() && site.pc > *pc, "{error}");
                found += 1;
                let ErrorKind::NothingBetween { rule, register, .. } = &error.kind else { unreachable!() };
                format!("{register}, rule `{rule}`")
            }
        };
        writeln!(listing, "{text}: {reason}").unwrap();
    }
    println!("{found} of {} are found to be needed", waits.len());
    assert!(2 * found > waits.len(), "{listing}");
    if crate::golden::llvm_is_pinned() {
        crate::golden::pin_text("mutants.wait_alu", &listing);
    }
}

/// Results, findings and costs of whole kernels are the same on one thread and on several; nothing in them races.
#[test]
fn nothing_depends_on_the_number_of_threads() {
    let kernels: [(&str, &[(&str, u32)]); 4] = [
        ("mla_combine", &[("ranks", 4), ("tokens", 16)]),
        ("mla_uv", &[("tokens", 16)]),
        ("mla_combine_splits", &[("splits", 16), ("tokens", 8), ("q", 4)]),
        ("gemm_mx", &[("m", 256), ("n", 256), ("k", 128)]),
    ];
    for target in gcn::targets() {
        for (name, key) in kernels {
            let settings: Vec<_> = key.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
            let build = Entry::find(name).unwrap().build(&settings).unwrap();
            let runs = [1, 2, 4].map(|threads| {
                let device = Arc::new(Gcn::counting(target, Some(3)).with_threads(Some(threads)));
                let Engine { jit, .. } = Engine::open(&format!("gcn:{target}"), Some(3)).unwrap();
                let engine = Engine { device: Arc::<Gcn>::clone(&device), jit };
                let report = build.run(&engine, 3).unwrap();
                assert!(report.ok && report.findings.is_empty(), "{name} on {target}: {report:?}");
                let costs = device.costs().unwrap();
                assert!(costs.workgroups > 1, "{name}");
                let checks: Vec<_> = report.checks.iter().map(|c| c.max_abs_error.to_bits()).collect();
                let costs: Vec<_> = costs.instructions.iter().map(|i| (i.pc, i.cost)).collect();
                (checks, costs)
            });
            assert!(runs.iter().all(|run| *run == runs[0]), "{name} on {target}");
        }
    }
}

/// The author's own line is in the error, found through the object's line table.
#[test]
fn an_error_names_the_authors_line() {
    use lathe_dsl::prelude::*;
    use lathe_runtime::DeviceBuffer;

    build_key! {
        /// Reads LDS that nobody wrote.
        pub struct Unwritten {
            /// Workgroups.
            n: u32 = 1, range(1, 8);
        }
    }
    kernel_args! {
        /// Arguments of [`Unwritten`].
        pub struct UnwrittenArgs(key: Unwritten) {
            /// Output.
            y: Out<u32>[u64::from(key.n) * 64] align 4;
        }
    }
    const LINE: u32 = line!() + 11;
    impl Kernel for Unwritten {
        const NAME: &'static str = "unwritten";
        type Args = UnwrittenArgs;
        fn launch(&self) -> Launch {
            Launch::linear(self.n, 64)
        }
        fn build<'k>(&self, k: &'k Builder<'k>, args: UnwrittenArgs<Dev<'k>>) {
            let lds = k.lds::<u32>("a", 128);
            k.ptr_store(k.thread_id(Axis::X), lds + k.thread_id(Axis::X));
            k.barrier();
            let x = k.ptr_load::<u32>(lds + k.thread_id(Axis::X) + 1);
            k.buffer_store(x, args.y, k.block_id(Axis::X) * 64 + k.thread_id(Axis::X));
        }
    }
    let place = format!("{}:{}:", file!(), LINE);
    for device in ["cpu", "gcn:gfx950", "gcn:gfx942", "gcn:gfx1201"] {
        let Engine { device, jit } = Engine::open(device, None).unwrap();
        let compiled = jit.get(&Unwritten { n: 1 }, device.target()).unwrap();
        let y = DeviceBuffer::<u32>::uninit(&device, 64).unwrap();
        let message =
            compiled.launch::<Unwritten>(device.as_ref(), &UnwrittenArgs { y: y.arg() }).unwrap_err().to_string();
        // The machine may notice at the store of the undefined value, which is the next line.
        let next = format!("{}:{}:", file!(), LINE + 1);
        assert!(message.starts_with(&place) || message.starts_with(&next), "{}: {message}", device.name());
    }
}
