//! Kernel IR → [`Program`]: structured control flow becomes jumps and mask instructions, typed operations become typed
//! instructions over virtual registers; [`super::registers`] then places those.
//!
//! What execution relies on is checked here, so that a kernel that skipped the verifier gives an error, not a panic.

mod control;
mod data;
mod lanes;
mod matrix;
mod memory;
mod narrow;

use lathe_dsl::Arch;
use lathe_dsl::ir::{Block, Inst, Kernel, Location, Op, OpKind, ParamKind, Type, Value};

use super::error::Error;
use super::lds;
use super::matrix::Product;
use super::program::{Class, Code, Instr, Pc, Program, Source};
use super::registers::{self, VReg};
use super::watch::Mark;

/// Regions may nest this deep; flattening recurses.
const MAX_DEPTH: u32 = lathe_dsl::verify::MAX_DEPTH as u32;
/// Elements of a vector.
const MAX_ELEMENTS: u32 = 1024;
/// Rows of lanes in one register file of a wave.
const MAX_ROWS: u32 = 1 << 16;
/// Threads of a workgroup: the limit of every target.
const MAX_THREADS: u32 = 1024;
/// LDS of a workgroup; far above any target's.
const MAX_LDS_BYTES: u32 = 16 << 20;

/// What a value of the kernel stands for.
#[derive(Clone, Copy)]
enum Binding {
    Rows(VReg),
    /// A buffer parameter.
    Buffer(u32),
}

struct Flattener<'a, const W: usize> {
    kernel: &'a Kernel,
    code: Vec<Instr<W, VReg>>,
    locations: Vec<Location>,
    /// Register file and rows of every virtual register.
    vregs: Vec<(Class, u32)>,
    bindings: Vec<Option<Binding>>,
    /// Values bound so far in the open regions.
    scope: Vec<Value>,
    /// Location of the operation being flattened.
    location: Option<Location>,
    products: Vec<Product>,
    marks: Vec<Mark>,
    /// What checks need to know of it.
    mark: Mark,
    depth: u32,
}

pub(super) fn flatten(kernel: &Kernel) -> Result<Program, Error> {
    match kernel.wave {
        32 => Flattener::<32>::new(kernel).program(Code::W32),
        64 => Flattener::<64>::new(kernel).program(Code::W64),
        other => {
            let message = format!("waves of {other} lanes; 32 and 64 are known");
            Err(Error::Malformed { kernel: kernel.name.clone(), location: None, message })
        }
    }
}

/// Register file of a value.
fn class(ty: Type) -> Class {
    match ty {
        Type::Ptr(..) | Type::Buffer(_) | Type::Texture(_) | Type::Surface(_) => Class::R64,
        _ if ty.scalar().bits() == 64 => Class::R64,
        _ => Class::R32,
    }
}

/// Rows that a value takes.
fn rows(ty: Type) -> u32 {
    match ty {
        Type::Buffer(_) => 2,
        _ => ty.lanes(),
    }
}

fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

impl<'a, const W: usize> Flattener<'a, W> {
    fn new(kernel: &'a Kernel) -> Self {
        Self {
            kernel,
            code: vec![],
            locations: vec![],
            vregs: vec![],
            bindings: vec![None; kernel.values.len()],
            scope: vec![],
            products: vec![],
            location: None,
            marks: vec![],
            mark: Mark::default(),
            depth: 0,
        }
    }

    fn program(mut self, code: impl FnOnce(Vec<Instr<W>>) -> Code) -> Result<Program, Error> {
        let kernel = self.kernel;
        self.check_frame()?;
        self.bind_params()?;
        self.block(&kernel.body)?;
        self.location = None;
        self.emit(Instr::End {});
        let (placed, rows) = registers::place(&self.code, &self.vregs);
        if rows.iter().any(|r| *r > MAX_ROWS) {
            let most = rows[0].max(rows[1]);
            return self.malformed(format!("it needs {most} registers a lane; the CPU device allows {MAX_ROWS}"));
        }
        Ok(Program {
            name: kernel.name.clone(),
            arch: Arch::Amdgpu,
            grid: kernel.launch.grid,
            block: kernel.launch.block,
            params: kernel.params.clone(),
            lds: kernel.lds.clone(),
            lds_layout: kernel.lds_layout(),
            code: code(placed),
            products: self.products,
            locations: self.locations,
            marks: self.marks,
            rows,
        })
    }

