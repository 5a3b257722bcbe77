//! The arguments of `mla_post`: what the kernel is passed, and how the host makes that of tensors.

use half::bf16;
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;
use lathe_runtime::DeviceBuffer;

use super::{Inputs, MlaPost, Weights};
use crate::mla::{HEADS, LATENTS, VALUES, uv};

kernel_args! {
    /// Arguments of [`MlaPost`]. Tensors that are views are passed by address and strides, which count elements;
    /// [`MlaPost::host_args`] makes them of [`Tensors`] and checks them.
    pub struct MlaPostArgs(key: MlaPost) {
        /// Address of the attention rows: `[tokens][12][512]`, or with splits `[splits][tokens][12][512]`, dense. An empty split's
        /// must be finite.
        o: Scalar<u64>;
        /// From a token's rows to the next one's.
        o_sb: Scalar<u32>;
        /// From a head's row to the next one's.
        o_sh: Scalar<u32>;
        /// Address of the log-sum-exp (natural log) of splits, `[splits][tokens][12]`, dense; 0 without splits.
        lse: Scalar<u64>;
        /// From a token's to the next one's.
        lse_sb: Scalar<u32>;
        /// From a head's to the next one's.
        lse_sh: Scalar<u32>;
        /// Rows of the KV cache that this rank holds, `[requests]`.
        seq_lens: In<i32>[u64::from(key.requests())] align 4;
        /// First query token of each request, then their number, `[requests + 1]`.
        qsl: In<i32>[u64::from(key.requests()) + 1] align 4;
        /// Address of W_UV, `[12][128][256]`: two e2m1 codes a byte, the first in the low half.
        w_v: Scalar<u64>;
        /// From a head's codes to the next one's.
        wv_sh: Scalar<u32>;
        /// From a row's codes to the next one's.
        wv_sn: Scalar<u32>;
        /// Address of its scales, `[12][128][16]`: e8m0 codes, one for 32 elements.
        w_v_scale: Scalar<u64>;
        /// From a head's scales to the next one's.
        vs_sh: Scalar<u32>;
        /// From a row's scales to the next one's.
        vs_sn: Scalar<u32>;
        /// From a block's scale to the next one's.
        vs_sk: Scalar<u32>;
        /// What every value is multiplied by, `[tokens][12 · 128]`: a sigmoid's result, as a rule.
        gate: In<bf16>[u64::from(key.tokens) * u64::from(uv::ROW)] align 16;
        /// Gated values, `[tokens][12 · 128]`.
        core: Out<bf16>[u64::from(key.tokens) * u64::from(uv::ROW)] align 16;
    }
}

/// Most bytes from a view's first element to the last one along one of its dimensions. Two of them and a row end below 2^32.
const SPAN: u64 = MAX_BUFFER_BYTES / 2 - 4096;

/// Most bytes from a head's codes, or scales, of W_UV to the next one's; and from a row's, or a block's. All of it and twice its
/// elements stay below 2^32.
const HEAD_BYTES: u32 = 1 << 25;
const ROW_BYTES: u32 = 1 << 20;

/// The largest stride, in elements of so many bytes, of `n` rows.
fn largest_stride(n: u32, element_bytes: u64) -> u32 {
    let steps = u64::from(n.max(2) - 1);
    u32::try_from(SPAN / element_bytes / steps).unwrap_or(u32::MAX)
}

