//! `lathe compile`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use lathe_codegen::Level;
use lathe_dsl::Target;
use lathe_kernels::registry::{Build, Entry};
use lathe_runtime::Error;
use lathe_runtime::jit::{Code, Jit, Llvm};

use crate::failure::Failure;
use crate::run::compile_line;

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
    /// Which form to write; without it only the compile record is printed.
    #[arg(long, value_enum)]
    emit: Option<Emit>,
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
enum Emit {
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
        let compiled = build.compile(&Jit::new(Llvm::default()), target).map_err(|error| match error {
            Error::Trace(_) => Failure::request(error),
            _ => Failure::outcome(error),
        })?;

        // A form on standard output leaves no room there for anything else.
        let mut to_stdout = false;
        if let Some(emit) = self.emit {
            let bytes = form(build.as_ref(), target, emit, compiled.code())?;
            match &self.output {
                Some(path) => std::fs::write(path, bytes)
                    .map_err(|e| Failure::request(format!("cannot write {}: {e}", path.display())))?,
                None => {
                    to_stdout = true;
                    std::io::stdout()
                        .write_all(&bytes)
                        .map_err(|e| Failure::request(format!("cannot write to standard output: {e}")))?;
                }
            }
        }
        let record = compiled.record();
        let mut lines = vec![];
        if self.json {
            lines.push(serde_json::to_string(record).map_err(Failure::outcome)?);
        } else {
            lines.push(format!("{} for {}: {}", build.key(), record.target, compile_line(record)));
            if self.timings {
                lines.extend(record.stages.iter().map(|s| format!("  {:<10} {:>9.3} ms", s.stage, s.ms)));
            }
        }
        for line in lines {
            if to_stdout {
                eprintln!("{line}");
            } else {
                println!("{line}");
            }
        }
        Ok(())
    }
}

fn form(build: &dyn Build, target: Target, emit: Emit, code: &Code) -> Result<Vec<u8>, Failure> {
    let kernel = build.trace(target).map_err(Failure::request)?;
    let level = match emit {
        Emit::Kir => return Ok(kernel.to_string().into_bytes()),
        Emit::Obj => match code {
            Code::Object(artifact) => return Ok(artifact.code.clone()),
            _ => Level::Obj,
        },
        Emit::Mlir => Level::Mlir,
        Emit::Llvm => Level::LlvmIr,
        Emit::Asm => Level::Asm,
    };
    lathe_codegen::emit(&kernel, target, &Llvm::default().options, level).map_err(Failure::outcome)
}
