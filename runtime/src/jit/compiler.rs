//! The one trait through which the runtime compiles.

use std::sync::Arc;
use std::time::Instant;

use lathe_dsl::artifact::{Artifact, CompileRecord, Resources, StageTime};
use lathe_dsl::{Target, ir};

use crate::error::Error;
use crate::interp::Program;
use crate::key::Fingerprint;

/// What a compiler makes and a device runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Code {
    /// For the interpreter.
    Program(Arc<Program>),
    /// Machine code, or text that a driver turns into it.
    Object(Box<Artifact>),
}

/// Turns verified Kernel IR into something that a device runs.
pub trait Compiler: Send + Sync {
    /// Compiles `kernel`, which was traced for `target`. The caller fills in names and total times of the record.
    ///
    /// # Errors
    /// What the compiler says, wrapped by [`Error::compile`].
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error>;

    /// What its code depends on besides the kernel, the chip and [`Compiler::flags`]; `None` if it makes nothing that could be
    /// stored. With one, the kernel's entry point is called after its key
    /// ([`DiskKey::symbol`](crate::key::DiskKey::symbol)), stored or not.
    fn fingerprint(&self) -> Option<Fingerprint> {
        None
    }

    /// Settings that decide the code, as text.
    fn flags(&self) -> String {
        String::new()
    }

    /// Work that makes a process's first compile as fast as the later ones; done on a background thread.
    fn warm_up(&self) -> Option<Box<dyn FnOnce() + Send>> {
        None
    }
}

impl<C: Compiler + ?Sized> Compiler for Box<C> {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        (**self).compile(kernel, target)
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        (**self).fingerprint()
    }

    fn flags(&self) -> String {
        (**self).flags()
    }

    fn warm_up(&self) -> Option<Box<dyn FnOnce() + Send>> {
        (**self).warm_up()
    }
}

/// Compiles for the CPU device: flattens Kernel IR into the interpreter's program.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter;

impl Compiler for Interpreter {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        let start = Instant::now();
        let program = Program::new(kernel).map_err(Error::compile)?.on(target.chip().arch);
        let stages = vec![StageTime { stage: "flatten".into(), ms: start.elapsed().as_secs_f64() * 1e3 }];
        let resources = Resources { lds_bytes: kernel.lds_layout().1, ..Default::default() };
        Ok((Code::Program(Arc::new(program)), CompileRecord { stages, resources, ..CompileRecord::default() }))
    }
}

/// Compiles to machine code through MLIR and LLVM, in this process.
#[cfg(feature = "jit")]
#[derive(Clone, Debug, Default)]
pub struct Llvm {
    /// Compiler flags.
    pub options: lathe_codegen::Options,
}

#[cfg(feature = "jit")]
impl Compiler for Llvm {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        let artifact = lathe_codegen::compile(kernel, target, &self.options).map_err(Error::compile)?;
        let record = artifact.record.clone();
        Ok((Code::Object(Box::new(artifact)), record))
    }

    // The options of today decide where reproducers go, not the code: there are no flags.
    fn fingerprint(&self) -> Option<Fingerprint> {
        let toolchain = lathe_codegen::toolchain();
        Some(Fingerprint { llvm: toolchain.llvm, lathe: toolchain.lathe.to_owned() })
    }

    fn warm_up(&self) -> Option<Box<dyn FnOnce() + Send>> {
        Some(Box::new(lathe_codegen::warm_up))
    }
}
