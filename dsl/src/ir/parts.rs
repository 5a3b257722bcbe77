//! The kinds of things that an operation is made of, each with its printed form in both directions.

use super::def::OpDef;
use super::op::{
    AtomicKind, AtomicOp, Axis, BinaryOp, Bits, ButterflyOp, Cache, Coherence, Memory, NativeCode, NativeForm,
    OffsetUnit, Order, Predicate, ReduceOp, Scope, ShuffleOp, UnaryOp, Unroll,
};
use super::{Block, Value};
use crate::mma::{Fragments, MmaShape, MmaType};
use crate::numerics::{Narrow, Overflow};

/// Takes the parts of an operation as they are printed: `mnemonic POSITIONAL, … key=value … { region } …`.
pub trait Show {
    /// A positional operand.
    fn value(&mut self, v: Value);
    /// A positional list of operands.
    fn list(&mut self, v: &[Value]);
    /// A positional word or number.
    fn word(&mut self, text: String);
    /// The bits of a constant, to be written as the result's type wants.
    fn constant(&mut self, bits: Bits);
    /// An attribute.
    fn keyed(&mut self, key: &str, text: String);
    /// A region.
    fn region(&mut self, block: &Block);
}

/// Gives the parts of an operation as they are read, in the order in which they are declared: positional ones first, then
/// attributes, then regions.
pub trait Read {
    /// What goes wrong.
    type Error;
    /// A positional operand.
    fn value(&mut self) -> Result<Value, Self::Error>;
    /// A positional list of operands.
    fn list(&mut self) -> Result<Vec<Value>, Self::Error>;
    /// A positional word or number; `parse` says what it is, or `None`; `wanted` is for the message.
    fn word<T>(&mut self, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Self::Error>;
    /// The bits of a constant of the result's type.
    fn constant(&mut self) -> Result<Bits, Self::Error>;
    /// The value of attribute `key` if there is one; quoted text without its quotes. The attributes that follow a `form`
    /// belong to it.
    fn keyed<T>(
        &mut self,
        key: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Self::Error>;
    /// An operand as the value of attribute `key`, if there is one.
    fn keyed_value(&mut self, key: &str) -> Result<Option<Value>, Self::Error>;
    /// A region.
    fn region(&mut self) -> Result<Block, Self::Error>;
    /// Complains about the place that would be read next.
    fn error(&self, wanted: String) -> Self::Error;
}

/// A field of an operation. `key` is its name; fields of tuple-like operations have none and are positional.
pub(super) trait Part: Sized {
    /// Calls `f` on every operand.
    fn values(&self, _f: &mut impl FnMut(Value)) {}
    /// Calls `f` on every operand.
    fn values_mut(&mut self, _f: &mut impl FnMut(&mut Value)) {}
    /// The region, if it is one.
    fn block(&self) -> Option<&Block> {
        None
    }
    /// The region, if it is one.
    fn block_mut(&mut self) -> Option<&mut Block> {
        None
    }
    /// The definition that a mnemonic of a family has.
    fn family_def(&self) -> Option<&'static OpDef> {
        None
    }
    /// Whether `mnemonic` is one of this family's.
    fn has_mnemonic(_mnemonic: &str) -> bool {
        false
    }
    /// Prints it.
    fn show(&self, key: &str, show: &mut dyn Show);
    /// Reads it.
    fn read<R: Read>(key: &str, mnemonic: &str, from: &mut R) -> Result<Self, R::Error>;
}

impl Part for Value {
    fn values(&self, f: &mut impl FnMut(Value)) {
        f(*self);
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        f(self);
    }
    fn show(&self, _: &str, show: &mut dyn Show) {
        show.value(*self);
    }
    fn read<R: Read>(_: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        from.value()
    }
}

impl Part for Vec<Value> {
    fn values(&self, f: &mut impl FnMut(Value)) {
        self.iter().copied().for_each(f);
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        self.iter_mut().for_each(f);
    }
    fn show(&self, _: &str, show: &mut dyn Show) {
        show.list(self);
    }
    fn read<R: Read>(_: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        from.list()
    }
}

impl Part for Option<Value> {
    fn values(&self, f: &mut impl FnMut(Value)) {
        self.iter().copied().for_each(f);
    }
    fn values_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        self.iter_mut().for_each(f);
    }
    fn show(&self, key: &str, show: &mut dyn Show) {
        if let Some(v) = self {
            show.keyed(key, v.to_string());
        }
    }
    fn read<R: Read>(key: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        from.keyed_value(key)
    }
}

