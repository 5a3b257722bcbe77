//! What every operation has in common: a definition that names it, says what it means, and knows its parts.
//!
//! An operation is declared once, with its documentation, by one of the macros here. The enum, the printed form, the
//! parser, the lists of operands and regions and the op reference all follow from that declaration.

use super::types::Class;

/// How results on the targets relate to the CPU device's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// The same bits everywhere; a NaN that arithmetic made is a NaN everywhere, with bits of its own.
    Bits,
    /// Within this bound of the exact value everywhere; `cpu` and the targets may differ within it.
    Bound(&'static str),
    /// No result to compare, or one that depends on timing.
    None,
}

/// Fast-math family of an operation on floats: the unit in which a kernel gives licence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Sums, products, quotients, negation, fma.
    Arith,
    /// Larger and smaller of two.
    Extrema,
    /// Roots, powers, exponentials, logarithms, trigonometry.
    Math,
    /// Comparisons and selections.
    Compare,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Arith, Self::Extrema, Self::Math, Self::Compare];

    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arith => "arith",
            Self::Extrema => "extrema",
            Self::Math => "math",
            Self::Compare => "compare",
        }
    }
}

/// Definition of an operation.
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// Mnemonic of the printed form, which is also the name of the builder's method unless `builder` says otherwise.
    pub name: &'static str,
    /// How an author writes it in Rust.
    pub builder: &'static str,
    /// What fx, bo or rocdl call it; empty if they have no such operation.
    pub peer: &'static str,
    /// Element types it is defined on (of its first operand, or of its result if it has none).
    pub on: Class,
    /// Operands and results, for a reader.
    pub signature: &'static str,
    /// Exact meaning: the lines of its documentation.
    pub meaning: &'static [&'static str],
    /// Its fast-math family, if it has one.
    pub family: Option<Family>,
    /// How targets agree.
    pub agreement: Agreement,
}

/// Declares an enum of operations that share operands and result: a family of mnemonics of one [`super::Op`] variant.
macro_rules! mnemonics {
    ($(#[$meta:meta])* $vis:vis enum $name:ident: $signature:literal {
        $($(#[doc = $doc:literal])+ $variant:ident = $text:literal, $builder:literal, $peer:literal, $on:expr, $family:expr, $agree:expr;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        $vis enum $name {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl $name {
            /// Every one, in the order in which they are declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            const DEFS: &'static [OpDef] = &[$(OpDef {
                name: $text,
                builder: $builder,
                peer: $peer,
                on: $on,
                signature: $signature,
                meaning: &[$($doc),+],
                family: $family,
                agreement: $agree,
            }),*];

            /// Its definition.
            pub const fn def(self) -> &'static OpDef {
                &Self::DEFS[self as usize]
            }

            /// Its mnemonic.
            pub const fn name(self) -> &'static str {
                self.def().name
            }

            /// The one with this mnemonic.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|o| o.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Declares a small enum of an attribute's values with their printed names; the first is the default.
