//! Every environment variable that Lathe reads, in one place: [`ALL`].
//!
//! Nothing else looks at the environment, and it is read only where somebody asks: by [`CacheOptions::from_env`], where
//! AMD's HIP runtime is looked for ([`drivers::hip`](crate::drivers::hip), device `hip`), and by the command line. A variable that is set to an empty text counts as not set.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::cache::{CacheMode, CacheOptions};
use crate::drivers::HIP_LIBRARIES;

/// A variable's value is not allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("environment variable {name}={value} is not allowed: it must be {allowed}")]
pub struct EnvError {
    /// Its name.
    pub name: &'static str,
    /// What it is set to.
    pub value: String,
    /// What it may be.
    pub allowed: &'static str,
}

/// One environment variable with a value of type `T`.
#[derive(Debug)]
pub struct Variable<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// What it decides, in a line.
    pub doc: &'static str,
    /// What it may be set to, in words.
    pub allowed: &'static str,
    default: fn() -> T,
    parse: fn(&OsStr) -> Option<T>,
    show: fn(&T) -> String,
}

impl<T> Variable<T> {
    /// Its value: as set, or else its default.
    ///
    /// # Errors
    /// It is set to something that is not allowed.
    pub fn get(&self) -> Result<T, EnvError> {
        self.read(set(self.name).as_deref())
    }

    /// The value that `text` stands for; `None` for a variable that is not set.
    ///
    /// # Errors
    /// `text` is not allowed.
    pub fn read(&self, text: Option<&OsStr>) -> Result<T, EnvError> {
        let Some(text) = text else { return Ok((self.default)()) };
        (self.parse)(text).ok_or_else(|| EnvError {
            name: self.name,
            value: text.to_string_lossy().into_owned(),
            allowed: self.allowed,
        })
    }
}

fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|v| !v.is_empty())
}

/// What a listing tells of a variable, whatever its type.
pub trait Listed: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it decides, in a line.
    fn doc(&self) -> &'static str;
    /// What it may be set to, in words.
    fn allowed(&self) -> &'static str;
    /// Its value while it is not set.
    fn default(&self) -> String;
    /// Whether it is set.
    fn is_set(&self) -> bool;
    /// The value in force.
    ///
    /// # Errors
    /// It is set to something that is not allowed.
    fn value(&self) -> Result<String, EnvError>;
}

impl<T> Listed for Variable<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn allowed(&self) -> &'static str {
        self.allowed
    }

    fn default(&self) -> String {
        (self.show)(&(self.default)())
    }

    fn is_set(&self) -> bool {
        set(self.name).is_some()
    }

    fn value(&self) -> Result<String, EnvError> {
        self.get().map(|v| (self.show)(&v))
    }
}

/// Folder of the disk cache.
pub static CACHE_DIR: Variable<PathBuf> = Variable {
    name: "LATHE_CACHE_DIR",
    doc: "Folder of the disk cache; the default is `lathe` in the user's cache folder",
    allowed: "a path",
    default: default_cache_dir,
    parse: path,
    show: |path| path.display().to_string(),
};

/// Whether the disk cache is used.
pub static CACHE: Variable<CacheMode> = Variable {
    name: "LATHE_CACHE",
    doc: "Whether the disk cache is used: not at all, read only, or read and written",
    allowed: "off, ro or rw",
    default: CacheMode::default,
    parse: |text| text.to_str()?.parse().ok(),
    show: CacheMode::to_string,
};

/// Size limit of the disk cache, in bytes.
pub static CACHE_MAX_BYTES: Variable<u64> = Variable {
    name: "LATHE_CACHE_MAX_BYTES",
    doc: "Size of the disk cache above which the entries not used for longest are removed",
    allowed: "a whole number of bytes, such as 1073741824, or with K, M or G for KiB, MiB or GiB, such as 2G",
    default: || CacheOptions::DEFAULT_MAX_BYTES,
    parse: bytes,
    show: u64::to_string,
};

