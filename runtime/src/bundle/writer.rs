//! Writes bundles.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use lathe_dsl::Kernel;
use lathe_dsl::artifact::{Artifact, CompileRecord};

use super::error::BundleError;
use super::format::{Entry, HASH, Index, KernelNames, head};
use super::{Place, fingerprint};
use crate::error::Error;
use crate::jit::{Code, Compiled};

/// Collects compiled kernels and writes them as one bundle. The same kernels give the same bytes, in whichever order
/// they were added.
#[derive(Default)]
pub struct BundleWriter {
    kernels: BTreeMap<String, Kept>,
}

/// The builds of one kernel.
struct Kept {
    fields: Vec<String>,
    builds: BTreeMap<(String, Vec<u32>), Payload>,
}

struct Payload {
    fingerprint: [u8; HASH],
    bytes: Vec<u8>,
}

/// The artifact without the times of its compile, which differ from one to the next.
fn untimed(artifact: &Artifact) -> Artifact {
    let CompileRecord { kernel, target, kir_ops, resources, .. } = artifact.record.clone();
    let record = CompileRecord { kernel, target, kir_ops, resources, ..CompileRecord::default() };
    Artifact { record, ..artifact.clone() }
}

impl BundleWriter {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what `key` was compiled to; replaces what was added for the same key and target before.
    ///
    /// # Errors
    /// As [`BundleWriter::add_named`].
    pub fn add<K: Kernel>(&mut self, key: &K, compiled: &Compiled) -> Result<(), Error> {
        let fields: Vec<(&str, u32)> = K::FIELDS.iter().enumerate().map(|(i, f)| (f.name, key.get(i))).collect();
        self.add_named(K::NAME, &fields, compiled)
    }

    /// As [`BundleWriter::add`], for who does not know the kernel's type: `key` is each field's name and value, in order.
    ///
    /// # Errors
    /// `compiled` is another kernel's, or its key had other fields before.
    pub fn add_named(&mut self, kernel: &str, key: &[(&str, u32)], compiled: &Compiled) -> Result<(), Error> {
        let unfit = |reason: String| BundleError::Unfit { kernel: kernel.to_owned(), reason };
        if compiled.kernel().name != kernel {
            return Err(unfit(format!("the compiled kernel is `{}`", compiled.kernel().name)).into());
        }
        let fields: Vec<String> = key.iter().map(|(name, _)| (*name).to_owned()).collect();
        let (place, bytes) = match compiled.code() {
            Code::Program(_) => (Place::Cpu(compiled.target()), postcard::to_stdvec(compiled.kernel().as_ref())),
            Code::Object(artifact) => (Place::Chip(compiled.target()), postcard::to_stdvec(&untimed(artifact))),
        };
        let bytes = bytes.map_err(|e| unfit(e.to_string()))?;
        let payload = Payload { fingerprint: fingerprint(compiled.kernel(), place), bytes };
        let kept = self
            .kernels
            .entry(kernel.to_owned())
            .or_insert_with(|| Kept { fields: fields.clone(), builds: BTreeMap::new() });
        if kept.fields != fields {
            let (old, new) = (kept.fields.join(", "), fields.join(", "));
            return Err(unfit(format!("its key has the fields {new}; an earlier build's had {old}")).into());
        }
        kept.builds.insert((place.to_string(), key.iter().map(|(_, v)| *v).collect()), payload);
        Ok(())
    }

    /// Builds added so far.
    pub fn len(&self) -> usize {
        self.kernels.values().map(|k| k.builds.len()).sum()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// The bundle's bytes.
    ///
    /// # Errors
    /// It is too large to be numbered.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut index = Index::default();
        let mut payloads = vec![];
        let mut places: Vec<&String> = self.kernels.values().flat_map(|k| k.builds.keys().map(|(p, _)| p)).collect();
        places.sort();
        places.dedup();
        for (name, kept) in &self.kernels {
            let kernel = index.kernels.len() as u32;
            index.kernels.push(KernelNames { name: name.clone(), fields: kept.fields.clone() });
            for ((place, key), payload) in &kept.builds {
                let place = places.partition_point(|p| *p < place) as u32;
                index.entries.push(Entry { kernel, place, key: key.clone(), length: payload.bytes.len() as u64 });
                index.hashes.extend_from_slice(&payload.fingerprint);
                index.hashes.extend_from_slice(blake3::hash(&payload.bytes).as_bytes());
                payloads.extend_from_slice(&payload.bytes);
            }
        }
        index.places = places.into_iter().cloned().collect();
        let index = index.encode().map_err(|reason| BundleError::Unfit { kernel: "the index".to_owned(), reason })?;
        Ok([head(&index).as_slice(), &index, &payloads].concat())
    }

    /// Writes the bundle to `path`: whole, or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let bytes = self.to_bytes()?;
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.partial", std::process::id()));
        let write = || {
            let mut file = File::create(&beside)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&beside, path)
        };
        write().map_err(|e| {
            // Nothing to do about a file that stays behind as well.
            let _ = fs::remove_file(&beside);
            let bundle = path.display().to_string();
            BundleError::Io { action: "write", bundle, reason: e.to_string() }.into()
        })
    }
}
