//! `lathe warm`, and the compiling of many kernels that `lathe bundle build` shares with it.

use std::io::{IsTerminal as _, stderr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use lathe_dsl::artifact::CacheSource;
use lathe_kernels::registry::Build;
use lathe_runtime::bundle::Place;
use lathe_runtime::cache::CacheMode;
use lathe_runtime::jit::{Compiled, Interpreter, Jit, on_all_cores};
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::output::say;
use crate::{keys, setup};

#[derive(clap::Args)]
pub struct Warm {
    /// Keys file: on each line KERNEL [FIELD=VALUE]..., comments after `#`.
    file: PathBuf,
    /// Chips to compile for, comma separated.
    #[arg(long, required = true, value_delimiter = ',')]
    targets: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Warm {
    pub fn execute(&self) -> Result<(), Failure> {
        let targets = setup::chips(&self.targets)?;
        let builds = keys::read(&self.file)?;
        let cache = setup::environment_cache()?;
        if cache.options().mode != CacheMode::ReadWrite {
            let mode = cache.options().mode;
            return Err(Failure::request(format!("LATHE_CACHE={mode}: a cache that is not written cannot be warmed")));
        }
        let cache = Arc::new(cache);
        let jit = Jit::with_cache(setup::llvm()?, cache.clone());
        let places: Vec<Place> = targets.into_iter().map(Place::from).collect();
        let start = Instant::now();
        let made = make(&builds, &places, &jit)?;
        let of = |source| made.kernels.iter().filter(|(_, _, c)| c.cache() == source).count();
        let (compiled, disk, waited) = (of(CacheSource::Miss), of(CacheSource::Disk), of(CacheSource::Waited));
        let seconds = start.elapsed().as_secs_f64();
        if self.json {
            let report = json!({
                "dir": cache.dir(), "kernels": made.total, "compiled": compiled, "cached": disk, "waited": waited,
                "failed": made.failures, "seconds": seconds,
            });
            say!("{report}");
        } else {
            let waited = if waited > 0 { format!(", {waited} compiled by others") } else { String::new() };
            let dir = cache.dir().display();
            say!("{dir}: {compiled} compiled, {disk} there already{waited}, in {seconds:.2} s");
        }
        made.check()?;
        match cache.stats().failed_writes {
            0 => Ok(()),
            n => {
                Err(Failure::outcome(format!("{n} compiled kernels could not be written to {}", cache.dir().display())))
            }
        }
    }
}

/// What came of compiling many kernels.
pub struct Made<'a> {
    /// Those that were compiled, with what they were compiled for.
    pub kernels: Vec<(&'a dyn Build, Place, Arc<Compiled>)>,
    /// Why the others were not, one message each.
    pub failures: Vec<String>,
    /// All that were asked for.
    pub total: usize,
    cancelled: bool,
}

impl Made<'_> {
    /// Fails unless all were compiled.
    pub fn check(&self) -> Result<(), Failure> {
        if let Some(first) = self.failures.first() {
            let (failed, total) = (self.failures.len(), self.total);
            return Err(Failure::outcome(format!("{failed} of {total} kernels failed, the first: {first}")));
        }
        if self.cancelled {
            return Err(Failure::outcome(format!("cancelled after {} of {} kernels", self.kernels.len(), self.total)));
        }
        Ok(())
    }
}

/// Compiles every build for every place on all cores, telling standard error how far it has come. Ctrl-C ends it
/// after the kernels that have begun.
pub fn make<'a>(builds: &'a [Box<dyn Build>], places: &[Place], llvm: &Jit) -> Result<Made<'a>, Failure> {
    let jobs: Vec<(&dyn Build, Place)> =
        builds.iter().flat_map(|b| places.iter().map(move |p| (b.as_ref(), *p))).collect();
    let cancel = Arc::new(AtomicBool::new(false));
    let handler = cancel.clone();
    ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed))
        .map_err(|e| Failure::outcome(format!("cannot listen for Ctrl-C: {e}")))?;

    let interpreter = Jit::new(Interpreter);
    let report = Report::new(jobs.len());
    let work = |(build, place): &(&dyn Build, Place)| {
        let start = Instant::now();
        let jit = if let Place::Cpu(_) = place { &interpreter } else { llvm };
        let result = build.compile(jit, place.target());
        let label = format!("{} {{{}}} for {place}", build.name(), build.key());
        let ms = start.elapsed().as_secs_f64() * 1e3;
        report.done(&match &result {
            Ok(compiled) if matches!(place, Place::Chip(_)) => format!("{label}: {}, {ms:.1} ms", compiled.cache()),
            Ok(_) => format!("{label}: {ms:.1} ms"),
            Err(_) => format!("{label}: failed"),
        });
        result.map_err(|e| format!("{label}: {e}"))
    };
    let results = on_all_cores(&jobs, work, |_| {}, &cancel);
    report.bar.finish_and_clear();

    let mut made = Made { kernels: vec![], failures: vec![], total: jobs.len(), cancelled: false };
    for ((build, place), result) in jobs.into_iter().zip(results) {
        match result {
            Some(Ok(compiled)) => made.kernels.push((build, place, compiled)),
            Some(Err(message)) => made.failures.push(message),
            None => made.cancelled = true,
        }
    }
    // Chips share a kernel's warnings.
    let mut warnings: Vec<String> = made.kernels.iter().flat_map(|(_, _, c)| &c.record().warnings).cloned().collect();
    warnings.sort();
    warnings.dedup();
    output::warn(&warnings);
    Ok(made)
}

/// Tells how far it has come: a bar on a terminal, else a line a kernel.
struct Report {
    bar: ProgressBar,
    total: usize,
    /// How many are done, under a lock so that lines come in order.
    lines: Option<Mutex<usize>>,
}

impl Report {
    fn new(total: usize) -> Self {
        if !stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), total, lines: Some(Mutex::new(0)) };
        }
        let bar = ProgressBar::new(total as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar, total, lines: None }
    }

    fn done(&self, line: &str) {
        if let Some(lines) = &self.lines {
            let mut done = lines.lock().unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            output::note(format_args!("{done}/{} {line}", self.total));
        } else {
            self.bar.set_message(line.to_owned());
            self.bar.inc(1);
        }
    }
}
