//! The executor: one wave, lanes in lock step.

use lathe_dsl::ir::Axis;

use super::alu::{self, Row, lanes_where};
use super::error::{Absence, AccessKind, BufferAccess, Fault, FaultKind, FindingKind, Site};
use super::findings::Findings;
use super::lds::{self, Lds};
use super::memory::GlobalBuffer;
use super::program::{Instr, Pc, Program, Reg, Width};

/// What a workgroup's waves share.
pub(super) struct Context<'a> {
    pub(super) program: &'a Program,
    /// By parameter; an empty buffer where the parameter is a scalar.
    pub(super) buffers: &'a [&'a GlobalBuffer],
    /// By parameter; 0 where the parameter is a buffer.
    pub(super) scalars: &'a [u64],
    /// Coordinates of the workgroup, and its number.
    pub(super) block: [u32; 3],
    pub(super) block_number: u64,
    pub(super) lds: &'a mut Lds,
    pub(super) findings: &'a mut Findings,
    pub(super) strict_bounds: bool,
    pub(super) step_limit: u64,
}

impl Context<'_> {
    /// The site of instruction `pc` in lane `lane` of wave `wave`.
    pub(super) fn site(&self, pc: Pc, wave: u32, lane: u32) -> Site {
        Site {
            location: self.program.locations[pc as usize],
            block: self.block,
            thread: self.program.thread(wave * self.program.wave + lane),
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
}

/// An open `If` or `Loop`.
struct Frame {
    /// Mask to go back to.
    saved: u64,
    /// Lanes that `Else` continues with.
    others: u64,
}

/// A fault of one lane, before its site is known.
struct Raised(u32, Box<FaultKind>);

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
    r32: Vec<Row<u32, W>>,
    r64: Vec<Row<u64, W>>,
    thread_ids: [Row<u32, W>; 3],
    /// Instructions executed in this workgroup.
    steps: u64,
    /// Instructions executed, each counted once an active lane, over all workgroups.
    pub(super) lane_ops: u64,
    /// Instructions executed over all workgroups, this one not counted.
    past_steps: u64,
}

/// Mask with all `W` lanes.
const fn all_lanes<const W: usize>() -> u64 {
    u64::MAX >> (64 - W)
}

/// Calls `f` on every lane of `mask`, in order.
#[inline(always)]
fn each_lane<const W: usize>(mask: u64, mut f: impl FnMut(usize) -> Result<(), Raised>) -> Result<(), Raised> {
    let mut rest = mask;
    while rest != 0 {
        f(rest.trailing_zeros() as usize % W)?;
        rest &= rest - 1;
    }
    Ok(())
}

/// An element of a row.
trait Cell: Copy {
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl Cell for u32 {
    fn from_bits(bits: u64) -> Self {
        bits as u32
    }
    fn bits(self) -> u64 {
        self.into()
    }
}

impl Cell for u64 {
    fn from_bits(bits: u64) -> Self {
        bits
    }
    fn bits(self) -> u64 {
        self
    }
}

#[inline(always)]
fn lds_load<C: Cell, const W: usize, const B: usize>(
    rows: &mut [Row<C, W>],
    lds: &Lds,
    dst: Reg,
    pointers: &Row<u64, W>,
    n: u32,
    mask: u64,
) -> Result<(), Raised> {
    let rows = &mut rows[dst as usize..(dst + n) as usize];
    each_lane::<W>(mask, |lane| {
        let bytes = lds.load::<B>(pointers[lane], rows.len()).map_err(|kind| Raised(lane as u32, kind))?;
        for (row, element) in rows.iter_mut().zip(bytes.chunks_exact(B)) {
            let mut bits = [0; 8];
            bits[..B].copy_from_slice(element);
            row[lane] = C::from_bits(u64::from_le_bytes(bits));
        }
        Ok(())
    })
}

#[inline(always)]
fn lds_store<C: Cell, const W: usize, const B: usize>(
    rows: &[Row<C, W>],
    lds: &mut Lds,
    value: Reg,
    pointers: &Row<u64, W>,
    n: u32,
    mask: u64,
) -> Result<(), Raised> {
    let rows = &rows[value as usize..(value + n) as usize];
    each_lane::<W>(mask, |lane| {
        let bytes = lds.store::<B>(pointers[lane], rows.len()).map_err(|kind| Raised(lane as u32, kind))?;
        for (row, element) in rows.iter().zip(bytes.chunks_exact_mut(B)) {
            element.copy_from_slice(&row[lane].bits().to_le_bytes()[..B]);
        }
        Ok(())
    })
}

/// One buffer instruction of one wave.
struct BufferOp<'c, 'a> {
    cx: &'c mut Context<'a>,
    pc: Pc,
    wave: u32,
    param: u32,
    access: AccessKind,
    scale: u32,
}

impl BufferOp<'_, '_> {
    /// Records that lane `lane` did something unusual; with strict bounds, leaving the buffer is a fault.
    #[cold]
    fn unusual(&mut self, kind: FindingKind, lane: usize, offset: u64, bytes: u32) -> Result<(), Raised> {
        let access = BufferAccess {
            kind,
            access: self.access,
            buffer: self.cx.program.params[self.param as usize].name,
            offset,
            bytes,
            extent: self.cx.buffers[self.param as usize].len() as u64,
        };
        if self.cx.strict_bounds && matches!(kind, FindingKind::OutOfRange | FindingKind::Straddle) {
            return Err(Raised(lane as u32, Box::new(FaultKind::Buffer(access))));
        }
        let site = self.cx.site(self.pc, self.wave, lane as u32);
        let thread = self.wave * self.cx.program.wave + lane as u32;
        self.cx.findings.add(self.pc, (self.cx.block_number, thread), site, access);
        Ok(())
    }

