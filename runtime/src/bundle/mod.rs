//! Bundles: one file of compiled kernels, made ahead of time, from which a runtime without LLVM loads and launches.
//!
//! A [`BundleWriter`] writes one, a [`Bundle`] reads one, from a file or from memory (`include_bytes!`). Opening reads
//! the index only; a kernel is read, checked and decoded when it is asked for.
//!
//! A bundle cannot launch wrongly: who asks for a kernel traces it (which takes no compiler and well under a
//! millisecond), and the bundle hands out only what was compiled from that very trace.

mod error;
mod format;
mod place;
#[cfg(test)]
mod tests;
mod writer;

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lathe_dsl::artifact::{Artifact, CacheSource, CompileRecord};
use lathe_dsl::kernel::describe;
use lathe_dsl::{Kernel, Warning, ir};

pub use error::BundleError;
pub use place::{Place, UnknownPlace};
pub use writer::BundleWriter;

use crate::error::Error;
use crate::jit::{Code, Compiled, Compiler as _, Interpreter};
use crate::key::{DiskKey, Fingerprint};
use format::{FORMAT, HASH, HEAD, Index, MAGIC};

/// Entries that a message lists at most.
const LISTED: usize = 8;

/// Version of how kernels take their arguments, as far as neither the printed Kernel IR nor the argument block tells.
const ABI: &str = "1";

/// Names a traced kernel for a place, by what it does and by how it is called. Where it was written, and what compiled
/// it, play no part.
fn fingerprint(kernel: &ir::Kernel, place: Place) -> [u8; HASH] {
    let any = Fingerprint { llvm: String::new(), lathe: ABI.to_owned() };
    *DiskKey::of(kernel, place.target(), &place.to_string(), &any).as_bytes()
}

/// Where a bundle's bytes are.
enum Source {
    Memory(Cow<'static, [u8]>),
    /// One reader at a time; a kernel is read once and then kept by who asked for it.
    File(Mutex<File>),
}

/// An open bundle. Share it behind an [`Arc`].
pub struct Bundle {
    name: String,
    source: Source,
    index: Index,
    /// Where each entry's payload starts.
    starts: Vec<u64>,
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle").field("name", &self.name).field("kernels", &self.len()).finish_non_exhaustive()
    }
}

/// What a bundle tells of one of its kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BundleEntry {
    /// Kernel name.
    pub kernel: String,
    /// The key's fields and their values, in order.
    pub key: Vec<(String, u32)>,
    /// What it runs on, as [`Place`] prints it.
    pub place: String,
    /// Where in the bundle it starts, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub length: u64,
    /// BLAKE3 of its bytes, in hexadecimal.
    pub checksum: String,
}

