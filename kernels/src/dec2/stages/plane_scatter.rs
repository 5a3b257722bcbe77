//! V11: the window's features into the arena.

use lathe_dsl::prelude::*;

use super::skip_residual::Window;
use super::tiles::Quads;
use super::warp::Warp;
use crate::dec2::WINDOW;

impl<'k> Warp<'k> {
    /// V11 `PlaneScatter`: the warp's 16 pixels, a plane for every step of the quads; pixels outside of the image are dropped.
    pub fn plane_scatter(&self, quads: &Quads<'k>, arena: Buffer<'k, u32, Out>, window: &Window<'k>) {
        let (_, planes) = quads.extent();
        for owned in self.owned() {
            let x = window.x0 + owned.row.rem_floor(WINDOW).bitcast::<i32>();
            let y = window.y0 + (self.z * 2 + owned.row.div_floor(WINDOW)).bitcast::<i32>();
            let live = window.contains(x, y);
            let (cell, plane) = window.cell(x.bitcast(), y.bitcast());
            for (q, h) in (0..planes).flat_map(|q| [(q, 0), (q, 1)]) {
                let quad = quads.at(0, q);
                let words: Vec<_> = owned.slots.iter().map(|p| quad[p + 2 * h]).collect();
                let at = plane * q as u32 + cell + owned.t + 4 * h as u32;
                self.store_words(&words, arena, at, StoreOptions::new().mask(live));
            }
        }
    }
}