impl Part for Block {
    fn block(&self) -> Option<&Block> {
        Some(self)
    }
    fn block_mut(&mut self) -> Option<&mut Block> {
        Some(self)
    }
    fn show(&self, _: &str, show: &mut dyn Show) {
        show.region(self);
    }
    fn read<R: Read>(_: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        from.region()
    }
}

impl Part for Bits {
    fn show(&self, _: &str, show: &mut dyn Show) {
        show.constant(*self);
    }
    fn read<R: Read>(_: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        from.constant()
    }
}

/// A number in decimal, or in hexadecimal behind `0x`.
fn number(text: &str) -> Option<u32> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    u32::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}

impl Part for u32 {
    fn show(&self, key: &str, show: &mut dyn Show) {
        if key.is_empty() { show.word(self.to_string()) } else { show.keyed(key, self.to_string()) }
    }
    fn read<R: Read>(key: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        if key.is_empty() {
            return from.word("a number", number);
        }
        match from.keyed(key, "a number", number)? {
            Some(n) => Ok(n),
            None => Err(from.error(format!("`{key}=` with a number"))),
        }
    }
}

impl Part for Option<u32> {
    fn show(&self, key: &str, show: &mut dyn Show) {
        if let Some(n) = self {
            show.keyed(key, n.to_string());
        }
    }
    fn read<R: Read>(key: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        from.keyed(key, "a number", number)
    }
}

impl Part for Vec<u32> {
    fn show(&self, key: &str, show: &mut dyn Show) {
        let numbers: Vec<String> = self.iter().map(u32::to_string).collect();
        show.keyed(key, format!("\"{}\"", numbers.join(" ")));
    }
    fn read<R: Read>(key: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        let numbers = |t: &str| t.split_ascii_whitespace().map(number).collect();
        Ok(from.keyed(key, "numbers in quotes, separated by spaces", numbers)?.unwrap_or_default())
    }
}

impl Part for bool {
    fn show(&self, key: &str, show: &mut dyn Show) {
        if *self {
            show.keyed(key, "true".to_owned());
        }
    }
    fn read<R: Read>(key: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        Ok(from.keyed(key, "true or false", |t| t.parse().ok())?.unwrap_or(false))
    }
}

macro_rules! mnemonic_part {
    ($($t:ty),*) => {$(
        impl Part for $t {
            fn family_def(&self) -> Option<&'static OpDef> {
                Some(self.def())
            }
            fn has_mnemonic(mnemonic: &str) -> bool {
                Self::named(mnemonic).is_some()
            }
            fn show(&self, _: &str, _: &mut dyn Show) {}
            fn read<R: Read>(_: &str, mnemonic: &str, from: &mut R) -> Result<Self, R::Error> {
                Self::named(mnemonic).ok_or_else(|| from.error(format!("an operation instead of `{mnemonic}`")))
            }
        }
    )*};
}

mnemonic_part!(UnaryOp, BinaryOp, Predicate, ReduceOp, ButterflyOp, ShuffleOp, AtomicOp);

macro_rules! attribute_part {
    ($($t:ty),*) => {$(
        impl Part for $t {
            fn show(&self, key: &str, show: &mut dyn Show) {
                if key.is_empty() {
                    show.word(self.name().to_owned());
                } else if *self != Self::default() {
                    show.keyed(key, self.name().to_owned());
                }
            }
            fn read<R: Read>(key: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
                let names: Vec<&str> = Self::ALL.iter().map(|v| v.name()).collect();
                let wanted = format!("one of {}", names.join(", "));
                if key.is_empty() {
                    return from.word(&wanted, Self::named);
                }
                Ok(from.keyed(key, &wanted, Self::named)?.unwrap_or_default())
            }
        }
    )*};
}