impl<'k> MlaPostArgs<Dev<'k>> {
    /// What the stages read.
    pub fn inputs(&self, k: &'k Builder<'k>, key: &MlaPost) -> Inputs<'k> {
        for address in [self.o, self.w_v] {
            k.assume(address.rem_floor(16).eq(0));
        }
        for stride in [self.o_sb, self.o_sh] {
            k.assume(stride.rem_floor(8).eq(0));
        }
        for stride in [self.wv_sh, self.wv_sn] {
            k.assume(stride.rem_floor(16).eq(0));
        }
        k.assume(self.o_sb.le(largest_stride(key.tokens, 2)));
        k.assume(self.o_sh.le(largest_stride(HEADS, 2)));
        for (head, row) in [(self.wv_sh, self.wv_sn), (self.vs_sh, self.vs_sn), (self.vs_sh, self.vs_sk)] {
            k.assume(head.le(HEAD_BYTES));
            k.assume(row.le(ROW_BYTES));
        }
        let rows = key.splits * key.tokens * HEADS;
        let (o, lse) = if key.splits > 0 {
            (k.make_buffer(self.o, rows * (LATENTS * 2)), k.make_buffer(self.lse, rows * 4))
        } else {
            (k.rsrc(self.o), k.make_buffer(self.lse, 0))
        };
        let weights = Weights {
            codes: k.rsrc(self.w_v),
            head: self.wv_sh.to(),
            row: self.wv_sn.to(),
            scales: k.rsrc(self.w_v_scale),
            scale_head: self.vs_sh,
            scale_row: self.vs_sn,
            scale_block: Some(self.vs_sk),
        };
        Inputs { o, o_strides: [self.o_sb, self.o_sh], lse, weights, gate: self.gate }
    }
}

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
        let mut strides = [1; N];
        for i in (1..N).rev() {
            strides[i - 1] = strides[i] * inner[i];
        }
        Self { buffer, first: 0, strides }
    }
}

/// What `mla_post` reads.
#[derive(Clone, Copy)]
pub struct Tensors<'a> {
    /// Attention rows, `[tokens][12][512]`; with splits, split 0 of `[splits][tokens][12][512]`.
    pub o: View<'a, bf16, 3>,
    /// Their log-sum-exp, `[tokens][12]`; with splits, split 0 of `[splits][tokens][12]`. Not read of one rank without splits.
    pub lse: Option<View<'a, f32, 2>>,
    /// Rows of the KV cache that this rank holds, `[requests]`.
    pub seq_lens: &'a DeviceBuffer<i32>,
    /// First query token of each request, then their number, `[requests + 1]`.
    pub qsl: &'a DeviceBuffer<i32>,
    /// W_UV, `[12][128][256]`: two e2m1 codes a byte.
    pub w_v: View<'a, u8, 3>,
    /// Its scales, `[12][128][16]`: e8m0 codes.
    pub w_v_scale: View<'a, u8, 3>,
    /// Gates, `[tokens][12 · 128]`.
    pub gate: &'a DeviceBuffer<bf16>,
}

/// Tensors that `mla_post` does not take. Strides count elements.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// A row is not dense.
    #[error("`{name}`: the last dimension has stride {stride}; rows must be dense")]
    LastStride {
        /// Of which tensor.
        name: &'static str,
        /// Its last stride.
        stride: u64,
    },
    /// Rows do not begin at multiples of 16 bytes.
    #[error("`{name}`: {what} is {bytes} bytes, which is no multiple of 16; rows must be aligned to 16 bytes")]
    Misaligned {
        /// Of which tensor.
        name: &'static str,
        /// The address, or a stride.
        what: &'static str,
        /// How many bytes it is.
        bytes: u64,
    },
    /// Offsets within the tensor do not fit 32 bits.
    #[error(
        "`{name}`: the stride of dimension {dimension} is {stride}, more than {most}: byte offsets would pass 32 bits"
    )]
    TooFar {
        /// Of which tensor.
        name: &'static str,
        /// Outermost is 0.
        dimension: usize,
        /// Its stride.
        stride: u64,
        /// What is allowed.
        most: u64,
    },
    /// The buffer ends before the tensor does.
    #[error("`{name}` ends at element {end} of a buffer of {len}")]
    Short {
        /// Which tensor.
        name: &'static str,
        /// Elements that the view needs.
        end: u64,
        /// Elements that there are.
        len: u64,
    },
    /// Splits must lie dense.
    #[error(
        "`{name}`: the stride of dimension {dimension} is {stride}, with splits it must be {wanted}: splits are dense"
    )]
    NotDense {
        /// Which tensor.
        name: &'static str,
        /// Outermost is 0.
        dimension: usize,
        /// Its stride.
        stride: u64,
        /// What it must be.
        wanted: u64,
    },
    /// There is no log-sum-exp.
    #[error("`lse` is missing; only one rank without splits has none")]
    NoLse,
    /// The memory is that of another device.
    #[error("`{name}` lies on {device}, `core` on {other}")]
    OtherDevice {
        /// Which tensor.
        name: &'static str,
        /// Where it lies.
        device: String,
        /// Where it should.
        other: String,
    },
    /// A tensor that is read is the one that is written.
    #[error("`{name}` overlaps `core`, which the kernel writes")]
    Overlap {
        /// Which tensor.
        name: &'static str,
    },
}

