//! `lathe`: lists, compiles, bundles and runs the shipped kernels.
//!
//! Exit status: 0 done, 1 a check failed or the compiler did, 2 the request itself is wrong.

#![forbid(unsafe_code)]

mod bundle;
mod cache;
mod compile;
mod doctor;
mod env;
mod failure;
mod interp;
mod keys;
mod list;
mod opt;
mod output;
mod picture;
mod run;
mod setup;
mod text;
mod trace;
mod warm;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use failure::Failure;

/// Lists, compiles, bundles and runs the kernels that Lathe ships.
#[derive(Parser)]
#[command(name = "lathe", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Kernels, their stages, their key fields and defaults.
    List(list::List),
    /// Compiles a kernel, runs it on real input and checks every output.
    Run(run::Run),
    /// What a kernel costs on an AMD chip, by source line and instruction, without a GPU.
    Trace(trace::Trace),
    /// Compiles a kernel for a chip and shows one of its forms.
    Compile(compile::Compile),
    /// Compiles a kernel that a file holds as Kernel IR text.
    Opt(opt::Opt),
    /// Runs a kernel that a file holds as Kernel IR text on the CPU device and shows the buffers it wrote.
    Interp(interp::Interp),
    /// Compiles the kernels of a keys file into the disk cache, on all cores.
    Warm(warm::Warm),
    /// Writes and shows files of compiled kernels, for programs without a compiler.
    #[command(subcommand)]
    Bundle(bundle::Bundle),
    /// Shows, checks and empties the disk cache.
    #[command(subcommand)]
    Cache(cache::Cache),
    /// Environment variables, their defaults and values.
    Env(env::Env),
    /// What this machine has for Lathe, and how to get what is missing.
    Doctor(doctor::Doctor),
    /// Compiles one kernel for another process that wants none of a compiler's crashes.
    #[command(hide = true)]
    CompileWorker,
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Command::List(command) => command.execute(),
            Command::Run(command) => command.execute(),
            Command::Trace(command) => command.execute(),
            Command::Compile(command) => command.execute(),
            Command::Opt(command) => command.execute(),
            Command::Interp(command) => command.execute(),
            Command::Warm(command) => command.execute(),
            Command::Bundle(command) => command.execute(),
            Command::Cache(command) => command.execute(),
            Command::Env(command) => command.execute(),
            Command::Doctor(command) => command.execute(),
            Command::CompileWorker => lathe_runtime::jit::isolated::serve().map_err(Failure::request),
        },
        Err(error) => Failure::from_clap(error, &Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = &failure.message {
                output::note(format_args!("lathe: {message}"));
            }
            ExitCode::from(failure.status)
        }
    }
}

/// A `--set FIELD=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(field, value)| (field.to_owned(), value.to_owned()))
        .ok_or_else(|| "a setting is FIELD=VALUE, such as ranks=8".to_owned())
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}
