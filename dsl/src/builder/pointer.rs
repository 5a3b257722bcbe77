//! Pointers into LDS and global memory.

use std::marker::PhantomData;
use std::ops::Add;

use super::Builder;
use super::element::{Atomic, AtomicInt, Data, Element, Idx, Plain, Sealed, Ty};
use super::value::{Operand, V};
use crate::ir::{AtomicOp, LdsArray, Memory, Op, Order, Scope, Space, Type, Value};

/// An address space, as a type.
pub trait AddressSpace: Sealed + 'static {
    /// As a value.
    const SPACE: Space;
}

/// The workgroup's LDS (shared memory).
#[derive(Clone, Copy, Debug)]
pub enum Lds {}

/// Device memory.
#[derive(Clone, Copy, Debug)]
pub enum Global {}

impl Sealed for Lds {}
impl Sealed for Global {}

impl AddressSpace for Lds {
    const SPACE: Space = Space::Lds;
}

impl AddressSpace for Global {
    const SPACE: Space = Space::Global;
}

/// Pointer to elements of type `T` in address space `S`; `pointer + n` counts elements.
#[derive(Clone, Copy, Debug)]
pub enum Ptr<S, T> {
    #[doc(hidden)]
    Never(std::convert::Infallible, PhantomData<(S, T)>),
}

/// Pointer into the workgroup's LDS.
pub type LdsPtr<T> = Ptr<Lds, T>;

/// Pointer into device memory.
pub type GlobalPtr<T> = Ptr<Global, T>;

impl<S, T> Sealed for Ptr<S, T> {}

impl<S: AddressSpace, T: Element> Ty for Ptr<S, T> {
    const TYPE: Type = Type::Ptr(S::SPACE, T::SCALAR);
}

/// A count of elements: any integer, as a device value or a Rust number. It is exact, never wrapped to 32 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no count of elements",
    note = "a pointer moves by an integer or an index: a device value or a Rust number"
)]
pub trait Count<'k> {
    /// The device value's id.
    #[doc(hidden)]
    #[track_caller]
    fn count(self, k: &'k Builder<'k>) -> Value;
}

macro_rules! count {
    ($($t:ty)*) => {$(
        impl<'k> Count<'k> for V<'k, $t> {
            fn count(self, _: &'k Builder<'k>) -> Value {
                self.id
            }
        }

        impl<'k> Count<'k> for $t {
            #[track_caller]
            fn count(self, k: &'k Builder<'k>) -> Value {
                k.constant(self).id
            }
        }
    )*};
}

count!(i8 u8 i16 u16 i32 u32 i64 u64 Idx);

impl<'k, S: AddressSpace, T: Element + Plain, N: Count<'k>> Add<N> for V<'k, Ptr<S, T>> {
    type Output = Self;
    #[track_caller]
    fn add(self, n: N) -> Self {
        let n = n.count(self.k);
        self.k.emit(Op::PtrAdd(self.id, n))
    }
}

impl<'k, S: AddressSpace, T: Element + Plain> V<'k, Ptr<S, T>> {
    /// The same address as a pointer to another element type (fx `recast_iter`).
    #[track_caller]
    pub fn cast<U: Element + Plain>(self) -> V<'k, Ptr<S, U>> {
        if T::SCALAR == U::SCALAR { V::new(self.k, self.id) } else { self.k.emit(Op::PtrCast(self.id)) }
    }

    /// The pointer `bytes` bytes further, to another element type: a member of a struct or of a union.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// // struct { f32 sums[64]; union { u32 words[16]; u64 pairs[8]; } }
    /// let arena = k.lds_bytes("arena", 256 + 64, 16);
    /// let sums = arena.byte_offset::<f32>(0);
    /// let words = arena.byte_offset::<u32>(256);
    /// let pairs = arena.byte_offset::<u64>(256);
    /// # let _ = (sums + k.lane_id(), words, pairs);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn byte_offset<U: Element + Plain>(self, bytes: impl Count<'k>) -> V<'k, Ptr<S, U>> {
        (self.cast::<u8>() + Bytewise(bytes)).cast()
    }
}

/// A count that goes through [`Add`] as it is.
struct Bytewise<N>(N);

impl<'k, N: Count<'k>> Count<'k> for Bytewise<N> {
    #[track_caller]
    fn count(self, k: &'k Builder<'k>) -> Value {
        self.0.count(k)
    }
}

impl<'k, T: Element + Plain> V<'k, GlobalPtr<T>> {
    /// Its address.
    #[track_caller]
    pub fn to_int(self) -> V<'k, u64> {
        self.k.emit(Op::PtrToInt(self.id))
    }
}