impl MlaPost {
    /// The arguments of a launch: `o` to `gate` of tensors, and `core`, `[tokens][12 · 128]`. The buffers must live until the
    /// launch is done. Extents and devices of `seq_lens`, `qsl`, `gate` and `core` are for the launch to check.
    ///
    /// # Errors
    /// What of the tensors the kernel does not take.
    pub fn host_args<'a>(
        &self,
        tensors: &Tensors<'a>,
        core: &'a DeviceBuffer<bf16>,
    ) -> Result<MlaPostArgs<Host<'a>>, ArgsError> {
        let Tensors { o, lse, seq_lens, qsl, w_v, w_v_scale, gate } = *tensors;
        let tokens = u64::from(self.tokens);
        let (heads, latents, values) = (u64::from(HEADS), u64::from(LATENTS), u64::from(VALUES));
        let blocks = latents / u64::from(crate::mla::latents::BLOCK);
        let needs_lse = self.splits > 0;
        let [lse_sb, lse_sh] = match lse {
            None if needs_lse => return Err(ArgsError::NoLse),
            Some(lse) if needs_lse => {
                Checked::new("lse", lse, core)?.dense_splits([heads, 1], self.splits, self.tokens)?
            }
            _ => [0; 2],
        };
        let rows = Checked::new("o", o, core)?.dense_rows()?.aligned()?;
        let [o_sb, o_sh] = if self.splits > 0 {
            let [o_sb, o_sh, _] = rows.dense_splits([heads * latents, latents, 1], self.splits, self.tokens)?;
            [o_sb, o_sh]
        } else {
            let most = [largest_stride(self.tokens, 2), largest_stride(HEADS, 2), 1];
            let [o_sb, o_sh, _] = rows.strides([tokens, heads, latents], most)?;
            [o_sb, o_sh]
        };
        let codes = Checked::new("w_v", w_v, core)?.dense_rows()?.aligned()?;
        let [wv_sh, wv_sn, _] = codes.strides([heads, values, latents / 2], [HEAD_BYTES, ROW_BYTES, 1])?;
        let scales = Checked::new("w_v_scale", w_v_scale, core)?;
        let [vs_sh, vs_sn, vs_sk] = scales.strides([heads, values, blocks], [HEAD_BYTES, ROW_BYTES, ROW_BYTES])?;
        Ok(MlaPostArgs {
            o: o.address(),
            o_sb,
            o_sh,
            lse: lse.filter(|_| needs_lse).map_or(0, |lse| lse.address()),
            lse_sb,
            lse_sh,
            seq_lens: seq_lens.arg(),
            qsl: qsl.arg(),
            w_v: w_v.address(),
            wv_sh,
            wv_sn,
            w_v_scale: w_v_scale.address(),
            vs_sh,
            vs_sn,
            vs_sk,
            gate: gate.arg(),
            core: core.arg(),
        })
    }
}

