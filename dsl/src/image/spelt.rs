//! Accesses to images as operations on buffers that hold them row by row: what images mean on the CPU device, and what kernels do
//! for targets without texture units.

use crate::ir::{
    BinaryOp, Bits, Block, Cache, Coordinates, Filter, ImageType, Inst, Kernel, OffsetUnit, Op, OpNumber, Param,
    ParamKind, Predicate, Scalar, TEXEL, Type, UnaryOp, Value,
};

/// Takes the operations of an access, one after the other.
pub trait Emit {
    /// A constant.
    fn constant(&mut self, ty: Type, bits: Bits) -> Value;
    /// An operation with one result.
    fn op(&mut self, op: Op, ty: Type) -> Value;
    /// An operation without a result.
    fn effect(&mut self, op: Op);
}

/// How an image is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// The image.
    pub image: ImageType,
    /// What samples are.
    pub filter: Filter,
    /// What their coordinates count.
    pub coordinates: Coordinates,
}

const BOOL: Type = Type::BOOL;
const F32: Type = Type::Scalar(Scalar::F32);
const I32: Type = Type::Scalar(Scalar::I32);
const U32: Type = Type::U32;

/// Short names for operations.
struct Ops<'e, E>(&'e mut E);

impl<E: Emit> Ops<'_, E> {
    fn int(&mut self, ty: Type, n: u32) -> Value {
        self.0.constant(ty, Bits(n.into()))
    }

    fn float(&mut self, x: f32) -> Value {
        self.0.constant(F32, Bits(x.to_bits().into()))
    }

    fn binary(&mut self, op: BinaryOp, ty: Type, a: Value, b: Value) -> Value {
        self.0.op(Op::Binary(op, a, b), ty)
    }

    fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.0.op(Op::Fma { a, b, c }, F32)
    }

    /// A column or a row as one that there is, as `u32`.
    fn inside(&mut self, at: Value, extent: u32) -> Value {
        let (first, last) = (self.int(I32, 0), self.int(I32, extent - 1));
        let at = self.binary(BinaryOp::Maximum, I32, at, first);
        let at = self.binary(BinaryOp::Minimum, I32, at, last);
        self.0.op(Op::Bitcast(at), U32)
    }

    /// Where a texel begins, in elements.
    fn offset(&mut self, image: ImageType, x: Value, y: Value) -> Value {
        let (width, texel) = (self.int(U32, image.width), self.int(U32, TEXEL));
        let row = self.binary(BinaryOp::Mul, U32, y, width);
        let at = self.binary(BinaryOp::Add, U32, row, x);
        self.binary(BinaryOp::Mul, U32, at, texel)
    }

    /// The texel in a column and a row, or the nearest one.
    fn texel(&mut self, buffer: Value, image: ImageType, x: Value, y: Value) -> Value {
        let (y, x) = (self.inside(y, image.height), self.inside(x, image.width));
        let offset = self.offset(image, x, y);
        let (unit, cache) = (OffsetUnit::Elements, Cache::default());
        let load = Op::BufferLoad { buffer, offset, unit, scalar: None, mask: None, fill: None, cache };
        self.0.op(load, Type::Vector(image.elem, TEXEL))
    }

    /// A texel as the elements that are wanted.
    fn converted(&mut self, texel: Value, from: Scalar, to: Scalar) -> Value {
        if from == to { texel } else { self.0.op(Op::Convert(texel), Type::Vector(to, TEXEL)) }
    }

    /// The texel that a coordinate lies in.
    fn nearest(&mut self, at: Value, scale: Option<u32>) -> Value {
        let at = match scale {
            Some(extent) => {
                let extent = self.float(extent as f32);
                self.binary(BinaryOp::Mul, F32, at, extent)
            }
            None => at,
        };
        let at = self.0.op(Op::Unary(UnaryOp::Floor, at), F32);
        self.0.op(Op::Convert(at), I32)
    }

    /// The texel whose centre lies before a coordinate, and how far the coordinate is on the way to the next one's.
    fn between(&mut self, at: Value, scale: Option<u32>) -> (Value, Value) {
        let (extent, back) = (self.float(scale.unwrap_or(1) as f32), self.float(-0.5));
        let at = self.fma(at, extent, back);
        let (steps, half) = (self.float(256.0), self.float(0.5));
        let at = self.binary(BinaryOp::Mul, F32, at, steps);
        let at = self.binary(BinaryOp::Add, F32, at, half);
        let at = self.0.op(Op::Unary(UnaryOp::Floor, at), F32);
        let at = self.0.op(Op::Convert(at), I32);
        let (shift, mask, step) = (self.int(I32, 8), self.int(I32, 255), self.float(1.0 / 256.0));
        let before = self.binary(BinaryOp::Shr, I32, at, shift);
        let part = self.binary(BinaryOp::And, I32, at, mask);
        let part = self.0.op(Op::Convert(part), F32);
        (before, self.binary(BinaryOp::Mul, F32, part, step))
    }

    /// `p` at 0, `q` at 1.
    fn mixed(&mut self, p: Value, q: Value, at: Value) -> Value {
        let back = self.0.op(Op::Unary(UnaryOp::Neg, at), F32);
        let rest = self.fma(back, p, p);
        self.fma(at, q, rest)
    }
}

