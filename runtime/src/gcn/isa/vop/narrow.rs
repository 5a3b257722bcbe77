//! Conversions between floats and codes of 8, 6 and 4 bits.
//!
//! Sources: the CDNA4 and RDNA4 instruction set architectures (which bits go where), AMD's host headers for what they leave
//! out (`amd_hip_ocp_host.hpp`): the conversions do not saturate where a format has a NaN or an infinity, a NaN keeps its sign
//! (e5m2: 0x7E), a scale of 0xFF makes NaN, products overflow to infinity and are rounded where they are subnormal. On gfx942
//! fp8 and bf8 are the FNUZ formats.

use super::{Operands, Row, Special, Ty, fetch, special};
use crate::gcn::decode::{Arg, Inst, Kind};
use crate::gcn::error::{ErrorKind, Fault, unsupported};
use crate::gcn::isa::{Context, float};
use crate::gcn::state::{LANES, Lanes, Wide, lanes_of, vector_range};

use Format::{Bf6, Bf8, Fp4, Fp6, Fp8};
use Ty::{B32, F32};

/// A format as the instructions name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// e4m3.
    Fp8,
    /// e5m2.
    Bf8,
    /// e2m3.
    Fp6,
    /// e3m2.
    Bf6,
    /// e2m1.
    Fp4,
}

/// Type of the elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// f32.
    F32,
    /// f16.
    F16,
    /// bf16.
    Bf16,
}

/// How operands and results lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Two f32 to two codes in a part of a register.
    PackPair { scaled: bool },
    /// Two elements of 16 bits to two codes in a part of a register, scaled.
    PackHalves,
    /// Two codes in a part of a register to two elements.
    Unpack { scaled: bool },
    /// 32 elements to 192 bits of codes, scaled.
    Pack32,
    /// 16 elements twice, by turns.
    PackTwice16,
    /// The reverse of `Pack32`.
    Unpack32,
}

/// One of the conversions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Convert {
    format: Format,
    element: Element,
    form: Form,
}

impl Convert {
    pub(super) fn operands(self) -> (usize, usize) {
        let n = match self.form {
            Form::PackPair { scaled: true } | Form::PackTwice16 => 4,
            Form::PackPair { scaled: false } | Form::PackHalves | Form::Pack32 | Form::Unpack32 => 3,
            Form::Unpack { scaled } => 2 + usize::from(scaled),
        };
        (n, n)
    }
}

/// Fields of a format.
#[derive(Clone, Copy)]
struct Fields {
    fraction: u32,
    bias: i32,
    bits: u32,
    /// Largest finite number.
    largest: f64,
    /// Magnitude of what lies beyond it, if it is no number.
    beyond: Option<u8>,
    /// Magnitude of a NaN.
    nan: Option<u8>,
    fnuz: bool,
}

impl Format {
    fn fields(self, fnuz: bool) -> Fields {
        let fields = |fraction, bias, bits, largest, beyond, nan| Fields {
            fraction,
            bias,
            bits,
            largest,
            beyond,
            nan,
            fnuz: false,
        };
        match self {
            Fp8 if fnuz => Fields { fnuz, ..fields(3, 8, 8, 240.0, Some(0x80), Some(0x80)) },
            Bf8 if fnuz => Fields { fnuz, ..fields(2, 16, 8, 57344.0, Some(0x80), Some(0x80)) },
            Fp8 => fields(3, 7, 8, 448.0, Some(0x7F), Some(0x7F)),
            Bf8 => fields(2, 15, 8, 57344.0, Some(0x7C), Some(0x7E)),
            Fp6 => fields(3, 1, 6, 7.5, None, None),
            Bf6 => fields(2, 3, 6, 28.0, None, None),
            Fp4 => fields(1, 1, 4, 6.0, None, None),
        }
    }
}

impl Fields {
    /// The code of a number: to nearest, ties to even.
    fn code(self, x: f64) -> u8 {
        let sign = u8::from(x.is_sign_negative()) << (self.bits - 1);
        let all = (1 << (self.bits - 1)) - 1;
        if x.is_nan() {
            return if self.fnuz { 0x80 } else { sign | self.nan.unwrap_or(all) };
        }
        let smallest = 1 - self.bias;
        // Exponent of the unit in which the number is rounded.
        let exponent = if x == 0.0 || x.is_infinite() { smallest } else { (libm::frexp(x).1 - 1).max(smallest) };
        let unit = libm::scalbn(1.0, exponent - self.fraction as i32);
        let units = libm::rint(x.abs() / unit);
        if units * unit > self.largest {
            return match self.beyond {
                Some(_) if self.fnuz => 0x80,
                Some(beyond) => sign | beyond,
                None => sign | all,
            };
        }
        // A number of the format: its place among them, counted from the smallest exponent on.
        let magnitude = ((exponent - smallest) << self.fraction) as u8 + units as u8;
        if self.fnuz && magnitude == 0 { 0 } else { sign | magnitude }
    }

