//! A kernel for every matrix product: loads the factors, multiplies, stores the sums; each group of lanes its own.

use lathe_dsl::kernel::Dev;
use lathe_dsl::mma::{Fragments, MmaShape, MmaType};
use lathe_dsl::prelude::*;

/// Threads of the launch: one wave of 64 lanes, two of 32, and at most two groups.
pub const THREADS: u32 = 64;
/// Bytes of a factor, at most: 32×16 of f16, 16×128 of 8 bits, for two groups.
const FACTOR_BYTES: u64 = 2 * 16 * 128;
/// Elements of a sum, at most.
const SUM: u64 = 32 * 32;

macro_rules! products {
    ($($case:literal: $what:ident $product:ty;)*) => {
        /// Cases of [`Products`].
        pub const CASES: u32 = [$($case),*].len() as u32;

        impl Kernel for Products {
            const NAME: &'static str = "products";
            type Args = ProductsArgs;

            fn launch(&self) -> Launch {
                Launch::linear(1, THREADS)
            }

            fn build<'k>(&self, k: &'k Builder<'k>, args: ProductsArgs<Dev<'k>>) {
                match self.case {
                    $($case => products!(@$what $product, self, k, args),)*
                    _ => {}
                }
            }
        }

        impl Products {
            /// Extents and types of the case.
            pub fn of(&self) -> (MmaShape, MmaType, MmaType) {
                match self.case {
                    $($case => {
                        type P = $product;
                        (P::SHAPE, <P as Product>::A::TYPE, <P as Product>::B::TYPE)
                    })*
                    other => panic!("case {other}"),
                }
            }

            /// Lanes of a group, if `target` has the product; whether it takes scales.
            pub fn lanes(&self, target: Target) -> Option<u32> {
                match self.case {
                    $($case => <$product>::tiles(Fragments::of(target)).ok().map(|tiles| tiles.lanes()),)*
                    _ => None,
                }
            }

            /// Whether it takes scales.
            pub fn scaled(&self) -> bool {
                matches!(self.of().0, lathe_dsl::mma::SCALED)
            }
        }
    };
    (@plain $product:ty, $key:ident, $k:ident, $args:ident) => {{
        let group = group::<$product>($k, $key, &$args);
        group.store($k, $k.mma(group.a, group.b, group.c));
    }};
    (@scaled $product:ty, $key:ident, $k:ident, $args:ident) => {{
        let group = group::<$product>($k, $key, &$args);
        let [a, b] = [$args.a_scale, $args.b_scale].map(|scales| {
            let logical = $k.lanes(64);
            let lane = logical.lane_index();
            logical.from_parts(|part| $k.buffer_load::<u32>(scales, group.number * 64 + lane.part(part)))
        });
        group.store($k, $k.mfma_scaled_bytes(group.a, group.b, group.c, (a, $key.a_byte), (b, $key.b_byte)));
    }};
}

/// The case of fp4 by fp4.
pub const FP4: u32 = 43;

/// Rows of A that are left where [`Products::depth`] says that not all are.
pub const ROWS: u32 = 11;

/// Words of the buffers, in the order of the arguments.
pub const LENGTHS: [u64; 6] = [FACTOR_BYTES / 4, FACTOR_BYTES / 4, SUM, 128, 128, SUM];

build_key! {
    /// One matrix product of each group of lanes.
    pub struct Products {
        /// Which product.
        case: u32 = 0, range(0, 1000);
        /// Which byte is the scale of A.
        a_byte: u32 = 0, range(0, 3);
        /// Which byte is the scale of B.
        b_byte: u32 = 0, range(0, 3);
        /// If not 0: only so many elements along K of [`ROWS`] rows of A count.
        depth: u32 = 0, range(0, 128);
    }
}

kernel_args! {
    /// Arguments of [`Products`]: by group, one behind the other.
    pub struct ProductsArgs(key: Products) {
        /// A, by rows, packed.
        a: In<u32>[FACTOR_BYTES / 4] align 16;
        /// B, by columns, packed.
        b: In<u32>[FACTOR_BYTES / 4] align 16;
        /// C, by rows.
        c: In<u32>[SUM] align 16;
        /// Scales of A, by block of 32 along K, then row.
        a_scale: In<u32>[128] align 16;
        /// Scales of B, by block of 32 along K, then column.
        b_scale: In<u32>[128] align 16;
        /// D, by rows.
        d: Out<u32>[SUM] align 16;
    }
}

/// Type of a product's sums.
type Sum<P> = <<P as Product>::A as Factor>::Sum;

/// What a group of lanes multiplies.
struct Group<'k, P: Product> {
    number: V<'k, u32>,
    a: FragmentA<'k, P>,
    b: FragmentB<'k, P>,
    c: FragmentC<'k, P>,
    d: Matrix<'k, lathe_dsl::builder::Buffer<'k, Sum<P>, Out>>,
}

