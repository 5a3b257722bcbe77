//! Keys of caches and bundles: a hash of everything that decides a compiled kernel's code.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use lathe_dsl::ir::{self, ParamKind};
use lathe_dsl::{Target, ir::Kernel};

/// Names the hash's purpose and the order and meaning of [`KeyParts`]; a change of either changes this text.
const CONTEXT: &str = "lathe 2026 compiled kernel: kernel_ir chip features flags abi llvm lathe";

/// As [`CONTEXT`], for [`DiskKey::of_cubin`].
const CUBIN_CONTEXT: &str = "lathe 2026 cubin: ptx chip driver";

/// Everything that a compiled kernel's code depends on, as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyParts<'a> {
    /// The kernel, printed: location-free, so where it was written plays no part.
    pub kernel_ir: &'a str,
    /// The chip's name and its LLVM triple.
    pub chip: &'a str,
    /// The chip's LLVM subtarget features.
    pub features: &'a str,
    /// Compiler flags.
    pub flags: &'a str,
    /// The kernel ABI: offset, size and declaration of every parameter ([`abi_text`]).
    pub abi: &'a str,
    /// Version of LLVM.
    pub llvm: &'a str,
    /// Version of Lathe's own code generators.
    pub lathe: &'a str,
}

/// The compiler behind an artifact, as far as it decides the code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fingerprint {
    /// Version of LLVM.
    pub llvm: String,
    /// Version of Lathe's own code generators.
    pub lathe: String,
}

/// Name of a compiled kernel in caches and bundles: the BLAKE3 hash of its [`KeyParts`].
///
/// Written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DiskKey([u8; 32]);

