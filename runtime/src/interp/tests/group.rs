//! Launches that run together, stores that become visible late, and what goes wrong with them.

use lathe_dsl::ir::{Order, Scope};

use super::super::{self as interp, Failing, explore, launch_group};
use super::*;

const DATA: u64 = 64;
/// Seeds within which a mistake must show.
const SEEDS: u64 = 1000;

fn atomic(order: Order, scope: Scope) -> Memory {
    Memory { order, scope, ..Memory::default() }
}

/// A kernel in which each rank sends to the next one: workgroup `g` stores 64 words there, raises a flag, waits for its own and copies
/// what it was sent.
#[derive(Clone, Copy)]
struct Ring {
    ranks: usize,
    blocks: u32,
    /// Slots for messages take turns.
    parity: bool,
    data: Scope,
    drain: Option<Scope>,
    fence: Option<Scope>,
    flag: Scope,
    /// What rank 0 waits for is not what it is sent.
    wrong_tag: bool,
}

const RIGHT: Ring = Ring {
    ranks: 3,
    blocks: 2,
    parity: false,
    data: Scope::System,
    drain: Some(Scope::System),
    fence: None,
    flag: Scope::System,
    wrong_tag: false,
};

/// Words of a region a workgroup: data, then the flag in a part of its own.
const SLOT: u64 = DATA + 4;

impl Ring {
    fn kernel(self) -> (Kernel, u32) {
        let mut b = Build::new(32, self.blocks, DATA as u32);
        let (words, out) = (2 * SLOT * u64::from(self.blocks), DATA * u64::from(self.blocks));
        let own = b.buffer("own", Scalar::U32, words, Access::ReadWrite);
        let out = b.buffer("out", Scalar::U32, out, Access::Write);
        let next = b.scalar("next", Scalar::U64);
        let (rank, epoch) = (b.scalar("rank", Scalar::U32), b.scalar("epoch", Scalar::U32));
        let to = b.op(Op::IntToPtr(next), Type::Ptr(Space::Global, Scalar::U32));
        let own = b.op(Op::BufferPtr(own), Type::Ptr(Space::Global, Scalar::U32));
        let (slot, data) = (b.u32(SLOT as u32), b.u32(DATA as u32));
        let (g, t, id) = (b.bid(), b.tid(), b.global_id());
        let (one, two) = (b.u32(1), b.u32(2));
        let start = b.mul(g, two);
        let start = if self.parity {
            let odd = b.binary(BinaryOp::And, epoch, one);
            b.add(start, odd)
        } else {
            start
        };
        let start = b.mul(start, slot);
        let (to, own) = (b.ptr(to, start), b.ptr(own, start));
        let (thousand, million) = (b.u32(1000), b.u32(1_000_000));
        let (a, c) = (b.mul(rank, thousand), b.mul(epoch, million));
        let value = b.add(a, id);
        let value = b.add(value, c);
        let p = b.ptr(to, t);
        b.void(Op::PtrStore { value, pointer: p, memory: atomic(Order::Relaxed, self.data) });
        if let Some(scope) = self.drain {
            b.void(Op::Drain { scope });
        }
        if let Some(scope) = self.fence {
            b.void(Op::Fence { order: Order::Release, scope });
        }
        b.void(Op::Barrier);
        let (zero, flag) = (b.u32(0), b.ptr(to, data));
        let first = b.compare(Predicate::Eq, t, zero);
        let memory = atomic(Order::Relaxed, self.flag);
        b.if_(first, |b| b.void(Op::PtrStore { value: epoch, pointer: flag, memory }));
        let pointer = b.ptr(own, data);
        let wrong = b.compare(Predicate::Eq, rank, zero);
        let wrong = b.op(Op::Select { condition: wrong, on_true: thousand, on_false: zero }, U32);
        let tag = if self.wrong_tag { b.add(epoch, wrong) } else { epoch };
        b.while_(
            &[],
            &[],
            |b, _| {
                let seen = b.op(Op::PtrLoad { pointer, memory }, U32);
                vec![b.compare(Predicate::Ne, seen, tag)]
            },
            |b, _| {
                b.void(Op::SSleep(1));
                vec![]
            },
        );
        let line = b.line();
        let p = b.ptr(own, t);
        let got = b.op(Op::PtrLoad { pointer: p, memory: atomic(Order::Relaxed, self.data) }, U32);
        b.store(got, out, id);
        (b.finish(), line)
    }

