//! What a code object was made for, and whether a device runs it.
//!
//! Source: LLVM's "User Guide for AMDGPU Backend", section "ELF Code Object: Header" (code object V4 and later).

use crate::arch::{Architecture, Setting};

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

impl Setting {
    fn runs_on(self, device: Self) -> bool {
        self == Self::Any || self == device
    }
}

impl Architecture {
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

#[cfg(test)]
mod tests {
    use lathe_dsl::Target;

    use super::*;
    use crate::arch::find;

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
