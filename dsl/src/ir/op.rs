//! Operations of Kernel IR: what each one means. The CPU device executes exactly this.

use serde::{Deserialize, Serialize};

use super::def::{Agreement, Family, OpDef, apart, attribute, mnemonics, ops};
use super::parts::{Part, Read, Show};
use super::types::Class;
use super::{Block, Value};
use crate::mma::{Fragments, MmaShape, MmaType};
use crate::numerics::{Narrow, Overflow};

/// A compile-time constant of a scalar type: its bits, zero-extended to 64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Bits(pub u64);

attribute! {
    /// Axis of the launch grid or of the workgroup.
    pub enum Axis {
        /// Fastest running.
        X = "x",
        /// Second.
        Y = "y",
        /// Slowest running.
        Z = "z",
    }
}

impl Axis {
    /// 0, 1 or 2.
    pub const fn index(self) -> usize {
        self as usize
    }
}

const BITS: Agreement = Agreement::Bits;

mnemonics! {
    /// Operations with one operand; operand and result have the same type, element by element.
    pub enum UnaryOp: "(a: T) -> T" {
        /// Negation: of a float exact (−0 for 0; a NaN stays a NaN); integers wrap.
        Neg = "neg", "-a", "-a", Class::NUMBER, Some(Family::Arith), BITS;
        /// Complement: logical of `bool`, bitwise of integers.
        Not = "not", "!a", "~a", Class::BITS, None, BITS;
        /// Magnitude. Floats: the sign bit cleared; a NaN stays a NaN. Integers: the smallest number of a signed type stays
        /// itself.
        Abs = "abs", "a.abs()", "fx.abs", Class::NUMBER, None, BITS;
        /// Number of bits that are set.
        Ctpop = "ctpop", "a.ctpop()", "fx.ctpop", Class::SIZED, None, BITS;
        /// Number of zeros above the highest set bit; the type's width for 0.
        Ctlz = "ctlz", "a.ctlz()", "fx.ctlz", Class::SIZED, None, BITS;
        /// Number of zeros below the lowest set bit; the type's width for 0.
        Cttz = "cttz", "a.cttz()", "fx.cttz", Class::SIZED, None, BITS;
        /// Largest integer not above it; keeps ±0, ±∞ and NaN.
        Floor = "floor", "a.floor()", "fx.floor", Class::FLOAT, None, BITS;
        /// Smallest integer not below it; −0 from (−1, −0]; keeps ±0, ±∞ and NaN.
        Ceil = "ceil", "a.ceil()", "fx.ceil", Class::FLOAT, None, BITS;
        /// Rounded towards 0, sign kept.
        Trunc = "trunc", "a.trunc()", "fx.trunc", Class::FLOAT, None, BITS;
        /// Rounded to the nearest integer, halves away from 0, sign kept.
        Round = "round", "a.round()", "fx.round", Class::FLOAT, None, BITS;
        /// Rounded to the nearest integer, halves to the even one, sign kept.
        Roundeven = "roundeven", "a.roundeven()", "fx.roundeven", Class::FLOAT, None, BITS;
        /// Square root, correctly rounded; NaN below −0, −0 of −0.
        Sqrt = "sqrt", "a.sqrt()", "fx.sqrt", Class::FLOAT, Some(Family::Math), BITS;
        /// `1 / sqrt(a)`: a correctly rounded root, then a correctly rounded quotient; `f16` and `bf16` do both in `f32` and
        /// round the quotient once more.
        Rsqrt = "rsqrt", "a.rsqrt()", "fx.rsqrt", Class::FLOAT, Some(Family::Math), BITS;
        /// e^a. Within 1 ulp of the exact value in f32 (measured over all inputs).
        Exp = "exp", "a.exp()", "fx.exp", Class::MATH, Some(Family::Math), BITS;
        /// 2^a. Within 1 ulp of the exact value in f32 (measured over all inputs).
        Exp2 = "exp2", "a.exp2()", "fx.exp2", Class::MATH, Some(Family::Math), BITS;
        /// Natural logarithm; −∞ of ±0, NaN below 0. Within 1 ulp of the exact value in f32 (measured over all inputs).
        Log = "log", "a.log()", "fx.log", Class::MATH, Some(Family::Math), BITS;
        /// Binary logarithm; −∞ of ±0, NaN below 0. Within 1 ulp of the exact value in f32 (measured over all inputs).
        Log2 = "log2", "a.log2()", "fx.log2", Class::MATH, Some(Family::Math), BITS;
        /// Sine of radians; NaN of ±∞; −0 of −0. Within 1 ulp of the exact value in f32 (measured over all inputs).
        Sin = "sin", "a.sin()", "fx.sin", Class::MATH, Some(Family::Math), BITS;
        /// Cosine of radians; NaN of ±∞. Within 1 ulp of the exact value in f32 (measured over all inputs).
        Cos = "cos", "a.cos()", "fx.cos", Class::MATH, Some(Family::Math), BITS;
        /// Hyperbolic tangent; ±1 of ±∞; −0 of −0. Within 1 ulp of the exact value in f32 (measured over all inputs). With
        /// `afn`: relative error below 2^-18, of NVIDIA's instruction 2^-11.
        Tanh = "tanh", "a.tanh()", "fx.tanh", Class::MATH, Some(Family::Math), BITS;
        /// Error function; ±1 of ±∞; −0 of −0. Within 1 ulp of the exact value in f32 (measured over all inputs). With `afn`:
        /// relative error below 2^-18.
        Erf = "erf", "a.erf()", "fx.erf", Class::MATH, Some(Family::Math), BITS;
        /// The chip's 2^a. Operands and results that are subnormal may be flushed to zero. `cpu`: correctly rounded.
        HwExp2 = "hw_exp2", "a.hw_exp2()", "rocdl.exp2", Class::F32, Some(Family::Math),
            Agreement::Bound("2 ulp, plus 2^-126 absolute where operand or result is subnormal");
        /// The chip's binary logarithm. Operands that are subnormal may be flushed to zero. `cpu`: correctly rounded.
        HwLog2 = "hw_log2", "a.hw_log2()", "rocdl.log", Class::F32, Some(Family::Math),
            Agreement::Bound("1 ulp outside [0.5, 2], 2^-21 absolute inside; a subnormal operand may count as 0");
        /// The chip's 1/a. Operands and results that are subnormal may be flushed to zero. `cpu`: correctly rounded.
        HwRcp = "hw_rcp", "a.hw_rcp()", "rocdl.rcp", Class::F32, Some(Family::Math),
            Agreement::Bound("1 ulp, plus 2^-126 absolute where the result is subnormal; a subnormal operand may count as 0");
        /// The chip's 1/√a. Operands that are subnormal may be flushed to zero. `cpu`: correctly rounded.
        HwRsq = "hw_rsq", "a.hw_rsq()", "rocdl.rsq", Class::F32, Some(Family::Math),
            Agreement::Bound("2 ulp; a subnormal operand may count as 0");
        /// The chip's √a. Operands that are subnormal may be flushed to zero. `cpu`: correctly rounded.
        HwSqrt = "hw_sqrt", "a.hw_sqrt()", "rocdl.sqrt", Class::F32, Some(Family::Math),
            Agreement::Bound("2 ulp; a subnormal operand may count as 0");
    }
}