macro_rules! attribute {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $(#[doc = $first_doc:literal])+ $first:ident = $first_text:literal,
        $($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
        $vis enum $name {
            #[default]
            $(#[doc = $first_doc])+ $first,
            $($(#[doc = $doc])+ $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[Self::$first $(, Self::$variant)*];

            /// As printed.
            pub const fn name(self) -> &'static str {
                match self {
                    Self::$first => $first_text,
                    $(Self::$variant => $text,)*
                }
            }

            /// The value with this printed name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|o| o.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Declares the operations: enum, operands, regions, fields and definitions.
macro_rules! ops {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $(
            $(#[doc = $doc:literal])+
            $variant:ident
                $(( $($tuple:ident: $tuple_ty:ty),+ ))?
                $({ $($(#[doc = $field_doc:literal])+ $field:ident: $field_ty:ty,)+ })?
                = $text:literal, $builder:literal, $peer:literal, $on:expr, $signature:literal, $agree:expr;
        )*
    }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        $vis enum $name {
            $($(#[doc = $doc])+ $variant $(( $($tuple_ty),+ ))? $({ $($(#[doc = $field_doc])+ $field: $field_ty),+ })?,)*
        }

        impl $name {
            /// Operands in order, without those used inside nested blocks.
            pub fn operands(&self) -> Vec<Value> {
                let mut out = vec![];
                match self {
                    $(Self::$variant $(( $($tuple),+ ))? $({ $($field),+ })? => {
                        $($($tuple.values(&mut |v| out.push(v));)+)?
                        $($($field.values(&mut |v| out.push(v));)+)?
                    })*
                }
                out
            }

            /// Calls `f` on every operand, in the order of [`Self::operands`].
            pub fn operands_mut(&mut self, mut f: impl FnMut(&mut Value)) {
                match self {
                    $(Self::$variant $(( $($tuple),+ ))? $({ $($field),+ })? => {
                        $($($tuple.values_mut(&mut f);)+)?
                        $($($field.values_mut(&mut f);)+)?
                    })*
                }
                let _ = &mut f;
            }

            /// Nested blocks in order.
            pub fn blocks(&self) -> Vec<&Block> {
                let mut out = vec![];
                match self {
                    $(Self::$variant $(( $($tuple),+ ))? $({ $($field),+ })? => {
                        $($(out.extend($tuple.block());)+)?
                        $($(out.extend($field.block());)+)?
                    })*
                }
                out
            }

            /// Nested blocks in order.
            pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
                let mut out = vec![];
                match self {
                    $(Self::$variant $(( $($tuple),+ ))? $({ $($field),+ })? => {
                        $($(out.extend($tuple.block_mut());)+)?
                        $($(out.extend($field.block_mut());)+)?
                    })*
                }
                out
            }

            /// Definition of its kind; operations with a family of mnemonics have one definition a mnemonic.
            pub fn def(&self) -> &'static OpDef {
                match self {
                    $(Self::$variant $(( $($tuple),+ ))? $({ $($field),+ })? => {
                        let family: Option<&'static OpDef> = None;
                        $($(let family = family.or($tuple.family_def());)+)?
                        $($(let family = family.or($field.family_def());)+)?
                        family.unwrap_or(const { &OpDef {
                            name: $text,
                            builder: $builder,
                            peer: $peer,
                            on: $on,
                            signature: $signature,
                            meaning: &[$($doc),+],
                            family: None,
                            agreement: $agree,
                        } })
                    })*
                }
            }

            /// Shows its fields, in order.
            pub(super) fn fields(&self, show: &mut dyn Show) {
                match self {
                    $(Self::$variant $(( $($tuple),+ ))? $({ $($field),+ })? => {
                        $($($tuple.show("", show);)+)?
                        $($($field.show(stringify!($field), show);)+)?
                    })*
                }
                let _ = show;
            }

            /// Reads an operation by its mnemonic; `None` if there is no such mnemonic.
            pub(super) fn read<R: Read>(mnemonic: &str, from: &mut R) -> Result<Option<Self>, R::Error> {
                $(if $text == mnemonic || ($text.is_empty() && {
                    let known = false;
                    $($(let known = known || <$tuple_ty as Part>::has_mnemonic(mnemonic);)+)?
                    $($(let known = known || <$field_ty as Part>::has_mnemonic(mnemonic);)+)?
                    known
                }) {
                    // In a frame of its own: regions nest, and one frame with the parts of every operation is large.
                    // An operation without parts reads nothing, so its closure has no use for `from`.
                    let one = |#[allow(unused_variables)] from: &mut R| Ok(Self::$variant
                        $(( $(<$tuple_ty as Part>::read("", mnemonic, from)?),+ ))?
                        $({ $($field: <$field_ty as Part>::read(stringify!($field), mnemonic, from)?),+ })?
                    );
                    return apart(one, from).map(Some);
                })*
                Ok(None)
            }

            /// Definitions of every operation that has a mnemonic of its own.
            const OWN_DEFS: &'static [OpDef] = &[$(OpDef {
                name: $text,
                builder: $builder,
                peer: $peer,
                on: $on,
                signature: $signature,
                meaning: &[$($doc),+],
                family: None,
                agreement: $agree,
            }),*];
        }
    };
}

/// Calls a function that keeps its own stack frame.
#[inline(never)]
pub(super) fn apart<R, T, E>(f: impl FnOnce(&mut R) -> Result<T, E>, from: &mut R) -> Result<T, E> {
    f(from)
}

pub(super) use {attribute, mnemonics, ops};
