//! Lane functions: for every operation and scalar type, the loop over rows that computes it. Picked once, when a kernel
//! is flattened.
//!
//! Most run over whole rows without a mask, so that they compile to vector code; inactive lanes compute junk that nobody
//! reads.

mod atomic;
mod binary;
mod convert;
mod narrow;
mod shape;
mod unary;

use super::program::Reg;
use super::rows::{Done, Regs};

pub(super) use atomic::{Rmw, rmw};
pub(super) use binary::{binary, compare};
pub(super) use convert::{convert, convert_stochastic, same_bits};
pub(super) use narrow::{Coding, decode, encode, insert, pack, unpack};
pub(super) use shape::{extract_at, join, move_rows, select, split_rows};
pub(super) use unary::{fma, perm_b32, unary};

/// `n` rows from `dst` on become a function of those from `a` on, in the lanes of the mask at least.
pub(super) type Fn1<const W: usize> = fn(&mut Regs<W>, Reg, Reg, u32, u64) -> Done;
/// The same with two operands.
pub(super) type Fn2<const W: usize> = fn(&mut Regs<W>, Reg, [Reg; 2], u32, u64) -> Done;
/// The same with three operands.
pub(super) type Fn3<const W: usize> = fn(&mut Regs<W>, Reg, [Reg; 3], u32, u64) -> Done;

/// A lane function from an expression on one lane's elements. Its types are written out, `W` is in scope.
macro_rules! lanes {
    // Runs on all lanes.
    (|$x:ident: $a:ty| -> $z:ty { $e:expr }) => {{
        fn run<const V: usize>(regs: &mut Regs<V>, dst: Reg, a: Reg, n: u32, _: u64) -> Done {
            rows::map1(regs, dst, a, n, |$x: $a| -> $z { $e });
            Ok(())
        }
        run::<W> as Fn1<W>
    }};
    (|$x:ident: $a:ty, $y:ident: $b:ty| -> $z:ty { $e:expr }) => {{
        fn run<const V: usize>(regs: &mut Regs<V>, dst: Reg, operands: [Reg; 2], n: u32, _: u64) -> Done {
            rows::map2(regs, dst, operands, n, |$x: $a, $y: $b| -> $z { $e });
            Ok(())
        }
        run::<W> as Fn2<W>
    }};
    (|$x:ident: $a:ty, $y:ident: $b:ty, $w:ident: $c:ty| -> $z:ty { $e:expr }) => {{
        fn run<const V: usize>(regs: &mut Regs<V>, dst: Reg, operands: [Reg; 3], n: u32, _: u64) -> Done {
            rows::map3(regs, dst, operands, n, |$x: $a, $y: $b, $w: $c| -> $z { $e });
            Ok(())
        }
        run::<W> as Fn3<W>
    }};
    // Runs on active lanes only.
    (try |$x:ident: $a:ty| -> $z:ty { $e:expr }) => {{
        fn run<const V: usize>(regs: &mut Regs<V>, dst: Reg, a: Reg, n: u32, mask: u64) -> Done {
            rows::try_map1(regs, dst, a, n, mask, |$x: $a| -> Result<$z, FaultKind> { $e })
        }
        run::<W> as Fn1<W>
    }};
    (try |$x:ident: $a:ty, $y:ident: $b:ty| -> $z:ty { $e:expr }) => {{
        fn run<const V: usize>(regs: &mut Regs<V>, dst: Reg, operands: [Reg; 2], n: u32, mask: u64) -> Done {
            rows::try_map2(regs, dst, operands, n, mask, |$x: $a, $y: $b| -> Result<$z, FaultKind> { $e })
        }
        run::<W> as Fn2<W>
    }};
    // On `idx`: gives the wrapped result and whether it is wrong.
    (idx |$x:ident, $y:ident| $e:expr) => {{
        fn run<const V: usize>(regs: &mut Regs<V>, dst: Reg, operands: [Reg; 2], n: u32, mask: u64) -> Done {
            rows::checked_map2(regs, dst, operands, n, mask, |$x: i64, $y: i64| $e)
        }
        run::<W> as Fn2<W>
    }};
}
pub(super) use lanes;
