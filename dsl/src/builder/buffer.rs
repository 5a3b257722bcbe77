//! Global buffers: kernel parameters, and what is made from an address.

use std::marker::PhantomData;

use super::Builder;
use super::element::{Atomic, Data, Element, Idx, Plain};
use super::options::{AtomicOptions, CopyOptions, LoadOptions, StoreOptions};
use super::pointer::{AddressSpace, GlobalPtr, LdsPtr, Ptr};
use super::value::{Operand, V};
use crate::ir::{AtomicKind, AtomicOp, MAX_BUFFER_BYTES, OffsetUnit, Op, Scope, Value};
use crate::kernel::{In, InOut, Out};

/// A global buffer with elements of type `T`, used as `A` says ([`In`], [`Out`] or [`InOut`]).
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

impl<T, A> Buffer<'_, T, A> {
    pub(super) fn id(self) -> Value {
        self.id
    }
}

impl<'k, T: Element + Plain, A> Buffer<'k, T, A> {
    /// Pointer to the first element of a buffer parameter.
    #[track_caller]
    pub fn ptr(self) -> V<'k, GlobalPtr<T>> {
        self.k.emit(Op::BufferPtr(self.id))
    }
}

impl<'k, T: Element, A> Buffer<'k, T, A> {
    /// The same memory as a buffer of another element type: what is loaded from it is not converted. Offsets then count
    /// elements of that type.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let row = k.make_buffer::<bf16>(k.constant(0u64), 4096);
    /// // Eight bf16 as four words.
    /// let words: V<Vector<u32, 4>> = k.buffer_load(row.cast::<u32>(), k.lane_id() * 4);
    /// # let _ = words;
    /// # }).unwrap();
    /// ```
    pub fn cast<U: Element>(self) -> Buffer<'k, U, A> {
        Buffer { k: self.k, id: self.id, ty: PhantomData }
    }
}

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

/// Byte offset of a buffer access: a `u32` or an index, as a device value or a Rust number.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<T>(pub T);

/// Offset of a buffer access: a `u32` or an index (value or number) counts elements of the accessed type, [`Bytes`] of one
/// bytes. It never wraps.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no offset of a buffer access",
    note = "an offset is a u32 or an Idx, as a device value or a Rust number, or `Bytes(…)` of one"
)]
pub trait Offset<'k> {
    /// The offset's id and what it counts.
    #[doc(hidden)]
    #[track_caller]
    fn offset(self, k: &'k Builder<'k>) -> (Value, OffsetUnit);
}

macro_rules! offset {
    ($($t:ty)*) => {$(
        impl<'k> Offset<'k> for V<'k, $t> {
            fn offset(self, _: &'k Builder<'k>) -> (Value, OffsetUnit) {
                (self.id, OffsetUnit::Elements)
            }
        }

        impl<'k> Offset<'k> for $t {
            #[track_caller]
            fn offset(self, k: &'k Builder<'k>) -> (Value, OffsetUnit) {
                (k.constant(self).id, OffsetUnit::Elements)
            }
        }

        impl<'k> Offset<'k> for Bytes<V<'k, $t>> {
            fn offset(self, _: &'k Builder<'k>) -> (Value, OffsetUnit) {
                (self.0.id, OffsetUnit::Bytes)
            }
        }

        impl<'k> Offset<'k> for Bytes<$t> {
            #[track_caller]
            fn offset(self, k: &'k Builder<'k>) -> (Value, OffsetUnit) {
                (k.constant(self.0).id, OffsetUnit::Bytes)
            }
        }
    )*};
}

offset!(u32 Idx);

/// Where 64-bit addresses lie: a readable buffer of `u64`, or a pointer to `u64`.
pub trait AddressTable<'k> {
    /// Entry `i`, as the lane itself sees it.
    #[doc(hidden)]
    #[track_caller]
    fn entry(self, k: &'k Builder<'k>, i: V<'k, u32>) -> V<'k, u64>;
}

