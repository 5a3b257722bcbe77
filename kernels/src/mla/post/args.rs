//! The arguments of `mla_post`: what the kernel is passed, and how the host makes that of tensors.

use half::bf16;
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::kernel::check_key;
use lathe_dsl::prelude::*;
use lathe_runtime::DeviceBuffer;

use super::view::Checked;
use super::{ArgsError, Exchange, Inputs, Lse, MlaPost, Seat, Step, View, Weights, bounded};
use crate::mla::message::{check_step, health_words};
use crate::mla::{HEADS, LATENTS, VALUES, uv};

kernel_args! {
    /// Arguments of [`MlaPost`]. Tensors that are views are passed by address and strides, which count elements;
    /// [`MlaPost::host_args`] makes them of [`Tensors`] and checks them.
    pub struct MlaPostArgs(key: MlaPost) {
        /// Address of the attention rows of all ranks' heads: `[tokens][ranks · 12][512]`, or with splits
        /// `[splits][tokens][12][512]`, dense. An empty split's must be finite.
        o: Scalar<u64>;
        /// From a token's rows to the next one's.
        o_sb: Scalar<u32>;
        /// From a head's row to the next one's.
        o_sh: Scalar<u32>;
        /// Address of their log-sum-exp (natural log), `[tokens][ranks · 12]`, or with splits `[splits][tokens][12]`, dense; 0 of one
        /// rank without splits.
        lse: Scalar<u64>;
        /// From a token's to the next one's.
        lse_sb: Scalar<u32>;
        /// From a head's to the next one's.
        lse_sh: Scalar<u32>;
        /// Rows of the KV cache that this rank holds, `[requests]`.
        seq_lens: In<i32>[u64::from(key.requests())] align 4;
        /// First query token of each request, then the number of those that are no padding, `[requests + 1]`.
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
        /// Addresses of all ranks' regions as this device sees them, `[ranks]`; none of one rank.
        peers: In<u64>[if key.ranks > 1 { u64::from(key.ranks) } else { 0 }] align 8;
        /// This rank.
        rank: Scalar<u32>;
        /// Slot of the step's tag, 0 to 255.
        layer: Scalar<u32>;
        /// Counts steps, `[1]`.
        epoch: In<u32>[1] align 4;
        /// Records of waits that gave up, `[ctas][8]`.
        health: InOut<u32>[health_words(key.ctas())] align 4;
        /// Not 0 after a wait gave up, `[1]`.
        alarm: InOut<u32>[1] align 4;
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
        k.assume(self.o_sh.le(largest_stride(key.heads(), 2)));
        for (head, row) in [(self.wv_sh, self.wv_sn), (self.vs_sh, self.vs_sn), (self.vs_sh, self.vs_sk)] {
            k.assume(head.le(HEAD_BYTES));
            k.assume(row.le(ROW_BYTES));
        }
        let rows = key.splits * key.tokens * HEADS;
        let (o, lse) = if key.splits > 0 {
            let lse = k.make_buffer(self.lse, rows * 4);
            (k.make_buffer(self.o, rows * (LATENTS * 2)), Lse::Splits(lse))
        } else if key.ranks > 1 {
            k.assume(self.lse_sb.le(largest_stride(key.tokens, 4)));
            k.assume(self.lse_sh.le(largest_stride(key.heads(), 4)));
            let step = Step { peers: self.peers, rank: self.rank, layer: self.layer, epoch: self.epoch };
            let exchange = Exchange::new(k, key.messages(), step, bounded(k, key.wait_us, self.health, self.alarm));
            (k.rsrc(self.o), Lse::Ranks { bits: k.rsrc(self.lse), strides: [self.lse_sb, self.lse_sh], exchange })
        } else {
            (k.rsrc(self.o), Lse::None)
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
        Inputs {
            o,
            o_strides: [self.o_sb, self.o_sh],
            lse,
            seq_lens: self.seq_lens,
            qsl: self.qsl,
            weights,
            gate: self.gate,
        }
    }
}

/// What `mla_post` reads.
#[derive(Clone, Copy)]
pub struct Tensors<'a> {
    /// Attention rows, `[tokens][ranks · 12][512]`; with splits, split 0 of `[splits][tokens][12][512]`.
    pub o: View<'a, bf16, 3>,
    /// Their log-sum-exp, `[tokens][ranks · 12]`; with splits, split 0 of `[splits][tokens][12]`. Not read of one rank without splits.
    pub lse: Option<View<'a, f32, 2>>,
    /// Rows of the KV cache that this rank holds, `[requests]`.
    pub seq_lens: &'a DeviceBuffer<i32>,
    /// First query token of each request, then the number of those that are no padding, `[requests + 1]`.
    pub qsl: &'a DeviceBuffer<i32>,
    /// W_UV, `[12][128][256]`: two e2m1 codes a byte.
    pub w_v: View<'a, u8, 3>,
    /// Its scales, `[12][128][16]`: e8m0 codes.
    pub w_v_scale: View<'a, u8, 3>,
    /// Gates, `[tokens][12 · 128]`.
    pub gate: &'a DeviceBuffer<bf16>,
}

