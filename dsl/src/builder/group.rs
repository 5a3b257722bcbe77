//! Logical groups of 32 or 64 lanes over waves of any width: one algorithm, the same order of every reduction everywhere.

use super::Builder;
use super::control::Values;
use super::element::{Data, Numeric, Plain, Ty};
use super::value::V;
use crate::ir::{BinaryOp, ButterflyOp, Op, Type, Value};

/// Most logical lanes that one lane stands for.
const MOST_PARTS: usize = 2;

/// A logical group of lanes. On a wave as wide as the group, or wider, each lane is one logical lane (a wider wave holds
/// several groups); on a narrower one each lane is `parts` logical lanes: logical lane `l = lane + wave · part`.
#[derive(Clone, Copy)]
pub struct Group<'k> {
    k: &'k Builder<'k>,
    size: u32,
}

/// A value that every logical lane of a [`Group`] has: `parts` values a lane.
pub struct Grouped<'k, T> {
    group: Group<'k>,
    /// Only the first [`Group::parts`] count.
    parts: [V<'k, T>; MOST_PARTS],
}

impl<T> Clone for Grouped<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Grouped<'_, T> {}

impl<'k> Builder<'k> {
    /// A logical group of 32 or 64 lanes.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # for target in Target::all() {
    /// # lathe_dsl::builder::build("k", target, Launch::linear(1, 64), vec![], |k| {
    /// // The sum of 64 squares, added up in the same order on a wave of 32 and on one of 64.
    /// let group = k.lanes(64);
    /// let squares = group.lane_index().map(|lane| lane.to::<f32>() * lane.to::<f32>());
    /// let sum = squares.butterfly([32, 16, 8, 4, 2, 1], ButterflyOp::Add);
    /// # let _ = sum.part(0);
    /// # }).unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn lanes(&'k self, size: u32) -> Group<'k> {
        let group = Group { k: self, size };
        if !matches!(size, 32 | 64) || group.parts() > MOST_PARTS {
            self.refuse(format!("a logical group of {size} lanes; allowed are 32 and 64"));
            return Group { k: self, size: self.wave() };
        }
        group
    }
}

impl<'k> Group<'k> {
    /// Logical lanes.
    pub fn size(self) -> u32 {
        self.size
    }

    /// Logical lanes that one lane stands for: a build-time number.
    pub fn parts(self) -> usize {
        (self.size / self.k.wave()).max(1) as usize
    }

    /// Lanes that the group takes.
    pub fn width(self) -> u32 {
        self.size.min(self.k.wave())
    }

    /// A value made part by part, from the part's number.
    pub fn from_parts<T: Ty>(self, mut f: impl FnMut(usize) -> V<'k, T>) -> Grouped<'k, T> {
        let first = f(0);
        let mut parts = [first; MOST_PARTS];
        for (i, part) in parts.iter_mut().enumerate().take(self.parts()).skip(1) {
            *part = f(i);
        }
        Grouped { group: self, parts }
    }

    /// The same value in all parts.
    pub fn filled<T: Ty>(self, value: V<'k, T>) -> Grouped<'k, T> {
        Grouped { group: self, parts: [value; MOST_PARTS] }
    }

    /// Index of the logical lane in its group.
    #[track_caller]
    pub fn lane_index(self) -> Grouped<'k, u32> {
        let lane = self.k.lane_id();
        let wave = self.k.wave();
        let lane = if self.size < wave { lane & (self.size - 1) } else { lane };
        let mut out = self.filled(lane);
        for (i, part) in out.parts.iter_mut().enumerate().take(self.parts()).skip(1) {
            *part = lane + wave * i as u32;
        }
        out
    }
}

impl<'k, T: Ty> Grouped<'k, T> {
    /// Its group.
    pub fn group(self) -> Group<'k> {
        self.group
    }

