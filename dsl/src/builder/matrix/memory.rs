//! Fragments from and to memory.

use super::super::Builder;
use super::super::buffer::{Buffer, Readable, Writable};
use super::super::element::{Element, Idx, Plain, Ty};
use super::super::pointer::LdsPtr;
use super::super::value::{Operand, V};
use super::fragment::plus;
use super::{Fragment, FragmentC, Place, Product, Role, roles};
use crate::ir::{Bits, Cache, Location, Memory, OffsetUnit, Op, Scalar, Space, Type, Value};
use crate::mma::{Layout, Step};

/// Bytes of the widest access.
const WIDEST: u32 = 16;

/// In which order a matrix lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// The elements of a row side by side.
    RowMajor,
    /// The elements of a column side by side.
    ColMajor,
}

/// A matrix in a global buffer, or in LDS: `M` is the buffer, or a pointer to LDS. Offsets count elements of the matrix.
/// Its memory has elements of the same type, or integers for codes of narrow floats: these lie packed, first one lowest, and rows begin
/// with whole bytes.
#[derive(Clone, Copy)]
pub struct Matrix<'k, M> {
    memory: M,
    storage: Storage,
    first: V<'k, Idx>,
    stride: V<'k, Idx>,
    within: Option<(V<'k, u32>, V<'k, u32>)>,
    swizzle: Option<Swizzle>,
    /// Rows (columns) that there are; the last one stands for those past it.
    lines: Option<V<'k, u32>>,
    /// Elements of an access at most.
    at_most: u32,
    cache: Cache,
}

/// See [`Matrix::swizzled`].
#[derive(Clone, Copy)]
struct Swizzle {
    shift: u32,
    mask: u32,
}

/// Bytes of the pieces that a swizzle moves.
const PIECE: u32 = 16;

impl<'k, M> Matrix<'k, M> {
    /// Element (0, 0) at element `first` of the memory; rows (columns of a column-major one) `stride` elements apart.
    #[track_caller]
    pub fn new(
        k: &'k Builder<'k>,
        memory: M,
        storage: Storage,
        first: impl Operand<'k, Idx>,
        stride: impl Operand<'k, Idx>,
    ) -> Self {
        Self {
            memory,
            storage,
            first: first.value(k),
            stride: stride.value(k),
            within: None,
            swizzle: None,
            lines: None,
            at_most: u32::MAX,
            cache: Cache::OWN,
        }
    }

    /// Only so many rows and columns count: elements outside are loaded as 0 without an access, and not stored. Elements that one
    /// access takes together, along a row (a column), are asked about by their first: extents along it must be a multiple of
    /// [`Builder::run`], or of what [`Matrix::at_most`] says. For global buffers.
    #[must_use]
    pub fn within(self, rows: V<'k, u32>, cols: V<'k, u32>) -> Self {
        Self { within: Some((rows, cols)), ..self }
    }

    /// The 16-byte piece number `p` of row (column) `r` lies where piece `p ^ ((r >> shift) & mask)` would: lanes that access the
    /// same piece of different rows then meet different banks of LDS. Rows are counted from the matrix's first; a row must have a
    /// multiple of 16·(mask + 1) bytes, and whoever writes the matrix must put its pieces there.
    #[must_use]
    pub fn swizzled(self, shift: u32, mask: u32) -> Self {
        Self { swizzle: Some(Swizzle { shift, mask }), ..self }
    }

    /// A matrix of so many rows (columns of a column-major one), at least one: from those past the last, the last is loaded. So
    /// a tile may hang over a matrix whose neighbourhood must not be read, in LDS too. Not for stores.
    #[must_use]
    pub fn clamped(self, lines: impl Operand<'k, u32>) -> Self {
        let lines = lines.value(self.first.k);
        Self { lines: Some(lines), ..self }
    }

    /// Accesses of at most so many elements, a power of two: where rows (columns) begin at no larger multiple.
    #[must_use]
    pub fn at_most(self, elements: u32) -> Self {
        Self { at_most: elements, ..self }
    }

    /// Accesses with this cache behaviour. For global buffers.
    #[must_use]
    pub fn cached(self, cache: Cache) -> Self {
        Self { cache, ..self }
    }
}

