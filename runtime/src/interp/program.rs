//! Linear form of a kernel: what the executor runs.

use lathe_dsl::Arch;
use lathe_dsl::image;
use lathe_dsl::ir::{Axis, Kernel, LdsArray, Location, Param, Scalar, ShuffleOp, Space};

use super::alu::{Coding, Fn1, Fn2, Fn3, Rmw};
use super::error::Error;
use super::flatten;
use super::matrix::Product;
use super::watch::Mark;

/// A register: index of a row of lanes in the 32-bit or the 64-bit register file; which one, the instruction says.
pub(super) type Reg = u32;

/// Index of an instruction.
pub(super) type Pc = u32;

/// Register file. Scalars of at most 32 bits live zero-extended in 32-bit rows, 64-bit ones and pointers in 64-bit rows;
/// a vector of `n` elements takes `n` consecutive rows; a buffer takes two 64-bit rows, its address and its extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    R32,
    R64,
}

/// Width of an element in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    B8,
    B16,
    B32,
    B64,
}

impl Width {
    pub(super) const fn bytes(self) -> u32 {
        match self {
            Self::B8 => 1,
            Self::B16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
        }
    }
}

/// How the count of pointer arithmetic is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Count {
    U32,
    I64,
    U64,
}

/// A buffer that is accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A parameter.
    Param(u32),
    /// Made at run time; the register `buffer` of the instruction holds it.
    Made,
}

/// Where a buffer access begins: register `offset` counts units of `scale` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offset {
    /// The register is a 64-bit row of signed numbers, else a 32-bit row of unsigned ones.
    pub(super) wide: bool,
    pub(super) scale: u8,
}

