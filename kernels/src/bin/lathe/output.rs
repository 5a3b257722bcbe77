//! Standard output and standard error, which may be closed, full, or anything else.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

use crate::failure::Failure;

/// Prints a line to standard output; ends the function with a [`Failure`] if it cannot be written.
macro_rules! say {
    ($($format:tt)*) => { $crate::output::line(format_args!($($format)*))? };
}
pub(crate) use say;

/// Writes a line to standard output.
pub fn line(text: Arguments<'_>) -> Result<(), Failure> {
    bytes(format!("{text}\n").as_bytes())
}

/// Writes bytes to standard output.
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        // Whoever read it has seen enough (`lathe list | head -1`).
        ErrorKind::BrokenPipe => Failure::unread(),
        _ => Failure::request(format!("cannot write to standard output: {error}")),
    })
}

/// Writes what a compile warns of to standard error.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        note(format_args!("warning: {warning}"));
    }
}

/// Writes a line to standard error; if that cannot be written there is nowhere left to tell.
pub fn note(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "{text}");
}
