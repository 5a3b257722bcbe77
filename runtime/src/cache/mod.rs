//! The disk cache: compiled kernels that outlive the process and are shared by every process of a user.
//!
//! A cache never makes a program fail. Whatever is wrong with an entry, its folder or the disk is a miss: the kernel
//! is compiled as if there were no cache. An entry is one file, written under another name and published by renaming it, so
//! it is there as a whole or not at all; its checksum and its key are compared on every load.
//!
//! ```text
//! DIR/v1/3f/3f9a…c1.lathe           an entry: header, then the artifact
//! DIR/v1/3f/3f9a…c1.PID.N.tmp       one that is being written
//! DIR/v1/locks/3f9a…c1.lock         held by the process that compiles that key
//! ```

mod entry;
mod lock;
mod store;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use lathe_dsl::artifact::Artifact;
use serde::Serialize;

pub(crate) use lock::{Acquired, KeyLock};

use crate::env::{self, EnvError};
use crate::key::DiskKey;
use store::Store;

/// Whether a [`DiskCache`] is read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Neither: every lookup misses.
    Off,
    /// Entries are used; nothing in the folder is changed.
    #[serde(rename = "ro")]
    ReadOnly,
    /// Entries are used, added, and removed when damaged or when the cache is too large.
    #[default]
    #[serde(rename = "rw")]
    ReadWrite,
}

impl fmt::Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
        })
    }
}

/// Text that is no [`CacheMode`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no cache mode: it is off, ro or rw")]
pub struct BadCacheMode(pub String);

impl FromStr for CacheMode {
    type Err = BadCacheMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Off, Self::ReadOnly, Self::ReadWrite]
            .into_iter()
            .find(|mode| mode.to_string() == text)
            .ok_or_else(|| BadCacheMode(text.to_owned()))
    }
}

/// Where a [`DiskCache`] lies and what it may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheOptions {
    /// Its folder; made when the first entry is written.
    pub dir: PathBuf,
    /// Whether it is read and written.
    pub mode: CacheMode,
    /// Size of all entries together, in bytes, above which the least recently used ones are removed.
    pub max_bytes: u64,
}

impl CacheOptions {
    /// Size limit unless another is set: 1 GiB.
    pub const DEFAULT_MAX_BYTES: u64 = 1 << 30;

    /// A cache in `dir` that is read and written, of the default size.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), mode: CacheMode::ReadWrite, max_bytes: Self::DEFAULT_MAX_BYTES }
    }

    /// What the environment says: `LATHE_CACHE_DIR`, `LATHE_CACHE`, `LATHE_CACHE_MAX_BYTES`.
    ///
    /// # Errors
    /// A variable's value is not allowed.
    pub fn from_env() -> Result<Self, EnvError> {
        Ok(Self { dir: env::CACHE_DIR.get()?, mode: env::CACHE.get()?, max_bytes: env::CACHE_MAX_BYTES.get()? })
    }
}

/// Compiled kernels on disk, by [`DiskKey`]. Threads and processes may share one folder.
#[derive(Debug)]
pub struct DiskCache {
    store: Store,
    options: CacheOptions,
    counts: Counts,
}

/// What one [`DiskCache`] did.
#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    writes: AtomicU64,
    failed_writes: AtomicU64,
    corrupt: AtomicU64,
    evicted: AtomicU64,
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// Content of a cache's folder, and what this process's [`DiskCache`] did with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CacheStats {
    /// Its folder.
    pub dir: PathBuf,
    /// Whether it is read and written.
    pub mode: CacheMode,
    /// Size limit in bytes.
    pub max_bytes: u64,
    /// Entries in the folder.
    pub entries: u64,
    /// Their size, in bytes.
    pub bytes: u64,
    /// Unfinished entries in the folder: being written, or left by a process that was killed.
    pub unfinished: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found none, or a damaged one.
    pub misses: u64,
    /// Entries written.
    pub writes: u64,
    /// Entries that could not be written.
    pub failed_writes: u64,
    /// Damaged entries that were met.
    pub corrupt: u64,
    /// Entries removed because the cache was too large.
    pub evicted: u64,
}

/// A damaged entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DamagedEntry {
    /// Its file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it was removed; a read-only cache removes nothing.
    pub removed: bool,
}

/// What [`DiskCache::verify`] found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Entries without a fault.
    pub good: u64,
    /// Their size, in bytes.
    pub bytes: u64,
    /// The others.
    pub damaged: Vec<DamagedEntry>,
    /// Unfinished entries of dead processes that were removed.
    pub unfinished_removed: u64,
}

impl DiskCache {
    /// The cache that `options` describe. Touches no file.
    pub fn open(options: CacheOptions) -> Self {
        Self { store: Store::new(&options.dir), options, counts: Counts::default() }
    }

    /// Where it lies and what it may do.
    pub fn options(&self) -> &CacheOptions {
        &self.options
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }

