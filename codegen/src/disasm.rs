//! LLVM's disassembler, one instruction at a time.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{self, NonNull};

use inkwell::llvm_sys::disassembler::{
    LLVMCreateDisasmCPUFeatures, LLVMDisasmDispose, LLVMDisasmInstruction, LLVMOpaqueDisasmContext,
};
use lathe_dsl::Target;
use lathe_dsl::target::Generation;

use crate::llvm;

/// LLVM has no disassembler for the chip: NVIDIA's PTX is text, not machine code.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no disassembler for target {0}")]
pub struct NoDisassembler(pub Target);

/// Decodes a chip's machine instructions into LLVM's assembly text.
///
/// ```
/// use lathe_codegen::Disassembler;
/// use lathe_dsl::Target;
/// let mut disassembler = Disassembler::new(Target::GFX950).unwrap();
/// let (size, text) = disassembler.decode(&0xBF81_0000u32.to_le_bytes(), 0).unwrap();
/// assert_eq!((size, text.as_str()), (4, "s_endpgm"));
/// ```
pub struct Disassembler {
    raw: NonNull<LLVMOpaqueDisasmContext>,
    generation: Generation,
}

// SAFETY: the context is plain heap data used through `&mut self` only; LLVM keeps no thread-local state for it.
unsafe impl Send for Disassembler {}

impl Disassembler {
    /// More bytes than any instruction has.
    const LONGEST: usize = 32;

    /// Longest text LLVM may write for one instruction, in bytes, its terminating zero counted.
    const TEXT_BYTES: usize = 512;

    /// A disassembler for a chip.
    ///
    /// # Errors
    /// [`NoDisassembler`] if LLVM has none for it.
    pub fn new(target: Target) -> Result<Self, NoDisassembler> {
        llvm::initialize();
        let chip = target.chip();
        let c = |s: &str| CString::new(s).map_err(|_| NoDisassembler(target));
        let (triple, cpu, features) = (c(chip.triple)?, c(chip.name)?, c(chip.features)?);
        // SAFETY: three valid C strings; no callbacks, so no user data.
        let raw = unsafe {
            LLVMCreateDisasmCPUFeatures(
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                ptr::null_mut(),
                0,
                None,
                None,
            )
        };
        let generation = chip.generation;
        NonNull::new(raw).map(|raw| Self { raw, generation }).ok_or(NoDisassembler(target))
    }

    /// Decodes the instruction at the start of `bytes`, which lies at address `pc` (branch targets are printed
    /// relative to it). Returns its size in bytes and its text without leading blanks; `None` if no instruction starts
    /// there.
    pub fn decode(&mut self, bytes: &[u8], pc: u64) -> Option<(usize, String)> {
        let mut text = [0 as c_char; Self::TEXT_BYTES];
        // LLVM crashes on an instruction whose literal is cut off: it always gets a whole one to read.
        let mut window = [0u8; Self::LONGEST];
        let available = bytes.len().min(Self::LONGEST);
        window[..available].copy_from_slice(&bytes[..available]);
        if crashes(&window, self.generation) {
            return None;
        }
        // SAFETY: LLVM reads at most `window.len()` bytes, and writes at most `text.len()` bytes with a terminating
        // zero.
        let size = unsafe {
            LLVMDisasmInstruction(
                self.raw.as_ptr(),
                window.as_mut_ptr(),
                window.len() as u64,
                pc,
                text.as_mut_ptr(),
                text.len(),
            )
        };
        if size == 0 || size > available {
            return None;
        }
        // SAFETY: LLVM wrote a zero-terminated string into `text`.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        Some((size, text.to_string_lossy().trim().replace('\t', " ")))
    }
}

