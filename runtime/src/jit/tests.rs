mod disk;
mod later;
#[cfg(feature = "jit")]
mod llvm;
mod processes;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use lathe_dsl::artifact::Artifact;
use lathe_dsl::prelude::*;

use super::*;
use crate::DeviceBuffer;
use crate::device::{Cpu, CpuOptions, Device};
use crate::key::Fingerprint;

build_key! {
    /// y = x + offset
    pub struct Shift {
        /// Elements.
        n: u32 = 64, range(0, 4096);
        /// What tracing does: 0 nothing special, 1 panics, 2 is refused, 3 is warned of.
        trouble: u32 = 0, range(0, 3);
    }
}

kernel_args! {
    /// Arguments of [`Shift`].
    pub struct ShiftArgs(key: Shift) {
        /// Input.
        x: In<f32>[u64::from(key.n)] align 4;
        /// Output.
        y: Out<f32>[u64::from(key.n)] align 4;
        /// Added.
        offset: Scalar<f32>;
    }
}

impl Kernel for Shift {
    const NAME: &'static str = "shift";
    type Args = ShiftArgs;

    fn check(&self) -> Result<(), String> {
        if self.n == 13 { Err("n must not be 13".to_owned()) } else { Ok(()) }
    }

    fn launch(&self) -> Launch {
        Launch::linear(self.n.div_ceil(64), 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: ShiftArgs<Dev<'k>>) {
        assert_ne!(self.trouble, 1, "the author's own mistake");
        if self.trouble == 2 {
            k.lds::<u32>("empty", 0);
        }
        if self.trouble == 3 {
            (0..lathe_dsl::verify::OP_BUDGET).for_each(|_| k.barrier());
        }
        let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
        k.if_(i.lt(self.n), || k.buffer_store(k.buffer_load::<f32>(args.x, i) + args.offset, args.y, i));
    }
}

/// The interpreter's compiler, slow and counted.
struct Counted {
    compiles: Arc<AtomicU32>,
    fail: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the compiler does not like it")]
struct Dislike;

impl Compiler for Counted {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        self.compiles.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(30));
        if self.fail { Err(Error::compile(Dislike)) } else { Interpreter.compile(kernel, target) }
    }
}

fn counted(fail: bool) -> (Jit, Arc<AtomicU32>) {
    let compiles = Arc::new(AtomicU32::new(0));
    (Jit::new(Counted { compiles: compiles.clone(), fail }), compiles)
}

/// Makes machine code of a kind: the kernel's own text under its entry point's name. Stands in for the code generators, so
/// that everything around them is tested without LLVM.
#[derive(Clone, Default)]
struct Texts {
    compiles: Arc<AtomicU32>,
    time: Duration,
    padding: usize,
    flags: &'static str,
    trouble: Trouble,
    /// While it is set, no compile ends.
    hold: Arc<AtomicBool>,
}

/// What [`Texts`] does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Trouble {
    #[default]
    None,
    Fails,
    Panics,
}

impl Compiler for Texts {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        self.compiles.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(self.time);
        while self.hold.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        match self.trouble {
            Trouble::None => {}
            Trouble::Fails => return Err(Error::compile(Dislike)),
            Trouble::Panics => panic!("the compiler's own mistake"),
        }
        let mut code = kernel.to_string().into_bytes();
        code.resize(code.len() + self.padding, b'.');
        let stages = vec![lathe_dsl::artifact::StageTime { stage: "text".into(), ms: 1.0 }];
        let record = CompileRecord { stages, ..CompileRecord::default() };
        let artifact = Artifact { target, symbol: kernel.name.clone(), code, record: record.clone() };
        Ok((Code::Object(Box::new(artifact)), record))
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        Some(Fingerprint { llvm: "none".to_owned(), lathe: "test".to_owned() })
    }

    fn flags(&self) -> String {
        self.flags.to_owned()
    }
}

