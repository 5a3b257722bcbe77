//! Transposing reads of LDS: one instruction on gfx950, elsewhere a load and exchanges between lanes.

use lathe_dsl::ir::{self, ShuffleOp};
use melior::ir::Value;

use super::Lowering;
use super::emit::{GepIndex, IntPredicate, Result};
use super::lanes::Amount;
use super::memory::carrier;

/// Swaps one bit of the lane's number with one of the element's: a lane whose bit is 0 gives its upper elements for its
/// partner's lower ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Swap {
    /// Distance of the partner.
    lanes: u32,
    /// Distance of the elements, in bits of the chunk.
    bits: u32,
}

/// How the elements of 16 lanes are dealt out.
///
/// With E = 2^n elements a lane, number `e` of the chunk of lane `s` goes to lane `(s mod 16/E)·E + e`, as number
/// `s div (16/E)`. Read by bits: the lower 4 − n bits of `s` become the lane's upper ones, and its upper n bits change places
/// with those of `e`. The first is done with addresses, before the load: lane `p` loads the chunk of lane `p` turned left by
/// 4 − n bits. The second is one swap for each bit.
#[derive(Debug)]
struct Deal {
    turn: u32,
    swaps: Vec<Swap>,
}

impl Deal {
    fn of(bits: u32) -> Self {
        let log = match bits {
            16 => 2,
            8 => 3,
            _ => 4,
        };
        Self { turn: 4 - log, swaps: (0..log).rev().map(|k| Swap { lanes: 1 << k, bits: bits << k }).collect() }
    }
}

/// Of `unit` bits in fields of `bits`, those of the even fields.
fn even_fields(unit: u32, bits: u32) -> u128 {
    (0..unit).filter(|i| (i / bits).is_multiple_of(2)).fold(0, |mask, i| mask | 1 << i)
}