    /// Runs `epochs` launches a rank, and checks what they got.
    fn run(self, program: &Program, epochs: u32, seed: Option<u64>) -> Result<(), String> {
        let bytes = 8 * SLOT as usize * self.blocks as usize;
        let regions: Vec<GlobalBuffer> = (0..self.ranks).map(|_| GlobalBuffer::zeroed(bytes)).collect();
        let outs: Vec<Vec<GlobalBuffer>> = (0..self.ranks)
            .map(|_| (0..epochs).map(|_| GlobalBuffer::uninit(4 * DATA as usize * self.blocks as usize)).collect())
            .collect();
        let others: Vec<&GlobalBuffer> = regions.iter().collect();
        let args = |rank: usize, epoch: u32| {
            let buffers = [&regions[rank], &outs[rank][epoch as usize]].map(ArgValue::Buffer);
            let next = regions[(rank + 1) % self.ranks].address();
            let scalars = [next, rank as u64, u64::from(epoch) + 1].map(ArgValue::Scalar);
            [buffers.as_slice(), &scalars].concat()
        };
        let args: Vec<Vec<Vec<ArgValue<'_>>>> =
            (0..self.ranks).map(|rank| (0..epochs).map(|epoch| args(rank, epoch)).collect()).collect();
        let ranks: Vec<Vec<interp::Launch<'_>>> = args
            .iter()
            .map(|rank| rank.iter().map(|args| interp::Launch { program, args, others: &others }).collect())
            .collect();
        let options = Options { seed, step_limit: Some(10_000_000), ..Options::default() };
        let reports = launch_group(&ranks, &options).map_err(|e| e.to_string())?;
        for (rank, launches) in reports.iter().enumerate() {
            for (epoch, report) in launches.iter().enumerate() {
                if let Some(finding) = report.findings.first() {
                    return Err(format!("rank {rank}: {finding}"));
                }
                let from = (rank + self.ranks - 1) % self.ranks;
                let due = |id: u32| id + 1000 * from as u32 + 1_000_000 * (epoch as u32 + 1);
                let got = words(&outs[rank][epoch]);
                if let Some((id, word)) = (0..).zip(&got).find(|(id, word)| due(*id) != **word) {
                    return Err(format!("rank {rank}, launch {epoch}: word {id} is {word}"));
                }
            }
        }
        Ok(())
    }

    fn explore(self, epochs: u32) -> Result<(), Failing<String>> {
        let program = Program::new(&self.kernel().0).unwrap();
        let failing = explore(0..SEEDS, |seed| self.run(&program, epochs, Some(seed)));
        if let Err(Failing { seed, error }) = &failing {
            // The seed says it all.
            assert_eq!(self.run(&program, epochs, Some(*seed)).as_ref(), Err(error));
        }
        failing
    }
}

#[test]
fn a_right_ring_is_right_whatever_the_schedule() {
    for ring in [RIGHT, Ring { drain: None, fence: Some(Scope::System), ..RIGHT }] {
        ring.explore(1).unwrap();
        let program = Program::new(&ring.kernel().0).unwrap();
        ring.run(&program, 1, None).unwrap();
    }
}

#[test]
fn a_flag_that_overtakes_its_data_is_found() {
    let error = Ring { drain: None, ..RIGHT }.explore(1).unwrap_err();
    assert!(error.to_string().contains(" is 0"), "{error}");
    // In order, everything is visible at once.
    let ring = Ring { drain: None, ..RIGHT };
    ring.run(&Program::new(&ring.kernel().0).unwrap(), 1, None).unwrap();
}

#[test]
fn a_drain_or_a_fence_that_does_not_reach_the_other_rank_is_found() {
    for scope in [Scope::Wave, Scope::Workgroup, Scope::Device] {
        let error = Ring { drain: Some(scope), ..RIGHT }.explore(1).unwrap_err();
        assert!(error.to_string().contains(" is 0"), "{error}");
        let error = Ring { drain: None, fence: Some(scope), ..RIGHT }.explore(1).unwrap_err();
        assert!(error.to_string().contains(" is 0"), "{error}");
    }
}

#[test]
fn a_scope_that_does_not_reach_the_other_rank_is_found() {
    // The flag is raised among the threads of one device only.
    let ring = Ring { flag: Scope::Device, ..RIGHT };
    let error = ring.run(&Program::new(&ring.kernel().0).unwrap(), 1, None).unwrap_err();
    assert!(error.contains("both are atomic, but not in a scope that reaches the other"), "{error}");
    assert!(error.contains("of rank ") && error.contains("(rank "), "{error}");
}

