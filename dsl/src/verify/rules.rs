//! The rules of each operation: operands, results, attributes. What its regions take and hand out is in
//! [`super::regions`].

use super::memory::{Does, Place, accessible, address_of, how, scalar_loadable, through};
use super::{MAX_MARK, MAX_VECTOR, Scope, lacks, narrow};
use crate::ir::{AtomicKind, Class, Inst, Op, Order, Scalar, Scope as Threads, Space, TEXEL, Type};

/// Bits of the instruction classes that AMD's scheduler knows.
const SCHED_CLASSES: u32 = 0x7FF;

/// One type is the other.
pub(super) fn same(want: Type, what: &str, got: Type) -> Result<(), String> {
    if want == got { Ok(()) } else { Err(format!("{what} is {got} where {want} is wanted")) }
}

/// One element a lane.
pub(super) fn scalar(what: &str, ty: Type) -> Result<(), String> {
    if matches!(ty, Type::Scalar(_)) { Ok(()) } else { Err(format!("{what} is {ty} where one element is wanted")) }
}

/// An offset of a buffer access.
pub(super) fn index(what: &str, ty: Type) -> Result<(), String> {
    one_of(what, ty, Class::U32.or(Class::IDX))
}

/// One element of some types.
fn one_of(what: &str, ty: Type, allowed: Class) -> Result<(), String> {
    match ty {
        Type::Scalar(s) if allowed.contains(s) => Ok(()),
        other => Err(format!("{what} is {other}; allowed are {allowed}")),
    }
}

/// A number from 0.
fn at_most(what: &str, n: u32, max: u32) -> Result<(), String> {
    if n <= max { Ok(()) } else { Err(format!("{what} {n}; allowed are 0 to {max}")) }
}