    /// The value of logical lane `lane + wave · part`; a part that there is not is refused.
    #[track_caller]
    pub fn part(self, part: usize) -> V<'k, T> {
        let parts = self.group.parts();
        if part >= parts {
            self.group.k.refuse(format!("part {part} of a value with {parts}"));
        }
        self.parts[part.min(parts - 1)]
    }

    /// What `f` makes of each part.
    pub fn map<U: Ty>(self, mut f: impl FnMut(V<'k, T>) -> V<'k, U>) -> Grouped<'k, U> {
        self.group.from_parts(|i| f(self.parts[i]))
    }

    /// What `f` makes of each part and the same part of `other`. Groups of different sizes are refused.
    #[track_caller]
    pub fn zip<U: Ty, R: Ty>(
        self,
        other: Grouped<'k, U>,
        mut f: impl FnMut(V<'k, T>, V<'k, U>) -> V<'k, R>,
    ) -> Grouped<'k, R> {
        let (a, b) = (self.group.size, other.group.size);
        if a != b {
            self.group.k.refuse(format!("a value of a group of {a} lanes with one of a group of {b}"));
        }
        self.group.from_parts(|i| f(self.parts[i], other.parts[i]))
    }
}

impl<'k, T: Data + Numeric> Grouped<'k, T> {
    /// For each of `offsets` in turn: each logical lane's value combined with that of logical lane `l ^ offset`. The offsets
    /// are powers of two below the group's size. The order is the same on every target; a step that is as long as the wave or
    /// longer is between the parts of a lane.
    #[track_caller]
    pub fn butterfly(self, offsets: impl IntoIterator<Item = u32>, op: ButterflyOp) -> Self {
        let (k, group) = (self.group.k, self.group);
        let mut v = self;
        for offset in offsets {
            if !offset.is_power_of_two() || offset >= group.size {
                let size = group.size;
                k.refuse(format!("butterfly over distance {offset}; allowed are powers of two below {size}"));
                continue;
            }
            if offset >= group.width() {
                // Two parts: each is the other's partner, and the operation is commutative.
                let both = k.emit(Op::Binary(op.step(), v.parts[0].id, v.parts[1].id));
                v = group.filled(both);
            } else {
                for part in v.parts.iter_mut().take(group.parts()) {
                    *part = part.butterfly_within(&[offset], group.width(), op);
                }
            }
        }
        v
    }
}

impl<'k, T: Data + Plain> Grouped<'k, T> {
    /// The value of logical lane `l ^ n`; `n`, a build-time number, is below the group's size.
    #[track_caller]
    pub fn shuffle_xor(self, n: u32) -> Self {
        let (k, group) = (self.group.k, self.group);
        if n >= group.size {
            k.refuse(format!("shuffle_xor by {n} in a group of {} lanes", group.size));
            return self;
        }
        let mut v = self;
        if n >= group.width() {
            v.parts.reverse();
        }
        let within = n % group.width();
        if within != 0 {
            for part in v.parts.iter_mut().take(group.parts()) {
                *part = part.shuffle_xor(within, group.width());
            }
        }
        v
    }
}

impl<'k> Grouped<'k, u32> {
    /// [`V::transpose8x8`] of each 32 logical lanes.
    #[track_caller]
    pub fn transpose8x8(self) -> Self {
        let mut v = self;
        for part in v.parts.iter_mut().take(self.group.parts()) {
            *part = part.transpose8x8();
        }
        v
    }
}

impl<'k> Grouped<'k, bool> {
    /// Whether it holds in any active logical lane of the group.
    #[track_caller]
    pub fn any(self) -> V<'k, bool> {
        let (k, group) = (self.group.k, self.group);
        let mut holds = self.parts[0];
        for part in self.parts.iter().take(group.parts()).skip(1) {
            holds = k.emit(Op::Binary(BinaryOp::Or, holds.id, part.id));
        }
        let lanes = holds.ballot();
        if group.size >= k.wave() {
            return lanes.ne(0);
        }
        // The wave holds several groups: look at this one's bits.
        let first = (k.lane_id() & !(group.size - 1)).to::<u64>();
        ((lanes >> first) & ((1u64 << group.size) - 1)).ne(0)
    }

    /// Whether it holds in all active logical lanes of the group.
    #[track_caller]
    pub fn all(self) -> V<'k, bool> {
        let mut not = self;
        for part in not.parts.iter_mut().take(self.group.parts()) {
            *part = !*part;
        }
        !not.any()
    }
}

impl<'k, T: Ty> Values<'k> for Grouped<'k, T> {
    fn each(&self, f: &mut impl FnMut(Value, Type)) {
        self.parts.iter().take(self.group.parts()).for_each(|v| v.each(f));
    }
    fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> Value) -> Self {
        self.group.from_parts(|i| self.parts[i].rebuild(k, next))
    }
}
