//! LDS arrays and pointers, global buffers.

use std::marker::PhantomData;
use std::ops::Add;

use super::Builder;
use super::element::{Data, Element, Plain, Sealed, Ty};
use super::value::{Operand, V};
use crate::ir::{Cache, LdsArray, Memory, OffsetUnit, Op, Space, Type, Value};
use crate::kernel::{In, InOut, Out};

/// Pointer to elements of type `T` in the workgroup's LDS; `pointer + n` counts elements.
#[derive(Clone, Copy, Debug)]
pub enum LdsPtr<T> {
    #[doc(hidden)]
    Never(std::convert::Infallible, PhantomData<T>),
}

impl<T> Sealed for LdsPtr<T> {}

impl<T: Element> Ty for LdsPtr<T> {
    const TYPE: Type = Type::Ptr(Space::Lds, T::SCALAR);
}

impl<'k, T: Element + Plain, N: Operand<'k, u32>> Add<N> for V<'k, LdsPtr<T>> {
    type Output = Self;
    #[track_caller]
    fn add(self, n: N) -> Self {
        let n = n.value(self.k);
        self.k.emit(Op::PtrAdd(self.id, n.id))
    }
}

/// A global buffer parameter with elements of type `T`, used as `A` says ([`In`], [`Out`] or [`InOut`]).
pub struct Buffer<'k, T, A> {
    k: &'k Builder<'k>,
    id: Value,
    ty: PhantomData<fn() -> (T, A)>,
}

impl<T, A> Clone for Buffer<'_, T, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, A> Copy for Buffer<'_, T, A> {}

/// Buffers that may be loaded from.
#[diagnostic::on_unimplemented(
    message = "this buffer is declared `{Self}`: the kernel only stores to it",
    label = "not readable",
    note = "declare it `In` or `InOut` in `kernel_args!`"
)]
pub trait Readable {}
impl Readable for In {}
impl Readable for InOut {}

/// Buffers that may be stored to.
#[diagnostic::on_unimplemented(
    message = "this buffer is declared `{Self}`: the kernel only loads from it",
    label = "not writable",
    note = "declare it `Out` or `InOut` in `kernel_args!`"
)]
pub trait Writable {}
impl Writable for Out {}
impl Writable for InOut {}

/// Byte offset of a buffer access.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<T>(pub T);

/// Offset of a buffer access: a `u32` (value or number) counts elements of the accessed type, [`Bytes`] of one bytes.
pub trait Offset<'k> {
    /// The offset and what it counts.
    #[track_caller]
    fn offset(self, k: &'k Builder<'k>) -> (V<'k, u32>, OffsetUnit);
}

impl<'k> Offset<'k> for V<'k, u32> {
    fn offset(self, _: &'k Builder<'k>) -> (V<'k, u32>, OffsetUnit) {
        (self, OffsetUnit::Elements)
    }
}

impl<'k> Offset<'k> for u32 {
    #[track_caller]
    fn offset(self, k: &'k Builder<'k>) -> (V<'k, u32>, OffsetUnit) {
        (k.constant(self), OffsetUnit::Elements)
    }
}

impl<'k, T: Operand<'k, u32>> Offset<'k> for Bytes<T> {
    #[track_caller]
    fn offset(self, k: &'k Builder<'k>) -> (V<'k, u32>, OffsetUnit) {
        (self.0.value(k), OffsetUnit::Bytes)
    }
}

impl<'k> Builder<'k> {
    /// Reserves an LDS array of `len` elements, aligned to 16 bytes, and points to its element 0. Its content is
    /// undefined until stored to. `name` is for messages and printed IR.
    #[track_caller]
    pub fn lds<T: Element + Plain>(&'k self, name: &'static str, len: u32) -> V<'k, LdsPtr<T>> {
        let index = {
            let lds = &mut self.state.borrow_mut().lds;
            lds.push(LdsArray { name, elem: T::SCALAR, len, align: 16 });
            lds.len() as u32 - 1
        };
        if len == 0 {
            self.refuse(format!("LDS array `{name}` has no elements"));
        }
        self.emit(Op::LdsBase(index))
    }

    /// Loads from LDS: `D` is the pointer's element type or a vector of it, read from consecutive elements (fx `ptr_load`).
    #[track_caller]
    pub fn ptr_load<D: Data + Plain>(&'k self, pointer: V<'k, LdsPtr<D::Elem>>) -> V<'k, D> {
        self.emit(Op::PtrLoad { pointer: pointer.id, memory: Memory::default() })
    }

    /// Stores to LDS: the pointer's element type or a vector of it, to consecutive elements (fx `ptr_store`).
    #[track_caller]
    pub fn ptr_store<D: Data + Plain>(&'k self, value: V<'k, D>, pointer: V<'k, LdsPtr<D::Elem>>) {
        self.emit_void(Op::PtrStore { value: value.id, pointer: pointer.id, memory: Memory::default() });
    }

    /// The handle of buffer parameter `index`.
    pub fn buffer<T: Element, A>(&'k self, index: u32) -> Buffer<'k, T, A> {
        Buffer { k: self, id: Value(index), ty: PhantomData }
    }

    /// Loads a `D` from a buffer at `offset` (bo `buffer_load`). `D`'s element type need not be the buffer's.
    /// An access that does not end within the buffer gives 0 in every element.
    #[track_caller]
    pub fn buffer_load<D: Data + Plain>(
        &'k self,
        buffer: Buffer<'k, impl Element, impl Readable>,
        offset: impl Offset<'k>,
    ) -> V<'k, D> {
        let (offset, unit) = offset.offset(buffer.k);
        self.emit(Op::BufferLoad {
            buffer: buffer.id,
            offset: offset.id,
            unit,
            scalar: None,
            mask: None,
            fill: None,
            cache: Cache::default(),
        })
    }

    /// Stores a `D` to a buffer at `offset` (bo `buffer_store`). An access that does not end within the buffer is dropped.
    #[track_caller]
    pub fn buffer_store<D: Data + Plain>(
        &'k self,
        value: V<'k, D>,
        buffer: Buffer<'k, impl Element, impl Writable>,
        offset: impl Offset<'k>,
    ) {
        let (offset, unit) = offset.offset(buffer.k);
        self.emit_void(Op::BufferStore {
            value: value.id,
            buffer: buffer.id,
            offset: offset.id,
            unit,
            scalar: None,
            mask: None,
            cache: Cache::default(),
        });
    }
}
