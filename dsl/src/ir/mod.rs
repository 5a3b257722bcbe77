//! Kernel IR: typed SSA with structured control flow, one kernel a unit.
//!
//! A [`Kernel`] is data only: tracing makes one, [`crate::verify`] accepts or refuses it, [`print`] shows it, and
//! the CPU device and the code generators read it. It names no compiler and no vendor.

mod def;
mod fast_math;
mod image;
mod kind;
mod op;
mod parse;
mod parts;
mod print;
mod types;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize};

pub use def::{Agreement, Family, OpDef};
pub use fast_math::{FastFlags, FastMath};
pub use image::{Coordinates, Filter, ImageType, MAX_IMAGE, MAX_IMAGES, TEXEL};
pub use kind::OpKind;
pub use op::{
    AtomicKind, AtomicOp, Axis, BinaryOp, Bits, ButterflyOp, Cache, Coherence, Memory, NativeCode, NativeForm,
    OffsetUnit, Op, Order, Predicate, ReduceOp, Scope, ShuffleOp, UnaryOp, Unroll,
};
pub use parse::{ParseError, parse};
pub use types::{Class, Scalar, Space, Type};

/// Largest argument block of a kernel, in bytes: 128 buffers, so that a launch can pack it on its stack. (CUDA takes 4096.)
pub const MAX_ARGUMENT_BYTES: u32 = 1024;

/// Largest extent of a buffer, in bytes: what one AMD descriptor can address, with room for a 32-bit offset that is surely
/// outside it.
pub const MAX_BUFFER_BYTES: u64 = 0xFFFF_FF00;

/// What the clocks of `cpu` and `gcn` go on by at each reading ([`Op::Clock`]).
pub const CLOCK_STEP_NS: u64 = 1000;

/// A name from the author's source.
///
/// An alias, because serde's derive takes a field of type `&str` for one that borrows from its input.
pub type Name = &'static str;

/// An SSA value: index into [`Kernel::values`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Value(pub u32);

impl Value {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// Number of an operation in its kernel, in trace order from 1; the "line" that object line tables carry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OpNumber(pub u32);

/// Where in the author's Rust source an operation was written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Location {
    /// Path relative to the workspace.
    #[serde(deserialize_with = "interned")]
    pub file: Name,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl Location {
    /// The caller's location.
    #[track_caller]
    pub fn caller() -> Self {
        let l = std::panic::Location::caller();
        Self { file: l.file(), line: l.line(), column: l.column() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One operation with its results.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Inst {
    /// Its number; [`Kernel::location`] maps it to the source.
    pub number: OpNumber,
    /// What it does.
    pub op: Op,
    /// Values it defines, in order.
    pub results: Vec<Value>,
}

/// A straight list of operations with parameters at its head and yields at its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Block {
    /// Values the block starts with (loop index, carried values).
    pub params: Vec<Value>,
    /// In order of execution.
    pub insts: Vec<Inst>,
    /// Values the block hands out.
    pub yields: Vec<Value>,
}

/// How a kernel uses a buffer parameter. Buffers of one launch never overlap unless all are read only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Access {
    /// Only loads.
    Read,
    /// Only stores.
    Write,
    /// Both.
    ReadWrite,
}

/// A kernel parameter; parameter `i` is `Value(i)`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Param {
    /// As declared in the argument struct.
    #[serde(deserialize_with = "interned")]
    pub name: Name,
    /// What is passed.
    pub kind: ParamKind,
}

impl Param {
    /// Type of the parameter's value.
    pub fn ty(&self) -> Type {
        match self.kind {
            ParamKind::Buffer { elem, .. } => Type::Buffer(elem),
            ParamKind::Texture { image, .. } => Type::Texture(image.elem),
            ParamKind::Surface(image) => Type::Surface(image.elem),
            ParamKind::Scalar(s) => Type::Scalar(s),
        }
    }
}

/// What a parameter is. Kernel ABI: parameters in order, each at its natural alignment;
/// a buffer is its 64-bit device address (the extent is part of the build key), an image the 64-bit handle of its texture or
/// surface object (on the CPU device the address of its texels), a scalar its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ParamKind {
    /// Global memory.
    Buffer {
        /// Element type.
        elem: Scalar,
        /// Extent in elements.
        len: u64,
        /// How it is used.
        access: Access,
        /// Alignment of the address in bytes, a power of two.
        align: u32,
    },
    /// A value, the same for all threads.
    Scalar(Scalar),
    /// An image that the kernel reads through texture units. Coordinates outside stand for the nearest texel's.
    Texture {
        /// Texels.
        image: ImageType,
        /// What samples are.
        filter: Filter,
        /// What sample coordinates count.
        coordinates: Coordinates,
    },
    /// An image that the kernel stores texels to.
    Surface(ImageType),
}

