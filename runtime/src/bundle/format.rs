//! The bytes of a bundle.
//!
//! ```text
//! offset  bytes  what
//! 0       8      magic, "LATHEBDL"
//! 8       4      format, little endian
//! 12      8      length of the index, little endian
//! 20      32     BLAKE3 of bytes 0..20 and of the index
//! 52      …      the index: an [`Index`] as postcard writes it, then two hashes of each of its entries
//! …       …      the payloads, in the order of the index and without gaps, to the end of the file
//! ```
//!
//! No byte is uncovered: the index's hash covers the head, and the index holds length and BLAKE3 of every payload.

use serde::{Deserialize, Serialize};

/// First bytes of every bundle.
pub const MAGIC: [u8; 8] = *b"LATHEBDL";
/// Version of this format.
pub const FORMAT: u32 = 1;
/// Bytes before the index.
pub const HEAD: usize = 52;
/// Bytes of a BLAKE3 hash.
pub const HASH: usize = 32;

/// A kernel name and the names of its key's fields, shared by its entries.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelNames {
    pub name: String,
    pub fields: Vec<String>,
}

/// What the index holds. Entries are sorted by (kernel, place, key), which makes them unique and found by bisection.
#[derive(PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Index {
    /// Sorted by name.
    pub kernels: Vec<KernelNames>,
    /// As [`Place`](super::Place) prints them.
    pub places: Vec<String>,
    pub entries: Vec<Entry>,
    /// Of each entry: fingerprint of its Kernel IR, then BLAKE3 of its payload. Stored raw, behind the rest.
    #[serde(skip)]
    pub hashes: Vec<u8>,
}

/// One kernel for one key and one place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Index into [`Index::kernels`].
    pub kernel: u32,
    /// Index into [`Index::places`].
    pub place: u32,
    /// Values of the key's fields.
    pub key: Vec<u32>,
    /// Bytes of the payload.
    pub length: u64,
}

impl Entry {
    /// What entries are sorted by.
    pub fn order(&self) -> (u32, u32, &[u32]) {
        (self.kernel, self.place, &self.key)
    }
}

impl Index {
    /// Reads an index; `Err` says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (index, hashes) = postcard::take_from_bytes::<Self>(bytes).map_err(|e| e.to_string())?;
        Ok(Self { hashes: hashes.to_vec(), ..index })
    }

    /// The bytes that [`Index::decode`] reads.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let mut bytes = postcard::to_stdvec(self).map_err(|e| e.to_string())?;
        bytes.extend_from_slice(&self.hashes);
        Ok(bytes)
    }

    /// Fingerprint of an entry's Kernel IR.
    pub fn fingerprint(&self, entry: usize) -> &[u8] {
        &self.hashes[entry * 2 * HASH..][..HASH]
    }

    /// BLAKE3 of an entry's payload.
    pub fn checksum(&self, entry: usize) -> &[u8] {
        &self.hashes[entry * 2 * HASH + HASH..][..HASH]
    }

    /// Checks what decoding does not, and returns the extent of all payloads; `Err` says what is wrong.
    pub fn check(&self) -> Result<u64, &'static str> {
        if self.hashes.len() != self.entries.len() * 2 * HASH {
            return Err("entries and hashes differ in number");
        }
        if !self.kernels.is_sorted_by(|a, b| a.name < b.name) {
            return Err("kernels are not in order");
        }
        if !self.entries.is_sorted_by(|a, b| a.order() < b.order()) {
            return Err("entries are not in order");
        }
        let mut total = 0u64;
        for entry in &self.entries {
            let kernel = self.kernels.get(entry.kernel as usize).ok_or("an entry names no kernel")?;
            self.places.get(entry.place as usize).ok_or("an entry names no target")?;
            if kernel.fields.len() != entry.key.len() {
                return Err("a key has too many or too few values");
            }
            total = total.checked_add(entry.length).ok_or("payloads are too long")?;
        }
        Ok(total)
    }
}

/// The head of a bundle with this index.
pub fn head(index: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    head[12..20].copy_from_slice(&(index.len() as u64).to_le_bytes());
    let hash = hash(&head[..20], index);
    head[20..].copy_from_slice(hash.as_bytes());
    head
}

/// BLAKE3 of the head's first 20 bytes and of the index.
pub fn hash(start: &[u8], index: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(start).update(index);
    hasher.finalize()
}
