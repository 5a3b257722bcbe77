//! What the block's results depend on besides its inputs: choices that the original leaves open or that chips make differently.
//!
//! They belong in a build key (as [`code`](NanSign::code)s), in the reference's configuration and in every report of a failure.

use lathe_dsl::numerics::MmaRounding;

/// A value that an option does not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionError {
    /// No option has this name.
    #[error("unknown option `{name}`; options: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// All there are.
        known: String,
    },
    /// The option has no such value.
    #[error("option `{name}` has no value `{value}`; it is one of {known}")]
    Value {
        /// The option.
        name: &'static str,
        /// What was asked for, a name or a code.
        value: String,
        /// All there are.
        known: String,
    },
    /// The reference has the value; kernels do not.
    #[error("option `{name}`: `{value}` is for the reference alone: {why}")]
    NoKernel {
        /// The option.
        name: &'static str,
        /// The value.
        value: &'static str,
        /// Why.
        why: &'static str,
    },
}

/// The enums of the options: a value's name is its text, its code its place in the list, 0 the default.
macro_rules! choices {
    ($($(#[$meta:meta])* $name:ident = $option:literal { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Name of the option.
            pub const OPTION: &'static str = $option;
            /// Every value, the default first.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Its number in a build key; the default's is 0.
            pub const fn code(self) -> u32 {
                self as u32
            }

            /// The value with this name.
            ///
            /// # Errors
            /// There is none.
            pub fn named(name: &str) -> Result<Self, OptionError> {
                Self::ALL.iter().copied().find(|v| v.name() == name).ok_or_else(|| Self::no_value(name.to_owned()))
            }

            /// The value with this number.
            ///
            /// # Errors
            /// There is none.
            pub fn from_code(code: u32) -> Result<Self, OptionError> {
                Self::ALL.get(code as usize).copied().ok_or_else(|| Self::no_value(code.to_string()))
            }

            fn no_value(value: String) -> OptionError {
                let known = Self::ALL.iter().map(|v| v.name()).collect::<Vec<_>>().join(", ");
                OptionError::Value { name: $option, value, known }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    )+};
}

choices! {
    /// How a step of a matrix product, 32 deep, is rounded to f16.
    MmaAcc = "mma_acc" {
        /// An f32 sum of the step's products and C, rounded to f16. How the f32 sum is rounded is [`Options::mma_rounding`].
        #[default]
        F32PerK32 = "f32_per_k32",
        /// The exact sum of the step's products and C, rounded to f16 once: an ideal f16 accumulator. What the FP8 units of sm_89 and
        /// sm_120 make of their f16 form has not been measured; on sm_90 that form is `Sm90Emul`.
        NativeF16 = "native_f16",
        /// As sm_90 emulates f16 accumulators: the products of the lower 16 of k, rounded; with those of the upper 16, rounded; with C,
        /// rounded.
        Sm90Emul = "sm90_emul",
    }

    /// Roundings of the activation.
    ActRound = "act_round" {
        /// After every operation: five.
        #[default]
        Stepwise = "stepwise",
        /// Products are added by FMA: three.
        Fused = "fused",
    }

    /// The order in which a row's twelve tiles are added, before lanes exchange sums.
    ReduceTree = "reduce_tree" {
        /// `((0+2)+(4+6))+(8+10)` plus the same of odd tiles.
        #[default]
        SliceEvenOdd = "slice_even_odd",
        /// One after the other.
        Sequential = "sequential",
    }

    /// The e4m3 code of a NaN.
    NanSign = "nan_sign" {
        /// 0x7F, as sm_90 has it.
        #[default]
        Positive = "positive",
        /// 0x7F or 0xFF by the NaN's sign.
        Keep = "keep",
    }

    /// Which sub-pixel of the patch expand a warp makes.
    SubpixelOrder = "subpixel_order" {
        /// `z = 2·dy + dx`.
        #[default]
        RowMajor = "row_major",
        /// `z = dy + 2·dx`.
        ColMajor = "col_major",
    }

    /// Which skip feature stands for one outside of the image.
    SkipBorder = "skip_border" {
        /// Reflected without repeating the edge, then clamped.
        #[default]
        Reflect101Clamp = "reflect101_clamp",
        /// The nearest one.
        Clamp = "clamp",
    }

    /// Which coarse feature stands for one outside of the image.
    CoarseBorder = "coarse_border" {
        /// Reflected without repeating the edge, then clamped.
        #[default]
        Reflect101Clamp = "reflect101_clamp",
        /// The nearest one.
        Clamp = "clamp",
    }

    /// Extents of the coarse features.
    CoarseExtent = "coarse_extent" {
        /// Half the fine ones, rounded down.
        #[default]
        Floor = "floor",
        /// Half the fine ones, rounded up.
        Ceil = "ceil",
    }

    /// Which pixel of the colour image the filter takes for one outside of it.
    TapBorder = "tap_border" {
        /// Reflected without repeating the edge.
        #[default]
        Reflect101 = "reflect101",
        /// The nearest one.
        Clamp = "clamp",
    }

    /// Which of the nine logits belongs to which tap.
    TapOrder = "tap_order" {
        /// `k = 3·row + column`.
        #[default]
        RowMajor = "row_major",
        /// `k = 3·column + row`.
        ColMajor = "col_major",
    }

    /// Filter of the colour texture.
    ColourFilter = "colour_filter" {
        /// The texel that a coordinate lies in: for targets without samplers, and where the sizes of image and texture are equal.
        #[default]
        Nearest = "nearest",
        /// Between the four texels around it, in steps of 1/256.
        Bilinear = "bilinear",
    }
}

/// All of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    /// Rounding of a product's step.
    pub mma_acc: MmaAcc,
    /// Rounding of f32 sums: the target's, not a build key's.
    pub mma_rounding: MmaRounding,
    /// Rounding of the activation.
    pub act_round: ActRound,
    /// Order of a row's sum.
    pub reduce_tree: ReduceTree,
    /// Code of a NaN.
    pub nan_sign: NanSign,
    /// Sub-pixel of a warp.
    pub subpixel_order: SubpixelOrder,
    /// Skip features outside of the image.
    pub skip_border: SkipBorder,
    /// Coarse features outside of the image.
    pub coarse_border: CoarseBorder,
    /// Extents of the coarse features.
    pub coarse_extent: CoarseExtent,
    /// Colours outside of the image.
    pub tap_border: TapBorder,
    /// Tap of a logit.
    pub tap_order: TapOrder,
    /// Filter of colours.
    pub colour_filter: ColourFilter,
}

/// Reads and writes of an option by name.
macro_rules! by_name {
    ($($field:ident: $choice:ident),+ $(,)?) => {
        impl Options {
            /// Names of all options but `mma_rounding`.
            pub const NAMES: &'static [&'static str] = &[$($choice::OPTION),+];

            /// Each option's name and value.
            pub fn values(&self) -> Vec<(&'static str, &'static str)> {
                vec![$(($choice::OPTION, self.$field.name())),+, ("mma_rounding", self.mma_rounding.name())]
            }

            /// Sets an option by name.
            ///
            /// # Errors
            /// There is no such option or value.
            pub fn set(&mut self, option: &str, value: &str) -> Result<(), OptionError> {
                match option {
                    $($choice::OPTION => self.$field = $choice::named(value)?,)+
                    "mma_rounding" => {
                        self.mma_rounding = MmaRounding::named(value).ok_or_else(|| OptionError::Value {
                            name: "mma_rounding",
                            value: value.to_owned(),
                            known: MmaRounding::ALL.map(MmaRounding::name).join(", "),
                        })?;
                    }
                    _ => {
                        let known = Self::NAMES.join(", ") + ", mma_rounding";
                        return Err(OptionError::Unknown { name: option.to_owned(), known });
                    }
                }
                Ok(())
            }

            /// Every set of options that differs from the default in one, the default first.
            pub fn each_alternative() -> Vec<Self> {
                let mut all = vec![Self::default()];
                $(all.extend($choice::ALL[1..].iter().map(|v| Self { $field: *v, ..Self::default() }));)+
                all
            }
        }
    };
}

