//! Tests of the interpreter on kernels written as IR by hand.

mod atomics;
mod buffers;
mod control;
mod copies;
mod faults;
mod group;
mod lanes;
mod launches;
mod memory;
mod nan;
mod ops;
mod pointers;
mod races;
mod random;
mod waits;
mod whiles;

use lathe_dsl::ir::{
    Access, Axis, BinaryOp, Bits, Block, Cache, FastMath, Inst, Kernel, Launch, LdsArray, Location, Memory, OffsetUnit,
    Op, OpNumber, Param, ParamKind, Predicate, Scalar, Space, Type, Unroll, Value,
};

use super::{
    ArgValue, BufferAccess, Checks, Error, Fault, Finding, GlobalBuffer, MemoryPlace, Options, Program, Report,
    Unusual, launch,
};

pub(super) const BOOL: Type = Type::Scalar(Scalar::Bool);
pub(super) const U16: Type = Type::Scalar(Scalar::U16);
pub(super) const U32: Type = Type::Scalar(Scalar::U32);
pub(super) const U64: Type = Type::Scalar(Scalar::U64);
pub(super) const F32: Type = Type::Scalar(Scalar::F32);
pub(super) const BF16: Type = Type::Scalar(Scalar::Bf16);

/// Writes a kernel operation by operation. Operation `n` is at `k.rs:n:1`.
pub(super) struct Build {
    kernel: Kernel,
    open: Vec<Block>,
}

impl Build {
    pub(super) fn new(wave: u32, grid: u32, block: u32) -> Self {
        let kernel = Kernel {
            name: "k".into(),
            wave,
            launch: Launch::linear(grid, block),
            fast_math: FastMath::STRICT,
            params: vec![],
            lds: vec![],
            values: vec![],
            body: Block::default(),
            locations: vec![],
        };
        Self { kernel, open: vec![Block::default()] }
    }

    pub(super) fn shape(mut self, grid: [u32; 3], block: [u32; 3]) -> Self {
        (self.kernel.launch.grid, self.kernel.launch.block) = (grid, block);
        self
    }

    pub(super) fn value(&mut self, ty: Type) -> Value {
        self.kernel.values.push(ty);
        Value(self.kernel.values.len() as u32 - 1)
    }

    /// A buffer parameter; parameters come before everything else.
    pub(super) fn buffer(&mut self, name: &'static str, elem: Scalar, len: u64, access: Access) -> Value {
        self.kernel.params.push(Param { name, kind: ParamKind::Buffer { elem, len, access, align: 16 } });
        self.value(Type::Buffer(elem))
    }

    pub(super) fn scalar(&mut self, name: &'static str, s: Scalar) -> Value {
        self.kernel.params.push(Param { name, kind: ParamKind::Scalar(s) });
        self.value(Type::Scalar(s))
    }

    pub(super) fn lds(&mut self, name: &'static str, elem: Scalar, len: u32) -> Value {
        self.kernel.lds.push(LdsArray { name, elem, len, align: 16 });
        self.op(Op::LdsBase(self.kernel.lds.len() as u32 - 1), Type::Ptr(Space::Lds, elem))
    }

    fn number(&mut self) -> OpNumber {
        let line = self.kernel.locations.len() as u32 + 1;
        self.kernel.locations.push(Location { file: "k.rs", line, column: 1 });
        OpNumber(line)
    }

    fn push(&mut self, op: Op, results: Vec<Value>) {
        let number = self.number();
        self.open.last_mut().unwrap().insts.push(Inst { number, op, results });
    }

    pub(super) fn op(&mut self, op: Op, ty: Type) -> Value {
        let v = self.value(ty);
        self.push(op, vec![v]);
        v
    }

    pub(super) fn void(&mut self, op: Op) {
        self.push(op, vec![]);
    }

    /// The line of the last operation.
    pub(super) fn line(&self) -> u32 {
        self.kernel.locations.len() as u32
    }

    pub(super) fn constant(&mut self, bits: u64, ty: Type) -> Value {
        self.op(Op::Const(Bits(bits)), ty)
    }

    pub(super) fn u32(&mut self, x: u32) -> Value {
        self.constant(x.into(), U32)
    }

    pub(super) fn tid(&mut self) -> Value {
        self.op(Op::ThreadId(Axis::X), U32)
    }