/// How an access of a matrix is made, beside where: [`Matrix::within`] and [`Matrix::cached`].
#[derive(Clone, Copy)]
pub struct Way<'k> {
    mask: Option<V<'k, bool>>,
    cache: Cache,
    at: Location,
}

/// Memory that fragments are loaded from: a readable buffer, or a pointer to LDS.
pub trait Source<'k>: Copy {
    /// Its elements.
    type Elem: Element;
    /// How a mismatch is mended: whose `cast`.
    #[doc(hidden)]
    const WHAT: &'static str;
    /// A value of type `ty` from so many bytes behind its beginning.
    #[doc(hidden)]
    fn load(self, k: &'k Builder<'k>, ty: Type, bytes: V<'k, Idx>, way: Way<'k>) -> Value;
}

/// Memory that fragments are stored to: a writable buffer, or a pointer to LDS.
pub trait Sink<'k>: Copy {
    /// Its elements.
    type Elem: Element;
    /// Stores a value so many bytes behind its beginning.
    #[doc(hidden)]
    fn store(self, k: &'k Builder<'k>, value: (Value, Type), bytes: V<'k, Idx>, way: Way<'k>);
}

impl<'k, T: Element, A: Readable> Source<'k> for Buffer<'k, T, A> {
    type Elem = T;
    const WHAT: &'static str = "buffer";

    fn load(self, k: &'k Builder<'k>, ty: Type, bytes: V<'k, Idx>, way: Way<'k>) -> Value {
        let op = Op::BufferLoad {
            buffer: self.id(),
            offset: bytes.id,
            unit: OffsetUnit::Bytes,
            scalar: None,
            mask: way.mask.map(|m| m.id),
            fill: way.mask.map(|_| k.const_value(ty, Bits(0))),
            cache: way.cache,
        };
        k.emit_op_at(op, &[ty], way.at)[0]
    }
}

impl<'k, T: Element, A: Writable> Sink<'k> for Buffer<'k, T, A> {
    type Elem = T;

    fn store(self, k: &'k Builder<'k>, value: (Value, Type), bytes: V<'k, Idx>, way: Way<'k>) {
        let op = Op::BufferStore {
            value: value.0,
            buffer: self.id(),
            offset: bytes.id,
            unit: OffsetUnit::Bytes,
            scalar: None,
            mask: way.mask.map(|m| m.id),
            cache: way.cache,
        };
        k.emit_op_at(op, &[], way.at);
    }
}

impl<'k> Way<'k> {
    /// Refuses what LDS does not have.
    fn fits_lds(self, k: &'k Builder<'k>) {
        if self.mask.is_some() {
            k.refuse_at(
                "a matrix in LDS with extents to keep within; only one in a buffer has them".to_owned(),
                self.at,
            );
        }
        if self.cache != Cache::OWN {
            k.refuse_at("a matrix in LDS with a cache behaviour; only one in a buffer has one".to_owned(), self.at);
        }
    }
}

/// A pointer to `scalar`s, so many bytes behind one to LDS.
fn behind<'k, T: Element + Plain>(
    k: &'k Builder<'k>,
    pointer: V<'k, LdsPtr<T>>,
    bytes: V<'k, Idx>,
    scalar: Scalar,
    at: Location,
) -> Value {
    let cast = |k: &Builder<'k>, id, scalar| k.emit_op_at(Op::PtrCast(id), &[Type::Ptr(Space::Lds, scalar)], at)[0];
    let start = cast(k, pointer.id, Scalar::U8);
    let moved = k.emit_op_at(Op::PtrAdd(start, bytes.id), &[Type::Ptr(Space::Lds, Scalar::U8)], at)[0];
    cast(k, moved, scalar)
}

impl<'k, T: Element + Plain> Source<'k> for V<'k, LdsPtr<T>> {
    type Elem = T;
    const WHAT: &'static str = "pointer";

    fn load(self, k: &'k Builder<'k>, ty: Type, bytes: V<'k, Idx>, way: Way<'k>) -> Value {
        way.fits_lds(k);
        let pointer = behind(k, self, bytes, ty.scalar(), way.at);
        k.emit_op_at(Op::PtrLoad { pointer, memory: Memory::default() }, &[ty], way.at)[0]
    }
}

