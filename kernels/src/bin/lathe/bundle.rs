//! `lathe bundle`.

use std::path::PathBuf;

use lathe_runtime::bundle::{self, BundleWriter};
use serde_json::json;

use crate::failure::Failure;
use crate::output::say;
use crate::setup::CacheArgs;
use crate::{keys, setup, size, warm};

#[derive(clap::Subcommand)]
pub enum Bundle {
    /// Compiles the kernels of a keys file and writes them as one bundle.
    Build(Build),
    /// Shows what a bundle has, and checks every kernel's checksum.
    List(List),
}

#[derive(clap::Args)]
pub struct Build {
    /// File to write.
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// Keys file: on each line KERNEL [FIELD=VALUE]..., comments after `#`.
    #[arg(long, value_name = "FILE")]
    keys: PathBuf,
    /// What to compile for, comma separated: chips, and `cpu` or `cpu:CHIP` for the interpreter.
    #[arg(long, required = true, value_delimiter = ',')]
    targets: Vec<String>,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct List {
    /// Bundle to show.
    file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Bundle {
    pub fn execute(&self) -> Result<(), Failure> {
        match self {
            Self::Build(build) => build.execute(),
            Self::List(list) => list.execute(),
        }
    }
}

impl Build {
    fn execute(&self) -> Result<(), Failure> {
        let places = setup::places(&self.targets)?;
        let builds = keys::read(&self.keys)?;
        let made = warm::make(&builds, &places, &self.cache.jit()?)?;
        made.check()?;
        let mut writer = BundleWriter::new();
        for (build, _, compiled) in &made.kernels {
            writer.add_named(build.name(), &build.fields(), compiled).map_err(Failure::outcome)?;
        }
        writer.write(&self.output).map_err(Failure::request)?;
        let bytes = std::fs::metadata(&self.output).map_err(Failure::outcome)?.len();
        if self.json {
            say!("{}", json!({ "bundle": self.output, "kernels": writer.len(), "bytes": bytes }));
        } else {
            say!("{}: {} kernels, {}", self.output.display(), writer.len(), size(bytes));
        }
        Ok(())
    }
}

impl List {
    fn execute(&self) -> Result<(), Failure> {
        let bundle = bundle::Bundle::open(&self.file).map_err(Failure::request)?;
        bundle.verify().map_err(Failure::request)?;
        if self.json {
            let kernels: Vec<_> = bundle
                .entries()
                .map(|e| {
                    let key: serde_json::Map<_, _> = e.key.into_iter().map(|(f, v)| (f, v.into())).collect();
                    json!({
                        "kernel": e.kernel, "key": key, "target": e.place, "offset": e.offset, "bytes": e.length,
                        "blake3": e.checksum,
                    })
                })
                .collect();
            say!("{}", json!({ "bundle": self.file, "kernels": kernels }));
            return Ok(());
        }
        for e in bundle.entries() {
            let key: Vec<String> = e.key.iter().map(|(f, v)| format!("{f}={v}")).collect();
            say!("{} {{{}}} for {}: {}", e.kernel, key.join(", "), e.place, size(e.length));
        }
        Ok(())
    }
}
