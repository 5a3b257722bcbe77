//! Shadow memory: for every 4-byte word, the accesses that a later one may race with.
//!
//! Most words have at most one store and one kind of load that matter; they lie in the word's [`Cell`]. What does not fit
//! there (lanes that access parts of a word, loads of several waves) goes to a list. Loads do not race with loads, so where all of a
//! list are loads, as of tables that every workgroup reads, one more is just added.

use rustc_hash::FxHashMap;

use super::super::program::Pc;
use super::know::{Domain, WaveId};
use crate::visibility::Reach;

/// Accesses kept a word. Past that the oldest load, or else the oldest access, is forgotten.
const MAX_A_WORD: usize = 16;

/// All four bytes of a word.
const ALL_BYTES: u8 = 0xF;

/// An access to a word by lanes of one wave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// None in an empty one.
    pub(super) lanes: u64,
    pub(super) wave: WaveId,
    pub(super) epoch: u32,
    pub(super) pc: Pc,
    /// Tells executions of one store apart.
    pub(super) stamp: u16,
    /// Which of the word's bytes.
    pub(super) bytes: u8,
    pub(super) how: How,
}

/// What an access is: bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct How(u8);

impl How {
    pub(super) const LOAD: Self = Self(0);
    pub(super) const STORE: Self = Self(Self::WRITES);
    pub(super) const UPDATE: Self = Self(Self::WRITES | Self::READS_TOO);
    /// A store that a copy to LDS makes.
    pub(super) const COPY: Self = Self(Self::WRITES | Self::COPIES);
    const REACH: u8 = 7;
    const WRITES: u8 = 8;
    const READS_TOO: u8 = 16;
    const COPIES: u8 = 32;
    /// Not an access: the word has a list.
    const LISTED: u8 = 64;
    /// Of a word that has a list: of loads alone.
    const LOADED: u8 = Self::LISTED | 128;

    /// The same as an atomic access that reaches so far (see [`Reach`]).
    pub(super) fn atomic(self, reach: Reach) -> Self {
        Self(self.0 | reach as u8)
    }

    pub(super) fn writes(self) -> bool {
        self.0 & Self::WRITES != 0
    }

    pub(super) fn updates(self) -> bool {
        self.0 & Self::READS_TOO != 0
    }

    pub(super) fn copies(self) -> bool {
        self.0 & Self::COPIES != 0
    }

    pub(super) fn is_atomic(self) -> bool {
        self.reach() != 0
    }

    /// 0 for what is not atomic.
    fn reach(self) -> u8 {
        self.0 & Self::REACH
    }

    /// What orders it, in global memory.
    pub(super) fn global_domain(self) -> Domain {
        const DEVICE: u8 = Reach::Device as u8;
        match self.reach() {
            _ if !self.writes() => Domain::Done,
            ..DEVICE => Domain::Plain,
            DEVICE => Domain::Device,
            _ => Domain::Done,
        }
    }
}

impl Entry {
    const EMPTY: Self = Self { lanes: 0, wave: 0, epoch: 0, pc: 0, stamp: 0, bytes: 0, how: How::LOAD };

    fn is_empty(&self) -> bool {
        self.lanes == 0
    }

    /// Whether the two are one instruction's, executed once.
    pub(super) fn same_execution(&self, other: &Self) -> bool {
        (self.wave, self.epoch, self.pc, self.stamp) == (other.wave, other.epoch, other.pc, other.stamp)
    }

    /// Whether `other` only adds lanes to this one.
    fn merges(&self, other: &Self) -> bool {
        (self.wave, self.epoch, self.pc, self.bytes, self.how)
            == (other.wave, other.epoch, other.pc, other.bytes, other.how)
            && (self.stamp == other.stamp || !self.how.writes())
    }
}

/// How a new access relates to those before it.
pub(super) trait Judge {
    /// Whether everybody is past `old`, so that it can be forgotten.
    fn is_past(&self, old: &Entry) -> bool;
    /// The lanes of `old` whose access did not happen before the new one.
    fn unordered(&self, old: &Entry) -> u64;
    /// How far atomic accesses of the two must reach.
    fn distance(&self, old: &Entry) -> u8;
    /// Whether lane `lane` of `old`, the same execution of a store, stores the same to the bytes `bytes` of the word.
    fn same_value(&self, old: &Entry, lane: u32, bytes: u8) -> bool;
    /// The new access races with that of lane `lane` of `old`, in the bytes `bytes` of the word.
    fn race(&mut self, old: &Entry, lane: u32, bytes: u8);
}

#[derive(Clone, Copy)]
struct Cell {
    store: Entry,
    load: Entry,
}

const EMPTY_CELL: Cell = Cell { store: Entry::EMPTY, load: Entry::EMPTY };

impl Cell {
    fn is_listed(&self) -> bool {
        self.store.how.0 & How::LISTED != 0
    }
}

/// The shadow of some words.
#[derive(Default)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    /// All accesses to a word whose cell is marked as listed.
    lists: FxHashMap<u32, Vec<Entry>>,
}

