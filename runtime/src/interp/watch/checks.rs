//! Which checks a launch makes besides those that always are.

use std::fmt;
use std::str::FromStr;

/// Checks that cost time. What an operation leaves undefined (an access outside LDS, a division by zero, a broken `assume`,
/// …) is always reported.
///
/// As text: `all`, `none`, `default`, or names with commas between, such as `races,nan`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// Data races on LDS and on global memory.
    pub races: bool,
    /// Waits that can never end. Wrong where something outside the launch (the host, another launch) writes what a
    /// workgroup waits for.
    pub waits: bool,
    /// NaNs that arithmetic makes of operands that are none.
    pub nan: bool,
}

impl Checks {
    /// Every one.
    pub const ALL: Self = Self { races: true, waits: true, nan: true };
    /// None: the fastest way to run.
    pub const NONE: Self = Self { races: false, waits: false, nan: false };
    /// All but [`Self::nan`], which a right kernel may trip.
    pub const DEFAULT: Self = Self { nan: false, ..Self::ALL };

    /// Whether any is on.
    pub(crate) fn any(self) -> bool {
        self != Self::NONE
    }
}

impl Default for Checks {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A list of checks that names an unknown one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown check `{0}`; allowed are `all`, `none`, `default`, or some of races, waits, nan with commas between")]
pub struct UnknownCheck(String);

impl FromStr for Checks {
    type Err = UnknownCheck;

    fn from_str(text: &str) -> Result<Self, UnknownCheck> {
        match text {
            "all" => return Ok(Self::ALL),
            "none" => return Ok(Self::NONE),
            "default" => return Ok(Self::DEFAULT),
            _ => {}
        }
        let mut checks = Self::NONE;
        for name in text.split(',').map(str::trim) {
            match name {
                "races" => checks.races = true,
                "waits" => checks.waits = true,
                "nan" => checks.nan = true,
                _ => return Err(UnknownCheck(name.to_owned())),
            }
        }
        Ok(checks)
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [("races", self.races), ("waits", self.waits), ("nan", self.nan)];
        let on: Vec<&str> = names.into_iter().filter_map(|(name, on)| on.then_some(name)).collect();
        f.write_str(&if on.is_empty() { "none".to_owned() } else { on.join(",") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_have_names() {
        for (text, checks) in [
            ("all", Checks::ALL),
            ("none", Checks::NONE),
            ("default", Checks::DEFAULT),
            ("races", Checks { races: true, ..Checks::NONE }),
            ("nan, waits", Checks { races: false, ..Checks::ALL }),
        ] {
            assert_eq!(text.parse(), Ok(checks));
            assert_eq!(checks.to_string().parse(), Ok(checks));
        }
        assert_eq!(
            "races,race".parse::<Checks>().unwrap_err().to_string(),
            "unknown check `race`; allowed are `all`, `none`, `default`, or some of races, waits, nan with commas between"
        );
        assert!("".parse::<Checks>().is_err());
    }
}