/// Where a failed compile leaves what is needed to look into it.
pub static REPRODUCER_DIR: Variable<PathBuf> = Variable {
    name: "LATHE_REPRODUCER_DIR",
    doc: "Folder in which a failed compile leaves its reproducer; the default is the system's folder for temporary files",
    allowed: "a path",
    default: env::temp_dir,
    parse: path,
    show: |path| path.display().to_string(),
};

/// AMD's HIP runtime.
pub static HIP_LIBRARY: Variable<Option<PathBuf>> = Variable {
    name: "LATHE_HIP_LIBRARY",
    doc: "AMD's HIP runtime, a shared library; the default is the newest that the dynamic linker finds",
    allowed: "a path or a library's name",
    default: || None,
    parse: |text| path(text).map(Some),
    show: |library| library.as_ref().map_or_else(|| HIP_LIBRARIES.join(", "), |path| path.display().to_string()),
};

/// Every variable, in alphabetical order.
pub static ALL: [&dyn Listed; 5] = [&CACHE, &CACHE_DIR, &CACHE_MAX_BYTES, &HIP_LIBRARY, &REPRODUCER_DIR];

fn path(text: &OsStr) -> Option<PathBuf> {
    Some(PathBuf::from(text))
}

fn bytes(text: &OsStr) -> Option<u64> {
    let text = text.to_str()?;
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) => (digits, 1u64 << (10 * (1 + "KMG".find(&text[digits.len()..])?))),
        None => (text, 1),
    };
    // `parse` alone would take a sign.
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u64>().ok()?.checked_mul(unit))?
}

/// As the XDG base directory specification has it: a relative folder in its variable is ignored.
fn default_cache_dir() -> PathBuf {
    let xdg = set("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || env::home_dir().filter(|p| p.is_absolute()).unwrap_or_default().join(".cache");
    xdg.unwrap_or_else(home).join("lathe")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(variable: &Variable<T>, text: &str) -> Result<T, String> {
        variable.read(Some(OsStr::new(text))).map_err(|e| e.to_string())
    }

    #[test]
    fn names_are_sorted_and_documented() {
        assert!(ALL.is_sorted_by(|a, b| a.name() < b.name()));
        for variable in ALL {
            assert!(variable.name().starts_with("LATHE_") && !variable.doc().is_empty());
            assert!(!variable.default().is_empty(), "{}", variable.name());
        }
    }

    #[test]
    fn values_are_read_and_defaults_stand_in() {
        assert_eq!(CACHE.read(None), Ok(CacheMode::ReadWrite));
        assert_eq!(read(&CACHE, "ro"), Ok(CacheMode::ReadOnly));
        assert_eq!(read(&CACHE, "off"), Ok(CacheMode::Off));
        assert_eq!(CACHE_MAX_BYTES.read(None), Ok(1 << 30));
        for (text, value) in [("0", 0), ("17", 17), ("3K", 3 << 10), ("5M", 5 << 20), ("2G", 2 << 30)] {
            assert_eq!(read(&CACHE_MAX_BYTES, text), Ok(value), "{text}");
        }
        assert_eq!(read(&CACHE_DIR, "/a/b"), Ok(PathBuf::from("/a/b")));
        assert!(CACHE_DIR.read(None).unwrap().ends_with("lathe"));
        assert_eq!(HIP_LIBRARY.read(None), Ok(None));
        assert_eq!(read(&HIP_LIBRARY, "/a/b.so"), Ok(Some(PathBuf::from("/a/b.so"))));
    }

    #[test]
    fn a_bad_value_names_variable_value_and_what_is_allowed() {
        let message = read(&CACHE, "yes").unwrap_err();
        assert_eq!(message, "environment variable LATHE_CACHE=yes is not allowed: it must be off, ro or rw");
        for bad in ["-1", "+1", "1.5", "G", "1T", "1 G", "99999999999G", "18446744073709551616", "\u{0661}"] {
            let message = read(&CACHE_MAX_BYTES, bad).unwrap_err();
            assert!(message.contains(&format!("LATHE_CACHE_MAX_BYTES={bad} ")), "{message}");
            assert!(message.contains("a whole number of bytes"), "{message}");
        }
    }
}