impl<T, const N: usize> View<'_, T, N> {
    fn address(&self) -> u64 {
        self.buffer.address() + self.first * size_of::<T>() as u64
    }
}

/// A view that is being checked.
struct Checked<'a, T, const N: usize> {
    name: &'static str,
    view: View<'a, T, N>,
}

impl<'a, T, const N: usize> Checked<'a, T, N> {
    /// It must lie on the device of `core`, and elsewhere.
    fn new(name: &'static str, view: View<'a, T, N>, core: &DeviceBuffer<bf16>) -> Result<Self, ArgsError> {
        let (device, other) = (view.buffer.device(), core.device());
        if device.id() != other.id() {
            return Err(ArgsError::OtherDevice { name, device: device.name(), other: other.name() });
        }
        if view.buffer.address() == core.address() && !core.is_empty() {
            return Err(ArgsError::Overlap { name });
        }
        Ok(Self { name, view })
    }

    fn dense_rows(self) -> Result<Self, ArgsError> {
        match self.view.strides[N - 1] {
            1 => Ok(self),
            stride => Err(ArgsError::LastStride { name: self.name, stride }),
        }
    }

    /// Its rows must begin at multiples of 16 bytes.
    fn aligned(self) -> Result<Self, ArgsError> {
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
    fn strides(&self, extents: [u64; N], most: [u32; N]) -> Result<[u32; N], ArgsError> {
        let name = self.name;
        let mut strides = [0; N];
        let mut last = self.view.first;
        for (dimension, (stride, extent)) in self.view.strides.into_iter().zip(extents).enumerate() {
            let most = u64::from(most[dimension]);
            if stride > most {
                return Err(ArgsError::TooFar { name, dimension, stride, most });
            }
            strides[dimension] = stride as u32;
            last += stride * extent.saturating_sub(1);
        }
        let len = self.view.buffer.len() as u64;
        if last >= len && extents.iter().all(|n| *n > 0) {
            return Err(ArgsError::Short { name, end: last + 1, len });
        }
        Ok(strides)
    }

    /// Its strides, which must be `wanted`: split after split lies dense behind it.
    fn dense_splits(&self, wanted: [u64; N], splits: u32, tokens: u32) -> Result<[u32; N], ArgsError> {
        let name = self.name;
        for (dimension, (stride, wanted)) in self.view.strides.into_iter().zip(wanted).enumerate() {
            if stride != wanted {
                return Err(ArgsError::NotDense { name, dimension, stride, wanted });
            }
        }
        let (end, len) =
            (self.view.first + u64::from(splits) * u64::from(tokens) * wanted[0], self.view.buffer.len() as u64);
        if end > len {
            return Err(ArgsError::Short { name, end, len });
        }
        Ok(wanted.map(|stride| stride as u32))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lathe_runtime::Engine;
    use lathe_runtime::device::Device;

    use super::*;

    /// Tensors of a batch, of which a test spoils one.
    struct Batch {
        key: MlaPost,
        device: Arc<dyn Device>,
        o: DeviceBuffer<bf16>,
        lse: DeviceBuffer<f32>,
        codes: DeviceBuffer<u8>,
        scales: DeviceBuffer<u8>,
        ints: DeviceBuffer<i32>,
        gate: DeviceBuffer<bf16>,
        core: DeviceBuffer<bf16>,
    }

    impl Batch {
        fn new(tokens: u32, splits: u32) -> Self {
            let key = MlaPost { ranks: 1, tokens, q: tokens.max(1), splits, ctas: 0 };
            let device = Engine::open("cpu", None).unwrap().device;
            let rows = (splits.max(1) * tokens * HEADS) as usize;
            Self {
                key,
                o: DeviceBuffer::from_slice(&device, &vec![bf16::ZERO; rows * LATENTS as usize]).unwrap(),
                lse: DeviceBuffer::from_slice(&device, &vec![0.0; rows]).unwrap(),
                codes: DeviceBuffer::from_slice(&device, &vec![0; (uv::ROW * LATENTS / 2) as usize]).unwrap(),
                scales: DeviceBuffer::from_slice(&device, &vec![127; (uv::ROW * LATENTS / 32) as usize]).unwrap(),
                ints: DeviceBuffer::from_slice(&device, &[0, 1]).unwrap(),
                gate: DeviceBuffer::from_slice(&device, &vec![bf16::ONE; (tokens * uv::ROW) as usize]).unwrap(),
                core: DeviceBuffer::from_slice(&device, &vec![bf16::NAN; (tokens * uv::ROW) as usize]).unwrap(),
                device,
            }
        }

        fn tensors(&self) -> Tensors<'_> {
            Tensors {
                o: View::dense(&self.o, [0, u64::from(HEADS), u64::from(LATENTS)]),
                lse: Some(View::dense(&self.lse, [0, u64::from(HEADS)])),
                seq_lens: &self.ints,
                qsl: &self.ints,
                w_v: View::dense(&self.codes, [0, u64::from(VALUES), u64::from(LATENTS / 2)]),
                w_v_scale: View::dense(&self.scales, [0, u64::from(VALUES), u64::from(LATENTS / 32)]),
                gate: &self.gate,
            }
        }

        #[track_caller]
        fn refused(&self, spoil: impl FnOnce(&mut Tensors<'_>), wanted: &str) {
            let mut tensors = self.tensors();
            spoil(&mut tensors);
            let error = self.key.host_args(&tensors, &self.core).map(drop).expect_err(wanted);
            assert_eq!(error.to_string(), wanted);
        }
    }

    #[test]
    fn dense_views_have_the_strides_of_their_extents() {
        let batch = Batch::new(3, 0);
        let Tensors { o, lse, w_v, w_v_scale, .. } = batch.tensors();
        assert_eq!((o.strides, lse.unwrap().strides), ([6144, 512, 1], [12, 1]));
        assert_eq!((w_v.strides, w_v_scale.strides), ([32768, 256, 1], [2048, 16, 1]));
        assert!(batch.key.host_args(&batch.tensors(), &batch.core).is_ok());
    }

    #[test]
    fn rows_must_be_dense_and_aligned() {
        let batch = Batch::new(2, 0);
        batch.refused(|t| t.o.strides[2] = 2, "`o`: the last dimension has stride 2; rows must be dense");
        batch.refused(|t| t.w_v.strides[2] = 0, "`w_v`: the last dimension has stride 0; rows must be dense");
        let rows = "which is no multiple of 16; rows must be aligned to 16 bytes";
        let head = format!("`o`: the stride of dimension 1 is 1032 bytes, {rows}");
        batch.refused(|t| t.o.strides[1] = 516, &head);
        let row = format!("`w_v`: the stride of dimension 1 is 264 bytes, {rows}");
        batch.refused(|t| t.w_v.strides[1] = 264, &row);
        let address = format!("`o`: the address is {} bytes, {rows}", batch.o.address() + 2);
        batch.refused(|t| t.o.first = 1, &address);
    }

    #[test]
    fn offsets_must_fit_32_bits() {
        let batch = Batch::new(2, 0);
        let far = "more than 1073739776: byte offsets would pass 32 bits";
        let far = format!(
            "`o`: the stride of dimension 0 is 1073741824, {}",
            far.replace("1073739776", &(SPAN / 2).to_string())
        );
        batch.refused(|t| t.o.strides[0] = 1 << 30, &far);
        batch.refused(
            |t| t.w_v.strides[0] = (1 << 25) + 16,
            "`w_v`: the stride of dimension 0 is 33554448, more than 33554432: byte offsets would pass 32 bits",
        );
        batch.refused(
            |t| t.w_v_scale.strides[2] = (1 << 20) + 1,
            "`w_v_scale`: the stride of dimension 2 is 1048577, more than 1048576: byte offsets would pass 32 bits",
        );
        batch.refused(
            |t| t.o.strides[1] = 1 << 40,
            &format!(
                "`o`: the stride of dimension 1 is 1099511627776, more than {}: byte offsets would pass 32 bits",
                SPAN / 2 / 11
            ),
        );
    }

    #[test]
    fn a_view_must_end_within_its_buffer() {
        let batch = Batch::new(2, 0);
        batch.refused(|t| t.o.first = 8, "`o` ends at element 12296 of a buffer of 12288");
        batch.refused(|t| t.w_v_scale.strides[0] = 2049, "`w_v_scale` ends at element 24587 of a buffer of 24576");
        let splits = Batch::new(2, 8);
        splits.refused(|t| t.o.first = 8, "`o` ends at element 98312 of a buffer of 98304");
        let lse = |t: &mut Tensors<'_>| t.lse.iter_mut().for_each(|lse| lse.first = 1);
        splits.refused(lse, "`lse` ends at element 193 of a buffer of 192");
    }

    #[test]
    fn splits_must_be_dense_and_have_their_lse() {
        let batch = Batch::new(2, 8);
        let dense = "with splits it must be 512: splits are dense";
        let head = format!("`o`: the stride of dimension 1 is 520, {dense}");
        batch.refused(|t| t.o.strides[1] = 520, &head);
        batch.refused(|t| t.lse = None, "`lse` is missing; only one rank without splits has none");
        let whole = Batch::new(2, 0);
        let tensors = Tensors { lse: None, ..whole.tensors() };
        assert_eq!(whole.key.host_args(&tensors, &whole.core).unwrap().lse, 0);
    }

    #[test]
    fn memory_must_be_of_one_device_and_not_the_output() {
        let (batch, other) = (Batch::new(2, 0), Batch::new(2, 0));
        let mut tensors = batch.tensors();
        tensors.w_v = other.tensors().w_v;
        let error = batch.key.host_args(&tensors, &batch.core).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "`w_v` lies on cpu, `core` on cpu");
        let written = DeviceBuffer::from_slice(&batch.device, &vec![bf16::ZERO; 2 * 12 * 512]).unwrap();
        let tensors = Tensors { o: View { buffer: &written, ..batch.tensors().o }, ..batch.tensors() };
        let error = batch.key.host_args(&tensors, &written).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "`o` overlaps `core`, which the kernel writes");
    }