mnemonics! {
    /// Operations with two operands of one type, the result's, element by element.
    pub enum BinaryOp: "(a: T, b: T) -> T" {
        /// Sum. Floats round to nearest even, once; integers wrap.
        Add = "add", "a + b", "a + b", Class::NUMBER, Some(Family::Arith), BITS;
        /// Difference. Floats round to nearest even, once; integers wrap.
        Sub = "sub", "a - b", "a - b", Class::NUMBER, Some(Family::Arith), BITS;
        /// Product. Floats round to nearest even, once; integers wrap.
        Mul = "mul", "a * b", "a * b", Class::NUMBER, Some(Family::Arith), BITS;
        /// Quotient of floats, correctly rounded.
        Div = "div", "a / b", "a / b", Class::FLOAT, Some(Family::Arith), BITS;
        /// Quotient rounded towards −∞. Integers: the smallest number by −1 wraps to itself; division by zero is reported on
        /// `cpu`, unspecified elsewhere. Floats: `floor(a / b)`, the quotient correctly rounded before.
        DivFloor = "div_floor", "a.div_floor(b)", "a // b", Class::NUMBER, Some(Family::Arith), BITS;
        /// Integer remainder with the divisor's sign: `a − b·div_floor(a, b)`.
        RemFloor = "rem_floor", "a.rem_floor(b)", "", Class::INT, None, BITS;
        /// Integer quotient rounded towards 0; the smallest number by −1 wraps to itself. Division by zero as of `div_floor`.
        DivTrunc = "div_trunc", "a.div_trunc(b)", "", Class::INT, None, BITS;
        /// Integer remainder with the dividend's sign: `a − b·div_trunc(a, b)`.
        RemTrunc = "rem_trunc", "a.rem_trunc(b)", "a % b", Class::INT, None, BITS;
        /// Integer quotient rounded towards +∞. Division by zero as of `div_floor`.
        CeilDiv = "ceildiv", "a.ceildiv(b)", "fx.ceildiv", Class::INT, None, BITS;
        /// Bitwise of integers, logical of `bool`.
        And = "and", "a & b", "a & b", Class::BITS, None, BITS;
        /// Bitwise of integers, logical of `bool`.
        Or = "or", "a | b", "a | b", Class::BITS, None, BITS;
        /// Bitwise of integers, logical of `bool`.
        Xor = "xor", "a ^ b", "a ^ b", Class::BITS, None, BITS;
        /// Shift left; the amount is taken modulo the width.
        Shl = "shl", "a << b", "a << b", Class::SIZED, None, BITS;
        /// Shift right, arithmetic if signed, logical if unsigned; the amount is taken modulo the width.
        Shr = "shr", "a >> b", "a >> b", Class::SIZED, None, BITS;
        /// Logical shift right whatever the signedness; the amount is taken modulo the width.
        Shrui = "shrui", "a.shrui(b)", "fx.shrui", Class::SIZED, None, BITS;
        /// Larger one. Floats: NaN if either is NaN, −0 < +0.
        Maximum = "maximum", "a.maximum(b)", "fx.max", Class::NUMBER, Some(Family::Extrema), BITS;
        /// Smaller one. Floats: NaN if either is NaN, −0 < +0.
        Minimum = "minimum", "a.minimum(b)", "fx.min", Class::NUMBER, Some(Family::Extrema), BITS;
        /// Larger one of two floats; the other one if one is NaN, NaN if both are; −0 < +0.
        Maxnum = "maxnum", "a.maxnum(b)", "fx.maxnumf", Class::FLOAT, Some(Family::Extrema), BITS;
        /// Smaller one of two floats; the other one if one is NaN, NaN if both are; −0 < +0.
        Minnum = "minnum", "a.minnum(b)", "fx.minnumf", Class::FLOAT, Some(Family::Extrema), BITS;
        /// The magnitude of `a` with the sign of `b`, bit for bit (NaN too).
        Copysign = "copysign", "a.copysign(b)", "fx.copysign", Class::FLOAT, None, BITS;
        /// a^b, by C's `pow` in its special cases. Within 1 ulp of the exact value in f32 (measured at 10^8 inputs). With `afn`:
        /// relative error below (1 + |b|·max(1, |log2 |a||))·2^-21, plus 2^-126 absolute; a subnormal base may count as 0.
        Pow = "pow", "a.pow(b)", "fx.powf", Class::MATH, Some(Family::Math), BITS;
    }
}

mnemonics! {
    /// Comparisons; float comparisons with a NaN are false, except `cmp_ne`, which is then true.
    pub enum Predicate: "(a: T, b: T) -> bool" {
        /// a = b; false with a NaN.
        Eq = "cmp_eq", "a.eq(b)", "a == b", Class::ALL, Some(Family::Compare), BITS;
        /// a ≠ b; true with a NaN.
        Ne = "cmp_ne", "a.ne(b)", "a != b", Class::ALL, Some(Family::Compare), BITS;
        /// a < b, by signedness; false with a NaN.
        Lt = "cmp_lt", "a.lt(b)", "a < b", Class::NUMBER, Some(Family::Compare), BITS;
        /// a ≤ b, by signedness; false with a NaN.
        Le = "cmp_le", "a.le(b)", "a <= b", Class::NUMBER, Some(Family::Compare), BITS;
        /// a > b, by signedness; false with a NaN.
        Gt = "cmp_gt", "a.gt(b)", "a > b", Class::NUMBER, Some(Family::Compare), BITS;
        /// a ≥ b, by signedness; false with a NaN.
        Ge = "cmp_ge", "a.ge(b)", "a >= b", Class::NUMBER, Some(Family::Compare), BITS;
    }
}

mnemonics! {
    /// Reductions of a vector: element 0 combined with element 1, the result with element 2, and so on.
    pub enum ReduceOp: "(v: T×n) -> T" {
        /// Sum, rounded after every step.
        Add = "reduce_add", "v.reduce_add()", "Vector.reduce(add)", Class::NUMBER, Some(Family::Arith), BITS;
        /// Product, rounded after every step.
        Mul = "reduce_mul", "v.reduce_mul()", "Vector.reduce(mul)", Class::NUMBER, Some(Family::Arith), BITS;
        /// `maximum` of all.
        Maximum = "reduce_max", "v.reduce_max()", "Vector.reduce(max)", Class::NUMBER, Some(Family::Extrema), BITS;
        /// `minimum` of all.
        Minimum = "reduce_min", "v.reduce_min()", "Vector.reduce(min)", Class::NUMBER, Some(Family::Extrema), BITS;
        /// `and` of all.
        And = "reduce_and", "v.reduce_and()", "Vector.reduce(and)", Class::BITS, None, BITS;
        /// `or` of all.
        Or = "reduce_or", "v.reduce_or()", "Vector.reduce(or)", Class::BITS, None, BITS;
        /// `xor` of all.
        Xor = "reduce_xor", "v.reduce_xor()", "Vector.reduce(xor)", Class::BITS, None, BITS;
    }
}

impl ReduceOp {
    /// The operation of one step.
    pub const fn step(self) -> BinaryOp {
        match self {
            Self::Add => BinaryOp::Add,
            Self::Mul => BinaryOp::Mul,
            Self::Maximum => BinaryOp::Maximum,
            Self::Minimum => BinaryOp::Minimum,
            Self::And => BinaryOp::And,
            Self::Or => BinaryOp::Or,
            Self::Xor => BinaryOp::Xor,
        }
    }
}

mnemonics! {
    /// One step of a butterfly over a logical group of `width` lanes: `op(v, v of lane ^ offset)`, element by element, `op`
    /// being commutative, so that both lanes of a pair get the same bits. `offset` and `width` are powers of two, `offset < width ≤` wave.
    /// Every lane of the group must be active.
    pub enum ButterflyOp: "(v: T) -> T" {
        /// Sum with the partner.
        Add = "butterfly_add", "v.butterfly([offset, …], Add)", "butterfly", Class::NUMBER, Some(Family::Arith), BITS;
        /// `maximum` with the partner.
        Maximum = "butterfly_max", "v.butterfly([offset, …], Maximum)", "butterfly", Class::NUMBER, Some(Family::Extrema), BITS;
        /// `minimum` with the partner.
        Minimum = "butterfly_min", "v.butterfly([offset, …], Minimum)", "butterfly", Class::NUMBER, Some(Family::Extrema), BITS;
        /// `and` with the partner.
        And = "butterfly_and", "v.butterfly([offset, …], And)", "butterfly", Class::BITS, None, BITS;
        /// `or` with the partner.
        Or = "butterfly_or", "v.butterfly([offset, …], Or)", "butterfly", Class::BITS, None, BITS;
        /// `xor` with the partner.
        Xor = "butterfly_xor", "v.butterfly([offset, …], Xor)", "butterfly", Class::BITS, None, BITS;
    }
}