/// [`Op::TextureFetch`] of a buffer, with elements `to`.
pub fn fetch(e: &mut impl Emit, buffer: Value, image: ImageType, [x, y]: [Value; 2], to: Scalar) -> Value {
    let mut ops = Ops(e);
    let texel = ops.texel(buffer, image, x, y);
    ops.converted(texel, image.elem, to)
}

/// [`Op::TextureSample`] of a buffer, with elements `to`.
pub fn sample(e: &mut impl Emit, buffer: Value, how: Sampling, [u, v]: [Value; 2], to: Scalar) -> Value {
    let Sampling { image, filter, coordinates } = how;
    let scales = [image.width, image.height].map(|extent| (coordinates == Coordinates::Normalized).then_some(extent));
    let mut ops = Ops(e);
    if filter == Filter::Nearest {
        let (x, y) = (ops.nearest(u, scales[0]), ops.nearest(v, scales[1]));
        return fetch(e, buffer, image, [x, y], to);
    }
    let ((x, across), (y, down)) = (ops.between(u, scales[0]), ops.between(v, scales[1]));
    let one = ops.int(I32, 1);
    let next = [x, y].map(|at| ops.binary(BinaryOp::Add, I32, at, one));
    let rows = [y, next[1]].map(|y| {
        let [left, right] = [x, next[0]].map(|x| {
            let texel = ops.texel(buffer, image, x, y);
            let texel = ops.converted(texel, image.elem, Scalar::F32);
            [0, 1, 2, 3].map(|c| ops.0.op(Op::Extract(texel, c), F32))
        });
        [0, 1, 2, 3].map(|c| ops.mixed(left[c], right[c], across))
    });
    let channels = [0, 1, 2, 3].map(|c| {
        let mixed = ops.mixed(rows[0][c], rows[1][c], down);
        if to == Scalar::F32 { mixed } else { ops.0.op(Op::Convert(mixed), Type::Scalar(to)) }
    });
    ops.0.op(Op::VectorFrom(channels.to_vec()), Type::Vector(to, TEXEL))
}

/// [`Op::SurfaceStore`] to a buffer.
pub fn store(e: &mut impl Emit, value: Value, buffer: Value, image: ImageType, at: [Value; 2]) {
    let mut ops = Ops(e);
    let [x, y] = at.map(|at| ops.0.op(Op::Bitcast(at), U32));
    let [across, down] = [(x, image.width), (y, image.height)].map(|(at, extent)| {
        let extent = ops.int(U32, extent);
        ops.0.op(Op::Compare(Predicate::Lt, at, extent), BOOL)
    });
    let mask = Some(ops.binary(BinaryOp::And, BOOL, across, down));
    let offset = ops.offset(image, x, y);
    let (unit, cache) = (OffsetUnit::Elements, Cache::default());
    ops.0.effect(Op::BufferStore { value, buffer, offset, unit, scalar: None, mask, cache });
}

