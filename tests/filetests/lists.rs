//! Buffers' contents as a test writes them.

use std::collections::HashMap;

use lathe_dsl::ir::Scalar;

use super::expression::{Names, Number, evaluate, tokens};
use super::values::{Want, want};

/// What a buffer holds before a launch.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// These elements.
    Elements(Vec<u64>),
    /// Nothing was ever written to it.
    Uninit,
    /// Bytes `0xA5`.
    Filler,
}

/// The element of a buffer that the test does not fill.
pub fn filler(scalar: Scalar) -> u64 {
    0xA5A5_A5A5_A5A5_A5A5 & mask(scalar)
}

fn mask(scalar: Scalar) -> u64 {
    u64::MAX >> (64 - scalar.bits())
}

/// What is known before a launch.
#[derive(Default)]
pub struct Known {
    pub wave: u32,
    /// Element type and content.
    pub buffers: HashMap<&'static str, (Scalar, Content)>,
    /// Type and bits.
    pub scalars: HashMap<&'static str, (Scalar, u64)>,
}

/// What is known, and the element at hand.
struct At<'a> {
    known: &'a Known,
    index: u64,
}

fn numeral(scalar: Scalar, bits: u64) -> Number {
    let unused = 64 - scalar.bits();
    match scalar {
        s if s.is_float() => Number::Float(bits),
        s if s.is_signed() => Number::Whole(((bits << unused) as i64 >> unused).into()),
        _ => Number::Whole(bits.into()),
    }
}

impl Names for At<'_> {
    fn name(&self, name: &str) -> Option<Number> {
        match name {
            "i" => Some(Number::Whole(self.index.into())),
            "wave" => Some(Number::Whole(self.known.wave.into())),
            name => self.known.scalars.get(name).map(|(scalar, bits)| numeral(*scalar, *bits)),
        }
    }

    fn element(&self, buffer: &str, index: i128) -> Option<Number> {
        let (scalar, content) = self.known.buffers.get(buffer)?;
        let index = usize::try_from(index).ok()?;
        match content {
            Content::Elements(elements) => elements.get(index).map(|bits| numeral(*scalar, *bits)),
            Content::Filler => Some(numeral(*scalar, filler(*scalar))),
            Content::Uninit => None,
        }
    }
}

fn each(scalar: Scalar, len: u64, expression: &str, known: &Known) -> Result<Vec<u64>, String> {
    let tokens = tokens(expression)?;
    let element = |index| match evaluate(&tokens, &At { known, index }).map_err(|e| format!("element {index}: {e}"))? {
        Number::Float(bits) if scalar.is_float() => Ok(bits & mask(scalar)),
        Number::Float(_) => Err(format!("element {index}: a float for {scalar}")),
        Number::Whole(n) if scalar.is_float() => {
            scalar.parse_constant(&n.to_string()).map(|b| b.0).map_err(|w| format!("element {index}: {n} is not {w}"))
        }
        Number::Whole(n) => Ok(n as u64 & mask(scalar)),
    };
    (0..len).map(element).collect()
}

/// The same numbers in every run: splitmix64.
fn random(scalar: Scalar, len: u64, mut state: u64) -> Result<Vec<u64>, String> {
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    };
    let mut element = || {
        let bits = next();
        if !scalar.is_float() {
            return Ok(bits & mask(scalar));
        }
        let magnitude = (1.0 + (bits >> 12) as f64 / (1u64 << 52) as f64) * f64::from((bits as u32 & 15) + 1) / 256.0;
        let magnitude = magnitude * f64::from(1 << (bits >> 4 & 15) as u32) / 16.0;
        let signed = if bits >> 8 & 1 == 1 { -magnitude } else { magnitude };
        scalar.parse_constant(&format!("{signed:?}")).map(|b| b.0)
    };
    (0..len).map(|_| element()).collect()
}

/// `VALUE`, `VALUE xN` and `VALUE x*`, separated by blanks. A value may itself hold blanks (`~ X within …`).
fn items(text: &str, len: u64) -> Result<Vec<&str>, String> {
    let mut all: Vec<(&str, usize)> = vec![];
    let mut open = None;
    let mut rest = text;
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let mut end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if rest.starts_with('~') {
            end = rest.find(')').map(|i| i + 1).filter(|_| rest.starts_with("~(")).unwrap_or(end);
        }
        let (word, tail) = rest.split_at(end);
        rest = tail;
        let count = word.strip_prefix('x').filter(|n| *n == "*" || n.chars().all(|c| c.is_ascii_digit()));
        match (count, all.last_mut()) {
            (Some("*"), Some(_)) if open.is_none() => open = Some(all.len() - 1),
            (Some("*"), Some(_)) => return Err("two times `x*`".to_owned()),
            (Some(n), Some((_, times))) => *times = n.parse().map_err(|_| format!("`{word}`"))?,
            _ => all.push((word, 1)),
        }
    }
    if let Some(open) = open {
        let others: usize = all.iter().enumerate().filter(|(i, _)| *i != open).map(|(_, (_, n))| n).sum();
        all[open].1 = (len as usize).checked_sub(others).ok_or("more values than elements")?;
    }
    let total: u64 = all.iter().map(|(_, n)| *n as u64).sum();
    if total != len {
        return Err(format!("{total} values for {len} elements"));
    }
    Ok(all.into_iter().flat_map(|(word, n)| std::iter::repeat_n(word, n)).collect())
}

