//! Runs `mla_combine_ranks` on what real attention would have sent, and checks what comes out.

use fastrand::Rng;
use half::bf16;
use lathe_dsl::builder::step_tag_of;
use lathe_runtime::jit::Compiled;
use lathe_runtime::mailbox::MailboxHealth;
use lathe_runtime::{DeviceBuffer, Engine};

use super::super::combine::MlaCombine;
use super::super::message::REGIONS;
use super::super::problem::Problem;
use super::super::ranks::{MlaCombineRanks, MlaCombineRanksArgs};
use super::super::reference::push::put_slot;
use super::super::{HEADS, LATENTS};
use super::{GPU_WAIT_US, Run, check_host_bytes, combine_checks, fewer, poisoned_latents};
use crate::registry::{Outcome, RunError};

impl MlaCombineRanks {
    /// The region after a step: what the ranks sent in its half; in the other half NaNs under right-looking tags of the step before.
    fn region(&self, problem: &Problem, epoch: u32, layer: u32) -> Vec<u64> {
        let messages = self.messages();
        let half = (messages.half() / 8) as usize;
        let mut region = vec![0; 2 * half];
        let nan = [bf16::NAN; LATENTS as usize];
        for source in 0..problem.ranks {
            for token in 0..problem.tokens {
                for head in 0..HEADS as usize {
                    let row = (source * problem.tokens + token) * HEADS as usize + head;
                    let latents = &problem.partial[row * LATENTS as usize..(row + 1) * LATENTS as usize];
                    let lse = problem.lse[row].to_bits();
                    for (epoch, row, lse) in [(epoch, latents, lse), (epoch.wrapping_sub(1), &nan, 0x4480_0000)] {
                        let at = epoch as usize % 2 * half;
                        let tag = step_tag_of(epoch, layer);
                        put_slot(&mut region[at..at + half], messages, [source, token, head], row, [lse, tag]);
                    }
                }
            }
        }
        region
    }
}

