//! `lathe cache`.

use lathe_runtime::cache::{CacheMode, DiskCache};
use serde_json::json;

use crate::failure::Failure;
use crate::output::say;
use crate::{setup, size};

#[derive(clap::Subcommand)]
pub enum Cache {
    /// Where the disk cache is and what it holds.
    Stats(Json),
    /// Reads every entry and removes those that are damaged.
    Verify(Json),
    /// Removes every entry.
    Clear(Json),
}

#[derive(clap::Args)]
pub struct Json {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Cache {
    pub fn execute(&self) -> Result<(), Failure> {
        let cache = setup::environment_cache()?;
        match self {
            Self::Stats(Json { json }) => stats(&cache, *json),
            Self::Verify(Json { json }) => verify(&cache, *json),
            Self::Clear(Json { json }) => clear(&cache, *json),
        }
    }
}

fn stats(cache: &DiskCache, json: bool) -> Result<(), Failure> {
    let s = cache.stats();
    if json {
        let report = json!({
            "dir": s.dir, "mode": s.mode, "entries": s.entries, "bytes": s.bytes, "max_bytes": s.max_bytes,
            "unfinished": s.unfinished,
        });
        say!("{report}");
        return Ok(());
    }
    say!("folder      {}", s.dir.display());
    say!("mode        {}", s.mode);
    say!("entries     {}, {} of at most {}", s.entries, size(s.bytes), size(s.max_bytes));
    say!("unfinished  {}", s.unfinished);
    Ok(())
}

/// Damaged entries are no loss, but a sign of a disk or a program that is not well: status 1.
fn verify(cache: &DiskCache, json: bool) -> Result<(), Failure> {
    let report = cache.verify();
    if json {
        say!("{}", serde_json::to_string(&report).map_err(Failure::outcome)?);
    } else {
        for entry in &report.damaged {
            let done = if entry.removed { "removed" } else { "kept" };
            say!("damaged     {}: {} ({done})", entry.path.display(), entry.reason);
        }
        say!("good        {}, {}", report.good, size(report.bytes));
        say!("damaged     {}", report.damaged.len());
        say!("unfinished  {} removed", report.unfinished_removed);
    }
    if report.damaged.is_empty() { Ok(()) } else { Err(Failure::check()) }
}

fn clear(cache: &DiskCache, json: bool) -> Result<(), Failure> {
    let mode = cache.options().mode;
    if mode != CacheMode::ReadWrite {
        return Err(Failure::request(format!("LATHE_CACHE={mode}: a cache that is not written cannot be cleared")));
    }
    let removed = cache.clear();
    let left = cache.stats().entries;
    if json {
        say!("{}", json!({ "dir": cache.dir(), "removed": removed, "left": left }));
    } else {
        say!("{}: {removed} entries removed", cache.dir().display());
    }
    match left {
        0 => Ok(()),
        left => Err(Failure::outcome(format!("{left} entries of {} could not be removed", cache.dir().display()))),
    }
}
