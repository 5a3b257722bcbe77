//! Handles of regions for other processes.

use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// First bytes of every handle.
const MAGIC: &[u8; 8] = b"LATHEPEE";
/// Changes with the layout.
const VERSION: u16 = 1;
/// What a driver's own handle takes, CUDA's and HIP's alike.
pub(in crate::device) const DRIVER_BYTES: usize = 64;
/// Longest name of a device.
const NAME_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 16;

/// Whose handle it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(in crate::device) enum Maker {
    Cuda = 1,
    Hip = 2,
}

/// A [region](super::PeerRegion) for other processes: [`PeerHandle::to_bytes`] goes there by whatever way there is, and
/// [`Device::import_region`](trait@crate::device::Device#method.import_region) takes it. It means something on the same machine only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerHandle {
    pub(in crate::device) maker: Maker,
    pub(in crate::device) driver: [u8; DRIVER_BYTES],
    bytes: u64,
    device: String,
    process: u32,
    /// Tells this process from others, also of other containers.
    nonce: u64,
}

/// Why bytes are no handle.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerHandleError {
    /// Another length than every handle has.
    #[error("a peer handle has {wanted} bytes, {given} were given")]
    Length {
        /// Bytes given.
        given: usize,
        /// Bytes of a handle.
        wanted: usize,
    },
    /// Something else altogether.
    #[error("the bytes are no peer handle of Lathe's")]
    Foreign,
    /// Made by another version of Lathe.
    #[error("the peer handle is of version {given}, this is version {}", VERSION)]
    Version {
        /// Version of the handle.
        given: u16,
    },
    /// Changed on the way.
    #[error("the peer handle is damaged: its checksum is that of other bytes")]
    Damaged,
}

/// A number that no other process has.
static NONCE: LazyLock<u64> = LazyLock::new(|| {
    // The hasher's keys are random in each process.
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u128(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos()));
    hasher.finish()
});

fn checksum(content: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = blake3::hash(content);
    std::array::from_fn(|i| hash.as_bytes()[i])
}

impl PeerHandle {
    /// Length of [`PeerHandle::to_bytes`].
    pub const BYTES: usize = MAGIC.len() + 2 + 1 + DRIVER_BYTES + 8 + NAME_BYTES + 4 + 8 + CHECKSUM_BYTES;

    /// Of a region of this process.
    pub(in crate::device) fn new(maker: Maker, driver: [u8; DRIVER_BYTES], bytes: u64, device: &str) -> Self {
        Self { maker, driver, bytes, device: device.to_owned(), process: std::process::id(), nonce: *NONCE }
    }

    /// Bytes of the region.
    pub fn region_bytes(&self) -> u64 {
        self.bytes
    }

    /// The device that the region lies on, as its process counts, and that process.
    pub fn owner(&self) -> String {
        format!("{} of process {}", self.device, self.process)
    }

    /// Why memory that the driver opened at `address` cannot be the region, by where it begins and how long it is, as the driver says.
    pub(in crate::device) fn misfit(&self, address: u64, base: u64, size: u64) -> Option<String> {
        (base != address || size < self.bytes).then(|| {
            let bytes = self.bytes;
            format!(
                "the handle is of {bytes} bytes, but what was opened at 0x{address:x} has {size} bytes from 0x{base:x}"
            )
        })
    }

    pub(super) fn is_own(&self) -> bool {
        self.nonce == *NONCE
    }

    /// The handle for a message, always [`PeerHandle::BYTES`] long.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut name = [0; NAME_BYTES];
        let device = self.device.as_bytes();
        let length = device.len().min(NAME_BYTES);
        name[..length].copy_from_slice(&device[..length]);
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.push(self.maker as u8);
        bytes.extend(self.driver);
        bytes.extend(self.bytes.to_le_bytes());
        bytes.extend(name);
        bytes.extend(self.process.to_le_bytes());
        bytes.extend(self.nonce.to_le_bytes());
        bytes.extend(checksum(&bytes));
        bytes
    }

    /// The handle in a message.
    ///
    /// # Errors
    /// The bytes are not what [`PeerHandle::to_bytes`] gave.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PeerHandleError> {
        let mut rest = bytes;
        // Another version may have another length.
        if take(&mut rest) != Some(*MAGIC) {
            return Err(PeerHandleError::Foreign);
        }
        let length = PeerHandleError::Length { given: bytes.len(), wanted: Self::BYTES };
        let version = take(&mut rest).map(u16::from_le_bytes).ok_or(length.clone())?;
        if version != VERSION {
            return Err(PeerHandleError::Version { given: version });
        }
        if bytes.len() != Self::BYTES {
            return Err(length);
        }
        let (content, sum) = bytes.split_at(Self::BYTES - CHECKSUM_BYTES);
        if checksum(content) != sum {
            return Err(PeerHandleError::Damaged);
        }
        Self::content(rest).ok_or(PeerHandleError::Foreign)
    }

    /// What follows the version.
    fn content(mut rest: &[u8]) -> Option<Self> {
        let maker = match take(&mut rest)? {
            [1] => Maker::Cuda,
            [2] => Maker::Hip,
            _ => return None,
        };
        let driver = take(&mut rest)?;
        let bytes = u64::from_le_bytes(take(&mut rest)?);
        let name: [u8; NAME_BYTES] = take(&mut rest)?;
        let device = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
        let process = u32::from_le_bytes(take(&mut rest)?);
        let nonce = u64::from_le_bytes(take(&mut rest)?);
        Some(Self { maker, driver, bytes, device, process, nonce })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> PeerHandle {
        PeerHandle::new(Maker::Cuda, std::array::from_fn(|i| i as u8), 3 << 20, "cuda:7")
    }

    #[test]
    fn a_handle_comes_back_as_it_was() {
        let bytes = handle().to_bytes();
        assert_eq!(bytes.len(), PeerHandle::BYTES);
        let back = PeerHandle::from_bytes(&bytes).unwrap();
        assert_eq!(back, handle());
        assert_eq!(back.owner(), format!("cuda:7 of process {}", std::process::id()));
        assert!(back.is_own());
        let other = PeerHandle { nonce: *NONCE ^ 1, maker: Maker::Hip, ..handle() };
        let other = PeerHandle::from_bytes(&other.to_bytes()).unwrap();
        assert!(!other.is_own() && other.maker == Maker::Hip);
    }

    #[test]
    fn every_change_is_seen() {
        let bytes = handle().to_bytes();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let error = PeerHandle::from_bytes(&bad).unwrap_err();
                let wanted = match at {
                    0..8 => matches!(error, PeerHandleError::Foreign),
                    8..10 => matches!(error, PeerHandleError::Version { .. }),
                    _ => error == PeerHandleError::Damaged,
                };
                assert!(wanted, "byte {at}, bit {bit}: {error}");
            }
        }
        for length in 0..bytes.len() {
            let error = PeerHandle::from_bytes(&bytes[..length]).unwrap_err();
            let wanted = PeerHandleError::Length { given: length, wanted: PeerHandle::BYTES };
            assert_eq!(error, if length < 8 { PeerHandleError::Foreign } else { wanted });
        }
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        assert!(matches!(PeerHandle::from_bytes(&longer), Err(PeerHandleError::Length { .. })));
    }

    /// A sound checksum over content that no version writes.
    #[test]
    fn an_unknown_maker_is_foreign() {
        let mut bytes = handle().to_bytes();
        bytes[10] = 9;
        let end = bytes.len() - CHECKSUM_BYTES;
        let sum = checksum(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum);
        assert_eq!(PeerHandle::from_bytes(&bytes), Err(PeerHandleError::Foreign));
    }
}
