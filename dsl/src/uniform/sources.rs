//! Thread and lane numbers: where difference between threads begins.

use super::state::{State, length};
use crate::ir::Axis;

/// Bits of a number below `extent`.
fn below(extent: u32) -> u32 {
    length(u128::from(extent.max(1) - 1))
}

/// The index of a thread along an axis.
pub(super) fn thread_id([x, y, z]: [u32; 3], axis: Axis) -> State {
    let plane = u64::from(x) * u64::from(y);
    State::by_size(|k| {
        let block = 1u64 << k;
        match axis {
            // A row of whole blocks, or one row: the index follows the linear order.
            Axis::X if (y == 1 && z == 1) || u64::from(x).is_multiple_of(block) => k.min(below(x)),
            Axis::X => below(x),
            Axis::Y => run(u64::from(x), if z == 1 { 0 } else { plane }, k, below(y)),
            Axis::Z => run(plane, 0, k, below(z)),
        }
    })
}

/// An index that moves on every `each` threads, and begins anew every `period` (0: never).
fn run(each: u64, period: u64, k: u32, most: u32) -> u32 {
    let block = 1u64 << k;
    if each.is_multiple_of(block) {
        0
    } else if each.is_power_of_two() && period.is_multiple_of(block) {
        (k - each.trailing_zeros()).min(most)
    } else {
        most
    }
}

/// The index of the lane in its wave of `2^wave` lanes.
pub(super) fn lane_id(wave: u32) -> State {
    State::by_size(|k| k.min(wave))
}
