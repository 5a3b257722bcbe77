//! Fragments: a lane's registers of one matrix of a product.

use std::marker::PhantomData;

use super::super::Builder;
use super::super::control::Values;
use super::super::element::{Number, Ty};
use super::super::value::{Operand, V};
use super::memory::run;
use super::{Product, Role, Storage, roles};
use crate::ir::{Bits, Location, Op, Type, Value};
use crate::mma::{Fragments, Layout, Step};

/// A lane's registers of matrix `R` of the product `P`: no other product, and no other matrix of this one, takes it.
///
/// What a register holds, and how many there are, depends on the target: ask [`Fragment::registers`] and
/// [`Builder::places`].
pub struct Fragment<'k, P, R> {
    pub(super) k: &'k Builder<'k>,
    pub(super) id: Value,
    product: PhantomData<fn() -> (P, R)>,
}

/// The left factor, M×K.
pub type FragmentA<'k, P> = Fragment<'k, P, roles::A>;
/// The right factor, K×N.
pub type FragmentB<'k, P> = Fragment<'k, P, roles::B>;
/// The summand or the result, M×N.
pub type FragmentC<'k, P> = Fragment<'k, P, roles::C>;

impl<P, R> Clone for Fragment<'_, P, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, R> Copy for Fragment<'_, P, R> {}

/// Where in its matrix an element lies.
#[derive(Clone, Copy, Debug)]
pub struct Place<'k> {
    /// From 0.
    pub row: V<'k, u32>,
    /// From 0.
    pub col: V<'k, u32>,
}

impl<'k, P: Product, R: Role<P>> Values<'k> for Fragment<'k, P, R> {
    fn each(&self, f: &mut impl FnMut(Value, Type)) {
        f(self.id, R::registers(self.layout().elements()));
    }
    fn rebuild(&self, k: &'k Builder<'k>, next: &mut impl FnMut() -> Value) -> Self {
        Self::new(k, next())
    }
}

impl<'k, P: Product, R: Role<P>> Fragment<'k, P, R> {
    pub(super) fn new(k: &'k Builder<'k>, id: Value) -> Self {
        Self { k, id, product: PhantomData }
    }

    /// Where the elements are, on this target.
    #[track_caller]
    pub fn layout(self) -> Layout {
        self.k.fragment_layout::<P, R>()
    }

    /// The registers: elements, or words of packed narrow floats.
    #[track_caller]
    pub fn registers(self) -> Vec<V<'k, R::Register>> {
        let location = Location::caller();
        let n = R::registers(self.layout().elements()).lanes();
        (0..n).map(|i| self.k.emit_at(Op::Extract(self.id, i), location)).collect()
    }

    /// Itself with zeros outside of so many rows and columns, counted from the fragment's own. Packed codes that lie side by side
    /// are asked about together: extents along the side on which they are packed must be a multiple of 16.
    #[track_caller]
    pub fn within(self, rows: impl Operand<'k, u32>, cols: impl Operand<'k, u32>) -> Self {
        let (rows, cols) = (rows.value(self.k), cols.value(self.k));
        let layout = self.layout();
        let first = self.k.first_place(&layout);
        let registers = self.registers();
        let width = <R::Register as Ty>::TYPE.scalar().bits();
        let zero: V<'k, R::Register> = V::new(self.k, self.k.const_value(R::Register::TYPE, Bits(0)));
        let live = |element| {
            let (row, col) = layout.at(0, element);
            plus(first.row, row).lt(rows) & plus(first.col, col).lt(cols)
        };
        // Codes that lie side by side are asked about together, 16 at most.
        let together = [Storage::RowMajor, Storage::ColMajor].map(|s| run(&layout, s)).into_iter().max();
        let together = together.unwrap_or(1).min(16);
        let kept: Vec<_> = registers
            .into_iter()
            .enumerate()
            .map(|(i, x)| {
                let bit = |b: u32| (i as u32 * width + b) / R::BITS / together;
                let (low, high) = (bit(0), bit(width - 1));
                if low == high {
                    return live(low * together).select(x, zero);
                }
                // A word with codes of several such.
                let kept = (low..=high).map(|part| {
                    let mask: u32 = (0..width).filter(|b| bit(*b) == part).map(|b| 1u32 << b).sum();
                    live(part * together).select::<u32>(mask, 0)
                });
                let mask = kept.reduce(|a, b| a | b).unwrap_or_else(|| self.k.constant(u32::MAX));
                let word: V<'k, u32> = V::new(self.k, x.id);
                V::new(self.k, (word & mask).id)
            })
            .collect();
        self.k.fragment(&kept)
    }

    /// What `f` makes of each register.
    #[track_caller]
    pub fn map(self, f: impl FnMut(V<'k, R::Register>) -> V<'k, R::Register>) -> Self {
        let registers: Vec<_> = self.registers().into_iter().map(f).collect();
        self.k.fragment(&registers)
    }
}

