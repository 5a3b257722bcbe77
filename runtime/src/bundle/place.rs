//! What a bundled kernel is for.

use std::fmt;
use std::str::FromStr;

use lathe_dsl::Target;

/// What an entry of a bundle runs on: a chip's machine code, or the CPU device in the shape of a chip.
///
/// ```
/// use lathe_dsl::Target;
/// use lathe_runtime::bundle::Place;
/// assert_eq!("gfx950".parse(), Ok(Place::Chip(Target::GFX950)));
/// assert_eq!("cpu:sm_90".parse(), Ok(Place::Cpu(Target::SM_90)));
/// assert_eq!("cpu".parse::<Place>().unwrap().to_string(), "cpu:gfx950");
/// assert!("gfx9".parse::<Place>().unwrap_err().to_string().contains("cpu:sm_90"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Machine code of this chip: an AMD code object, or PTX.
    Chip(Target),
    /// Kernel IR for the interpreter, traced with this chip's wave width and limits.
    Cpu(Target),
}

impl Place {
    /// The chip that kernels are traced for.
    pub fn target(self) -> Target {
        match self {
            Self::Chip(target) | Self::Cpu(target) => target,
        }
    }
}

impl From<Target> for Place {
    fn from(target: Target) -> Self {
        Self::Chip(target)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chip(target) => write!(f, "{target}"),
            Self::Cpu(target) => write!(f, "cpu:{target}"),
        }
    }
}

/// A text that names no chip and no CPU device.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown target `{0}`; known targets: {list}", list = known())]
pub struct UnknownPlace(pub String);

fn known() -> String {
    let chips = Target::all().map(|t| t.to_string());
    let cpus = Target::all().map(|t| format!("cpu:{t}"));
    chips.chain(["cpu".to_owned()]).chain(cpus).collect::<Vec<_>>().join(", ")
}

impl FromStr for Place {
    type Err = UnknownPlace;

    fn from_str(text: &str) -> Result<Self, UnknownPlace> {
        let unknown = |_| UnknownPlace(text.to_owned());
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu(Target::GFX950)),
            None => text.parse().map(Self::Chip).map_err(unknown),
            Some(("cpu", chip)) => chip.parse().map(Self::Cpu).map_err(unknown),
            Some(_) => Err(UnknownPlace(text.to_owned())),
        }
    }
}
