//! `lathe compile`.

use std::path::PathBuf;

use clap::ValueEnum;
use lathe_codegen::{Level, Options};
use lathe_dsl::artifact::CompileRecord;
use lathe_dsl::{Target, ir};
use lathe_kernels::registry::{Build, Entry};
use lathe_runtime::Error;
use lathe_runtime::jit::{Code, Compiler as _, Llvm};
use lathe_runtime::key::DiskKey;

use crate::failure::Failure;
use crate::output;
use crate::output::say;
use crate::run::compile_line;
use crate::setup::{self, CacheArgs};

#[derive(clap::Args)]
pub struct Compile {
    /// Which kernel; `lathe list` names them.
    kernel: String,
    /// Sets a key field.
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = crate::setting)]
    settings: Vec<(String, String)>,
    /// Chip to compile for.
    #[arg(long)]
    target: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    cache: CacheArgs,
}

/// What is written and printed of a compile.
#[derive(clap::Args)]
pub struct Output {
    /// Which form to write; without it only the compile record is printed.
    #[arg(long, value_enum)]
    pub emit: Option<Emit>,
    /// File to write that form to, instead of standard output.
    #[arg(short, value_name = "FILE", requires = "emit")]
    output: Option<PathBuf>,
    /// Print the time of each compiler stage.
    #[arg(long)]
    timings: bool,
    /// Print the compile record as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Forms of a kernel, from source to object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Emit {
    /// Kernel IR.
    Kir,
    /// MLIR, as lowered from Kernel IR.
    Mlir,
    /// LLVM IR, before optimisation.
    Llvm,
    /// Assembly (AMD) or PTX (NVIDIA).
    Asm,
    /// Linked code object (AMD) or PTX (NVIDIA).
    Obj,
}

impl Compile {
    pub fn execute(&self) -> Result<(), Failure> {
        let kernel = Entry::find(&self.kernel).map_err(Failure::request)?;
        let build = kernel.build(&self.settings).map_err(Failure::request)?;
        let target: Target = self.target.parse().map_err(Failure::request)?;
        // Whatever comes before the object is shown even where the compiler then fails.
        if let Some(emit) = self.output.emit.filter(|emit| *emit != Emit::Obj) {
            self.output.write(&form(build.as_ref(), target, emit)?)?;
        }
        let compiled = build.compile(&self.cache.jit()?, target).map_err(|error| match error {
            Error::Trace(_) => Failure::request(error),
            _ => Failure::outcome(error),
        })?;
        if let (Some(Emit::Obj), Code::Object(artifact)) = (self.output.emit, compiled.code()) {
            self.output.write(&artifact.code)?;
        }
        self.output.report(&build.key(), compiled.record())
    }
}

impl Output {
    /// Prints the record of the kernel `what`, and what it warns of.
    pub fn report(&self, what: &str, record: &CompileRecord) -> Result<(), Failure> {
        output::warn(&record.warnings);
        // A form on standard output leaves no room there for anything else.
        let to_stdout = self.emit.is_some() && self.output.is_none();
        let mut lines = vec![];
        if self.json {
            lines.push(serde_json::to_string(record).map_err(Failure::outcome)?);
        } else {
            lines.push(format!("{what} for {}: {}", record.target, compile_line(record)));
            if self.timings {
                lines.extend(record.stages.iter().map(|s| format!("  {:<10} {:>9.3} ms", s.stage, s.ms)));
            }
        }
        for line in lines {
            if to_stdout {
                output::note(format_args!("{line}"));
            } else {
                say!("{line}");
            }
        }
        Ok(())
    }

    /// Writes a form where it is wanted.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(path) = &self.output else { return output::bytes(bytes) };
        std::fs::write(path, bytes).map_err(|e| Failure::request(format!("cannot write {}: {e}", path.display())))
    }
}

fn form(build: &dyn Build, target: Target, emit: Emit) -> Result<Vec<u8>, Failure> {
    let mut kernel = build.trace(target).map_err(Failure::request)?;
    let llvm = setup::llvm()?;
    if emit != Emit::Kir {
        // Under the name that its entry point has in the object.
        kernel.name = symbol(&llvm, &kernel, target);
    }
    emitted(&kernel, target, &llvm.options, emit).map_err(Failure::outcome)
}

/// A form of a kernel.
pub fn emitted(
    kernel: &ir::Kernel,
    target: Target,
    options: &Options,
    emit: Emit,
) -> Result<Vec<u8>, lathe_codegen::Error> {
    let level = match emit {
        Emit::Kir => return Ok(kernel.to_string().into_bytes()),
        Emit::Mlir => Level::Mlir,
        Emit::Llvm => Level::LlvmIr,
        Emit::Asm => Level::Asm,
        Emit::Obj => Level::Obj,
    };
    lathe_codegen::emit(kernel, target, options, level)
}

fn symbol(llvm: &Llvm, kernel: &ir::Kernel, target: Target) -> String {
    let key = llvm.fingerprint().map(|f| DiskKey::of(kernel, target, &llvm.flags(), &f));
    key.map_or_else(|| kernel.name.clone(), |key| key.symbol(&kernel.name))
}