fn group<'k, P: Product>(k: &'k Builder<'k>, key: &Products, args: &ProductsArgs<Dev<'k>>) -> Group<'k, P> {
    let MmaShape { m, n, k: depth } = P::SHAPE;
    let lanes = k.fragment_layout::<P, roles::C>().lanes();
    let number = k.thread_id(Axis::X).div_floor(lanes);
    let first = |size: u32| number.to::<Idx>() * size;
    let (a, b) = (args.a.cast::<<P::A as Factor>::Register>(), args.b.cast::<<P::B as Factor>::Register>());
    let a: FragmentA<'k, P> = k.load_fragment(Matrix::new(k, a, Storage::RowMajor, first(m * depth), depth));
    Group {
        number,
        a: if key.depth == 0 { a } else { a.within(ROWS, key.depth) },
        b: k.load_fragment(Matrix::new(k, b, Storage::ColMajor, first(n * depth), depth)),
        c: k.load_fragment(Matrix::new(k, args.c.cast::<Sum<P>>(), Storage::RowMajor, first(m * n), n)),
        d: Matrix::new(k, args.d.cast(), Storage::RowMajor, first(m * n), n),
    }
}

impl<'k, P: Product> Group<'k, P> {
    fn store(&self, k: &'k Builder<'k>, sum: FragmentC<'k, P>) {
        k.store_fragment(sum, self.d, |x, _| x);
    }
}

products! {
    0: plain Mma<16, 16, 16, f16>;
    1: plain Mma<16, 16, 16, bf16>;
    2: plain Mma<32, 32, 8, f16>;
    3: plain Mma<32, 32, 8, bf16>;
    4: plain Mma<16, 16, 32, f16>;
    5: plain Mma<16, 16, 32, bf16>;
    6: plain Mma<32, 32, 16, f16>;
    7: plain Mma<32, 32, 16, bf16>;
    8: plain Mma<16, 8, 8, f16>;
    9: plain Mma<16, 8, 8, bf16>;
    10: plain Mma<16, 8, 16, f16>;
    11: plain Mma<16, 8, 16, bf16>;
    12: plain Mma<16, 16, 32, i8>;
    13: plain Mma<32, 32, 16, i8>;
    14: plain Mma<16, 16, 64, i8>;
    15: plain Mma<32, 32, 32, i8>;
    16: plain Mma<16, 16, 16, i8>;
    17: plain Mma<16, 8, 16, i8>;
    18: plain Mma<16, 8, 32, i8>;
    19: plain Mma<16, 16, 32, E4m3>;
    20: plain Mma<16, 16, 32, E4m3, E5m2>;
    21: plain Mma<16, 16, 32, E5m2, E4m3>;
    22: plain Mma<16, 16, 32, E5m2>;
    23: plain Mma<32, 32, 16, E4m3>;
    24: plain Mma<32, 32, 16, E4m3, E5m2>;
    25: plain Mma<32, 32, 16, E5m2, E4m3>;
    26: plain Mma<32, 32, 16, E5m2>;
    27: plain Mma<16, 16, 32, E4m3Fnuz>;
    28: plain Mma<16, 16, 32, E4m3Fnuz, E5m2Fnuz>;
    29: plain Mma<16, 16, 32, E5m2Fnuz, E4m3Fnuz>;
    30: plain Mma<16, 16, 32, E5m2Fnuz>;
    31: plain Mma<32, 32, 16, E4m3Fnuz>;
    32: plain Mma<32, 32, 16, E4m3Fnuz, E5m2Fnuz>;
    33: plain Mma<32, 32, 16, E5m2Fnuz, E4m3Fnuz>;
    34: plain Mma<32, 32, 16, E5m2Fnuz>;
    35: plain Mma<16, 16, 16, E4m3>;
    36: plain Mma<16, 16, 16, E4m3, E5m2>;
    37: plain Mma<16, 16, 16, E5m2, E4m3>;
    38: plain Mma<16, 16, 16, E5m2>;
    39: plain MmaE4m3;
    40: plain Mma<16, 8, 32, E4m3, E5m2>;
    41: plain Mma<16, 8, 32, E5m2, E4m3>;
    42: plain Mma<16, 8, 32, E5m2>;
    43: scaled MfmaScaled<E2m1>;
    44: scaled MfmaScaled<E2m1, E4m3>;
    45: scaled MfmaScaled<E2m1, E5m2>;
    46: scaled MfmaScaled<E2m1, E2m3>;
    47: scaled MfmaScaled<E2m1, E3m2>;
    48: scaled MfmaScaled<E4m3, E2m1>;
    49: scaled MfmaScaled<E4m3>;
    50: scaled MfmaScaled<E4m3, E5m2>;
    51: scaled MfmaScaled<E4m3, E2m3>;
    52: scaled MfmaScaled<E4m3, E3m2>;
    53: scaled MfmaScaled<E5m2, E2m1>;
    54: scaled MfmaScaled<E5m2, E4m3>;
    55: scaled MfmaScaled<E5m2>;
    56: scaled MfmaScaled<E5m2, E2m3>;
    57: scaled MfmaScaled<E5m2, E3m2>;
    58: scaled MfmaScaled<E2m3, E2m1>;
    59: scaled MfmaScaled<E2m3, E4m3>;
    60: scaled MfmaScaled<E2m3, E5m2>;
    61: scaled MfmaScaled<E2m3>;
    62: scaled MfmaScaled<E2m3, E3m2>;
    63: scaled MfmaScaled<E3m2, E2m1>;
    64: scaled MfmaScaled<E3m2, E4m3>;
    65: scaled MfmaScaled<E3m2, E5m2>;
    66: scaled MfmaScaled<E3m2, E2m3>;
    67: scaled MfmaScaled<E3m2>;
}
