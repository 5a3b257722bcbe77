//! `gemm_mx`: D = A·Bᵀ of MXFP4 matrices (e2m1 with an e8m0 scale for 32 elements along K), rounded to bf16.
//!
//! A workgroup makes a tile of D of `tile_m`×`tile_n`. Along K it goes in steps of 128, one `mfma_scaled` deep: while the waves
//! multiply one step from LDS, the next one is on its way there.
//!
//! ```text
//! LDS, twice:  rows of A [tile_m][64 bytes]   rows of B [tile_n][64 bytes]     16-byte pieces swizzled
//! waves:       2 along M (1 if tile_m is 16), the others along N; each has its part of the tile as 16×16 sums
//! ```
//!
//! On AMD the tile is made of products B·Aᵀ, whose sums lie side by side along N in a lane: it then stores them together.
//!
//! A dense product has no better place for a newcomer to look: what is special about a target (the lanes of a wave, where a
//! fragment's elements lie, whether copies to LDS are asynchronous) is asked of the builder, and the source is the same for all.

use lathe_dsl::Arch;
use lathe_dsl::builder::Buffer;
use lathe_dsl::ir::MAX_BUFFER_BYTES;
use lathe_dsl::prelude::*;

/// Threads of a workgroup.
const THREADS: u32 = 256;
/// Elements of one step along K.
const STEP: u32 = 128;
pub use lathe_dsl::mma::BLOCK;
/// Bytes of a block: what a thread copies at a time.
const PIECE: u32 = BLOCK / 2;
/// Pieces of a row in a step.
const PIECES: u32 = STEP / BLOCK;
/// Rows and columns of one product.
const TILE: u32 = 16;

/// The product.
type Fp4 = MfmaScaled<E2m1>;

build_key! {
    /// D = A·Bᵀ of MXFP4 matrices, A of M×K, B of N×K.
    pub struct GemmMx {
        /// Rows of A and of D.
        m: u32 = 256, range(1, 1 << 20);
        /// Rows of B, columns of D.
        n: u32 = 256, range(1, 1 << 20);
        /// Columns of A and of B, a multiple of 32.
        k: u32 = 1024, range(32, 1 << 20);
        /// Rows of D that a workgroup makes.
        tile_m: u32 = 128, one_of(16, 32, 64, 128);
        /// Columns of D that a workgroup makes.
        tile_n: u32 = 128, one_of(64, 128, 256);
    }
}

kernel_args! {
    /// Arguments of [`GemmMx`].
    pub struct GemmMxArgs(key: GemmMx) {
        /// A, `[m][k / 2]`: two e2m1 codes a byte, the first in the low half.
        a: In<u8>[u64::from(key.m) * u64::from(key.k) / 2] align 16;
        /// Scales of A, `[m][k / 32]`: e8m0 codes.
        a_scale: In<u8>[u64::from(key.m) * u64::from(key.k) / 32] align 16;
        /// B, `[n][k / 2]`.
        b: In<u8>[u64::from(key.n) * u64::from(key.k) / 2] align 16;
        /// Scales of B, `[n][k / 32]`.
        b_scale: In<u8>[u64::from(key.n) * u64::from(key.k) / 32] align 16;
        /// D, `[m][n]`.
        d: Out<bf16>[u64::from(key.m) * u64::from(key.n)] align 16;
    }
}

/// A or B as a workgroup sees it.
struct Side<'k> {
    data: Buffer<'k, u8, In>,
    scales: Buffer<'k, u8, In>,
    /// Rows of the matrix, and of the tile.
    rows: u32,
    tile: u32,
    /// The tile's first row, and a wave's first row in it and how many it has.
    first: V<'k, u32>,
    wave: V<'k, u32>,
    part: u32,
    /// Two steps of the tile.
    lds: V<'k, LdsPtr<u8>>,
}

impl Kernel for GemmMx {
    const NAME: &'static str = "gemm_mx";
    type Args = GemmMxArgs;

