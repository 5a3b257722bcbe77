//! Mutants: a code object with one wait or barrier taken out, one wait weakened, one `s_nop` shortened, or one access that others see
//! going less far ([`exchanges`]), and which of them must be noticed.
//!
//! [`Needs`] works on the recorded events of an intact run and on definitions alone (which completions are possible
//! under a wait), not on the checks that a run makes. So "the run refuses the mutant" and "the verdict says it is
//! needed" are two opinions, and a test can hold them against each other.

mod exchange;
mod messages;
mod verdict;

pub use exchange::{Exchange, Role, exchanges};
pub use messages::{Apart, Told};
pub use verdict::{Needs, Verdict};

use crate::gcn::error::Result;
use crate::gcn::object::{CodeObject, mnemonic};
use crate::gcn::wait::WaitCounts;

/// `s_nop 0`.
const NOP: u32 = 0xBF80_0000;

/// An instruction that can be taken out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its address.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// The first half of a split barrier, which goes with it.
    pub signal: Option<u64>,
}

/// A wait that covers one operation less, or an `s_nop` that is one wait state less.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weakened {
    /// Its address.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// What stands in its place.
    pub word: u32,
    /// What this waits for; `None` for an `s_nop`.
    pub counts: Option<WaitCounts>,
}

/// Every wait and barrier of a kernel.
///
/// # Errors
/// If the object has no such kernel.
pub fn candidates(object: &CodeObject, kernel: &str) -> Result<Vec<Candidate>> {
    let kernel = object.kernel(kernel)?;
    let mut signal = None;
    let mut all = Vec::new();
    for (pc, text) in object.listing(kernel) {
        let name = mnemonic(text);
        if name == "s_barrier_signal" {
            signal = Some(pc);
        } else if matches!(name, "s_waitcnt" | "s_barrier" | "s_barrier_wait") || name.starts_with("s_wait_") {
            let signal = if name == "s_barrier_wait" { signal.take() } else { None };
            // What changes no value is not told apart by what values come out.
            if name != "s_wait_alu" && name != "s_wait_idle" {
                all.push(Candidate { pc, text: text.to_owned(), signal });
            }
        }
    }
    Ok(all)
}

/// The object with the instruction at `pc` replaced by `s_nop 0`.
///
/// # Errors
/// If no 4-byte instruction starts there.
pub fn without(object: &CodeObject, pc: u64) -> Result<CodeObject> {
    object.with_words(pc, &[NOP])
}

impl Candidate {
    /// The object without it.
    ///
    /// # Errors
    /// As [`without`].
    pub fn removed(&self, object: &CodeObject) -> Result<CodeObject> {
        let mutant = without(object, self.pc)?;
        match self.signal {
            Some(signal) => without(&mutant, signal),
            None => Ok(mutant),
        }
    }
}

/// Every way to let a wait of a kernel cover one operation less, and every `s_nop` that can be a wait state shorter.
///
/// # Errors
/// If the object has no such kernel.
pub fn weakened(object: &CodeObject, kernel: &str) -> Result<Vec<Weakened>> {
    let kernel = object.kernel(kernel)?;
    let mut all = Vec::new();
    for (pc, text) in object.listing(kernel) {
        let Some(Ok(inst)) = object.at(pc).map(|d| d.inst.as_ref()) else { continue };
        let Some(word) = object.code_word(pc) else { continue };
        let mut add = |word: u32, counts| all.push(Weakened { pc, text: text.to_owned(), word, counts });
        let counts = inst.mods.wait;
        let immediate = word & 0xFFFF;
        match mnemonic(text) {
            "s_nop" if immediate > 0 => add(word - 1, None),
            "s_waitcnt" => {
                // vmcnt in bits 3:0 and 15:14, lgkmcnt in bits 11:8; all ones: no wait.
                if let Some(n) = counts.vm.filter(|n| *n < 62) {
                    let vm = n + 1;
                    let word = word & !0xC00F | vm & 0xF | (vm >> 4) << 14;
                    add(word, Some(WaitCounts { vm: Some(vm), ..counts }));
                }
                if let Some(n) = counts.lgkm.filter(|n| *n < 14) {
                    add(word & !0xF00 | (n + 1) << 8, Some(WaitCounts { lgkm: Some(n + 1), ..counts }));
                }
            }
            "s_wait_loadcnt" => {
                if let Some(n) = counts.vm.filter(|n| *n < 62) {
                    add(word + 1, Some(WaitCounts { vm: Some(n + 1), ..counts }));
                }
            }
            "s_wait_storecnt" => {
                if let Some(n) = counts.store.filter(|n| *n < 62) {
                    add(word + 1, Some(WaitCounts { store: Some(n + 1), ..counts }));
                }
            }
            "s_wait_dscnt" => {
                if let Some(n) = counts.ds.filter(|n| *n < 62) {
                    add(word + 1, Some(WaitCounts { ds: Some(n + 1), ..counts }));
                }
            }
            "s_wait_kmcnt" => {
                if let Some(n) = counts.km.filter(|n| *n < 30) {
                    add(word + 1, Some(WaitCounts { km: Some(n + 1), ..counts }));
                }
            }
            "s_wait_loadcnt_dscnt" | "s_wait_storecnt_dscnt" => {
                // loadcnt or storecnt in bits 13:8, dscnt in bits 5:0.
                if let Some(n) = counts.vm.filter(|n| *n < 62) {
                    add(word + 0x100, Some(WaitCounts { vm: Some(n + 1), ..counts }));
                }
                if let Some(n) = counts.store.filter(|n| *n < 62) {
                    add(word + 0x100, Some(WaitCounts { store: Some(n + 1), ..counts }));
                }
                if let Some(n) = counts.ds.filter(|n| *n < 62) {
                    add(word + 1, Some(WaitCounts { ds: Some(n + 1), ..counts }));
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

impl Weakened {
    /// The object with it.
    ///
    /// # Errors
    /// As [`without`].
    pub fn applied(&self, object: &CodeObject) -> Result<CodeObject> {
        object.with_words(self.pc, &[self.word])
    }
}