/// What a buffer holds before a launch.
pub fn content(scalar: Scalar, len: u64, list: &str, known: &Known) -> Result<Content, String> {
    if list == "uninit" {
        return Ok(Content::Uninit);
    }
    if let Some(seed) = list.strip_prefix("random ") {
        let seed = seed.trim().parse().map_err(|_| format!("`{seed}` is no seed"))?;
        return random(scalar, len, seed).map(Content::Elements);
    }
    if let Some(expression) = list.strip_prefix("each ") {
        return each(scalar, len, expression, known).map(Content::Elements);
    }
    let bits = |word: &&str| match want(scalar, word)? {
        Want::Bits(bits) => Ok(bits),
        Want::Nan => scalar.parse_constant("nan").map(|b| b.0),
        _ => Err(format!("`{word}` is no value of an argument")),
    };
    items(list, len)?.iter().map(bits).collect::<Result<_, _>>().map(Content::Elements)
}

/// What a buffer must hold after a launch; `own` is what it held before.
pub fn expected(scalar: Scalar, len: u64, list: &str, known: &Known, own: &Content) -> Result<Vec<Want>, String> {
    if list.starts_with("each ") || list.starts_with("random ") {
        return match content(scalar, len, list, known)? {
            Content::Elements(elements) => Ok(elements.into_iter().map(Want::Bits).collect()),
            _ => Err("no elements".to_owned()),
        };
    }
    let mut wants = vec![];
    for (i, word) in items(list, len)?.into_iter().enumerate() {
        wants.push(match (word, own) {
            ("kept", Content::Elements(elements)) => Want::Bits(elements[i]),
            ("kept", Content::Filler) => Want::Bits(filler(scalar)),
            ("kept", Content::Uninit) => Want::Any,
            // `~(X within …)`: in a list blanks separate.
            _ => match word.strip_prefix("~(").and_then(|w| w.strip_suffix(')')) {
                Some(near) => want(scalar, &format!("~ {near}"))?,
                None => want(scalar, word)?,
            },
        });
    }
    Ok(wants)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let buffers = [
            ("x", (Scalar::I8, Content::Elements(vec![0xFF, 2, 3, 4]))),
            ("f", (Scalar::F16, Content::Elements(vec![0x7E01, 0x3C00]))),
        ];
        Known { wave: 32, buffers: buffers.into(), scalars: [("n", (Scalar::I32, 0xFFFF_FFFF))].into() }
    }

    #[test]
    fn lists_have_their_elements() {
        let elements = |scalar, len, list: &str| match content(scalar, len, list, &known()) {
            Ok(Content::Elements(e)) => Ok(e),
            Ok(other) => Err(format!("{other:?}")),
            Err(e) => Err(e),
        };
        assert_eq!(elements(Scalar::U8, 5, "1 2 x3 0xff"), Ok(vec![1, 2, 2, 2, 255]));
        assert_eq!(elements(Scalar::U8, 5, "1 0 x* 9"), Ok(vec![1, 0, 0, 0, 9]));
        assert_eq!(elements(Scalar::F16, 2, "1.0 nan"), Ok(vec![0x3C00, 0x7E00]));
        assert_eq!(elements(Scalar::U8, 4, "each x[i] + n"), Ok(vec![254, 1, 2, 3]));
        assert_eq!(elements(Scalar::F16, 2, "each i + wave"), Ok(vec![0x5000, 0x5020]));
        assert_eq!(elements(Scalar::F16, 2, "each f[1 - i]"), Ok(vec![0x3C00, 0x7E01]));
        assert_eq!(content(Scalar::U8, 2, "uninit", &known()), Ok(Content::Uninit));
        assert_eq!(elements(Scalar::F32, 64, "random 3"), elements(Scalar::F32, 64, "random 3"));
        for (len, list) in
            [(2, "1"), (2, "1 2 3"), (2, "1 x* 2 x*"), (1, "1 x* 2 3"), (1, "1.5"), (1, "any"), (4, "each f[i]")]
        {
            assert!(elements(Scalar::U8, len, list).is_err(), "{list}");
        }
    }

    #[test]
    fn expectations_can_keep_and_bound() {
        let own = Content::Elements(vec![1, 2, 3]);
        let wants = expected(Scalar::U8, 3, "7 kept any", &known(), &own).unwrap();
        assert_eq!(wants, [Want::Bits(7), Want::Bits(2), Want::Any]);
        let near = expected(Scalar::F32, 1, "~(1.0 within 2 ulp)", &known(), &Content::Filler).unwrap();
        assert!(near[0].holds(Scalar::F32, 0x3F80_0002, crate::filetests::values::Exactness::Bounded));
        assert!(!near[0].holds(Scalar::F32, 0x3F80_0002, crate::filetests::values::Exactness::Exact));
        assert!(!near[0].holds(Scalar::F32, 0x3F80_0003, crate::filetests::values::Exactness::Bounded));
    }
}