impl<'k, P: Product> FragmentC<'k, P> {
    /// What `f` makes of each element and its place, converted: a layout's elements as another type, in the order of
    /// [`Builder::places`].
    #[track_caller]
    pub fn elements(self) -> Vec<(Place<'k>, V<'k, <roles::C as Role<P>>::Register>)> {
        self.k.places::<P, roles::C>().into_iter().zip(self.registers()).collect()
    }
}

impl<'k> Builder<'k> {
    /// Where the elements of matrix `R` of product `P` are on this target. A product that the target lacks is refused.
    #[track_caller]
    pub fn fragment_layout<P: Product, R: Role<P>>(&self) -> Layout {
        match P::tiles(Fragments::of(self.target)) {
            Ok(tiles) => R::layout(tiles),
            Err(why) => {
                self.refuse(format!("{why} (on {})", self.target));
                let (rows, cols) = R::EXTENT;
                Layout::any(rows, cols, self.wave())
            }
        }
    }

    /// A fragment of these registers: elements, or words of packed narrow floats; as many as the layout wants, else it is
    /// refused.
    #[track_caller]
    pub fn fragment<P: Product, R: Role<P>>(&'k self, registers: &[V<'k, R::Register>]) -> Fragment<'k, P, R> {
        let ty = R::registers(self.fragment_layout::<P, R>().elements());
        if registers.len() != ty.lanes() as usize {
            let (given, name, shape) = (registers.len(), R::NAME, P::SHAPE);
            self.refuse(format!("{given} registers for {name} of a product {shape}; it has {ty} on {}", self.target));
        }
        // Refused if they differ: the number does not matter then.
        let ids = (0..ty.lanes() as usize).map(|i| registers.get(i).or(registers.first()).map_or(Value(0), |v| v.id));
        let results = self.emit_op(Op::VectorFrom(ids.collect()), &[ty]);
        Fragment::new(self, results[0])
    }

    /// A fragment of zeros.
    #[track_caller]
    pub fn zero_fragment<P: Product, R: Role<P>>(&'k self) -> Fragment<'k, P, R>
    where
        R::Register: Number,
    {
        let ty = R::registers(self.fragment_layout::<P, R>().elements());
        Fragment::new(self, self.const_value(ty, Bits(0)))
    }

    /// Row and column of every element that this lane holds of matrix `R` of product `P`, in the order of its registers (of
    /// packed codes: in the order of the codes).
    #[track_caller]
    pub fn places<P: Product, R: Role<P>>(&'k self) -> Vec<Place<'k>> {
        self.places_of(&self.fragment_layout::<P, R>())
    }

    /// Row and column of every element that this lane holds by a layout, in the order of the elements: that of a product on
    /// another chip, say. As many lanes as the layout has are a group.
    #[track_caller]
    pub fn places_of(&'k self, layout: &Layout) -> Vec<Place<'k>> {
        let first = self.first_place(layout);
        let place = |e| {
            let (row, col) = layout.at(0, e);
            Place { row: plus(first.row, row), col: plus(first.col, col) }
        };
        (0..layout.elements()).map(place).collect()
    }

    /// Row and column of element 0 of this lane.
    #[track_caller]
    pub(super) fn first_place(&'k self, layout: &Layout) -> Place<'k> {
        let lane = self.lane_id();
        // Bits of the lane that stand side by side for rising powers of two move together.
        let part = |wanted: fn(&Step) -> Option<u32>| {
            let steps: Vec<_> = layout.lane_steps().iter().map(wanted).collect();
            let mut sum: Option<V<'k, u32>> = None;
            let mut bit = 0;
            while bit < steps.len() {
                let Some(first) = steps[bit] else {
                    bit += 1;
                    continue;
                };
                let run = steps[bit..].iter().enumerate().take_while(|(i, s)| **s == Some(first << i)).count();
                let field = (lane >> bit as u32) & ((1 << run) - 1);
                let moved = field << first.trailing_zeros();
                sum = Some(sum.map_or(moved, |s| s + moved));
                bit += run;
            }
            sum.unwrap_or_else(|| self.constant(0u32))
        };
        let row = part(|s| if let Step::Row(n) = s { Some(*n) } else { None });
        let col = part(|s| if let Step::Col(n) = s { Some(*n) } else { None });
        Place { row, col }
    }
}

/// `a + b`, `a` itself for 0.
#[track_caller]
pub(super) fn plus<'k>(a: V<'k, u32>, b: u32) -> V<'k, u32> {
    if b == 0 { a } else { a + b }
}