    #[test]
    fn without_tokens_nothing_is_launched() {
        let engine = Engine::open("cpu", None).unwrap();
        let batch = Batch::new(0, 0);
        let buffer = |n| DeviceBuffer::from_slice(&engine.device, &vec![bf16::ZERO; n]).unwrap();
        let (o, gate, core) = (buffer(0), buffer(0), buffer(0));
        let (none, one) = (
            DeviceBuffer::<i32>::from_slice(&engine.device, &[]).unwrap(),
            DeviceBuffer::from_slice(&engine.device, &[0]).unwrap(),
        );
        let bytes = |n| DeviceBuffer::from_slice(&engine.device, &vec![0u8; n]).unwrap();
        let (codes, scales) = (bytes(batch.codes.len()), bytes(batch.scales.len()));
        let tensors = Tensors {
            o: View { buffer: &o, ..batch.tensors().o },
            lse: None,
            seq_lens: &none,
            qsl: &one,
            w_v: View { buffer: &codes, ..batch.tensors().w_v },
            w_v_scale: View { buffer: &scales, ..batch.tensors().w_v_scale },
            gate: &gate,
        };
        let compiled = engine.jit.get(&batch.key, engine.device.target()).unwrap();
        assert_eq!(compiled.kernel().launch.blocks(), 0);
        let args = batch.key.host_args(&tensors, &core).unwrap();
        compiled.launch::<MlaPost>(&*engine.device, &args).unwrap();
    }
}
