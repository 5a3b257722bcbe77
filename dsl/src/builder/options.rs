//! Options of buffer accesses.

use super::element::Data;
use super::value::{Operand, V};
use crate::ir::{Cache, Coherence};

impl Cache {
    /// Any cache may serve the access.
    pub const OWN: Self = Self { coherence: Coherence::Own, nontemporal: false };
    /// Visible to the device (`CM_DEV`).
    pub const DEV: Self = Self { coherence: Coherence::Device, nontemporal: false };
    /// Visible to all devices and the host (`CM_SYS`).
    pub const SYS: Self = Self { coherence: Coherence::System, nontemporal: false };
    /// Not to be kept in caches; a hint (`CM_NT`).
    pub const NT: Self = Self { coherence: Coherence::Own, nontemporal: true };

    /// Also not to be kept in caches.
    #[must_use]
    pub const fn nontemporal(self) -> Self {
        Self { nontemporal: true, ..self }
    }
}

/// Options of [`super::Builder::buffer_load_with`]. A mask comes with the value of the lanes that it keeps from loading.
pub struct LoadOptions<'k, D> {
    pub(super) masked: Option<(V<'k, bool>, V<'k, D>)>,
    pub(super) scalar: Option<V<'k, u32>>,
    pub(super) cache: Cache,
}

impl<D> Clone for LoadOptions<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for LoadOptions<'_, D> {}

impl<D> Default for LoadOptions<'_, D> {
    fn default() -> Self {
        Self { masked: None, scalar: None, cache: Cache::OWN }
    }
}

impl<'k, D: Data> LoadOptions<'k, D> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where `mask` is false nothing is accessed and the result is `fill`.
    #[must_use]
    #[track_caller]
    pub fn mask(self, mask: V<'k, bool>, fill: impl Operand<'k, D>) -> Self {
        Self { masked: Some((mask, fill.value(mask.k))), ..self }
    }
}

/// Options of [`super::Builder::buffer_store_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreOptions<'k> {
    pub(super) mask: Option<V<'k, bool>>,
    pub(super) scalar: Option<V<'k, u32>>,
    pub(super) cache: Cache,
}

impl<'k> StoreOptions<'k> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where `mask` is false nothing is stored.
    #[must_use]
    pub fn mask(self, mask: V<'k, bool>) -> Self {
        Self { mask: Some(mask), ..self }
    }
}

/// Options of [`super::Builder::buffer_atomic_with`] and [`super::Builder::buffer_atomic_cas_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AtomicOptions<'k> {
    pub(super) mask: Option<V<'k, bool>>,
    pub(super) scalar: Option<V<'k, u32>>,
    pub(super) nontemporal: bool,
}

impl<'k> AtomicOptions<'k> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where `mask` is false nothing happens and the result is 0.
    #[must_use]
    pub fn mask(self, mask: V<'k, bool>) -> Self {
        Self { mask: Some(mask), ..self }
    }

    /// Bytes to add to the place, the same in all lanes of a wave (bo `soffset_bytes`).
    #[must_use]
    pub fn soffset(self, bytes: V<'k, u32>) -> Self {
        Self { scalar: Some(bytes), ..self }
    }

    /// Not to be kept in caches; a hint.
    #[must_use]
    pub fn nontemporal(self) -> Self {
        Self { nontemporal: true, ..self }
    }
}

/// Options of [`super::Builder::copy_to_lds_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyOptions<'k> {
    pub(super) scalar: Option<V<'k, u32>>,
    pub(super) cache: Cache,
}

impl CopyOptions<'_> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }
}

macro_rules! common_options {
    ($($name:ty $(: $d:ident)?;)*) => {$(
        impl<'k $(, $d: Data)?> $name {
            /// Bytes to add to the place, the same in all lanes of a wave (bo `soffset_bytes`).
            #[must_use]
            pub fn soffset(self, bytes: V<'k, u32>) -> Self {
                Self { scalar: Some(bytes), ..self }
            }

            /// Cache behaviour.
            #[must_use]
            pub fn cache(self, cache: Cache) -> Self {
                Self { cache, ..self }
            }
        }
    )*};
}

common_options! {
    LoadOptions<'k, D>: D;
    StoreOptions<'k>;
    CopyOptions<'k>;
}
