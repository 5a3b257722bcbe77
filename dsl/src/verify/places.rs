//! Accesses that provably go wrong wherever they run: outside their LDS array or buffer, or misaligned.
//!
//! Where control flow decides whether they run, a buffer access that is outside gets a warning only: outside a load gives 0 and a store does
//! nothing, and a guard may well be there for that. What provably never runs is not looked at.

use super::residues::{Residue, Residues};
use crate::error::{Refusal, Warning};
use crate::facts::{ByteRange, Fact, Facts, buffer_extent};
use crate::ir::{Block, Inst, Kernel, Memory, OffsetUnit, Op, Order, ParamKind, Type, Value};

/// Refuses accesses whose place is known well enough to be wrong, and warns of those that may be meant.
pub(super) fn check(kernel: &Kernel, facts: &Facts) -> Result<Vec<Warning>, Refusal> {
    let residues = Residues::new(kernel, facts);
    let mut walk = Walk { kernel, facts, residues, places: vec![None; kernel.values.len()], warnings: vec![] };
    walk.block(&kernel.body, true)?;
    Ok(walk.warnings)
}

/// What a pointer points into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// An LDS array.
    Lds(u32),
    /// The buffer that a parameter is.
    Param(u32),
}

/// Where a pointer points: `fixed` bytes, and a distance of `min` to `max` bytes that is a multiple of `2^zeros`, behind the
/// root's start.
#[derive(Clone, Copy)]
struct Place {
    root: Root,
    fixed: i128,
    min: i128,
    max: i128,
    zeros: u32,
}

impl Place {
    fn start(root: Root) -> Self {
        Self { root, fixed: 0, min: 0, max: 0, zeros: u32::MAX }
    }

    /// So many elements of `bytes` bytes further.
    fn advanced(self, count: Fact, residue: Residue, bytes: u32) -> Self {
        let size = i128::from(bytes);
        match count.single() {
            Some(n) => Self { fixed: self.fixed + n * size, ..self },
            None => Self {
                root: self.root,
                fixed: self.fixed + residue.fixed * size,
                min: self.min + (count.min - residue.fixed) * size,
                max: self.max + (count.max - residue.fixed) * size,
                zeros: self.zeros.min(residue.zeros + bytes.trailing_zeros()),
            },
        }
    }

    /// Whether it surely is no multiple of `align` bytes, if its root is.
    fn is_misaligned(&self, align: u32) -> bool {
        self.zeros >= align.trailing_zeros() && self.fixed.rem_euclid(align.into()) != 0
    }
}

/// Whether control flow comes to a region, from before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Never,
    Perhaps,
    Surely,
}

struct Walk<'k> {
    kernel: &'k Kernel,
    facts: &'k Facts,
    residues: Residues<'k>,
    /// By value: where pointers point, if that is known.
    places: Vec<Option<Place>>,
    warnings: Vec<Warning>,
}

/// What is wrong with an access.
enum Wrong {
    /// Nothing comes of it on any device.
    Idle(String),
    /// It does something else than what was meant, or differs between devices.
    Bad(String),
}

impl From<String> for Wrong {
    fn from(message: String) -> Self {
        Self::Bad(message)
    }
}

