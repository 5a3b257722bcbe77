//! The executor: one wave, lanes in lock step.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{Ordering, fence};

use lathe_dsl::ir::{Axis, CLOCK_STEP_NS};
use lathe_dsl::numerics::MmaRounding;
use rustc_hash::FxHasher;

use super::access::{self, Access};
use super::allocations::Allocations;
use super::alu;
use super::error::{Absence, AccessKind, Fault, FaultKind, Site};
use super::findings::Findings;
use super::lanes;
use super::late::Late;
use super::lds::{self, Lds};
use super::matrix::Operands;
use super::memory::GlobalBuffer;
use super::parties::Party;
use super::program::{Class, Instr, Pc, Program, Width, opened_around};
use super::promises::Promises;
use super::rows::{Raised, Regs, Row, all_lanes, lanes_where};
use super::step;
use super::watch::{self, Mark, Step, Watch, releases};
use crate::visibility::Reach;

/// What a workgroup's waves share.
pub(super) struct Context<'a> {
    pub(super) program: &'a Program,
    /// By parameter; an empty buffer where the parameter is a scalar.
    pub(super) buffers: &'a [&'a GlobalBuffer],
    /// By parameter; 0 where the parameter is a buffer.
    pub(super) scalars: &'a [u64],
    /// All launches that run together, and which this one is.
    pub(super) parties: &'a [Party<'a>],
    pub(super) party: u32,
    /// Coordinates of the workgroup, and its number among all of them.
    pub(super) block: [u32; 3],
    pub(super) block_number: u64,
    /// Stores that are on their way; `None` where every store is visible at once.
    pub(super) late: Option<Late<'a>>,
    /// What pointers reach.
    pub(super) allocations: &'a Allocations<'a>,
    pub(super) lds: &'a mut Lds,
    pub(super) promises: &'a mut Promises,
    pub(super) findings: &'a mut Findings,
    /// If anything is checked.
    pub(super) watch: Option<&'a mut Watch>,
    pub(super) mma: MmaRounding,
    pub(super) strict_bounds: bool,
    pub(super) step_limit: u64,
}

impl Context<'_> {
    /// Wave `wave` makes an operation on vector memory.
    #[inline(always)]
    pub(super) fn issue(&mut self, wave: u32) {
        self.lds.issue(wave);
        if let Some(late) = &mut self.late {
            late.issue(wave);
        }
    }

    /// The site of instruction `pc` in lane `lane` of wave `wave`.
    pub(super) fn site(&self, pc: Pc, wave: u32, lane: u32) -> Site {
        Site {
            location: self.program.locations[pc as usize],
            member: self.parties[self.party as usize].member,
            block: self.block,
            thread: self.program.thread(wave * self.program.wave() + lane),
            wave,
            lane,
        }
    }
}

/// Why a wave stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// It waits at the barrier instruction at this place.
    Barrier(Pc),
    /// It ended.
    End,
    /// It ran the number of instructions it was given.
    Preempted,
    /// It may be waiting for what another wave does.
    Yielded,
}

/// Back edges of `while` loops after which a wave lets others run.
const BACK_EDGES: u32 = 16;

/// An open `If`, `Loop` or `While`.
struct Frame {
    /// Mask to go back to.
    saved: u64,
    /// Lanes that `Else` continues with.
    others: u64,
}

pub(super) struct Wave<const W: usize> {
    /// Number in the workgroup.
    index: u32,
    pc: Pc,
    /// Active lanes.
    mask: u64,
    active: u64,
    /// Lanes that stand for a thread.
    live: u64,
    frames: Vec<Frame>,
    regs: Regs<W>,
    thread_ids: [Row<u32, W>; 3],
    /// Back edges of `while` loops since the wave last yielded.
    back_edges: u32,
    /// Instructions executed in this workgroup.
    steps: u64,
    /// The same, each counted once an active lane.
    lane_ops: u64,
    /// Time of the last reading, in nanoseconds.
    clock: u64,
}

