//! Why the program ends with a status other than 0: one line, and which status.

use clap::error::ErrorKind;

/// The end of a failed request.
pub struct Failure {
    /// Exit status.
    pub status: u8,
    /// One line for standard error, unless everything is said already.
    pub message: Option<String>,
}

/// The request is wrong: nothing was done.
const WRONG_REQUEST: u8 = 2;

/// The request was fine, its outcome is not.
const FAILED: u8 = 1;

impl Failure {
    /// The request names something that does not exist or is not allowed.
    pub fn request(error: impl std::fmt::Display) -> Self {
        Self { status: WRONG_REQUEST, message: Some(one_line(&error.to_string())) }
    }

    /// Compiling or running failed.
    pub fn outcome(error: impl std::fmt::Display) -> Self {
        Self { status: FAILED, message: Some(one_line(&error.to_string())) }
    }

    /// A check failed; the report says which.
    pub fn check() -> Self {
        Self { status: FAILED, message: None }
    }

    /// What the argument parser says: help and version are no failures; an error is cut to its first paragraph.
    pub fn from_clap(error: clap::Error) -> Result<(), Self> {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            // Standard output may be closed already (`lathe --help | head`); there is nobody to tell.
            let _ = error.print();
            return Ok(());
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Err(Self::request("no command given; commands: list, run, compile (see `lathe --help`)"));
        }
        let text = error.to_string();
        let paragraph = text.split("\n\n").next().unwrap_or_default();
        Err(Self::request(paragraph.trim_start_matches("error: ")))
    }
}

/// Messages of compilers span lines; ours are one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
