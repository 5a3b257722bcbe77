//! Architectures of AMD GPUs: the target IDs by which code objects and devices are told apart.
//!
//! Source: LLVM's "User Guide for AMDGPU Backend", section "Target ID".

#![allow(unsafe_code)] // Calls into AMD's library.

use std::ffi::{c_int, c_void};
use std::fmt;

use libloading::Library;

/// A feature that code can need on, off, or either way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    /// The chip lacks it, or the code runs either way.
    Any,
    Off,
    On,
}

impl Setting {
    fn suffix(self, name: &str) -> String {
        match self {
            Self::Any => String::new(),
            Self::Off => format!(":{name}-"),
            Self::On => format!(":{name}+"),
        }
    }
}

/// A chip with the settings that code depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Architecture {
    /// LLVM's name of the chip.
    pub chip: String,
    pub xnack: Setting,
    pub sramecc: Setting,
}

impl fmt::Display for Architecture {
    /// LLVM's target ID: `gfx942:sramecc+:xnack-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.chip, self.sramecc.suffix("sramecc"), self.xnack.suffix("xnack"))
    }
}

impl Architecture {
    /// From a target ID.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let chip = words.next()?;
        let number = chip.strip_prefix("gfx").filter(|n| n.len() >= 3 && n.bytes().all(|b| b.is_ascii_hexdigit()))?;
        number.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
        let mut this = Self { chip: chip.to_owned(), xnack: Setting::Any, sramecc: Setting::Any };
        for word in words {
            let (name, setting) = match (word.strip_suffix('+'), word.strip_suffix('-')) {
                (Some(name), _) => (name, Setting::On),
                (_, Some(name)) => (name, Setting::Off),
                _ => return None,
            };
            match name {
                "xnack" => this.xnack = setting,
                "sramecc" => this.sramecc = setting,
                _ => return None,
            }
        }
        Some(this)
    }
}

/// Fills a structure whose layout differs between versions of HIP.
type GetProperties = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

/// More than the structure has in any version: 792 bytes in HIP 5, 1472 from HIP 6 on.
const PROPERTIES: usize = 1 << 16;

/// The function of AMD's HIP runtime that tells of a device.
pub(crate) struct Properties(GetProperties);

impl Properties {
    /// Its older name, by which errors call it.
    #[cfg(feature = "hip")]
    pub(crate) const CALL: &str = "hipGetDeviceProperties";

    /// The runtime's, which must stay loaded.
    pub(crate) fn of(library: &Library) -> Result<Self, libloading::Error> {
        // From HIP 6 on the old name, if there is one, is that of the old layout; either will do.
        // SAFETY: both have this signature but for the structure's type.
        unsafe {
            let newer = library.get::<GetProperties>(b"hipGetDevicePropertiesR0600\0");
            newer.or_else(|_| library.get::<GetProperties>(b"hipGetDeviceProperties\0")).map(|function| Self(*function))
        }
    }

    /// Name of a device's architecture, such as `gfx942:sramecc+:xnack-`; `None` if it is not told. What the function returns, if
    /// it fails.
    ///
    /// It is a field of a structure whose layout is not relied upon: the field is found by what it holds.
    pub(crate) fn architecture(&self, device: c_int) -> Result<Option<String>, c_int> {
        // As aligned as any structure of numbers and pointers.
        let mut bytes = vec![0u64; PROPERTIES / 8];
        // SAFETY: the structure is smaller than the buffer in every version.
        match unsafe { (self.0)(bytes.as_mut_ptr().cast(), device) } {
            0 => Ok(find(bytemuck::cast_slice(&bytes)).map(ToOwned::to_owned)),
            code => Err(code),
        }
    }
}

/// The longest target ID in `bytes` that a zero byte ends. (A device's marketing name may hold its chip's name alone.)
pub(crate) fn find(bytes: &[u8]) -> Option<&str> {
    let starts = bytes.windows(3).enumerate().filter(|(_, w)| w == b"gfx").map(|(at, _)| at);
    let texts = starts.filter_map(|at| {
        let rest = &bytes[at..];
        let end = rest.iter().position(|b| *b == 0)?;
        std::str::from_utf8(&rest[..end]).ok().filter(|text| Architecture::parse(text).is_some())
    });
    texts.max_by_key(|text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arch(text: &str) -> Architecture {
        Architecture::parse(text).expect(text)
    }

    #[test]
    fn target_ids_are_read_and_written() {
        for text in ["gfx942", "gfx90a:sramecc+:xnack-", "gfx1201", "gfx906:sramecc-", "gfx942:xnack+"] {
            assert_eq!(arch(text).to_string(), text);
        }
        assert_eq!(arch("gfx942:xnack-:sramecc+").to_string(), "gfx942:sramecc+:xnack-");
        for bad in ["", "gfx", "gfx9", "gfxabc", "gfx942:", "gfx942:xnack", "gfx942:wave+", "gfx942 ", "sm_90"] {
            assert_eq!(Architecture::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_name_is_found_wherever_it_is() {
        for at in [392, 1160] {
            let mut bytes = vec![0u8; 4096];
            let name = b"AMD gfx942 gfxes";
            bytes[..name.len()].copy_from_slice(name);
            let text = b"gfx942:sramecc+:xnack-";
            bytes[at..at + text.len()].copy_from_slice(text);
            bytes[at - 1] = 0xff;
            assert_eq!(find(&bytes), Some("gfx942:sramecc+:xnack-"));
        }
        let mut only_chip = b"gfx1201\0........gfx1201".to_vec();
        assert_eq!(find(&only_chip), Some("gfx1201"));
        only_chip.drain(..8);
        assert_eq!(find(&only_chip), None, "nothing ends it");
        assert_eq!(find(&[]), None);
    }
}