attribute_part!(Axis, OffsetUnit, Order, Scope, Unroll, Coherence, Overflow);

/// Attributes without a default: they are always printed.
macro_rules! named_part {
    ($($t:ty: $wanted:expr;)*) => {$(
        impl Part for $t {
            fn show(&self, key: &str, show: &mut dyn Show) {
                show.keyed(key, self.to_string());
            }
            fn read<R: Read>(key: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
                let wanted: String = $wanted;
                match from.keyed(key, &wanted, Self::named)? {
                    Some(value) => Ok(value),
                    None => Err(from.error(format!("`{key}=` with {wanted}"))),
                }
            }
        }
    )*};
}

fn one_of<const N: usize>(names: [&str; N]) -> String {
    format!("one of {}", names.join(", "))
}

named_part! {
    Narrow: one_of(Self::ALL.map(Self::name));
    MmaType: "f16, bf16, i8 or a narrow float such as e4m3".to_owned();
    MmaShape: "extents such as m16n16k32".to_owned();
    Fragments: one_of(Self::ALL.map(Self::name));
}

impl Part for AtomicKind {
    fn show(&self, _: &str, show: &mut dyn Show) {
        show.word(self.0.name().to_owned());
    }
    fn read<R: Read>(_: &str, _: &str, from: &mut R) -> Result<Self, R::Error> {
        let names: Vec<&str> = AtomicOp::ALL.iter().map(|v| v.name()).collect();
        from.word(&format!("one of {}", names.join(", ")), AtomicOp::named).map(Self)
    }
}

impl Part for Memory {
    fn show(&self, _: &str, show: &mut dyn Show) {
        self.align.show("align", show);
        self.volatile.show("volatile", show);
        self.nontemporal.show("nontemporal", show);
        self.order.show("order", show);
        self.scope.show("scope", show);
    }
    fn read<R: Read>(_: &str, m: &str, from: &mut R) -> Result<Self, R::Error> {
        Ok(Self {
            align: Part::read("align", m, from)?,
            volatile: Part::read("volatile", m, from)?,
            nontemporal: Part::read("nontemporal", m, from)?,
            order: Part::read("order", m, from)?,
            scope: Part::read("scope", m, from)?,
        })
    }
}

impl Part for Cache {
    fn show(&self, _: &str, show: &mut dyn Show) {
        self.coherence.show("coherence", show);
        self.nontemporal.show("nontemporal", show);
    }
    fn read<R: Read>(_: &str, m: &str, from: &mut R) -> Result<Self, R::Error> {
        Ok(Self { coherence: Part::read("coherence", m, from)?, nontemporal: Part::read("nontemporal", m, from)? })
    }
}

impl Part for Vec<NativeForm> {
    fn show(&self, _: &str, show: &mut dyn Show) {
        for form in self {
            show.keyed("form", quoted(&form.target));
            match &form.code {
                NativeCode::Asm { template, constraints } => {
                    show.keyed("asm", quoted(template));
                    show.keyed("constraints", quoted(constraints));
                }
                NativeCode::Intrinsic { name } => show.keyed("intrinsic", quoted(name)),
            }
            form.effects.show("effects", show);
        }
    }
    fn read<R: Read>(_: &str, m: &str, from: &mut R) -> Result<Self, R::Error> {
        let text = |t: &str| Some(t.to_owned());
        let mut forms = vec![];
        while let Some(target) = from.keyed("form", "a target in quotes", text)? {
            let code = if let Some(template) = from.keyed("asm", "assembly in quotes", text)? {
                let constraints = from.keyed("constraints", "constraints in quotes", text)?.unwrap_or_default();
                NativeCode::Asm { template, constraints }
            } else if let Some(name) = from.keyed("intrinsic", "an intrinsic's name in quotes", text)? {
                NativeCode::Intrinsic { name }
            } else {
                return Err(from.error("`asm=` or `intrinsic=` after `form=`".to_owned()));
            };
            forms.push(NativeForm { target, code, effects: Part::read("effects", m, from)? });
        }
        Ok(forms)
    }
}

/// Text in quotes: `"`, `\` and control characters escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