impl<'c, 'a> Lowering<'c, 'a, '_> {
    /// A transposing read with elements of `bits` bits.
    pub(super) fn lds_read_tr(&self, pointer: ir::Value, bits: u32, ty: ir::Type) -> Result<Value<'c, 'a>> {
        let (e, address) = (&self.emit, self.get(pointer)?);
        let dealt = match self.backend.transposing_read(e, address, bits)? {
            Some(dealt) => dealt,
            None => self.load_and_deal(address, bits)?,
        };
        e.bitcast(dealt, e.ty(ty))
    }

    fn load_and_deal(&self, address: Value<'c, 'a>, bits: u32) -> Result<Value<'c, 'a>> {
        let (e, deal) = (&self.emit, Deal::of(bits));
        let lane = self.backend.lane_id(&self.lanes())?;
        let address = self.turned(address, lane, deal.turn)?;
        // Elements of 6 bits do not end where words do, so their words are one integer.
        let (words, unit, align) = if bits == 6 { (3, 96, 16) } else { (2, 32, 8) };
        let row = melior::ir::Type::vector(&[words], e.int(32));
        let loaded = e.value("llvm.load", &[address], row, &[("alignment", e.int_attribute(64, align))])?;
        let mut units = match unit {
            32 => (0..words as u32).map(|i| e.part(loaded, i, e.int(32))).collect::<Result<Vec<_>>>()?,
            _ => vec![e.bitcast(loaded, e.int(unit))?],
        };
        for swap in deal.swaps {
            let own = self.lanes().and(lane, swap.lanes)?;
            let upper = e.cmpi(IntPredicate::Ne, own, e.word(0)?, e.int(1))?;
            if let [low, high] = units[..]
                && swap.bits == unit
            {
                let received = self.partners(e.select(upper, low, high)?, unit, swap.lanes)?;
                units = vec![e.select(upper, received, low)?, e.select(upper, high, received)?];
                continue;
            }
            let constant = |bits: u128| {
                let value = e.attribute(&format!("{bits} : i{unit}"))?;
                e.value("arith.constant", &[], e.int(unit), &[("value", value)])
            };
            let even = even_fields(unit, swap.bits);
            let odd = even << swap.bits;
            let (keep, take) =
                (e.select(upper, constant(odd)?, constant(even)?)?, e.select(upper, constant(even)?, constant(odd)?)?);
            let distance = constant(swap.bits.into())?;
            for own in &mut units {
                let received = self.partners(*own, unit, swap.lanes)?;
                let (down, up) =
                    (e.same("arith.shrui", &[received, distance])?, e.same("arith.shli", &[received, distance])?);
                let kept = e.same("arith.andi", &[*own, keep])?;
                let taken = e.same("arith.andi", &[e.select(upper, down, up)?, take])?;
                *own = e.same("arith.ori", &[kept, taken])?;
            }
        }
        match units[..] {
            [one] => e.bitcast(one, row),
            _ => e.value("vector.from_elements", &units, carrier(e, 8), &[]),
        }
    }

    /// The address of the lane whose number in its 16 is this one's with its four bits turned left.
    fn turned(&self, address: Value<'c, 'a>, lane: Value<'c, 'a>, turn: u32) -> Result<Value<'c, 'a>> {
        if turn == 0 {
            return Ok(address);
        }
        let e = &self.emit;
        let low = self.lanes().and(lane, 15)?;
        let (left, right) =
            (e.same("arith.shli", &[low, e.word(turn)?])?, e.same("arith.shrui", &[low, e.word(4 - turn)?])?);
        let value = self.lanes().and(e.same("arith.ori", &[left, right])?, 15)?;
        let own = e.value("llvm.ptrtoint", &[address], e.int(32), &[])?;
        let amount = Amount { value, constant: None, max: 15 };
        let theirs = self.backend.shuffle(&self.lanes(), ShuffleOp::Idx, &[own], amount, 16)?;
        // Their distance from the own address, so that it remains one into the LDS block.
        let further = e.same("arith.subi", &[theirs[0], own])?;
        e.gep(address, GepIndex::Value(further), e.int(8))
    }

    /// An integer of the lane at a distance below 16.
    fn partners(&self, own: Value<'c, 'a>, bits: u32, distance: u32) -> Result<Value<'c, 'a>> {
        let e = &self.emit;
        let n = bits / 32;
        let row = melior::ir::Type::vector(&[u64::from(n)], e.int(32));
        let words = match n {
            1 => vec![own],
            _ => {
                let all = e.bitcast(own, row)?;
                (0..n).map(|i| e.part(all, i, e.int(32))).collect::<Result<Vec<_>>>()?
            }
        };
        let amount = Amount { value: e.word(distance)?, constant: Some(distance), max: distance.into() };
        let theirs = self.backend.shuffle(&self.lanes(), ShuffleOp::Xor, &words, amount, 16)?;
        match theirs[..] {
            [one] => Ok(one),
            _ => e.bitcast(e.value("vector.from_elements", &theirs, row, &[])?, e.int(bits)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does to the chunks of 16 lanes what the emitted code does.
    fn dealt(bits: u32, chunks: [u128; 16]) -> [u128; 16] {
        let (deal, width) = (Deal::of(bits), if bits == 6 { 96 } else { 64 });
        let turned = |p: usize| (p << deal.turn | p >> (4 - deal.turn)) & 15;
        let mut now: [u128; 16] = std::array::from_fn(|p| chunks[turned(p)]);
        for swap in deal.swaps {
            let even = even_fields(width, swap.bits);
            now = std::array::from_fn(|p| {
                let theirs = now[p ^ swap.lanes as usize];
                if p as u32 & swap.lanes != 0 {
                    now[p] & (even << swap.bits) | theirs >> swap.bits & even
                } else {
                    now[p] & even | (theirs & even) << swap.bits
                }
            });
        }
        now
    }

    #[test]
    fn swaps_deal_elements_as_the_operation_says() {
        for (bits, elements) in [(16, 4), (8, 8), (4, 16), (6, 16)] {
            let element = |chunk: u128, i: usize| chunk >> (i * bits) & ((1 << bits) - 1);
            // Every bit of every chunk differs from its place in other chunks somewhere.
            for seed in 1..40u128 {
                let chunks = std::array::from_fn(|lane| {
                    let mixed =
                        (lane as u128 + 1).wrapping_mul(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
                    (mixed ^ mixed >> 57) & ((1 << (elements * bits)) - 1)
                });
                let got = dealt(bits as u32, chunks);
                for (i, got) in got.iter().enumerate() {
                    for j in 0..elements {
                        let expected = element(chunks[16 / elements * j + i / elements], i % elements);
                        assert_eq!(element(*got, j), expected, "{bits} bits: element {j} of lane {i}");
                    }
                }
            }
        }
    }
}