impl<'k, T: Element + Plain> V<'k, LdsPtr<T>> {
    /// Its byte offset in the workgroup's LDS.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let tile = k.lds::<f32>("tile", 256);
    /// // Swizzled by bits of the address.
    /// let at = (tile + k.lane_id()).to_int();
    /// let swizzled = (at ^ ((at >> 7) & 0xC)).to_ptr::<f32>();
    /// # let _ = swizzled;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn to_int(self) -> V<'k, u32> {
        self.k.emit(Op::PtrToInt(self.id))
    }
}

impl<'k> V<'k, u64> {
    /// A pointer to global memory from its address.
    #[track_caller]
    pub fn to_ptr<T: Element + Plain>(self) -> V<'k, GlobalPtr<T>> {
        self.k.emit(Op::IntToPtr(self.id))
    }
}

impl<'k> V<'k, u32> {
    /// A pointer to LDS from its byte offset in the workgroup's LDS: it may point into any array.
    #[track_caller]
    pub fn to_ptr<T: Element + Plain>(self) -> V<'k, LdsPtr<T>> {
        self.k.emit(Op::IntToPtr(self.id))
    }
}

impl Memory {
    /// An ordinary access.
    pub const fn new() -> Self {
        Self { align: None, volatile: false, nontemporal: false, order: Order::Plain, scope: Scope::System }
    }

    /// With a promise: the address is a multiple of `bytes`, a power of two. (Without one: of the element's size.)
    #[must_use]
    pub const fn align(self, bytes: u32) -> Self {
        Self { align: Some(bytes), ..self }
    }

    /// Never merged, split, moved or left out.
    #[must_use]
    pub const fn volatile(self) -> Self {
        Self { volatile: true, ..self }
    }

    /// Not to be kept in caches; a hint.
    #[must_use]
    pub const fn nontemporal(self) -> Self {
        Self { nontemporal: true, ..self }
    }

    /// Atomic, without an order among other addresses.
    #[must_use]
    pub const fn relaxed(self, scope: Scope) -> Self {
        self.atomic(Order::Relaxed, scope)
    }

    /// Atomic; later accesses stay behind it. For loads.
    #[must_use]
    pub const fn acquire(self, scope: Scope) -> Self {
        self.atomic(Order::Acquire, scope)
    }

    /// Atomic; earlier accesses stay before it. For stores.
    #[must_use]
    pub const fn release(self, scope: Scope) -> Self {
        self.atomic(Order::Release, scope)
    }

    /// Atomic, in one order of all such accesses.
    #[must_use]
    pub const fn seq_cst(self, scope: Scope) -> Self {
        self.atomic(Order::SeqCst, scope)
    }

    const fn atomic(self, order: Order, scope: Scope) -> Self {
        Self { order, scope, ..self }
    }
}

