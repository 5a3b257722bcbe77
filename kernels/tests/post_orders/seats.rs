//! Promise: a step whose messages could be taken for another one's does not begin.

use std::sync::Arc;

use half::bf16;
use lathe_dsl::kernel::Host;
use lathe_kernels::mla::post::{ArgsError, MlaPost, MlaPostArgs, Seat, StepError, Tensors, View};
use lathe_kernels::mla::uv::ROW;
use lathe_kernels::mla::{LATENTS, VALUES};
use lathe_runtime::device::{Device, Group, PeerRegion, PeerTable};
use lathe_runtime::jit::Compiled;
use lathe_runtime::{DeviceBuffer, Engine};

/// Two ranks of zeros.
struct Pair {
    key: MlaPost,
    compiled: Arc<Compiled>,
    devices: [Arc<dyn Device>; 2],
    regions: [Arc<dyn PeerRegion>; 2],
    seats: [Seat; 2],
}

impl Pair {
    fn new(wait_us: u32) -> Self {
        let key = MlaPost { ranks: 2, tokens: 1, q: 1, splits: 0, ctas: 2, wait_us };
        let engine = Engine::open("cpu", None).unwrap();
        let devices = [engine.device.clone(), engine.device.another().unwrap()];
        let regions = devices.each_ref().map(|d| d.peer_region(key.messages().region_bytes()).unwrap());
        let seats = Self::seats(&key, &devices, &regions);
        Self { key, compiled: engine.jit.get(&key, engine.device.target()).unwrap(), devices, regions, seats }
    }

    fn seats(key: &MlaPost, devices: &[Arc<dyn Device>; 2], regions: &[Arc<dyn PeerRegion>; 2]) -> [Seat; 2] {
        [0, 1].map(|rank| {
            let device = &devices[rank];
            Seat::new(device, rank as u32, PeerTable::new(device, regions).unwrap(), key.ctas()).unwrap()
        })
    }

    fn begin(&self, epoch: u32) -> Result<(), StepError> {
        self.seats.iter().try_for_each(|seat| seat.begin(epoch))
    }

    fn restart(&self, epoch: u32) -> Result<(), StepError> {
        self.seats.iter().try_for_each(|seat| seat.restart(epoch))
    }

    /// Runs a step of some ranks; with `epochs`, of steps that the device counts.
    fn run(&self, ranks: std::ops::Range<usize>, epochs: &[u32]) {
        let all: Vec<_> = ranks
            .map(|rank| {
                let device = &self.devices[rank];
                let count = |epoch: &u32| DeviceBuffer::from_slice(device, &[*epoch]).unwrap();
                (rank, Zeros::new(device, &self.key), epochs.iter().map(count).collect::<Vec<_>>())
            })
            .collect();
        let mut group = Group::new();
        for (rank, zeros, counts) in &all {
            let number = group.rank(&self.devices[*rank]);
            let args = || zeros.args(&self.key, &self.seats[*rank]).unwrap();
            if epochs.is_empty() {
                group.launch::<MlaPost>(number, &self.compiled, &args()).unwrap();
            }
            for count in counts {
                let args = MlaPostArgs { epoch: count.arg(), ..args() };
                group.launch::<MlaPost>(number, &self.compiled, &args).unwrap();
            }
        }
        group.run().unwrap();
    }

    /// A step of both, which must go well.
    fn step(&self, epoch: u32) {
        self.begin(epoch).unwrap();
        self.run(0..2, &[]);
        self.seats.iter().for_each(|seat| seat.check().unwrap());
    }
}

/// A rank's tensors.
struct Zeros {
    o: DeviceBuffer<bf16>,
    lse: DeviceBuffer<f32>,
    seq_lens: DeviceBuffer<i32>,
    qsl: DeviceBuffer<i32>,
    codes: DeviceBuffer<u8>,
    scales: DeviceBuffer<u8>,
    gate: DeviceBuffer<bf16>,
    core: DeviceBuffer<bf16>,
}

impl Zeros {
    fn new(device: &Arc<dyn Device>, key: &MlaPost) -> Self {
        let heads = key.heads() as usize;
        let zeros = |n: u32| DeviceBuffer::from_slice(device, &vec![0u8; n as usize]).unwrap();
        Self {
            o: DeviceBuffer::from_slice(device, &vec![bf16::ZERO; heads * LATENTS as usize]).unwrap(),
            lse: DeviceBuffer::from_slice(device, &vec![0f32; heads]).unwrap(),
            seq_lens: DeviceBuffer::from_slice(device, &[1]).unwrap(),
            qsl: DeviceBuffer::from_slice(device, &[0, 1]).unwrap(),
            codes: zeros(ROW * LATENTS / 2),
            scales: zeros(ROW * LATENTS / 32),
            gate: DeviceBuffer::from_slice(device, &vec![bf16::ONE; ROW as usize]).unwrap(),
            core: DeviceBuffer::uninit(device, ROW as usize).unwrap(),
        }
    }

    fn args<'a>(&'a self, key: &MlaPost, seat: &'a Seat) -> Result<MlaPostArgs<Host<'a>>, ArgsError> {
        let heads = u64::from(key.heads());
        let tensors = Tensors {
            o: View::dense(&self.o, [0, heads, u64::from(LATENTS)]),
            lse: Some(View::dense(&self.lse, [0, heads])),
            seq_lens: &self.seq_lens,
            qsl: &self.qsl,
            w_v: View::dense(&self.codes, [0, u64::from(VALUES), u64::from(LATENTS / 2)]),
            w_v_scale: View::dense(&self.scales, [0, u64::from(VALUES), u64::from(LATENTS / 32)]),
            gate: &self.gate,
        };
        key.host_args(&tensors, &self.core, seat, 3)
    }
}

