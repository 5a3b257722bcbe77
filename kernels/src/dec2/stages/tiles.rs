//! What stages hand to each other: tiles of f16, and packed factors of the products.

use lathe_dsl::ir;
use lathe_dsl::prelude::*;

use super::warp::{Pair, Warp};

/// A matrix of f16 in tiles of 16×8: `m` tiles down, `n` across.
#[derive(Clone, Debug)]
pub struct Tiles<'k> {
    m: usize,
    n: usize,
    /// By tile row, slot, tile column.
    pairs: Vec<Pair<'k>>,
}

impl<'k> Tiles<'k> {
    /// What `f` makes of tile row, slot and tile column.
    pub fn from_fn(m: usize, n: usize, mut f: impl FnMut(usize, usize, usize) -> Pair<'k>) -> Self {
        let mut pairs = Vec::with_capacity(m * 2 * n);
        for i in 0..m {
            for p in 0..2 {
                pairs.extend((0..n).map(|j| f(i, p, j)));
            }
        }
        Self { m, n, pairs }
    }

    /// Zeros.
    pub fn zeros(k: &'k Builder<'k>, m: usize, n: usize) -> Self {
        Self { m, n, pairs: vec![k.filled(f16::ZERO); 2 * m * n] }
    }

    /// Tiles down and across.
    pub fn extent(&self) -> (usize, usize) {
        (self.m, self.n)
    }

    /// Slot `p` of tile (`m`, `n`).
    pub fn at(&self, m: usize, p: usize, n: usize) -> Pair<'k> {
        self.row(m, p)[n]
    }

    /// Slot `p` of all tiles of tile row `m`.
    pub fn row(&self, m: usize, p: usize) -> &[Pair<'k>] {
        let first = (2 * m + p) * self.n;
        &self.pairs[first..first + self.n]
    }

    /// Matrices of as many columns, one below the other.
    pub fn stacked(parts: &[Self]) -> Self {
        let pairs: Vec<_> = parts.iter().flat_map(|part| part.pairs.iter().copied()).collect();
        Self { m: parts.iter().map(|part| part.m).sum(), n: parts.first().map_or(0, |part| part.n), pairs }
    }

    /// What `f` makes of every pair.
    pub fn map(&self, f: impl FnMut(Pair<'k>) -> Pair<'k>) -> Self {
        Self { m: self.m, n: self.n, pairs: self.pairs.iter().copied().map(f).collect() }
    }
}

impl<'k> Values<'k> for Tiles<'k> {
    fn each(&self, f: &mut impl FnMut(ir::Value, ir::Type)) {
        self.pairs.each(f);
    }
    fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> ir::Value) -> Self {
        Self { m: self.m, n: self.n, pairs: self.pairs.rebuild(k, next) }
    }
}

/// A left factor in e4m3: `m` tiles of 16 rows, `ks` steps of 32 columns.
#[derive(Clone, Debug)]
pub struct Quads<'k> {
    ks: usize,
    words: Vec<[V<'k, u32>; 4]>,
}

impl<'k> Quads<'k> {
    /// What `f` makes of tile row and step.
    pub fn from_fn(m: usize, ks: usize, mut f: impl FnMut(usize, usize) -> [V<'k, u32>; 4]) -> Self {
        Self { ks, words: (0..m * ks).map(|i| f(i / ks, i % ks)).collect() }
    }

    /// Tiles down, steps across.
    pub fn extent(&self) -> (usize, usize) {
        (self.words.len() / self.ks, self.ks)
    }

    /// One tile row.
    pub fn tile(&self, m: usize) -> Self {
        Self { ks: self.ks, words: self.words[m * self.ks..][..self.ks].to_vec() }
    }

    /// One step of all tiles.
    pub fn step(&self, ks: usize) -> Self {
        Self { ks: 1, words: self.words.iter().skip(ks).step_by(self.ks).copied().collect() }
    }

    /// The four registers of tile row `m`, step `ks`.
    pub fn at(&self, m: usize, ks: usize) -> [V<'k, u32>; 4] {
        self.words[m * self.ks + ks]
    }
}

/// A right factor in e4m3: `n` tiles of 8 columns, `ks` steps of 32 rows.
#[derive(Clone, Debug)]
pub struct Columns<'k> {
    ks: usize,
    words: Vec<[V<'k, u32>; 2]>,
}

impl<'k> Columns<'k> {
    /// What `f` makes of tile column and step.
    pub fn from_fn(n: usize, ks: usize, mut f: impl FnMut(usize, usize) -> [V<'k, u32>; 2]) -> Self {
        Self { ks, words: (0..n * ks).map(|i| f(i / ks, i % ks)).collect() }
    }

    /// Tiles across, steps down.
    pub fn extent(&self) -> (usize, usize) {
        (self.words.len() / self.ks, self.ks)
    }

    /// The two registers of tile column `n`, step `ks`.
    pub fn at(&self, n: usize, ks: usize) -> [V<'k, u32>; 2] {
        self.words[n * self.ks + ks]
    }
}

/// Words that lie side by side, in one access.
impl<'k> Warp<'k> {
    /// Loads `n` words (1 or 2) of a buffer from word `at` on.
    pub fn load_words<A: lathe_dsl::builder::Readable>(
        &self,
        buffer: Buffer<'k, u32, A>,
        at: V<'k, u32>,
        n: usize,
    ) -> Vec<V<'k, u32>> {
        match n {
            1 => vec![self.k.buffer_load(buffer, at)],
            _ => self.k.buffer_load::<Vector<u32, 2>>(buffer, Bytes(at * 4)).elements().into(),
        }
    }

    /// As [`Warp::load_words`]; zeros where `live` does not hold.
    pub fn load_words_where<A: lathe_dsl::builder::Readable>(
        &self,
        buffer: Buffer<'k, u32, A>,
        at: V<'k, u32>,
        n: usize,
        live: V<'k, bool>,
    ) -> Vec<V<'k, u32>> {
        match n {
            1 => vec![self.k.buffer_load_with(buffer, at, LoadOptions::new().mask(live, 0))],
            _ => {
                let options = LoadOptions::<Vector<u32, 2>>::new().mask(live, 0u32);
                self.k.buffer_load_with(buffer, Bytes(at * 4), options).elements().into()
            }
        }
    }

    /// Stores one or two words to a buffer from word `at` on.
    pub fn store_words<A: lathe_dsl::builder::Writable>(
        &self,
        words: &[V<'k, u32>],
        buffer: Buffer<'k, u32, A>,
        at: V<'k, u32>,
        options: StoreOptions<'k>,
    ) {
        match *words {
            [a, b] => self.k.buffer_store_with(self.k.vector([a, b]), buffer, Bytes(at * 4), options),
            _ => words.iter().for_each(|w| self.k.buffer_store_with(*w, buffer, at, options)),
        }
    }

    /// Loads `n` words (1 or 2) of LDS.
    pub fn load_shared(&self, from: V<'k, LdsPtr<u32>>, n: usize) -> Vec<V<'k, u32>> {
        match n {
            1 => vec![self.k.ptr_load(from)],
            _ => self.k.ptr_load_with::<Vector<u32, 2>>(from, Memory::new().align(8)).elements().into(),
        }
    }

    /// Stores one or two words to LDS.
    pub fn store_shared(&self, words: &[V<'k, u32>], to: V<'k, LdsPtr<u32>>) {
        match *words {
            [a, b] => self.k.ptr_store_with(self.k.vector([a, b]), to, Memory::new().align(8)),
            _ => words.iter().for_each(|w| self.k.ptr_store(*w, to)),
        }
    }
}
