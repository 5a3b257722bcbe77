//! Rules of memory accesses.

use super::rules::{index, same, scalar};
use super::{MAX_ACCESS, MAX_ALIGN, Scope, no_memory_form};
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
    if !data.is_data() {
        return Err(format!(
            "memory access of {data}; allowed are elements and vectors: store the address as an integer"
        ));
    }
    if !data.scalar().in_memory() {
        return Err(format!("memory access of {data}, {}", no_memory_form(data.scalar())));
    }
    if data.bytes() > MAX_ACCESS || !(data.bytes().is_power_of_two() || data.bytes() == 12) {
        return Err(format!("memory access of {data}, {} bytes; allowed are 1, 2, 4, 8, 12 and 16", data.bytes()));
    }
    Ok(())
}

/// Data that the scalar unit can load at once.
pub(super) fn scalar_loadable(data: Type) -> Result<(), String> {
    let words = data.is_data() && data.scalar().in_memory() && data.scalar().bytes() == 4;
    if !words || !matches!(data.lanes(), 1 | 2 | 3 | 4 | 8 | 16) {
        return Err(format!("a scalar load of {data}; allowed are 1, 2, 3, 4, 8 and 16 elements of 32 bits"));
    }
    Ok(())
}

/// A pointer to the element type of `data`.
pub(super) fn through(pointer: Type, data: Type) -> Result<(), String> {
    match pointer {
        Type::Ptr(_, s) if s == data.scalar() => Ok(()),
        Type::Ptr(_, s) => {
            let elem = data.scalar();
            Err(format!("access of {data} through a pointer to {s}; cast the pointer by `.cast::<{elem}>()`"))
        }
        other => Err(format!("memory access through {other}; it needs a pointer")),
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
            other => return Err(format!("buffer access through {other}; it needs a buffer")),
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
        self.origins.restricting(pointer).try_for_each(|v| self.declared_access(v, does))
    }

    /// A load through the scalar cache, which does not see what is written during the launch.
    pub(super) fn unwritten(&self, buffer: Value) -> Result<(), String> {
        if let Some((name, ParamKind::Buffer { elem, access, align, .. })) =
            self.kernel.params.get(buffer.index()).map(|p| (p.name, p.kind))
        {
            if access != Access::Read {
                return Err(format!(
                    "a scalar load from buffer `{name}`, which is declared as written; the scalar cache does not see writes: \
                     use buffer_load"
                ));
            }
            return if align >= 4 {
                Ok(())
            } else {
                Err(format!(
                    "a scalar load from buffer `{name}` of {elem}, aligned to {align}; it needs 4: declare the alignment"
                ))
            };
        }
        let elem = self.ty(buffer)?.scalar();
        if elem.bytes() >= 4 {
            return Ok(());
        }
        Err(format!("a scalar load from a buffer of {elem}; allowed are elements of 4 bytes or more, which align it"))
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
            Access::Write if reads => {
                Err(format!("loads from buffer `{name}`, which is declared as only written; declare it as `InOut`"))
            }
            Access::Read if writes => Err(format!(
                "stores to buffer `{name}`, which is declared as only read; declare it as `Out` or `InOut`"
            )),
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

/// The integer that holds addresses of a space.
pub(super) const fn address_of(space: Space) -> Type {
    match space {
        Space::Lds => Type::U32,
        Space::Global => Type::U64,
    }
}