#[track_caller]
fn refused(result: Result<(), StepError>, wanted: &str) {
    assert_eq!(result.unwrap_err().to_string(), wanted);
}

const NOT_LATER: &str = "the last one of region `cmb` (epochs count modulo 2^22)";
const SKIPS: &str = "the last one of region `cmb`: each step's is one more; to skip some, all ranks restart";

#[test]
fn each_step_is_the_one_after_the_last() {
    let pair = Pair::new(0);
    pair.step(5);
    refused(pair.begin(5), &format!("rank 0: epoch 5 is not later than epoch 5, {NOT_LATER}"));
    refused(pair.seats[1].begin(4), &format!("rank 1: epoch 4 is not later than epoch 5, {NOT_LATER}"));
    refused(pair.begin(7), &format!("rank 0: epoch 7 does not follow epoch 5, {SKIPS}"));
    // The same tags, or those of a step that seems to lie before.
    refused(pair.begin(5 + (1 << 22)), &format!("rank 0: epoch 4194309 is not later than epoch 4194309, {NOT_LATER}"));
    refused(pair.restart(5), &format!("rank 0: epoch 5 is not later than epoch 5, {NOT_LATER}"));
    pair.step(6);
    pair.restart(20).unwrap();
    pair.run(0..2, &[]);
    pair.step(21);
}

#[test]
fn counts_begin_anew() {
    for first in [u32::MAX - 1, (3 << 22) - 2] {
        let pair = Pair::new(0);
        (0..4).for_each(|step| pair.step(first.wrapping_add(step)));
        let last = first.wrapping_add(3);
        refused(pair.begin(first), &format!("rank 0: epoch {first} is not later than epoch {last}, {NOT_LATER}"));
    }
}

#[test]
fn what_other_seats_and_the_device_counted_is_known() {
    let pair = Pair::new(0);
    pair.step(8);
    // Steps that the device counts.
    pair.run(0..2, &[9, 10]);
    refused(pair.begin(9), &format!("rank 0: epoch 9 is not later than epoch 10, {NOT_LATER}"));
    pair.step(11);
    let others = Pair::seats(&pair.key, &pair.devices, &pair.regions);
    refused(others[1].begin(11), &format!("rank 1: epoch 11 is not later than epoch 11, {NOT_LATER}"));
    refused(others[0].begin(13), &format!("rank 0: epoch 13 does not follow epoch 11, {SKIPS}"));
    others[0].begin(12).unwrap();
}

#[test]
fn after_a_step_that_failed_all_restart() {
    let pair = Pair::new(50);
    pair.step(1);
    // Nobody launched it.
    pair.begin(2).unwrap();
    refused(
        pair.begin(3),
        "rank 0: epoch 3 begins, but no launch of epoch 2 has left anything in region `cmb`: that step was not run, and all ranks must \
         restart with a later one",
    );
    pair.restart(3).unwrap();
    // One of them did.
    pair.run(0..1, &[]);
    let gave_up = pair.seats[0].check().unwrap_err().to_string();
    assert!(gave_up.starts_with("rank 0: workgroup 0 waited "), "{gave_up}");
    refused(pair.begin(4), &format!("{gave_up}; all ranks must restart with a later epoch"));
    refused(pair.restart(3), &format!("rank 0: epoch 3 is not later than epoch 3, {NOT_LATER}"));
    pair.restart(4).unwrap();
    pair.run(0..2, &[]);
    pair.seats.iter().for_each(|seat| seat.check().unwrap());
    pair.step(5);
}

#[test]
fn a_rank_that_is_alone_begins_any_step() {
    let device = Engine::open("cpu", None).unwrap().device;
    let seat = Seat::alone(&device, 3).unwrap();
    [7, 7, 3, 100].into_iter().for_each(|epoch| seat.begin(epoch).unwrap());
}

#[test]
fn a_table_in_another_order_is_refused() {
    let pair = Pair::new(0);
    let [own, other] = &pair.regions;
    let device = &pair.devices[0];
    let zeros = Zeros::new(device, &pair.key);
    let told = |regions: [&Arc<dyn PeerRegion>; 2]| {
        let table = PeerTable::new(device, &regions.map(Arc::clone)).unwrap();
        let seat = Seat::new(device, 0, table, pair.key.ctas()).unwrap();
        zeros.args(&pair.key, &seat).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(told([own, other]), Ok(()));
    let name = device.name();
    let wanted = format!("the table of peers has a region of {name} for rank 0, which is on {name}");
    assert_eq!(told([other, own]), Err(wanted));
    assert_eq!(told([own, own]), Err("ranks 0 and 1 have the same region in the table of peers".to_owned()));
}

#[test]
fn another_rank_may_be_one_step_ahead() {
    let pair = Pair::new(50);
    pair.step(5);
    pair.seats[0].begin(6).unwrap();
    pair.run(0..1, &[]);
    pair.seats[1].begin(6).unwrap();
    // It has done so for the other's part in the step, too.
    pair.run(1..2, &[]);
    pair.seats[1].check().unwrap();
}
