//! Operations of Kernel IR: what each one means. The CPU device executes exactly this.

use serde::{Deserialize, Serialize};

use super::{Block, Value};

/// A compile-time constant of a scalar type: its bits, zero-extended to 64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Bits(pub u64);

/// Axis of the launch grid or of the workgroup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Axis {
    /// Fastest running.
    X,
    /// Second.
    Y,
    /// Slowest running.
    Z,
}

impl Axis {
    /// 0, 1 or 2.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Operations with one operand; operand and result have the same type, element by element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum UnaryOp {
    /// Negation: of a float exact (−0 for 0; a NaN stays a NaN); integers wrap.
    Neg,
    /// Complement: logical of `bool`, bitwise of integers.
    Not,
    /// `f32`: hardware 2^x. Within 2 ulp of the exact value where that is a normal number; results and
    /// operands that are subnormal may be flushed to zero. `cpu`: correctly rounded.
    HwExp2,
    /// `f32`: hardware 1/x. Within 1 ulp where operand and result are normal numbers; subnormal ones may be
    /// flushed to zero. `cpu`: correctly rounded.
    HwRcp,
}

/// Operations with two operands of one type, the result's, element by element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum BinaryOp {
    /// Sum. Floats round to nearest even, once; integers wrap.
    Add,
    /// Difference, likewise.
    Sub,
    /// Product, likewise.
    Mul,
    /// `f32` quotient, correctly rounded.
    Div,
    /// Integer quotient rounded towards −∞. Division by zero is reported on `cpu`, unspecified elsewhere.
    DivFloor,
    /// Integer remainder with the divisor's sign: `a − b·div_floor(a, b)`.
    RemFloor,
    /// Bitwise of integers, logical of `bool`.
    And,
    /// Likewise.
    Or,
    /// Likewise.
    Xor,
    /// Shift left; the amount is taken modulo the width.
    Shl,
    /// Shift right, arithmetic if signed, logical if unsigned; the amount is taken modulo the width.
    Shr,
    /// Larger one. Floats: NaN if either is NaN, −0 < +0.
    Maximum,
    /// Smaller one. Floats: NaN if either is NaN, −0 < +0.
    Minimum,
}

/// Comparisons; float comparisons with a NaN are false, except [`Predicate::Ne`], which is then true.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Predicate {
    /// a = b
    Eq,
    /// a ≠ b
    Ne,
    /// a < b
    Lt,
    /// a ≤ b
    Le,
    /// a > b
    Gt,
    /// a ≥ b
    Ge,
}

/// What the offset of a buffer access counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum OffsetUnit {
    /// Bytes from the buffer's start.
    Bytes,
    /// Elements of the accessed value's element type from the buffer's start.
    Elements,
}

