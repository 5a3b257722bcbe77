//! Vector compares: `v_cmp_*`, `v_cmpx_*`, all built from a predicate and a type.

use super::vop::{Ty, fetch};
use crate::gcn::decode::Inst;
use crate::gcn::error::{Fault, unsupported};
use crate::gcn::isa::Context;
use crate::gcn::state::{Scalar, lanes_of, scalar_range};

/// What holds between two operands, as a set of possible outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predicate {
    less: bool,
    equal: bool,
    greater: bool,
    /// A NaN is involved.
    unordered: bool,
}

const fn predicate(less: bool, equal: bool, greater: bool, unordered: bool) -> Predicate {
    Predicate { less, equal, greater, unordered }
}

/// Type of the operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareType {
    /// Float of this type.
    Float(Ty),
    /// Signed integer of so many bits.
    Signed(u32),
    /// Unsigned integer of so many bits.
    Unsigned(u32),
    /// Class of a float against a mask.
    Class(Ty),
}

/// One compare instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compare {
    predicate: Predicate,
    ty: CompareType,
    to: Destination,
}

/// Where the lane mask goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Destination {
    /// To the register that the instruction names.
    Register,
    /// There and to EXEC.
    RegisterAndExec,
    /// To EXEC alone.
    Exec,
}

impl Compare {
    /// Whether EXEC takes the mask.
    pub(crate) fn writes_exec(self) -> bool {
        self.to != Destination::Register
    }

    /// Whether the first operand takes it.
    pub(crate) fn names_result(self) -> bool {
        self.to != Destination::Exec
    }
}

const FLOAT: &[(&str, Predicate)] = &[
    ("f", predicate(false, false, false, false)),
    ("lt", predicate(true, false, false, false)),
    ("eq", predicate(false, true, false, false)),
    ("le", predicate(true, true, false, false)),
    ("gt", predicate(false, false, true, false)),
    ("lg", predicate(true, false, true, false)),
    ("ge", predicate(false, true, true, false)),
    ("o", predicate(true, true, true, false)),
    ("u", predicate(false, false, false, true)),
    ("nge", predicate(true, false, false, true)),
    ("nlg", predicate(false, true, false, true)),
    ("ngt", predicate(true, true, false, true)),
    ("nle", predicate(false, false, true, true)),
    ("neq", predicate(true, false, true, true)),
    ("nlt", predicate(false, true, true, true)),
    ("tru", predicate(true, true, true, true)),
];

const INTEGER: &[(&str, Predicate)] = &[
    ("f", predicate(false, false, false, false)),
    ("lt", predicate(true, false, false, false)),
    ("eq", predicate(false, true, false, false)),
    ("le", predicate(true, true, false, false)),
    ("gt", predicate(false, false, true, false)),
    ("ne", predicate(true, false, true, false)),
    ("ge", predicate(false, true, true, false)),
    ("t", predicate(true, true, true, false)),
];

/// Every compare with its mnemonic.
pub(crate) fn all() -> impl Iterator<Item = (String, Compare)> {
    let floats = [("f16", Ty::F16), ("f32", Ty::F32), ("f64", Ty::F64)];
    let mut out = Vec::new();
    for (prefix, to) in [("v_cmp", Destination::Register), ("v_cmpx", Destination::RegisterAndExec)] {
        let mut add = |name: &str, ty: &str, predicate, of| {
            out.push((format!("{prefix}_{name}_{ty}"), Compare { predicate, ty: of, to }));
        };
        for (ty, of) in floats {
            FLOAT.iter().for_each(|(name, p)| add(name, ty, *p, CompareType::Float(of)));
            add("class", ty, predicate(false, false, false, false), CompareType::Class(of));
        }
        for bits in [16u32, 32, 64] {
            for (name, p) in INTEGER {
                add(name, &format!("i{bits}"), *p, CompareType::Signed(bits));
                add(name, &format!("u{bits}"), *p, CompareType::Unsigned(bits));
            }
        }
    }
    out.into_iter()
}

fn integer(bits: u32) -> Ty {
    match bits {
        16 => Ty::B16,
        32 => Ty::B32,
        _ => Ty::B64,
    }
}

fn sign_extend(x: u64, bits: u32) -> i64 {
    (x << (64 - bits)) as i64 >> (64 - bits)
}

/// Bit of a class mask that a float falls under.
fn class(x: u64, ty: Ty) -> u32 {
    let (exponent_bits, mantissa_bits) = match ty {
        Ty::F16 => (5, 10),
        Ty::F32 => (8, 23),
        _ => (11, 52),
    };
    let mantissa = x & ((1 << mantissa_bits) - 1);
    let top = (1u64 << exponent_bits) - 1;
    let exponent = x >> mantissa_bits & top;
    let negative = x >> (exponent_bits + mantissa_bits) & 1 == 1;
    let by_sign = |minus, plus| if negative { minus } else { plus };
    if exponent == top && mantissa != 0 {
        u32::from(mantissa >> (mantissa_bits - 1) & 1 == 1)
    } else if exponent == top {
        by_sign(2, 9)
    } else if exponent != 0 {
        by_sign(3, 8)
    } else if mantissa != 0 {
        by_sign(4, 7)
    } else {
        by_sign(5, 6)
    }
}

impl Compare {
    /// As gfx10 and later have it: what writes EXEC writes nothing else.
    pub(super) fn without_register(self) -> Self {
        match self.to {
            Destination::RegisterAndExec => Self { to: Destination::Exec, ..self },
            _ => self,
        }
    }

    pub(super) fn operands(self) -> (usize, usize) {
        let n = if self.to == Destination::Exec { 2 } else { 3 };
        (n, n)
    }

