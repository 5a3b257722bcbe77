//! A logical warp of 32 lanes and what its lanes hold.
//!
//! A tile of 16×8 numbers of f16 lies in the lanes as the sums of the product 16×8×32 do: every lane holds two *slots*, each a row
//! and a pair of its columns. Where they lie is a layout (`Fragments`): two rows eight apart on NVIDIA, two pairs side by side
//! on AMD. Codes lie in *words*: word `4h + t` of a row holds columns `8h + {2t, 2t + 1, 16 + 2t, 17 + 2t}` of 32, so it is made of
//! pair `t` of tiles `h` and `h + 2`. Slot `p` of these gives register `p + 2h` of the left factor, in every layout: what is
//! multiplied next never leaves its lane. The order of the products' columns along K that comes of it is the same for both
//! factors, so no sum knows of it.

use lathe_dsl::builder::matrix::Place;
use lathe_dsl::mma::{Fragments, Step, Tiles as Layouts};
use lathe_dsl::prelude::*;

/// Two f16 side by side in a row.
pub type Pair<'k> = V<'k, Vector<f16, 2>>;

/// Lanes of a warp.
pub const LANES: u32 = 32;

/// Warps of a workgroup.
pub const WARPS: u32 = 4;

/// A slot of a tile: a row of 16 and which of its four pairs.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'k> {
    /// Row of the tile.
    pub row: V<'k, u32>,
    /// Pair: columns `2t` and `2t + 1`.
    pub t: V<'k, u32>,
}

/// A column of the right factor and which of its eight words.
#[derive(Clone, Copy, Debug)]
pub struct ColumnWord<'k> {
    /// Column of the tile.
    pub col: V<'k, u32>,
    /// Word, `4h + t`.
    pub word: V<'k, u32>,
}

/// One of four warps of a workgroup of 32×1×4 threads.
pub struct Warp<'k> {
    /// The kernel.
    pub k: &'k Builder<'k>,
    /// Lane within the warp.
    pub lane: V<'k, u32>,
    /// Number of the warp.
    pub z: V<'k, u32>,
    /// A lane's slots of a tile.
    pub slots: [Slot<'k>; 2],
    /// The words of a lane's registers of the right factor.
    pub columns: [ColumnWord<'k>; 2],
    layouts: Layouts,
}

/// A row of a tile that a lane has something of: `slots.len()` words or pairs side by side, the first of them `t`.
#[derive(Clone, Debug)]
pub struct Owned<'k> {
    /// Row of the tile.
    pub row: V<'k, u32>,
    /// The first pair.
    pub t: V<'k, u32>,
    /// Its slots.
    pub slots: Vec<usize>,
}

impl<'k> Warp<'k> {
    /// The thread's warp, tiles lying as the products of `fragments` want them; without, those of the target. The workgroup is
    /// 32×1×4 threads.
    pub fn new(k: &'k Builder<'k>, fragments: Option<Fragments>) -> Self {
        let layouts = layouts(fragments.unwrap_or_else(|| Fragments::of(k.target())));
        let slots = k.places_of(&layouts.c);
        let columns = k.places_of(&layouts.b);
        let slot = |place: Place<'k>| Slot { row: place.row, t: place.col >> 1 };
        let column = |place: Place<'k>| ColumnWord { col: place.col, word: place.row >> 2 };
        Self {
            k,
            lane: k.thread_id(Axis::X),
            z: k.thread_id(Axis::Z),
            slots: [slot(slots[0]), slot(slots[2])],
            columns: [column(columns[0]), column(columns[4])],
            layouts,
        }
    }

    /// Where the factors and sums lie.
    pub fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// The rows of a tile that the lane has something of.
    pub fn owned(&self) -> Vec<Owned<'k>> {
        let [first, second] = self.slots;
        if self.one_row() {
            return vec![Owned { row: first.row, t: first.t, slots: vec![0, 1] }];
        }
        let one = |(i, slot): (usize, Slot<'k>)| Owned { row: slot.row, t: slot.t, slots: vec![i] };
        [first, second].into_iter().enumerate().map(one).collect()
    }

    /// Whether both slots are of one row.
    pub fn one_row(&self) -> bool {
        self.layouts.c.element_steps()[1] == Step::Col(2)
    }

    /// The sum of each slot's row over its four pairs, in every lane that holds one: pairs that differ in bit 0 first, then those that differ
    /// in bit 1.
    pub fn across_row(&self, sums: [Pair<'k>; 2]) -> [Pair<'k>; 2] {
        let layout = &self.layouts.c;
        [Step::Col(2), Step::Col(4)].iter().fold(sums, |sums, step| {
            match layout.lane_steps().iter().position(|s| s == step) {
                Some(bit) => sums.map(|s| s.butterfly([1 << bit], ButterflyOp::Add)),
                None => [sums[0] + sums[1]; 2],
            }
        })
    }

    /// Exchanges within the warp: bit `bit` of the lane's number and the index of the two registers change places.
    pub fn swap_with_lane(&self, [x, y]: [V<'k, u32>; 2], bit: u32) -> [V<'k, u32>; 2] {
        let set = ((self.lane >> bit) & 1).eq(1);
        let theirs = set.select(x, y).shuffle_xor(1 << bit, LANES);
        [set.select(theirs, x), set.select(y, theirs)]
    }

    /// A word from the lane whose number's bits are these bits of the column and the word that the lane multiplies as right factor.
    pub fn to_columns(&self, word: V<'k, u32>, source: [Bit; 5]) -> V<'k, u32> {
        let in_place = (0..LANES).all(|lane| {
            let (row, col) = self.layouts.b.at(lane, 0);
            let bits = source.iter().enumerate().map(|(i, bit)| match bit {
                Bit::Column(n) => (col >> n & 1) << i,
                Bit::Word(n) => (row >> 2 >> n & 1) << i,
            });
            bits.sum::<u32>() == lane
        });
        if in_place {
            return word;
        }
        let own = self.columns[0];
        let bit = |(i, bit): (usize, Bit)| {
            let (of, n) = match bit {
                Bit::Column(n) => (own.col, n),
                Bit::Word(n) => (own.word, n),
            };
            ((of >> n) & 1) << i as u32
        };
        let lane = source.into_iter().enumerate().map(bit).reduce(|a, b| a | b);
        lane.map_or(word, |lane| word.shuffle_idx(lane, LANES))
    }
}

/// A bit of a [`ColumnWord`].
#[derive(Clone, Copy, Debug)]
pub enum Bit {
    /// Of its column.
    Column(u32),
    /// Of its word.
    Word(u32),
}

/// Where factors and sums of [`MmaE4m3`] lie.
fn layouts(on: Fragments) -> Layouts {
    MmaE4m3::tiles(on).expect("every chip has this product")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every stage that packs relies on: slot `p` of tiles `h` and `h + 2` is what register `p + 2h` of the left factor holds.
    #[test]
    fn what_is_summed_is_multiplied_next_in_the_same_lane() {
        for on in Fragments::ALL {
            let layouts = layouts(on);
            assert_eq!(layouts.c.element_steps()[0], Step::Col(1), "{on}: pairs lie side by side");
            for lane in 0..LANES {
                for (p, h) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                    let (row, col) = layouts.c.at(lane, 2 * p);
                    let (a_row, a_col) = layouts.a.at(lane, 4 * (p + 2 * h));
                    assert_eq!((a_row, a_col), (row, 4 * (4 * h + col / 2)), "{on} lane {lane} slot {p} half {h}");
                }
            }
        }
    }
}