    fn check(&self) -> Result<(), String> {
        if !self.k.is_multiple_of(BLOCK) {
            return Err(format!("k must be a multiple of {BLOCK}, the elements that share a scale"));
        }
        if self.tile_m == TILE && self.tile_n < 128 {
            return Err("with tile_m = 16 all waves stand along N: tile_n must be 128 or 256".to_owned());
        }
        let bytes = |rows: u32, row: u64| u64::from(rows) * row;
        let row = u64::from(self.k) / 2;
        let largest = bytes(self.m, row).max(bytes(self.n, row)).max(bytes(self.m, u64::from(self.n) * 2));
        if largest > MAX_BUFFER_BYTES {
            return Err(format!("a matrix has {largest} bytes; a buffer has at most {MAX_BUFFER_BYTES}"));
        }
        let tiles = self.m.div_ceil(self.tile_m);
        if tiles > 0xFFFF {
            return Err(format!("{tiles} tiles along M; a grid has at most 65535: take a larger tile_m"));
        }
        Ok(())
    }

    fn launch(&self) -> Launch {
        let grid = [self.n.div_ceil(self.tile_n), self.m.div_ceil(self.tile_m), 1];
        Launch { grid, block: [THREADS, 1, 1], waves_per_eu: None, maxnreg: None }
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: GemmMxArgs<Dev<'k>>) {
        let wave = k.thread_id(Axis::X).div_floor(k.wave()).uniform();
        let (along_m, along_n) = self.waves(k);
        let (rows, columns) = (self.tile_m / along_m, self.tile_n / along_n);
        let a = Side {
            data: args.a,
            scales: args.a_scale,
            rows: self.m,
            tile: self.tile_m,
            first: k.block_id(Axis::Y) * self.tile_m,
            wave: wave.rem_floor(along_m) * rows,
            part: rows,
            lds: k.lds_bytes("a", 2 * self.tile_m * STEP / 2, 16),
        };
        let b = Side {
            data: args.b,
            scales: args.b_scale,
            rows: self.n,
            tile: self.tile_n,
            first: k.block_id(Axis::X) * self.tile_n,
            wave: wave.div_floor(along_m) * columns,
            part: columns,
            lds: k.lds_bytes("b", 2 * self.tile_n * STEP / 2, 16),
        };
        let copy = |step: V<'k, u32>| {
            self.copy(k, &a, step);
            self.copy(k, &b, step);
            k.asyncmark();
        };

        let turned = k.chip().arch == Arch::Amdgpu;
        let sides = if turned { [&b, &a] } else { [&a, &b] };
        let tiles = |side: &Side<'k>| (side.part / TILE) as usize;

        let last = self.k.div_ceil(STEP) - 1;
        let zero = vec![vec![k.zero_fragment(); tiles(sides[1])]; tiles(sides[0])];
        copy(k.constant(0u32));
        let sums = k.for_range(0u32, last, 1, zero, |step, sums| {
            copy(step + 1);
            k.wait_asyncmark(1);
            k.barrier();
            let sums = self.multiply(k, sides, step, sums, STEP);
            k.barrier(); // All waves have read this step before the one after the next overwrites it.
            sums
        });
        k.wait_asyncmark(0);
        k.barrier();
        let sums = self.multiply(k, sides, k.constant(last), sums, self.k - last * STEP);
        self.store(k, args.d, sides, turned, sums);
    }
}

impl GemmMx {
    /// Waves along M and along N.
    fn waves(&self, k: &Builder<'_>) -> (u32, u32) {
        let along_m = (self.tile_m / TILE).min(2);
        (along_m, THREADS / k.wave() / along_m)
    }