impl Scope<'_> {
    /// Checks one operation, its regions aside.
    pub(super) fn inst(&self, inst: &Inst) -> Result<(), String> {
        let results = inst.results.iter().map(|r| self.declared(*r)).collect::<Result<Vec<_>, _>>()?;
        let operands = inst.op.operands().into_iter().map(|v| self.ty(v)).collect::<Result<Vec<_>, _>>()?;
        if let Some(why) = lacks(&inst.op, self.target) {
            return Err(why);
        }
        if let Some(ty) = results.iter().find(|t| matches!(t, Type::Vector(_, n) if *n == 0 || *n > MAX_VECTOR)) {
            return Err(format!("a vector of {} elements; allowed are 1 to {MAX_VECTOR}", ty.lanes()));
        }
        let def = inst.op.def();
        if let Some(ty) = operands.first().or(results.first())
            && !def.on.contains(ty.scalar())
        {
            return Err(format!("`{}` of {ty}; it is defined on {}", def.name, def.on));
        }
        let result = || match results[..] {
            [one] => Ok(one),
            _ => Err(format!("`{}` has {} results instead of 1", def.name, results.len())),
        };
        let data = |ty: Type| match ty.is_data() {
            true => Ok(()),
            false => Err(format!(
                "`{}` of {ty}; it is defined on elements and vectors, not on pointers or buffers",
                def.name
            )),
        };
        let vector = |ty: Type| match ty {
            Type::Vector(s, n) => Ok((s, n)),
            other => Err(format!("`{}` of {other}, which is no vector", def.name)),
        };
        let nothing = || match results.is_empty() {
            true => Ok(()),
            false => Err(format!("`{}` has a result, but gives none; write it without `%… =`", def.name)),
        };
        // The same type in and out.
        let keeps = || {
            let ty = result()?;
            data(ty)?;
            match operands[..] {
                [a] => same(ty, "the operand", a),
                _ => {
                    same(ty, "the left operand", operands[0])?;
                    same(ty, "the right operand", operands[1])
                }
            }
        };
        match &inst.op {
            Op::Const(bits) => {
                let ty = result()?;
                let width = ty.scalar().bits();
                data(ty)?;
                if width < 64 && bits.0 >> width != 0 {
                    return Err(format!("constant 0x{:x} does not fit {ty}, which has {width} bits", bits.0));
                }
                Ok(())
            }
            Op::ThreadId(_) | Op::BlockId(_) | Op::LaneId => same(Type::U32, "the result", result()?),
            Op::Clock => same(Type::U64, "the result", result()?),
            Op::Unary(..) | Op::Binary(..) => keeps(),
            Op::Compare(..) => {
                let ty = operands[0];
                data(ty)?;
                same(ty, "the right operand", operands[1])?;
                same(ty.with_scalar(Scalar::Bool), "the result", result()?)
            }
            Op::Fma { .. } => {
                let ty = result()?;
                data(ty)?;
                same(ty, "the first factor", operands[0])?;
                same(ty, "the second factor", operands[1])?;
                same(ty, "the summand", operands[2])
            }
            Op::Select { .. } => {
                let ty = result()?;
                data(ty)?;
                if operands[0] != Type::BOOL {
                    same(ty.with_scalar(Scalar::Bool), "the condition", operands[0])?;
                }
                same(ty, "the first choice", operands[1])?;
                same(ty, "the second choice", operands[2])
            }
            Op::Convert(_) => {
                let (from, to) = (operands[0], result()?);
                data(from)?;
                if from == to {
                    return Err(format!("no conversion from {from} to {to}; it is one already"));
                }
                if to != from.with_scalar(to.scalar()) {
                    return Err(format!(
                        "no conversion from {from} to {to}; as many elements must come out as go in, {}",
                        from.lanes()
                    ));
                }
                if to.scalar() == Scalar::Bool {
                    return Err(format!("no conversion from {from} to {to}; compare with 0"));
                }
                Ok(())
            }
            Op::ConvertStochastic(..) => {
                let (from, to) = (operands[0], result()?);
                data(from)?;
                same(from.with_scalar(Scalar::U32), "the random number", operands[1])?;
                if to != from.with_scalar(to.scalar()) || !matches!(to.scalar(), Scalar::Bf16 | Scalar::F16) {
                    return Err(format!("no stochastic rounding from {from} to {to}; allowed are bf16 and f16"));
                }
                Ok(())
            }
            Op::Encode { value, scale, old, format, byte, .. } => {
                let (from, to) = (self.ty(*value)?, result()?);
                data(from)?;
                self.scale(*format, *scale)?;
                let packed = narrow::packed(*format, from)?;
                match (old, byte) {
                    (Some(old), Some(byte)) => {
                        same(Type::U32, "what the codes go into", self.ty(*old)?)?;
                        narrow::inserted(packed, *byte)?;
                        same(Type::U32, "the result", to)
                    }
                    (None, None) => same(packed, "the result", to),
                    _ => Err("codes go into `old` from `byte` on; give both or neither".to_owned()),
                }
            }
            Op::Decode { scale, format, .. } => {
                let (from, to) = (operands[0], result()?);
                data(from)?;
                self.scale(*format, *scale)?;
                if !to.is_data() || !Class::MATH.contains(to.scalar()) {
                    return Err(format!("`decode` gives {}, not {to}", Class::MATH));
                }
                same(narrow::packed(*format, to)?, "the operand", from)
            }
            Op::Bitcast(_) => {
                let (from, to) = (operands[0], result()?);
                let plain = |t: Type| t.is_data() && t.scalar().in_memory();
                if plain(from) && plain(to) && from.bytes() == to.bytes() {
                    Ok(())
                } else {
                    Err(format!(
                        "no bitcast from {from} to {to}; allowed are data of one size with a memory form (no bool, no idx)"
                    ))
                }
            }
            Op::VectorFrom(elements) => {
                let ty = result()?;
                let Type::Vector(s, n) = ty else {
                    return Err(format!("`{}` makes a vector, but the result is {ty}", def.name));
                };
                if elements.len() != n as usize {
                    return Err(format!("{} elements for {ty}, which has {n}", elements.len()));
                }
                operands.iter().try_for_each(|t| same(Type::Scalar(s), "an element", *t))
            }
            Op::Extract(_, i) => {
                let (s, n) = vector(operands[0])?;
                if *i >= n {
                    return Err(format!("element {i} of {}; allowed are 0 to {}", operands[0], n - 1));
                }
                same(Type::Scalar(s), "the result", result()?)
            }
            Op::ExtractAt(..) => {
                let (s, _) = vector(operands[0])?;
                same(Type::U32, "the index", operands[1])?;
                same(Type::Scalar(s), "the result", result()?)
            }
            Op::Shuffle { mask, .. } => {
                let (s, n) = vector(operands[0])?;
                same(operands[0], "the second vector", operands[1])?;
                same(Type::Vector(s, mask.len() as u32), "the result", result()?)?;
                match mask.iter().find(|i| **i >= 2 * n) {
                    Some(i) => Err(format!(
                        "`shuffle` picks element {i} of two vectors of {n}; allowed are 0 to {}",
                        2 * n - 1
                    )),
                    None => Ok(()),
                }
            }
            Op::Reduce(..) => same(Type::Scalar(vector(operands[0])?.0), "the result", result()?),
            Op::LdsBase(i) => match self.kernel.lds.get(*i as usize) {
                Some(a) => same(Type::Ptr(Space::Lds, a.elem), "the result", result()?),
                None => Err(format!("LDS array #{i} is not declared")),
            },
            Op::PtrAdd(..) => {
                if !matches!(operands[0], Type::Ptr(..)) {
                    return Err(format!("`ptr_add` of {}; only a pointer can be moved", operands[0]));
                }
                one_of("the element count", operands[1], Class::INT)?;
                same(result()?, "the pointer", operands[0])
            }
            Op::PtrCast(_) => match (operands[0], result()?) {
                (Type::Ptr(a, _), Type::Ptr(b, s)) if a == b && s.in_memory() => Ok(()),
                (from, to) => Err(format!(
                    "no pointer cast from {from} to {to}; allowed is a pointer into the same memory, to elements with a memory \
                     form (no bool, no idx)"
                )),
            },
            Op::BufferPtr(buffer) => match operands[0] {
                Type::Buffer(s) if self.kernel.params.len() > buffer.index() => {
                    same(Type::Ptr(Space::Global, s), "the result", result()?)
                }
                Type::Buffer(_) => {
                    Err("pointer to a buffer that is no parameter; use the address that it was made of".to_owned())
                }
                other => Err(format!("`buffer_ptr` of {other}; it takes a buffer parameter")),
            },
            Op::IntToPtr(_) => match result()? {
                Type::Ptr(space, s) if s.in_memory() => same(address_of(space), "the address", operands[0]),
                other => Err(format!(
                    "an address as {other}; it makes a pointer to elements with a memory form (no bool, no idx)"
                )),
            },
            Op::PtrToInt(_) => match operands[0] {
                Type::Ptr(space, _) => same(address_of(space), "the result", result()?),
                other => Err(format!("the address of {other}; only a pointer has one")),
            },
            Op::PtrLoad { pointer, memory } => {
                let ty = result()?;
                accessible(ty)?;
                through(operands[0], ty)?;
                how(memory, ty, Does::Load)?;
                self.pointed_access(*pointer, Does::Load)
            }
            Op::PtrStore { value, pointer, memory } => {
                nothing()?;
                let ty = self.ty(*value)?;
                accessible(ty)?;
                through(self.ty(*pointer)?, ty)?;
                how(memory, ty, Does::Store)?;
                self.pointed_access(*pointer, Does::Store)
            }
            Op::LdsReadTr { bits, .. } => {
                let ty = result()?;
                match operands[0] {
                    Type::Ptr(Space::Lds, _) => {}
                    other => return Err(format!("a transposing read through {other}; it needs a pointer to LDS")),
                }
                let s = ty.scalar();
                let chunk = match bits {
                    16 if s.bits() == 16 => Type::Vector(s, 4),
                    8 if s.bits() == 8 => Type::Vector(s, 8),
                    4 => Type::Vector(Scalar::U32, 2),
                    6 => Type::Vector(Scalar::U32, 3),
                    8 | 16 => {
                        return Err(format!("a transposing read of {ty}; elements of {bits} bits are wanted"));
                    }
                    _ => return Err(format!("a transposing read of {bits} bits; allowed are 16, 8, 6 and 4")),
                };
                same(chunk, "the result", ty)?;
                through(operands[0], ty)
            }
            Op::AtomicRmw { pointer, value, order, .. } => {
                let ty = result()?;
                same(ty, "the value", self.ty(*value)?)?;
                self.update(*pointer, ty, *order)
            }
            Op::AtomicCas { pointer, expected, value, order, .. } => {
                let ty = result()?;
                same(ty, "the value", self.ty(*value)?)?;
                same(ty, "the expected value", self.ty(*expected)?)?;
                self.update(*pointer, ty, *order)
            }
            Op::Fence { order, .. } => {
                nothing()?;
                if matches!(order, Order::Plain | Order::Relaxed) {
                    return Err(format!(
                        "a fence with order {order}; allowed are acquire, release, acq_rel and seq_cst"
                    ));
                }
                Ok(())
            }
            Op::Drain { .. } | Op::Barrier | Op::AsyncMark => nothing(),
            Op::WaitAsyncMark(n) => {
                nothing()?;
                at_most("wait_asyncmark", *n, MAX_MARK)
            }
            Op::MakeBuffer { .. } => {
                same(Type::U64, "the address", operands[0])?;
                if !matches!(operands[1], Type::U32 | Type::U64 | Type::Scalar(Scalar::Idx)) {
                    return Err(format!("the extent is {}; allowed are u32, u64 and idx", operands[1]));
                }
                match result()? {
                    Type::Buffer(s) if s.in_memory() => Ok(()),
                    other => Err(format!(
                        "makes a buffer, but the result is {other}; allowed are buffers of elements with a memory form (no \
                         bool, no idx)"
                    )),
                }
            }
            Op::BufferLoad { buffer, offset, scalar, mask, fill, .. } => {
                let ty = result()?;
                let place = Place { buffer: *buffer, offset: *offset, scalar: *scalar, mask: *mask };
                self.place(&place, Does::Load)?;
                match (mask, fill) {
                    (Some(_), None) => return Err("a masked load without a fill value; give both".to_owned()),
                    (None, Some(_)) => return Err("a load with a fill value, but without a mask; give both".to_owned()),
                    (_, Some(fill)) => same(ty, "the fill value", self.ty(*fill)?)?,
                    (None, None) => {}
                }
                accessible(ty)
            }
            Op::BufferStore { value, buffer, offset, scalar, mask, .. } => {
                nothing()?;
                let place = Place { buffer: *buffer, offset: *offset, scalar: *scalar, mask: *mask };
                self.place(&place, Does::Store)?;
                accessible(self.ty(*value)?)
            }
            Op::SBufferLoad { buffer, offset, .. } => {
                scalar_loadable(result()?)?;
                self.place(&Place { buffer: *buffer, offset: *offset, scalar: None, mask: None }, Does::Load)?;
                self.unwritten(*buffer)
            }
            Op::BufferAtomic { kind: AtomicKind(kind), value, buffer, offset, scalar, mask, .. } => {
                let ty = result()?;
                same(ty, "the value", self.ty(*value)?)?;
                one_of(&format!("the value of `{kind}`"), ty, kind.def().on)?;
                let place = Place { buffer: *buffer, offset: *offset, scalar: *scalar, mask: *mask };
                self.place(&place, Does::Update)
            }
            Op::BufferAtomicCas { expected, value, buffer, offset, scalar, mask, .. } => {
                let ty = result()?;
                same(ty, "the value", self.ty(*value)?)?;
                same(ty, "the expected value", self.ty(*expected)?)?;
                one_of("the value", ty, Class::ATOMIC)?;
                let place = Place { buffer: *buffer, offset: *offset, scalar: *scalar, mask: *mask };
                self.place(&place, Does::Update)
            }
            Op::CopyToLds { buffer, offset, pointer, scalar, bytes, .. } => {
                nothing()?;
                let place = Place { buffer: *buffer, offset: *offset, scalar: *scalar, mask: None };
                self.place(&place, Does::Load)?;
                match self.ty(*pointer)? {
                    Type::Ptr(Space::Lds, _) => {}
                    other => return Err(format!("a copy to {other}; it needs a pointer to LDS")),
                }
                if !matches!(bytes, 4 | 16) {
                    return Err(format!("a copy of {bytes} bytes a lane; allowed are 4 and 16"));
                }
                Ok(())
            }
            Op::TextureFetch { x, y, .. } => {
                self.read_from_texture(operands[0], result()?)?;
                same(Type::Scalar(Scalar::I32), "the column", self.ty(*x)?)?;
                same(Type::Scalar(Scalar::I32), "the row", self.ty(*y)?)
            }
            Op::TextureSample { u, v, .. } => {
                self.read_from_texture(operands[0], result()?)?;
                same(Type::Scalar(Scalar::F32), "the place along x", self.ty(*u)?)?;
                same(Type::Scalar(Scalar::F32), "the place along y", self.ty(*v)?)
            }
            Op::SurfaceStore { value, surface, x, y } => {
                nothing()?;
                match self.ty(*surface)? {
                    Type::Surface(elem) => same(Type::Vector(elem, TEXEL), "the texel", self.ty(*value)?)?,
                    other => return Err(format!("stores a texel to {other}; it needs a surface parameter")),
                }
                same(Type::Scalar(Scalar::I32), "the column", self.ty(*x)?)?;
                same(Type::Scalar(Scalar::I32), "the row", self.ty(*y)?)
            }
            Op::LaneShuffle { value, amount, width, .. } => {
                let ty = result()?;
                data(ty)?;
                same(ty, "the value", self.ty(*value)?)?;
                same(Type::U32, "the lane", self.ty(*amount)?)?;
                self.group(*width)
            }
            Op::Butterfly { offset, width, .. } => {
                keeps()?;
                // A group that was made to hold the offset is not what its author wrote.
                let below = (*width).min(self.kernel.wave);
                if !offset.is_power_of_two() || *offset >= below {
                    let lanes = if below < *width { ", the lanes of a wave" } else { "" };
                    return Err(format!(
                        "butterfly over distance {offset}; allowed are powers of two below {below}{lanes}"
                    ));
                }
                self.group(*width)
            }
            Op::Ballot(_) => {
                same(Type::BOOL, "the condition", operands[0])?;
                same(Type::U64, "the result", result()?)
            }
            Op::ReadFirstLane(_) | Op::Opaque(_) => keeps(),
            Op::ReadLane(..) => {
                let ty = result()?;
                data(ty)?;
                same(ty, "the value", operands[0])?;
                same(Type::U32, "the lane", operands[1])
            }
            Op::Transpose8x8(_) => {
                same(Type::U32, "the operand", operands[0])?;
                keeps()
            }
            Op::Mma { .. } | Op::MfmaScaled { .. } => self.product(&inst.op, &operands, result()?),
            Op::PermB32(..) => {
                for (what, ty) in ["the first word", "the second word", "the selector"].iter().zip(&operands) {
                    same(Type::U32, what, *ty)?;
                }
                same(Type::U32, "the result", result()?)
            }
            Op::SWaitcnt { vmcnt, lgkmcnt, expcnt } => {
                nothing()?;
                at_most("vmcnt", vmcnt.unwrap_or(0), 63)?;
                at_most("lgkmcnt", lgkmcnt.unwrap_or(0), 15)?;
                at_most("expcnt", expcnt.unwrap_or(0), 7)?;
                if vmcnt.or(*lgkmcnt).or(*expcnt).is_none() {
                    return Err("`s_waitcnt` of no counter; name vmcnt, lgkmcnt or expcnt".to_owned());
                }
                Ok(())
            }
            Op::SSleep(n) => {
                nothing()?;
                at_most("s_sleep", *n, 127)
            }
            Op::SSetprio(n) => {
                nothing()?;
                at_most("s_setprio", *n, 3)
            }
            Op::SchedBarrier(mask) => {
                nothing()?;
                classes(*mask)
            }
            Op::SchedGroupBarrier { mask, size, .. } => {
                nothing()?;
                if *size == 0 {
                    return Err("a scheduling group of 0 instructions; allowed are 1 or more".to_owned());
                }
                classes(*mask)
            }
            Op::Expect { .. } => {
                same(Type::BOOL, "the condition", operands[0])?;
                same(Type::BOOL, "the result", result()?)
            }
            Op::Assume(_) => {
                nothing()?;
                same(Type::BOOL, "the condition", operands[0])
            }
            Op::AssumeUniform { scope, .. } => {
                scalar("the value", operands[0])?;
                keeps()?;
                if !matches!(scope, Threads::Wave | Threads::Workgroup) {
                    return Err(format!("a value the same for the scope {scope}; allowed are wave and workgroup"));
                }
                Ok(())
            }
            Op::If { .. } => same(Type::BOOL, "the condition", operands[0]),
            Op::For { step, .. } => {
                one_of("the first index", operands[0], Class::ATOMIC_INT.or(Class::IDX))?;
                same(operands[0], "the end", operands[1])?;
                if *step == 0 {
                    return Err("a loop with step 0 never ends; the step must be at least 1".to_owned());
                }
                Ok(())
            }
            Op::While { .. } | Op::Native { .. } => Ok(()),
        }
    }

    /// A texel, or a colour between texels, that is read.
    fn read_from_texture(&self, texture: Type, result: Type) -> Result<(), String> {
        let Type::Texture(elem) = texture else {
            return Err(format!("reads a texel of {texture}; it needs a texture parameter"));
        };
        let texel = |elem| Type::Vector(elem, TEXEL);
        if result == texel(elem) || result == texel(Scalar::F32) {
            return Ok(());
        }
        let own = if elem == Scalar::F32 { String::new() } else { format!("{} or ", texel(elem)) };
        Err(format!("the result is {result} where {own}{} is wanted", texel(Scalar::F32)))
    }

    /// Lanes of a logical group.
    fn group(&self, width: u32) -> Result<(), String> {
        let wave = self.kernel.wave;
        if width.is_power_of_two() && width <= wave {
            return Ok(());
        }
        let target = self.target;
        Err(format!("a group of {width} lanes; allowed are powers of two up to {wave}, the wave of {target}"))
    }
}

/// A mask of instruction classes.
fn classes(mask: u32) -> Result<(), String> {
    if mask & !SCHED_CLASSES != 0 {
        return Err(format!("instruction classes {mask:#x}; allowed are bits of {SCHED_CLASSES:#x}"));
    }
    Ok(())
}