impl Bundle {
    /// Opens a bundle file: reads and checks its index.
    ///
    /// # Errors
    /// The file cannot be read, is no bundle or another version's, or is damaged; the message names it and says what is
    /// wrong.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let failed =
            |e: std::io::Error| BundleError::Io { action: "read", bundle: name.clone(), reason: e.to_string() };
        let mut file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut head = vec![];
        file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
        let length = check_head(&name, &head, size)?;
        // `size` holds it, so this is no more than the file has.
        let mut index = Vec::with_capacity(length as usize);
        file.by_ref().take(length).read_to_end(&mut index).map_err(failed)?;
        let decoded = read_index(&name, &head, &index)?;
        Self::new(name, decoded, index.len(), size, Source::File(Mutex::new(file)))
    }

    /// Opens a bundle that lies in memory, such as one that `include_bytes!` put into the program.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let name = "in memory".to_owned();
        let size = bytes.len() as u64;
        let length = check_head(&name, bytes.get(..HEAD).unwrap_or(&bytes), size)? as usize;
        let (head, rest) = bytes.split_at(HEAD);
        let index = read_index(&name, head, &rest[..length])?;
        Self::new(name, index, length, size, Source::Memory(bytes))
    }

    fn new(name: String, index: Index, length: usize, size: u64, source: Source) -> Result<Self, Error> {
        let damaged = |what: String| BundleError::Damaged { bundle: name.clone(), what };
        let payloads = index.check().map_err(|what| damaged(what.to_owned()))?;
        let first = (HEAD + length) as u64;
        if first.checked_add(payloads) != Some(size) {
            let message =
                format!("it has {} bytes after its index, and should have {payloads}", size.saturating_sub(first));
            return Err(damaged(message).into());
        }
        let mut at = first;
        let mut starts = Vec::with_capacity(index.entries.len());
        for entry in &index.entries {
            starts.push(at);
            at += entry.length;
        }
        Ok(Self { name, source, index, starts })
    }

    /// Kernels in it.
    pub fn len(&self) -> usize {
        self.index.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.index.entries.is_empty()
    }

    /// What it has, sorted by kernel, place and key.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = BundleEntry> {
        (0..self.len()).map(|i| {
            let entry = &self.index.entries[i];
            let kernel = &self.index.kernels[entry.kernel as usize];
            BundleEntry {
                kernel: kernel.name.clone(),
                key: kernel.fields.iter().cloned().zip(entry.key.iter().copied()).collect(),
                place: self.index.places[entry.place as usize].clone(),
                offset: self.starts[i],
                length: entry.length,
                checksum: self.index.checksum(i).iter().map(|b| format!("{b:02x}")).collect(),
            }
        })
    }

    /// Reads every kernel and checks it against its checksum.
    ///
    /// # Errors
    /// The first one that is damaged.
    pub fn verify(&self) -> Result<(), Error> {
        Ok((0..self.len()).try_for_each(|i| self.payload(i).map(drop))?)
    }

    /// The kernel of `key` for `place` (a [`Target`](lathe_dsl::Target), or the CPU device in the shape of one), ready to launch.
    /// It traces the kernel to make sure that it is the one that was bundled, and reads and decodes it: keep what you
    /// get.
    ///
    /// # Errors
    /// The key is not allowed; the bundle has no such kernel, or was built from another version of it, or is damaged.
    pub fn get<K: Kernel>(&self, key: &K, place: impl Into<Place>) -> Result<Arc<Compiled>, Error> {
        let place = place.into();
        let start = Instant::now();
        let (kernel, warnings) = lathe_dsl::trace_with_warnings(key, place.target())?;
        let kernel = Arc::new(kernel);
        let trace_ms = start.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        let entry = self.find(key, place, &kernel)?;
        let (code, record) = self.load(entry, &kernel, place)?;
        let record = CompileRecord {
            kernel: K::NAME.to_owned(),
            target: place.target().to_string(),
            kir_ops: kernel.op_count(),
            warnings: warnings.iter().map(Warning::to_string).collect(),
            trace_ms,
            compile_ms: start.elapsed().as_secs_f64() * 1e3,
            ..record
        };
        Ok(Arc::new(Compiled::new(kernel, place.target(), code, record).with_key(describe(key))))
    }

    /// The entry of a key, if it was made from this kernel.
    fn find<K: Kernel>(&self, key: &K, place: Place, kernel: &ir::Kernel) -> Result<usize, BundleError> {
        let bundle = self.name.clone();
        let target = place.to_string();
        let wanted = || format!("`{}` {{{}}} for {target}", K::NAME, describe(key));
        let stale = |difference: String| BundleError::Stale { bundle: bundle.clone(), wanted: wanted(), difference };
        let index = &self.index;
        let values: Vec<u32> = (0..K::FIELDS.len()).map(|i| key.get(i)).collect();
        let number = index.kernels.binary_search_by(|k| k.name.as_str().cmp(K::NAME)).ok();
        let numbers = number.zip(index.places.iter().position(|p| *p == target));
        if let Some(known) = number.map(|i| &index.kernels[i])
            && !known.fields.iter().eq(K::FIELDS.iter().map(|f| f.name))
        {
            return Err(stale(format!("its key had the fields {}", known.fields.join(", "))));
        }
        let found = numbers.and_then(|(kernel, place)| {
            let order = (kernel as u32, place as u32, values.as_slice());
            index.entries.binary_search_by(|e| e.order().cmp(&order)).ok()
        });
        match found {
            None => Err(BundleError::Missing { wanted: wanted(), has: self.summary(K::NAME), bundle }),
            Some(entry) if index.fingerprint(entry) != fingerprint(kernel, place) => {
                Err(stale("its Kernel IR differs".to_owned()))
            }
            Some(entry) => Ok(entry),
        }
    }

    /// Some of what there is, the builds of `kernel` first.
    fn summary(&self, kernel: &str) -> String {
        let named = |e: &&format::Entry| self.index.kernels[e.kernel as usize].name == kernel;
        let (own, others) = (self.index.entries.iter().filter(named), self.index.entries.iter().filter(|e| !named(e)));
        let listed: Vec<String> = own
            .chain(others)
            .take(LISTED)
            .map(|e| {
                let kernel = &self.index.kernels[e.kernel as usize];
                let key: Vec<String> = kernel.fields.iter().zip(&e.key).map(|(f, v)| format!("{f}={v}")).collect();
                format!("`{}` {{{}}} for {}", kernel.name, key.join(", "), self.index.places[e.place as usize])
            })
            .collect();
        match self.len() - listed.len() {
            0 if listed.is_empty() => "nothing".to_owned(),
            0 => listed.join("; "),
            more => format!("{}; and {more} more", listed.join("; ")),
        }
    }

    fn damaged(&self, entry: usize, what: impl fmt::Display) -> BundleError {
        let kernel = &self.index.kernels[self.index.entries[entry].kernel as usize].name;
        let what = format!("`{kernel}`, entry {entry} at byte {}: {what}", self.starts[entry]);
        BundleError::Damaged { bundle: self.name.clone(), what }
    }

    /// The bytes of an entry, checked.
    fn payload(&self, entry: usize) -> Result<Cow<'_, [u8]>, BundleError> {
        let (start, length) = (self.starts[entry], self.index.entries[entry].length);
        let bytes = match &self.source {
            // Opening has seen that every payload lies inside.
            Source::Memory(bytes) => Cow::Borrowed(&bytes[start as usize..][..length as usize]),
            Source::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let mut bytes = vec![];
                let read =
                    file.seek(SeekFrom::Start(start)).and_then(|_| (&*file).take(length).read_to_end(&mut bytes));
                read.map_err(|e| self.damaged(entry, e))?;
                Cow::Owned(bytes)
            }
        };
        if bytes.len() as u64 != length {
            return Err(self.damaged(entry, format!("{length} bytes long, the file ends after {}", bytes.len())));
        }
        if blake3::hash(&bytes).as_bytes() != self.index.checksum(entry) {
            return Err(self.damaged(entry, "its checksum does not match"));
        }
        Ok(bytes)
    }

    /// Decodes an entry that was found for this kernel.
    fn load(&self, entry: usize, kernel: &Arc<ir::Kernel>, place: Place) -> Result<(Code, CompileRecord), Error> {
        let bytes = self.payload(entry)?;
        match place {
            Place::Cpu(_) => {
                let stored: ir::Kernel = postcard::from_bytes(&bytes).map_err(|e| self.damaged(entry, e))?;
                // Which also makes sure that what runs has passed the verifier.
                if stored != **kernel {
                    return Err(self.damaged(entry, "it holds another kernel").into());
                }
                Interpreter.compile(kernel, place.target())
            }
            Place::Chip(target) => {
                let artifact: Artifact = postcard::from_bytes(&bytes).map_err(|e| self.damaged(entry, e))?;
                if artifact.target != target {
                    return Err(self.damaged(entry, format!("it holds code for {}", artifact.target)).into());
                }
                let cache = match self.source {
                    Source::Memory(_) => CacheSource::Memory,
                    Source::File(_) => CacheSource::Disk,
                };
                let record = CompileRecord { cache, ..artifact.record.clone() };
                Ok((Code::Object(Box::new(artifact)), record))
            }
        }
    }
}