impl<'k> Builder<'k> {
    /// Reserves an LDS array of `len` elements, aligned to 16 bytes, and points to its element 0. Its content is
    /// undefined until stored to. `name` is for messages and printed IR.
    #[track_caller]
    pub fn lds<T: Element + Plain>(&'k self, name: &'static str, len: u32) -> V<'k, LdsPtr<T>> {
        self.lds_aligned(name, len, 16)
    }

    /// As [`Builder::lds`], aligned to `align` bytes: a power of two from the element's size to 4096.
    #[track_caller]
    pub fn lds_aligned<T: Element + Plain>(&'k self, name: &'static str, len: u32, align: u32) -> V<'k, LdsPtr<T>> {
        let index = {
            let lds = &mut self.state.borrow_mut().lds;
            lds.push(LdsArray { name, elem: T::SCALAR, len, align });
            lds.len() as u32 - 1
        };
        if len == 0 {
            self.refuse(format!("LDS array `{name}` has no elements"));
        }
        if !align.is_power_of_two() || !(T::SCALAR.bytes()..=crate::verify::MAX_ALIGN).contains(&align) {
            self.refuse(format!(
                "LDS array `{name}` of {} aligned to {align}; allowed are powers of two from {} to {}",
                T::SCALAR,
                T::SCALAR.bytes(),
                crate::verify::MAX_ALIGN
            ));
        }
        self.emit(Op::LdsBase(index))
    }

    /// Reserves `bytes` bytes of LDS for a struct or a union, whose members are [`V::byte_offset`]s.
    #[track_caller]
    pub fn lds_bytes(&'k self, name: &'static str, bytes: u32, align: u32) -> V<'k, LdsPtr<u8>> {
        self.lds_aligned(name, bytes, align)
    }

    /// Loads through a pointer: `D` is the pointer's element type or a vector of it, read from consecutive elements (fx
    /// `ptr_load`). The address is a multiple of the element's size.
    #[track_caller]
    pub fn ptr_load<D: Data + Plain>(&'k self, pointer: V<'k, Ptr<impl AddressSpace, D::Elem>>) -> V<'k, D> {
        self.ptr_load_with(pointer, Memory::new())
    }

    /// As [`Builder::ptr_load`], with options (fx `generic_load`).
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// # let address = k.constant(0u64);
    /// let flag = address.to_ptr::<u32>();
    /// let seen = k.ptr_load_with::<u32>(flag, Memory::new().acquire(Scope::Device));
    /// let row: V<Vector<f32, 4>> = k.ptr_load_with(flag.cast::<f32>() + 4, Memory::new().align(16).nontemporal());
    /// # let _ = (seen, row);
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn ptr_load_with<D: Data + Plain>(
        &'k self,
        pointer: V<'k, Ptr<impl AddressSpace, D::Elem>>,
        memory: Memory,
    ) -> V<'k, D> {
        self.emit(Op::PtrLoad { pointer: pointer.id, memory })
    }

    /// Stores through a pointer: the pointer's element type or a vector of it, to consecutive elements (fx `ptr_store`).
    #[track_caller]
    pub fn ptr_store<D: Data + Plain>(&'k self, value: V<'k, D>, pointer: V<'k, Ptr<impl AddressSpace, D::Elem>>) {
        self.ptr_store_with(value, pointer, Memory::new());
    }

    /// As [`Builder::ptr_store`], with options (fx `generic_store`).
    #[track_caller]
    pub fn ptr_store_with<D: Data + Plain>(
        &'k self,
        value: V<'k, D>,
        pointer: V<'k, Ptr<impl AddressSpace, D::Elem>>,
        memory: Memory,
    ) {
        self.emit_void(Op::PtrStore { value: value.id, pointer: pointer.id, memory });
    }

    /// Orders the thread's memory accesses before it with those after it; `order` is not `plain` or `relaxed`.
    #[track_caller]
    pub fn fence(&'k self, order: Order, scope: Scope) {
        self.emit_void(Op::Fence { order, scope });
    }

    /// Waits until the thread's earlier stores are visible to `scope` and its copies to LDS have landed. Needed before a flag
    /// that tells others of them: a barrier drains nothing.
    #[track_caller]
    pub fn drain(&'k self, scope: Scope) {
        self.emit_void(Op::Drain { scope });
    }

    #[track_caller]
    fn atomic<S: AddressSpace, T: Atomic>(
        &'k self,
        op: AtomicOp,
        pointer: V<'k, Ptr<S, T>>,
        value: V<'k, T>,
        order: Order,
        scope: Scope,
    ) -> V<'k, T> {
        self.emit(Op::AtomicRmw { op, pointer: pointer.id, value: value.id, order, scope })
    }

    /// Atomic compare-and-swap: stores `value` if the memory holds `expected`, bit for bit. Gives the value before.
    #[track_caller]
    pub fn atomic_cas<S: AddressSpace, T: Atomic>(
        &'k self,
        pointer: V<'k, Ptr<S, T>>,
        expected: impl Operand<'k, T>,
        value: impl Operand<'k, T>,
        order: Order,
        scope: Scope,
    ) -> V<'k, T> {
        let (expected, value) = (expected.value(self), value.value(self));
        self.emit(Op::AtomicCas { pointer: pointer.id, expected: expected.id, value: value.id, order, scope })
    }
}

macro_rules! atomics {
    ($($class:ident { $($(#[doc = $doc:literal])+ $name:ident = $op:ident;)* })*) => {
        impl<'k> Builder<'k> {
            $($(
                $(#[doc = $doc])+
                ///
                /// Atomic among the threads of `scope`; `order` is not `plain`. Gives the value before.
                #[track_caller]
                pub fn $name<S: AddressSpace, T: $class>(
                    &'k self,
                    pointer: V<'k, Ptr<S, T>>,
                    value: impl Operand<'k, T>,
                    order: Order,
                    scope: Scope,
                ) -> V<'k, T> {
                    let value = value.value(self);
                    self.atomic(AtomicOp::$op, pointer, value, order, scope)
                }
            )*)*
        }
    };
}

atomics! {
    Atomic {
        /// Adds; floats round to nearest even.
        atomic_add = Add;
        /// Subtracts.
        atomic_sub = Sub;
        /// Keeps the smaller one; floats as [`V::minnum`].
        atomic_min = Min;
        /// Keeps the larger one; floats as [`V::maxnum`].
        atomic_max = Max;
        /// Stores the new value.
        atomic_xchg = Xchg;
    }
    AtomicInt {
        /// Bitwise and.
        atomic_and = And;
        /// Bitwise or.
        atomic_or = Or;
        /// Bitwise exclusive or.
        atomic_xor = Xor;
    }
}