/// `get` of one key by 8 threads at once.
fn at_once(jit: &Jit, key: Shift) -> Vec<Result<Arc<Compiled>, Error>> {
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    jit.get(&key, Target::GFX950)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn threads_that_ask_at_once_share_one_compile() {
    let (jit, compiles) = counted(false);
    let got = at_once(&jit, Shift { n: 64, trouble: 0 });
    let first = got[0].as_ref().unwrap();
    assert!(got.iter().all(|r| Arc::ptr_eq(r.as_ref().unwrap(), first)));
    assert_eq!(compiles.load(Ordering::SeqCst), 1);
}

#[test]
fn keys_and_targets_are_compiled_apart() {
    let (jit, compiles) = counted(false);
    for key in [Shift { n: 64, trouble: 0 }, Shift { n: 65, trouble: 0 }] {
        for target in [Target::GFX950, Target::SM_90] {
            for _ in 0..2 {
                let compiled = jit.get(&key, target).unwrap();
                assert_eq!(compiled.target(), target);
                assert_eq!(compiled.kernel().wave, target.chip().wave);
                assert_eq!(compiled.record().target, target.to_string());
                assert!(compiled.record().compile_ms >= 30.0 && compiled.record().trace_ms > 0.0);
            }
        }
    }
    assert_eq!(compiles.load(Ordering::SeqCst), 4);
}

#[test]
fn a_failed_compile_is_told_to_everyone_and_not_remembered() {
    let (jit, compiles) = counted(true);
    for result in at_once(&jit, Shift { n: 64, trouble: 0 }) {
        assert_eq!(result.unwrap_err().to_string(), "the compiler does not like it");
    }
    let before = compiles.load(Ordering::SeqCst);
    assert!(before < 8, "waiters share the failure");
    jit.get(&Shift { n: 64, trouble: 0 }, Target::GFX950).unwrap_err();
    assert_eq!(compiles.load(Ordering::SeqCst), before + 1);
}

#[test]
fn a_panic_of_the_author_is_an_error_and_poisons_nothing() {
    let (jit, compiles) = counted(false);
    for result in at_once(&jit, Shift { n: 64, trouble: 1 }) {
        let message = result.unwrap_err().to_string();
        assert!(
            message.starts_with("`shift` (n=64, trouble=1) panicked while it was compiled for gfx950: "),
            "{message}"
        );
        assert!(message.contains("the author's own mistake"), "{message}");
    }
    jit.get(&Shift { n: 64, trouble: 0 }, Target::GFX950).unwrap();
    assert_eq!(compiles.load(Ordering::SeqCst), 1);
}

#[test]
fn a_refused_kernel_names_the_authors_line() {
    let (jit, _) = counted(false);
    let message = jit.get(&Shift { n: 64, trouble: 2 }, Target::GFX950).unwrap_err().to_string();
    let place = format!("kernel `shift` is refused: {}:", file!());
    assert!(message.starts_with(&place) && message.ends_with("LDS array `empty` has no elements"), "{message}");
    let message = jit.get(&Shift { n: 13, trouble: 0 }, Target::GFX950).unwrap_err().to_string();
    assert_eq!(message, "key n=13, trouble=0 is not allowed for `shift`: n must not be 13");
    let message = jit.get(&Shift { n: 4097, trouble: 0 }, Target::GFX950).unwrap_err().to_string();
    assert_eq!(message, "n=4097 is not allowed for `shift`: n must be a whole number from 0 to 4096");
}

fn cpu() -> Arc<dyn Device> {
    Arc::new(Cpu::new(Target::GFX950, CpuOptions::default()))
}

#[test]
fn a_launch_computes() {
    let device = cpu();
    let jit = Jit::new(Interpreter);
    let compiled = jit.get(&Shift { n: 100, trouble: 0 }, device.target()).unwrap();
    let data: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let x = DeviceBuffer::from_slice(&device, &data).unwrap();
    let y = DeviceBuffer::<f32>::uninit(&device, 100).unwrap();
    let args = ShiftArgs { x: x.arg(), y: y.arg(), offset: 0.5 };
    let report = compiled.launch::<Shift>(device.as_ref(), &args).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(y.to_vec().unwrap(), data.iter().map(|x| x + 0.5).collect::<Vec<_>>());
}

#[test]
fn a_grid_without_workgroups_is_no_launch() {
    let device = cpu();
    let compiled = Jit::new(Interpreter).get(&Shift { n: 0, trouble: 0 }, device.target()).unwrap();
    let x = DeviceBuffer::<f32>::uninit(&device, 0).unwrap();
    let y = DeviceBuffer::<f32>::uninit(&device, 0).unwrap();
    let args = ShiftArgs { x: x.arg(), y: y.arg(), offset: 0.5 };
    compiled.launch::<Shift>(device.as_ref(), &args).unwrap();
}

#[test]
fn arguments_that_do_not_match_their_declaration() {
    let device = cpu();
    let jit = Jit::new(Interpreter);
    let compiled = jit.get(&Shift { n: 100, trouble: 0 }, device.target()).unwrap();
    let x = DeviceBuffer::<f32>::from_slice(&device, &[0.0; 100]).unwrap();
    let short = DeviceBuffer::<f32>::from_slice(&device, &[0.0; 99]).unwrap();
    let launch = |x: &DeviceBuffer<f32>, y: &DeviceBuffer<f32>| {
        let args = ShiftArgs { x: x.arg(), y: y.arg(), offset: 0.5 };
        compiled.launch::<Shift>(device.as_ref(), &args).unwrap_err().to_string()
    };
    assert_eq!(launch(&x, &short), "argument `y` of `shift` is 99 elements of f32; this key's kernel wants 100 of f32");
    let other = DeviceBuffer::<f32>::from_slice(&cpu(), &[0.0; 100]).unwrap();
    assert_eq!(launch(&x, &other), "argument `y` of `shift` lies on another device than the one it is launched on");
    assert_eq!(launch(&x, &x), "arguments `x` and `y` of `shift` overlap, and the kernel writes to one of them");
}

build_key! {
    /// As [`Shift`].
    pub struct Unshift {
        /// Elements.
        n: u32 = 64, range(0, 4096);
    }
}

kernel_args! {
    /// Arguments of [`Unshift`], which fit those of [`Shift`] in all but their names.
    pub struct OtherArgs(key: Unshift) {
        /// Output.
        y: Out<f32>[u64::from(key.n)] align 4;
        /// Input.
        x: In<f32>[u64::from(key.n)] align 4;
        /// Added.
        offset: Scalar<f32>;
    }
}

impl Kernel for Unshift {
    const NAME: &'static str = "unshift";
    type Args = OtherArgs;

    fn launch(&self) -> Launch {
        Launch::linear(1, 64)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: OtherArgs<Dev<'k>>) {
        k.buffer_store(k.constant(0.0f32), args.y, k.thread_id(Axis::X));
    }
}

#[test]
fn arguments_of_another_kernel() {
    let device = cpu();
    let compiled = Jit::new(Interpreter).get(&Shift { n: 64, trouble: 0 }, device.target()).unwrap();
    let x = DeviceBuffer::<f32>::from_slice(&device, &[1.0; 64]).unwrap();
    let y = DeviceBuffer::<f32>::from_slice(&device, &[0.0; 64]).unwrap();
    let args = OtherArgs { y: y.arg(), x: x.arg(), offset: 0.5 };
    let error = compiled.launch::<Unshift>(device.as_ref(), &args).unwrap_err();
    assert_eq!(
        error.to_string(),
        "arguments of `unshift` for `shift`: launch what was compiled for the kernel whose arguments they are"
    );
    assert_eq!(x.to_vec().unwrap(), [1.0; 64], "what would have been the output");
}

#[test]
fn code_for_another_chip_is_not_launched() {
    let device = cpu();
    let compiled = Jit::new(Interpreter).get(&Shift { n: 1, trouble: 0 }, Target::SM_90).unwrap();
    let x = DeviceBuffer::<f32>::from_slice(&device, &[0.0]).unwrap();
    let y = DeviceBuffer::<f32>::from_slice(&device, &[0.0]).unwrap();
    let args = ShiftArgs { x: x.arg(), y: y.arg(), offset: 0.5 };
    let message = compiled.launch::<Shift>(device.as_ref(), &args).unwrap_err().to_string();
    assert_eq!(message, "`shift` was compiled for cpu:sm_90, but the device is cpu:gfx950");
}

#[test]
fn addresses_outside_every_allocation() {
    let device = cpu();
    let address = device.alloc(16).unwrap();
    device.write(address + 8, &[1; 8]).unwrap();
    let message = device.write(address + 8, &[1; 9]).unwrap_err().to_string();
    assert_eq!(message, format!("no allocation of cpu:gfx950 covers 9 bytes at 0x{:x}", address + 8));
    device.read(u64::MAX, &mut [0; 2]).unwrap_err();
    device.free(address);
    device.read(address, &mut [0]).unwrap_err();
    device.alloc(u64::MAX).unwrap_err();
}

#[test]
fn devices_are_opened_by_name() {
    for (name, wave) in [("cpu", 64), ("cpu:gfx950", 64), ("cpu:sm_90", 32)] {
        assert_eq!(crate::Engine::open(name, None).unwrap().device.target().chip().wave, wave);
    }
    for name in ["", "gpu", "cpu:", "cpu:gfx9", "cuda:", "cuda:first", "hip:", "hip:first"] {
        let message = crate::Engine::open(name, None).err().unwrap().to_string();
        assert!(message.starts_with(&format!("unknown device `{name}`; known devices: cpu, cpu:gfx950")), "{message}");
    }
    if cfg!(not(all(feature = "jit", feature = "hip"))) {
        let message = crate::Engine::open("hip:2", None).err().unwrap().to_string();
        assert_eq!(message, "no device hip:2: Lathe was built without its features `jit` and `hip`");
    }
}