/// Checks a bundle's first bytes, of which there may be too few; returns the length of its index, which lies inside.
fn check_head(bundle: &str, head: &[u8], size: u64) -> Result<u64, BundleError> {
    if !head.starts_with(&MAGIC) {
        return Err(BundleError::NotABundle { bundle: bundle.to_owned() });
    }
    let damaged = |what: String| BundleError::Damaged { bundle: bundle.to_owned(), what };
    let Ok(head) = <&[u8; HEAD]>::try_from(head) else {
        return Err(damaged(format!("it ends after {size} bytes, inside its head")));
    };
    let [_, _, _, _, _, _, _, _, f0, f1, f2, f3, l0, l1, l2, l3, l4, l5, l6, l7, ..] = *head;
    let found = u32::from_le_bytes([f0, f1, f2, f3]);
    if found != FORMAT {
        return Err(BundleError::Format { bundle: bundle.to_owned(), found, known: FORMAT });
    }
    let length = u64::from_le_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
    if length > size.saturating_sub(HEAD as u64) {
        return Err(damaged(format!("it ends after {size} bytes, inside its index of {length}")));
    }
    Ok(length)
}

/// Checks and decodes an index.
fn read_index(bundle: &str, head: &[u8], index: &[u8]) -> Result<Index, BundleError> {
    let damaged = |what: String| BundleError::Damaged { bundle: bundle.to_owned(), what };
    if format::hash(&head[..20], index).as_bytes()[..] != head[20..] {
        return Err(damaged("the checksum of its index does not match".to_owned()));
    }
    Index::decode(index).map_err(|e| damaged(format!("its index cannot be read: {e}")))
}
