//! An entry's bytes: a header of fixed size, then the artifact.
//!
//! ```text
//!  0  magic      8 bytes
//!  8  format     u32, little endian
//! 12  key        32 bytes
//! 44  length     u64, little endian: bytes after the header
//! 52  checksum   32 bytes: BLAKE3 of what follows
//! 84  artifact   postcard
//! ```
//!
//! Every byte of the header is compared with a value known beforehand or with what follows, so no change of one byte goes
//! unseen.

use lathe_dsl::artifact::Artifact;

use crate::key::DiskKey;

const MAGIC: [u8; 8] = *b"LATHE\x00\r\n";

/// Version of the header and of the artifact's form; entries of another one lie in another folder.
pub const FORMAT: u32 = 1;

const HEADER: usize = 84;

/// Bytes of the entry that holds `artifact`.
pub fn encode(key: &DiskKey, artifact: &Artifact) -> Result<Vec<u8>, postcard::Error> {
    let mut bytes = vec![0; HEADER];
    bytes.reserve(artifact.code.len() + 1024);
    let mut bytes = postcard::to_extend(artifact, bytes)?;
    let (header, payload) = bytes.split_at_mut(HEADER);
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[12..44].copy_from_slice(key.as_bytes());
    header[44..52].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header[52..].copy_from_slice(blake3::hash(payload).as_bytes());
    Ok(bytes)
}

/// The artifact in an entry's bytes, or what is wrong with them. `key` is what the entry must be stored under.
pub fn decode(bytes: &[u8], key: Option<&DiskKey>) -> Result<Artifact, String> {
    let short = || format!("{} bytes are less than a header", bytes.len());
    let (header, payload) = bytes.split_at_checked(HEADER).ok_or_else(short)?;
    if header[..8] != MAGIC {
        return Err("no entry of a cache".to_owned());
    }
    if header[8..12] != FORMAT.to_le_bytes() {
        return Err("another format version".to_owned());
    }
    if key.is_none_or(|key| header[12..44] != key.as_bytes()[..]) {
        return Err("stored under another key than its own".to_owned());
    }
    if header[44..52] != (payload.len() as u64).to_le_bytes() {
        return Err(format!("{} bytes after the header are not what it says", payload.len()));
    }
    if header[52..] != blake3::hash(payload).as_bytes()[..] {
        return Err("wrong checksum".to_owned());
    }
    let (artifact, rest) = postcard::take_from_bytes(payload).map_err(|e| format!("no artifact: {e}"))?;
    if rest.is_empty() { Ok(artifact) } else { Err(format!("{} bytes after the artifact", rest.len())) }
}