    /// Copies a step of a tile to LDS, a piece a thread at a time. Rows and blocks past the matrix are those at its end: what they
    /// give is never stored, or counts as 0.
    fn copy<'k>(&self, k: &'k Builder<'k>, side: &Side<'k>, step: V<'k, u32>) {
        let lane = k.lane_id();
        let half = (step & 1) * (side.tile * PIECES * PIECE);
        let wave = k.thread_id(Axis::X).div_floor(k.wave()).uniform() * k.wave();
        let pieces = side.tile * PIECES;
        let round = |first: V<'k, u32>| {
            // The wave's pieces lie one behind the other; a lane decides which one it is that goes there.
            let slot = first + lane;
            let row = slot.div_floor(PIECES);
            let piece = (slot.rem_floor(PIECES)) ^ ((row >> SWIZZLE.0) & SWIZZLE.1);
            let row = (side.first + row).minimum(side.rows - 1);
            let block = (step * PIECES + piece).minimum(self.k / BLOCK - 1);
            let offset = row.to::<Idx>() * (self.k / 2) + block.to::<Idx>() * PIECE;
            let to = side.lds + (half + first * PIECE);
            k.copy_to_lds(side.data, Bytes(offset), to, PIECE);
        };
        if pieces < THREADS {
            k.if_(wave.lt(pieces), || round(wave));
        }
        for first in (0..pieces / THREADS * THREADS).step_by(THREADS as usize) {
            round(wave + first);
        }
    }

    /// The sums after a step, of whose elements along K only so many count: by tiles of the left side, then of the right.
    fn multiply<'k>(
        &self,
        k: &'k Builder<'k>,
        [a, b]: [&Side<'k>; 2],
        step: V<'k, u32>,
        sums: Vec<Vec<FragmentC<'k, Fp4>>>,
        elements: u32,
    ) -> Vec<Vec<FragmentC<'k, Fp4>>> {
        let in_lds = |side: &Side<'k>, storage, tile: usize| {
            let first = (step & 1) * (side.tile * STEP) + (side.wave + tile as u32 * TILE) * STEP;
            Matrix::new(k, side.lds, storage, first.to::<Idx>(), STEP).swizzled(SWIZZLE.0, SWIZZLE.1)
        };
        let right: Vec<_> = (0..sums[0].len())
            .map(|j| {
                let b_tile = k.load_fragment(in_lds(b, Storage::ColMajor, j));
                (b_tile, self.scales(k, b, step, j))
            })
            .collect();
        let row = |(i, sums): (usize, Vec<FragmentC<'k, Fp4>>)| {
            let mut left: FragmentA<'k, Fp4> = k.load_fragment(in_lds(a, Storage::RowMajor, i));
            if elements < STEP {
                // 0 times whatever the other side has there: e2m1 has no NaN and no infinity.
                left = left.within(TILE, elements);
            }
            let scale = self.scales(k, a, step, i);
            let products = sums.into_iter().zip(&right);
            products.map(|(sum, (right, of_right))| k.mfma_scaled(left, *right, sum, scale, *of_right)).collect()
        };
        sums.into_iter().enumerate().map(row).collect()
    }

    /// The scales of 16 rows: logical lane `l` gives that of row `l mod 16`, block `l div 16` of the step.
    fn scales<'k>(&self, k: &'k Builder<'k>, side: &Side<'k>, step: V<'k, u32>, tile: usize) -> Grouped<'k, u32> {
        k.lanes(64).lane_index().map(|lane| {
            let row = (side.first + side.wave + tile as u32 * TILE + lane.rem_floor(TILE)).minimum(side.rows - 1);
            let block = (step * PIECES + lane.div_floor(TILE)).minimum(self.k / BLOCK - 1);
            let at = row.to::<Idx>() * (self.k / BLOCK) + block.to::<Idx>();
            k.buffer_load::<u8>(side.scales, at).to::<u32>()
        })
    }

    /// Stores the sums as bf16; what lies outside of D is left out.
    fn store<'k>(
        &self,
        k: &'k Builder<'k>,
        d: Buffer<'k, bf16, Out>,
        [left, right]: [&Side<'k>; 2],
        turned: bool,
        sums: Vec<Vec<FragmentC<'k, Fp4>>>,
    ) {
        let storage = if turned { Storage::ColMajor } else { Storage::RowMajor };
        for (i, row) in sums.into_iter().enumerate() {
            for (j, sum) in row.into_iter().enumerate() {
                let row = left.first + left.wave + i as u32 * TILE;
                let col = right.first + right.wave + j as u32 * TILE;
                let (m, n) = if turned { (col, row) } else { (row, col) };
                let first = m.to::<Idx>() * self.n + n.to::<Idx>();
                let remain = |extent: u32, first: V<'k, u32>| k.constant(extent) - first.minimum(extent);
                let tile = Matrix::new(k, d, storage, first, self.n)
                    .within(remain(left.rows, row), remain(right.rows, col))
                    .at_most(1 << self.n.trailing_zeros().min(3));
                k.store_fragment(sum, tile, |x, _| x.to::<bf16>());
            }
        }
    }
}

/// Two rows of a step are as wide as LDS's banks: rows 2, 4 and 6 apart have their pieces in other places.
const SWIZZLE: (u32, u32) = (1, PIECES - 1);