impl ButterflyOp {
    /// The operation of the step.
    pub const fn step(self) -> BinaryOp {
        match self {
            Self::Add => BinaryOp::Add,
            Self::Maximum => BinaryOp::Maximum,
            Self::Minimum => BinaryOp::Minimum,
            Self::And => BinaryOp::And,
            Self::Or => BinaryOp::Or,
            Self::Xor => BinaryOp::Xor,
        }
    }
}

mnemonics! {
    /// Exchanges within logical groups of `width` lanes (a power of two up to the wave). With `l` the lane in its group and
    /// `n: u32`, every lane gets the value, all elements of it, of the lane named below. The value of an inactive lane is
    /// reported on `cpu`, unspecified elsewhere.
    pub enum ShuffleOp: "(v: T, n: u32) -> T" {
        /// Lane `l ^ (n mod width)`.
        Xor = "shuffle_xor", "v.shuffle_xor(n, width)", "gpu.shuffle_xor", Class::PLAIN, None, BITS;
        /// Lane `l − n`; its own value where there is none.
        Up = "shuffle_up", "v.shuffle_up(n, width)", "gpu.shuffle_up", Class::PLAIN, None, BITS;
        /// Lane `l + n`; its own value where there is none.
        Down = "shuffle_down", "v.shuffle_down(n, width)", "gpu.shuffle_down", Class::PLAIN, None, BITS;
        /// Lane `n mod width`.
        Idx = "shuffle_idx", "v.shuffle_idx(n, width)", "gpu.shuffle_idx, rocdl.ds_bpermute", Class::PLAIN, None, BITS;
    }
}

mnemonics! {
    /// Atomic read-modify-write of one element; the result is the value before.
    pub enum AtomicOp: "(p: pointer to T, v: T) -> T" {
        /// Sum. Floats round to nearest even; in global memory NVIDIA counts subnormal `f32` operands and results as 0. Sums of
        /// floats in global memory on AMD: among `system` a loop of compare-and-swaps, good for all memory in which that is
        /// atomic; in a narrower scope one instruction, under the promise that the memory is neither fine-grained (shared
        /// coherently with the host or other devices) nor another device's, where it may do nothing.
        Add = "atomic_add", "k.atomic_add(p, v, order, scope)", "fx.atomic_add, raw_ptr_buffer_atomic_fadd", Class::ATOMIC, None, BITS;
        /// Difference; of floats as the sum with −v.
        Sub = "atomic_sub", "k.atomic_sub(p, v, order, scope)", "fx.atomic_sub", Class::ATOMIC, None, BITS;
        /// Smaller one; floats as `minnum`.
        Min = "atomic_min", "k.atomic_min(p, v, order, scope)", "fx.atomic_min, atomic_fmin", Class::ATOMIC, None, BITS;
        /// Larger one; floats as `maxnum`.
        Max = "atomic_max", "k.atomic_max(p, v, order, scope)", "fx.atomic_max, atomic_fmax", Class::ATOMIC, None, BITS;
        /// Bitwise and of integers.
        And = "atomic_and", "k.atomic_and(p, v, order, scope)", "fx.atomic_and", Class::ATOMIC_INT, None, BITS;
        /// Bitwise or of integers.
        Or = "atomic_or", "k.atomic_or(p, v, order, scope)", "fx.atomic_or", Class::ATOMIC_INT, None, BITS;
        /// Bitwise exclusive or of integers.
        Xor = "atomic_xor", "k.atomic_xor(p, v, order, scope)", "fx.atomic_xor", Class::ATOMIC_INT, None, BITS;
        /// The new value.
        Xchg = "atomic_xchg", "k.atomic_xchg(p, v, order, scope)", "fx.atomic_xchg", Class::ATOMIC, None, BITS;
    }
}

attribute! {
    /// What the offset of a buffer access counts.
    pub enum OffsetUnit {
        /// Elements of the accessed value's element type from the buffer's start.
        Elements = "elements",
        /// Bytes from the buffer's start.
        Bytes = "bytes",
    }
}

attribute! {
    /// Memory order of an access, as in C++.
    pub enum Order {
        /// Not atomic: an ordinary access.
        Plain = "plain",
        /// Atomic, no order with other addresses (C++ `relaxed`, LLVM `monotonic`).
        Relaxed = "relaxed",
        /// Later accesses stay behind it.
        Acquire = "acquire",
        /// Earlier accesses stay before it.
        Release = "release",
        /// Both.
        AcqRel = "acq_rel",
        /// Both, and one order of all such accesses.
        SeqCst = "seq_cst",
    }
}

attribute! {
    /// Threads among which an order holds. [`Scope::one_as`] narrows one to accesses of one address space.
    pub enum Scope {
        /// All threads of all devices and the host.
        System = "system",
        /// All threads of this device (AMD `agent`, CUDA `gpu`).
        Device = "device",
        /// The workgroup (CUDA `cta`).
        Workgroup = "workgroup",
        /// The wave.
        Wave = "wave",
        /// The thread alone (LLVM `singlethread`).
        Thread = "thread",
        /// `system`, among accesses to one address space.
        SystemOneAs = "system_one_as",
        /// `device`, among accesses to one address space.
        DeviceOneAs = "device_one_as",
        /// `workgroup`, among accesses to one address space.
        WorkgroupOneAs = "workgroup_one_as",
        /// `wave`, among accesses to one address space.
        WaveOneAs = "wave_one_as",
        /// `thread`, among accesses to one address space.
        ThreadOneAs = "thread_one_as",
    }
}

impl Scope {
    /// The same threads, but an order holds only among accesses to one address space: LDS with LDS, global memory with
    /// global memory. AMD then waits for less (LLVM's `one-as` scopes); `cpu` and NVIDIA take it for [`Scope::wide`].
    #[must_use]
    pub const fn one_as(self) -> Self {
        match self.wide() {
            Self::Device => Self::DeviceOneAs,
            Self::Workgroup => Self::WorkgroupOneAs,
            Self::Wave => Self::WaveOneAs,
            Self::Thread => Self::ThreadOneAs,
            _ => Self::SystemOneAs,
        }
    }

    /// The same threads and all address spaces: undoes [`Scope::one_as`].
    #[must_use]
    pub const fn wide(self) -> Self {
        match self {
            Self::System | Self::SystemOneAs => Self::System,
            Self::Device | Self::DeviceOneAs => Self::Device,
            Self::Workgroup | Self::WorkgroupOneAs => Self::Workgroup,
            Self::Wave | Self::WaveOneAs => Self::Wave,
            Self::Thread | Self::ThreadOneAs => Self::Thread,
        }
    }
}

attribute! {
    /// How much a loop is unrolled by the compiler.
    pub enum Unroll {
        /// As the compiler likes.
        Auto = "auto",
        /// Completely, if the number of iterations is known.
        Full = "full",
        /// Not at all.
        Never = "never",
    }
}

/// How an access through a pointer is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Alignment in bytes that the author promises; `None` for the element's size. A broken promise is reported on `cpu`.
    pub align: Option<u32>,
    /// Never merged, split, moved or left out.
    pub volatile: bool,
    /// Not to be kept in caches; a hint.
    pub nontemporal: bool,
    /// Memory order.
    pub order: Order,
    /// Among whom; only for atomic orders.
    pub scope: Scope,
}