#[test]
fn a_slot_that_is_used_again_too_soon_is_found() {
    // A rank's second launch may store to the next one while that still reads what the first one sent.
    let pair = Ring { ranks: 2, ..RIGHT };
    let error = pair.explore(3).unwrap_err();
    assert!(error.to_string().contains("launch "), "{error}");
    // Nobody is ahead by more than one launch: two slots are enough.
    Ring { parity: true, ..pair }.explore(3).unwrap();
}

#[test]
fn a_wrong_tag_is_an_endless_wait_of_the_rank() {
    let ring = Ring { wrong_tag: true, ..RIGHT };
    let (kernel, line) = ring.kernel();
    let program = Program::new(&kernel).unwrap();
    for seed in [None, Some(1), Some(2), Some(3)] {
        let error = ring.run(&program, 1, seed).unwrap_err();
        let start = format!("rank 0: k.rs:{line}:1: endless wait for buffer `own` at byte 256 to change");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains("(rank 0, block (0,0,0), thread (0,0,0), wave 0, lane 0)"), "{error}");
    }
}

#[test]
fn a_group_tells_of_every_launch_of_every_rank() {
    // Rank 1 launches two kernels, the second of which reads what the first one stored, and a wider one in between.
    let kernel = |block: u32, add: bool| {
        let mut b = Build::new(32, 2, block);
        let x = b.buffer("x", Scalar::U32, 128, Access::ReadWrite);
        let id = b.global_id();
        let value = if add {
            let old = b.load(x, id, U32);
            b.add(old, id)
        } else {
            id
        };
        b.store(value, x, id);
        Program::new(&b.finish()).unwrap()
    };
    let (narrow, wide) = (kernel(32, true), kernel(64, false));
    for seed in [None, Some(1)] {
        let (x, y) = (GlobalBuffer::uninit(512), GlobalBuffer::zeroed(512));
        let (x_arg, y_arg) = ([ArgValue::Buffer(&x)], [ArgValue::Buffer(&y)]);
        let of = |program, args| interp::Launch { program, args, others: &[] };
        let ranks = [vec![of(&narrow, &y_arg)], vec![], vec![of(&wide, &x_arg), of(&narrow, &x_arg)]];
        let options = Options { seed, checks: Checks::ALL, ..Options::default() };
        let reports = launch_group(&ranks, &options).unwrap();
        let told: Vec<Vec<_>> =
            reports.iter().map(|r| r.iter().map(|r| (r.blocks, r.findings.len())).collect()).collect();
        assert_eq!(told, [vec![(2, 0)], vec![], vec![(2, 0), (2, 0)]]);
        assert!(reports[2][1].instructions > 0 && reports[2][0].lane_ops > reports[2][1].lane_ops);
        assert_eq!(words(&x)[..66], (0..66).map(|i| if i < 64 { 2 * i } else { i }).collect::<Vec<u32>>());
        assert_eq!(words(&y)[..66], (0..66).map(|i| if i < 64 { i } else { 0 }).collect::<Vec<u32>>());
    }
    // What the wide one leaves unwritten is told, with rank and launch.
    let (x, y) = (GlobalBuffer::uninit(512), GlobalBuffer::uninit(512));
    let (x, y) = ([ArgValue::Buffer(&x)], [ArgValue::Buffer(&y)]);
    let of = |program, args| interp::Launch { program, args, others: &[] };
    let reports =
        launch_group(&[[of(&narrow, &x), of(&wide, &x)], [of(&wide, &y), of(&wide, &y)]], &Options::default());
    let found = reports.unwrap()[0][0].findings[0].to_string();
    assert!(
        found.contains("(rank 0, launch 0, block (0,0,0), thread (0,0,0), wave 0, lane 0; 64 such accesses)"),
        "{found}"
    );
}

#[test]
fn waves_of_a_group_are_of_one_width() {
    let program = |wave| Program::new(&Build::new(wave, 1, 32).finish()).unwrap();
    let (narrow, wide) = (program(32), program(64));
    let of = |program| [interp::Launch { program, args: &[], others: &[] }];
    let error = launch_group(&[of(&wide), of(&narrow)], &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "rank 1: kernel `k` has waves of 32 lanes, others of its group have 64");
}