/// Whether the bytes are among those that are no instruction and that LLVM 22.1 nevertheless crashes on: a literal where the
/// encoding has none, a reserved selection of SDWA, an operand of a scaled matrix product that is no VGPR.
fn crashes(bytes: &[u8; Disassembler::LONGEST], generation: Generation) -> bool {
    const LITERAL: u32 = 0xFF;
    const SDWA: u32 = 0xF9;
    let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("4 bytes of 32"));
    let field = |word: u32, shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
    let sources = |word: u32| [0, 9, 18].map(|shift| field(word, shift, 9));
    let (first, second) = (word(0), word(1));
    if generation == Generation::Rdna4 {
        // s_barrier_* with a number of 32 bits.
        return first >> 23 == 0x17D && field(first, 0, 8) == LITERAL && (0x4D..=0x53).contains(&field(first, 8, 8));
    }
    if first >> 31 == 0 && field(first, 0, 9) == SDWA {
        let compare = first >> 25 == 0x3E;
        let result = field(second, 8, 3) == 7 || field(second, 11, 2) == 3;
        return field(second, 16, 3) == 7 || field(second, 24, 3) == 7 || !compare && result;
    }
    if generation == Generation::Cdna4 {
        if first >> 23 != 0x1A7 {
            return false;
        }
        let is_vgpr = |source: u32| source >> 8 == 1;
        let [a, b, _] = sources(second);
        return match field(first, 16, 7) {
            0x2D | 0x2E => !(is_vgpr(a) && is_vgpr(b)),
            // The scales come first, the product behind them.
            0x2C => {
                let [x, y, z] = sources(word(3));
                a == LITERAL || b == LITERAL || z == LITERAL || !(is_vgpr(x) && is_vgpr(y))
            }
            _ => false,
        };
    }
    match first >> 26 {
        // VOP3; of a comparison the destination is a scalar too.
        0x34 => sources(second).contains(&LITERAL) || field(first, 16, 10) < 0x100 && field(first, 0, 8) == LITERAL,
        // MTBUF, MUBUF: the scalar offset.
        0x38 | 0x3A => second >> 24 == LITERAL,
        _ => false,
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        // SAFETY: created by `LLVMCreateDisasmCPUFeatures`, disposed of once.
        unsafe { LLVMDisasmDispose(self.raw.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_sizes_and_text() {
        let mut d = Disassembler::new(Target::GFX950).unwrap();
        // v_add_f32_e32 v1, v2, v3 · s_mov_b32 s0, 0x12345678 (8 bytes) · s_endpgm
        let code: Vec<u8> =
            [0x0202_0702u32, 0xBE80_00FF, 0x1234_5678, 0xBF81_0000].iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut pc = 0;
        let mut seen = vec![];
        while pc < code.len() {
            let (size, text) = d.decode(&code[pc..], pc as u64).unwrap();
            seen.push((size, text));
            pc += size;
        }
        let expected = [(4, "v_add_f32_e32 v1, v2, v3"), (8, "s_mov_b32 s0, 0x12345678"), (4, "s_endpgm")];
        assert_eq!(seen, expected.map(|(n, t)| (n, t.to_owned())));
    }

    #[test]
    fn truncated_or_undefined_words_are_refused() {
        let mut d = Disassembler::new(Target::GFX950).unwrap();
        assert_eq!(d.decode(&[], 0), None);
        assert_eq!(d.decode(&[0, 0], 0), None);
        assert_eq!(d.decode(&0xFFFF_FFFFu32.to_le_bytes(), 0), None);
    }

    /// Bytes of any kind are decoded or refused. LLVM crashes on some that are no instruction; these are here by name, the others
    /// by chance.
    #[test]
    fn no_bytes_crash_the_disassembler() {
        let mut state = 1u64;
        let mut next = move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 32
        };
        // Source fields that are no registers.
        let special = [0xF9, 0xFA, 0xFF, 0xE9, 0xFE, 0xFD, 0x7C, 0x7D, 0x80, 0xF0, 0xEC, 0xD1, 0x6A, 0x7F, 0x65];
        for target in [Target::GFX950, Target::GFX942, Target::GFX1201] {
            let mut d = Disassembler::new(target).unwrap();
            let mut refuse = |words: [u32; 4]| {
                let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                d.decode(&bytes, 0).is_none()
            };
            let known: &[[u32; 4]] = match target.chip().generation {
                Generation::Cdna4 => &[
                    [0x5C00_00F9, 0x0700_0000, 0, 0],
                    [0xD3AC_0000, 0xFF, 0xD3AD_0800, 0],
                    [0xD3AC_0000, 0, 0xD3AD_0A00, 0x75],
                    [0xD3AC_0000, 0, 0xD3AD_0800, 0x03FE_0300],
                    [0xD3AD_0000, 0x4001_9000, 0, 0],
                ],
                Generation::Cdna3 => &[
                    [0xE000_0000, 0xFF00_0000, 0, 0],
                    [0xD280_0000, 0xFF, 0, 0],
                    [0xD040_00FF, 0x2000, 0, 0],
                    [0x16C3_E8F9, 0x6611_A70B, 0, 0],
                ],
                _ => &[[0xBE80_4EFF, 0, 0, 0], [0xBE80_50FF, 0, 0, 0]],
            };
            for words in known {
                assert!(refuse(*words), "{target} {words:x?}");
            }
            let mut decoded = 0;
            for _ in 0..200_000 {
                let mut words = [0; 4].map(|_: u32| next() as u32);
                let choice = next() as usize;
                let source = |shift: usize| special[(choice >> shift) % special.len()];
                if choice & 1 != 0 {
                    words[0] = words[0] & !0xFF | source(8);
                }
                if choice & 2 != 0 {
                    words[1] = words[1] & !0xFF | source(12);
                }
                if choice & 4 != 0 {
                    words[1] = words[1] & 0x00FF_FFFF | source(16) << 24;
                }
                if choice & 8 != 0 {
                    words[1] = words[1] & !(0x1FF << 9) | source(20) << 9;
                }
                if choice & 0x30 == 0 {
                    words[0] = words[0] & 0x03FF_FFFF | 0x34 << 26;
                } else if choice & 0xF0 == 0x10 {
                    (words[0], words[2]) = (words[0] & 0xFFFF | 0xD3AC_0000, words[2] & 0xFFFF | 0xD3AD_0000);
                }
                decoded += u32::from(!refuse(words));
            }
            assert!(decoded > 20_000, "{target}: {decoded}");
        }
    }

    #[test]
    fn nvidia_has_none() {
        assert_eq!(Disassembler::new(Target::SM_90).err(), Some(NoDisassembler(Target::SM_90)));
    }
}