/// Calls a function or a method, generic over cell, wave and bytes, for a width in memory.
macro_rules! by_width {
    ($width:expr, $f:ident :: $g:ident ($($arg:expr),*)) => {
        match $width {
            Width::B8 => $f::$g::<u32, W, 1>($($arg),*),
            Width::B16 => $f::$g::<u32, W, 2>($($arg),*),
            Width::B32 => $f::$g::<u32, W, 4>($($arg),*),
            Width::B64 => $f::$g::<u64, W, 8>($($arg),*),
        }
    };
    ($width:expr, $f:ident . $g:ident ($($arg:expr),*)) => {
        match $width {
            Width::B8 => $f.$g::<u32, W, 1>($($arg),*),
            Width::B16 => $f.$g::<u32, W, 2>($($arg),*),
            Width::B32 => $f.$g::<u32, W, 4>($($arg),*),
            Width::B64 => $f.$g::<u64, W, 8>($($arg),*),
        }
    };
}

/// Calls `$f::<cell, W>` for a register file.
macro_rules! by_class {
    ($class:expr, $f:ident :: $g:ident ($($arg:expr),*)) => {
        match $class {
            Class::R32 => $f::$g::<u32, W>($($arg),*),
            Class::R64 => $f::$g::<u64, W>($($arg),*),
        }
    };
}

impl<const W: usize> Wave<W> {
    /// Wave number `index` of any workgroup of `program`, whose waves have `W` lanes.
    pub(super) fn new(program: &Program, index: u32) -> Self {
        let first = index * W as u32;
        let threads = (program.block_threads() - first).min(W as u32);
        let thread = |lane: usize| program.thread(first + lane as u32);
        Self {
            index,
            pc: 0,
            mask: 0,
            active: 0,
            live: u64::MAX >> (64 - threads),
            frames: vec![],
            regs: Regs { r32: vec![[0; W]; program.rows[0] as usize], r64: vec![[0; W]; program.rows[1] as usize] },
            thread_ids: std::array::from_fn(|axis| std::array::from_fn(|lane| thread(lane)[axis])),
            back_edges: 0,
            steps: 0,
            clock: 0,
            lane_ops: 0,
        }
    }

    /// Back to the kernel's start, for the next workgroup.
    pub(super) fn reset(&mut self) {
        (self.steps, self.lane_ops, self.clock) = (0, 0, 0);
        self.pc = 0;
        self.back_edges = 0;
        self.frames.clear();
        self.set_mask(self.live);
    }

