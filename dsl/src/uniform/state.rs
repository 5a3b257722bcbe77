//! What the analysis knows of one value.

/// Block sizes that are told apart: of 2, 4, … 1024 threads.
pub(super) const SIZES: usize = 10;

/// Stands for "anything": more bits than a type has.
const ALL: u8 = 64;

/// How far a value is the same over aligned blocks of threads, in the linear order of the workgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// Entry `k - 1`, for blocks of `2^k` threads: so many low bits of the value (for what is no integer: all or none) may
    /// differ within a block, the bits above are the same. Never falls from one entry to the next.
    bits: [u8; SIZES],
    /// Bit `e`: threads `t` and `t ^ 2^e` surely hold the same.
    twins: u16,
    /// Of a pointer: the launch may store where it points.
    pub written: bool,
}

impl State {
    /// The same in all threads.
    pub const SAME: Self = Self { bits: [0; SIZES], twins: (1 << SIZES) - 1, written: false };

    /// Another one in every thread.
    pub const DIFFERENT: Self = Self { bits: [ALL; SIZES], twins: 0, written: true };

    /// Blocks of `2^k` threads, `k` from 1, have so many differing low bits.
    pub fn by_size(mut bits: impl FnMut(u32) -> u32) -> Self {
        let bits = std::array::from_fn(|i| bits(i as u32 + 1).min(u32::from(ALL)) as u8);
        Self { bits, twins: 0, written: false }.settled()
    }

    /// Low bits that may differ within a block of `2^k` threads; 0 for `k` = 0.
    pub fn differing(&self, k: u32) -> u32 {
        if k == 0 { 0 } else { u32::from(self.bits[k as usize - 1]) }
    }

    /// Whether a block of `2^k` threads surely holds one value.
    pub fn same(&self, k: u32) -> bool {
        self.differing(k) == 0
    }

    /// Both of it: what is made of two values element by element, or is one of the two.
    pub fn join(self, other: Self) -> Self {
        Self {
            bits: std::array::from_fn(|i| self.bits[i].max(other.bits[i])),
            twins: self.twins & other.twins,
            written: self.written | other.written,
        }
    }

    /// What a function of these values is, of which nothing but that is known.
    pub fn mixed(values: impl IntoIterator<Item = Self>) -> Self {
        let mut state = values.into_iter().fold(Self::SAME, Self::join);
        for bits in &mut state.bits {
            *bits = if *bits == 0 { 0 } else { ALL };
        }
        state
    }

    /// With these low bits differing, from the block size on; twins are kept.
    pub fn with_bits(self, mut bits: impl FnMut(u32) -> u32) -> Self {
        let bits = std::array::from_fn(|i| bits(i as u32 + 1).min(u32::from(ALL)) as u8);
        Self { bits, ..self }.settled()
    }

    /// Threads whose numbers differ in bit `e` alone hold the same.
    pub fn with_twins(self, e: u32) -> Self {
        Self { twins: self.twins | 1 << e, ..self }.settled()
    }

    /// Of a pointer: whether the launch may store where it points.
    pub fn with_written(self, written: bool) -> Self {
        Self { written, ..self }
    }

    /// Without twins in different waves of `2^wave` lanes.
    pub fn within(self, wave: u32) -> Self {
        Self { twins: self.twins & ((1 << wave) - 1), ..self }
    }

    /// Which of two values a thread has is decided by a condition: where that differs, so may the result.
    pub fn chosen_by(self, condition: &Self) -> Self {
        let bits = |k| if condition.same(k) { self.differing(k) } else { u32::from(ALL) };
        Self { twins: self.twins & condition.twins, ..self }.with_bits(bits)
    }

    /// No more differing bits than `most`, if the value is an integer with so many that are not the same everywhere.
    pub fn at_most(self, most: u32) -> Self {
        if most >= u32::from(ALL) {
            return self;
        }
        self.with_bits(|k| self.differing(k).min(most))
    }

    /// Grows without end no longer: whatever differs more than in `before` may differ in all bits.
    pub fn widened(self, before: &Self) -> Self {
        self.with_bits(|k| if self.differing(k) > before.differing(k) { u32::from(ALL) } else { self.differing(k) })
    }

    /// What the two halves say of each other: a value with all the twins of a block is one value there.
    fn settled(mut self) -> Self {
        let mut below = 0;
        for k in 1..=SIZES {
            let block = (1u16 << k) - 1;
            if self.twins & block == block || self.bits[k - 1] == 0 {
                self.bits[k - 1] = 0;
                self.twins |= block;
            }
            // Larger blocks hold the smaller ones.
            self.bits[k - 1] = self.bits[k - 1].max(below);
            below = self.bits[k - 1];
        }
        self
    }
}

/// Bits of a number from 0 to `most`.
pub(super) const fn length(most: u128) -> u32 {
    128 - most.leading_zeros()
}
