//! Running other programs, and reporting steps that do.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A program with its arguments, run in the root of the checkout.
pub struct Command {
    inner: std::process::Command,
    line: String,
}

/// `cargo VERB`, the cargo that runs this program.
pub fn cargo(verb: &str) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Command { line: "cargo".to_owned(), ..command(program) }.arg(verb)
}

/// A program by name or path.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut inner = std::process::Command::new(&program);
    inner.current_dir(crate::root());
    Command { inner, line: program.as_ref().to_string_lossy().into_owned() }
}

impl Command {
    /// Adds an argument.
    pub fn arg(mut self, arg: &str) -> Self {
        self.inner.arg(arg);
        self.line = format!("{} {arg}", self.line);
        self
    }

    /// Adds arguments.
    pub fn args<'a>(self, args: impl IntoIterator<Item = &'a str>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.inner.env(name, value);
        self.line =
            format!("{name}={} {}", if value.contains(' ') { format!("'{value}'") } else { value.into() }, self.line);
        self
    }

    /// Shows the command, runs it with its output going where ours goes; an error unless it ends with 0.
    pub fn run(mut self) -> Result<(), String> {
        println!("$ {}", self.line);
        let status = self.inner.status().map_err(|e| format!("cannot start `{}`: {e}", self.line))?;
        if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", self.line)) }
    }

    /// What the command prints; an error with what it said unless it ends with 0.
    pub fn output(mut self) -> Result<String, String> {
        let output = self.inner.output().map_err(|e| format!("cannot start `{}`: {e}", self.line))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{}` ended with {}: {}", self.line, output.status, said.trim_end()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Whether the command can be run and ends with 0, showing nothing.
    pub fn quiet(mut self) -> bool {
        let status = self.inner.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

/// The steps done so far and what each took.
#[derive(Default)]
pub struct Report(Vec<(&'static str, Duration, bool)>);

impl Report {
    /// Does one step under its name; its error is prefixed with that.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        println!("\n=== {name}");
        let start = Instant::now();
        let done = work();
        self.0.push((name, start.elapsed(), done.is_ok()));
        done.map_err(|error| format!("{name}: {error}"))
    }

    /// One line a step.
    pub fn print(&self) {
        println!();
        for (name, time, ok) in &self.0 {
            println!("{:7.1} s  {}  {name}", time.as_secs_f64(), if *ok { "ok    " } else { "FAILED" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_step_names_itself_and_what_ended_how() {
        let mut report = Report::default();
        let error = report.step("lints", || command("sh").args(["-c", "exit 3"]).run()).unwrap_err();
        assert_eq!(error, "lints: `sh -c exit 3` ended with exit status: 3");
        assert!(report.step("tests", || Ok(())).is_ok());
        assert_eq!(
            report.0.iter().map(|(name, _, ok)| (*name, *ok)).collect::<Vec<_>>(),
            [("lints", false), ("tests", true)]
        );
    }

    #[test]
    fn a_missing_program_is_an_error() {
        assert!(command("/nonexistent/program").run().unwrap_err().starts_with("cannot start `/nonexistent/program`"));
        assert!(!command("/nonexistent/program").quiet());
    }

    #[test]
    fn output_is_what_the_program_printed_or_said() {
        assert_eq!(
            command("sh").args(["-c", "echo $LATHE_WORD"]).env("LATHE_WORD", "turn").output().unwrap(),
            "turn\n"
        );
        let error = command("sh").args(["-c", "echo no >&2; exit 1"]).output().unwrap_err();
        assert!(error.ends_with("exit status: 1: no"), "{error}");
    }
}
