//! `lathe`: lists, compiles and runs the shipped kernels.
//!
//! Exit status: 0 done, 1 a check failed or the compiler did, 2 the request itself is wrong.

#![forbid(unsafe_code)]

mod compile;
mod failure;
mod list;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Lists, compiles and runs the kernels that Lathe ships.
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
    /// Compiles a kernel for a chip and shows one of its forms.
    Compile(compile::Compile),
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Command::List(command) => command.execute(),
            Command::Run(command) => command.execute(),
            Command::Compile(command) => command.execute(),
        },
        Err(error) => Failure::from_clap(error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = &failure.message {
                eprintln!("lathe: {message}");
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
