//! Tracing: the typed handles an author computes with, and the recorder behind them.
//!
//! Handles are `Copy` and branded by the builder's invariant lifetime, so a value of one kernel cannot be used in
//! another; element types, vector lengths and address spaces are types, so mixing them up does not compile.

mod buffer;
mod control;
mod element;
mod group;
mod image;
mod lanes;
mod mailbox;
mod math;
pub mod matrix;
mod narrow;
mod native;
mod options;
mod pointer;
mod schedule;
mod transpose;
mod value;
mod vector;

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;

pub use buffer::{AddressTable, Buffer, Bytes, Extent, Offset, Readable, Writable};
pub use control::{LoopBound, Values};
pub use element::{
    Atomic, AtomicInt, Bitwise, ConvertTo, Data, Element, Float, HwFloat, Idx, Integer, LoopIndex, MathFloat, Number,
    Numeric, Plain, SizedInt, Ty, Vector,
};
pub use group::{Group, Grouped};
pub use half::{bf16, f16};
pub use image::{ReadFrom, Surface, Texel, Texture};
pub use mailbox::{
    Bounded, HEALTH_WORDS, Mailbox, Message, NO_SOURCE, POLL_MAX, Region, TAG_EPOCHS, TAG_SLOTS, WAITED_UNIT_NS,
    step_tag_of,
};
pub use narrow::Codes;
pub use options::{AtomicOptions, CopyOptions, LoadOptions, StoreOptions};
pub use pointer::{AddressSpace, Count, Global, GlobalPtr, Lds, LdsPtr, Ptr};
use rustc_hash::FxBuildHasher;
pub use schedule::{Waitcnt, sched};
pub use transpose::Transposable;
pub use value::{Operand, V};

use crate::error::Refusal;
use crate::ir::{
    Axis, Bits, Block, FastMath, Inst, Kernel, Launch, LdsArray, Location, Op, OpNumber, Param, Type, Value,
};
use crate::target::{Chip, Target};

/// Records the operations of one kernel while its author's function runs.
///
/// Only [`crate::trace`] (or [`build`]) makes one, behind a closure that is generic over `'k`: the lifetime brands every
/// value of this kernel.
pub struct Builder<'k> {
    state: RefCell<State>,
    target: Target,
    launch: Launch,
    /// Invariant in `'k`: with a covariant brand, values of two kernels would mix.
    brand: PhantomData<fn(&'k ()) -> &'k ()>,
}

#[derive(Default)]
struct State {
    params: Vec<Param>,
    fast_math: FastMath,
    lds: Vec<LdsArray>,
    values: Vec<Type>,
    locations: Vec<Location>,
    /// Constants stand at the kernel's head, one per type and bits, wherever the author wrote them.
    constants: Vec<Inst>,
    known: HashMap<(Type, Bits), Value, FxBuildHasher>,
    /// Open blocks, innermost last; the first is the kernel's body.
    blocks: Vec<Block>,
    /// Regions that [`Builder::exit_if`] opened, the outermost first.
    exits: Vec<Exit>,
    refusal: Option<Refusal>,
}

/// A place where some lanes leave the kernel.
struct Exit {
    /// Holds in the lanes that stay.
    stays: Value,
    location: Location,
}

impl State {
    fn value(&mut self, ty: Type) -> Value {
        self.values.push(ty);
        Value(self.values.len() as u32 - 1)
    }

    fn number(&mut self, location: Location) -> OpNumber {
        self.locations.push(location);
        OpNumber(self.locations.len() as u32)
    }
}

/// Traces `body` into a kernel called `name` without a build key: for tests and tools.
///
/// `params` become the kernel's parameters in order; their handles are made with [`Builder::param`] and
/// [`Builder::buffer`]. The result is not verified.
///
/// # Errors
/// The first misuse that tracing itself notices.
pub fn build(
    name: &str,
    target: Target,
    launch: Launch,
    params: Vec<Param>,
    body: impl for<'k> FnOnce(&'k Builder<'k>),
) -> Result<Kernel, Refusal> {
    let values = params.iter().map(Param::ty).collect();
    let state = State { params, values, blocks: vec![Block::default()], ..State::default() };
    let builder = Builder { state: RefCell::new(state), target, launch, brand: PhantomData };
    body(&builder);
    let mut state = builder.state.take();
    state.close_exits();
    if let Some(refusal) = state.refusal {
        return Err(refusal);
    }
    let mut body = state.blocks.into_iter().next().unwrap_or_default();
    body.insts.splice(0..0, state.constants);
    let kernel = Kernel {
        name: name.to_owned(),
        wave: target.chip().wave,
        launch,
        fast_math: state.fast_math,
        params: state.params,
        lds: state.lds,
        values: state.values,
        body,
        locations: state.locations,
    };
    Ok(kernel.normalised())
}