    /// The byte offset of an access of `n` elements of `B` bytes, or `None` if it does not end within the buffer.
    #[inline(always)]
    fn locate<const B: usize>(&mut self, lane: usize, offset: u32, n: usize) -> Result<Option<usize>, Raised> {
        let offset = u64::from(offset) * u64::from(self.scale);
        let bytes = (n * B) as u64;
        let extent = self.cx.buffers[self.param as usize].len() as u64;
        if offset + bytes > extent {
            let kind = if offset < extent { FindingKind::Straddle } else { FindingKind::OutOfRange };
            self.unusual(kind, lane, offset, bytes as u32)?;
            return Ok(None);
        }
        if !offset.is_multiple_of(B as u64) {
            self.unusual(FindingKind::Misaligned, lane, offset, bytes as u32)?;
        }
        Ok(Some(offset as usize))
    }

    #[inline(always)]
    fn load<C: Cell, const W: usize, const B: usize>(
        &mut self,
        rows: &mut [Row<C, W>],
        dst: Reg,
        offsets: &Row<u32, W>,
        n: u32,
        mask: u64,
    ) -> Result<(), Raised> {
        let buffer = self.cx.buffers[self.param as usize];
        let rows = &mut rows[dst as usize..(dst + n) as usize];
        each_lane::<W>(mask, |lane| {
            match self.locate::<B>(lane, offsets[lane], rows.len())? {
                Some(at) => {
                    let bytes = rows.len() * B;
                    if !buffer.is_written(at, bytes) {
                        self.unusual(FindingKind::Uninitialised, lane, at as u64, bytes as u32)?;
                    }
                    buffer.load::<B>(at, rows.len(), |e, bits| rows[e][lane] = C::from_bits(bits));
                }
                None => rows.iter_mut().for_each(|row| row[lane] = C::from_bits(0)),
            }
            Ok(())
        })
    }

