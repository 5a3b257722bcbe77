//! Memory that another process can map: an anonymous file, which the other one finds among this process's open files.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

/// Allocations of a multiple of this are files of their own.
pub const BLOCK: usize = 2 << 20;
/// First bytes of a handle.
const MAGIC: &[u8; 8] = b"stand-in";
pub const HANDLE_BYTES: usize = 64;

/// A file, mapped.
pub struct Mapping {
    start: *mut libc::c_void,
    pub bytes: usize,
    file: File,
    /// Process and descriptor that it is from.
    pub origin: (u32, u32),
}

// SAFETY: it is plain memory, which lives as long as this.
unsafe impl Send for Mapping {}

impl Mapping {
    /// New memory of so many bytes.
    pub fn new(bytes: usize) -> Option<Self> {
        // SAFETY: the name ends in a zero byte.
        let descriptor = unsafe { libc::memfd_create(c"stand-in-cuda".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return None;
        }
        // SAFETY: it was just made, and is nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(bytes as u64).ok()?;
        Self::map(file, bytes, (std::process::id(), descriptor as u32))
    }

    fn map(file: File, bytes: usize, origin: (u32, u32)) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the file has so many bytes; the system chooses a place where nothing is.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        (start != libc::MAP_FAILED).then_some(Self { start, bytes, file, origin })
    }

    pub fn address(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    /// What another process opens.
    pub fn handle(&self) -> [u8; HANDLE_BYTES] {
        let mut handle = [0; HANDLE_BYTES];
        handle[..8].copy_from_slice(MAGIC);
        handle[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        handle[12..16].copy_from_slice(&(self.file.as_raw_fd() as u32).to_le_bytes());
        handle[16..24].copy_from_slice(&(self.bytes as u64).to_le_bytes());
        handle
    }

    /// Another process's memory; `None` if the handle tells of none.
    pub fn open(handle: &[u8; HANDLE_BYTES]) -> Option<Self> {
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| handle[at + i]));
        let (process, descriptor) = (number(8), number(12));
        if &handle[..8] != MAGIC {
            return None;
        }
        let path = format!("/proc/{process}/fd/{descriptor}");
        let file = File::options().read(true).write(true).open(path).ok()?;
        let bytes = u64::from_le_bytes(std::array::from_fn(|i| handle[16 + i]));
        // Another file may have its number by now.
        let ours = file.metadata().ok().filter(|m| m.len() == bytes)?;
        Self::map(file, ours.len() as usize, (process, descriptor))
    }

    /// Whether a handle is of this process.
    pub fn is_own(handle: &[u8; HANDLE_BYTES]) -> bool {
        handle[8..12] == std::process::id().to_le_bytes()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped once.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