impl Shadow {
    /// Bytes of shadow a byte.
    pub(super) const BYTES_A_BYTE: u64 = size_of::<Cell>() as u64 / 4;

    pub(super) fn new(words: usize) -> Self {
        Self { cells: vec![EMPTY_CELL; words], lists: FxHashMap::default() }
    }

    /// Records `new`, by one lane, to word number `word`, and judges it against what came before.
    #[inline]
    pub(super) fn access(&mut self, word: u32, new: Entry, judge: &mut impl Judge) {
        let Some(cell) = self.cells.get_mut(word as usize) else { return };
        if !cell.is_listed() && new.bytes == ALL_BYTES {
            let own =
                |old: &Entry| old.wave == new.wave && old.lanes == new.lanes && old.how.reach() == new.how.reach();
            let gone = |old: &Entry| old.is_empty() || judge.is_past(old) || (own(old) && old.bytes == ALL_BYTES);
            let store_gone = gone(&cell.store);
            if new.how.writes() {
                if store_gone && gone(&cell.load) {
                    *cell = Cell { store: new, load: Entry::EMPTY };
                    return;
                }
            } else if store_gone {
                if cell.load.merges(&new) {
                    cell.load.lanes |= new.lanes;
                    return;
                }
                if gone(&cell.load) {
                    cell.load = new;
                    return;
                }
            }
        }
        if cell.store.how.0 == How::LOADED
            && !new.how.writes()
            && let Some(loads) = self.lists.get_mut(&word)
        {
            return add_load(loads, new);
        }
        self.access_slowly(word, new, judge);
    }

    #[inline(never)]
    fn access_slowly(&mut self, word: u32, new: Entry, judge: &mut impl Judge) {
        let cell = &mut self.cells[word as usize];
        let mut entries = if cell.is_listed() {
            self.lists.remove(&word).unwrap_or_default()
        } else {
            [cell.store, cell.load].into_iter().filter(|e| !e.is_empty()).collect()
        };
        let mut merged = false;
        entries.retain_mut(|old| {
            if judge.is_past(old) {
                return false;
            }
            let common = old.bytes & new.bytes;
            let unordered = judge.unordered(old);
            if unordered != 0 && common != 0 && conflict(old, &new, judge) {
                let mut lanes = unordered;
                while lanes != 0 {
                    let lane = lanes.trailing_zeros();
                    lanes &= lanes - 1;
                    let one_store = old.same_execution(&new) && old.how.writes() && new.how.writes();
                    if !(one_store && judge.same_value(old, lane, common)) {
                        judge.race(old, lane, common);
                        break;
                    }
                }
            }
            if !merged && old.merges(&new) {
                old.lanes |= new.lanes;
                merged = true;
                return true;
            }
            // What races with `old` and comes after `new` races with `new`, too.
            let superseded = unordered == 0
                && old.bytes & !new.bytes == 0
                && (new.how.writes() || !old.how.writes())
                && old.how.reach() >= new.how.reach();
            !superseded
        });
        if !merged {
            if entries.len() >= MAX_A_WORD {
                entries.remove(entries.iter().position(|e| !e.how.writes()).unwrap_or(0));
            }
            entries.push(new);
        }
        *cell = match entries.as_slice() {
            [one] if one.how.writes() => Cell { store: *one, load: Entry::EMPTY },
            [one] => Cell { store: Entry::EMPTY, load: *one },
            [a, b] if a.how.writes() && !b.how.writes() => Cell { store: *a, load: *b },
            [a, b] if b.how.writes() && !a.how.writes() => Cell { store: *b, load: *a },
            _ => {
                let kind = if entries.iter().any(|e| e.how.writes()) { How::LISTED } else { How::LOADED };
                self.lists.insert(word, entries);
                Cell { store: Entry { how: How(kind), ..Entry::EMPTY }, load: Entry::EMPTY }
            }
        };
    }
}

/// Adds a load to loads: to one that it only adds lanes to, in place of its own wave's one before, or of the oldest.
fn add_load(loads: &mut Vec<Entry>, new: Entry) {
    if let Some(old) = loads.iter_mut().rev().find(|old| old.merges(&new)) {
        old.lanes |= new.lanes;
        return;
    }
    let replaces = |old: &Entry| {
        old.wave == new.wave
            && old.lanes & !new.lanes == 0
            && old.bytes & !new.bytes == 0
            && old.how.reach() >= new.how.reach()
    };
    match loads.iter().position(replaces) {
        Some(at) => drop(loads.remove(at)),
        None if loads.len() >= MAX_A_WORD => drop(loads.remove(0)),
        None => {}
    }
    loads.push(new);
}

/// Whether two unordered accesses to a byte are a race.
fn conflict(old: &Entry, new: &Entry, judge: &impl Judge) -> bool {
    let atomic = old.how.reach().min(new.how.reach());
    (old.how.writes() || new.how.writes()) && (atomic == 0 || atomic < judge.distance(old))
}