impl<'k, T: Element + Plain> Sink<'k> for V<'k, LdsPtr<T>> {
    type Elem = T;

    fn store(self, k: &'k Builder<'k>, value: (Value, Type), bytes: V<'k, Idx>, way: Way<'k>) {
        way.fits_lds(k);
        let pointer = behind(k, self, bytes, value.1.scalar(), way.at);
        k.emit_op_at(Op::PtrStore { value: value.0, pointer, memory: Memory::default() }, &[], way.at);
    }
}

/// Elements, from each one whose number is a multiple of it on, that lie side by side in memory.
pub(super) fn run(layout: &Layout, storage: Storage) -> u32 {
    let side_by_side = |(i, step): &(usize, &Step)| match storage {
        Storage::RowMajor => **step == Step::Col(1 << i),
        Storage::ColMajor => **step == Step::Row(1 << i),
    };
    1 << layout.element_steps().iter().enumerate().take_while(side_by_side).count()
}

/// Accesses to a fragment's runs.
struct Runs<'k> {
    /// Bits of an element.
    bits: u32,
    /// Elements a run, and bytes an access.
    run: u32,
    access: u32,
    layout: Layout,
    storage: Storage,
    place: Place<'k>,
    within: Option<(V<'k, u32>, V<'k, u32>)>,
    /// Bytes: where this lane's first row (column) begins, from one to the next, and to its first element in it.
    start: V<'k, Idx>,
    stride: V<'k, Idx>,
    minor: V<'k, u32>,
    swizzle: Option<Swizzle>,
    /// With [`Matrix::clamped`], the last row (column); `start` is the first one's then.
    last: Option<V<'k, u32>>,
}

impl<'k> Runs<'k> {
    #[track_caller]
    fn new<M>(k: &'k Builder<'k>, layout: Layout, bits: u32, matrix: &Matrix<'k, M>) -> Option<Self> {
        let run = run(&layout, matrix.storage);
        if !(run * bits).is_multiple_of(8) {
            let order = match matrix.storage {
                Storage::RowMajor => "columns",
                Storage::ColMajor => "rows",
            };
            k.refuse(format!(
                "elements of {bits} bits that do not lie side by side along this fragment's {order}: store the matrix the other \
                 way round"
            ));
            return None;
        }
        if !matrix.at_most.is_power_of_two() && matrix.at_most != u32::MAX {
            k.refuse(format!("accesses of at most {} elements; allowed are powers of two", matrix.at_most));
        }
        if bits == 6 && matrix.at_most < run {
            k.refuse(format!(
                "accesses of at most {} codes of 6 bits, which end within bytes; this fragment's accesses take {run}",
                matrix.at_most
            ));
        }
        let place = k.first_place(&layout);
        let (major, minor) = match matrix.storage {
            Storage::RowMajor => (place.row, place.col),
            Storage::ColMajor => (place.col, place.row),
        };
        let in_bytes = |elements: V<'k, Idx>| match bits {
            8 => elements,
            4 | 6 => (elements * bits).div_floor(8),
            _ => elements * (bits / 8),
        };
        let stride = in_bytes(matrix.stride);
        let bytes = run * bits / 8;
        let at_most = (matrix.at_most.clamp(1, run) * bits / 8).max(1);
        let first = in_bytes(matrix.first);
        let access = (1 << bytes.trailing_zeros()).min(WIDEST).min(1 << at_most.ilog2());
        Some(Self {
            bits,
            run,
            access,
            storage: matrix.storage,
            place,
            within: matrix.within,
            start: if matrix.lines.is_some() { first } else { first + major.to::<Idx>() * stride },
            stride,
            minor: if bits < 8 { (minor * bits) >> 3 } else { minor * (bits / 8) },
            swizzle: matrix.swizzle,
            last: matrix.lines.map(|lines| lines - 1),
            layout,
        })
    }

    /// Byte offset and mask of every access, with the number of its first element.
    #[track_caller]
    fn each(&self, mut f: impl FnMut(u32, V<'k, Idx>, Option<V<'k, bool>>)) {
        for e in (0..self.layout.elements()).step_by(self.run as usize) {
            let (row, col) = self.layout.at(0, e);
            let (major, minor) = match self.storage {
                Storage::RowMajor => (row, col),
                Storage::ColMajor => (col, row),
            };
            let lane = match self.storage {
                Storage::RowMajor => self.place.row,
                Storage::ColMajor => self.place.col,
            };
            let line = self.last.map(|last| plus(lane, major).minimum(last));
            let start = match line {
                Some(line) => self.start + line.to::<Idx>() * self.stride,
                None if major != 0 => self.start + self.stride * major,
                None => self.start,
            };
            let moved = self.swizzle.map(|s| {
                let line = line.unwrap_or_else(|| plus(lane, major));
                ((line >> s.shift) & s.mask) * PIECE
            });
            for at in (0..self.run * self.bits / 8).step_by(self.access as usize) {
                let element = e + at * 8 / self.bits;
                let mask = self.within.map(|(rows, cols)| {
                    let (row, col) = self.layout.at(0, element);
                    plus(self.place.row, row).lt(rows) & plus(self.place.col, col).lt(cols)
                });
                let minor = plus(self.minor, minor * self.bits / 8 + at);
                let minor = moved.map_or(minor, |moved| minor ^ moved);
                f(element, start + minor.to::<Idx>(), mask);
            }
        }
    }
}