    pub(super) fn bid(&mut self) -> Value {
        self.op(Op::BlockId(Axis::X), U32)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.kernel.values[a.index()];
        self.op(Op::Binary(op, a, b), ty)
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Add, a, b)
    }

    pub(super) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Mul, a, b)
    }

    pub(super) fn compare(&mut self, p: Predicate, a: Value, b: Value) -> Value {
        let ty = self.kernel.values[a.index()].with_scalar(Scalar::Bool);
        self.op(Op::Compare(p, a, b), ty)
    }

    pub(super) fn lt(&mut self, a: Value, b: Value) -> Value {
        self.compare(Predicate::Lt, a, b)
    }

    pub(super) fn load(&mut self, buffer: Value, offset: Value, ty: Type) -> Value {
        self.op(
            Op::BufferLoad {
                buffer,
                offset,
                unit: OffsetUnit::Elements,
                scalar: None,
                mask: None,
                fill: None,
                cache: Cache::default(),
            },
            ty,
        )
    }

    pub(super) fn store(&mut self, value: Value, buffer: Value, offset: Value) {
        self.void(Op::BufferStore {
            value,
            buffer,
            offset,
            unit: OffsetUnit::Elements,
            scalar: None,
            mask: None,
            cache: Cache::default(),
        });
    }

    pub(super) fn ptr(&mut self, base: Value, n: Value) -> Value {
        let ty = self.kernel.values[base.index()];
        self.op(Op::PtrAdd(base, n), ty)
    }

    pub(super) fn ptr_store(&mut self, value: Value, pointer: Value) {
        self.void(Op::PtrStore { value, pointer, memory: Memory::default() });
    }

    pub(super) fn ptr_load(&mut self, pointer: Value, ty: Type) -> Value {
        self.op(Op::PtrLoad { pointer, memory: Memory::default() }, ty)
    }

    /// Flat index of the thread in the whole one-dimensional launch.
    pub(super) fn global_id(&mut self) -> Value {
        let block = self.kernel.launch.block[0];
        let (b, size, t) = (self.bid(), self.u32(block), self.tid());
        let start = self.mul(b, size);
        self.add(start, t)
    }

    fn region(&mut self, params: Vec<Value>, f: impl FnOnce(&mut Self) -> Vec<Value>) -> Block {
        self.open.push(Block { params, ..Block::default() });
        let yields = f(self);
        Block { yields, ..self.open.pop().unwrap() }
    }

    pub(super) fn if_else(
        &mut self,
        condition: Value,
        types: &[Type],
        then: impl FnOnce(&mut Self) -> Vec<Value>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let then = self.region(vec![], then);
        let otherwise = self.region(vec![], otherwise);
        let results: Vec<Value> = types.iter().map(|t| self.value(*t)).collect();
        self.push(Op::If { condition, then, otherwise }, results.clone());
        results
    }

    pub(super) fn if_(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        self.if_else(
            condition,
            &[],
            |b| {
                then(b);
                vec![]
            },
            |_| vec![],
        );
    }

    pub(super) fn for_(
        &mut self,
        bounds: (Value, Value, u32),
        init: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        self.for_typed(bounds, U32, init, body)
    }

    /// A loop whose index has another type.
    pub(super) fn for_typed(
        &mut self,
        (lo, hi, step): (Value, Value, u32),
        ty: Type,
        init: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types: Vec<Type> = init.iter().map(|v| self.kernel.values[v.index()]).collect();
        let index = self.value(ty);
        let carried: Vec<Value> = types.iter().map(|t| self.value(*t)).collect();
        let params = std::iter::once(index).chain(carried.iter().copied()).collect();
        let body = self.region(params, |b| body(b, index, &carried));
        let results: Vec<Value> = types.iter().map(|t| self.value(*t)).collect();
        self.push(Op::For { lo, hi, step, init: init.to_vec(), unroll: Unroll::Auto, body }, results.clone());
        results
    }

    /// `before` gives the condition and then values of `types`, which `after` gets and which are the results.
    pub(super) fn while_(
        &mut self,
        init: &[Value],
        types: &[Type],
        before: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
        after: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let state: Vec<Type> = init.iter().map(|v| self.kernel.values[v.index()]).collect();
        let params: Vec<Value> = state.iter().map(|t| self.value(*t)).collect();
        let before = self.region(params.clone(), |b| before(b, &params));
        let params: Vec<Value> = types.iter().map(|t| self.value(*t)).collect();
        let after = self.region(params.clone(), |b| after(b, &params));
        let results: Vec<Value> = types.iter().map(|t| self.value(*t)).collect();
        self.push(Op::While { init: init.to_vec(), before, after }, results.clone());
        results
    }

    pub(super) fn finish(mut self) -> Kernel {
        self.kernel.body = self.open.pop().unwrap();
        assert!(self.open.is_empty());
        self.kernel
    }
}

pub(super) fn run(kernel: &Kernel, args: &[ArgValue<'_>], options: &Options) -> Result<Report, Error> {
    launch(&Program::new(kernel)?, args, options)
}

/// Runs a kernel whose only parameter is a `u32` output buffer, and returns the buffer.
pub(super) fn run_u32(kernel: &Kernel) -> Vec<u32> {
    let out = GlobalBuffer::uninit(kernel.params[0].kind.buffer_bytes().unwrap() as usize);
    // Far more than any test needs: a loop that fails to end then fails the test.
    let options = Options { step_limit: Some(10_000_000), ..Options::default() };
    let report = run(kernel, &[ArgValue::Buffer(&out)], &options).unwrap();
    assert_eq!(report.findings, []);
    words(&out)
}

pub(super) fn words(b: &GlobalBuffer) -> Vec<u32> {
    b.to_vec().chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

pub(super) fn from_words(w: &[u32]) -> GlobalBuffer {
    GlobalBuffer::from_bytes(&w.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())
}

/// The fault that running `kernel` on zeroed buffers gives.
pub(super) fn fault(kernel: &Kernel, options: &Options) -> Fault {
    let buffers: Vec<GlobalBuffer> =
        kernel.params.iter().map(|p| GlobalBuffer::zeroed(p.kind.buffer_bytes().unwrap() as usize)).collect();
    let args: Vec<ArgValue<'_>> = buffers.iter().map(ArgValue::Buffer).collect();
    match run(kernel, &args, options) {
        Err(Error::Fault(fault)) => *fault,
        other => panic!("a fault is due, got {other:?}"),
    }
}

pub(super) fn message(kernel: &Kernel) -> String {
    fault(kernel, &Options::default()).to_string()
}

/// The buffer access that was found.
pub(super) fn access(finding: &Finding) -> &BufferAccess {
    match &finding.what {
        Unusual::Access(access) => access,
        other => panic!("a buffer access is due, got {other}"),
    }
}
