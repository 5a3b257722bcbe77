//! Errors of tracing and verification.

use std::fmt;

use crate::ir::Location;

/// A kernel that is refused: what is wrong, where the author wrote it, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The author's call, where one is to blame.
    pub location: Option<Location>,
    /// What was given and what is allowed.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        located(f, self.location, &self.message)
    }
}

/// Something about an accepted kernel that its author should know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// The author's call that it is about, where there is one.
    pub location: Option<Location>,
    /// What was found, and what to do.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        located(f, self.location, &self.message)
    }
}

fn located(f: &mut fmt::Formatter<'_>, location: Option<Location>, message: &str) -> fmt::Result {
    if let Some(location) = location {
        write!(f, "{location}: ")?;
    }
    f.write_str(message)
}

/// A build-key value that is not allowed: what was given and what is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No such field.
    #[error("`{kernel}` has no key field `{field}`; its key fields: {known}")]
    UnknownField {
        /// Kernel name.
        kernel: &'static str,
        /// What was given.
        field: String,
        /// The fields, comma separated.
        known: String,
    },
    /// The field's value is not allowed.
    #[error("{field}={value} is not allowed for `{kernel}`: {field} must be {allowed}")]
    BadValue {
        /// Kernel name.
        kernel: &'static str,
        /// Field name.
        field: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The field is set more than once.
    #[error("{field} is set twice for `{kernel}`")]
    SetTwice {
        /// Kernel name.
        kernel: &'static str,
        /// Field name.
        field: &'static str,
    },
    /// The values are allowed one by one, but not together.
    #[error("key {key} is not allowed for `{kernel}`: {reason}")]
    BadKey {
        /// Kernel name.
        kernel: &'static str,
        /// The key, as `field=value` pairs.
        key: String,
        /// What is wrong and what would be right.
        reason: String,
    },
}

/// Why a build key did not become a kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The build key's values are not allowed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The traced kernel is wrong.
    #[error("kernel `{kernel}` is refused: {refusal}")]
    Refused {
        /// Kernel name.
        kernel: String,
        /// The first thing wrong with it.
        refusal: Box<Refusal>,
    },
}