/// Refuses to load a fragment of `scalar`s, or of packed codes, from memory of another type.
#[track_caller]
fn same_type<'k, M: Source<'k>>(k: &'k Builder<'k>, scalar: Scalar, packed: bool) {
    let held = M::Elem::SCALAR;
    let (fits, wanted) = if packed {
        (held.is_int(), "codes of narrow floats".to_owned())
    } else {
        (held == scalar, scalar.to_string())
    };
    if !fits {
        let to = if packed { Scalar::U8 } else { scalar };
        let what = M::WHAT;
        k.refuse(format!(
            "a fragment of {wanted} from a {what} of {held}; if its bytes are meant, say so: `{what}.cast::<{to}>()`"
        ));
    }
}

impl<'k> Builder<'k> {
    /// Elements that a lane holds side by side of a matrix so stored: what [`Matrix::within`] must be a multiple of.
    #[track_caller]
    pub fn run<P: Product, R: Role<P>>(&self, storage: Storage) -> u32 {
        run(&self.fragment_layout::<P, R>(), storage)
    }

    /// Loads a fragment, in accesses as wide as what a lane holds side by side, at most 16 bytes. What each lane accesses must be
    /// aligned to the access: strides and offsets of matrices that are multiples of 16 bytes always are.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// type Tile = Mma<16, 16, 32, bf16>;
    /// let tile = k.lds::<bf16>("tile", 16 * 32);
    /// # k.ptr_store(k.constant(bf16::ZERO), tile);
    /// let a: FragmentA<Tile> = k.load_fragment(Matrix::new(k, tile, Storage::RowMajor, 0, 32));
    /// # let _ = a;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn load_fragment<P: Product, R: Role<P>>(&'k self, matrix: Matrix<'k, impl Source<'k>>) -> Fragment<'k, P, R> {
        self.fragment_from(matrix)
    }

    #[track_caller]
    fn fragment_from<P: Product, R: Role<P>, M: Source<'k>>(&'k self, matrix: Matrix<'k, M>) -> Fragment<'k, P, R> {
        let location = Location::caller();
        let layout = self.fragment_layout::<P, R>();
        let ty = R::registers(layout.elements());
        let Some(runs) = Runs::new(self, layout, R::BITS, &matrix) else { return self.zero_fragment() };
        let packed = R::BITS != ty.scalar().bits();
        same_type::<M>(self, ty.scalar(), packed);
        let mut pieces: Vec<(Value, Type)> = vec![];
        runs.each(|_, bytes, mask| {
            let scalar = match runs.access {
                1 if packed => Scalar::U8,
                2 if packed => Scalar::U16,
                _ => ty.scalar(),
            };
            let piece = match runs.access / scalar.bytes() {
                1 => Type::Scalar(scalar),
                n => Type::Vector(scalar, n),
            };
            let way = Way { mask, cache: matrix.cache, at: location };
            pieces.push((matrix.memory.load(self, piece, bytes, way), piece));
        });
        let mut registers: Vec<Value> = vec![];
        for (value, piece) in &pieces {
            match piece {
                Type::Vector(scalar, n) => {
                    for i in 0..*n {
                        let one = self.emit_op_at(Op::Extract(*value, i), &[Type::Scalar(*scalar)], location);
                        registers.extend(one);
                    }
                }
                _ => registers.push(*value),
            }
        }
        if packed && runs.access < 4 {
            registers = registers.chunks((4 / runs.access) as usize).map(|parts| self.word(parts, location)).collect();
        }
        Fragment::new(self, self.emit_op_at(Op::VectorFrom(registers), &[ty], location)[0])
    }

    /// A word of smaller integers, first one lowest.
    fn word(&'k self, parts: &[Value], at: Location) -> Value {
        let bits = 32 / parts.len() as u32;
        let wide = |(i, part): (usize, &Value)| {
            let word: V<'k, u32> = self.emit_at(Op::Convert(*part), at);
            if i == 0 { word } else { word << (bits * i as u32) }
        };
        let word = parts.iter().enumerate().map(wide).reduce(|a, b| a | b);
        word.map_or(Value(0), |w| w.id)
    }

    /// Loads, for each element of a sum and in the order of [`Builder::places`], the one in the same place of a matrix of any
    /// type: what an epilogue multiplies or adds, in accesses as wide as those of [`Builder::store_fragment`].
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// type Tile = Mma<16, 16, 32, bf16>;
    /// let bias = k.lds::<bf16>("bias", 16 * 16);
    /// # k.ptr_store(k.constant(bf16::ZERO), bias);
    /// let bias: Vec<V<bf16>> = k.load_elements::<Tile, _>(Matrix::new(k, bias, Storage::ColMajor, 0, 16));
    /// # let _ = bias;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn load_elements<P: Product, T: Element + Plain>(
        &'k self,
        matrix: Matrix<'k, impl Source<'k, Elem = T>>,
    ) -> Vec<V<'k, T>> {
        let location = Location::caller();
        let layout = self.fragment_layout::<P, roles::C>();
        let Some(runs) = Runs::new(self, layout, <T as Ty>::TYPE.scalar().bits(), &matrix) else { return vec![] };
        let each = runs.access / <T as Ty>::TYPE.bytes();
        let mut elements = vec![];
        runs.each(|_, bytes, mask| {
            let ty = if each == 1 { T::TYPE } else { Type::Vector(T::SCALAR, each) };
            let value = matrix.memory.load(self, ty, bytes, Way { mask, cache: matrix.cache, at: location });
            match each {
                1 => elements.push(V::new(self, value)),
                _ => elements.extend((0..each).map(|i| self.emit_at(Op::Extract(value, i), location))),
            }
        });
        elements
    }

    /// Stores what `f` makes of each element of a sum, and where it lies, in accesses as wide as what a lane holds side by side.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// let tile = k.lds::<bf16>("tile", 16 * 16);
    /// let sum: FragmentC<Mma<16, 16, 32, bf16>> = k.zero_fragment();
    /// k.store_fragment(sum, Matrix::new(k, tile, Storage::RowMajor, 0, 16), |x, _| x.to::<bf16>());
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn store_fragment<P: Product, T: Element + Plain>(
        &'k self,
        sum: FragmentC<'k, P>,
        matrix: Matrix<'k, impl Sink<'k, Elem = T>>,
        mut f: impl FnMut(V<'k, <roles::C as Role<P>>::Register>, Place<'k>) -> V<'k, T>,
    ) {
        let location = Location::caller();
        if matrix.lines.is_some() {
            self.refuse("a store to a clamped matrix; its last row would be stored to more than once".to_owned());
        }
        let elements: Vec<_> = sum.elements().into_iter().map(|(place, x)| f(x, place)).collect();
        let bits = <T as Ty>::TYPE.scalar().bits();
        let Some(runs) = Runs::new(self, sum.layout(), bits, &matrix) else { return };
        let each = (runs.access / <T as Ty>::TYPE.bytes()) as usize;
        runs.each(|first, bytes, mask| {
            let ids: Vec<Value> = elements[first as usize..][..each].iter().map(|v| v.id).collect();
            let value = match ids[..] {
                [one] => (one, T::TYPE),
                _ => {
                    let ty = Type::Vector(T::SCALAR, each as u32);
                    (self.emit_op_at(Op::VectorFrom(ids), &[ty], location)[0], ty)
                }
            };
            matrix.memory.store(self, value, bytes, Way { mask, cache: matrix.cache, at: location });
        });
    }
}