impl<'k, A: Readable> AddressTable<'k> for Buffer<'k, u64, A> {
    #[track_caller]
    fn entry(self, k: &'k Builder<'k>, i: V<'k, u32>) -> V<'k, u64> {
        k.buffer_load(self, i)
    }
}

impl<'k, S: AddressSpace> AddressTable<'k> for V<'k, Ptr<S, u64>> {
    #[track_caller]
    fn entry(self, k: &'k Builder<'k>, i: V<'k, u32>) -> V<'k, u64> {
        k.ptr_load(self + i)
    }
}

impl<'k> Builder<'k> {
    /// The handle of buffer parameter `index`.
    pub fn buffer<T: Element, A>(&'k self, index: u32) -> Buffer<'k, T, A> {
        Buffer { k: self, id: Value(index), ty: PhantomData }
    }

    /// A buffer of `bytes` bytes (`u32`, `u64` or index; at most 0xFFFFFF00) at an address, a multiple of the element's size
    /// (bo `create_buffer_resource_from_addr`).
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let table = k.constant(0u64).to_ptr::<u64>();
    /// let peer = k.make_buffer::<f32>(k.load_ptr64(table, 3), 4096);
    /// let live = k.lane_id().lt(40);
    /// let x = k.buffer_load_with::<f32>(peer, k.lane_id(), LoadOptions::new().mask(live, 0.0).cache(Cache::SYS));
    /// k.buffer_store_with(x + 1.0, peer, k.lane_id(), StoreOptions::new().mask(live).cache(Cache::SYS));
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn make_buffer<T: Element + Plain>(
        &'k self,
        address: impl Operand<'k, u64>,
        bytes: impl Extent<'k>,
    ) -> Buffer<'k, T, InOut> {
        let (address, bytes) = (address.value(self), bytes.extent(self));
        let op = Op::MakeBuffer { address: address.id, bytes };
        let id = self.emit_op(op, &[crate::ir::Type::Buffer(T::SCALAR)])[0];
        Buffer { k: self, id, ty: PhantomData }
    }

