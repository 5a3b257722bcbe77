//! Promise: ranks of `mla_post` by its AMD code, step after step, give what plain Rust gives, in whatever order their waves run and
//! their stores become visible.

use std::sync::Arc;

use half::bf16;
use lathe_kernels::gemm::reference::Mxfp4;
use lathe_kernels::mla::post::{MlaPost, MlaPostArgs, Seat, Tensors, View};
use lathe_kernels::mla::{HEADS, LATENTS, VALUES};
use lathe_runtime::device::{Device, Group, PeerRegion, PeerTable};
use lathe_runtime::interp::explore;
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine, Error, gcn};

// What the test of the interpreter takes, too.
#[path = "../kernels/tests/post_orders/steps.rs"]
pub mod steps;

use steps::{LAYER, Sent, Steps};

/// Devices of a kind, one a rank, with a rank's tensors on each.
pub struct Ranks {
    pub devices: Vec<Arc<dyn Device>>,
    pub tables: Vec<PeerTable>,
    pub seats: Vec<Seat>,
    pub weights: Vec<Weights>,
    /// `[rank][step]`.
    pub steps: Vec<Vec<OfStep>>,
}

/// What a rank has in every step.
pub struct Weights {
    pub codes: DeviceBuffer<u8>,
    pub scales: DeviceBuffer<u8>,
    pub gate: DeviceBuffer<bf16>,
}

/// What it has in one.
pub struct OfStep {
    pub o: DeviceBuffer<bf16>,
    pub lse: DeviceBuffer<f32>,
    pub seq_lens: DeviceBuffer<i32>,
    pub qsl: DeviceBuffer<i32>,
    pub epoch: DeviceBuffer<u32>,
    pub core: DeviceBuffer<bf16>,
}

impl Weights {
    fn new(device: &Arc<dyn Device>, w_v: &Mxfp4, gate: &[bf16]) -> Result<Self, Error> {
        Ok(Self {
            codes: DeviceBuffer::from_slice(device, &w_v.codes)?,
            scales: DeviceBuffer::from_slice(device, &w_v.scales)?,
            gate: DeviceBuffer::from_slice(device, gate)?,
        })
    }
}

impl OfStep {
    fn new(device: &Arc<dyn Device>, sent: &Sent, epoch: u32, values: usize) -> Result<Self, Error> {
        Ok(Self {
            o: DeviceBuffer::from_slice(device, &sent.o)?,
            lse: DeviceBuffer::from_slice(device, &sent.lse)?,
            seq_lens: DeviceBuffer::from_slice(device, &sent.seq_lens)?,
            qsl: DeviceBuffer::from_slice(device, &sent.qsl)?,
            epoch: DeviceBuffer::from_slice(device, &[epoch])?,
            core: DeviceBuffer::uninit(device, values)?,
        })
    }
}

impl Ranks {
    /// On devices of `name`, with what older steps left in the regions.
    pub fn new(name: &str, steps: &Steps) -> Result<Self, Error> {
        let key = &steps.key;
        let first = Engine::open(name, None)?.device;
        let another = |rank| if rank == 0 { first.clone() } else { first.another().expect("a simulated one") };
        let devices: Vec<_> = (0..key.ranks).map(another).collect();
        let regions: Vec<Arc<dyn PeerRegion>> =
            devices.iter().map(|d| d.peer_region(key.messages().region_bytes())).collect::<Result<_, _>>()?;
        let leftovers = steps.leftovers();
        let (mut tables, mut seats, mut weights, mut of_steps) = (vec![], vec![], vec![], vec![]);
        for ((rank, device), region) in (0u32..).zip(&devices).zip(&regions) {
            device.write(region.address(), &leftovers)?;
            tables.push(PeerTable::new(device, &regions)?);
            seats.push(Seat::new(device, rank, PeerTable::new(device, &regions)?, key.ctas())?);
            let at = rank as usize;
            weights.push(Weights::new(device, &steps.w_v[at], &steps.gate[at])?);
            let of_step = |step: usize| {
                OfStep::new(device, &steps.sent[step][at], steps.epoch(step), steps.expected[step][at].len())
            };
            of_steps.push((0..steps.sent.len()).map(of_step).collect::<Result<_, _>>()?);
        }
        Ok(Self { devices, tables, seats, weights, steps: of_steps })
    }

    fn args<'a>(&'a self, key: &MlaPost, rank: usize, step: usize) -> MlaPostArgs<lathe_dsl::kernel::Host<'a>> {
        let (weights, of_step) = (&self.weights[rank], &self.steps[rank][step]);
        let heads = u64::from(key.heads());
        let tensors = Tensors {
            o: View::dense(&of_step.o, [0, heads, u64::from(LATENTS)]),
            lse: Some(View::dense(&of_step.lse, [0, heads])),
            seq_lens: &of_step.seq_lens,
            qsl: &of_step.qsl,
            w_v: View::dense(&weights.codes, [u64::from(HEADS), u64::from(VALUES), u64::from(LATENTS / 2)]),
            w_v_scale: View::dense(&weights.scales, [u64::from(HEADS), u64::from(VALUES), u64::from(LATENTS / 32)]),
            gate: &weights.gate,
        };
        let args = key.host_args(&tensors, &of_step.core, &self.seats[rank], LAYER).expect("they are taken");
        // All steps are given at once, so each has a count of its own.
        MlaPostArgs { epoch: of_step.epoch.arg(), ..args }
    }
}

/// Runs all steps of all ranks, with the turns that `seed` gives; each rank goes on as soon as its step has ended.
fn run(steps: &Steps, compiled: &Arc<Compiled>, name: &str, seed: u64) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let ranks = Ranks::new(name, steps).map_err(text)?;
    let mut group = Group::seeded(seed);
    for (rank, device) in ranks.devices.iter().enumerate() {
        let number = group.rank(device);
        for step in 0..steps.sent.len() {
            group.launch::<MlaPost>(number, compiled, &ranks.args(&steps.key, rank, step)).map_err(text)?;
        }
    }
    let reports = group.run().map_err(text)?;
    if let Some(finding) = reports.iter().flatten().find_map(|r| r.findings.first()) {
        return Err(finding.clone());
    }
    for (rank, of_steps) in ranks.steps.iter().enumerate() {
        for (step, of_step) in of_steps.iter().enumerate() {
            if of_step.core.to_vec().map_err(text)? != steps.expected[step][rank] {
                return Err(format!("rank {rank}, step {step}: wrong values"));
            }
        }
        ranks.seats[rank].check().map_err(text)?;
    }
    Ok(())
}

fn explored(key: MlaPost, first_epoch: u32, steps: u32, seeds: std::ops::Range<u64>) {
    let steps = Steps::new(key, steps, first_epoch);
    for target in gcn::targets() {
        let name = format!("gcn:{target}");
        let engine = Engine::open(&name, None).expect("a device");
        let compiled = engine.jit.get(&key, engine.device.target()).expect("it compiles");
        explore(seeds.clone(), |seed| run(&steps, &compiled, &name, seed)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Rows of a rank without KV, of padding and of nobody; messages of older steps in the regions; tags and counts that begin anew.
#[test]
fn the_code_object_agrees_with_plain_rust_in_dozens_of_orders() {
    let key = MlaPost { ranks: 2, tokens: 1, q: 1, splits: 0, ctas: 2, wait_us: 0 };
    explored(key, (7 << 22) - 2, 3, 0..24);
    explored(MlaPost { tokens: 5, ctas: 3, ..key }, u32::MAX - 1, 3, 0..2);
}
