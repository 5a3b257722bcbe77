//! Runs the stages in order and keeps the record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lathe_dsl::artifact::{Artifact, CompileRecord, Resources, StageTime};
use lathe_dsl::ir::Kernel;
use lathe_dsl::{Arch, Target, Warning, verify};
use melior::ir::operation::OperationRef;
use melior::ir::{BlockLike, Location, Module};

use crate::contain::{self, Lost};
use crate::error::{Error, Failure, Stage};
use crate::llvm::{Llvm, Machine};
use crate::lower::{self, Blame};
use crate::options::Options;
use crate::passes::Mlir;
use crate::reproducer;
use crate::target::{Output, backend};
use crate::warm;

/// Where the stages stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    Mlir,
    LlvmIr,
    Assembly,
    Code,
}

/// What the stages gave.
pub struct Made {
    /// What `Stop` asked for.
    pub bytes: Vec<u8>,
    stages: Vec<StageTime>,
    warnings: Vec<Warning>,
    resources: Resources,
}

/// Which stage runs; shared with the waiter, who learns of a fatal error from it.
type Running = Arc<Mutex<Stage>>;

/// Clock of the stages.
struct Clock {
    running: Running,
    times: Vec<StageTime>,
}

impl Clock {
    fn stage<T, E: Into<Blame>>(&mut self, stage: Stage, work: impl FnOnce() -> Result<T, E>) -> Result<T, Blame> {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        let start = Instant::now();
        let result = work().map_err(Into::into);
        self.times.push(StageTime { stage: stage.name().into(), ms: milliseconds(start) });
        result
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Whether a caller has asked for a compile: what is left to warm up, that compile pays anyway.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Pays the first use of MLIR, LLVM and lld: compiles a kernel of a few operations for one chip of each family, until
/// somebody asks for a compile.
pub fn warm_up() {
    for target in [Target::GFX950, Target::SM_90] {
        if ASKED.load(Ordering::Relaxed) {
            return;
        }
        // Nothing is lost if it fails: the next compile meets the same trouble, and has somebody to tell.
        let _ = warm::kernel(target).map(|kernel| contained(&kernel, target, &Options::default(), Stop::Code));
    }
}

/// Compiles to an artifact.
pub fn compile(kernel: &Kernel, target: Target, options: &Options) -> Result<Artifact, Error> {
    let start = Instant::now();
    let made = make(kernel, target, options, Stop::Code)?;
    let record = CompileRecord {
        kernel: kernel.name.clone(),
        target: target.to_string(),
        compile_ms: milliseconds(start),
        stages: made.stages,
        warnings: made.warnings.iter().map(Warning::to_string).collect(),
        kir_ops: kernel.op_count(),
        resources: made.resources,
        ..CompileRecord::default()
    };
    tracing::debug!(kernel = kernel.name, %target, ms = record.compile_ms, "compiled");
    Ok(Artifact { target, symbol: kernel.name.clone(), code: made.bytes, record })
}

/// Compiles up to `stop`, contained; a failure leaves a reproducer.
pub fn make(kernel: &Kernel, target: Target, options: &Options, stop: Stop) -> Result<Made, Error> {
    ASKED.store(true, Ordering::Relaxed);
    let start = Instant::now();
    let refused = |refusal| Error::Refused { kernel: kernel.name.clone(), target, refusal };
    let warnings = verify::verify(kernel, target).map_err(refused)?;
    let verified = StageTime { stage: Stage::Verify.name().into(), ms: milliseconds(start) };

    let (outcome, stage) = contained(kernel, target, options, stop);
    let (blame, fatal) = match outcome {
        Ok(Ok(mut made)) => {
            made.stages.insert(0, verified);
            made.warnings = warnings;
            return Ok(made);
        }
        Ok(Err(blame)) => (blame, false),
        Err(Lost::Fatal(message)) => (Blame { op: named_op(kernel, &message), message }, true),
        Err(Lost::Panic(message)) => (Blame::from(format!("panic: {message}")), false),
        Err(Lost::Thread(e)) => (Blame::from(format!("no thread to compile on: {e}")), false),
    };
    // The stages are deterministic: whatever failed later, the MLIR can be made again, unless it was that.
    let mlir = match stage {
        Stage::Mlir => None,
        _ => mlir_again(kernel, target, options),
    };
    let op = blame.op.or_else(|| named_op(kernel, &blame.message));
    let op = op.or_else(|| lower::native::blamed(kernel, target.chip(), &blame.message));
    let location = op.filter(|n| (1..=kernel.op_count()).contains(&n.0)).map(|n| kernel.location(n));
    let mut failure = Failure {
        kernel: kernel.name.clone(),
        target,
        stage,
        location,
        message: blame.message,
        fatal,
        reproducer: Err("not written".into()),
    };
    failure.reproducer =
        reproducer::write(kernel, target, options, mlir, &format!("stage {stage}: {}", failure.message));
    Err(Error::Failed(Box::new(failure)))
}

/// All stages after the verifier, on a thread of their own, and the stage that ran last.
fn contained(
    kernel: &Kernel,
    target: Target,
    options: &Options,
    stop: Stop,
) -> (Result<Result<Made, Blame>, Lost>, Stage) {
    let running: Running = Arc::new(Mutex::new(Stage::Mlir));
    let (kernel, options, shared) = (kernel.clone(), options.clone(), Arc::clone(&running));
    let outcome = contain::run(move || {
        let mut clock = Clock { running: shared, times: vec![] };
        stages(&kernel, target, &options, stop, &mut clock)
    });
    let stage = *running.lock().unwrap_or_else(PoisonError::into_inner);
    (outcome, stage)
}

/// The kernel's MLIR, if it can be had.
fn mlir_again(kernel: &Kernel, target: Target, options: &Options) -> Option<String> {
    let made = contained(kernel, target, options, Stop::Mlir).0.ok()?.ok()?;
    String::from_utf8(made.bytes).ok()
}

/// The operation that a message of LLVM's names as `KERNEL.kir:N`.
fn named_op(kernel: &Kernel, message: &str) -> Option<lathe_dsl::ir::OpNumber> {
    let file = format!("{}:", lower::file_name(kernel));
    let (_, rest) = message.split_once(&file)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|n| *n > 0).map(lathe_dsl::ir::OpNumber)
}

/// All stages after the verifier, on the compile thread.
fn stages(kernel: &Kernel, target: Target, options: &Options, stop: Stop, clock: &mut Clock) -> Result<Made, Blame> {
    let backend = backend(target);
    let file = lower::file_name(kernel);
    let (mlir, mut module);
    {
        let start = Instant::now();
        mlir = Mlir::new();
        module = Module::new(Location::new(&mlir.context, &file, 0, 0));
        clock.stage(Stage::Mlir, || {
            lower::lower(&mlir.context, &module, kernel, &*backend)?;
            sabotage_mlir(options, &mlir, &module)?;
            mlir.verify(&module)
        })?;
        if let Some(time) = clock.times.last_mut() {
            // Making the context belongs to it.
            time.ms = milliseconds(start);
        }
    }
    let text = |bytes: Vec<u8>, clock: &mut Clock| Made {
        bytes,
        stages: std::mem::take(&mut clock.times),
        warnings: vec![],
        resources: Resources::default(),
    };
    if stop == Stop::Mlir {
        return Ok(text(module.as_operation().to_string().into_bytes(), clock));
    }

    clock.stage(Stage::Passes, || mlir.run(&mut module, &backend.pipeline(target)))?;
    if lower::has_loop_hints(kernel) {
        mlir.keep_loop_hints(&mut module);
    }

    let llvm = Llvm::new();
    let (machine, unit) = clock.stage(Stage::Llvm, || -> Result<_, Blame> {
        let machine = Machine::borrow(target, backend.features(kernel))?;
        let unit = llvm.translate(&gpu_module(&module)?, &file, &machine)?;
        mlir.outcome(unit.is_some(), "MLIR made no LLVM IR")?;
        let unit = unit.ok_or_else(|| "MLIR made no LLVM IR".to_owned())?;
        Ok((machine, unit))
    })?;
    if stop == Stop::LlvmIr {
        return Ok(text(unit.print_to_string().to_string().into_bytes(), clock));
    }

    clock.stage(Stage::Optimise, || {
        llvm.optimise(&unit, &machine)?;
        if target.chip().arch == Arch::Amdgpu { llvm.keep_signed_zeros(&unit) } else { Ok(()) }
    })?;

    let output = if stop == Stop::Assembly { Output::Assembly } else { backend.output() };
    let emitted = clock.stage(Stage::Codegen, || llvm.emit(&unit, &machine, output))?;
    machine.give_back();
    if stop == Stop::Assembly {
        return Ok(text(emitted, clock));
    }

    let (code, resources) = clock.stage(Stage::Link, || -> Result<_, String> {
        let code = backend.finish(emitted)?;
        let resources = backend.resources(target, kernel, &code)?;
        Ok((code, resources))
    })?;
    Ok(Made { bytes: code, stages: std::mem::take(&mut clock.times), warnings: vec![], resources })
}

/// The one `gpu.module` inside the module.
fn gpu_module<'c, 'a>(module: &'a Module<'c>) -> Result<OperationRef<'c, 'a>, Blame> {
    module.body().first_operation().ok_or_else(|| Blame::from("the passes left no gpu.module".to_owned()))
}

#[cfg(not(test))]
fn sabotage_mlir(_: &Options, _: &Mlir, _: &Module<'_>) -> Result<(), Blame> {
    Ok(())
}

#[cfg(test)]
use crate::tests::sabotage_mlir;