/// The kernel with its images as buffers, row by row, and accesses to them spelt out, each at the place of the operation that it
/// was; `None` if it has no images. Of a kernel that was not verified, what is not as it should be stays as it is.
pub fn spelt_out(kernel: &Kernel) -> Option<Kernel> {
    kernel.params.iter().find(|p| p.kind.image().is_some())?;
    let params: Vec<Param> = kernel.params.clone();
    let mut kernel = kernel.clone();
    for (param, ty) in kernel.params.iter_mut().zip(&mut kernel.values) {
        if let (Some(_), Some((elem, len, access))) = (param.kind.image(), param.kind.elements()) {
            param.kind = ParamKind::Buffer { elem, len, access, align: elem.bytes() * TEXEL };
            *ty = Type::Buffer(elem);
        }
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut spelling = Spelling { params, values: &mut kernel.values, insts: vec![], number: OpNumber(1) };
    spelling.block(&mut body);
    kernel.body = body;
    Some(kernel)
}

struct Spelling<'k> {
    /// As they were.
    params: Vec<Param>,
    values: &'k mut Vec<Type>,
    /// Of the block so far.
    insts: Vec<Inst>,
    /// Of the operation that is spelt out.
    number: OpNumber,
}

impl Spelling<'_> {
    fn block(&mut self, block: &mut Block) {
        let outer = std::mem::take(&mut self.insts);
        for mut inst in std::mem::take(&mut block.insts) {
            for nested in inst.op.blocks_mut() {
                self.block(nested);
            }
            self.number = inst.number;
            if !self.access(&inst) {
                self.insts.push(inst);
            }
        }
        block.insts = std::mem::replace(&mut self.insts, outer);
    }

    /// Spells an access out; `false` if it is none.
    fn access(&mut self, inst: &Inst) -> bool {
        let kind = |v: &Value| self.params.get(v.index()).map(|p| p.kind);
        let to = inst.results.first().and_then(|r| self.values.get(r.index())).map(|ty| ty.scalar());
        match (&inst.op, to) {
            (Op::TextureFetch { texture, x, y }, Some(to)) => {
                let Some(ParamKind::Texture { image, .. }) = kind(texture) else { return false };
                fetch(self, *texture, image, [*x, *y], to);
            }
            (Op::TextureSample { texture, u, v }, Some(to)) => {
                let Some(ParamKind::Texture { image, filter, coordinates }) = kind(texture) else { return false };
                sample(self, *texture, Sampling { image, filter, coordinates }, [*u, *v], to);
            }
            (Op::SurfaceStore { value, surface, x, y }, _) => {
                let Some(ParamKind::Surface(image)) = kind(surface) else { return false };
                store(self, *value, *surface, image, [*x, *y]);
                return true;
            }
            _ => return false,
        }
        // The last operation is the access's result.
        if let Some(last) = self.insts.last_mut() {
            last.results.clone_from(&inst.results);
        }
        true
    }

    fn push(&mut self, op: Op, results: Vec<Value>) {
        self.insts.push(Inst { number: self.number, op, results });
    }
}

impl Emit for Spelling<'_> {
    fn constant(&mut self, ty: Type, bits: Bits) -> Value {
        self.op(Op::Const(bits), ty)
    }

    fn op(&mut self, op: Op, ty: Type) -> Value {
        self.values.push(ty);
        let value = Value(self.values.len() as u32 - 1);
        self.push(op, vec![value]);
        value
    }

    fn effect(&mut self, op: Op) {
        self.push(op, vec![]);
    }
}
