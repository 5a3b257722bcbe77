//! Values as a test writes them, and as it compares them.

use lathe_dsl::ir::{Bits, Scalar, Type};

/// What one element must be.
#[derive(Clone, PartialEq, Debug)]
pub enum Want {
    /// These bits.
    Bits(u64),
    /// Any NaN.
    Nan,
    /// Anything.
    Any,
    /// These bits where the operation is exact, else at most so far away.
    Near { bits: u64, ulp: u64, absolute: f64 },
}

/// How an element is compared: on the CPU device bounded operations are exact too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    Exact,
    Bounded,
}

impl Want {
    pub fn holds(&self, scalar: Scalar, got: u64, exactness: Exactness) -> bool {
        match self {
            Self::Bits(bits) => got == *bits,
            Self::Nan => number(scalar, got).is_nan(),
            Self::Any => true,
            Self::Near { bits, .. } if exactness == Exactness::Exact => got == *bits,
            Self::Near { bits, ulp, absolute } => {
                let (a, b) = (number(scalar, *bits), number(scalar, got));
                if a.is_nan() || b.is_nan() {
                    return a.is_nan() && b.is_nan();
                }
                rank(scalar, *bits).abs_diff(rank(scalar, got)) <= *ulp || (a - b).abs() <= *absolute
            }
        }
    }

    pub fn show(&self, scalar: Scalar) -> String {
        match self {
            Self::Bits(bits) => show(scalar, *bits),
            Self::Nan => "a NaN".to_owned(),
            Self::Any => "anything".to_owned(),
            Self::Near { bits, ulp, absolute } => {
                format!("{} within {ulp} ulp or {absolute:e}", show(scalar, *bits))
            }
        }
    }
}

/// A value, with its bits where they are not plain to see.
pub fn show(scalar: Scalar, bits: u64) -> String {
    let text = Type::Scalar(scalar).constant(Bits(bits));
    match scalar {
        Scalar::F16 | Scalar::Bf16 => format!("{} ({text})", number(scalar, bits)),
        Scalar::F32 | Scalar::F64 if text.starts_with("0x") => format!("{} ({text})", number(scalar, bits)),
        Scalar::F32 | Scalar::F64 => format!("{text} (0x{bits:0width$x})", width = scalar.bits() as usize / 4),
        _ => text,
    }
}

/// The value of a float.
fn number(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Scalar::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Scalar::F32 => f32::from_bits(bits as u32).into(),
        Scalar::F64 => f64::from_bits(bits),
        _ => bits as f64,
    }
}

/// The place of a float among all floats of its type; both zeros have one.
fn rank(scalar: Scalar, bits: u64) -> i64 {
    let sign = 1u64 << (scalar.bits() - 1);
    let magnitude = (bits & (sign - 1)) as i64;
    if bits & sign == 0 { magnitude } else { -magnitude }
}

/// Splits at commas outside brackets.
pub fn split(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return vec![];
    }
    let (mut depth, mut start, mut parts) = (0i32, 0, vec![]);
    for (i, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// A data type by its printed name.
pub fn data_type(text: &str) -> Result<Type, String> {
    let named = |t: &str| match (Scalar::named(t), t.rsplit_once('x')) {
        (Some(s), _) => Some(Type::Scalar(s)),
        (None, Some((s, n))) => Some(Type::Vector(Scalar::named(s)?, n.parse().ok()?)),
        _ => None,
    };
    named(text).ok_or_else(|| format!("`{text}` is no scalar or vector type"))
}

/// What one element must be, from its text.
pub fn want(scalar: Scalar, text: &str) -> Result<Want, String> {
    let constant = |text: &str| scalar.parse_constant(text).map(|b| b.0).map_err(|w| format!("`{text}` is not {w}"));
    match text {
        "nan" if scalar.is_float() => return Ok(Want::Nan),
        "any" => return Ok(Want::Any),
        _ => {}
    }
    let Some(rest) = text.strip_prefix('~') else { return constant(text).map(Want::Bits) };
    let wrong = || format!("`{text}`; wanted is `~ X within N ulp`, `~ X within N ulp or A` or `~ X within A`");
    let (value, bound) = rest.split_once("within").filter(|_| scalar.is_float()).ok_or_else(wrong)?;
    let bits = constant(value.trim())?;
    let (mut ulp, mut absolute) = (0, 0.0);
    for part in bound.split(" or ") {
        match part.trim().strip_suffix("ulp") {
            Some(n) => ulp = n.trim().parse().map_err(|_| wrong())?,
            None => absolute = part.trim().parse().map_err(|_| wrong())?,
        }
    }
    Ok(Want::Near { bits, ulp, absolute })
}

/// What the elements of a value must be.
pub fn wants(ty: Type, text: &str) -> Result<Vec<Want>, String> {
    let Type::Vector(scalar, n) = ty else { return Ok(vec![want(ty.scalar(), text)?]) };
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("`{text}` where a vector in brackets is wanted"))?;
    if let Some(one) = inner.strip_suffix("x*") {
        return Ok(vec![want(scalar, one.trim())?; n as usize]);
    }
    let parts = split(inner);
    if parts.len() != n as usize {
        return Err(format!("{} elements for {ty}", parts.len()));
    }
    parts.into_iter().map(|p| want(scalar, p)).collect()
}

/// The bits of the elements of an operand.
pub fn operand(ty: Type, text: &str) -> Result<Vec<u64>, String> {
    let quiet = || ty.scalar().parse_constant("nan").map(|b| b.0);
    let bits = |want| match want {
        Want::Bits(bits) => Ok(bits),
        Want::Nan => quiet(),
        Want::Any | Want::Near { .. } => Err(format!("`{text}` is no operand")),
    };
    wants(ty, text)?.into_iter().map(bits).collect()
}