/// One operation. Operand and result types are checked by [`crate::verify`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Op {
    /// A constant; of a vector type, the same in every element.
    Const(Bits),
    /// Index of the thread in its workgroup along an axis: `u32`.
    ThreadId(Axis),
    /// Index of the workgroup in the grid along an axis: `u32`.
    BlockId(Axis),
    /// See [`UnaryOp`].
    Unary(UnaryOp, Value),
    /// See [`BinaryOp`].
    Binary(BinaryOp, Value, Value),
    /// See [`Predicate`]; the result is `bool` (a vector of it for vectors).
    Compare(Predicate, Value, Value),
    /// `on_true` where the condition (one `bool`) holds, else `on_false`; NaN bits are kept.
    Select {
        /// One `bool`.
        condition: Value,
        /// Taken where it holds.
        on_true: Value,
        /// Taken where it does not.
        on_false: Value,
    },
    /// Value-preserving or rounding conversion to the result's element type, element by element:
    /// integer → integer keeps the low bits (sign- or zero-extends by the operand's signedness);
    /// integer → float and float → narrower float round to nearest even (NaN stays NaN); float → wider float is exact.
    Convert(Value),
    /// The same bits as another type of the same total width. Element 0 is the least significant.
    Bitcast(Value),
    /// A vector of these elements, in order.
    VectorFrom(Vec<Value>),
    /// One element of a vector.
    Extract(Value, u32),
    /// Pointer to element 0 of an LDS array of this kernel.
    LdsBase(u32),
    /// `pointer + n` elements (`n`: `u32`).
    PtrAdd(Value, Value),
    /// Load from LDS of the result's type, at consecutive elements.
    PtrLoad(Value),
    /// Store to LDS, at consecutive elements. No result. Which of several threads' different values an element keeps, if
    /// one operation stores them there, is unspecified; `gcn` reports it.
    PtrStore {
        /// What is stored: scalar or vector of the pointer's element type.
        value: Value,
        /// Where.
        pointer: Value,
    },
    /// Load from a buffer of the result's type (its element type need not be the buffer's).
    /// An access that does not end within the buffer gives 0 in every element.
    BufferLoad {
        /// The buffer.
        buffer: Value,
        /// `u32`, in `unit`s; never wraps: the byte offset is computed exactly.
        offset: Value,
        /// What `offset` counts.
        unit: OffsetUnit,
    },
    /// Store to a buffer. An access that does not end within the buffer is dropped. No result.
    BufferStore {
        /// What is stored.
        value: Value,
        /// The buffer.
        buffer: Value,
        /// `u32`, in `unit`s; never wraps.
        offset: Value,
        /// What `offset` counts.
        unit: OffsetUnit,
    },
    /// All threads of the workgroup wait for each other; LDS stores before it are visible after it.
    Barrier,
    /// Runs one of two regions, by lane; results are the taken region's yields.
    If {
        /// One `bool`.
        condition: Value,
        /// Run where it holds.
        then: Block,
        /// Run where it does not; its yields have the same types.
        otherwise: Block,
    },
    /// Runs the body for `i = lo, lo + step, …` while `i < hi`, as mathematical integers (no wrap-around).
    /// The body's first parameter is `i` (`u32`), the rest are the carried values; its yields are the next
    /// iteration's carried values and, at the end, the results.
    For {
        /// First index, `u32`.
        lo: Value,
        /// End (exclusive), `u32`.
        hi: Value,
        /// Distance between indices, at least 1.
        step: u32,
        /// Initial carried values.
        init: Vec<Value>,
        /// The loop's body.
        body: Block,
    },
}

impl Op {
    /// Operands in order, without those used inside nested blocks.
    pub fn operands(&self) -> Vec<Value> {
        match self {
            Self::Const(_) | Self::ThreadId(_) | Self::BlockId(_) | Self::LdsBase(_) | Self::Barrier => vec![],
            Self::Unary(_, a) | Self::Convert(a) | Self::Bitcast(a) | Self::Extract(a, _) | Self::PtrLoad(a) => {
                vec![*a]
            }
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::PtrAdd(a, b) => vec![*a, *b],
            Self::Select { condition, on_true, on_false } => vec![*condition, *on_true, *on_false],
            Self::VectorFrom(v) => v.clone(),
            Self::PtrStore { value, pointer } => vec![*value, *pointer],
            Self::BufferLoad { buffer, offset, .. } => vec![*buffer, *offset],
            Self::BufferStore { value, buffer, offset, .. } => vec![*value, *buffer, *offset],
            Self::If { condition, .. } => vec![*condition],
            Self::For { lo, hi, init, .. } => [*lo, *hi].into_iter().chain(init.iter().copied()).collect(),
        }
    }

    /// Calls `f` on every operand, in the order of [`Op::operands`].
    pub fn operands_mut(&mut self, mut f: impl FnMut(&mut Value)) {
        match self {
            Self::Const(_) | Self::ThreadId(_) | Self::BlockId(_) | Self::LdsBase(_) | Self::Barrier => {}
            Self::Unary(_, a) | Self::Convert(a) | Self::Bitcast(a) | Self::Extract(a, _) | Self::PtrLoad(a) => f(a),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::PtrAdd(a, b) => [a, b].into_iter().for_each(f),
            Self::Select { condition, on_true, on_false } => [condition, on_true, on_false].into_iter().for_each(f),
            Self::VectorFrom(v) => v.iter_mut().for_each(f),
            Self::PtrStore { value, pointer } => [value, pointer].into_iter().for_each(f),
            Self::BufferLoad { buffer, offset, .. } => [buffer, offset].into_iter().for_each(f),
            Self::BufferStore { value, buffer, offset, .. } => [value, buffer, offset].into_iter().for_each(f),
            Self::If { condition, .. } => f(condition),
            Self::For { lo, hi, init, .. } => [lo, hi].into_iter().chain(init).for_each(f),
        }
    }

    /// Nested blocks in order.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Self::If { then, otherwise, .. } => vec![then, otherwise],
            Self::For { body, .. } => vec![body],
            _ => vec![],
        }
    }

    /// Nested blocks in order.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Self::If { then, otherwise, .. } => vec![then, otherwise],
            Self::For { body, .. } => vec![body],
            _ => vec![],
        }
    }
}