impl Run for MlaCombineRanks {
    const ON_GPUS: &'static [(&'static str, u32)] = &[("wait_us", GPU_WAIT_US)];

    fn check_size(&self) -> Result<(), RunError> {
        let Self { ranks, tokens, .. } = *self;
        // The region here and on the device.
        let bytes =
            MlaCombine { ranks, tokens }.host_bytes_a_token() * u64::from(tokens) + 2 * self.messages().region_bytes();
        check_host_bytes(self, bytes, || fewer("tokens or ranks"))
    }

    fn run(&self, engine: &Engine, compiled: &Compiled, seed: u64) -> Result<Outcome, RunError> {
        let problem = Problem::new(self.ranks as usize, self.tokens as usize, seed);
        let mut rng = Rng::with_seed(seed);
        let (epoch, layer, rank) = (rng.u32(..), rng.u32(0..256), rng.u32(0..self.ranks));
        let device = &engine.device;
        let region = DeviceBuffer::from_slice(device, &self.region(&problem, epoch, layer))?;
        // The others' regions are none of its business.
        let mut peers = vec![0; self.ranks as usize];
        peers[rank as usize] = region.address();
        let peers = DeviceBuffer::from_slice(device, &peers)?;
        let count = DeviceBuffer::from_slice(device, &[epoch])?;
        let health = MailboxHealth::new(device, rank, self.ctas())?;
        let latents = poisoned_latents(device, problem.tokens)?;
        let args = MlaCombineRanksArgs {
            peers: peers.arg(),
            rank,
            layer,
            epoch: count.arg(),
            health: health.health(),
            alarm: health.alarm(),
            latents: latents.arg(),
        };
        let report = compiled.launch::<Self>(device.as_ref(), &args)?;
        health.check(REGIONS)?;
        let checks = combine_checks(device.as_ref(), &problem, &latents.to_vec()?);
        Ok(Outcome { checks, findings: report.findings, time: report.time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Build;

    #[test]
    fn what_was_sent_is_combined_bit_for_bit() {
        for tokens in [1, 2, 3, 5, 8, 16, 101] {
            for ranks in [2, 4, 8] {
                for (device, seed) in [("cpu:gfx950", None), ("cpu:sm_90", Some(1)), ("cpu:gfx1201", Some(u64::MAX))] {
                    for wait_us in [0, 1000] {
                        let engine = Engine::open(device, seed).unwrap();
                        let report = Build::run(&MlaCombineRanks { ranks, tokens, wait_us }, &engine, 3).unwrap();
                        assert!(report.ok, "{device} {ranks} {tokens}: {:?} {:?}", report.checks, report.findings);
                        assert_eq!(report.checks[0].max_abs_error, 0.0);
                    }
                }
            }
        }
    }

    /// A region in which the messages of some slots are of another step.
    fn late(key: &MlaCombineRanks, device: &str, spoil: impl Fn(&mut [u64], usize)) -> String {
        let problem = Problem::new(key.ranks as usize, key.tokens as usize, 1);
        let (epoch, layer, rank) = (6, 3, 1);
        let Engine { device, jit } = Engine::open(device, Some(1)).unwrap();
        let mut pairs = key.region(&problem, epoch, layer);
        spoil(&mut pairs, 0);
        let region = DeviceBuffer::from_slice(&device, &pairs).unwrap();
        let peers = DeviceBuffer::from_slice(&device, &[0, region.address(), 0, 0]).unwrap();
        let count = DeviceBuffer::from_slice(&device, &[epoch]).unwrap();
        let health = MailboxHealth::new(&device, rank, key.ctas()).unwrap();
        let latents = DeviceBuffer::<bf16>::uninit(&device, (key.tokens * HEADS * LATENTS) as usize).unwrap();
        let args = MlaCombineRanksArgs {
            peers: peers.arg(),
            rank,
            layer,
            epoch: count.arg(),
            health: health.health(),
            alarm: health.alarm(),
            latents: latents.arg(),
        };
        let compiled = jit.get(key, device.target()).unwrap();
        let report = compiled.launch::<MlaCombineRanks>(device.as_ref(), &args).unwrap();
        assert_eq!(report.findings, [""; 0]);
        health.check(REGIONS).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_wait_that_gives_up_is_told_by_rank_region_pair_and_tags() {
        let key = MlaCombineRanks { ranks: 4, tokens: 2, wait_us: 200 };
        let messages = key.messages();
        for device in ["cpu:gfx950", "cpu:sm_90", "cpu:gfx1201"] {
            assert_eq!(late(&key, device, |_, _| {}), "", "{device}");
            let pair = |source, token, head| (messages.slot(source, token, head) / 8) as usize + 128;
            // Of the step two epochs before.
            let old = late(&key, device, |region, half| {
                for source in [1, 2, 3] {
                    region[half + pair(source, 1, 5)] = u64::from(step_tag_of(4, 3)) << 32;
                }
            });
            assert_eq!(
                old,
                format!(
                    "rank 1: workgroup 5 waited 199.68µs for a message from rank 1 in region `cmb`, pair {}: wanted tag 0x604 \
                     (epoch 6, slot 3), found tag 0x404 (epoch 4, slot 3)",
                    pair(1, 1, 5)
                ),
                "{device}"
            );
            // Another layer's, and nothing at all, for two heads.
            let two = late(&key, device, |region, half| {
                region[half + pair(3, 0, 0)] = u64::from(step_tag_of(6, 4)) << 32;
                region[half + pair(2, 1, 7)] = 0;
            });
            let first = format!("for a message from rank 3 in region `cmb`, pair {}: ", pair(3, 0, 0));
            assert!(two.contains(&first) && two.contains("found tag 0x605 (epoch 6, slot 4)"), "{device}: {two}");
            assert!(two.ends_with("; another workgroup gave up, too"), "{device}: {two}");
        }
    }
}
