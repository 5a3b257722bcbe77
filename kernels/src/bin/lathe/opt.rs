//! `lathe opt`.

use std::path::PathBuf;

use lathe_codegen::Error;
use lathe_dsl::artifact::CacheSource;

use crate::compile::{Emit, Output, emitted};
use crate::failure::Failure;
use crate::{setup, text};

#[derive(clap::Args)]
pub struct Opt {
    /// File with one kernel as Kernel IR text.
    file: PathBuf,
    /// Chip to compile for; without it, the first one with the kernel's wave width.
    #[arg(long)]
    target: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Opt {
    pub fn execute(&self) -> Result<(), Failure> {
        let kernel = text::read(&self.file)?;
        let target = text::target(&kernel, self.target.as_deref())?;
        let options = setup::llvm()?.options;
        let failure = |error: Error| match error {
            Error::Refused { .. } => Failure::request(error),
            _ => Failure::outcome(error),
        };
        // Whatever comes before the object is shown even where the compiler then fails.
        if let Some(emit) = self.output.emit.filter(|emit| *emit != Emit::Obj) {
            self.output.write(&emitted(&kernel, target, &options, emit).map_err(failure)?)?;
        }
        let artifact = lathe_codegen::compile(&kernel, target, &options).map_err(failure)?;
        if self.output.emit == Some(Emit::Obj) {
            self.output.write(&artifact.code)?;
        }
        let mut record = artifact.record;
        record.cache = CacheSource::Miss;
        self.output.report(&kernel.name, &record)
    }
}