impl ParamKind {
    /// Extent in bytes of a buffer.
    pub fn buffer_bytes(self) -> Option<u64> {
        match self {
            Self::Buffer { elem, len, .. } => Some(len * u64::from(elem.bytes())),
            Self::Texture { .. } | Self::Surface(_) | Self::Scalar(_) => None,
        }
    }

    /// Where the next parameter of this kind lies after `at` bytes of the argument block; moves `at` behind it.
    fn place(self, at: &mut u32) -> u32 {
        let size = self.abi_bytes();
        // A power of two; a launch packs faster without the division.
        let start = (*at + size - 1) & !(size - 1);
        *at = start + size;
        start
    }

    /// Size and alignment in the argument block, in bytes.
    pub fn abi_bytes(self) -> u32 {
        match self {
            Self::Buffer { .. } | Self::Texture { .. } | Self::Surface(_) => 8,
            Self::Scalar(s) => s.bytes(),
        }
    }
}

/// An array in the workgroup's LDS.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LdsArray {
    /// For messages and printed IR.
    #[serde(deserialize_with = "interned")]
    pub name: Name,
    /// Element type.
    pub elem: Scalar,
    /// Extent in elements.
    pub len: u32,
    /// Alignment of element 0 in bytes.
    pub align: u32,
}

/// Launch shape and launch hints of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// Workgroups along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a workgroup along x, y, z.
    pub block: [u32; 3],
    /// AMD: waves an execution unit should hold at least (caps registers). Other targets ignore it.
    pub waves_per_eu: Option<u32>,
    /// NVIDIA: most registers a thread may use. Other targets ignore it.
    pub maxnreg: Option<u32>,
}

impl Launch {
    /// A one-dimensional launch without hints.
    pub const fn linear(grid: u32, block: u32) -> Self {
        Self { grid: [grid, 1, 1], block: [block, 1, 1], waves_per_eu: None, maxnreg: None }
    }

    /// Threads of a workgroup; saturates.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().fold(1u32, |a, b| a.saturating_mul(*b))
    }

    /// Workgroups of the launch.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1u64, |a, b| a.saturating_mul(u64::from(*b)))
    }
}

/// One kernel.
///
/// Two kernels are equal, and print the same, if they do the same; where they were written plays no part
/// ([`Kernel::locations`] is left out of `==` and of the printed form).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// Entry point's name: letters, digits, `_`.
    pub name: String,
    /// Lanes a wave, a fact of the target the kernel was traced for.
    pub wave: u32,
    /// Grid, workgroup and hints.
    pub launch: Launch,
    /// Licences about floats.
    pub fast_math: FastMath,
    /// Arguments, in ABI order.
    pub params: Vec<Param>,
    /// LDS arrays; `Op::LdsBase` refers to them by index.
    pub lds: Vec<LdsArray>,
    /// Type of every value.
    pub values: Vec<Type>,
    /// The body.
    pub body: Block,
    /// Source location of operation number `i + 1`.
    pub locations: Vec<Location>,
}

impl Kernel {
    /// Type of a value.
    pub fn ty(&self, v: Value) -> Type {
        self.values[v.index()]
    }

    /// Where an operation was written.
    pub fn location(&self, op: OpNumber) -> Location {
        self.locations[op.0 as usize - 1]
    }

    /// Number of operations, nested ones counted.
    pub fn op_count(&self) -> u32 {
        self.locations.len() as u32
    }

