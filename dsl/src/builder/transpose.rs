//! Transposing reads of LDS.

use half::{bf16, f16};

use super::Builder;
use super::element::{Data, Element, Plain, Vector};
use super::pointer::LdsPtr;
use super::value::V;
use crate::ir::Op;

/// Elements of 8 and 16 bits, which [`Builder::lds_read_tr`] deals out.
#[diagnostic::on_unimplemented(
    message = "no transposing read of `{Self}`: it works on f16, bf16, i16, u16, i8 and u8",
    note = "elements of 4 and 6 bits are read by `lds_read_tr4` and `lds_read_tr6`"
)]
pub trait Transposable: Element + Plain {
    /// What a lane gets: 64 bits.
    type Chunk: Data<Elem = Self> + Plain;
}

macro_rules! transposable {
    ($($t:ty => $n:literal;)*) => {$(
        impl Transposable for $t {
            type Chunk = Vector<$t, $n>;
        }
    )*};
}

transposable! {
    f16 => 4;
    bf16 => 4;
    i16 => 4;
    u16 => 4;
    i8 => 8;
    u8 => 8;
}

impl<'k> Builder<'k> {
    /// Reads a transposed matrix from LDS (`ds_read_b64_tr_b16`, `_b8`): every lane loads its own chunk of E elements (4 of 16
    /// bits, 8 of 8 bits) from its own address, a multiple of 8 bytes, and groups of 16 consecutive lanes deal the elements
    /// out. Lane `i` of a group gets, as element `j`, element `i mod E` of the chunk of lane `(16/E)·j + i div E`. All lanes of
    /// the wave must be active.
    ///
    /// ```
    /// # use lathe_dsl::prelude::*;
    /// # lathe_dsl::builder::build("k", Target::GFX950, Launch::linear(1, 64), vec![], |k| {
    /// // Each group of 16 lanes reads a 4×16 matrix stored by rows; each of its lanes gets a column.
    /// let matrices = k.lds::<f16>("matrices", 4 * 64);
    /// let column: V<Vector<f16, 4>> = k.lds_read_tr(matrices + k.lane_id() * 4);
    /// # let _ = column;
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn lds_read_tr<T: Transposable>(&'k self, pointer: V<'k, LdsPtr<T>>) -> V<'k, T::Chunk> {
        self.emit(Op::LdsReadTr { pointer: pointer.id, bits: T::SCALAR.bits() })
    }

    /// As [`Builder::lds_read_tr`], of 16 elements of 4 bits a lane, lowest bits first (`ds_read_b64_tr_b4`): lane `i` of a
    /// group gets element `i` of every lane's chunk, in the order of the lanes.
    #[track_caller]
    pub fn lds_read_tr4(&'k self, pointer: V<'k, LdsPtr<u32>>) -> V<'k, Vector<u32, 2>> {
        self.emit(Op::LdsReadTr { pointer: pointer.id, bits: 4 })
    }

    /// As [`Builder::lds_read_tr`], of 16 elements of 6 bits a lane, lowest bits first (`ds_read_b96_tr_b6`): lane `i` of a
    /// group gets element `i` of every lane's chunk, in the order of the lanes. The addresses are multiples of 16 bytes, of
    /// which 12 are read.
    #[track_caller]
    pub fn lds_read_tr6(&'k self, pointer: V<'k, LdsPtr<u32>>) -> V<'k, Vector<u32, 3>> {
        self.emit(Op::LdsReadTr { pointer: pointer.id, bits: 6 })
    }
}
