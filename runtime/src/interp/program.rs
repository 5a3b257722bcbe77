//! Linear form of a kernel: what the executor runs.

use lathe_dsl::ir::{Axis, Kernel, LdsArray, Location, Param};

use super::error::Error;
use super::flatten;

/// A register: index of a row of lanes in the 32-bit or the 64-bit register file; which one, the instruction says.
pub(super) type Reg = u32;

/// Index of an instruction.
pub(super) type Pc = u32;

/// Register file. Scalars of at most 32 bits live zero-extended in 32-bit rows, 64-bit ones and LDS pointers in
/// 64-bit rows; a vector of `n` elements takes `n` consecutive rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    R32,
    R64,
}

/// Width of an element in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    B16,
    B32,
    B64,
}

impl Width {
    pub(super) const fn bytes(self) -> u32 {
        match self {
            Self::B16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
        }
    }

    /// Register file that holds such elements.
    pub(super) const fn class(self) -> Class {
        match self {
            Self::B16 | Self::B32 => Class::R32,
            Self::B64 => Class::R64,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unary32 {
    NegInt16,
    NegInt32,
    NegF32,
    NegBf16,
    NotBool,
    Not16,
    Not32,
    HwExp2,
    HwRcp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unary64 {
    Neg,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binary32 {
    AddInt16,
    AddInt32,
    AddF32,
    AddBf16,
    SubInt16,
    SubInt32,
    SubF32,
    SubBf16,
    MulInt16,
    MulInt32,
    MulF32,
    MulBf16,
    DivF32,
    And,
    Or,
    Xor,
    Shl16,
    Shl32,
    Shr16,
    ShrU32,
    ShrI32,
    MaxU32,
    MaxI32,
    MaxF32,
    MaxBf16,
    MinU32,
    MinI32,
    MinF32,
    MinBf16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binary64 {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Shl,
    ShrU,
    ShrI,
    MaxU,
    MaxI,
    MinU,
    MinI,
}

/// Integer division, which faults on zero. `Rem` selects the remainder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Divide {
    Unsigned,
    Signed,
    UnsignedRem,
    SignedRem,
}

/// How the bits of compared elements are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compared {
    Unsigned,
    Signed,
    F32,
    Bf16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Conversions that change bits. Source and destination class follow from the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conversion {
    /// 32-bit row → its low 16 bits.
    Low16,
    /// 64-bit row → its low 16 bits.
    Low16From64,
    /// 64-bit row → its low 32 bits.
    Low32From64,
    /// Zero-extends 32 to 64 bits.
    Zero64From32,
    /// Sign-extends 32 to 64 bits.
    Sign64From32,
    F32FromU32,
    F32FromI32,
    F32FromU64,
    F32FromI64,
    Bf16FromU32,
    Bf16FromI32,
    Bf16FromU64,
    Bf16FromI64,
    Bf16FromF32,
    F32FromBf16,
}

impl Conversion {
    /// Register files of result and operand.
    pub(super) const fn classes(self) -> (Class, Class) {
        match self {
            Self::Low16
            | Self::F32FromU32
            | Self::F32FromI32
            | Self::Bf16FromU32
            | Self::Bf16FromI32
            | Self::Bf16FromF32
            | Self::F32FromBf16 => (Class::R32, Class::R32),
            Self::Low16From64
            | Self::Low32From64
            | Self::F32FromU64
            | Self::F32FromI64
            | Self::Bf16FromU64
            | Self::Bf16FromI64 => (Class::R32, Class::R64),
            Self::Zero64From32 | Self::Sign64From32 => (Class::R64, Class::R32),
        }
    }
}

/// One instruction. `n` counts elements: the operation runs on `n` consecutive rows of each operand. The result's rows
/// never overlap an operand's. Only `Move*` with `masked` and memory stores heed the active mask; everything else may
/// write junk into inactive lanes, because no value that such a lane still needs shares the row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Instr<R = Reg> {
    Fill32 {
        dst: R,
        n: u32,
        bits: u32,
    },
    Fill64 {
        dst: R,
        n: u32,
        bits: u64,
    },
    /// Scalar parameter number `param`.
    Param32 {
        dst: R,
        param: u32,
    },
    Param64 {
        dst: R,
        param: u32,
    },
    ThreadId {
        dst: R,
        axis: Axis,
    },
    BlockId {
        dst: R,
        axis: Axis,
    },
    Unary32 {
        op: Unary32,
        dst: R,
        a: R,
        n: u32,
    },
    Unary64 {
        op: Unary64,
        dst: R,
        a: R,
        n: u32,
    },
    Binary32 {
        op: Binary32,
        dst: R,
        a: R,
        b: R,
        n: u32,
    },
    Binary64 {
        op: Binary64,
        dst: R,
        a: R,
        b: R,
        n: u32,
    },
    Divide32 {
        op: Divide,
        dst: R,
        a: R,
        b: R,
        n: u32,
    },
    Divide64 {
        op: Divide,
        dst: R,
        a: R,
        b: R,
        n: u32,
    },
    Compare32 {
        relation: Relation,
        kind: Compared,
        dst: R,
        a: R,
        b: R,
        n: u32,
    },
    /// Operands in 64-bit rows, result in 32-bit rows.
    Compare64 {
        relation: Relation,
        signed: bool,
        dst: R,
        a: R,
        b: R,
        n: u32,
    },
    Select32 {
        dst: R,
        condition: R,
        a: R,
        b: R,
        n: u32,
    },
    Select64 {
        dst: R,
        condition: R,
        a: R,
        b: R,
        n: u32,
    },
    Convert {
        op: Conversion,
        dst: R,
        a: R,
        n: u32,
    },
    /// Joins `ratio` elements of `bits` bits each into one, first one lowest; `n` results.
    Join32 {
        dst: R,
        a: R,
        n: u32,
        ratio: u32,
        bits: u32,
    },
    /// The same, from 32-bit rows into 64-bit rows.
    Join64 {
        dst: R,
        a: R,
        n: u32,
        ratio: u32,
        bits: u32,
    },
    /// Splits each of `n` elements into `ratio` elements of `bits` bits, lowest first.
    Split32 {
        dst: R,
        a: R,
        n: u32,
        ratio: u32,
        bits: u32,
    },
    /// The same, from 64-bit rows into 32-bit rows.
    Split64 {
        dst: R,
        a: R,
        n: u32,
        ratio: u32,
        bits: u32,
    },
    Move32 {
        dst: R,
        a: R,
        n: u32,
        masked: bool,
    },
    Move64 {
        dst: R,
        a: R,
        n: u32,
        masked: bool,
    },
    /// Pointer to the start of LDS array `array`; see [`super::lds`] for its form.
    LdsBase {
        dst: R,
        array: u32,
    },
    /// `pointer + count` elements of `bytes` bytes.
    PtrAdd {
        dst: R,
        pointer: R,
        count: R,
        bytes: u32,
    },
    LdsLoad {
        dst: R,
        pointer: R,
        width: Width,
        n: u32,
    },
    LdsStore {
        value: R,
        pointer: R,
        width: Width,
        n: u32,
    },
    /// Byte offset = `offset · scale`.
    BufferLoad {
        dst: R,
        offset: R,
        param: u32,
        scale: u32,
        width: Width,
        n: u32,
    },
    BufferStore {
        value: R,
        offset: R,
        param: u32,
        scale: u32,
        width: Width,
        n: u32,
    },
    Barrier,
    /// Pushes the mask and keeps the lanes where `condition` holds; with none left, jumps to `otherwise` (an `Else`).
    If {
        condition: R,
        otherwise: Pc,
    },
    /// Continues with the lanes that `If` left out; with none, jumps to `end` (a `Pop`).
    Else {
        end: Pc,
    },
    /// Pushes the mask and keeps the lanes with `index < hi`; with none left, jumps to `exit` (a `Pop`).
    Loop {
        index: R,
        hi: R,
        exit: Pc,
    },
    /// Adds `step` to `index` and keeps the lanes with `index < hi`; jumps to `body` unless none is left.
    Next {
        index: R,
        hi: R,
        step: u32,
        body: Pc,
    },
    /// Back to the mask before the matching `If` or `Loop`.
    Pop,
    End,
}

impl<R: Copy> Instr<R> {
    /// The same instruction with every register `r` (first of `n` rows of a class) replaced by `f(r, class, n)`.
    pub(super) fn map_regs<S>(self, mut f: impl FnMut(R, Class, u32) -> S) -> Instr<S> {
        use Class::{R32, R64};
        match self {
            Self::Fill32 { dst, n, bits } => Instr::Fill32 { dst: f(dst, R32, n), n, bits },
            Self::Fill64 { dst, n, bits } => Instr::Fill64 { dst: f(dst, R64, n), n, bits },
            Self::Param32 { dst, param } => Instr::Param32 { dst: f(dst, R32, 1), param },
            Self::Param64 { dst, param } => Instr::Param64 { dst: f(dst, R64, 1), param },
            Self::ThreadId { dst, axis } => Instr::ThreadId { dst: f(dst, R32, 1), axis },
            Self::BlockId { dst, axis } => Instr::BlockId { dst: f(dst, R32, 1), axis },
            Self::Unary32 { op, dst, a, n } => Instr::Unary32 { op, dst: f(dst, R32, n), a: f(a, R32, n), n },
            Self::Unary64 { op, dst, a, n } => Instr::Unary64 { op, dst: f(dst, R64, n), a: f(a, R64, n), n },
            Self::Binary32 { op, dst, a, b, n } => {
                Instr::Binary32 { op, dst: f(dst, R32, n), a: f(a, R32, n), b: f(b, R32, n), n }
            }
            Self::Binary64 { op, dst, a, b, n } => {
                Instr::Binary64 { op, dst: f(dst, R64, n), a: f(a, R64, n), b: f(b, R64, n), n }
            }
            Self::Divide32 { op, dst, a, b, n } => {
                Instr::Divide32 { op, dst: f(dst, R32, n), a: f(a, R32, n), b: f(b, R32, n), n }
            }
            Self::Divide64 { op, dst, a, b, n } => {
                Instr::Divide64 { op, dst: f(dst, R64, n), a: f(a, R64, n), b: f(b, R64, n), n }
            }
            Self::Compare32 { relation, kind, dst, a, b, n } => {
                Instr::Compare32 { relation, kind, dst: f(dst, R32, n), a: f(a, R32, n), b: f(b, R32, n), n }
            }
            Self::Compare64 { relation, signed, dst, a, b, n } => {
                Instr::Compare64 { relation, signed, dst: f(dst, R32, n), a: f(a, R64, n), b: f(b, R64, n), n }
            }
            Self::Select32 { dst, condition, a, b, n } => Instr::Select32 {
                dst: f(dst, R32, n),
                condition: f(condition, R32, 1),
                a: f(a, R32, n),
                b: f(b, R32, n),
                n,
            },
            Self::Select64 { dst, condition, a, b, n } => Instr::Select64 {
                dst: f(dst, R64, n),
                condition: f(condition, R32, 1),
                a: f(a, R64, n),
                b: f(b, R64, n),
                n,
            },
            Self::Convert { op, dst, a, n } => {
                let (to, from) = op.classes();
                Instr::Convert { op, dst: f(dst, to, n), a: f(a, from, n), n }
            }
            Self::Join32 { dst, a, n, ratio, bits } => {
                Instr::Join32 { dst: f(dst, R32, n), a: f(a, R32, n * ratio), n, ratio, bits }
            }
            Self::Join64 { dst, a, n, ratio, bits } => {
                Instr::Join64 { dst: f(dst, R64, n), a: f(a, R32, n * ratio), n, ratio, bits }
            }
            Self::Split32 { dst, a, n, ratio, bits } => {
                Instr::Split32 { dst: f(dst, R32, n * ratio), a: f(a, R32, n), n, ratio, bits }
            }
            Self::Split64 { dst, a, n, ratio, bits } => {
                Instr::Split64 { dst: f(dst, R32, n * ratio), a: f(a, R64, n), n, ratio, bits }
            }
            Self::Move32 { dst, a, n, masked } => Instr::Move32 { dst: f(dst, R32, n), a: f(a, R32, n), n, masked },
            Self::Move64 { dst, a, n, masked } => Instr::Move64 { dst: f(dst, R64, n), a: f(a, R64, n), n, masked },
            Self::LdsBase { dst, array } => Instr::LdsBase { dst: f(dst, R64, 1), array },
            Self::PtrAdd { dst, pointer, count, bytes } => {
                Instr::PtrAdd { dst: f(dst, R64, 1), pointer: f(pointer, R64, 1), count: f(count, R32, 1), bytes }
            }
            Self::LdsLoad { dst, pointer, width, n } => {
                Instr::LdsLoad { dst: f(dst, width.class(), n), pointer: f(pointer, R64, 1), width, n }
            }
            Self::LdsStore { value, pointer, width, n } => {
                Instr::LdsStore { value: f(value, width.class(), n), pointer: f(pointer, R64, 1), width, n }
            }
            Self::BufferLoad { dst, offset, param, scale, width, n } => {
                Instr::BufferLoad { dst: f(dst, width.class(), n), offset: f(offset, R32, 1), param, scale, width, n }
            }
            Self::BufferStore { value, offset, param, scale, width, n } => Instr::BufferStore {
                value: f(value, width.class(), n),
                offset: f(offset, R32, 1),
                param,
                scale,
                width,
                n,
            },
            Self::Barrier => Instr::Barrier,
            Self::If { condition, otherwise } => Instr::If { condition: f(condition, R32, 1), otherwise },
            Self::Else { end } => Instr::Else { end },
            Self::Loop { index, hi, exit } => Instr::Loop { index: f(index, R32, 1), hi: f(hi, R32, 1), exit },
            Self::Next { index, hi, step, body } => {
                Instr::Next { index: f(index, R32, 1), hi: f(hi, R32, 1), step, body }
            }
            Self::Pop => Instr::Pop,
            Self::End => Instr::End,
        }
    }
}

/// A kernel made ready to run: immutable and shareable between threads and launches.
#[derive(Debug)]
pub struct Program {
    pub(super) name: String,
    /// Lanes a wave: 32 or 64.
    pub(super) wave: u32,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) params: Vec<Param>,
    pub(super) lds: Vec<LdsArray>,
    /// Byte offset of each LDS array, and the LDS size.
    pub(super) lds_layout: (Vec<u32>, u32),
    pub(super) code: Vec<Instr>,
    /// Location of each instruction's operation.
    pub(super) locations: Vec<Location>,
    /// Rows of the 32-bit and of the 64-bit register file.
    pub(super) rows: [u32; 2],
}

impl Program {
    /// Flattens a kernel.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the kernel breaks a rule that execution relies on; a verified kernel breaks none.
    pub fn new(kernel: &Kernel) -> Result<Self, Error> {
        flatten::flatten(kernel)
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Threads of a workgroup.
    pub(super) fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Waves of a workgroup; the last may be partial.
    pub(super) fn block_waves(&self) -> u32 {
        self.block_threads().div_ceil(self.wave)
    }

    /// Coordinates in the workgroup of thread number `linear`.
    pub(super) fn thread(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [linear % x, linear / x % y, linear / x / y]
    }
}