    /// The number that a code means.
    fn number(self, code: u8) -> f64 {
        let magnitude = code & ((1 << (self.bits - 1)) - 1);
        let sign = if code >> (self.bits - 1) & 1 == 1 { -1.0 } else { 1.0 };
        if self.fnuz && code == 0x80 {
            return f64::NAN;
        }
        if !self.fnuz && self.nan.is_some() {
            match self.beyond {
                Some(0x7F) if magnitude == 0x7F => return f64::NAN.copysign(sign),
                Some(0x7C) if magnitude == 0x7C => return f64::INFINITY * sign,
                Some(0x7C) if magnitude > 0x7C => return f64::NAN.copysign(sign),
                _ => {}
            }
        }
        let (field, part) = (i32::from(magnitude >> self.fraction), magnitude & ((1 << self.fraction) - 1));
        let one = f64::from(1u8 << self.fraction);
        let (significand, exponent) = match field {
            0 => (f64::from(part) / one, 1 - self.bias),
            _ => (1.0 + f64::from(part) / one, field - self.bias),
        };
        sign * libm::scalbn(significand, exponent)
    }
}

/// Power of two that an f32 operand scales by; `None` for NaN.
fn scale_exponent(scale: u64) -> Option<i32> {
    match (scale >> 23 & 0xFF) as i32 {
        0xFF => None,
        field => Some(field - 127),
    }
}

impl Element {
    /// The number in a register's low bits.
    fn number(self, bits: u64) -> f64 {
        match self {
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        }
    }

    fn bits(self) -> u32 {
        if self == Self::F32 { 32 } else { 16 }
    }

    /// A number rounded to this type once. All numbers here have few bits, so that as f32 they are exact or infinite.
    fn rounded(self, x: f64) -> u64 {
        match self {
            Self::F32 => (x as f32).to_bits().into(),
            Self::F16 => float::round16(x).to_bits().into(),
            Self::Bf16 => float::bf16((x as f32).to_bits()).into(),
        }
    }
}

/// The code of an element and the bits of it that are undefined.
fn encode(fields: Fields, element: Element, (v, u): (u64, u64), scale: Option<(u64, u64)>) -> (u64, u64) {
    let x = element.number(v);
    let quotient = match scale.map(|(s, _)| scale_exponent(s)) {
        // Exact: f64 has room for both exponents.
        Some(Some(power)) => libm::scalbn(x, -power),
        Some(None) => f64::NAN.copysign(x),
        None => x,
    };
    let undefined = u != 0 || scale.is_some_and(|(_, u)| u & 0x7F80_0000 != 0);
    (fields.code(quotient).into(), if undefined { (1 << fields.bits) - 1 } else { 0 })
}

/// The element of a code.
fn decode(fields: Fields, element: Element, (v, u): (u64, u64), scale: Option<(u64, u64)>) -> (u64, u64) {
    let x = fields.number(v as u8);
    let product = match scale.map(|(s, _)| scale_exponent(s)) {
        Some(Some(power)) => libm::scalbn(x, power),
        Some(None) => f64::NAN.copysign(x),
        None => x,
    };
    let undefined = u != 0 || scale.is_some_and(|(_, u)| u & 0x7F80_0000 != 0);
    (element.rounded(product), if undefined { u64::MAX >> (64 - element.bits()) } else { 0 })
}

const fn convert(name: &'static str, format: Format, element: Element, form: Form) -> Row {
    special(name, B32, &[], Special::Narrow(Convert { format, element, form }))
}

const fn pack(name: &'static str, format: Format, scaled: bool) -> Row {
    convert(name, format, Element::F32, Form::PackPair { scaled })
}

const fn unpack(name: &'static str, format: Format, element: Element) -> Row {
    convert(name, format, element, Form::Unpack { scaled: true })
}

use Element::{Bf16, F16};