    /// Instructions executed in this workgroup, and the same counted once an active lane.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.steps, self.lane_ops)
    }

    /// Where it goes on.
    pub(super) fn pc(&self) -> Pc {
        self.pc
    }

    /// The first active lane.
    pub(super) fn first_lane(&self) -> u32 {
        self.mask.trailing_zeros()
    }

    /// A digest of all that decides, with memory, what it does next.
    pub(super) fn state(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.pc, self.mask, self.clock).hash(&mut hasher);
        self.frames.iter().for_each(|f| (f.saved, f.others).hash(&mut hasher));
        // Of all that wait, every turn: eight hashes at a time, none of which waits for another.
        let mut hashers: [FxHasher; 8] = std::array::from_fn(|_| FxHasher::default());
        for eight in self.regs.r32.iter().flat_map(|row| row.chunks_exact(8)) {
            hashers.iter_mut().zip(eight).for_each(|(hasher, x)| hasher.write_u32(*x));
        }
        for eight in self.regs.r64.iter().flat_map(|row| row.chunks_exact(8)) {
            hashers.iter_mut().zip(eight).for_each(|(hasher, x)| hasher.write_u64(*x));
        }
        hashers.iter().for_each(|h| hasher.write_u64(h.finish()));
        hasher.finish()
    }

    /// Number of the wave's first thread in its workgroup.
    pub(super) fn first_thread(&self) -> u32 {
        self.index * W as u32
    }

    fn set_mask(&mut self, mask: u64) {
        self.mask = mask;
        self.active = u64::from(mask.count_ones());
    }

    fn fault(&self, cx: &Context<'_>, pc: Pc, lane: u32, kind: FaultKind) -> Box<Fault> {
        Box::new(Fault { site: cx.site(pc, self.index, lane), kind })
    }

    #[cold]
    fn located(&self, cx: &Context<'_>, pc: Pc, Raised(lane, kind): Raised) -> Box<Fault> {
        self.fault(cx, pc, lane, *kind)
    }

    /// Runs until a barrier, the end, a fault, `fuel` instructions, or as long as it seems to get on. `CHECKED`: with a
    /// [`Watch`].
    pub(super) fn run<const CHECKED: bool>(
        &mut self,
        cx: &mut Context<'_>,
        code: &[Instr<W>],
        mut fuel: u64,
    ) -> Result<Stop, Box<Fault>> {
        let monitor = cx.watch.as_ref().filter(|_| CHECKED).map(|w| w.monitor());
        let checks_nan = CHECKED && cx.watch.as_ref().is_some_and(|w| w.checks().nan);
        loop {
            if fuel == 0 {
                return Ok(Stop::Preempted);
            }
            fuel -= 1;
            let pc = self.pc;
            self.pc += 1;
            self.steps += 1;
            self.lane_ops += self.active;
            let turn = if CHECKED {
                let step = Step { regs: &self.regs, mask: self.mask, wave: self.index, pc, steps: self.steps };
                monitor.as_deref().and_then(|monitor| watch::observe(monitor, cx, &step, &code[pc as usize]))
            } else {
                None
            };
            let (regs, mask) = (&mut self.regs, self.mask);
            let done = match code[pc as usize] {
                Instr::Map1 { f, dst, a, n } => f(regs, dst, a, n, mask),
                Instr::Map2 { f, dst, a, b, n } => f(regs, dst, [a, b], n, mask),
                Instr::Map3 { f, dst, a, b, c, n } => f(regs, dst, [a, b, c], n, mask),
                Instr::LdsLoad { dst, pointer, width, n, align } => {
                    let lds = &*cx.lds;
                    by_width!(width, access::lds_load(regs, lds, dst, pointer, (n, align), mask))
                }
                Instr::LdsStore { value, pointer, width, n, align } => {
                    let lds = &mut *cx.lds;
                    by_width!(width, access::lds_store(regs, lds, value, pointer, (n, align), mask))
                }
                Instr::Barrier {} => {
                    self.check_barrier(cx, code, pc)?;
                    return Ok(Stop::Barrier(pc));
                }
                Instr::Yield {} => {
                    self.back_edges = 0;
                    return Ok(Stop::Yielded);
                }
                Instr::Again { body } => {
                    self.check_steps(cx, pc)?;
                    self.pc = body;
                    self.back_edges += 1;
                    if self.back_edges >= BACK_EDGES {
                        self.back_edges = 0;
                        return Ok(Stop::Yielded);
                    }
                    Ok(())
                }
                Instr::Next { index, hi, ty, step: by, body } => {
                    self.check_steps(cx, pc)?;
                    let goes_on = step::next(&mut self.regs, index, hi, ty, by);
                    self.set_mask(mask & goes_on);
                    if self.mask != 0 {
                        self.pc = body;
                    }
                    Ok(())
                }
                Instr::End {} => return Ok(Stop::End),
                Instr::Fill { dst, class: Class::R32, n, bits } => {
                    regs.r32[dst as usize..(dst + n) as usize].fill([bits as u32; W]);
                    Ok(())
                }
                Instr::Fill { dst, class: Class::R64, n, bits } => {
                    regs.r64[dst as usize..(dst + n) as usize].fill([bits; W]);
                    Ok(())
                }
                Instr::Param { dst, class: Class::R32, param } => {
                    regs.r32[dst as usize] = [cx.scalars[param as usize] as u32; W];
                    Ok(())
                }
                Instr::Param { dst, class: Class::R64, param } => {
                    regs.r64[dst as usize] = [cx.scalars[param as usize]; W];
                    Ok(())
                }
                Instr::BufferParam { dst, param } => {
                    let buffer = cx.buffers[param as usize];
                    regs.r64[dst as usize] = [buffer.address(); W];
                    regs.r64[dst as usize + 1] = [buffer.len() as u64; W];
                    Ok(())
                }
                Instr::ThreadId { dst, axis } => {
                    regs.r32[dst as usize] = self.thread_ids[axis.index()];
                    Ok(())
                }
                Instr::BlockId { dst, axis } => {
                    regs.r32[dst as usize] = [block_id(cx, axis); W];
                    Ok(())
                }
                Instr::LaneId { dst } => {
                    regs.r32[dst as usize] = std::array::from_fn(|lane| lane as u32);
                    Ok(())
                }
                Instr::Clock { dst } => {
                    self.clock += CLOCK_STEP_NS;
                    regs.r64[dst as usize] = [self.clock; W];
                    Ok(())
                }
                Instr::Select { dst, condition, a, b, class, each, n } => {
                    by_class!(class, alu::select(regs, condition, each, dst, [a, b], n));
                    Ok(())
                }
                Instr::Join { dst, a, class, n, ratio, bits } => {
                    match class {
                        Class::R32 => alu::join::<u32, u32, W>(regs, dst, a, n, ratio, bits),
                        Class::R64 => alu::join::<u32, u64, W>(regs, dst, a, n, ratio, bits),
                    }
                    Ok(())
                }
                Instr::Split { dst, a, class, n, ratio, bits } => {
                    match class {
                        Class::R32 => alu::split_rows::<u32, u32, W>(regs, dst, a, n, ratio, bits),
                        Class::R64 => alu::split_rows::<u64, u32, W>(regs, dst, a, n, ratio, bits),
                    }
                    Ok(())
                }
                Instr::Encode { dst, a, scale, n, coding } => {
                    alu::encode(regs, dst, [a, scale], n, coding);
                    Ok(())
                }
                Instr::Decode { dst, a, scale, n, coding } => {
                    alu::decode(regs, dst, [a, scale], n, coding);
                    Ok(())
                }
                Instr::Pack { dst, a, n, codes, bits } => {
                    alu::pack(regs, dst, a, [n, codes, bits]);
                    Ok(())
                }
                Instr::Unpack { dst, a, n, bits } => {
                    alu::unpack(regs, dst, a, [n, bits]);
                    Ok(())
                }
                Instr::Insert { dst, old, a, shift, bits } => {
                    alu::insert(regs, dst, [old, a], [shift, bits]);
                    Ok(())
                }
                Instr::Move { dst, a, class, n, masked } => {
                    let mask = if masked { mask } else { all_lanes::<W>() };
                    by_class!(class, alu::move_rows(regs, dst, a, n, mask));
                    Ok(())
                }
                Instr::ExtractAt { dst, a, index, class, n } => {
                    by_class!(class, alu::extract_at(regs, dst, a, index, n, mask))
                }
                Instr::Ballot { dst, condition } => {
                    lanes::ballot(regs, dst, condition, mask);
                    Ok(())
                }
                Instr::ReadFirst { dst, a, class, n } => {
                    by_class!(class, lanes::read_first(regs, dst, a, n, mask));
                    Ok(())
                }
                Instr::ReadLane { dst, a, lane, class, n } => {
                    by_class!(class, lanes::read_lane(regs, dst, a, lane, n, mask))
                }
                Instr::Shuffle { dst, a, amount, op, class, n, width } => {
                    by_class!(class, lanes::shuffle(regs, (op, width), dst, a, amount, n, mask))
                }
                Instr::Partner { dst, a, class, n, offset, width } => {
                    by_class!(class, lanes::partner(regs, (offset, width), dst, a, n, mask))
                }
                Instr::Transpose { dst, a } => lanes::transpose(regs, dst, a, mask),
                Instr::Product { .. } | Instr::ScaledProduct { .. } => match Operands::of(&code[pc as usize]) {
                    Some((operands, n)) => cx.program.products[n as usize].run(regs, &operands, cx.mma, mask),
                    None => Ok(()),
                },
                Instr::Agree { a, class, workgroup } => {
                    let what = "value of `assume_uniform`";
                    let agreed = match class {
                        Class::R32 => lanes::uniform(&regs.r32[a as usize], mask, what),
                        Class::R64 => lanes::uniform(&regs.r64[a as usize], mask, what),
                    };
                    match agreed {
                        Ok(()) if workgroup => {
                            let first = mask.trailing_zeros() as usize % W;
                            let bits = match class {
                                Class::R32 => u64::from(regs.r32[a as usize][first]),
                                Class::R64 => regs.r64[a as usize][first],
                            };
                            match cx.promises.keep(pc, self.index, bits) {
                                true => Ok(()),
                                false => Err(Raised::new(first, FaultKind::NotUniformInWorkgroup { what })),
                            }
                        }
                        other => other,
                    }
                }
                Instr::Deal { dst, a, bits, row, n } => lanes::deal(regs, (bits, row, n), dst, a, mask),
                Instr::Assume { condition } => {
                    let broken = mask & !lanes_where(&regs.r32[condition as usize], |c| c != 0);
                    match broken {
                        0 => Ok(()),
                        _ => Err(Raised::new(broken.trailing_zeros() as usize, FaultKind::BrokenAssumption)),
                    }
                }
                Instr::LdsBase { dst, array } => {
                    regs.r64[dst as usize] = [lds::base(array); W];
                    Ok(())
                }
                Instr::PtrAdd { dst, pointer, count, space, kind, bytes } => {
                    step::ptr_add(regs, dst, pointer, count, (space, kind), bytes);
                    Ok(())
                }
                Instr::CheckBuffer { buffer, align } => step::check_buffer(regs, buffer, align, mask),
                Instr::ByteOffset { dst, offset, scalar, from } => {
                    let offsets = access::byte_offsets(regs, offset, from);
                    let scalar = &regs.r32[scalar as usize];
                    lanes::uniform(scalar, mask, "scalar offset").map(|()| {
                        // Below 0 is outside, whatever the scalar.
                        let sum = |i: usize| match offsets[i] {
                            below @ ..0 => below as u64,
                            at => i64::saturating_add(at, i64::from(scalar[i])) as u64,
                        };
                        regs.r64[dst as usize] = std::array::from_fn(sum);
                    })
                }
                Instr::LdsAddress { dst, pointer } => {
                    regs.r32[dst as usize] = regs.r64[pointer as usize].map(|p| cx.lds.address(p));
                    Ok(())
                }
                Instr::LdsPointer { dst, address } => {
                    regs.r64[dst as usize] = regs.r32[address as usize].map(lds::at_address);
                    Ok(())
                }
                Instr::BufferLoad { dst, buffer, offset, source, from, width, n, whole } => {
                    let (rows, at) = (access::made(regs, source, buffer), access::byte_offsets(regs, offset, from));
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Read, hint: 0 };
                    let place = op.place(source, &rows);
                    by_width!(width, op.buffer_load(regs, dst, place, &at, (n, whole), mask))
                }
                Instr::ScalarLoad { dst, buffer, offset, source, from, n } => {
                    let (rows, at) = (access::made(regs, source, buffer), access::byte_offsets(regs, offset, from));
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Read, hint: 0 };
                    let place = op.place(source, &rows);
                    op.scalar_load(regs, dst, place, &at, n, mask)
                }
                Instr::BufferStore { value, buffer, offset, source, from, width, n, whole } => {
                    let (rows, at) = (access::made(regs, source, buffer), access::byte_offsets(regs, offset, from));
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Write, hint: 0 };
                    let place = op.place(source, &rows);
                    by_width!(width, op.buffer_store(regs, value, place, &at, (n, whole), mask))
                }
                Instr::BufferRmw { dst, value, buffer, offset, f, source, from, class } => {
                    let (rows, at) = (access::made(regs, source, buffer), access::byte_offsets(regs, offset, from));
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Atomic, hint: 0 };
                    let place = op.place(source, &rows);
                    match class {
                        Class::R32 => {
                            let values = regs.r32[value as usize];
                            let step = |i: usize, old| f(old, values[i].into());
                            op.buffer_update::<u32, W, 4>(regs, dst, place, &at, step, mask)
                        }
                        Class::R64 => {
                            let values = regs.r64[value as usize];
                            op.buffer_update::<u64, W, 8>(regs, dst, place, &at, |i, old| f(old, values[i]), mask)
                        }
                    }
                }
                Instr::BufferCas { dst, expected, value, buffer, offset, source, from, class } => {
                    let (rows, at) = (access::made(regs, source, buffer), access::byte_offsets(regs, offset, from));
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Atomic, hint: 0 };
                    let place = op.place(source, &rows);
                    let [e, v] = [expected, value].map(|r| match class {
                        Class::R32 => regs.r32[r as usize].map(u64::from),
                        Class::R64 => regs.r64[r as usize],
                    });
                    let swap = |i: usize, old| if old == e[i] { v[i] } else { old };
                    match class {
                        Class::R32 => op.buffer_update::<u32, W, 4>(regs, dst, place, &at, swap, mask),
                        Class::R64 => op.buffer_update::<u64, W, 8>(regs, dst, place, &at, swap, mask),
                    }
                }
                Instr::CopyToLds { pointer, buffer, offset, source, from, bytes } => {
                    let (rows, at) = (access::made(regs, source, buffer), access::byte_offsets(regs, offset, from));
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Read, hint: 0 };
                    let place = op.place(source, &rows);
                    op.copy_to_lds(&regs.r64[pointer as usize], place, &at, bytes, mask)
                }
                Instr::GlobalLoad { dst, pointer, width, n, align, ordered } => {
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Read, hint: 0 };
                    by_width!(width, op.global_load(regs, (dst, pointer), (n, align), ordered, mask))
                }
                Instr::GlobalStore { value, pointer, width, n, align, ordered } => {
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Write, hint: 0 };
                    by_width!(width, op.global_store(regs, (value, pointer), (n, align), ordered, mask))
                }
                Instr::Rmw { dst, pointer, value, f, class, space } => {
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Atomic, hint: 0 };
                    let to = (dst, pointer);
                    match class {
                        Class::R32 => {
                            let values = regs.r32[value as usize];
                            op.update::<u32, W, 4>(regs, to, space, |i, old| f(old, values[i].into()), mask)
                        }
                        Class::R64 => {
                            let values = regs.r64[value as usize];
                            op.update::<u64, W, 8>(regs, to, space, |i, old| f(old, values[i]), mask)
                        }
                    }
                }
                Instr::Cas { dst, pointer, expected, value, class, space } => {
                    let mut op = Access { cx, pc, wave: self.index, kind: AccessKind::Atomic, hint: 0 };
                    let to = (dst, pointer);
                    match class {
                        Class::R32 => {
                            let [e, v] = [expected, value].map(|r| regs.r32[r as usize].map(u64::from));
                            let swap = |i: usize, old| if old == e[i] { v[i] } else { old };
                            op.update::<u32, W, 4>(regs, to, space, swap, mask)
                        }
                        Class::R64 => {
                            let [e, v] = [expected, value].map(|r| regs.r64[r as usize]);
                            let swap = |i: usize, old| if old == e[i] { v[i] } else { old };
                            op.update::<u64, W, 8>(regs, to, space, swap, mask)
                        }
                    }
                }
                Instr::Fence {} => {
                    fence(Ordering::SeqCst);
                    if let (Some(late), Mark::Fence(order, scope)) = (&mut cx.late, cx.program.marks[pc as usize])
                        && let Some(reach) = Reach::of(scope)
                    {
                        if releases(order) {
                            late.release(self.index, mask, reach);
                        }
                        late.order(self.index);
                    }
                    Ok(())
                }
                Instr::Drain {} => {
                    cx.lds.drain(self.index, mask);
                    if let (Some(late), Mark::Drain(scope)) = (&mut cx.late, cx.program.marks[pc as usize])
                        && let Some(reach) = Reach::of(scope)
                    {
                        late.drain(self.index, mask, reach);
                    }
                    Ok(())
                }
                Instr::WaitCount { vmcnt } => {
                    cx.lds.wait_count(self.index, vmcnt);
                    if let Some(late) = &mut cx.late {
                        late.wait_count(self.index, vmcnt);
                    }
                    Ok(())
                }
                Instr::AsyncMark {} => {
                    cx.lds.mark(self.index, mask);
                    Ok(())
                }
                Instr::WaitAsyncMark { groups } => {
                    cx.lds.wait_mark(self.index, mask, groups);
                    Ok(())
                }
                Instr::If { condition, otherwise } => {
                    let holds = lanes_where(&regs.r32[condition as usize], |c| c != 0);
                    self.frames.push(Frame { saved: mask, others: mask & !holds });
                    self.narrow(mask & holds, otherwise);
                    Ok(())
                }
                Instr::Else { end } => {
                    self.narrow(self.frames.last().map_or(0, |f| f.others), end);
                    Ok(())
                }
                Instr::Loop { index, hi, ty, exit } => {
                    let enters = step::below(regs, index, hi, ty);
                    self.frames.push(Frame { saved: mask, others: 0 });
                    self.narrow(mask & enters, exit);
                    Ok(())
                }
                Instr::While {} => {
                    self.frames.push(Frame { saved: mask, others: 0 });
                    Ok(())
                }
                Instr::Test { condition, exit } => {
                    let holds = lanes_where(&regs.r32[condition as usize], |c| c != 0);
                    self.narrow(mask & holds, exit);
                    Ok(())
                }
                Instr::Pop {} => {
                    let saved = self.frames.pop().map_or(0, |f| f.saved);
                    self.set_mask(saved);
                    Ok(())
                }
            };
            drop(turn);
            if let Err(raised) = done {
                return Err(self.located(cx, pc, raised));
            }
            if checks_nan {
                watch::check_nan(cx, &self.regs, mask, (self.index, pc), &code[pc as usize]);
            }
        }
    }

    /// Goes on with the lanes of `mask`, or at `exit` if there are none.
    fn narrow(&mut self, mask: u64, exit: Pc) {
        self.set_mask(mask);
        if mask == 0 {
            self.pc = exit;
        }
    }

    /// A loop that ran too long is endless.
    #[inline(always)]
    fn check_steps(&self, cx: &Context<'_>, pc: Pc) -> Result<(), Box<Fault>> {
        if self.steps <= cx.step_limit {
            return Ok(());
        }
        let kind = FaultKind::StepLimit { limit: cx.step_limit };
        Err(self.fault(cx, pc, self.mask.trailing_zeros(), kind))
    }

    /// All threads of the wave must be at a barrier.
    fn check_barrier(&self, cx: &Context<'_>, code: &[Instr<W>], pc: Pc) -> Result<(), Box<Fault>> {
        let absent = self.live & !self.mask;
        if absent == 0 {
            return Ok(());
        }
        let lane = absent.trailing_zeros();
        let missing = cx.program.thread(self.first_thread() + lane);
        // The branch or loop that the lane came to last.
        let left = self.frames.iter().rposition(|f| f.saved >> lane & 1 == 1).unwrap_or(0);
        let opened = opened_around(code, pc);
        let at = cx.program.locations[opened.get(left).map_or(pc, |at| *at) as usize];
        let kind = FaultKind::BarrierNotReached { missing, absence: Absence::PassedBy(at) };
        Err(self.fault(cx, pc, self.mask.trailing_zeros(), kind))
    }
}

fn block_id(cx: &Context<'_>, axis: Axis) -> u32 {
    cx.block[axis.index()]
}
