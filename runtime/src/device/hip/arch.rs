//! Architectures of AMD GPUs: what a device is, what a code object was made for, and whether the two go together.
//!
//! Source: LLVM's "User Guide for AMDGPU Backend", sections "Target ID" and "ELF Code Object: Header" (code object V4 and later).

use std::fmt;

/// A feature that code can need on, off, or either way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Setting {
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

    fn runs_on(self, device: Self) -> bool {
        self == Self::Any || self == device
    }
}

/// A chip with the settings that code depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Architecture {
    /// LLVM's name of the chip.
    pub chip: String,
    xnack: Setting,
    sramecc: Setting,
}

impl fmt::Display for Architecture {
    /// LLVM's target ID: `gfx942:sramecc+:xnack-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.chip, self.sramecc.suffix("sramecc"), self.xnack.suffix("xnack"))
    }
}

/// Numbers of chips in a code object's header, for those that Lathe knows.
const MACHINES: [(u32, &str); 7] = [
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x3f, "gfx90a"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x48, "gfx1200"),
    (0x4f, "gfx950"),
];

const ELF_HEADER_BYTES: usize = 64;
const EM_AMDGPU: u16 = 224;

impl Architecture {
    /// From a target ID.
    pub(super) fn parse(text: &str) -> Option<Self> {
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

    /// What a code object's header says that it is for; why that cannot be told.
    pub(super) fn of_code(code: &[u8]) -> Result<Self, String> {
        let header = code.get(..ELF_HEADER_BYTES).filter(|h| h.starts_with(b"\x7fELF\x02\x01"));
        let header = header.ok_or("it is no 64-bit ELF file")?;
        let number = |at: usize| u32::from(header[at]) | u32::from(header[at + 1]) << 8;
        let (machine, flags) = (number(18) as u16, number(48));
        if machine != EM_AMDGPU {
            return Err(format!("it is an ELF file for machine {machine}, not for AMD GPUs"));
        }
        let known = MACHINES.iter().find(|(number, _)| *number == flags & 0xff);
        let chip = known.map_or_else(|| format!("machine {:#x}", flags & 0xff), |(_, name)| (*name).to_owned());
        let setting = |bits: u32| match bits & 3 {
            0 | 1 => Setting::Any,
            2 => Setting::Off,
            _ => Setting::On,
        };
        Ok(Self { chip, xnack: setting(flags >> 8), sramecc: setting(flags >> 10) })
    }

    /// Whether code that is for this runs on `device`.
    pub(super) fn runs_on(&self, device: &Self) -> bool {
        self.chip == device.chip && self.xnack.runs_on(device.xnack) && self.sramecc.runs_on(device.sramecc)
    }
}

/// The longest target ID in `bytes` that a zero byte ends. (A device's marketing name may hold its chip's name alone.)
pub(super) fn find(bytes: &[u8]) -> Option<&str> {
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
    use lathe_dsl::Target;

    use super::*;

    fn arch(text: &str) -> Architecture {
        Architecture::parse(text).expect(text)
    }

    /// A code object's header with these flags.
    fn header(machine: u16, flags: u32) -> Vec<u8> {
        let mut bytes = vec![0; ELF_HEADER_BYTES];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[48..52].copy_from_slice(&flags.to_le_bytes());
        bytes
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
    fn a_header_tells_what_the_code_is_for() {
        for (flags, text) in [
            (0x4f, "gfx950"),
            (0x54c, "gfx942"),
            (0x94c, "gfx942:sramecc-"),
            (0xe4c, "gfx942:sramecc+:xnack-"),
            (0xf3f, "gfx90a:sramecc+:xnack+"),
            (0x4e, "gfx1201"),
            (0xfe, "machine 0xfe"),
        ] {
            assert_eq!(Architecture::of_code(&header(EM_AMDGPU, flags)).unwrap().to_string(), text);
        }
        let error = Architecture::of_code(&header(62, 0)).unwrap_err();
        assert_eq!(error, "it is an ELF file for machine 62, not for AMD GPUs");
        for bad in [&b"\x7fELF\x02\x01"[..], &[0; 100]] {
            assert_eq!(Architecture::of_code(bad).unwrap_err(), "it is no 64-bit ELF file");
        }
    }

    #[test]
    fn code_runs_where_its_settings_are_met() {
        let device = arch("gfx942:sramecc+:xnack-");
        for (code, runs) in [
            ("gfx942", true),
            ("gfx942:xnack-", true),
            ("gfx942:sramecc+", true),
            ("gfx942:xnack+", false),
            ("gfx942:sramecc-:xnack-", false),
            ("gfx950", false),
        ] {
            assert_eq!(arch(code).runs_on(&device), runs, "{code}");
        }
        assert!(!arch("gfx1201:xnack-").runs_on(&arch("gfx1201")), "the chip has no such setting");
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

    /// hip-sys has the layout of HIP 5.
    #[test]
    fn the_name_is_found_in_the_structure_of_hip_5() {
        type Properties = hip_sys::hiprt::hipDeviceProp_t;
        let mut bytes = vec![0u8; 1 << 12];
        let at = std::mem::offset_of!(Properties, gcnArchName);
        bytes[at..at + 6].copy_from_slice(b"gfx950");
        assert_eq!(find(&bytes), Some("gfx950"));
    }

    #[test]
    fn every_amd_target_has_its_number() {
        for target in Target::all().filter(|t| t.chip().name.starts_with("gfx")) {
            assert!(MACHINES.iter().any(|(_, name)| *name == target.chip().name), "{target}");
        }
    }
}