impl Walk<'_> {
    /// `certain`: some thread surely comes by.
    fn block(&mut self, block: &Block, certain: bool) -> Result<(), Refusal> {
        for inst in &block.insts {
            let location = Some(self.kernel.location(inst.number));
            match self.inst(inst) {
                Ok(()) => {}
                Err(Wrong::Idle(message)) if !certain => self.warnings.push(Warning { location, message }),
                Err(Wrong::Idle(message) | Wrong::Bad(message)) => return Err(Refusal { location, message }),
            }
            for (region, runs) in inst.op.blocks().into_iter().zip(self.runs(&inst.op)) {
                if runs == Runs::Never {
                    continue;
                }
                if let Op::Native { args, .. } = &inst.op {
                    for (p, a) in region.params.iter().zip(args) {
                        self.places[p.index()] = self.places[a.index()];
                    }
                }
                self.block(region, certain && runs == Runs::Surely)?;
            }
            if let [result] = inst.results[..] {
                self.places[result.index()] = self.made(&inst.op);
                self.residues.made(&inst.op, result);
            }
        }
        Ok(())
    }

    /// Whether each region of an operation runs.
    fn runs(&self, op: &Op) -> Vec<Runs> {
        match op {
            Op::If { condition, .. } => match self.facts.get(*condition).single() {
                Some(0) => vec![Runs::Never, Runs::Surely],
                Some(_) => vec![Runs::Surely, Runs::Never],
                None => vec![Runs::Perhaps, Runs::Perhaps],
            },
            Op::For { lo, hi, .. } => {
                let (lo, hi) = (self.facts.get(*lo), self.facts.get(*hi));
                vec![match (hi.max <= lo.min, lo.max < hi.min) {
                    (true, _) => Runs::Never,
                    (_, true) => Runs::Surely,
                    _ => Runs::Perhaps,
                }]
            }
            Op::While { .. } => vec![Runs::Surely, Runs::Perhaps],
            op => vec![Runs::Surely; op.blocks().len()],
        }
    }

    /// Where the pointer points that an operation makes.
    fn made(&self, op: &Op) -> Option<Place> {
        let place = |v: &Value| self.places[v.index()];
        match op {
            Op::LdsBase(array) => Some(Place::start(Root::Lds(*array))),
            Op::BufferPtr(buffer) => Some(Place::start(Root::Param(buffer.0))),
            Op::PtrCast(p) => place(p),
            Op::PtrAdd(p, n) => {
                let bytes = self.kernel.ty(*p).scalar().bytes();
                Some(place(p)?.advanced(self.facts.get(*n), self.residues.get(*n), bytes))
            }
            _ => None,
        }
    }

    fn inst(&self, inst: &Inst) -> Result<(), Wrong> {
        let name = inst.op.def().name;
        let result = || inst.results.first().map(|r| self.kernel.ty(*r));
        match &inst.op {
            Op::PtrLoad { pointer, memory } => self.pointed(name, *pointer, result(), memory),
            Op::PtrStore { value, pointer, memory } => {
                self.pointed(name, *pointer, Some(self.kernel.ty(*value)), memory)
            }
            Op::AtomicRmw { pointer, value, order, .. } | Op::AtomicCas { pointer, value, order, .. } => {
                self.pointed(name, *pointer, Some(self.kernel.ty(*value)), &Memory { order: *order, ..Memory::new() })
            }
            Op::BufferLoad { buffer, offset, unit, scalar, mask, .. } => match result() {
                Some(data) => self.buffered(name, (*buffer, *offset, *unit, *scalar), *mask, data),
                None => Ok(()),
            },
            Op::SBufferLoad { buffer, offset, unit } => match result() {
                Some(data) => self.buffered(name, (*buffer, *offset, *unit, None), None, data),
                None => Ok(()),
            },
            Op::BufferStore { value, buffer, offset, unit, scalar, mask, .. }
            | Op::BufferAtomic { value, buffer, offset, unit, scalar, mask, .. }
            | Op::BufferAtomicCas { value, buffer, offset, unit, scalar, mask, .. } => {
                self.buffered(name, (*buffer, *offset, *unit, *scalar), *mask, self.kernel.ty(*value))
            }
            Op::CopyToLds { buffer, offset, pointer, unit, scalar, bytes, .. } => {
                let elem = Type::Scalar(self.kernel.ty(*pointer).scalar());
                let range = self.facts.byte_range(*offset, *unit, elem);
                self.in_buffer(name, *buffer, range, *scalar, *bytes)?;
                self.in_lds(name, *pointer, *bytes)?;
                self.aligned(name, *pointer, *bytes)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An access of `data` through a pointer.
    fn pointed(&self, name: &str, pointer: Value, data: Option<Type>, memory: &Memory) -> Result<(), Wrong> {
        let Some(data) = data else { return Ok(()) };
        self.in_lds(name, pointer, data.bytes())?;
        let own = if memory.order == Order::Plain { data.scalar().bytes() } else { data.bytes() };
        self.aligned(name, pointer, memory.align.unwrap_or(own))?;
        Ok(())
    }

    /// An access of `data` in a buffer, at an offset and a scalar offset.
    fn buffered(
        &self,
        name: &str,
        (buffer, offset, unit, scalar): (Value, Value, OffsetUnit, Option<Value>),
        mask: Option<Value>,
        data: Type,
    ) -> Result<(), Wrong> {
        // What a mask leaves out does not happen.
        if mask.is_some() {
            return Ok(());
        }
        let range = self.facts.byte_range(offset, unit, data);
        self.in_buffer(name, buffer, range, scalar, data.bytes())?;
        let size = data.scalar().bytes();
        let residue = match unit {
            OffsetUnit::Bytes => self.residues.get(offset),
            OffsetUnit::Elements => self.residues.get(offset).times(size.into()),
        };
        let residue = scalar.map_or(residue, |s| residue.plus(self.residues.get(s)));
        match residue.rest(size) {
            Some(rest) if rest != 0 => Err(Wrong::Bad(format!(
                "`{name}` of {data} at a multiple of {size} bytes plus {rest} of its buffer; every element must lie at a multiple \
                 of its size: move it, or access smaller elements"
            ))),
            _ => Ok(()),
        }
    }

    fn in_lds(&self, name: &str, pointer: Value, bytes: u32) -> Result<(), String> {
        let Some(place @ Place { root: Root::Lds(array), .. }) = self.places[pointer.index()] else { return Ok(()) };
        let Some(array) = self.kernel.lds.get(array as usize) else { return Ok(()) };
        let size = i128::from(array.len) * i128::from(array.elem.bytes());
        let (first, last) = (place.fixed + place.min, place.fixed + place.max);
        if last >= 0 && first + i128::from(bytes) <= size {
            return Ok(());
        }
        let (at, name_of) = (places(first, last), array.name);
        Err(format!(
            "`{name}` of {bytes} bytes at {at} of LDS array `{name_of}`, which has {size} bytes; make the array larger or the \
             index smaller"
        ))
    }

    fn aligned(&self, name: &str, pointer: Value, align: u32) -> Result<(), String> {
        let Some(place) = self.places[pointer.index()] else { return Ok(()) };
        let (what, start) = match place.root {
            Root::Lds(array) => match self.kernel.lds.get(array as usize) {
                Some(array) => (format!("LDS array `{}`", array.name), array.align),
                None => return Ok(()),
            },
            Root::Param(param) => match self.kernel.params.get(param as usize).map(|p| (p.name, p.kind)) {
                Some((name, ParamKind::Buffer { align, .. })) => (format!("buffer `{name}`"), align),
                _ => return Ok(()),
            },
        };
        // Beyond the alignment of the start nothing is known.
        let known = align.min(start);
        if !place.is_misaligned(known) {
            return Ok(());
        }
        let rest = place.fixed.rem_euclid(known.into());
        Err(format!(
            "`{name}` aligned to {align} bytes at a multiple of {known} bytes plus {rest} of {what}; promise no more than the \
             place keeps by `align`, or move it"
        ))
    }

    /// A buffer access that begins in `range`, without its scalar offset.
    fn in_buffer(
        &self,
        name: &str,
        buffer: Value,
        range: ByteRange,
        scalar: Option<Value>,
        bytes: u32,
    ) -> Result<(), Wrong> {
        let Some(size) = buffer_extent(self.kernel, buffer).map(i128::from) else { return Ok(()) };
        let whole = scalar.map_or(range, |s| range.plus(self.facts.get(s)));
        // What is empty may be so by the build key.
        if size == 0 || (range.max >= 0 && whole.min + i128::from(bytes) <= size) {
            return Ok(());
        }
        // A scalar offset brings no access back that begins before the buffer.
        let at = if range.max < 0 { places(range.min, range.max) } else { places(whole.min, whole.max) };
        let buffer = self.kernel.params[buffer.index()].name;
        Err(Wrong::Idle(format!(
            "`{name}` of {bytes} bytes at {at} of buffer `{buffer}`, which has {size} bytes, whatever thread it is; it would \
             never touch the buffer: make the offset smaller, or mask the access"
        )))
    }
}

/// The bytes where an access may begin.
fn places(first: i128, last: i128) -> String {
    if first == last { format!("byte {first}") } else { format!("bytes {first} to {last}") }
}