attribute! {
    /// How far a buffer access goes through the caches: what it must be visible to (bo `cache_modifier`). Where that is more
    /// than the thread itself, an access of up to 8 bytes that is aligned to its size is never seen in part, on AMD and `cpu`
    /// nor is one of 16.
    pub enum Coherence {
        /// The thread itself: any cache may serve it.
        Own = "own",
        /// The device (`CM_DEV`): AMD SC1 (gfx12 `scope:SCOPE_DEV`), NVIDIA relaxed at GPU scope.
        Device = "device",
        /// All devices and the host (`CM_SYS`): AMD SC0 SC1 (gfx12 `scope:SCOPE_SYS`), NVIDIA relaxed at system scope.
        System = "system",
    }
}

/// Cache behaviour of a buffer access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Cache {
    /// Whom the access must be coherent with.
    pub coherence: Coherence,
    /// Not to be kept in caches (`CM_NT`); a hint.
    pub nontemporal: bool,
}

/// Code of one kind of target that stands for a [`Op::Native`] operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct NativeForm {
    /// Where it is used: a chip (`gfx950`) or a family (`amdgpu`, `nvptx`). The first form that fits is taken.
    pub target: String,
    /// What is emitted.
    pub code: NativeCode,
    /// Whether it does something besides its results, so that it is never left out, merged or moved.
    pub effects: bool,
}

/// What a [`NativeForm`] emits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum NativeCode {
    /// Inline assembly: LLVM's template (`$0`, `$1`, …) and constraints.
    Asm {
        /// The template.
        template: String,
        /// Constraints of results and operands.
        constraints: String,
    },
    /// A call of an LLVM intrinsic by its full name.
    Intrinsic {
        /// Such as `llvm.amdgcn.rsq.f32`.
        name: String,
    },
}

