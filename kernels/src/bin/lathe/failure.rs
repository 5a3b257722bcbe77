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

    /// Nobody reads the output any more.
    pub fn unread() -> Self {
        Self { status: WRONG_REQUEST, message: None }
    }

    /// A check failed; the report says which.
    pub fn check() -> Self {
        Self { status: FAILED, message: None }
    }

    /// What the argument parser says: help and version are no failures; an error is cut to its first paragraph.
    pub fn from_clap(error: clap::Error, lathe: &clap::Command) -> Result<(), Self> {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            // Standard output may be closed already (`lathe --help | head`); there is nobody to tell.
            let _ = error.print();
            return Ok(());
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            // The help that the parser made tells in its usage line which command it is about.
            let usage = error.to_string();
            let mut words =
                usage.lines().find_map(|l| l.strip_prefix("Usage: ")).unwrap_or_default().split_whitespace();
            let mut path = words.next().unwrap_or("lathe").to_owned();
            let mut command = lathe;
            while let Some(inner) = words.next().and_then(|word| command.find_subcommand(word)) {
                path = format!("{path} {}", inner.get_name());
                command = inner;
            }
            let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
            let known: Vec<&str> = shown.map(clap::Command::get_name).collect();
            let known = known.join(", ");
            return Err(Self::request(format!("no command given; commands: {known} (see `{path} --help`)")));
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