pub(crate) static TABLE: &[Row] = &[
    pack("v_cvt_pk_fp8_f32", Fp8, false),
    pack("v_cvt_pk_bf8_f32", Bf8, false),
    convert("v_cvt_pk_f32_fp8", Fp8, Element::F32, Form::Unpack { scaled: false }),
    convert("v_cvt_pk_f32_bf8", Bf8, Element::F32, Form::Unpack { scaled: false }),
    pack("v_cvt_scalef32_pk_fp8_f32", Fp8, true),
    pack("v_cvt_scalef32_pk_bf8_f32", Bf8, true),
    pack("v_cvt_scalef32_pk_fp4_f32", Fp4, true),
    convert("v_cvt_scalef32_pk_fp8_f16", Fp8, F16, Form::PackHalves),
    convert("v_cvt_scalef32_pk_bf8_f16", Bf8, F16, Form::PackHalves),
    convert("v_cvt_scalef32_pk_fp4_f16", Fp4, F16, Form::PackHalves),
    convert("v_cvt_scalef32_pk_fp8_bf16", Fp8, Bf16, Form::PackHalves),
    convert("v_cvt_scalef32_pk_bf8_bf16", Bf8, Bf16, Form::PackHalves),
    convert("v_cvt_scalef32_pk_fp4_bf16", Fp4, Bf16, Form::PackHalves),
    unpack("v_cvt_scalef32_pk_f32_fp8", Fp8, Element::F32),
    unpack("v_cvt_scalef32_pk_f32_bf8", Bf8, Element::F32),
    unpack("v_cvt_scalef32_pk_f32_fp4", Fp4, Element::F32),
    unpack("v_cvt_scalef32_pk_f16_fp8", Fp8, F16),
    unpack("v_cvt_scalef32_pk_f16_bf8", Bf8, F16),
    unpack("v_cvt_scalef32_pk_f16_fp4", Fp4, F16),
    unpack("v_cvt_scalef32_pk_bf16_fp8", Fp8, Bf16),
    unpack("v_cvt_scalef32_pk_bf16_bf8", Bf8, Bf16),
    unpack("v_cvt_scalef32_pk_bf16_fp4", Fp4, Bf16),
    convert("v_cvt_scalef32_2xpk16_fp6_f32", Fp6, Element::F32, Form::PackTwice16),
    convert("v_cvt_scalef32_2xpk16_bf6_f32", Bf6, Element::F32, Form::PackTwice16),
    convert("v_cvt_scalef32_pk32_fp6_f16", Fp6, F16, Form::Pack32),
    convert("v_cvt_scalef32_pk32_bf6_f16", Bf6, F16, Form::Pack32),
    convert("v_cvt_scalef32_pk32_fp6_bf16", Fp6, Bf16, Form::Pack32),
    convert("v_cvt_scalef32_pk32_bf6_bf16", Bf6, Bf16, Form::Pack32),
    convert("v_cvt_scalef32_pk32_f32_fp6", Fp6, Element::F32, Form::Unpack32),
    convert("v_cvt_scalef32_pk32_f32_bf6", Bf6, Element::F32, Form::Unpack32),
    convert("v_cvt_scalef32_pk32_f16_fp6", Fp6, F16, Form::Unpack32),
    convert("v_cvt_scalef32_pk32_f16_bf6", Bf6, F16, Form::Unpack32),
    convert("v_cvt_scalef32_pk32_bf16_fp6", Fp6, Bf16, Form::Unpack32),
    convert("v_cvt_scalef32_pk32_bf16_bf6", Bf6, Bf16, Form::Unpack32),
];

/// Bits from `shift` on of a value and of what is undefined in it.
fn part(w: &Wide, lane: usize, shift: u32, bits: u32) -> (u64, u64) {
    let mask = u64::MAX >> (64 - bits);
    (w.v[lane] >> shift & mask, w.u[lane] >> shift & mask)
}