    fn types(self) -> [Ty; 2] {
        match self.ty {
            CompareType::Float(ty) => [ty, ty],
            CompareType::Signed(b) | CompareType::Unsigned(b) => [integer(b), integer(b)],
            CompareType::Class(ty) => [ty, Ty::B32],
        }
    }

    fn holds(self, a: u64, b: u64) -> bool {
        use std::cmp::Ordering;
        let order = match self.ty {
            CompareType::Float(Ty::F32) => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
            CompareType::Float(Ty::F16) => half::f16::from_bits(a as u16).partial_cmp(&half::f16::from_bits(b as u16)),
            CompareType::Float(_) => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
            CompareType::Signed(bits) => Some(sign_extend(a, bits).cmp(&sign_extend(b, bits))),
            CompareType::Unsigned(_) => Some(a.cmp(&b)),
            CompareType::Class(ty) => return b >> class(a, ty) & 1 == 1,
        };
        match order {
            Some(Ordering::Less) => self.predicate.less,
            Some(Ordering::Equal) => self.predicate.equal,
            Some(Ordering::Greater) => self.predicate.greater,
            None => self.predicate.unordered,
        }
    }

    /// Whether the outcome is the same for every value of the undefined bits.
    fn settled(self, a: u64, ua: u64, b: u64, ub: u64) -> bool {
        let p = self.predicate;
        match self.ty {
            // Unequal in a defined bit, and it only matters whether they are equal.
            CompareType::Signed(_) | CompareType::Unsigned(_) if p.less == p.greater => {
                p.less == p.equal || (a ^ b) & !(ua | ub) != 0
            }
            CompareType::Unsigned(_) => {
                let (a_low, a_high, b_low, b_high) = (a & !ua, a | ua, b & !ub, b | ub);
                a_high < b_low
                    || a_low > b_high
                    || (a_low >= b_high && p.equal == p.greater)
                    || (a_high <= b_low && p.equal == p.less)
            }
            _ => false,
        }
    }
}

pub(crate) fn exec(cx: &mut Context<'_, '_>, op: Compare, inst: &Inst) -> Result<(), Fault> {
    if inst.mods.clamp || inst.mods.omod != 1.0 {
        return unsupported(format!("output modifier in `{}`", inst.text));
    }
    let first = inst.args.len() - 2;
    let mut o = fetch(cx, inst, &inst.args[first..], &op.types())?;
    if let CompareType::Class(_) = op.ty {
        // The class of the operand as it is, not as flushed.
        if cx.wave.mode.denorm32 & 1 == 0 || cx.wave.mode.denorm64 & 1 == 0 {
            return unsupported(format!("`{}` with denormals flushed", inst.text));
        }
        o.src[1].v.iter_mut().for_each(|v| *v &= 0x3FF);
        o.src[1].u.iter_mut().for_each(|u| *u &= 0x3FF);
    }
    let mut mask = Scalar::default();
    for l in lanes_of(o.write) {
        let (a, b) = (o.src[0].v[l], o.src[1].v[l]);
        let (ua, ub) = (o.src[0].u[l], o.src[1].u[l]);
        mask.v |= u64::from(op.holds(a, b)) << l;
        mask.u |= u64::from(ua | ub != 0 && !op.settled(a, ua, b, ub)) << l;
    }
    if op.to != Destination::Exec {
        let (first, count) = scalar_range(&inst.args[0])?;
        cx.wave.set_scalar(first, count, mask)?;
    }
    if op.to != Destination::Register {
        cx.wave.set_exec(mask)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcn::isa::float;

    #[test]
    fn nan_makes_only_the_unordered_predicates_true() {
        let nan = u64::from(float::NAN32);
        let one = u64::from(1f32.to_bits());
        for (name, c) in all().filter(|(n, _)| n.starts_with("v_cmp_") && n.ends_with("_f32") && !n.contains("class")) {
            let wanted = name.starts_with("v_cmp_n") || name == "v_cmp_u_f32" || name == "v_cmp_tru_f32";
            assert_eq!(c.holds(nan, one), wanted, "{name}");
            assert_eq!(c.holds(one, nan), wanted, "{name}");
        }
    }

    #[test]
    fn classes_of_f32() {
        let cases = [
            (0x7F80_0001, 0),
            (0x7FC0_0000, 1),
            (0xFF80_0000, 2),
            (0xBF80_0000, 3),
            (0x8000_0001, 4),
            (0x8000_0000, 5),
            (0, 6),
            (1, 7),
            (0x3F80_0000, 8),
            (0x7F80_0000, 9),
        ];
        for (bits, bit) in cases {
            assert_eq!(class(bits, Ty::F32), bit, "{bits:#x}");
        }
        assert_eq!(class(0x7C00, Ty::F16), 9);
        assert_eq!(class(0x8000_0000_0000_0001, Ty::F64), 4);
    }

    #[test]
    fn compares_settled_by_defined_bits() {
        let find = |name: &str| all().find(|(n, _)| n == name).unwrap().1;
        assert!(find("v_cmp_eq_u32").settled(0x10, 0x1, 0x20, 0));
        assert!(!find("v_cmp_eq_u32").settled(0x10, 0x1, 0x10, 0));
        assert!(find("v_cmp_lt_u32").settled(0x10, 0xF, 0x20, 0));
        assert!(!find("v_cmp_lt_u32").settled(0x10, 0xF, 0x18, 0));
        assert!(find("v_cmp_gt_u32").settled(0x10, 0xF, 0x1F, 0), "never above the bound");
    }
}