impl MlaPost {
    /// The arguments of a launch of layer `layer`: `o` to `gate` of tensors, `core`, `[tokens][12 · 128]`, and the rest of the rank's
    /// seat. The buffers of views must live until the launch is done. Extents and devices of `seq_lens`, `qsl`, `gate` and `core`
    /// are for the launch to check.
    ///
    /// # Errors
    /// What of the tensors the kernel does not take.
    pub fn host_args<'a>(
        &self,
        tensors: &Tensors<'a>,
        core: &'a DeviceBuffer<bf16>,
        seat: &'a Seat,
        layer: u32,
    ) -> Result<MlaPostArgs<Host<'a>>, ArgsError> {
        check_key(self).map_err(|error| ArgsError::Key(error.to_string()))?;
        check_step(self.ranks, seat.rank(), layer).map_err(ArgsError::Step)?;
        seat.fits(self)?;
        let Tensors { o, lse, seq_lens, qsl, w_v, w_v_scale, gate } = *tensors;
        let tokens = u64::from(self.tokens);
        let (heads, latents, values) = (u64::from(HEADS), u64::from(LATENTS), u64::from(VALUES));
        let blocks = latents / u64::from(crate::mla::latents::BLOCK);
        let needs_lse = self.splits > 0 || self.ranks > 1;
        let [lse_sb, lse_sh] = match lse {
            None if needs_lse => return Err(ArgsError::NoLse),
            Some(lse) if self.splits > 0 => {
                Checked::new("lse", lse, core)?.dense_splits([heads, 1], self.splits, self.tokens)?
            }
            Some(lse) if needs_lse => {
                let most = [largest_stride(self.tokens, 4), largest_stride(self.heads(), 4)];
                Checked::new("lse", lse, core)?.strides([tokens, u64::from(self.heads())], most)?
            }
            _ => [0; 2],
        };
        let rows = Checked::new("o", o, core)?.dense_rows()?.aligned()?;
        let [o_sb, o_sh] = if self.splits > 0 {
            let [o_sb, o_sh, _] = rows.dense_splits([heads * latents, latents, 1], self.splits, self.tokens)?;
            [o_sb, o_sh]
        } else {
            let most = [largest_stride(self.tokens, 2), largest_stride(self.heads(), 2), 1];
            let [o_sb, o_sh, _] = rows.strides([tokens, u64::from(self.heads()), latents], most)?;
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
            peers: seat.peers(),
            rank: seat.rank(),
            layer,
            epoch: seat.epoch(),
            health: seat.health().health(),
            alarm: seat.health().alarm(),
        })
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
        seat: Seat,
    }

    impl Batch {
        fn new(tokens: u32, splits: u32) -> Self {
            let key = MlaPost { ranks: 1, tokens, q: tokens.max(1), splits, ctas: 0, wait_us: 0 };
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
                seat: Seat::alone(&device, key.ctas()).unwrap(),
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
            let error = self.key.host_args(&tensors, &self.core, &self.seat, 3).map(drop).expect_err(wanted);
            assert_eq!(error.to_string(), wanted);
        }
    }

    #[test]
    fn dense_views_have_the_strides_of_their_extents() {
        let batch = Batch::new(3, 0);
        let Tensors { o, lse, w_v, w_v_scale, .. } = batch.tensors();
        assert_eq!((o.strides, lse.unwrap().strides), ([6144, 512, 1], [12, 1]));
        assert_eq!((w_v.strides, w_v_scale.strides), ([32768, 256, 1], [2048, 16, 1]));
        assert!(batch.key.host_args(&batch.tensors(), &batch.core, &batch.seat, 3).is_ok());
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
        assert_eq!(whole.key.host_args(&tensors, &whole.core, &whole.seat, 3).unwrap().lse, 0);
    }

    #[test]
    fn memory_must_be_of_one_device_and_not_the_output() {
        let (batch, other) = (Batch::new(2, 0), Batch::new(2, 0));
        let mut tensors = batch.tensors();
        tensors.w_v = other.tensors().w_v;
        let error = batch.key.host_args(&tensors, &batch.core, &batch.seat, 3).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "`w_v` lies on cpu:gfx950, `core` on cpu:gfx950");
        let written = DeviceBuffer::from_slice(&batch.device, &vec![bf16::ZERO; 2 * 12 * 512]).unwrap();
        let tensors = Tensors { o: View { buffer: &written, ..batch.tensors().o }, ..batch.tensors() };
        let error = batch.key.host_args(&tensors, &written, &batch.seat, 3).map(drop).unwrap_err();
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
        let seat = Seat::alone(&engine.device, 0).unwrap();
        let compiled = engine.jit.get(&batch.key, engine.device.target()).unwrap();
        assert_eq!(compiled.kernel().launch.blocks(), 0);
        let args = batch.key.host_args(&tensors, &core, &seat, 3).unwrap();
        compiled.launch::<MlaPost>(&*engine.device, &args).unwrap();
    }

    #[test]
    fn a_seat_must_be_one_of_the_kernel_s() {
        let batch = Batch::new(2, 0);
        let refused = |key: MlaPost, seat: &Seat, layer: u32, wanted: &str| {
            let error = key.host_args(&batch.tensors(), &batch.core, seat, layer).map(drop).expect_err(wanted);
            assert_eq!(error.to_string(), wanted);
        };
        refused(batch.key, &batch.seat, 256, "layer 256; allowed are 0 to 255");
        for (key, wanted) in [
            (MlaPost { ranks: 0, ..batch.key }, "ranks"),
            (MlaPost { q: 0, ..batch.key }, "q"),
            (MlaPost { tokens: 3, q: 2, ..batch.key }, "tokens must be a multiple of q"),
        ] {
            let error = key.host_args(&batch.tensors(), &batch.core, &batch.seat, 0).map(drop).expect_err(wanted);
            assert!(matches!(&error, ArgsError::Key(text) if text.contains(wanted)), "{error}");
        }
        let two = MlaPost { ranks: 2, ..batch.key };
        refused(two, &batch.seat, 0, "0 regions in the table of peers; the kernel is for 2 ranks");
        let small = batch.device.peer_region(two.messages().region_bytes() - 8).unwrap();
        let whole = batch.device.peer_region(two.messages().region_bytes()).unwrap();
        let seat = |rank, regions: &[_], workgroups| {
            let table = lathe_runtime::device::PeerTable::new(&batch.device, regions).unwrap();
            Seat::new(&batch.device, rank, table, workgroups).unwrap()
        };
        // With more room the halves would lie elsewhere than other sizes of messages have them.
        let large = batch.device.peer_region(two.messages().region_bytes() + 16).unwrap();
        let said = "the region of rank 0 has 99856 bytes; the kernel's messages take 99840";
        refused(two, &seat(0, &[large, whole.clone()], two.ctas()), 0, said);
        let regions = [whole.clone(), small];
        let said = "the region of rank 1 has 99832 bytes; the kernel's messages take 99840";
        refused(two, &seat(0, &regions, two.ctas()), 0, said);
        let twice = [whole.clone(), whole.clone()];
        refused(two, &seat(0, &twice, two.ctas()), 0, "ranks 0 and 1 have the same region in the table of peers");
        let regions = [whole, batch.device.peer_region(two.messages().region_bytes()).unwrap()];
        refused(two, &seat(2, &regions, two.ctas()), 0, "rank 2 of 2 ranks; allowed are 0 to 1");
        refused(two, &seat(1, &regions, 5), 0, "health records of 5 workgroups; the kernel has 24");
        refused(
            batch.key,
            &seat(0, &regions, batch.key.ctas()),
            0,
            "2 regions in the table of peers; the kernel is for 1 ranks",
        );
        let ok = seat(1, &regions, two.ctas());
        let no_lse = Tensors { lse: None, ..batch.tensors() };
        assert_eq!(two.host_args(&no_lse, &batch.core, &ok, 0).map(drop), Err(ArgsError::NoLse));
        // The rows are those of one rank's heads.
        let error = two.host_args(&batch.tensors(), &batch.core, &ok, 0).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "`lse` ends at element 36 of a buffer of 24");
    }
}
