//! How undefined bits of operands become undefined bits of a result.

/// Rule of one instruction.
#[derive(Clone, Copy, Debug)]
pub enum Shadow {
    /// Any undefined bit makes the whole result undefined.
    Strict,
    /// Bit i of the result depends on bits 0 to i of the operands (sums, products).
    Left,
    /// Bit i of the result depends on bit i of the operands only.
    Bitwise,
    /// The result's bits are bits of the operands, moved. Operands in the mask steer the move: they must be defined.
    Move(u8),
    /// Two halves: bits 0–15 of the result depend on operand 0, bits 16–31 on operand 1.
    Halves,
    /// Own rule: values and undefined bits of the operands to undefined bits of the result.
    Own(fn([u64; 3], [u64; 3]) -> u64),
}

/// All bits from the lowest set one up.
pub(crate) fn left(u: u64) -> u64 {
    if u == 0 { 0 } else { u64::MAX << u.trailing_zeros() }
}

/// Undefined bits of `f(vals)` within `mask`, for `n` operands with undefined bits `unds`.
pub(crate) fn eval(
    rule: Shadow,
    f: impl Fn([u64; 3]) -> u64,
    n: usize,
    vals: [u64; 3],
    unds: [u64; 3],
    mask: u64,
) -> u64 {
    if unds == [0; 3] {
        return 0;
    }
    mask & match rule {
        Shadow::Strict => u64::MAX,
        Shadow::Left => left(unds[0] | unds[1] | unds[2]),
        Shadow::Bitwise => {
            let at = |choice: u32| {
                let pick = |i: usize| if choice >> i & 1 == 1 { vals[i] | unds[i] } else { vals[i] & !unds[i] };
                f([pick(0), pick(1), pick(2)])
            };
            let first = at(0);
            (1..1u32 << n).fold(0, |u, choice| u | (first ^ at(choice)))
        }
        Shadow::Move(steering) => {
            if (0..3).any(|i| steering >> i & 1 == 1 && unds[i] != 0) {
                u64::MAX
            } else {
                let moved = |i: usize| if steering >> i & 1 == 1 { vals[i] } else { unds[i] };
                f([moved(0), moved(1), moved(2)])
            }
        }
        Shadow::Halves => (if unds[0] != 0 { 0xFFFF } else { 0 }) | (if unds[1] != 0 { 0xFFFF_0000 } else { 0 }),
        Shadow::Own(rule) => rule(vals, unds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn and_with_a_known_zero_is_known() {
        let u = eval(Shadow::Bitwise, |[a, b, _]| a & b, 2, [0xFF, 0x0F, 0], [0xFF, 0, 0], u64::MAX);
        assert_eq!(u, 0x0F);
    }

    #[test]
    fn a_sum_is_undefined_from_its_lowest_undefined_bit_up() {
        assert_eq!(eval(Shadow::Left, |_| 0, 2, [0; 3], [0x10, 0x40, 0], 0xFFFF_FFFF), 0xFFFF_FFF0);
    }

    #[test]
    fn moved_bits_keep_their_shadow_unless_the_shift_amount_is_undefined() {
        let shl = |[a, b, _]: [u64; 3]| a << (b & 31);
        assert_eq!(eval(Shadow::Move(2), shl, 2, [1, 4, 0], [0x3, 0, 0], 0xFFFF_FFFF), 0x30);
        assert_eq!(eval(Shadow::Move(2), shl, 2, [1, 4, 0], [0, 1, 0], 0xFFFF_FFFF), 0xFFFF_FFFF);
    }

    #[test]
    fn exclusive_or_with_itself_is_not_recognised_as_known() {
        // Each operand is judged on its own, as in memcheck: the pessimistic side.
        assert_eq!(eval(Shadow::Bitwise, |[a, b, _]| a ^ b, 2, [5, 5, 0], [1, 1, 0], u64::MAX), 1);
    }
}