    /// A buffer at an address whose extent is not known: as large as one can be (`ops.rsrc`).
    #[track_caller]
    pub fn rsrc<T: Element + Plain>(&'k self, address: impl Operand<'k, u64>) -> Buffer<'k, T, InOut> {
        self.make_buffer(address, MAX_BUFFER_BYTES as u32)
    }

    /// Address `i` of a table in memory, the same in all lanes of the wave: that of the first active one (`ops.load_ptr64`).
    #[track_caller]
    pub fn load_ptr64(&'k self, table: impl AddressTable<'k>, i: impl Operand<'k, u32>) -> V<'k, u64> {
        let i = i.value(self);
        table.entry(self, i).uniform()
    }

    /// Loads a `D`, an element of the buffer or a vector of its elements, from a buffer at `offset` (bo `buffer_load`). What is of
    /// another type is loaded through [`Buffer::cast`]. An access that does not end within the buffer gives 0 in every element.
    #[track_caller]
    pub fn buffer_load<D: Data + Plain>(
        &'k self,
        buffer: Buffer<'k, D::Elem, impl Readable>,
        offset: impl Offset<'k>,
    ) -> V<'k, D> {
        self.buffer_load_with(buffer, offset, LoadOptions::new())
    }

    /// As [`Builder::buffer_load`], with a mask, a scalar offset or a cache behaviour.
    #[track_caller]
    pub fn buffer_load_with<D: Data + Plain>(
        &'k self,
        buffer: Buffer<'k, D::Elem, impl Readable>,
        offset: impl Offset<'k>,
        options: LoadOptions<'k, D>,
    ) -> V<'k, D> {
        let (offset, unit) = offset.offset(buffer.k);
        self.emit(Op::BufferLoad {
            buffer: buffer.id,
            offset,
            unit,
            scalar: options.scalar.map(|v| v.id),
            mask: options.masked.map(|(mask, _)| mask.id),
            fill: options.masked.map(|(_, fill)| fill.id),
            cache: options.cache,
        })
    }

    /// Stores a `D` to a buffer at `offset` (bo `buffer_store`). An access that does not end within the buffer is dropped.
    #[track_caller]
    pub fn buffer_store<D: Data + Plain>(
        &'k self,
        value: V<'k, D>,
        buffer: Buffer<'k, D::Elem, impl Writable>,
        offset: impl Offset<'k>,
    ) {
        self.buffer_store_with(value, buffer, offset, StoreOptions::new());
    }

    /// As [`Builder::buffer_store`], with a mask, a scalar offset or a cache behaviour.
    #[track_caller]
    pub fn buffer_store_with<D: Data + Plain>(
        &'k self,
        value: V<'k, D>,
        buffer: Buffer<'k, D::Elem, impl Writable>,
        offset: impl Offset<'k>,
        options: StoreOptions<'k>,
    ) {
        let (offset, unit) = offset.offset(buffer.k);
        self.emit_void(Op::BufferStore {
            value: value.id,
            buffer: buffer.id,
            offset,
            unit,
            scalar: options.scalar.map(|v| v.id),
            mask: options.mask.map(|v| v.id),
            cache: options.cache,
        });
    }

    /// Atomic read-modify-write of one element, relaxed; outside the buffer nothing happens and the result is 0. Gives the
    /// value before.
    #[track_caller]
    pub fn buffer_atomic<T: Atomic>(
        &'k self,
        op: AtomicOp,
        value: V<'k, T>,
        buffer: Buffer<'k, T, InOut>,
        offset: impl Offset<'k>,
        scope: Scope,
    ) -> V<'k, T> {
        self.buffer_atomic_with(op, value, buffer, offset, scope, AtomicOptions::new())
    }

    /// As [`Builder::buffer_atomic`], with a mask, a scalar offset or a hint.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let sums = k.make_buffer::<f32>(k.constant(0u64), 4096);
    /// # let (x, live, row) = (k.constant(1.0f32), k.lane_id().lt(40), k.block_id(Axis::X) * 256);
    /// let options = AtomicOptions::new().mask(live).soffset(row).nontemporal();
    /// k.buffer_atomic_with(AtomicOp::Add, x, sums, k.lane_id(), Scope::Device, options);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn buffer_atomic_with<T: Atomic>(
        &'k self,
        op: AtomicOp,
        value: V<'k, T>,
        buffer: Buffer<'k, T, InOut>,
        offset: impl Offset<'k>,
        scope: Scope,
        options: AtomicOptions<'k>,
    ) -> V<'k, T> {
        let (offset, unit) = offset.offset(buffer.k);
        self.emit(Op::BufferAtomic {
            kind: AtomicKind(op),
            value: value.id,
            buffer: buffer.id,
            offset,
            unit,
            scalar: options.scalar.map(|v| v.id),
            mask: options.mask.map(|v| v.id),
            nontemporal: options.nontemporal,
            scope,
        })
    }

    /// Atomic compare-and-swap of one element, relaxed: stores `value` if the memory holds `expected`, bit for bit; outside
    /// the buffer nothing happens and the result is 0. Gives the value before.
    #[track_caller]
    pub fn buffer_atomic_cas<T: Atomic>(
        &'k self,
        expected: impl Operand<'k, T>,
        value: impl Operand<'k, T>,
        buffer: Buffer<'k, T, InOut>,
        offset: impl Offset<'k>,
        scope: Scope,
    ) -> V<'k, T> {
        self.buffer_atomic_cas_with(expected, value, buffer, offset, scope, AtomicOptions::new())
    }

    /// As [`Builder::buffer_atomic_cas`], with a mask, a scalar offset or a hint.
    #[track_caller]
    pub fn buffer_atomic_cas_with<T: Atomic>(
        &'k self,
        expected: impl Operand<'k, T>,
        value: impl Operand<'k, T>,
        buffer: Buffer<'k, T, InOut>,
        offset: impl Offset<'k>,
        scope: Scope,
        options: AtomicOptions<'k>,
    ) -> V<'k, T> {
        let (expected, value) = (expected.value(self), value.value(self));
        let (offset, unit) = offset.offset(buffer.k);
        self.emit(Op::BufferAtomicCas {
            expected: expected.id,
            value: value.id,
            buffer: buffer.id,
            offset,
            unit,
            scalar: options.scalar.map(|v| v.id),
            mask: options.mask.map(|v| v.id),
            nontemporal: options.nontemporal,
            scope,
        })
    }

    /// Loads a `D`, the same in all lanes of a wave, through the scalar unit (bo `buffer_load(is_scalar=True)`): 1, 2, 3, 4,
    /// 8 or 16 elements of 32 bits at an `offset` that is the same in all active lanes. An access that does not end within
    /// the buffer gives 0 in every element. Nobody may write the memory during the launch.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let scales = k.make_buffer::<f32>(k.constant(0u64), 4096);
    /// let row: V<Vector<f32, 8>> = k.s_buffer_load(scales, k.block_id(Axis::X) * 8);
    /// # let _ = row;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn s_buffer_load<D: Data + Plain>(
        &'k self,
        buffer: Buffer<'k, D::Elem, impl Readable>,
        offset: impl Offset<'k>,
    ) -> V<'k, D> {
        let (offset, unit) = offset.offset(buffer.k);
        self.emit(Op::SBufferLoad { buffer: buffer.id, offset, unit })
    }

    /// Copies `bytes` bytes a lane, 4 or 16, from a buffer to LDS without passing through registers: read at `offset` (which
    /// counts elements of the pointer's type), written at `pointer + bytes · lane`. `pointer` is the same in all lanes of the
    /// wave and aligned to `bytes`. What a lane copied may be read after its [`Builder::drain`] or
    /// [`Builder::wait_asyncmark`] (and a barrier, by other waves).
    #[track_caller]
    pub fn copy_to_lds<T: Element + Plain>(
        &'k self,
        buffer: Buffer<'k, T, impl Readable>,
        offset: impl Offset<'k>,
        pointer: V<'k, LdsPtr<T>>,
        bytes: u32,
    ) {
        self.copy_to_lds_with(buffer, offset, pointer, bytes, CopyOptions::new());
    }

    /// As [`Builder::copy_to_lds`], with a scalar offset or a cache behaviour.
    #[track_caller]
    pub fn copy_to_lds_with<T: Element + Plain>(
        &'k self,
        buffer: Buffer<'k, T, impl Readable>,
        offset: impl Offset<'k>,
        pointer: V<'k, LdsPtr<T>>,
        bytes: u32,
        options: CopyOptions<'k>,
    ) {
        let (offset, unit) = offset.offset(buffer.k);
        self.emit_void(Op::CopyToLds {
            buffer: buffer.id,
            offset,
            pointer: pointer.id,
            unit,
            scalar: options.scalar.map(|v| v.id),
            bytes,
            cache: options.cache,
        });
    }
}

/// Extent of a buffer in bytes: `u32`, `u64` or an index, as a device value or (`u32`) a Rust number.
pub trait Extent<'k> {
    /// The extent's id.
    #[doc(hidden)]
    #[track_caller]
    fn extent(self, k: &'k Builder<'k>) -> Value;
}

impl<'k> Extent<'k> for u32 {
    #[track_caller]
    fn extent(self, k: &'k Builder<'k>) -> Value {
        k.constant(self).id
    }
}

macro_rules! extent {
    ($($t:ty)*) => {$(
        impl<'k> Extent<'k> for V<'k, $t> {
            fn extent(self, _: &'k Builder<'k>) -> Value {
                self.id
            }
        }
    )*};
}

extent!(u32 u64 Idx);
