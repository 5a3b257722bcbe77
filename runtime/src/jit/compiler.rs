//! The one trait through which the runtime compiles.

#[cfg(feature = "jit")]
use lathe_dsl::artifact::Artifact;
use std::sync::Arc;
use std::time::Instant;

use lathe_dsl::artifact::{CompileRecord, StageTime};
use lathe_dsl::{Target, ir};

use crate::error::Error;
use crate::interp::Program;

/// What a compiler makes and a device runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Code {
    /// For the interpreter.
    Program(Arc<Program>),
    /// Machine code, or text that a driver turns into it.
    #[cfg(feature = "jit")]
    Object(Artifact),
}

/// Turns verified Kernel IR into something that a device runs.
pub trait Compiler: Send + Sync {
    /// Compiles `kernel`, which was traced for `target`. The caller fills in names and total times of the record.
    ///
    /// # Errors
    /// What the compiler says, wrapped by [`Error::compile`].
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error>;
}

/// Compiles for the CPU device: flattens Kernel IR into the interpreter's program.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter;

impl Compiler for Interpreter {
    fn compile(&self, kernel: &Arc<ir::Kernel>, _: Target) -> Result<(Code, CompileRecord), Error> {
        let start = Instant::now();
        let program = Program::new(kernel).map_err(Error::compile)?;
        let stages = vec![StageTime { stage: "flatten", ms: start.elapsed().as_secs_f64() * 1e3 }];
        let resources = lathe_dsl::artifact::Resources { lds_bytes: kernel.lds_layout().1, ..Default::default() };
        Ok((Code::Program(Arc::new(program)), CompileRecord { stages, resources, ..CompileRecord::default() }))
    }
}

/// Compiles to machine code through MLIR and LLVM, in this process.
#[cfg(feature = "jit")]
#[derive(Clone, Debug, Default)]
pub struct Llvm {
    /// Compiler flags; part of what decides the code.
    pub options: lathe_codegen::Options,
}

#[cfg(feature = "jit")]
impl Compiler for Llvm {
    fn compile(&self, kernel: &Arc<ir::Kernel>, target: Target) -> Result<(Code, CompileRecord), Error> {
        let artifact = lathe_codegen::compile(kernel, target, &self.options).map_err(Error::compile)?;
        let record = artifact.record.clone();
        Ok((Code::Object(artifact), record))
    }
}
