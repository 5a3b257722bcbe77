//! Mutants of what workgroups and devices tell each other: accesses that go less far through the caches, fences and stores that are
//! not there.

use std::collections::BTreeMap;

use lathe_codegen::Disassembler;

use super::NOP;
use super::messages::{Apart, Told};
use crate::gcn::error::{ErrorKind, Result};
use crate::gcn::isa::{Op, control, transfer};
use crate::gcn::object::{CodeObject, mnemonic};
use crate::visibility::Reach;

/// What an instruction does for what is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Both at once.
    Atomic,
    /// Writes caches back, or drops what they hold.
    Fence,
}

/// A coherent access or a fence that goes less far, or is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// Its address.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// What it does.
    pub role: Role,
    /// Its text as a mutant; `None` where it is not there.
    pub instead: Option<String>,
    words: Vec<u32>,
}

impl Exchange {
    /// The object with it.
    ///
    /// # Errors
    /// As [`super::without`].
    pub fn applied(&self, object: &CodeObject) -> Result<CodeObject> {
        object.with_words(self.pc, &self.words)
    }

    /// Whether launch number `launch` of those that `told` is of needs the access as it is; `None` of a fence, of which what is
    /// told by whom does not decide.
    pub fn is_needed(&self, told: &Told, launch: usize) -> Option<bool> {
        let apart = match self.role {
            Role::Load => told.load(launch, self.pc),
            Role::Store => told.store(launch, self.pc),
            Role::Atomic => told.store(launch, self.pc).max(told.load(launch, self.pc)),
            Role::Fence => return None,
        };
        let reach = self.instead.as_deref().map_or(Some(Reach::Wave), |text| self.role.reach(text));
        let least = match apart {
            None => return Some(false),
            Some(Apart::Workgroups) => Reach::Device,
            Some(Apart::Devices) => Reach::System,
        };
        Some(reach.is_none_or(|reach| reach < least))
    }
}

impl Role {
    fn of(object: &CodeObject, pc: u64, text: &str) -> Option<Self> {
        if ["buffer_inv", "buffer_wbl2", "global_inv", "global_wb", "global_wbinv"].contains(&mnemonic(text)) {
            return Some(Self::Fence);
        }
        let (Op::Mubuf(row) | Op::Flat(_, row)) = object.at(pc)?.inst.as_ref().ok()?.op else { return None };
        match row.kind {
            transfer::Kind::Load { .. } | transfer::Kind::LoadLds { .. } => Some(Self::Load),
            transfer::Kind::Store { .. } => Some(Self::Store),
            transfer::Kind::Atomic { .. } => Some(Self::Atomic),
        }
    }

    /// How far it goes by its text.
    fn reach(self, text: &str) -> Option<Reach> {
        if self == Self::Atomic { control::reach_of_atomic(text) } else { control::reach(text) }
    }

    /// Whether a word of its text says how far it goes.
    fn says_how_far(self, word: &str) -> bool {
        word == "sc1" || word == "sc0" && self != Self::Atomic || word.starts_with("scope:")
    }
}

/// Every access of a kernel that reaches other workgroups, going less far in each way that there is, and every store of these and every
/// fence taken out.
///
/// # Errors
/// If the object has no such kernel.
pub fn exchanges(object: &CodeObject, kernel: &str) -> Result<Vec<Exchange>> {
    let kernel = object.kernel(kernel)?;
    let no_disassembler = |e: lathe_codegen::NoDisassembler| ErrorKind::Object(e.to_string());
    let mut disassembler = Disassembler::new(object.target()).map_err(no_disassembler)?;
    let mut all = Vec::new();
    for (pc, text) in object.listing(kernel) {
        let Some(role) = Role::of(object, pc, text) else { continue };
        // An atomic operation that says nothing is made by the device's cache, and can go no less far.
        let further = control::reach(text).is_some_and(|reach| reach >= Reach::Device);
        if !further {
            continue;
        }
        let words = object.code_words(pc);
        let mut add = |instead, words| all.push(Exchange { pc, text: text.to_owned(), role, instead, words });
        if matches!(role, Role::Store | Role::Fence) {
            add(None, vec![NOP; words.len()]);
        }
        for (text, words) in narrower(&mut disassembler, object, role, pc, text, &words) {
            add(Some(text), words);
        }
    }
    Ok(all)
}

/// The encodings that differ from an instruction in how far it goes alone, and go less far: found by trying bits.
fn narrower(
    disassembler: &mut Disassembler,
    object: &CodeObject,
    role: Role,
    pc: u64,
    text: &str,
    words: &[u32],
) -> BTreeMap<String, Vec<u32>> {
    let rest = |text: &str| -> Vec<String> {
        text.split_whitespace().filter(|word| !role.says_how_far(word)).map(str::to_owned).collect()
    };
    let wanted = rest(text);
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut next = vec![(text.to_owned(), words.to_vec())];
    while let Some((text, words)) = next.pop() {
        for bit in 0..32 * words.len() {
            let mut changed = words.clone();
            changed[bit / 32] ^= 1 << (bit % 32);
            let Some(new) = object.text_of(disassembler, pc, &changed) else { continue };
            if role.reach(&new) < role.reach(&text) && rest(&new) == wanted && !found.contains_key(&new) {
                found.insert(new.clone(), changed.clone());
                next.push((new, changed));
            }
        }
    }
    found
}