/// Runs a conversion; `fnuz` where fp8 and bf8 are the FNUZ formats.
pub(super) fn exec(cx: &mut Context<'_, '_>, which: Convert, inst: &Inst, fnuz: bool) -> Result<(), Fault> {
    let Convert { format, element, form } = which;
    let fields = format.fields(fnuz);
    let args = &inst.args;
    let op_sel = u32::from(inst.mods.op_sel);
    match form {
        Form::PackPair { scaled } => {
            let tys = if scaled { &[F32, F32, F32][..] } else { &[F32, F32] };
            // The bits of op_sel behind those of the sources choose where the codes go.
            let at = match (format, scaled) {
                (Fp4, _) => 8 * (op_sel >> 2 & 3),
                (_, true) => 16 * (op_sel >> 3 & 1),
                (_, false) => 16 * (op_sel >> 2 & 1),
            };
            let o = fetch(cx, inst, &args[1..], tys)?;
            let scale = |l: usize| scaled.then(|| (o.src[2].v[l], o.src[2].u[l]));
            insert(cx, &args[0], &o, at, fields.bits, |l| {
                let code = |i: usize| encode(fields, element, (o.src[i].v[l], o.src[i].u[l]), scale(l));
                [code(0), code(1)]
            })
        }
        Form::PackHalves => {
            let o = fetch(cx, inst, &args[1..], &[B32, F32])?;
            let at = if format == Fp4 { 8 * (op_sel >> 2 & 3) } else { 16 * (op_sel >> 2 & 1) };
            insert(cx, &args[0], &o, at, fields.bits, |l| {
                let scale = Some((o.src[1].v[l], o.src[1].u[l]));
                [0, 16].map(|shift| encode(fields, element, part(&o.src[0], l, shift, 16), scale))
            })
        }
        Form::Unpack { scaled } => {
            let tys = if scaled { &[B32, F32][..] } else { &[B32] };
            let o = fetch(cx, inst, &args[1..], tys)?;
            let from = if format == Fp4 { 8 * (op_sel & 3) } else { 16 * (op_sel & 1) };
            let mut out = Wide::ZERO;
            for l in lanes_of(o.write) {
                let scale = scaled.then(|| (o.src[1].v[l], o.src[1].u[l]));
                for i in 0..2 {
                    let code = part(&o.src[0], l, from + i * fields.bits, fields.bits);
                    let (v, u) = decode(fields, element, code, scale);
                    out.v[l] |= v << (i * element.bits());
                    out.u[l] |= u << (i * element.bits());
                }
            }
            cx.wave.set_wide(&args[0], 2 * element.bits(), &out, o.write)
        }
        Form::Pack32 | Form::PackTwice16 => {
            let sources = if form == Form::Pack32 { 1 } else { 2 };
            let scale = cx.wave.wide(&args[1 + sources], 32, true)?;
            let mut elements = vec![];
            for arg in &args[1..=sources] {
                elements.push(registers(cx, arg, 32 / sources as u32 * element.bits() / 32)?);
            }
            let write = cx.wave.exec();
            let mut out = vec![Lanes::ZERO; 6];
            for l in lanes_of(write) {
                for i in 0..32 {
                    let (list, at) = if sources == 1 { (0, i) } else { (i % 2, i / 2) };
                    let bits = at as u32 * element.bits();
                    let (word, shift) = ((bits / 32) as usize, bits % 32);
                    let source = &elements[list][word];
                    let mask = u64::MAX >> (64 - element.bits());
                    let taken = (u64::from(source.v[l]) >> shift & mask, u64::from(source.u[l]) >> shift & mask);
                    let (v, u) = encode(fields, element, taken, Some((scale.v[l], scale.u[l])));
                    put(&mut out, l, i as u32 * fields.bits, v, u);
                }
            }
            set_registers(cx, &args[0], &out, write)
        }
        Form::Unpack32 => {
            let scale = cx.wave.wide(&args[2], 32, true)?;
            let codes = registers(cx, &args[1], 6)?;
            let write = cx.wave.exec();
            let mut out = vec![Lanes::ZERO; element.bits() as usize];
            for l in lanes_of(write) {
                for i in 0..32 {
                    let code = taken(&codes, l, i * fields.bits, fields.bits);
                    let (v, u) = decode(fields, element, code, Some((scale.v[l], scale.u[l])));
                    put(&mut out, l, i * element.bits(), v, u);
                }
            }
            set_registers(cx, &args[0], &out, write)
        }
    }
}

/// Two codes in the bits of a register from `at` on; its other bits stay.
fn insert(
    cx: &mut Context<'_, '_>,
    dst: &Arg,
    o: &Operands,
    at: u32,
    bits: u32,
    codes: impl Fn(usize) -> [(u64, u64); 2],
) -> Result<(), Fault> {
    let mut out = cx.wave.wide(dst, 32, false)?;
    let mask = (u64::MAX >> (64 - 2 * bits)) << at;
    for l in lanes_of(o.write) {
        let [low, high] = codes(l);
        out.v[l] = out.v[l] & !mask | (low.0 | high.0 << bits) << at;
        out.u[l] = out.u[l] & !mask | (low.1 | high.1 << bits) << at;
    }
    cx.wave.set_wide(dst, 32, &out, o.write)
}