    /// Byte offset of every LDS array in the workgroup's LDS, and the total size.
    pub fn lds_layout(&self) -> (Vec<u32>, u32) {
        let mut at = 0u32;
        let offsets = self
            .lds
            .iter()
            .map(|a| {
                let start = at.next_multiple_of(a.align);
                at = start.saturating_add(a.len.saturating_mul(a.elem.bytes()));
                start
            })
            .collect();
        (offsets, at)
    }

    /// Calls `f` on every operation, outer before inner, in order.
    pub fn walk<'a>(&'a self, f: &mut impl FnMut(&'a Inst)) {
        fn block<'a>(b: &'a Block, f: &mut impl FnMut(&'a Inst)) {
            for inst in &b.insts {
                f(inst);
                for nested in inst.op.blocks() {
                    block(nested, f);
                }
            }
        }
        block(&self.body, f);
    }

    /// The same kernel with values and operations numbered in the order in which they stand, so that the printed form
    /// does not depend on the order in which they were traced (constants are traced late but stand first).
    pub(crate) fn normalised(mut self) -> Self {
        let mut order = Renumber { value: vec![None; self.values.len()], values: vec![], locations: vec![] };
        for i in 0..self.params.len() {
            order.define(Value(i as u32), &self.values);
        }
        let mut body = std::mem::take(&mut self.body);
        order.block(&mut body, &self.values, &self.locations);
        Self { values: order.values, locations: order.locations, body, ..self }
    }

    /// Byte offset of every parameter in the argument block, and the block's size.
    pub fn abi_layout(&self) -> (Vec<u32>, u32) {
        let mut at = 0;
        let offsets = self.params.iter().map(|p| p.kind.place(&mut at)).collect();
        (offsets, at)
    }

    /// Size of the argument block, in bytes.
    pub fn abi_bytes(&self) -> u32 {
        let mut at = 0;
        for p in &self.params {
            p.kind.place(&mut at);
        }
        at
    }
}

impl PartialEq for Kernel {
    fn eq(&self, o: &Self) -> bool {
        (&self.name, self.wave, self.launch, self.fast_math, &self.params, &self.lds, &self.values, &self.body)
            == (&o.name, o.wave, o.launch, o.fast_math, &o.params, &o.lds, &o.values, &o.body)
    }
}

impl Eq for Kernel {}

/// A name of an author's from a stored kernel.
fn interned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    Ok(intern(String::deserialize(deserializer)?))
}

/// Names that are read back are kept for the rest of the process, each once however often it is read.
fn intern(name: String) -> Name {
    static NAMES: Mutex<Option<HashSet<Name>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    names.get(name.as_str()).copied().unwrap_or_else(|| {
        let name: Name = name.leak();
        names.insert(name);
        name
    })
}

/// New numbers for [`Kernel::normalised`].
struct Renumber {
    value: Vec<Option<Value>>,
    values: Vec<Type>,
    locations: Vec<Location>,
}

impl Renumber {
    fn define(&mut self, old: Value, types: &[Type]) -> Value {
        let new = Value(self.values.len() as u32);
        self.values.push(types[old.index()]);
        self.value[old.index()] = Some(new);
        new
    }

    /// The new number of a value that is used; a use before the definition gets a number that no definition has, which
    /// the verifier then refuses.
    fn used(&self, old: Value) -> Value {
        self.value[old.index()].unwrap_or(Value(u32::MAX))
    }

    fn block(&mut self, block: &mut Block, types: &[Type], locations: &[Location]) {
        for p in &mut block.params {
            *p = self.define(*p, types);
        }
        for inst in &mut block.insts {
            self.locations.push(locations[inst.number.0 as usize - 1]);
            inst.number = OpNumber(self.locations.len() as u32);
            inst.op.operands_mut(|v| *v = self.used(*v));
            for nested in inst.op.blocks_mut() {
                self.block(nested, types, locations);
            }
            for r in &mut inst.results {
                *r = self.define(*r, types);
            }
        }
        for y in &mut block.yields {
            *y = self.used(*y);
        }
    }
}
