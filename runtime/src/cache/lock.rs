//! One compile of a key at a time among processes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Held by whoever compiles a key. The system releases it when its owner ends, however that happens.
#[derive(Debug)]
pub(crate) struct KeyLock {
    path: PathBuf,
    _file: File,
}

/// Outcome of [`KeyLock::acquire`].
#[derive(Debug, Default)]
pub(crate) struct Acquired {
    /// The lock; `None` if there can be none.
    pub lock: Option<KeyLock>,
    /// Whether another owner held it meanwhile.
    pub waited: bool,
}

impl KeyLock {
    /// Takes the lock file at `path`, waiting at most `patience` for another owner.
    pub(crate) fn acquire(path: &Path, patience: Duration) -> Acquired {
        let start = Instant::now();
        let mut acquired = Acquired::default();
        // An owner removes the file before it lets go. Whoever then gets the lock of that removed file has nothing: others
        // cannot see it any more. So the path must still lead to the file that was locked.
        while let Some(file) = open(path) {
            match wait(&file, start, patience, &mut acquired.waited) {
                Waiting::Locked if same_file(&file, path) => {
                    acquired.lock = Some(Self { path: path.to_owned(), _file: file });
                    break;
                }
                Waiting::Locked => {}
                Waiting::GivenUp => break,
            }
        }
        acquired
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // Only where `same_file` can tell a removed file from its successor.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> Option<File> {
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    open()
        .or_else(|_| {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            open()
        })
        .ok()
}

enum Waiting {
    Locked,
    GivenUp,
}

/// Asks for the lock again and again: the system's own waiting cannot be bounded, and an owner that was stopped must not
/// stop everyone.
fn wait(file: &File, start: Instant, patience: Duration, waited: &mut bool) -> Waiting {
    let mut pause = Duration::from_micros(500);
    loop {
        match file.try_lock() {
            Ok(()) => return Waiting::Locked,
            Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                *waited = true;
                sleep(pause);
                pause = (pause * 3 / 2).min(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Waiting::GivenUp,
        }
    }
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let identity = |m: fs::Metadata| (m.dev(), m.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => identity(ours) == identity(there),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_: &File, _: &Path) -> bool {
    true
}
