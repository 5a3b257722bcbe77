//! V4: quads through shared memory, from the warp that made them to all.

use lathe_dsl::prelude::*;

use super::tiles::Quads;
use super::warp::Warp;

impl<'k> Warp<'k> {
    /// V4 `StageQuads`: a quad into shared memory, 16 bytes a lane from byte `at` on.
    pub fn stage_quad(&self, quad: [V<'k, u32>; 4], shared: V<'k, LdsPtr<u8>>, at: V<'k, u32>) {
        let to = shared.byte_offset::<u32>(at + self.lane * 16);
        self.k.ptr_store_with(self.k.vector(quad), to, Memory::new().align(16));
    }

    /// V4 `LoadQuad`: a quad from there.
    pub fn load_quad(&self, shared: V<'k, LdsPtr<u8>>, at: V<'k, u32>) -> [V<'k, u32>; 4] {
        let from = shared.byte_offset::<u32>(at + self.lane * 16);
        self.k.ptr_load_with::<Vector<u32, 4>>(from, Memory::new().align(16)).elements()
    }

    /// V4 `LoadQuad`, `m` tiles down and `ks` steps across, one after the other from byte `at` on.
    pub fn load_quads(&self, shared: V<'k, LdsPtr<u8>>, at: V<'k, u32>, m: usize, ks: usize) -> Quads<'k> {
        Quads::from_fn(m, ks, |i, step| self.load_quad(shared, at + 512 * (i * ks + step) as u32))
    }
}
