//! Strided views of device memory, and what is checked of them.

use half::bf16;
use lathe_runtime::DeviceBuffer;

use super::ArgsError;

/// A view of device memory: from element `first` of `buffer`, with so many elements from one index to the next along each of `N`
/// dimensions.
pub struct View<'a, T, const N: usize> {
    /// What it is of.
    pub buffer: &'a DeviceBuffer<T>,
    /// Its first element.
    pub first: u64,
    /// Elements from one index to the next, outermost dimension first.
    pub strides: [u64; N],
}

impl<T, const N: usize> Clone for View<'_, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for View<'_, T, N> {}

impl<'a, T, const N: usize> View<'a, T, N> {
    /// All of a buffer that is dense in these extents; the first is not needed.
    pub fn dense(buffer: &'a DeviceBuffer<T>, inner: [u64; N]) -> Self {
        let mut strides = [1u64; N];
        for i in (1..N).rev() {
            strides[i - 1] = strides[i].saturating_mul(inner[i]);
        }
        Self { buffer, first: 0, strides }
    }
}

impl<T, const N: usize> View<'_, T, N> {
    pub(super) fn address(&self) -> u64 {
        // Where it does not fit, no extents do.
        self.buffer.address().saturating_add(self.first.saturating_mul(size_of::<T>() as u64))
    }
}

/// A view that is being checked.
pub(super) struct Checked<'a, T, const N: usize> {
    name: &'static str,
    view: View<'a, T, N>,
}

impl<'a, T, const N: usize> Checked<'a, T, N> {
    /// It must lie on the device of `core`, and elsewhere.
    pub(super) fn new(name: &'static str, view: View<'a, T, N>, core: &DeviceBuffer<bf16>) -> Result<Self, ArgsError> {
        let (device, other) = (view.buffer.device(), core.device());
        if device.id() != other.id() {
            return Err(ArgsError::OtherDevice { name, device: device.name(), other: other.name() });
        }
        if view.buffer.address() == core.address() && !core.is_empty() {
            return Err(ArgsError::Overlap { name });
        }
        Ok(Self { name, view })
    }

    pub(super) fn dense_rows(self) -> Result<Self, ArgsError> {
        match self.view.strides[N - 1] {
            1 => Ok(self),
            stride => Err(ArgsError::LastStride { name: self.name, stride }),
        }
    }

    /// Its rows must begin at multiples of 16 bytes.
    pub(super) fn aligned(self) -> Result<Self, ArgsError> {
        const NAMES: [&str; 3] =
            ["the stride of dimension 0", "the stride of dimension 1", "the stride of dimension 2"];
        let strides = self.view.strides[..N - 1].iter().map(|stride| stride.saturating_mul(size_of::<T>() as u64));
        let all = std::iter::once(("the address", self.view.address())).chain(NAMES.into_iter().zip(strides));
        for (what, bytes) in all {
            if !bytes.is_multiple_of(16) {
                return Err(ArgsError::Misaligned { name: self.name, what, bytes });
            }
        }
        Ok(self)
    }

    /// Its strides, of which none may be larger than `most`; its buffer must hold such extents.
    pub(super) fn strides(&self, extents: [u64; N], most: [u32; N]) -> Result<[u32; N], ArgsError> {
        let name = self.name;
        let mut strides = [0; N];
        let mut last = self.view.first;
        for (dimension, (stride, extent)) in self.view.strides.into_iter().zip(extents).enumerate() {
            let most = u64::from(most[dimension]);
            if stride > most {
                return Err(ArgsError::TooFar { name, dimension, stride, most });
            }
            strides[dimension] = stride as u32;
            last = last.saturating_add(stride.saturating_mul(extent.saturating_sub(1)));
        }
        let len = self.view.buffer.len() as u64;
        if last >= len && extents.iter().all(|n| *n > 0) {
            return Err(ArgsError::Short { name, end: last.saturating_add(1), len });
        }
        Ok(strides)
    }

    /// Its strides, which must be `wanted`: split after split lies dense behind it.
    pub(super) fn dense_splits(&self, wanted: [u64; N], splits: u32, tokens: u32) -> Result<[u32; N], ArgsError> {
        let name = self.name;
        for (dimension, (stride, wanted)) in self.view.strides.into_iter().zip(wanted).enumerate() {
            if stride != wanted {
                return Err(ArgsError::NotDense { name, dimension, stride, wanted });
            }
        }
        let elements = (u64::from(splits) * u64::from(tokens)).saturating_mul(wanted[0]);
        let (end, len) = (self.view.first.saturating_add(elements), self.view.buffer.len() as u64);
        if end > len {
            return Err(ArgsError::Short { name, end, len });
        }
        Ok(wanted.map(|stride| stride as u32))
    }
}