ops! {
    /// One operation. Operand and result types are checked by [`crate::verify`].
    pub enum Op {
        /// A constant; of a vector type, the same in every element.
        Const(bits: Bits) = "const", "k.constant(x)", "fx constants", Class::ALL, "() -> T", BITS;
        /// Index of the thread in its workgroup along an axis.
        ThreadId(axis: Axis) = "thread_id", "k.thread_id(axis)", "gpu.thread_idx", Class::U32, "() -> u32", BITS;
        /// Index of the workgroup in the grid along an axis.
        BlockId(axis: Axis) = "block_id", "k.block_id(axis)", "gpu.block_idx", Class::U32, "() -> u32", BITS;
        /// Index of the lane in its wave: the linear thread index (x fastest) modulo the wave width.
        LaneId = "lane_id", "k.lane_id()", "gpu.lane_id", Class::U32, "() -> u32", BITS;
        /// Time in nanoseconds since some moment: the difference of two readings by one thread is the time that passed between them. It
        /// moves in steps, of 10 ns on AMD (`s_memrealtime`, gfx12 `s_sendmsg_rtn`), of up to 1 µs on NVIDIA (`%globaltimer`).
        /// `cpu` and `gcn`: a clock of the wave's own that goes on by 1000 at each reading, whatever the schedule.
        Clock = "clock", "k.clock()", "llvm.amdgcn.s.memrealtime", Class::U64, "() -> u64", Agreement::None;
        /// See [`UnaryOp`].
        Unary(op: UnaryOp, a: Value) = "", "", "", Class::ALL, "", BITS;
        /// See [`BinaryOp`].
        Binary(op: BinaryOp, a: Value, b: Value) = "", "", "", Class::ALL, "", BITS;
        /// See [`Predicate`]; the result is `bool` (a vector of it for vectors).
        Compare(predicate: Predicate, a: Value, b: Value) = "", "", "", Class::ALL, "", BITS;
        /// `a·b + c` with one rounding (bf16: computed in `f32`, then rounded to bf16).
        Fma {
            /// Factor.
            a: Value,
            /// Factor.
            b: Value,
            /// Summand.
            c: Value,
        } = "fma", "a.fma(b, c)", "fx.fma", Class::FLOAT, "(a: T, b: T, c: T) -> T", BITS;
        /// `on_true` where the condition holds, else `on_false`; NaN bits are kept, unless the kernel's licence for
        /// `compare` says that there is none. The condition is one `bool` for the whole
        /// value, or a vector of one for each element.
        Select {
            /// `bool`, or a vector of it.
            condition: Value,
            /// Taken where it holds.
            on_true: Value,
            /// Taken where it does not.
            on_false: Value,
        } = "select", "c.select(a, b)", "cond.select", Class::ALL, "(c: bool, a: T, b: T) -> T", BITS;
        /// Conversion to the result's element type, element by element. Integer → integer keeps the low bits (sign- or
        /// zero-extends by the operand's signedness); to `idx`, and from it, the number must fit, which is reported on `cpu`.
        /// `bool` → integer or float: 0 or 1. Integer → float and float → narrower float round to nearest even, once (NaN
        /// stays NaN); float → wider float is exact. Float → integer rounds towards 0 and saturates;
        /// NaN gives 0 (to `idx`, the truncated number must fit).
        Convert(a: Value) = "convert", "a.to::<U>()", ".to(T)", Class::ALL, "(a: T) -> U", BITS;
        /// Stochastic rounding to bf16 or f16, element by element: of the two nearest numbers, the one further from 0 if what is
        /// cut off, as a part of their distance, plus `random / 2^32` is at least 1; so uniformly random bits make the mean
        /// exact. Beyond the largest number lies ∞; ±0, ±∞ and what is exact stay; a NaN stays a NaN. The same sequence of
        /// integer operations on every chip: what gfx950's own instructions do with the random bits is published nowhere.
        ConvertStochastic(a: Value, random: Value) = "cvt_sr", "a.cvt_sr_bf16(random), a.cvt_sr_f16(random)",
            "rocdl.cvt_sr_f32_to_bf16", Class::F32, "(a: f32, random: u32) -> bf16 or f16", BITS;
        /// Elements as packed codes of a narrow format, rounded once, to nearest even. With a scale every element is divided by
        /// 2^(e − 127) first, e being the scale's exponent field (its other bits do not count); e = 0xFF makes every element a
        /// NaN. Code `i` of `n` lies in the bits from `i·bits` on, across words; together they fill a `u8`, a `u16`, a `u32` or
        /// several; one code alone lies in the low bits of a `u8`. With `old` the codes, 8 or 16 bits of them, replace the bits
        /// of that `u32` from byte `byte` on. A magnitude that rounds past the largest gives the largest (`saturate`), or
        /// infinity, else NaN (`ieee`). Zeros keep their sign where a format has both. NaN gives the format's one NaN that
        /// conversions make (0x7F, 0x80 of FNUZ, 0xFF of e8m0), in formats without NaN the largest number of the NaN's sign;
        /// sm_120a takes the positive one there. e8m0: 2^−127 of all below it and of zeros, NaN of what is negative.
        Encode {
            /// Elements.
            value: Value,
            /// `f32`: scale of the block.
            scale: Option<Value>,
            /// `u32` whose bits are replaced.
            old: Option<Value>,
            /// Format of the codes.
            format: Narrow,
            /// What becomes of magnitudes past the largest.
            overflow: Overflow,
            /// First byte of `old` that is replaced.
            byte: Option<u32>,
        } = "encode", "v.encode::<U>(format, overflow), v.encode_scaled(…), k.pk_fp4_bf16(…)",
            "rocdl.cvt_pk_fp8_f32, rocdl.cvt_scalef32_pk_fp4_bf16, nvvm.convert.f16x2.to.f8x2", Class::MATH,
            "(value: T×n) -> u8, u16, u32 or u32×m", BITS;
        /// The numbers that packed codes mean, lowest first, laid out as by `encode`; with a scale times 2^(e − 127), e being its
        /// exponent field, all NaN of 0xFF. Exact, but for what `T` does not hold: rounded to nearest even, once.
        Decode {
            /// Codes.
            codes: Value,
            /// `f32`: scale of the block.
            scale: Option<Value>,
            /// Format of the codes.
            format: Narrow,
        } = "decode", "codes.decode::<T>(format), codes.decode_scaled(…), k.cvt_pk_f32_fp8(…)",
            "rocdl.cvt_pk_f32_fp8, rocdl.cvt_scalef32_pk_f32_fp4, nvvm.convert.f8x2.to.f16x2", Class::CODES,
            "(codes: u8, u16, u32 or u32×m) -> T×n", BITS;
        /// The same bits as another type of the same total width. Element 0 is the least significant.
        Bitcast(a: Value) = "bitcast", "a.bitcast::<U>()", ".bitcast(T)", Class::PLAIN, "(a: T) -> U", BITS;
        /// A vector of these elements, in order.
        VectorFrom(elements: Vec<Value>) = "vector", "k.vector([…])", "Vector.from_elements, Vector.filled", Class::ALL,
            "(elements: T…) -> T×n", BITS;
        /// One element of a vector, named at build time.
        Extract(vector: Value, index: u32) = "extract", "v.element(i)", "v[i]", Class::ALL, "(v: T×n) -> T", BITS;
        /// One element of a vector, named at run time. An index outside the vector is reported on `cpu`, unspecified elsewhere.
        ExtractAt(vector: Value, index: Value) = "extract_at", "v.at(i)", "v[i]", Class::ALL, "(v: T×n, i: u32) -> T", BITS;
        /// The elements of `a` followed by those of `b`, picked by index (fx `shuffle`; a slice is one with ascending indices).
        Shuffle {
            /// First vector.
            a: Value,
            /// Second vector, of the same type.
            b: Value,
            /// For each element of the result, which one.
            mask: Vec<u32>,
        } = "shuffle", "a.shuffle(b, [i, …])", "Vector.shuffle, Vector slices", Class::ALL, "(a: T×n, b: T×n) -> T×m", BITS;
        /// See [`ReduceOp`].
        Reduce(op: ReduceOp, vector: Value) = "", "", "", Class::ALL, "", BITS;
        /// Pointer to element 0 of an LDS array of this kernel.
        LdsBase(array: u32) = "lds_base", "k.lds::<T>(name, len)", "SharedAllocator, get_dyn_shared", Class::PLAIN,
            "() -> lds<T>", BITS;
        /// `pointer + n` elements; the count is any integer and is exact (never wrapped to 32 bits).
        PtrAdd(pointer: Value, count: Value) = "ptr_add", "p + n", "ptr + n, add_offset", Class::PLAIN,
            "(p: pointer to T, n: integer) -> pointer to T", BITS;
        /// The same address as a pointer to another element type.
        PtrCast(pointer: Value) = "ptr_cast", "p.cast::<U>()", "recast_iter", Class::PLAIN, "(p: pointer to T) -> pointer to U", BITS;
        /// Pointer to the first element of a buffer parameter's memory.
        BufferPtr(buffer: Value) = "buffer_ptr", "b.ptr()", "extract_base_index", Class::PLAIN, "(b: buffer<T>) -> global<T>", BITS;
        /// A pointer from its address: to global memory from a `u64`; to LDS from a `u32`, the byte offset in the workgroup's
        /// LDS. That of LDS may point into any array; an access that does not lie in one array is reported on `cpu`.
        IntToPtr(address: Value) = "int_to_ptr", "address.to_ptr::<T>()", "inttoptr", Class::PLAIN,
            "(address: u64) -> global<T>, (address: u32) -> lds<T>", BITS;
        /// The address of a pointer: of one to global memory 64 bits, of one to LDS the byte offset in the workgroup's LDS,
        /// modulo 2^32. Arrays lie there in the order of their declaration, each at the next multiple of its alignment, the
        /// same on every target.
        PtrToInt(pointer: Value) = "ptr_to_int", "p.to_int()", "ptrtoint", Class::PLAIN,
            "(p: global<T>) -> u64, (p: lds<T>) -> u32", Agreement::None;
        /// Load of the result's type at consecutive elements, 1, 2, 4, 8, 12 or 16 bytes. Outside every allocation: reported on `cpu`, undefined elsewhere.
        PtrLoad {
            /// Where.
            pointer: Value,
            /// How.
            memory: Memory,
        } = "ptr_load", "k.ptr_load(p)", "ptr_load, generic_load, global_load", Class::PLAIN, "(p: pointer to T) -> T or T×n", BITS;
        /// Store at consecutive elements, 1, 2, 4, 8, 12 or 16 bytes. No result. Which of several threads' different values an element keeps, if one
        /// operation stores them there, is unspecified; `cpu` and `gcn` report it.
        PtrStore {
            /// What is stored: scalar or vector of the pointer's element type.
            value: Value,
            /// Where.
            pointer: Value,
            /// How.
            memory: Memory,
        } = "ptr_store", "k.ptr_store(v, p)", "ptr_store, generic_store", Class::PLAIN, "(v: T or T×n, p: pointer to T)", BITS;
        /// See [`AtomicOp`].
        AtomicRmw {
            /// What is done.
            op: AtomicOp,
            /// Where.
            pointer: Value,
            /// With what.
            value: Value,
            /// Memory order, not `plain`.
            order: Order,
            /// Among whom it is atomic and ordered.
            scope: Scope,
        } = "", "", "", Class::ATOMIC, "", BITS;
        /// Atomic compare-and-swap: stores `value` if the memory holds `expected`, bit for bit; the result is the value before.
        AtomicCas {
            /// Where.
            pointer: Value,
            /// What must be there.
            expected: Value,
            /// What is stored then.
            value: Value,
            /// Memory order if it is stored, not `plain`; if not, the same without its release half.
            order: Order,
            /// Among whom it is atomic and ordered.
            scope: Scope,
        } = "atomic_cas", "k.atomic_cas(p, expected, v, order, scope)", "fx.atomic_cas", Class::ATOMIC,
            "(p: pointer to T, expected: T, v: T) -> T", BITS;
        /// Orders the thread's memory accesses before it with those after it.
        Fence {
            /// `acquire`, `release`, `acq_rel` or `seq_cst`.
            order: Order,
            /// Among whom.
            scope: Scope,
        } = "fence", "k.fence(order, scope)", "memory_fence", Class::ALL, "()", Agreement::None;
        /// Waits until the thread's earlier stores are visible to the scope and its copies to LDS have landed. Needed before a
        /// flag that tells others of them: a barrier drains nothing. CDNA `s_waitcnt vmcnt(0)`, gfx12 `s_wait_storecnt 0`,
        /// NVIDIA a release fence, behind a `bar.warp.sync` where the whole warp comes by, so that one lane may then speak for all;
        /// with `cp.async.wait_all` before it in kernels that copy to LDS. On AMD it only waits: beyond
        /// the workgroup those stores are visible that went through the caches by themselves, as a [`Coherence`] of that scope
        /// or an atomic makes them; for all others there is `fence`.
        Drain {
            /// Who must see the stores.
            scope: Scope,
        } = "drain", "k.drain(scope)", "s_waitcnt(vmcnt=0)", Class::ALL, "()", Agreement::None;
        /// A buffer of `bytes` bytes at an address: what [`Op::BufferLoad`] and its like take. A wrong address or extent, and
        /// an access within the extent to memory that is not allocated, are reported on `cpu`.
        MakeBuffer {
            /// `u64`: address of the first byte, a multiple of the element's size.
            address: Value,
            /// `u32`, `u64` or `idx`: extent, at most 0xFFFFFF00.
            bytes: Value,
        } = "make_buffer", "k.make_buffer::<T>(address, bytes)", "create_buffer_resource(_from_addr)", Class::PLAIN,
            "(address: u64, bytes: integer) -> buffer<T>", BITS;
        /// Load from a buffer of the result's type, 1, 2, 4, 8, 12 or 16 bytes (its element type need not be the buffer's; in Rust, `buffer.cast()` says so).
        /// The first byte lies at
        /// `offset` units plus `scalar` bytes, computed exactly; an `offset` below 0 lies outside whatever `scalar` is. An access that does not end within the buffer gives 0 in
        /// every element. Where `mask` is false nothing is accessed and the result is `fill`.
        BufferLoad {
            /// The buffer.
            buffer: Value,
            /// `u32` or `idx`, in `unit`s; never wraps.
            offset: Value,
            /// What `offset` counts.
            unit: OffsetUnit,
            /// `u32`, in bytes, the same in all lanes of a wave (bo `soffset_bytes`).
            scalar: Option<Value>,
            /// `bool`.
            mask: Option<Value>,
            /// Result where `mask` is false; given exactly if `mask` is.
            fill: Option<Value>,
            /// Cache behaviour.
            cache: Cache,
        } = "buffer_load", "k.buffer_load(b, offset)", "bo.buffer_load", Class::PLAIN,
            "(b: buffer, offset: u32 or idx) -> T or T×n", BITS;
        /// Store to a buffer, placed as by `buffer_load`. An access that does not end within the buffer is dropped, and so is
        /// one whose `mask` is false. No result.
        BufferStore {
            /// What is stored.
            value: Value,
            /// The buffer.
            buffer: Value,
            /// `u32` or `idx`, in `unit`s; never wraps.
            offset: Value,
            /// What `offset` counts.
            unit: OffsetUnit,
            /// `u32`, in bytes, the same in all lanes of a wave.
            scalar: Option<Value>,
            /// `bool`.
            mask: Option<Value>,
            /// Cache behaviour.
            cache: Cache,
        } = "buffer_store", "k.buffer_store(v, b, offset)", "bo.buffer_store", Class::PLAIN,
            "(v: T or T×n, b: buffer, offset: u32 or idx)", BITS;
        /// Loads a value that is the same in all lanes of a wave through the scalar unit: 1, 2, 3, 4, 8 or 16 elements of 32
        /// bits, placed as by `buffer_load`; 0 in every element if the access does not end within the buffer. Offset and
        /// buffer are the same in all active lanes (a difference is reported on `cpu`). The scalar cache is not coherent:
        /// nobody may write the memory during the launch, so a buffer parameter must be declared as only read. NVIDIA: an
        /// ordinary load through the read-only cache.
        SBufferLoad {
            /// The buffer, aligned to 4 bytes or more.
            buffer: Value,
            /// `u32` or `idx`, in `unit`s, a multiple of 4 bytes; never wraps.
            offset: Value,
            /// What `offset` counts.
            unit: OffsetUnit,
        } = "s_buffer_load", "k.s_buffer_load(b, offset)", "bo.buffer_load(is_scalar), rocdl.s_buffer_load", Class::PLAIN,
            "(b: buffer, offset: u32 or idx) -> T or T×n", BITS;
        /// Atomic read-modify-write of one buffer element, relaxed, placed as by `buffer_load`; outside the buffer nothing
        /// happens and the result is 0 (on every chip: the hardware's own check is not relied upon).
        BufferAtomic {
            /// What is done; its mnemonic is an attribute here.
            kind: AtomicKind,
            /// With what.
            value: Value,
            /// The buffer.
            buffer: Value,
            /// `u32` or `idx`, in `unit`s; never wraps.
            offset: Value,
            /// What `offset` counts.
            unit: OffsetUnit,
            /// `u32`, in bytes, the same in all lanes of a wave.
            scalar: Option<Value>,
            /// `bool`; false: nothing happens, the result is 0.
            mask: Option<Value>,
            /// Not to be kept in caches; a hint.
            nontemporal: bool,
            /// Among whom it is atomic.
            scope: Scope,
        } = "buffer_atomic", "k.buffer_atomic(op, v, b, offset, scope)", "raw_ptr_buffer_atomic_fadd, BufferAtomic", Class::ATOMIC,
            "(v: T, b: buffer, offset: u32 or idx) -> T", BITS;
        /// Atomic compare-and-swap of one buffer element, relaxed, placed as by `buffer_load`: stores `value` if the memory
        /// holds `expected`, bit for bit; the result is the value before. Outside the buffer nothing happens and the result
        /// is 0, on every chip.
        BufferAtomicCas {
            /// What must be there.
            expected: Value,
            /// What is stored then.
            value: Value,
            /// The buffer.
            buffer: Value,
            /// `u32` or `idx`, in `unit`s; never wraps.
            offset: Value,
            /// What `offset` counts.
            unit: OffsetUnit,
            /// `u32`, in bytes, the same in all lanes of a wave.
            scalar: Option<Value>,
            /// `bool`; false: nothing happens, the result is 0.
            mask: Option<Value>,
            /// Not to be kept in caches; a hint.
            nontemporal: bool,
            /// Among whom it is atomic.
            scope: Scope,
        } = "buffer_atomic_cas", "k.buffer_atomic_cas(expected, v, b, offset, scope)", "raw_ptr_buffer_atomic_cmpswap",
            Class::ATOMIC, "(expected: T, v: T, b: buffer, offset: u32 or idx) -> T", BITS;
        /// Copies from a buffer to LDS without passing through registers: `bytes` bytes a lane, read as `buffer_load` places
        /// them, written at `pointer` + `bytes`·lane, `pointer` being the same in all lanes of the wave. The bytes of a lane
        /// must not be read or stored to before that lane has waited for the copy, by a `drain` or a `wait_asyncmark` (and
        /// then a barrier, for other waves): accesses before that are reported on `cpu`. Lanes whose access does not end within
        /// the buffer write zeros.
        CopyToLds {
            /// The buffer.
            buffer: Value,
            /// `u32` or `idx`, in `unit`s of the pointer's element; never wraps.
            offset: Value,
            /// LDS pointer, the same in all lanes, aligned to `bytes`.
            pointer: Value,
            /// What `offset` counts.
            unit: OffsetUnit,
            /// `u32`, in bytes, the same in all lanes of a wave.
            scalar: Option<Value>,
            /// Bytes a lane: 4 or 16. gfx950 copies both natively, gfx942 only 4, NVIDIA (`cp.async`) both where the buffer's
            /// alignment and the offset's show that the address is a multiple of 4, in pieces of 4 bytes if not of 16;
            /// elsewhere, and for coherent copies on NVIDIA, it is a load and a store.
            bytes: u32,
            /// Cache behaviour.
            cache: Cache,
        } = "copy_to_lds", "k.copy_to_lds(b, offset, p, bytes)", "buffer_load_to_lds, BufferCopyLDS", Class::PLAIN,
            "(b: buffer, offset: u32 or idx, p: lds<T>)", BITS;
        /// The texel in a column and a row of an image, or the nearest one where there is none: a texel's four elements as they
        /// are, or each as f32, which is exact. The image must not be written during the launch. NVIDIA only, as all operations on
        /// textures and surfaces; elsewhere images are buffers (`Units::Emulated`).
        TextureFetch {
            /// The image.
            texture: Value,
            /// `i32`: column.
            x: Value,
            /// `i32`: row.
            y: Value,
        } = "texture_fetch", "k.texture_fetch(t, x, y)", "tex.2d.v4.f32.s32", Class::TEXEL, "(t: texture<T>, x: i32, y: i32) -> T×4 or f32x4", BITS;
        /// An image's colour at a place, by the filter and the coordinates that its parameter declares, computed in f32. With `e` the
        /// extent where coordinates are normalized and 1 where they count texels, along each axis: `nearest` takes the texel
        /// `floor(u·e)`; `linear` takes `s = floor(fma(u, e, −0.5)·256 + 0.5)`, the texel before, `s >> 8`, and the weight
        /// `a = (s & 255)/256` of the one after it, and makes `fma(a, q, fma(−a, p, p))` of two texels `p` and `q`, along x, then
        /// along y. Beyond an edge is the texel at the edge; a NaN counts as 0. The result's elements are f32, or the image's,
        /// rounded once more to nearest even. The image must not be written during the launch.
        TextureSample {
            /// The image.
            texture: Value,
            /// `f32`: place along a row.
            u: Value,
            /// `f32`: place along a column.
            v: Value,
        } = "texture_sample", "k.texture_sample(t, u, v)", "tex.2d.v4.f32.f32", Class::TEXEL, "(t: texture<T>, u: f32, v: f32) -> T×4 or f32x4",
            Agreement::Bound("nearest: the same texel, or the one next to it where the place is within 1/256 of the edge between both; \
                linear: what places within 1/256 along x and y give, plus 2^-7 of the largest texel around");
        /// Stores a texel; nothing where the image has no such column and row. What is stored is visible to later launches, not to
        /// this one. No result. Which of several threads' different values a texel keeps, if one operation stores them there, is
        /// unspecified; `cpu` reports it.
        SurfaceStore {
            /// Four elements.
            value: Value,
            /// The image.
            surface: Value,
            /// `i32`: column.
            x: Value,
            /// `i32`: row.
            y: Value,
        } = "surface_store", "k.surface_store(v, s, x, y)", "sust.b.2d.v4.b16.zero", Class::TEXEL, "(v: T×4, s: surface<T>, x: i32, y: i32)", BITS;
        /// Ends a group of copies to LDS: those that the thread started since its last mark.
        AsyncMark = "asyncmark", "k.asyncmark()", "rocdl.asyncmark", Class::ALL, "()", Agreement::None;
        /// Waits until all copies to LDS have landed that the thread started before its mark number `n`, counted back from
        /// the newest one, which is 0. So all groups have landed but the newest `n` and what is not marked yet. With fewer
        /// marks than that it waits for nothing. CDNA: `s_waitcnt vmcnt(m)`, `m` being the number of copies that were surely
        /// issued since that mark, counted when the kernel is compiled through branches (the smaller side) and loops (a
        /// pipelined loop keeps its distance); NVIDIA: `cp.async.wait_group`. Nothing where copies are loads and stores.
        WaitAsyncMark(n: u32) = "wait_asyncmark", "k.wait_asyncmark(n)", "rocdl.wait_asyncmark", Class::ALL, "()", Agreement::None;
        /// All threads of the workgroup wait for each other; LDS stores before it are visible after it. It does not order
        /// global memory.
        Barrier = "barrier", "k.barrier()", "gpu.barrier", Class::ALL, "()", Agreement::None;
        /// See [`ShuffleOp`].
        LaneShuffle {
            /// Which lane.
            op: ShuffleOp,
            /// What is exchanged.
            value: Value,
            /// `u32`.
            amount: Value,
            /// Lanes of a logical group.
            width: u32,
        } = "", "", "", Class::PLAIN, "", BITS;
        /// See [`ButterflyOp`].
        Butterfly {
            /// What is combined.
            op: ButterflyOp,
            /// The value.
            value: Value,
            /// Distance of the partner.
            offset: u32,
            /// Lanes of a logical group.
            width: u32,
        } = "", "", "", Class::NUMBER, "", BITS;
        /// Bit `i` tells whether the condition holds in lane `i` of the wave and that lane is active.
        Ballot(condition: Value) = "ballot", "c.ballot()", "rocdl.ballot", Class::BOOL, "(c: bool) -> u64", BITS;
        /// The value of the first active lane, all elements of it, in all lanes.
        ReadFirstLane(value: Value) = "readfirstlane", "v.uniform()", "rocdl.readfirstlane, uniform", Class::PLAIN, "(v: T) -> T", BITS;
        /// The value of one lane, all elements of it, in all lanes. The lane (modulo the wave width) must be active and the same for all.
        ReadLane(value: Value, lane: Value) = "readlane", "v.readlane(lane)", "rocdl.readlane", Class::PLAIN, "(v: T, lane: u32) -> T", BITS;
        /// Transposes an 8×8 matrix of 16-bit elements held by each logical group of 32 lanes: with `g = l div 4` and
        /// `t = l mod 4`, a word holds row `g`, columns `2t` (low half) and `2t + 1` before, and column `g`, rows `2t` and
        /// `2t + 1` after. All lanes of the group must be active.
        Transpose8x8(value: Value) = "transpose8x8", "v.transpose8x8()", "movmatrix", Class::U32, "(v: u32) -> u32", BITS;
        /// Matrix product with a sum: D = A·B + C, A of M×K, B of K×N, C and D of M×N. Each logical group of lanes multiplies
        /// matrices of its own; [`crate::mma::plain`] tells which shapes there are on which chip, how many lanes a group has,
        /// and which element each register of a lane holds. All lanes of the wave must be active. Floats: the exact sum of all
        /// products and C, rounded once to f32 (`cpu`; with the chip's own rounding on request); +0 if it is 0. Subnormal
        /// factors count, a sum below 2^-126 may be flushed. Integers: i32, wrapping.
        Mma {
            /// A, in fragment registers: a vector of elements, or of packed words of a narrow float.
            a: Value,
            /// B.
            b: Value,
            /// C: a vector of f32, or of i32 for integers.
            c: Value,
            /// Extents.
            shape: MmaShape,
            /// Elements of A.
            a_type: MmaType,
            /// Elements of B.
            b_type: MmaType,
            /// Whose registers: the target's.
            fragments: Fragments,
        } = "mma", "k.mma(a, b, c)", "rocdl.mfma_f32_*, mfma_i32_*, wmma_*; mma.sync", Class::PLAIN,
            "(a: fragment, b: fragment, c: fragment) -> fragment",
            Agreement::Bound("integers: the same bits; floats: 2^-20 of the sum of |a·b| and |c|, plus 2^-126");
        /// Block-scaled matrix product: D = A·B + C of 16×16×128, where every 32 elements along K of a row of A, and of a column
        /// of B, are multiplied by a power of two of their own, an e8m0 code: 2^(code − 127), NaN for 0xFF. C is not scaled.
        /// [`crate::mma::scaled`] tells which element each register of a lane holds. A lane gives its scales as one word, or as
        /// two where waves have 32 lanes; the code is the byte of the word that `a_byte` or `b_byte` names. All lanes of the wave
        /// must be active. The exact sum of all scaled products and C, rounded once to f32 (`cpu`); +0 if it is 0.
        MfmaScaled {
            /// A: packed words.
            a: Value,
            /// B: packed words.
            b: Value,
            /// C: a vector of f32.
            c: Value,
            /// `u32` or `u32x2`.
            a_scale: Value,
            /// `u32` or `u32x2`.
            b_scale: Value,
            /// Elements of A.
            a_type: Narrow,
            /// Elements of B.
            b_type: Narrow,
            /// 0 to 3: which byte of each word of `a_scale` (rocdl's opsel).
            a_byte: u32,
            /// 0 to 3.
            b_byte: u32,
            /// Whose registers: the target's.
            fragments: Fragments,
        } = "mfma_scaled", "k.mfma_scaled(a, b, c, a_scale, b_scale)", "mfma_scaled, rocdl.mfma_scale_f32_16x16x128_f8f6f4",
            Class::U32, "(a: fragment, b: fragment, c: fragment, a_scale, b_scale) -> fragment",
            Agreement::Bound("2^-20 of the sum of |a·b|, scaled, and |c|, plus 2^-126; sm_120a's own units are not measured");
        /// Byte `i` of the result is byte `selector.byte[i] mod 8` of the eight bytes of `a` (4–7) and `b` (0–3).
        PermB32(a: Value, b: Value, selector: Value) = "perm_b32", "k.perm_b32(a, b, selector)", "rocdl.perm_b32", Class::U32,
            "(a: u32, b: u32, selector: u32) -> u32", BITS;
        /// Reads a transposed matrix from LDS: every lane loads its own chunk of E elements of `bits` bits from its own address,
        /// and groups of 16 consecutive lanes deal the elements out. Lane `i` of a group gets, as element `j`, element `i mod E`
        /// of the chunk of lane `(16/E)·j + i div E`. `bits` is 16 (E = 4), 8 (8), 4 (16) or 6 (16); elements of 4 and 6 bits
        /// lie one behind the other, lowest bit first, in `u32x2` and `u32x3`. The addresses are multiples of 8, for 6 bits of
        /// 16. All lanes of the wave must be active.
        LdsReadTr {
            /// Where the lane's chunk lies in LDS.
            pointer: Value,
            /// Width of an element: 16, 8, 4 or 6.
            bits: u32,
        } = "lds_read_tr", "k.lds_read_tr(p), k.lds_read_tr4(p), k.lds_read_tr6(p)",
            "LDSReadTrans, rocdl.ds.read.tr16.b64, tr8.b64, tr4.b64, tr6.b96", Class::PLAIN, "(p: lds<T>) -> T×n", BITS;
        /// Waits until at most so many memory operations of the wave are outstanding. CDNA (gfx9) only: other chips count
        /// differently; `drain` is portable. On `cpu` the copies to LDS have landed that at least `vmcnt` later operations on
        /// vector memory follow: each load, store, atomic and copy of the wave through a buffer or a global pointer counts as
        /// one, but not `s_buffer_load`, nor a load through a pointer that is the same in all lanes, which AMD's compiler may
        /// make a scalar one.
        SWaitcnt {
            /// Vector memory: 0 to 63.
            vmcnt: Option<u32>,
            /// LDS and scalar memory: 0 to 15.
            lgkmcnt: Option<u32>,
            /// Exports: 0 to 7.
            expcnt: Option<u32>,
        } = "s_waitcnt", "k.s_waitcnt(Waitcnt::new().vmcnt(n))", "rocdl.s_waitcnt", Class::ALL, "()", Agreement::None;
        /// Lets the wave sleep for about 64·n cycles, 0 to 127; NVIDIA: `nanosleep` of 64·n ns.
        SSleep(amount: u32) = "s_sleep", "k.s_sleep(n)", "rocdl.s_sleep", Class::ALL, "()", Agreement::None;
        /// Priority of the wave, 0 to 3; nothing on NVIDIA.
        SSetprio(level: u32) = "s_setprio", "k.s_setprio(n)", "rocdl.s_setprio", Class::ALL, "()", Agreement::None;
        /// Instructions whose class is not in the mask are not moved across it by AMD's scheduler; nothing on NVIDIA.
        SchedBarrier(mask: u32) = "sched_barrier", "k.sched_barrier(mask)", "rocdl.sched_barrier", Class::ALL, "()", Agreement::None;
        /// Asks AMD's scheduler for a group of `size` instructions of the classes in `mask`; nothing on NVIDIA.
        SchedGroupBarrier {
            /// Instruction classes.
            mask: u32,
            /// How many.
            size: u32,
            /// Groups with the same number are ordered among each other.
            group: u32,
        } = "sched_group_barrier", "k.sched_group_barrier(mask, size, group)", "rocdl.sched_group_barrier, sched_mfma/vmem/dsrd/dswr",
            Class::ALL, "()", Agreement::None;
        /// Its operand, of which the compiler knows nothing more (fx `fresh`): stops hoisting and folding across it.
        Opaque(a: Value) = "opaque", "a.opaque()", "fresh", Class::PLAIN, "(a: T) -> T", BITS;
        /// Its operand, which is told to be `likely` most of the time.
        Expect {
            /// `bool`.
            condition: Value,
            /// The usual value.
            likely: bool,
        } = "expect", "c.expect(likely)", "llvm.expect", Class::BOOL, "(c: bool) -> bool", BITS;
        /// Promises that the condition holds. A broken promise is reported on `cpu`, undefined elsewhere.
        Assume(condition: Value) = "assume", "k.assume(c)", "llvm.assume", Class::BOOL, "(c: bool)", Agreement::None;
        /// Its operand, of which the author promises that all threads of the scope that come here together hold the same one.
        /// The verifier, which cannot see that of what is loaded from memory that the kernel writes, then takes it for uniform.
        /// A broken promise is reported on `cpu`, undefined elsewhere.
        AssumeUniform {
            /// What is the same.
            value: Value,
            /// `wave` or `workgroup`.
            scope: Scope,
        } = "assume_uniform", "v.assume_uniform(scope)", "", Class::ALL, "(v: T) -> T", BITS;
        /// Inline assembly or raw intrinsics, one form a kind of target, with their meaning: a region that computes the same
        /// from the same operands. `cpu`, and targets that no form fits, run the region.
        Native {
            /// Operands; the region's parameters stand for them.
            args: Vec<Value>,
            /// What is emitted where.
            forms: Vec<NativeForm>,
            /// The meaning; yields the results.
            meaning: Block,
        } = "native", "k.native(args, forms, |args| …)", "inline asm, llvm.call_intrinsic, raw rocdl ops", Class::ALL, "(args…) -> results", Agreement::Bits;
        /// Runs one of two regions, by lane; results are the taken region's yields.
        If {
            /// One `bool`.
            condition: Value,
            /// Run where it holds.
            then: Block,
            /// Run where it does not; its yields have the same types.
            otherwise: Block,
        } = "if", "k.if_else(c, || …, || …)", "scf.if", Class::BOOL, "(c: bool) -> results", BITS;
        /// Runs the body for `i = lo, lo + step, …` while `i < hi`, as mathematical integers (no wrap-around).
        /// The body's first parameter is `i`, the rest are the carried values; its yields are the next
        /// iteration's carried values and, at the end, the results.
        For {
            /// First index: an integer of 32 or 64 bits, or `idx`.
            lo: Value,
            /// End (exclusive), of the same type.
            hi: Value,
            /// Initial carried values.
            init: Vec<Value>,
            /// Distance between indices, at least 1.
            step: u32,
            /// Hint for the compiler.
            unroll: Unroll,
            /// The loop's body.
            body: Block,
        } = "for", "k.for_range(lo, hi, step, init, |i, c| …)", "range, scf.for", Class::INT, "(lo: T, hi: T, init…) -> results", BITS;
        /// Runs `before`, whose first yield is a `bool`; while that holds in a lane, runs `after` there with the other yields
        /// as its parameters, and goes on with what it yields as `before`'s parameters. Results are the other yields of the
        /// `before` that ended it.
        While {
            /// Initial values of `before`'s parameters.
            init: Vec<Value>,
            /// Condition.
            before: Block,
            /// Body.
            after: Block,
        } = "while", "k.while_(init, |s| (go_on, s), |s| …)", "scf.while", Class::ALL, "(init…) -> results", BITS;
    }
}

/// An [`AtomicOp`] as an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AtomicKind(pub AtomicOp);

impl Op {
    /// Definitions of all operations, families of mnemonics included.
    pub fn all_defs() -> Vec<&'static OpDef> {
        let own = Self::OWN_DEFS.iter().filter(|d| !d.name.is_empty());
        own.chain(UnaryOp::ALL.iter().map(|o| o.def()))
            .chain(BinaryOp::ALL.iter().map(|o| o.def()))
            .chain(Predicate::ALL.iter().map(|o| o.def()))
            .chain(ReduceOp::ALL.iter().map(|o| o.def()))
            .chain(ButterflyOp::ALL.iter().map(|o| o.def()))
            .chain(ShuffleOp::ALL.iter().map(|o| o.def()))
            .chain(AtomicOp::ALL.iter().map(|o| o.def()))
            .collect()
    }
}