    #[inline(always)]
    fn store<C: Cell, const W: usize, const B: usize>(
        &mut self,
        rows: &[Row<C, W>],
        value: Reg,
        offsets: &Row<u32, W>,
        n: u32,
        mask: u64,
    ) -> Result<(), Raised> {
        let buffer = self.cx.buffers[self.param as usize];
        let rows = &rows[value as usize..(value + n) as usize];
        each_lane::<W>(mask, |lane| {
            if let Some(at) = self.locate::<B>(lane, offsets[lane], rows.len())? {
                buffer.store::<B>(at, rows.len(), |e| rows[e][lane].bits());
            }
            Ok(())
        })
    }
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
            r32: vec![[0; W]; program.rows[0] as usize],
            r64: vec![[0; W]; program.rows[1] as usize],
            thread_ids: std::array::from_fn(|axis| std::array::from_fn(|lane| thread(lane)[axis])),
            steps: 0,
            lane_ops: 0,
            past_steps: 0,
        }
    }

    /// Back to the kernel's start, for the next workgroup.
    pub(super) fn reset(&mut self) {
        self.past_steps += self.steps;
        self.steps = 0;
        self.pc = 0;
        self.frames.clear();
        self.set_mask(self.live);
    }

    /// Instructions executed over all workgroups.
    pub(super) fn instructions(&self) -> u64 {
        self.past_steps + self.steps
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

    /// Runs until a barrier, the end, a fault, or `fuel` instructions.
    pub(super) fn run(&mut self, cx: &mut Context<'_>, mut fuel: u64) -> Result<Stop, Box<Fault>> {
        let program = cx.program;
        loop {
            if fuel == 0 {
                return Ok(Stop::Preempted);
            }
            fuel -= 1;
            let pc = self.pc;
            self.pc += 1;
            self.steps += 1;
            self.lane_ops += self.active;
            match program.code[pc as usize] {
                Instr::Fill32 { dst, n, bits } => self.r32[dst as usize..(dst + n) as usize].fill([bits; W]),
                Instr::Fill64 { dst, n, bits } => self.r64[dst as usize..(dst + n) as usize].fill([bits; W]),
                Instr::Param32 { dst, param } => self.r32[dst as usize] = [cx.scalars[param as usize] as u32; W],
                Instr::Param64 { dst, param } => self.r64[dst as usize] = [cx.scalars[param as usize]; W],
                Instr::ThreadId { dst, axis } => self.r32[dst as usize] = self.thread_ids[axis.index()],
                Instr::BlockId { dst, axis } => self.r32[dst as usize] = [block_id(cx, axis); W],
                Instr::Unary32 { op, dst, a, n } => alu::unary32(&mut self.r32, op, dst, a, n, self.mask),
                Instr::Unary64 { op, dst, a, n } => alu::unary64(&mut self.r64, op, dst, a, n),
                Instr::Binary32 { op, dst, a, b, n } => alu::binary32(&mut self.r32, op, dst, a, b, n),
                Instr::Binary64 { op, dst, a, b, n } => alu::binary64(&mut self.r64, op, dst, a, b, n),
                Instr::Divide32 { op, dst, a, b, n } => alu::divide32(&mut self.r32, op, dst, a, b, n, self.mask)
                    .map_err(|lane| self.fault(cx, pc, lane, FaultKind::DivisionByZero))?,
                Instr::Divide64 { op, dst, a, b, n } => alu::divide64(&mut self.r64, op, dst, a, b, n, self.mask)
                    .map_err(|lane| self.fault(cx, pc, lane, FaultKind::DivisionByZero))?,
                Instr::Compare32 { relation, kind, dst, a, b, n } => {
                    alu::compare32(&mut self.r32, (relation, kind), dst, a, b, n);
                }
                Instr::Compare64 { relation, signed, dst, a, b, n } => {
                    alu::compare64(&mut self.r32, &self.r64, (relation, signed), dst, a, b, n);
                }
                Instr::Select32 { dst, condition, a, b, n } => {
                    let condition = self.r32[condition as usize];
                    alu::select(&mut self.r32, &condition, dst, a, b, n);
                }
                Instr::Select64 { dst, condition, a, b, n } => {
                    alu::select(&mut self.r64, &self.r32[condition as usize], dst, a, b, n);
                }
                Instr::Convert { op, dst, a, n } => alu::convert(&mut self.r32, &mut self.r64, op, dst, a, n),
                Instr::Join32 { dst, a, n, ratio, bits } => alu::join32(&mut self.r32, dst, a, n, ratio, bits),
                Instr::Join64 { dst, a, n, ratio, bits } => {
                    alu::join64(&mut self.r64, &self.r32, dst, a, n, ratio, bits);
                }
                Instr::Split32 { dst, a, n, ratio, bits } => alu::split32(&mut self.r32, dst, a, n, ratio, bits),
                Instr::Split64 { dst, a, n, ratio, bits } => {
                    alu::split64(&mut self.r32, &self.r64, dst, a, n, ratio, bits);
                }
                Instr::Move32 { dst, a, n, masked } => {
                    let mask = if masked { self.mask } else { all_lanes::<W>() };
                    alu::move_rows(&mut self.r32, dst, a, n, mask);
                }
                Instr::Move64 { dst, a, n, masked } => {
                    let mask = if masked { self.mask } else { all_lanes::<W>() };
                    alu::move_rows(&mut self.r64, dst, a, n, mask);
                }
                Instr::LdsBase { dst, array } => self.r64[dst as usize] = [lds::base(array); W],
                Instr::PtrAdd { dst, pointer, count, bytes } => {
                    let (pointer, count) = (&self.r64[pointer as usize], &self.r32[count as usize]);
                    self.r64[dst as usize] = std::array::from_fn(|i| lds::advance(pointer[i], count[i], bytes));
                }
                Instr::LdsLoad { dst, pointer, width, n } => {
                    let pointers = self.r64[pointer as usize];
                    let (r32, r64, lds, mask) = (&mut self.r32, &mut self.r64, &*cx.lds, self.mask);
                    match width {
                        Width::B16 => lds_load::<u32, W, 2>(r32, lds, dst, &pointers, n, mask),
                        Width::B32 => lds_load::<u32, W, 4>(r32, lds, dst, &pointers, n, mask),
                        Width::B64 => lds_load::<u64, W, 8>(r64, lds, dst, &pointers, n, mask),
                    }
                    .map_err(|Raised(lane, kind)| self.fault(cx, pc, lane, *kind))?;
                }
                Instr::LdsStore { value, pointer, width, n } => {
                    let pointers = self.r64[pointer as usize];
                    let (r32, r64, lds, mask) = (&self.r32, &self.r64, &mut *cx.lds, self.mask);
                    match width {
                        Width::B16 => lds_store::<u32, W, 2>(r32, lds, value, &pointers, n, mask),
                        Width::B32 => lds_store::<u32, W, 4>(r32, lds, value, &pointers, n, mask),
                        Width::B64 => lds_store::<u64, W, 8>(r64, lds, value, &pointers, n, mask),
                    }
                    .map_err(|Raised(lane, kind)| self.fault(cx, pc, lane, *kind))?;
                }
                Instr::BufferLoad { dst, offset, param, scale, width, n } => {
                    let offsets = self.r32[offset as usize];
                    let (r32, r64, mask) = (&mut self.r32, &mut self.r64, self.mask);
                    let mut op = BufferOp { cx, pc, wave: self.index, param, access: AccessKind::Read, scale };
                    match width {
                        Width::B16 => op.load::<u32, W, 2>(r32, dst, &offsets, n, mask),
                        Width::B32 => op.load::<u32, W, 4>(r32, dst, &offsets, n, mask),
                        Width::B64 => op.load::<u64, W, 8>(r64, dst, &offsets, n, mask),
                    }
                    .map_err(|Raised(lane, kind)| self.fault(cx, pc, lane, *kind))?;
                }
                Instr::BufferStore { value, offset, param, scale, width, n } => {
                    let offsets = &self.r32[offset as usize];
                    let (r32, r64, mask) = (&self.r32, &self.r64, self.mask);
                    let mut op = BufferOp { cx, pc, wave: self.index, param, access: AccessKind::Write, scale };
                    match width {
                        Width::B16 => op.store::<u32, W, 2>(r32, value, offsets, n, mask),
                        Width::B32 => op.store::<u32, W, 4>(r32, value, offsets, n, mask),
                        Width::B64 => op.store::<u64, W, 8>(r64, value, offsets, n, mask),
                    }
                    .map_err(|Raised(lane, kind)| self.fault(cx, pc, lane, *kind))?;
                }
                Instr::Barrier => {
                    let absent = self.live & !self.mask;
                    if absent != 0 {
                        let missing = program.thread(self.first_thread() + absent.trailing_zeros());
                        let kind = FaultKind::BarrierNotReached { missing, absence: Absence::PassedBy };
                        return Err(self.fault(cx, pc, self.mask.trailing_zeros(), kind));
                    }
                    return Ok(Stop::Barrier(pc));
                }
                Instr::If { condition, otherwise } => {
                    let holds = lanes_where(&self.r32[condition as usize], |c| c != 0);
                    self.frames.push(Frame { saved: self.mask, others: self.mask & !holds });
                    self.set_mask(self.mask & holds);
                    if self.mask == 0 {
                        self.pc = otherwise;
                    }
                }
                Instr::Else { end } => {
                    self.set_mask(self.frames.last().map_or(0, |f| f.others));
                    if self.mask == 0 {
                        self.pc = end;
                    }
                }
                Instr::Loop { index, hi, exit } => {
                    self.frames.push(Frame { saved: self.mask, others: 0 });
                    let (index, hi) = (&self.r32[index as usize], &self.r32[hi as usize]);
                    let enters: Row<bool, W> = std::array::from_fn(|i| index[i] < hi[i]);
                    self.set_mask(self.mask & lanes_where(&enters, |b| b));
                    if self.mask == 0 {
                        self.pc = exit;
                    }
                }
                Instr::Next { index, hi, step, body } => {
                    if self.steps > cx.step_limit {
                        let kind = FaultKind::StepLimit { limit: cx.step_limit };
                        return Err(self.fault(cx, pc, self.mask.trailing_zeros(), kind));
                    }
                    let hi = self.r32[hi as usize];
                    let index = &mut self.r32[index as usize];
                    // Past the type's end means past `hi`.
                    let goes_on: Row<bool, W> = std::array::from_fn(|i| {
                        let (next, wrapped) = index[i].overflowing_add(step);
                        index[i] = next;
                        !wrapped && next < hi[i]
                    });
                    self.set_mask(self.mask & lanes_where(&goes_on, |b| b));
                    if self.mask != 0 {
                        self.pc = body;
                    }
                }
                Instr::Pop => {
                    let saved = self.frames.pop().map_or(0, |f| f.saved);
                    self.set_mask(saved);
                }
                Instr::End => return Ok(Stop::End),
            }
        }
    }
}

fn block_id(cx: &Context<'_>, axis: Axis) -> u32 {
    cx.block[axis.index()]
}
