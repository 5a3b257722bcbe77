//! What an epilogue takes and gives when it stands alone: matrices by rows, whatever lanes they lie in.

use crate::dec2::instances::{Instance, Stage};
use crate::dec2::phases::{PHASES, Phase};
use crate::dec2::{CHANNELS, HEAD_WIDTH, KEYS, PIXELS};

/// Rows of a warp's own tile.
const TILE: u32 = 16;

/// Which matrix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Matrix {
    /// Sums of a product.
    Sums(u32),
    /// Patch plus skip features of the warp's own tile.
    Features,
    /// The warp's own tile, normed.
    Normed,
    /// A head's result, of the warp's own tile.
    HeadTile(u32),
    /// The result of the warp's head, as it lies in shared memory.
    Head,
    /// Left factor of the next product.
    A,
    /// Its right factor.
    B,
    /// What it adds to.
    C,
}

/// How a matrix lies in words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// f16, two a word, by rows.
    Halves,
    /// e4m3, by rows; the words of 32 columns lie as in a cell of a feature plane.
    Rows,
    /// e4m3, by columns; the words of 32 rows lie likewise.
    Columns,
}

/// A matrix of a warp in a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Port {
    /// Which.
    pub matrix: Matrix,
    /// How it lies.
    pub form: Form,
    /// Rows and columns.
    pub extent: [u32; 2],
    /// Its first word among the warp's.
    pub first: u32,
}

impl Port {
    /// Words of it.
    pub const fn words(&self) -> u32 {
        let elements = self.extent[0] * self.extent[1];
        match self.form {
            Form::Halves => elements / 2,
            Form::Rows | Form::Columns => elements / 4,
        }
    }
}

/// The matrices of a warp, in order; the four warps of a workgroup and all workgroups, by rows, follow one another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ports {
    /// Them.
    pub ports: Vec<Port>,
}

impl Ports {
    fn push(&mut self, matrix: Matrix, form: Form, extent: [u32; 2]) {
        let first = self.words();
        self.ports.push(Port { matrix, form, extent, first });
    }

    /// Words of a warp.
    pub fn words(&self) -> u32 {
        self.ports.last().map_or(0, |p| p.first + p.words())
    }
}

/// What epilogue `instance` takes.
pub fn inputs(instance: &Instance, phases: &[Phase]) -> Ports {
    let mut ports = Ports::default();
    for product in &instance.reads {
        let phase = &phases[*product as usize - 1];
        ports.push(Matrix::Sums(*product), Form::Halves, [phase.m, phase.n]);
    }
    match instance.number {
        9 => ports.push(Matrix::Features, Form::Halves, [TILE, CHANNELS]),
        10..=12 => ports.push(Matrix::HeadTile(instance.number - 9), Form::Rows, [TILE, HEAD_WIDTH]),
        n @ 15..PHASES if n % 2 == 1 && n < PHASES - 1 => ports.push(Matrix::Normed, Form::Halves, [TILE, CHANNELS]),
        _ => {}
    }
    ports
}

/// What it gives besides what goes to the arena and the surface.
pub fn outputs(instance: &Instance, phases: &[Phase]) -> Ports {
    let mut ports = Ports::default();
    let has = |wanted: fn(&Stage) -> bool| instance.stages.iter().any(wanted);
    if let Some(next) = phases.get(instance.number as usize) {
        match instance.number {
            // All three slices at once.
            1 => ports.push(Matrix::A, Form::Rows, [KEYS, CHANNELS]),
            _ if has(|s| {
                use Stage::{CubicAct, CubicSoftmax, LoadQuad, PackQuads, ScoreSeed};
                matches!(s, LoadQuad { .. } | ScoreSeed { .. } | CubicSoftmax | CubicAct | PackQuads { .. })
            }) =>
            {
                ports.push(Matrix::A, Form::Rows, [next.m, next.k]);
            }
            _ => {}
        }
        // Every product takes another right factor.
        ports.push(Matrix::B, Form::Columns, [next.k, next.n]);
        if has(|s| matches!(s, Stage::LoadCol { .. } | Stage::ColAdd { .. } | Stage::ScoreSeed { .. })) {
            ports.push(Matrix::C, Form::Halves, [next.m, next.n]);
        }
    }
    match instance.number {
        1 => ports.push(Matrix::Features, Form::Halves, [TILE, CHANNELS]),
        9 => ports.push(Matrix::Head, Form::Rows, [PIXELS, HEAD_WIDTH]),
        13 => ports.push(Matrix::Normed, Form::Halves, [TILE, CHANNELS]),
        _ => {}
    }
    ports
}
