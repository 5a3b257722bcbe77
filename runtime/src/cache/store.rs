//! The files of a cache's folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use lathe_dsl::artifact::Artifact;

use super::entry;
use crate::key::DiskKey;

/// An entry's last use is noted at most this often: it costs a write.
const TOUCH_EVERY: Duration = Duration::from_secs(60);

/// An unfinished entry is younger than this while its writer may not have locked it yet.
const UNFINISHED_FOR: Duration = Duration::from_secs(60);

/// Larger files are no entries; reading them would cost memory.
const LARGEST: u64 = 1 << 30;

const ENTRY: &str = "lathe";
const UNFINISHED: &str = "tmp";

/// Paths and size of a cache.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    size: Mutex<Size>,
}

/// What this process knows of the folder's size. Other processes write too, so the folder is looked at again when what was
/// written since the last look could matter.
#[derive(Debug, Default)]
struct Size {
    /// Bytes at the last look, `None` before the first.
    seen: Option<u64>,
    /// Bytes written since.
    written: u64,
}

/// One entry's file.
#[derive(Debug)]
pub struct EntryFile {
    pub path: PathBuf,
    /// What its name says; `None` for a name that is no key.
    pub key: Option<DiskKey>,
    pub bytes: u64,
    modified: SystemTime,
}

/// What a folder holds.
#[derive(Debug, Default)]
pub struct Listing {
    pub entries: Vec<EntryFile>,
    pub unfinished: Vec<PathBuf>,
}

/// An entry that was read.
#[derive(Debug)]
pub struct Found {
    pub artifact: Artifact,
    pub file: File,
    pub modified: SystemTime,
}

/// Why an entry gives nothing.
#[derive(Debug)]
pub enum Unreadable {
    /// There is none, or it cannot be read now.
    Absent,
    /// What is wrong with it.
    Damaged(String),
}

/// Reads and checks the entry at `path`, which must be stored under `key`.
pub fn read(path: &Path, key: Option<&DiskKey>) -> Result<Found, Unreadable> {
    let absent = |_| Unreadable::Absent;
    // Asked before the file is opened: opening a pipe would wait for a writer.
    if !fs::metadata(path).map_err(absent)?.is_file() {
        return Err(Unreadable::Damaged("no regular file".to_owned()));
    }
    let mut file = File::open(path).map_err(absent)?;
    let metadata = file.metadata().map_err(absent)?;
    if metadata.len() > LARGEST {
        return Err(Unreadable::Damaged(format!("{} bytes are more than an entry has", metadata.len())));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    (&mut file).take(LARGEST).read_to_end(&mut bytes).map_err(absent)?;
    let artifact = entry::decode(&bytes, key).map_err(Unreadable::Damaged)?;
    Ok(Found { artifact, file, modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH) })
}

/// Notes a use of an entry, in its time of modification: file systems seldom keep the time of access.
pub fn touch(file: &File, modified: SystemTime) {
    let now = SystemTime::now();
    if now.duration_since(modified).is_ok_and(|age| age >= TOUCH_EVERY) {
        // If it fails, the entry is evicted earlier.
        let _ = file.set_modified(now);
    }
}

/// Removes the unfinished entries whose writers are dead; says how many.
pub fn sweep(unfinished: &[PathBuf]) -> u64 {
    let dead = |path: &PathBuf| -> io::Result<()> {
        let file = File::open(path)?;
        let age = SystemTime::now().duration_since(file.metadata()?.modified()?).unwrap_or_default();
        if age < UNFINISHED_FOR {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        file.try_lock()?;
        fs::remove_file(path)
    };
    unfinished.iter().filter(|path| dead(path).is_ok()).count() as u64
}

impl Store {
    /// The store below a cache's folder.
    pub fn new(dir: &Path) -> Self {
        Self { root: dir.join(format!("v{}", entry::FORMAT)), size: Mutex::default() }
    }

    /// File of an entry.
    pub fn entry(&self, key: &DiskKey) -> PathBuf {
        let name = key.to_string();
        self.root.join(&name[..2]).join(name).with_extension(ENTRY)
    }

    /// File of a key's lock.
    pub fn lock(&self, key: &DiskKey) -> PathBuf {
        self.root.join("locks").join(format!("{key}.lock"))
    }

    /// Writes an entry and publishes it; gives its size in bytes.
    pub fn write(&self, key: &DiskKey, artifact: &Artifact, max_bytes: u64) -> io::Result<u64> {
        let bytes = entry::encode(key, artifact).map_err(io::Error::other)?;
        let size = bytes.len() as u64;
        if size > max_bytes.min(LARGEST) {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the entry is larger than the cache may be"));
        }
        let path = self.entry(key);
        let temporary = temporary(&path);
        let written = publish(&temporary, &path, &bytes);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map(|()| size)
    }

    /// Every file of the cache; what cannot be listed is left out.
    pub fn list(&self) -> Listing {
        let mut listing = Listing::default();
        for shard in folder(&self.root) {
            if shard.file_name().is_none_or(|name| name.len() != 2) {
                continue;
            }
            for path in folder(&shard) {
                let extension = path.extension().unwrap_or_default();
                if extension == UNFINISHED {
                    listing.unfinished.push(path);
                } else if extension == ENTRY {
                    let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
                    let key = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
                    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    listing.entries.push(EntryFile { path, key, bytes: metadata.len(), modified });
                }
            }
        }
        listing
    }

    /// Removes the least recently used entries if the cache has grown over `max_bytes` by an entry of `bytes` under `key`,
    /// which stays; says how many.
    pub fn make_room(&self, bytes: u64, max_bytes: u64, key: &DiskKey) -> u64 {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        size.written += bytes;
        let known = size.seen.is_some_and(|seen| seen + size.written <= max_bytes && size.written <= max_bytes / 16);
        if known {
            return 0;
        }
        let mut listing = self.list();
        sweep(&listing.unfinished);
        let mut total: u64 = listing.entries.iter().map(|e| e.bytes).sum();
        let mut evicted = 0;
        if total > max_bytes {
            // Some room beyond what is needed, so that not every entry that follows looks at all files again.
            let goal = max_bytes - max_bytes / 8;
            let newest = self.entry(key);
            listing.entries.sort_by_key(|e| e.modified);
            for entry in listing.entries.iter().filter(|e| e.path != newest) {
                if total <= goal {
                    break;
                }
                if fs::remove_file(&entry.path).is_ok() {
                    total -= entry.bytes;
                    evicted += 1;
                }
            }
        }
        *size = Size { seen: Some(total), written: 0 };
        evicted
    }

    /// Removes lock files that no one holds.
    pub fn sweep_locks(&self) {
        for path in folder(&self.root.join("locks")) {
            if let Ok(file) = File::open(&path)
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// A name next to `path` that no other writer has.
fn temporary(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}.{next}.{UNFINISHED}", std::process::id()))
}

/// Writes `bytes` to `temporary` and gives that file the name `path` once they are on the disk.
fn publish(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let create = || OpenOptions::new().write(true).create_new(true).open(temporary);
    let mut file = create().or_else(|_| {
        fs::create_dir_all(temporary.parent().unwrap_or(temporary))?;
        // Left by a dead process that had the same number.
        let _ = fs::remove_file(temporary);
        create()
    })?;
    // Tells a living writer from a dead one; a file system without locks has only the age for that.
    let _ = file.try_lock();
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

/// Paths in a folder; none if it cannot be listed.
fn folder(path: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|item| item.path())
}
