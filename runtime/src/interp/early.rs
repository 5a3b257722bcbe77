//! Loads that are made early: under a seed, one may give what global memory held some time ago.
//!
//! PTX orders a thread's loads of different addresses only where an acquire, a fence or a barrier comes between them, so a load after a
//! loop that saw a flag may have been made before the flag was there. Here it gives what its place held at some time since
//! whatever ordered the wave last. What is kept of that order is the wave's, not the lane's, and rather too much of it than too
//! little:
//!
//! * all kinds of fence, drain and barrier order everything, whatever their scope;
//! * of a place that a wave stored to, or of which it saw a store that was on its way, it sees nothing older from then on;
//! * of each change of a place, a wave loads the old value once at most: a loop that waits goes on.

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::memory::GlobalBuffer;
use crate::choices::Choices;

/// Bytes whose values are kept together, aligned.
const PART: u64 = 8;

/// Values kept of a part.
const KEPT: usize = 4;

/// Parts of which values are kept; all are forgotten when there are more.
const MAX_PARTS: usize = 1 << 18;

/// One load in so many is early.
const RARITY: usize = 4;

/// Sees nothing old of a part any more.
const ALWAYS: u64 = u64::MAX;

/// A value that a part had until a change.
struct Was {
    until: u64,
    bytes: [u8; PART as usize],
}

/// What global memory was before it changed. Time counts changes.
#[derive(Default)]
pub(super) struct Past {
    now: u64,
    parts: FxHashMap<u64, VecDeque<Was>>,
}

impl Past {
    /// `bytes` bytes of `buffer` from `at` on are about to change.
    pub(super) fn changes(&mut self, buffer: &GlobalBuffer, at: usize, bytes: usize) {
        self.now += 1;
        if self.parts.len() > MAX_PARTS {
            self.parts.clear();
        }
        // Buffers begin at multiples of 8.
        let parts = at as u64 / PART..((at + bytes) as u64).div_ceil(PART);
        for part in parts {
            let first = (part * PART) as usize;
            let mut was = Was { until: self.now, bytes: [0; PART as usize] };
            let n = buffer.len().saturating_sub(first).min(PART as usize);
            buffer.load::<1>(first, n, |i, bits| was.bytes[i] = bits as u8);
            let kept = self.parts.entry(buffer.address() / PART + part).or_default();
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(was);
        }
    }
}

/// What one wave cannot see any more.
#[derive(Default)]
pub(super) struct Sight {
    /// What was before.
    ordered: u64,
    /// By part: what was before that.
    parts: FxHashMap<u64, u64>,
}

impl Sight {
    /// For the next workgroup.
    pub(super) fn start(&mut self, past: &Past) {
        self.parts.clear();
        self.ordered = past.now;
    }

    /// Loads from here on are made from here on.
    pub(super) fn order(&mut self, past: &Past) {
        self.ordered = past.now;
        self.parts.retain(|_, since| *since == ALWAYS);
    }

    /// The wave stores to `bytes` bytes at `address`, or sees a store there that is on its way.
    pub(super) fn knows(&mut self, address: u64, bytes: usize) {
        self.parts.extend(parts(address, bytes).map(|part| (part, ALWAYS)));
    }

    /// An early load of as many bytes as `bytes` has at `address`: puts what it gives over them, which memory holds now. Whether
    /// any of it is old.
    pub(super) fn load(&mut self, past: &Past, choices: &mut Choices, address: u64, bytes: &mut [u8]) -> bool {
        let mut old = false;
        let mut made = None;
        for part in parts(address, bytes.len()) {
            let Some(kept) = past.parts.get(&part) else { continue };
            if kept.back().is_none_or(|was| was.until <= self.ordered) {
                continue;
            }
            let ordered = self.ordered;
            let time = *made.get_or_insert_with(|| match choices.below(RARITY) {
                0 => ordered + choices.below((past.now - ordered) as usize) as u64,
                _ => past.now,
            });
            let since = self.parts.entry(part).or_insert(ordered);
            if let Some(was) = kept.iter().find(|was| was.until > time.max(*since)) {
                old = true;
                for at in address.max(part * PART)..(address + bytes.len() as u64).min((part + 1) * PART) {
                    bytes[(at - address) as usize] = was.bytes[(at % PART) as usize];
                }
            }
            *since = past.now.max(*since);
        }
        old
    }
}

fn parts(address: u64, bytes: usize) -> Range<u64> {
    address / PART..(address + bytes as u64).div_ceil(PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer whose words change one after the other.
    struct Memory {
        buffer: GlobalBuffer,
        past: Past,
    }

    impl Memory {
        fn new() -> Self {
            Self { buffer: GlobalBuffer::zeroed(32), past: Past::default() }
        }

        fn store(&mut self, at: usize, value: u8) {
            self.past.changes(&self.buffer, at, 4);
            self.buffer.write(at, &[value; 4]).unwrap();
        }

        fn load(&self, sight: &mut Sight, choices: &mut Choices, at: usize) -> u8 {
            let mut bytes = [0; 4];
            self.buffer.read(at, &mut bytes).unwrap();
            sight.load(&self.past, choices, self.buffer.address() + at as u64, &mut bytes);
            assert_eq!(bytes, [bytes[0]; 4]);
            bytes[0]
        }
    }

    #[test]
    fn a_load_may_be_as_old_as_the_last_order_and_no_older() {
        let mut values = [0; 4];
        for seed in 0..1000 {
            let (mut memory, mut sight, mut choices) = (Memory::new(), Sight::default(), Choices(seed));
            memory.store(8, 1);
            sight.order(&memory.past);
            memory.store(8, 2);
            memory.store(16, 9);
            memory.store(8, 3);
            values[memory.load(&mut sight, &mut choices, 8) as usize] += 1;
            // Once at most, whatever it was.
            assert_eq!(memory.load(&mut sight, &mut choices, 8), 3, "{seed}");
            sight.order(&memory.past);
            assert_eq!(memory.load(&mut sight, &mut choices, 16), 9, "{seed}");
        }
        assert_eq!(values[0], 0, "{values:?}");
        assert!(values[1] > 50 && values[2] > 50 && values[3] > 500, "{values:?}");
    }

    #[test]
    fn what_a_wave_stored_or_saw_on_its_way_it_does_not_lose() {
        for seed in 0..200 {
            let (mut memory, mut sight, mut choices) = (Memory::new(), Sight::default(), Choices(seed));
            sight.knows(memory.buffer.address() + 8, 4);
            memory.store(8, 1);
            assert_eq!(memory.load(&mut sight, &mut choices, 8), 1, "{seed}");
            sight.order(&memory.past);
            memory.store(8, 2);
            assert_eq!(memory.load(&mut sight, &mut choices, 8), 2, "{seed}");
        }
    }
}
