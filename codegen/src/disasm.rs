//! LLVM's disassembler, one instruction at a time.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{self, NonNull};

use inkwell::llvm_sys::disassembler::{
    LLVMCreateDisasmCPUFeatures, LLVMDisasmDispose, LLVMDisasmInstruction, LLVMOpaqueDisasmContext,
};
use lathe_dsl::Target;

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
        NonNull::new(raw).map(|raw| Self { raw }).ok_or(NoDisassembler(target))
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

    #[test]
    fn nvidia_has_none() {
        assert_eq!(Disassembler::new(Target::SM_90).err(), Some(NoDisassembler(Target::SM_90)));
    }
}
