//! What `mla_push` must leave in the ranks' regions, in plain Rust.

use half::bf16;

use super::super::message::{Messages, ROW_PAIRS};
use super::{HEADS, LATENTS};

/// Bits of −inf.
const EMPTY: u32 = 0xFF80_0000;

/// What a rank sends in a step.
#[derive(Clone, Copy, Debug)]
pub struct Push<'a> {
    /// The messages' shape.
    pub messages: Messages,
    /// Query tokens of a request.
    pub q: usize,
    /// The rank that sends.
    pub rank: usize,
    /// The step's tag.
    pub tag: u32,
    /// Partial rows, `[tokens][ranks · 12][512]`.
    pub o: &'a [bf16],
    /// Their log-sum-exp, as bits: `[tokens][ranks · 12]`.
    pub lse: &'a [u32],
    /// KV rows of each request.
    pub seq_lens: &'a [i32],
    /// First token of each request; the last entry is the number of live ones.
    pub qsl: &'a [i32],
}

impl Push<'_> {
    /// Sends all: `halves` are the epoch's halves of all ranks' regions, as pairs of 64 bits.
    ///
    /// # Panics
    /// Where a slice is shorter than these shapes say.
    pub fn send(&self, halves: &mut [&mut [u64]]) {
        let (ranks, tokens) = (self.messages.ranks as usize, self.messages.tokens as usize);
        for token in 0..tokens {
            let empty = self.seq_lens[token / self.q] == 0 || token as i64 >= i64::from(self.qsl[tokens / self.q]);
            for (p, half) in halves.iter_mut().enumerate() {
                for head in 0..HEADS {
                    let row = (token * ranks + p) * HEADS + head;
                    let latents = &self.o[row * LATENTS..(row + 1) * LATENTS];
                    let lse = if empty { EMPTY } else { self.lse[row] };
                    put_slot(half, self.messages, [self.rank, token, head], latents, [lse, self.tag]);
                }
            }
        }
    }
}

/// Writes the slot of `[source, token, head]` in an epoch's half of a region: a row, and its LSE's bits with a tag.
///
/// # Panics
/// Where the half has no such slot, or the row has not 512 latents.
pub fn put_slot(half: &mut [u64], messages: Messages, at: [usize; 3], row: &[bf16], [lse, tag]: [u32; 2]) {
    let [source, token, head] = at.map(|n| n as u32);
    let first = (messages.slot(source, token, head) / 8) as usize;
    for (pair, latents) in half[first..first + ROW_PAIRS as usize].iter_mut().zip(row.chunks_exact(4)) {
        *pair = latents.iter().rev().fold(0, |pair, x| pair << 16 | u64::from(x.to_bits()));
    }
    let tagged = |word: u32| u64::from(tag) << 32 | u64::from(word);
    half[first + ROW_PAIRS as usize] = tagged(lse);
    half[first + ROW_PAIRS as usize + 1] = tagged(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_where_the_layout_says() {
        let messages = Messages { ranks: 2, tokens: 3 };
        assert_eq!(messages.half(), 2 * 3 * 12 * 1040);
        let mut half = vec![0; (messages.half() / 8) as usize];
        let row: Vec<bf16> = (0..512).map(bf16::from_bits).collect();
        put_slot(&mut half, messages, [1, 2, 11], &row, [0x7FC1_2345, 9]);
        let bytes: Vec<u8> = half.iter().flat_map(|w| w.to_le_bytes()).collect();
        // The last slot.
        let (before, slot) = bytes.split_at(bytes.len() - 1040);
        assert!(before.iter().all(|b| *b == 0));
        assert!(slot[..1024].chunks(2).enumerate().all(|(i, b)| b == (i as u16).to_le_bytes()));
        assert_eq!(slot[1024..], [0x45, 0x23, 0xC1, 0x7F, 9, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
    }

    #[test]
    fn empty_requests_and_padding_weigh_nothing() {
        // Two requests of two tokens: the first is empty, the last token is padding. Two ranks.
        let messages = Messages { ranks: 2, tokens: 4 };
        let o = vec![bf16::ONE; 4 * 24 * 512];
        let lse: Vec<u32> = (0..4 * 24).map(|i| 0x7FC0_0000 + i).collect();
        let push = Push { messages, q: 2, rank: 1, tag: 7, o: &o, lse: &lse, seq_lens: &[0, 5], qsl: &[0, 2, 3] };
        let mut regions = [vec![0; (messages.half() / 8) as usize], vec![0; (messages.half() / 8) as usize]];
        push.send(&mut regions.each_mut().map(Vec::as_mut_slice));
        for (p, half) in regions.iter().enumerate() {
            for token in 0..4 {
                for head in 0..12 {
                    let pair = half[(messages.slot(1, token, head) / 8) as usize + 128];
                    let own = 0x7FC0_0000 + (token * 2 + p as u32) * 12 + head;
                    assert_eq!(pair, 7 << 32 | u64::from(if token == 2 { own } else { EMPTY }), "{p} {token} {head}");
                    assert_eq!(half[(messages.slot(0, token, head) / 8) as usize + 128], 0);
                }
            }
        }
    }
}
