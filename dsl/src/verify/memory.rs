//! Rules of memory accesses.

use super::rules::{index, same, scalar};
use super::{MAX_ACCESS, MAX_ALIGN, Scope};
use crate::ir::{Access, Memory, Order, ParamKind, Scope as Threads, Space, Type, Value};

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Load,
    Store,
    /// Both, atomically.
    Update,
}

/// Data that one thread can load or store at once.
pub(super) fn accessible(data: Type) -> Result<(), String> {
    if !data.is_data() || !data.scalar().in_memory() {
        return Err(format!("memory access of {data}"));
    }
    if data.bytes() > MAX_ACCESS || !data.bytes().is_power_of_two() {
        return Err(format!("memory access of {data}, {} bytes; allowed are 1, 2, 4, 8 and 16", data.bytes()));
    }
    Ok(())
}

/// A pointer to the element type of `data`.
pub(super) fn through(pointer: Type, data: Type) -> Result<(), String> {
    match pointer {
        Type::Ptr(_, s) if s == data.scalar() => Ok(()),
        Type::Ptr(_, s) => Err(format!("access of {data} through a pointer to {s}")),
        other => Err(format!("memory access through {other}")),
    }
}

/// How a load or store through a pointer is made.
pub(super) fn how(memory: &Memory, data: Type, does: Does) -> Result<(), String> {
    if let Some(align) = memory.align
        && (!align.is_power_of_two() || align > MAX_ALIGN)
    {
        return Err(format!("alignment of {align} bytes; allowed are powers of two up to {MAX_ALIGN}"));
    }
    let order = memory.order;
    if order == Order::Plain {
        let scope = memory.scope;
        return if scope == Threads::default() {
            Ok(())
        } else {
            Err(format!(
                "an access that is not atomic has scope {scope}; give it a memory order, or leave the scope out"
            ))
        };
    }
    let (what, wrong) = match does {
        Does::Load => ("load", [Order::Release, Order::AcqRel]),
        _ => ("store", [Order::Acquire, Order::AcqRel]),
    };
    if wrong.contains(&order) {
        let allowed = if does == Does::Load { "acquire" } else { "release" };
        return Err(format!("a {what} with order {order}; allowed are relaxed, {allowed} and seq_cst"));
    }
    if data.bytes() > 8 {
        return Err(format!("an atomic {what} of {data}, {} bytes; allowed are 1, 2, 4 and 8", data.bytes()));
    }
    let align = memory.align.unwrap_or(data.bytes());
    if align < data.bytes() {
        let size = data.bytes();
        return Err(format!("an atomic {what} of {data} aligned to {align} bytes; it needs its own size, {size}"));
    }
    Ok(())
}

/// The order of a read-modify-write.
pub(super) fn update_order(order: Order) -> Result<(), String> {
    if order == Order::Plain {
        return Err("an atomic operation with order plain; allowed are relaxed, acquire, release, acq_rel and seq_cst"
            .to_owned());
    }
    Ok(())
}

/// Where a buffer access lies.
pub(super) struct Place {
    pub buffer: Value,
    pub offset: Value,
    pub scalar: Option<Value>,
    pub mask: Option<Value>,
}

impl Scope<'_> {
    /// A buffer access.
    pub(super) fn place(&self, place: &Place, does: Does) -> Result<(), String> {
        let Place { buffer, offset, scalar: bytes, mask } = *place;
        match self.ty(buffer)? {
            Type::Buffer(_) => {}
            other => return Err(format!("buffer access through {other}")),
        }
        index("the offset", self.ty(offset)?)?;
        if let Some(bytes) = bytes {
            same(Type::U32, "the scalar offset", self.ty(bytes)?)?;
        }
        if let Some(mask) = mask {
            same(Type::BOOL, "the mask", self.ty(mask)?)?;
        }
        self.declared_access(buffer, does)
    }

    /// A load or store through a pointer, against the declarations of the buffers that it can point into.
    pub(super) fn pointed_access(&self, pointer: Value, does: Does) -> Result<(), String> {
        self.origins.all(pointer).into_iter().try_for_each(|v| self.declared_access(v, does))
    }

    fn declared_access(&self, buffer: Value, does: Does) -> Result<(), String> {
        let Some((name, ParamKind::Buffer { access, .. })) =
            self.kernel.params.get(buffer.index()).map(|p| (p.name, p.kind))
        else {
            return Ok(());
        };
        let reads = matches!(does, Does::Load | Does::Update);
        let writes = matches!(does, Does::Store | Does::Update);
        match access {
            Access::Write if reads => Err(format!("loads from buffer `{name}`, which is declared as only written")),
            Access::Read if writes => Err(format!("stores to buffer `{name}`, which is declared as only read")),
            _ => Ok(()),
        }
    }

    /// An atomic update of one `value` through a pointer.
    pub(super) fn update(&self, pointer: Value, value: Type, order: Order) -> Result<(), String> {
        scalar("the value", value)?;
        through(self.ty(pointer)?, value)?;
        update_order(order)?;
        self.pointed_access(pointer, Does::Update)
    }
}

/// A pointer to global memory.
pub(super) fn global(ty: Type) -> Result<(), String> {
    match ty {
        Type::Ptr(Space::Global, _) => Ok(()),
        other => Err(format!("{other} where a pointer to global memory is wanted")),
    }
}