by_name! {
    mma_acc: MmaAcc,
    act_round: ActRound,
    reduce_tree: ReduceTree,
    nan_sign: NanSign,
    subpixel_order: SubpixelOrder,
    skip_border: SkipBorder,
    coarse_border: CoarseBorder,
    coarse_extent: CoarseExtent,
    tap_border: TapBorder,
    tap_order: TapOrder,
    colour_filter: ColourFilter,
}

/// Options of a build key that has a field of its own for each of these, as codes; the others stay at their defaults.
macro_rules! of_key {
    ($key:ty { $($field:ident: $choice:ident),+ $(,)? }) => {
        impl $key {
            /// The options that the key has.
            ///
            /// # Errors
            /// A code that an option lacks.
            pub fn options(&self) -> Result<$crate::dec2::options::Options, $crate::dec2::options::OptionError> {
                Ok($crate::dec2::options::Options {
                    $($field: $crate::dec2::options::$choice::from_code(self.$field)?,)+
                    ..Default::default()
                })
            }

            /// The key with these options.
            #[must_use]
            pub fn with_options(self, options: &$crate::dec2::options::Options) -> Self {
                Self { $($field: options.$field.code(),)+ ..self }
            }
        }
    };
}
pub(crate) use of_key;

impl Options {
    /// Refuses what no kernel does.
    ///
    /// # Errors
    /// [`OptionError::NoKernel`].
    pub fn check_for_kernels(&self) -> Result<(), OptionError> {
        match self.mma_acc {
            MmaAcc::F32PerK32 | MmaAcc::Sm90Emul => Ok(()),
            MmaAcc::NativeF16 => Err(OptionError::NoKernel {
                name: MmaAcc::OPTION,
                value: self.mma_acc.name(),
                why: "no chip's products are summed exactly and rounded to f16 once; `f32_per_k32` differs from that at ties alone",
            }),
        }
    }
}

impl std::fmt::Display for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<_> = self.values().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&values.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_lead_back() {
        let all = Options::each_alternative();
        assert_eq!(all.len(), 1 + 2 + 10);
        for options in all {
            let mut again = Options::default();
            for (name, value) in options.values() {
                again.set(name, value).unwrap();
            }
            assert_eq!(again, options);
        }
        assert_eq!(MmaAcc::from_code(2), Ok(MmaAcc::Sm90Emul));
        assert_eq!((MmaAcc::default().code(), NanSign::default()), (0, NanSign::Positive));
        assert!(Options::default().to_string().contains("nan_sign=positive"));
    }

    #[test]
    fn what_there_is_not_is_told() {
        let mut options = Options::default();
        let told = |e: Result<(), OptionError>| e.unwrap_err().to_string();
        assert_eq!(
            told(options.set("nan_sign", "maybe")),
            "option `nan_sign` has no value `maybe`; it is one of positive, keep"
        );
        assert_eq!(
            told(options.set("mma_rounding", "sm_1")),
            "option `mma_rounding` has no value `sm_1`; it is one of exact, sm_90"
        );
        assert!(
            told(options.set("colour", "red")).starts_with("unknown option `colour`; options: mma_acc, act_round, ")
        );
        assert_eq!(TapOrder::from_code(2).unwrap_err().to_string(), TapOrder::named("2").unwrap_err().to_string());
        assert_eq!(options, Options::default());
    }
}