    fn malformed<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(Error::Malformed { kernel: self.kernel.name.clone(), location: self.location, message: message.into() })
    }

    fn require(&self, holds: bool, message: impl FnOnce() -> String) -> Result<(), Error> {
        if holds { Ok(()) } else { self.malformed(message()) }
    }

    /// Wave, launch shape, LDS.
    fn check_frame(&self) -> Result<(), Error> {
        let k = self.kernel;
        let threads = k.launch.block_threads();
        self.require((1..=MAX_THREADS).contains(&threads), || {
            let [x, y, z] = k.launch.block;
            format!("workgroups of {x}×{y}×{z} threads; 1 to {MAX_THREADS} are allowed")
        })?;
        self.require(k.lds.len() <= lds::MAX_ARRAYS, || format!("{} LDS arrays", k.lds.len()))?;
        let mut end = 0u64;
        for a in &k.lds {
            self.require(a.align.is_power_of_two() && a.align <= MAX_LDS_BYTES, || {
                format!("LDS array `{}` is aligned to {} bytes", a.name, a.align)
            })?;
            self.require(a.elem.in_memory(), || format!("LDS array `{}` of {}", a.name, a.elem))?;
            end = end.next_multiple_of(u64::from(a.align)) + u64::from(a.len) * u64::from(a.elem.bytes());
            self.require(end <= u64::from(MAX_LDS_BYTES), || {
                format!("LDS array `{}` ends at byte {end}; the CPU device has {MAX_LDS_BYTES}", a.name)
            })?;
        }
        Ok(())
    }

    fn bind_params(&mut self) -> Result<(), Error> {
        for (i, p) in self.kernel.params.iter().enumerate() {
            let value = Value(i as u32);
            match (p.kind, self.ty(value)?) {
                (ParamKind::Buffer { elem, len, .. }, Type::Buffer(e)) if e == elem => {
                    self.require(len.checked_mul(u64::from(elem.bytes())).is_some(), || {
                        format!("buffer `{}` has {len} elements of {elem}", p.name)
                    })?;
                    self.bindings[i] = Some(Binding::Buffer(i as u32));
                }
                (ParamKind::Scalar(s), Type::Scalar(t)) if s == t => {
                    let dst = self.define(value)?;
                    let param = i as u32;
                    self.emit(Instr::Param { dst, class: class(Type::Scalar(s)), param });
                }
                (_, ty) => return self.malformed(format!("parameter `{}` has type {ty}", p.name)),
            }
        }
        // Parameters are visible everywhere.
        self.scope.clear();
        Ok(())
    }

    fn ty(&self, v: Value) -> Result<Type, Error> {
        match self.kernel.values.get(v.index()) {
            Some(ty) if ty.lanes() == 0 || ty.lanes() > MAX_ELEMENTS => {
                self.malformed(format!("{v:?} is a vector of {} elements", ty.lanes()))
            }
            Some(ty) => Ok(*ty),
            None => self.malformed(format!("{v:?} has no type")),
        }
    }

    /// A register that no value stands for, as for a value of type `ty`.
    fn temporary(&mut self, ty: Type) -> VReg {
        self.vregs.push((class(ty), rows(ty)));
        VReg { id: self.vregs.len() as u32 - 1, row: 0 }
    }

    fn bind(&mut self, v: Value, rows: VReg) -> Result<(), Error> {
        self.require(self.bindings[v.index()].is_none(), || format!("{v:?} is defined twice"))?;
        self.bindings[v.index()] = Some(Binding::Rows(rows));
        self.scope.push(v);
        Ok(())
    }

    /// A fresh register for `v`.
    fn define(&mut self, v: Value) -> Result<VReg, Error> {
        let ty = self.ty(v)?;
        let rows = self.temporary(ty);
        self.bind(v, rows)?;
        Ok(rows)
    }

    fn binding(&self, v: Value) -> Result<Binding, Error> {
        match self.bindings.get(v.index()) {
            Some(Some(b)) => Ok(*b),
            _ => self.malformed(format!("{v:?} is used where it is not defined")),
        }
    }

    /// Register and type of an operand.
    fn operand(&mut self, v: Value) -> Result<(VReg, Type), Error> {
        let ty = self.ty(v)?;
        match self.binding(v)? {
            Binding::Rows(r) => Ok((r, ty)),
            Binding::Buffer(param) => {
                let dst = self.temporary(ty);
                self.emit(Instr::BufferParam { dst, param });
                Ok((dst, ty))
            }
        }
    }

    /// Register of an operand that must have type `ty`.
    fn typed(&mut self, v: Value, ty: Type) -> Result<VReg, Error> {
        let (r, t) = self.operand(v)?;
        self.require(t == ty, || format!("operand {v:?} is {t}, not {ty}"))?;
        Ok(r)
    }

    /// Register and type of an operand that must be data.
    fn data(&mut self, v: Value) -> Result<(VReg, Type), Error> {
        let (r, ty) = self.operand(v)?;
        self.require(ty.is_data(), || format!("operand {v:?} is {ty}, which is no data"))?;
        Ok((r, ty))
    }

    /// A buffer to access, and its register where it is none of the parameters (else any register).
    fn buffer(&mut self, v: Value, any: VReg) -> Result<(Source, VReg), Error> {
        let ty = self.ty(v)?;
        self.require(matches!(ty, Type::Buffer(_)), || format!("{v:?}, a {ty}, is accessed as a buffer"))?;
        Ok(match self.binding(v)? {
            Binding::Buffer(param) => (Source::Param(param), any),
            Binding::Rows(r) => (Source::Made, r),
        })
    }

    fn emit(&mut self, instr: Instr<W, VReg>) {
        const NOWHERE: Location = Location { file: "<kernel>", line: 0, column: 0 };
        self.code.push(instr);
        self.locations.push(self.location.unwrap_or(NOWHERE));
        self.marks.push(self.mark);
    }

    fn pc(&self) -> Pc {
        self.code.len() as Pc
    }

    /// Flattens a region's operations; the values it defines stay bound until [`Self::leave`].
    fn block(&mut self, block: &Block) -> Result<(), Error> {
        self.depth += 1;
        self.require(self.depth <= MAX_DEPTH, || format!("regions nest deeper than {MAX_DEPTH}"))?;
        for inst in &block.insts {
            let index = (inst.number.0 as usize).wrapping_sub(1);
            self.location = self.kernel.locations.get(index).copied();
            self.require(self.location.is_some(), || format!("operation {} has no location", inst.number.0))?;
            self.mark = Mark::of(self.kernel, &inst.op);
            self.inst(inst)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Forgets the values bound since `scope` was `mark` long.
    fn leave(&mut self, mark: usize) {
        for v in self.scope.drain(mark..) {
            self.bindings[v.index()] = None;
        }
    }

    /// The single result's value and type.
    fn result(&self, inst: &Inst) -> Result<(Value, Type), Error> {
        match inst.results.as_slice() {
            [v] => Ok((*v, self.ty(*v)?)),
            r => self.malformed(format!("{} results where one is due", r.len())),
        }
    }

    fn no_result(&self, inst: &Inst) -> Result<(), Error> {
        self.require(inst.results.is_empty(), || format!("{} results where none is due", inst.results.len()))
    }

    fn inst(&mut self, inst: &Inst) -> Result<(), Error> {
        match &inst.op {
            Op::Native { args, meaning, .. } => self.native(inst, args, meaning),
            Op::If { condition, then, otherwise } => self.if_(inst, *condition, then, otherwise),
            Op::For { lo, hi, step, init, body, .. } => self.for_(inst, (*lo, *hi, *step), init, body),
            Op::While { init, before, after } => self.while_(inst, init, before, after),
            Op::Mma { .. } | Op::MfmaScaled { .. } => self.product(inst),
            op => match op.kind() {
                OpKind::Place | OpKind::Data => self.data_op(inst),
                OpKind::Address | OpKind::Memory => self.memory_op(inst),
                OpKind::Lanes => self.lane_op(inst),
                OpKind::Wave => self.wave_op(inst),
                OpKind::Region => self.malformed(format!("`{}` is no operation with regions", op.def().name)),
            },
        }
    }
}