macro_rules! instrs {
    ($(#[$meta:meta])* { $($(#[$doc:meta])* $name:ident { $($reg:ident),* $(; $($field:ident: $ty:ty),+)? })* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Instr<const W: usize, R = Reg> {
            $($(#[$doc])* $name { $($reg: R,)* $($($field: $ty,)+)? },)*
        }

        impl<const W: usize, R: Copy> Instr<W, R> {
            /// The same instruction with every register `r` replaced by `f(r)`.
            pub(super) fn map_regs<S>(self, mut f: impl FnMut(R) -> S) -> Instr<W, S> {
                let _ = &mut f;
                match self {
                    $(Self::$name { $($reg,)* $($($field,)+)? } => {
                        Instr::$name { $($reg: f($reg),)* $($($field,)+)? }
                    })*
                }
            }
        }
    };
}

instrs! {
    /// One instruction for waves of `W` lanes: its registers, then everything else. `n` counts elements: the operation
    /// runs on `n` consecutive rows of each operand. The result's rows never overlap an operand's. Only `Move` with
    /// `masked`, loads and what stores to memory heed the active mask; everything else may write junk into inactive lanes,
    /// because no value that such a lane still needs shares the row.
    {
        Fill { dst; class: Class, n: u32, bits: u64 }
        /// Scalar parameter number `param`.
        Param { dst; class: Class, param: u32 }
        /// Address and extent of buffer parameter number `param`.
        BufferParam { dst; param: u32 }
        ThreadId { dst; axis: Axis }
        BlockId { dst; axis: Axis }
        LaneId { dst }
        /// The wave's own clock, which this moves on.
        Clock { dst }
        Map1 { dst, a; f: Fn1<W>, n: u32 }
        Map2 { dst, a, b; f: Fn2<W>, n: u32 }
        Map3 { dst, a, b, c; f: Fn3<W>, n: u32 }
        /// With `each`, row `i` of `condition` decides on row `i`; else its one row decides on all.
        Select { dst, condition, a, b; class: Class, each: bool, n: u32 }
        /// Joins `ratio` elements of `bits` bits each from 32-bit rows into one of `class`, first one lowest; `n` results.
        Join { dst, a; class: Class, n: u32, ratio: u32, bits: u32 }
        /// Splits each of `n` elements of `class` into `ratio` elements of `bits` bits in 32-bit rows, lowest first.
        Split { dst, a; class: Class, n: u32, ratio: u32, bits: u32 }
        /// The codes of `n` elements, one a row.
        Encode { dst, a, scale; n: u32, coding: Coding }
        /// The elements of `n` codes, one a row.
        Decode { dst, a, scale; n: u32, coding: Coding }
        /// `codes` codes of `bits` bits side by side in `n` words.
        Pack { dst, a; n: u32, codes: u32, bits: u32 }
        /// `n` codes of `bits` bits out of words.
        Unpack { dst, a; n: u32, bits: u32 }
        /// `old` with `bits` bits from `shift` on replaced.
        Insert { dst, old, a; shift: u32, bits: u32 }
        Move { dst, a; class: Class, n: u32, masked: bool }
        /// Element number `index` of `n`.
        ExtractAt { dst, a, index; class: Class, n: u32 }
        Ballot { dst, condition }
        ReadFirst { dst, a; class: Class, n: u32 }
        ReadLane { dst, a, lane; class: Class, n: u32 }
        Shuffle { dst, a, amount; op: ShuffleOp, class: Class, n: u32, width: u32 }
        /// The value of lane `^ offset`; all lanes of its group of `width` must be active.
        Partner { dst, a; class: Class, n: u32, offset: u32, width: u32 }
        Transpose { dst, a }
        /// Product number `product`.
        Product { dst, a, b, c; product: u32 }
        ScaledProduct { dst, a, b, c, a_scale, b_scale; product: u32 }
        /// Elements of `bits` bits, of the `n` rows of `row` bits that a lane has, dealt out among 16 lanes.
        Deal { dst, a; bits: u32, row: u32, n: u32 }
        Assume { condition }
        /// Holds that `a` is the same in all active lanes; with `workgroup`, in all waves that come here for the same time.
        Agree { a; class: Class, workgroup: bool }
        /// Pointer to the start of LDS array `array`; see [`super::lds`] for its form.
        LdsBase { dst; array: u32 }
        /// Byte of LDS that an LDS pointer points to.
        LdsAddress { dst, pointer }
        /// The reverse: a pointer into whatever array lies there.
        LdsPointer { dst, address }
        /// `pointer + count` elements of `bytes` bytes.
        PtrAdd { dst, pointer, count; space: Space, kind: Count, bytes: u32 }
        /// `align` is what the address must be a multiple of.
        LdsLoad { dst, pointer; width: Width, n: u32, align: u32 }
        LdsStore { value, pointer; width: Width, n: u32, align: u32 }
        /// `ordered`: an atomic access.
        GlobalLoad { dst, pointer; width: Width, n: u32, align: u32, ordered: bool }
        GlobalStore { value, pointer; width: Width, n: u32, align: u32, ordered: bool }
        /// Holds a made buffer against what one may be.
        CheckBuffer { buffer; align: u32 }
        /// `offset` in bytes plus `scalar`, which must be the same in all active lanes.
        ByteOffset { dst, offset, scalar; from: Offset }
        /// `whole`: in naturally aligned parts of up to 16 bytes, each at once.
        BufferLoad { dst, buffer, offset; source: Source, from: Offset, width: Width, n: u32, whole: bool }
        BufferStore { value, buffer, offset; source: Source, from: Offset, width: Width, n: u32, whole: bool }
        /// Operands must be the same in all active lanes.
        ScalarLoad { dst, buffer, offset; source: Source, from: Offset, n: u32 }
        BufferRmw { dst, value, buffer, offset; f: Rmw, source: Source, from: Offset, class: Class }
        BufferCas { dst, expected, value, buffer, offset; source: Source, from: Offset, class: Class }
        CopyToLds { pointer, buffer, offset; source: Source, from: Offset, bytes: u32 }
        Rmw { dst, pointer, value; f: Rmw, class: Class, space: Space }
        Cas { dst, pointer, expected, value; class: Class, space: Space }
        Fence {}
        /// The active lanes' copies to LDS have landed.
        Drain {}
        /// So have the wave's that at least `vmcnt` later operations on vector memory follow.
        WaitCount {; vmcnt: u32 }
        /// Ends a group of the active lanes' copies.
        AsyncMark {}
        /// All of their groups have landed but the newest `groups`.
        WaitAsyncMark {; groups: u32 }
        /// Lets other waves run.
        Yield {}
        Barrier {}
        /// Pushes the mask and keeps the lanes where `condition` holds; with none left, jumps to `otherwise` (an `Else` or
        /// a `Pop`).
        If { condition; otherwise: Pc }
        /// Continues with the lanes that `If` left out; with none, jumps to `end` (a `Pop`).
        Else {; end: Pc }
        /// Pushes the mask and keeps the lanes with `index < hi`; with none left, jumps to `exit` (a `Pop`).
        Loop { index, hi; ty: Scalar, exit: Pc }
        /// Adds `step` to `index` and keeps the lanes with `index < hi`; jumps to `body` unless none is left.
        Next { index, hi; ty: Scalar, step: u32, body: Pc }
        /// Pushes the mask: the head of a `while`.
        While {}
        /// Keeps the lanes where `condition` holds; with none left, jumps to `exit` (a `Pop`).
        Test { condition; exit: Pc }
        /// Jumps to `body`, just behind the matching `While`.
        Again {; body: Pc }
        /// Back to the mask before the matching `If`, `Loop` or `While`.
        Pop {}
        End {}
    }
}

impl<const W: usize, R> Instr<W, R> {
    /// Whether it accesses global memory.
    pub(super) fn is_in_global(&self) -> bool {
        matches!(
            self,
            Self::GlobalLoad { .. }
                | Self::GlobalStore { .. }
                | Self::BufferLoad { .. }
                | Self::BufferStore { .. }
                | Self::BufferRmw { .. }
                | Self::BufferCas { .. }
                | Self::CopyToLds { .. }
                | Self::Rmw { space: Space::Global, .. }
                | Self::Cas { space: Space::Global, .. }
        )
    }

    /// Whether it is the head of a loop.
    pub(super) fn opens_loop(&self) -> bool {
        matches!(self, Self::Loop { .. } | Self::While { .. })
    }

    /// Where the loop begins that it closes.
    pub(super) fn closes_loop(&self) -> Option<Pc> {
        match self {
            Self::Next { body, .. } | Self::Again { body } => Some(body - 1),
            _ => None,
        }
    }
}

/// Heads of the branches and loops around instruction `at`, outermost first.
pub(super) fn opened_around<const W: usize>(code: &[Instr<W>], at: Pc) -> Vec<Pc> {
    let mut open = vec![];
    for (pc, instr) in code.iter().enumerate().take(at as usize) {
        match instr {
            Instr::If { .. } | Instr::Loop { .. } | Instr::While {} => open.push(pc as Pc),
            Instr::Pop {} => {
                open.pop();
            }
            _ => {}
        }
    }
    open
}

/// The innermost `while` around instruction `at`: its head, and the jump back to it.
pub(super) fn while_around<const W: usize>(code: &[Instr<W>], at: Pc) -> Option<(Pc, Pc)> {
    let loops = code.iter().zip(0..).filter_map(|(instr, back)| match instr {
        Instr::Again { body } => Some((body - 1, back)),
        _ => None,
    });
    loops.filter(|(head, back)| (*head..=*back).contains(&at)).max()
}

/// Code for one wave width.
#[derive(Debug)]
pub(super) enum Code {
    W32(Vec<Instr<32>>),
    W64(Vec<Instr<64>>),
}

/// A kernel made ready to run: immutable and shareable between threads and launches.
#[derive(Debug)]
pub struct Program {
    pub(super) name: String,
    /// Whose memory model holds.
    pub(super) arch: Arch,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) params: Vec<Param>,
    pub(super) lds: Vec<LdsArray>,
    /// Byte offset of each LDS array, and the LDS size.
    pub(super) lds_layout: (Vec<u32>, u32),
    pub(super) code: Code,
    /// Matrix products, by the number that instructions have.
    pub(super) products: Vec<Product>,
    /// Location of each instruction's operation.
    pub(super) locations: Vec<Location>,
    /// What checks need to know of it.
    pub(super) marks: Vec<Mark>,
    /// Rows of the 32-bit and of the 64-bit register file.
    pub(super) rows: [u32; 2],
}

impl Program {
    /// Flattens a kernel. It runs as on a chip of AMD's; see [`Self::on`].
    ///
    /// # Errors
    /// [`Error::Malformed`] if the kernel breaks a rule that execution relies on; a verified kernel breaks none.
    pub fn new(kernel: &Kernel) -> Result<Self, Error> {
        // An image is a buffer here, and its accesses mean what they are spelt out as.
        match image::spelt_out(kernel) {
            Some(kernel) => flatten::flatten(&kernel),
            None => flatten::flatten(kernel),
        }
    }

    /// The same for a chip of `arch`: what a seed makes of stores and loads that nothing orders follows its memory model.
    #[must_use]
    pub fn on(self, arch: Arch) -> Self {
        Self { arch, ..self }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Lanes a wave: 32 or 64.
    pub(super) fn wave(&self) -> u32 {
        match self.code {
            Code::W32(_) => 32,
            Code::W64(_) => 64,
        }
    }

    /// Threads of a workgroup.
    pub(super) fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Waves of a workgroup; the last may be partial.
    pub(super) fn block_waves(&self) -> u32 {
        self.block_threads().div_ceil(self.wave())
    }

    /// Workgroups of a launch.
    pub(super) fn blocks(&self) -> u64 {
        self.grid.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d)))
    }

    /// Whether its workgroups tell each other something: they make atomic accesses to global memory.
    pub(super) fn communicates(&self) -> bool {
        fn any<const W: usize>(code: &[Instr<W>], marks: &[Mark]) -> bool {
            code.iter().zip(marks).any(|(instr, mark)| matches!(mark, Mark::Atomic(..)) && instr.is_in_global())
        }
        match &self.code {
            Code::W32(code) => any(code, &self.marks),
            Code::W64(code) => any(code, &self.marks),
        }
    }

    /// Coordinates of workgroup number `number`.
    pub(super) fn block_at(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|i| i as u32)
    }

    /// Coordinates in the workgroup of thread number `linear`.
    pub(super) fn thread(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [linear % x, linear / x % y, linear / x / y]
    }
}
