//! Runs `mla_push` for every rank, in two steps, and checks all regions.

use fastrand::Rng;
use half::bf16;
use lathe_dsl::builder::step_tag_of;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

use super::super::push::{MlaPush, MlaPushArgs};
use super::super::reference::push::Push;
use super::super::{HEADS, LATENTS};
use super::{Run, check_host_bytes, fewer, two_epochs};
use crate::registry::{Check, Outcome, RunError};

/// What a region holds before the first step: tags that no step has.
const UNTOUCHED: u64 = 0xFFFF_FFFF_7FA5_7FA5;

/// What a rank has to send.
struct Sent {
    o: Vec<bf16>,
    lse: Vec<u32>,
    seq_lens: Vec<i32>,
    qsl: Vec<i32>,
}

impl MlaPush {
    /// Rows and LSE of any bits; requests without KV rows; padding.
    fn random(&self, rng: &mut Rng, live: u32) -> Sent {
        let rows = (self.tokens * self.ranks * HEADS) as usize;
        let mut bytes = vec![0; rows * LATENTS as usize * 2];
        rng.fill(&mut bytes);
        let o = bytes.chunks_exact(2).map(|b| bf16::from_bits(u16::from_le_bytes([b[0], b[1]]))).collect();
        // A third of the LSE is usual; the rest has any bits, NaN and infinities above all.
        let lse = (0..rows).map(|_| match rng.u32(0..3) {
            0 => (rng.f32() * 16.0 - 8.0).to_bits(),
            1 => rng.u32(..),
            _ => rng.u32(..) | 0x7F80_0000,
        });
        let lse = lse.collect();
        let seq_lens = (0..self.requests()).map(|_| if rng.u32(0..3) == 0 { 0 } else { rng.i32(1..100) }).collect();
        let qsl = (0..=self.requests()).map(|request| (request * self.q).min(live) as i32).collect();
        Sent { o, lse, seq_lens, qsl }
    }

    /// Bytes that a run takes on the host: what all ranks send, one of them at a time, and all regions here, on the device, and
    /// read back.
    fn host_bytes(&self) -> u64 {
        let rows = u64::from(self.ranks) * u64::from(self.tokens) * u64::from(HEADS);
        rows * u64::from(LATENTS) * 3 * 2 + 3 * u64::from(self.ranks) * self.messages().region_bytes()
    }
}

impl Run for MlaPush {
    fn check_size(&self) -> Result<(), RunError> {
        check_host_bytes(self, self.host_bytes(), || fewer("tokens or ranks"))
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        let mut rng = Rng::with_seed(seed);
        let messages = self.messages();
        let half = (messages.half() / 8) as usize;
        let device = &engine.device;
        let mut expected = vec![vec![UNTOUCHED; 2 * half]; self.ranks as usize];
        let regions: Vec<DeviceBuffer<u64>> =
            expected.iter().map(|r| DeviceBuffer::from_slice(device, r)).collect::<Result<_, _>>()?;
        let peers: Vec<u64> = regions.iter().map(DeviceBuffer::address).collect();
        let peers = DeviceBuffer::from_slice(device, &peers)?;
        let (mut findings, mut time) = (vec![], std::time::Duration::ZERO);
        let epochs = two_epochs(&mut rng);
        let layer = rng.u32(0..256);
        for epoch in epochs {
            let count = DeviceBuffer::from_slice(device, &[epoch])?;
            let live = rng.u32(self.tokens.saturating_sub(self.q)..=self.tokens);
            for rank in 0..self.ranks {
                let sent = self.random(&mut rng, live);
                let o = DeviceBuffer::from_slice(device, &sent.o)?;
                let lse = DeviceBuffer::from_slice(device, &sent.lse)?;
                let seq_lens = DeviceBuffer::from_slice(device, &sent.seq_lens)?;
                let qsl = DeviceBuffer::from_slice(device, &sent.qsl)?;
                let args = MlaPushArgs {
                    o: o.arg(),
                    lse: lse.arg(),
                    seq_lens: seq_lens.arg(),
                    qsl: qsl.arg(),
                    peers: peers.arg(),
                    rank,
                    layer,
                    epoch: count.arg(),
                };
                let report = compiled.launch::<Self>(device.as_ref(), &args)?;
                findings.extend(report.findings);
                time += report.time;
                let reference = Push {
                    messages,
                    q: self.q as usize,
                    rank: rank as usize,
                    tag: step_tag_of(epoch, layer),
                    o: &sent.o,
                    lse: &sent.lse,
                    seq_lens: &sent.seq_lens,
                    qsl: &sent.qsl,
                };
                let parity = epoch as usize % 2;
                let mut halves: Vec<&mut [u64]> =
                    expected.iter_mut().map(|r| &mut r[parity * half..(parity + 1) * half]).collect();
                reference.send(&mut halves);
            }
        }
        let mut wrong = vec![];
        for (rank, (region, expected)) in regions.iter().zip(&expected).enumerate() {
            let got = region.to_vec()?;
            wrong.extend(got.iter().zip(expected).enumerate().filter(|(_, (a, b))| a != b).map(
                |(pair, (got, expected))| format!("rank {rank}, pair {pair} is {got:#018x}, not {expected:#018x}"),
            ));
        }
        let check = Check {
            against: "the stage in plain Rust",
            max_abs_error: if wrong.is_empty() { 0.0 } else { f64::INFINITY },
            allowed: "all regions equal bit for bit, where nothing is written, too".to_owned(),
            ok: wrong.is_empty(),
            first_failure: wrong.first().map(|first| format!("{} pairs differ: {first}", wrong.len())),
        };
        Ok(Outcome { checks: vec![check], findings, time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Build;

    #[test]
    fn every_rank_sends_all_it_has_and_nothing_else() {
        for (seed, (ranks, tokens, q, ctas)) in (0..).zip([
            (2, 1, 1, 256),
            (4, 3, 3, 1),
            (8, 8, 2, 256),
            (2, 16, 4, 3),
            (8, 5, 1, 7),
            (4, 2, 1, 256),
            (2, 50, 5, 256),
        ]) {
            for (device, schedule) in [("cpu:gfx950", None), ("cpu:sm_90", Some(1)), ("cpu:gfx1201", Some(u64::MAX))] {
                let engine = Engine::open(device, schedule).unwrap();
                let report = Build::run(&MlaPush { ranks, tokens, q, ctas }, &engine, seed).unwrap();
                assert!(report.ok, "{device} {ranks} {tokens} {q} {ctas}: {:?} {:?}", report.checks, report.findings);
            }
        }
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused() {
        let engine = Engine::open("cpu", None).unwrap();
        let error =
            Build::run(&MlaPush { ranks: 8, tokens: 40_000, q: 8, ctas: 256 }, &engine, 0).unwrap_err().to_string();
        assert!(error.contains("a run takes at most"), "{error}");
    }
}