/// The registers of a wide operand.
fn registers(cx: &mut Context<'_, '_>, arg: &Arg, n: u32) -> Result<Vec<Lanes>, Fault> {
    if arg.neg || arg.abs || matches!(arg.kind, Kind::S { .. }) {
        return unsupported("modifiers and scalar registers on a wide operand");
    }
    let (accumulator, first, count) = vector_range(arg)?;
    if u32::from(count) != n {
        return Err(ErrorKind::Decode(format!("{count} registers where {n} are wanted")).into());
    }
    (first..first + count).map(|r| cx.wave.vector(accumulator, r).cloned()).collect()
}

/// Writes the lanes of `write` of a wide destination.
fn set_registers(cx: &mut Context<'_, '_>, arg: &Arg, values: &[Lanes], write: u64) -> Result<(), Fault> {
    let (accumulator, first, count) = vector_range(arg)?;
    if usize::from(count) != values.len() {
        return Err(ErrorKind::Decode(format!("{count} registers where {} are wanted", values.len())).into());
    }
    for (r, value) in (first..).zip(values) {
        let to = cx.wave.vector_mut(accumulator, r)?;
        for l in lanes_of(write) {
            (to.v[l], to.u[l]) = (value.v[l], value.u[l]);
        }
    }
    Ok(())
}

/// Bits of a lane's registers from `at` on.
fn taken(registers: &[Lanes], lane: usize, at: u32, bits: u32) -> (u64, u64) {
    let (word, shift) = ((at / 32) as usize, at % 32);
    let both = |of: fn(&Lanes) -> &[u32; LANES]| {
        let high = registers.get(word + 1).map_or(0, |r| u64::from(of(r)[lane]));
        (u64::from(of(&registers[word])[lane]) | high << 32) >> shift & (u64::MAX >> (64 - bits))
    };
    (both(|r| &r.v), both(|r| &r.u))
}

/// Sets bits of a lane's registers, zero so far, from `at` on.
fn put(registers: &mut [Lanes], lane: usize, at: u32, v: u64, u: u64) {
    let (word, shift) = ((at / 32) as usize, at % 32);
    for (i, part) in [0, 32].into_iter().enumerate() {
        let (v, u) = ((v << shift >> part) as u32, (u << shift >> part) as u32);
        if v | u != 0 {
            registers[word + i].v[lane] |= v;
            registers[word + i].u[lane] |= u;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code of a format, alone and between its neighbours.
    fn check(format: Format, fnuz: bool) {
        let fields = format.fields(fnuz);
        let codes = 0..1u16 << fields.bits;
        for code in codes.map(|c| c as u8) {
            let x = fields.number(code);
            if x.is_nan() {
                continue;
            }
            assert_eq!(fields.code(x), code, "{format:?} {code:#x} {x}");
            // Halfway to the next one lies the even one.
            let next = fields.number(code.wrapping_add(1));
            if (next.is_sign_negative() == x.is_sign_negative()) && next.is_finite() && next.abs() > x.abs() {
                let even = code + (code & 1);
                assert_eq!(fields.code((x + next) / 2.0), even, "{format:?} {code:#x}");
                let above = f64::from_bits(((x + next) / 2.0).to_bits() + 1);
                assert_eq!(fields.code(above), code + 1, "{format:?} {code:#x}");
            }
        }
    }

    #[test]
    fn codes_come_back_and_ties_go_to_even_ones() {
        for format in [Fp8, Bf8, Fp6, Bf6, Fp4] {
            check(format, false);
        }
        check(Fp8, true);
        check(Bf8, true);
    }

    #[test]
    fn what_is_no_number_of_the_format() {
        let of = |format: Format, fnuz, x| format.fields(fnuz).code(x);
        let negative = -f64::NAN.copysign(1.0);
        assert_eq!(
            [464.0, 465.0, f64::INFINITY, f64::NAN, negative].map(|x| of(Fp8, false, x)),
            [0x7E, 0x7F, 0x7F, 0x7F, 0xFF]
        );
        assert_eq!(
            [61439.0, 61440.0, f64::NEG_INFINITY, f64::NAN].map(|x| of(Bf8, false, x)),
            [0x7B, 0x7C, 0xFC, 0x7E]
        );
        assert_eq!(
            [247.0, 248.0, f64::INFINITY, f64::NAN, -0.0].map(|x| of(Fp8, true, x)),
            [0x7F, 0x80, 0x80, 0x80, 0]
        );
        assert_eq!([100.0, f64::NEG_INFINITY, f64::NAN, negative].map(|x| of(Fp4, false, x)), [7, 15, 7, 15]);
        assert!(Fp8.fields(true).number(0x80).is_nan() && Bf8.fields(false).number(0x7D).is_nan());
        assert_eq!(Bf8.fields(false).number(0xFC), f64::NEG_INFINITY);
    }
}