impl<'k> Builder<'k> {
    /// The chip this kernel is traced for.
    pub fn chip(&self) -> &'static Chip {
        self.target.chip()
    }

    /// The target this kernel is traced for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Lanes a wave has on this target: a build-time number.
    pub fn wave(&self) -> u32 {
        self.target.chip().wave
    }

    /// The launch shape: build-time numbers.
    pub fn launch(&self) -> Launch {
        self.launch
    }

    /// Threads of a workgroup along x, y, z: build-time numbers (fx `block_dim`).
    pub fn block_dim(&self) -> [u32; 3] {
        self.launch.block
    }

    /// Workgroups of the launch along x, y, z: build-time numbers (fx `grid_dim`).
    pub fn grid_dim(&self) -> [u32; 3] {
        self.launch.grid
    }

    /// Gives the compiler licences about the floats of the whole kernel; without a call it has none.
    pub fn fast_math(&self, licences: FastMath) {
        self.state.borrow_mut().fast_math = licences;
    }

    /// Index of the thread in its workgroup along an axis (fx `thread_idx`).
    #[track_caller]
    pub fn thread_id(&'k self, axis: Axis) -> V<'k, u32> {
        self.emit(Op::ThreadId(axis))
    }

    /// Index of the workgroup in the grid along an axis (fx `block_idx`).
    #[track_caller]
    pub fn block_id(&'k self, axis: Axis) -> V<'k, u32> {
        self.emit(Op::BlockId(axis))
    }

    /// All threads of the workgroup wait for each other; LDS stores before it are visible after it (fx `gpu.barrier`).
    /// It does not order global memory, and every thread of the workgroup must reach it.
    #[track_caller]
    pub fn barrier(&'k self) {
        self.emit_void(Op::Barrier);
    }

    /// A constant.
    #[track_caller]
    pub fn constant<T: Element>(&'k self, value: T) -> V<'k, T> {
        V::new(self, self.const_value(T::TYPE, value.bits()))
    }

    /// The handle of scalar parameter `index`.
    pub fn param<T: Element>(&'k self, index: u32) -> V<'k, T> {
        V::new(self, Value(index))
    }

    #[track_caller]
    fn const_value(&self, ty: Type, bits: Bits) -> Value {
        self.const_value_at(ty, bits, Location::caller())
    }

    fn const_value_at(&self, ty: Type, bits: Bits, location: Location) -> Value {
        let state = &mut *self.state.borrow_mut();
        if let Some(&v) = state.known.get(&(ty, bits)) {
            return v;
        }
        let number = state.number(location);
        let v = state.value(ty);
        state.known.insert((ty, bits), v);
        state.constants.push(Inst { number, op: Op::Const(bits), results: vec![v] });
        v
    }

    #[track_caller]
    fn emit<T: Ty>(&'k self, op: Op) -> V<'k, T> {
        let results = self.emit_op(op, &[T::TYPE]);
        V::new(self, results[0])
    }

    #[track_caller]
    fn emit_void(&self, op: Op) {
        self.emit_op(op, &[]);
    }

    /// Like [`Self::emit`], for a call that emits several operations at one place of the author's.
    fn emit_at<T: Ty>(&'k self, op: Op, location: Location) -> V<'k, T> {
        let results = self.emit_op_at(op, &[T::TYPE], location);
        V::new(self, results[0])
    }

    #[track_caller]
    fn emit_op(&self, op: Op, types: &[Type]) -> Vec<Value> {
        self.emit_op_at(op, types, Location::caller())
    }

    fn emit_op_at(&self, op: Op, types: &[Type], location: Location) -> Vec<Value> {
        let state = &mut *self.state.borrow_mut();
        let number = state.number(location);
        let results: Vec<Value> = types.iter().map(|t| state.value(*t)).collect();
        if let Some(block) = state.blocks.last_mut() {
            block.insts.push(Inst { number, op, results: results.clone() });
        }
        results
    }

    /// Remembers the first misuse; tracing goes on, [`build`] then fails with it.
    #[track_caller]
    fn refuse(&self, message: String) {
        self.refuse_at(message, Location::caller());
    }

    fn refuse_at(&self, message: String, location: Location) {
        let location = Some(location);
        self.state.borrow_mut().refusal.get_or_insert(Refusal { location, message });
    }
}
