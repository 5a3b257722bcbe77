//! From one layout to another by exchanges between lanes.

use super::super::Builder;
use super::super::element::{Element, Plain};
use super::super::value::V;
use crate::ir::{Location, Op, ShuffleOp};
use crate::mma::{Layout, Step};

/// What gives a bit of the source's lane or element number: a bit of the receiving lane, or of the receiving element.
#[derive(Clone, Copy)]
enum From {
    Lane(usize),
    Element(usize),
}

impl<'k> Builder<'k> {
    /// A matrix's elements in another layout: `elements` are those that this lane holds by layout `from`, the result those
    /// that it holds by layout `to`; both of the same matrix, over as many lanes. Exchanges registers between lanes: 2^n shuffles an
    /// element, n being how many bits of the source's element number depend on the receiving lane. All lanes of the group
    /// must come to it together.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// // The sums of one product become the left factor of the next, without LDS.
    /// type Tile = Mma<16, 16, 16, f16>;
    /// let sum: FragmentC<Tile> = k.zero_fragment();
    /// let halves: Vec<V<f16>> = sum.registers().into_iter().map(|x| x.to()).collect();
    /// let moved = k.relayout(&halves, &sum.layout(), &k.fragment_layout::<Tile, roles::A>());
    /// let a: FragmentA<Tile> = k.fragment(&moved);
    /// # let _ = a;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn relayout<T: Element + Plain>(&'k self, elements: &[V<'k, T>], from: &Layout, to: &Layout) -> Vec<V<'k, T>> {
        let location = Location::caller();
        let fits = (from.rows(), from.cols(), from.lanes()) == (to.rows(), to.cols(), to.lanes());
        if !fits || elements.len() != from.elements() as usize {
            self.refuse(format!(
                "{} elements of a {}×{} matrix over {} lanes into a {}×{} matrix over {} lanes; it must be the same one, and \
                 the elements all that a lane has",
                elements.len(),
                from.rows(),
                from.cols(),
                from.lanes(),
                to.rows(),
                to.cols(),
                to.lanes()
            ));
            return elements.to_vec();
        }
        let sources = |steps: &[Step]| -> Vec<From> {
            let find = |s: &Step| {
                let lane = to.lane_steps().iter().position(|t| t == s).map(From::Lane);
                lane.or(to.element_steps().iter().position(|t| t == s).map(From::Element))
            };
            // The same extents: every step is found.
            steps.iter().filter_map(find).collect()
        };
        let (of_lane, of_element) = (sources(from.lane_steps()), sources(from.element_steps()));
        let lane = self.lane_id();
        // Bits of the element's number that depend on which lane receives.
        let varying: Vec<(usize, usize)> = of_element
            .iter()
            .enumerate()
            .filter_map(|(i, f)| if let From::Lane(bit) = f { Some((i, *bit)) } else { None })
            .collect();
        let receive = |e: usize| {
            let fixed = |sources: &[From]| -> u32 {
                let bit = |(i, f): (usize, &From)| match f {
                    From::Element(bit) => (e as u32 >> bit & 1) << i,
                    From::Lane(_) => 0,
                };
                sources.iter().enumerate().map(bit).sum()
            };
            // The lane that gives: some bits of the receiving one's number, some of the element's.
            let moved = of_lane.iter().enumerate().filter_map(|(i, f)| match f {
                From::Lane(bit) => Some((i as u32, *bit as u32)),
                From::Element(_) => None,
            });
            let mut source = self.constant(fixed(&of_lane));
            let own = of_lane.iter().enumerate().all(|(i, f)| matches!(f, From::Lane(bit) if *bit == i));
            for (at, bit) in moved {
                source = source | (((lane >> bit) & 1) << at);
            }
            let mut candidates: Vec<V<'k, T>> = (0..1u32 << varying.len())
                .map(|choice| {
                    let chosen: u32 = varying.iter().enumerate().map(|(n, (i, _))| (choice >> n & 1) << i).sum();
                    let value = elements[(fixed(&of_element) | chosen) as usize];
                    if own {
                        return value;
                    }
                    let op = ShuffleOp::Idx;
                    let width = from.lanes();
                    self.emit_at(Op::LaneShuffle { op, value: value.id, amount: source.id, width }, location)
                })
                .collect();
            // The lowest bit first: neighbours among the candidates differ in it.
            for (_, bit) in &varying {
                let set = ((lane >> *bit as u32) & 1).eq(1);
                candidates = candidates.chunks(2).map(|pair| set.select(pair[1], pair[0])).collect();
            }
            candidates[0]
        };
        (0..to.elements() as usize).map(receive).collect()
    }
}