    /// The artifact stored under `key`, if there is a sound one.
    pub fn get(&self, key: &DiskKey) -> Option<Artifact> {
        let found = self.load(key);
        count(if found.is_some() { &self.counts.hits } else { &self.counts.misses }, 1);
        found
    }

    /// As [`DiskCache::get`], and counts only what is damaged.
    pub(crate) fn load(&self, key: &DiskKey) -> Option<Artifact> {
        if self.options.mode == CacheMode::Off {
            return None;
        }
        let path = self.store.entry(key);
        match store::read(&path, Some(key)) {
            Ok(found) => {
                if self.writable() {
                    store::touch(&found.file, found.modified);
                }
                Some(found.artifact)
            }
            Err(store::Unreadable::Absent) => None,
            Err(store::Unreadable::Damaged(reason)) => {
                count(&self.counts.corrupt, 1);
                let removed = self.writable() && std::fs::remove_file(&path).is_ok();
                tracing::warn!(path = %path.display(), reason, removed, "damaged cache entry");
                None
            }
        }
    }

    /// Counts one lookup whose outcome came from several [`DiskCache::load`]s.
    pub(crate) fn count_lookup(&self, hit: bool) {
        count(if hit { &self.counts.hits } else { &self.counts.misses }, 1);
    }

    /// Stores an artifact under `key`, in the place of one that is there. Says whether it did; a cache that cannot write is no
    /// error.
    pub fn put(&self, key: &DiskKey, artifact: &Artifact) -> bool {
        if !self.writable() {
            return false;
        }
        match self.store.write(key, artifact, self.options.max_bytes) {
            Ok(bytes) => {
                count(&self.counts.writes, 1);
                let evicted = self.store.make_room(bytes, self.options.max_bytes, key);
                count(&self.counts.evicted, evicted);
                true
            }
            Err(error) => {
                count(&self.counts.failed_writes, 1);
                tracing::warn!(%key, %error, "cache entry not written");
                false
            }
        }
    }

    /// Waits until no other process (or [`DiskCache`]) compiles `key`, and keeps the others waiting until the lock is dropped.
    /// Without a lock — a cache that is not written, a folder that cannot be written, a file system without locks, an owner
    /// that takes longer than `patience` — the caller compiles too.
    pub(crate) fn lock(&self, key: &DiskKey, patience: std::time::Duration) -> Acquired {
        if self.writable() { KeyLock::acquire(&self.store.lock(key), patience) } else { Acquired::default() }
    }

    /// What the folder holds and what this cache did so far.
    pub fn stats(&self) -> CacheStats {
        let listing = self.store.list();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            dir: self.options.dir.clone(),
            mode: self.options.mode,
            max_bytes: self.options.max_bytes,
            entries: listing.entries.len() as u64,
            bytes: listing.entries.iter().map(|e| e.bytes).sum(),
            unfinished: listing.unfinished.len() as u64,
            hits: read(&self.counts.hits),
            misses: read(&self.counts.misses),
            writes: read(&self.counts.writes),
            failed_writes: read(&self.counts.failed_writes),
            corrupt: read(&self.counts.corrupt),
            evicted: read(&self.counts.evicted),
        }
    }

    /// Damaged entries met and entries evicted so far.
    pub(crate) fn losses(&self) -> (u64, u64) {
        (self.counts.corrupt.load(Ordering::Relaxed), self.counts.evicted.load(Ordering::Relaxed))
    }

    /// Reads every entry and checks it. Damaged ones and what killed processes left behind are removed if the cache may be
    /// written.
    pub fn verify(&self) -> VerifyReport {
        let mut report = VerifyReport::default();
        let listing = self.store.list();
        for entry in listing.entries {
            match store::read(&entry.path, entry.key.as_ref()) {
                Ok(_) => {
                    report.good += 1;
                    report.bytes += entry.bytes;
                }
                // Removed meanwhile by someone else.
                Err(store::Unreadable::Absent) if entry.path.symlink_metadata().is_err() => {}
                Err(fault) => {
                    let reason = match fault {
                        store::Unreadable::Damaged(reason) => reason,
                        store::Unreadable::Absent => "cannot be read".to_owned(),
                    };
                    count(&self.counts.corrupt, 1);
                    let removed = self.writable() && std::fs::remove_file(&entry.path).is_ok();
                    report.damaged.push(DamagedEntry { path: entry.path, reason, removed });
                }
            }
        }
        if self.writable() {
            report.unfinished_removed = store::sweep(&listing.unfinished);
        }
        report
    }

    /// Removes every entry, and what killed processes left behind; says how many entries that were. A read-only cache keeps
    /// all. Files that are not the cache's own stay.
    pub fn clear(&self) -> usize {
        if !self.writable() {
            return 0;
        }
        let listing = self.store.list();
        store::sweep(&listing.unfinished);
        self.store.sweep_locks();
        listing.entries.iter().filter(|e| std::fs::remove_file(&e.path).is_ok()).count()
    }

    fn writable(&self) -> bool {
        self.options.mode == CacheMode::ReadWrite
    }
}