impl DiskKey {
    /// The key of these parts: BLAKE3, in key-derivation mode, over every part in order, each preceded by its length
    /// in bytes (64 bits, little endian).
    pub fn derive(parts: &KeyParts<'_>) -> Self {
        // Every field is named, so that a new one cannot be forgotten here.
        let KeyParts { kernel_ir, chip, features, flags, abi, llvm, lathe } = *parts;
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        for part in [kernel_ir, chip, features, flags, abi, llvm, lathe] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// The key under which `kernel`, compiled for `target` with these flags by this compiler, is stored.
    pub fn of(kernel: &Kernel, target: Target, flags: &str, compiler: &Fingerprint) -> Self {
        let chip = target.chip();
        Self::derive(&KeyParts {
            kernel_ir: &kernel.to_string(),
            chip: &format!("{} {}", chip.name, chip.triple),
            features: chip.features,
            flags,
            abi: &abi_text(kernel),
            llvm: &compiler.llvm,
            lathe: &compiler.lathe,
        })
    }

    /// The key under which the code that an NVIDIA driver makes of `ptx` for `chip` is stored; `driver` names the driver's
    /// version. In key-derivation mode like [`DiskKey::derive`], with a text of its own.
    pub fn of_cubin(ptx: &[u8], chip: &str, driver: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CUBIN_CONTEXT);
        for part in [ptx, chip.as_bytes(), driver.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// The hash itself.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A key from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Name of the entry point of a kernel called `name`: the name and the key's first 8 digits, so that two builds of one
    /// kernel are told apart by debuggers and profilers, and can be loaded side by side.
    pub fn symbol(&self, name: &str) -> String {
        let [a, b, c, d, ..] = self.0;
        format!("{name}_{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

/// The kernel's argument block as text: a line a parameter with its byte offset, size and declaration, and the total size.
pub fn abi_text(kernel: &Kernel) -> String {
    let (offsets, total) = kernel.abi_layout();
    let mut text = String::new();
    for (param, offset) in kernel.params.iter().zip(offsets) {
        let ir::Param { name, kind } = param;
        let size = kind.abi_bytes();
        // Writing to a string cannot fail.
        let _ = match kind {
            ParamKind::Buffer { elem, len, access, align } => {
                writeln!(text, "{offset}+{size} {name}: buffer<{elem}>[{len}] {access:?} align {align}")
            }
            ParamKind::Texture { .. } | ParamKind::Surface(_) => writeln!(text, "{offset}+{size} {param}"),
            ParamKind::Scalar(scalar) => writeln!(text, "{offset}+{size} {name}: {scalar}"),
        };
    }
    let _ = writeln!(text, "{total}");
    text
}

impl fmt::Display for DiskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DiskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DiskKey({self})")
    }
}

/// Text that is no [`DiskKey`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no key: a key is 64 lower-case hexadecimal digits")]
pub struct BadDiskKey(pub String);

impl FromStr for DiskKey {
    type Err = BadDiskKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let parse = || {
            let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
            let mut bytes = [0; 32];
            for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                *byte = digit(pair[0])? << 4 | digit(pair[1])?;
            }
            Some(Self(bytes))
        };
        parse().ok_or_else(|| BadDiskKey(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PARTS: KeyParts<'static> = KeyParts {
        kernel_ir: "kernel",
        chip: "gfx950",
        features: "+a",
        flags: "",
        abi: "0+8",
        llvm: "22.1.8",
        lathe: "0.1.0",
    };

    #[test]
    fn each_part_alone_changes_the_key() {
        let other = "something else";
        let all = [
            PARTS,
            KeyParts { kernel_ir: other, ..PARTS },
            KeyParts { chip: other, ..PARTS },
            KeyParts { features: other, ..PARTS },
            KeyParts { flags: other, ..PARTS },
            KeyParts { abi: other, ..PARTS },
            KeyParts { llvm: other, ..PARTS },
            KeyParts { lathe: other, ..PARTS },
        ];
        let keys: HashSet<DiskKey> = all.iter().map(DiskKey::derive).collect();
        assert_eq!(keys.len(), all.len());
        assert_eq!(DiskKey::derive(&PARTS), DiskKey::derive(&PARTS.clone()));
    }

    #[test]
    fn text_cannot_move_from_one_part_to_the_next() {
        let one = KeyParts { chip: "gfx950", features: "+a", ..PARTS };
        let two = KeyParts { chip: "gfx950+", features: "a", ..PARTS };
        let three = KeyParts { chip: "", features: "gfx950+a", ..PARTS };
        assert_ne!(DiskKey::derive(&one), DiskKey::derive(&two));
        assert_ne!(DiskKey::derive(&one), DiskKey::derive(&three));
    }

    #[test]
    fn keys_are_the_same_on_every_machine_and_in_every_version() {
        // A change of this value orphans every entry and bundle: it must be meant.
        let pinned = "0e2b1d5b45d0cca6114a2964d6ece782e6928dcab15f70b110eba1431e9cc949";
        assert_eq!(DiskKey::derive(&PARTS).to_string(), pinned);
    }

    #[test]
    fn a_cubin_is_stored_by_ptx_chip_and_driver() {
        let of = DiskKey::of_cubin;
        let all = [
            of(b".version 8.4", "sm_90", "13000 580.65.06"),
            of(b".version 8.5", "sm_90", "13000 580.65.06"),
            of(b".version 8.4", "sm_89", "13000 580.65.06"),
            of(b".version 8.4", "sm_90", "12040 550.54.14"),
            of(b".version 8.4", "sm_90", "13000 580.82.07"),
            of(b".version 8.4s", "m_90", "13000 580.65.06"),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert_eq!(all[0], of(b".version 8.4", "sm_90", "13000 580.65.06"));
    }

    #[test]
    fn keys_are_written_and_read() {
        let key = DiskKey::derive(&PARTS);
        let text = key.to_string();
        assert_eq!(text.parse::<DiskKey>(), Ok(key));
        assert_eq!(key.symbol("axpy"), format!("axpy_{}", &text[..8]));
        for bad in ["", &text[1..], &format!("{text}0"), &text.to_uppercase(), &format!("g{}", &text[1..])] {
            assert_eq!(bad.parse::<DiskKey>().unwrap_err().0, bad);
        }
    }
}
