//! Calls of LLVM intrinsics, inline assembly, and small helpers for integers and branches.

use melior::dialect::llvm;
use melior::ir::attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute};
use melior::ir::{Type, TypeLike, Value, ValueLike};

use super::emit::{Emitter, Result};

impl<'c, 'a> Emitter<'c, 'a> {
    fn intrinsic_call(&self, name: &str, args: &[Value<'c, 'a>], results: &[Type<'c>]) -> Result<Vec<Value<'c, 'a>>> {
        let segments = [args.len() as i32, 0];
        let attributes = [
            ("intrin", self.string(name)),
            ("operandSegmentSizes", DenseI32ArrayAttribute::new(self.context, &segments).into()),
            ("op_bundle_sizes", DenseI32ArrayAttribute::new(self.context, &[]).into()),
        ];
        self.one_or_struct("llvm.call_intrinsic", args, results, &attributes)
    }

    /// An operation of LLVM that has one result, a struct if several are wanted.
    fn one_or_struct(
        &self,
        name: &str,
        args: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[super::emit::Named<'c>],
    ) -> Result<Vec<Value<'c, 'a>>> {
        match results {
            [] => self.op(name, args, &[], attributes).map(|_| vec![]),
            [one] => Ok(vec![self.value(name, args, *one, attributes)?]),
            several => {
                let ty = llvm::r#type::r#struct(self.context, several, false);
                let all = self.value(name, args, ty, attributes)?;
                several.iter().enumerate().map(|(i, t)| self.field(all, i, *t)).collect()
            }
        }
    }

    /// A field of a struct.
    pub fn field(&self, of: Value<'c, 'a>, index: usize, ty: Type<'c>) -> Result<Value<'c, 'a>> {
        let position = DenseI64ArrayAttribute::new(self.context, &[index as i64]).into();
        self.value("llvm.extractvalue", &[of], ty, &[("position", position)])
    }

    /// Calls an LLVM intrinsic with one result.
    pub fn call(&self, name: &str, args: &[Value<'c, 'a>], result: Type<'c>) -> Result<Value<'c, 'a>> {
        self.intrinsic(name, args, result, &[])
    }

    /// Calls an LLVM intrinsic with any number of results.
    pub fn call_many(&self, name: &str, args: &[Value<'c, 'a>], results: &[Type<'c>]) -> Result<Vec<Value<'c, 'a>>> {
        self.intrinsic_call(name, args, results)
    }

    /// Calls an LLVM intrinsic without a result.
    pub fn call_void(&self, name: &str, args: &[Value<'c, 'a>]) -> Result<()> {
        self.intrinsic_call(name, args, &[]).map(drop)
    }

    /// Inline assembly in LLVM's notation.
    pub fn asm(
        &self,
        template: &str,
        constraints: &str,
        args: &[Value<'c, 'a>],
        results: &[Type<'c>],
        effects: bool,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let mut attributes = vec![("asm_string", self.string(template)), ("constraints", self.string(constraints))];
        if effects {
            attributes.push(("has_side_effects", self.unit()));
        }
        self.one_or_struct("llvm.inline_asm", args, results, &attributes)
    }

    /// Keeps the compiler from moving any memory access across this place; no instruction.
    pub fn compiler_barrier(&self) -> Result<()> {
        self.asm("", "~{memory}", &[], &[], true).map(drop)
    }

    /// A 32-bit constant with these bits.
    pub fn word(&self, bits: u32) -> Result<Value<'c, 'a>> {
        self.int_const(32, i64::from(bits as i32))
    }

    /// A 64-bit constant with these bits.
    pub fn word64(&self, bits: u64) -> Result<Value<'c, 'a>> {
        self.int_const(64, bits as i64)
    }

    /// A truth value.
    pub fn bit(&self, value: bool) -> Result<Value<'c, 'a>> {
        // MLIR reads the one-bit constant 1 as −1.
        self.int_const(1, -i64::from(value))
    }

    /// An integer of `from` bits as one of `to` bits.
    pub fn resize(&self, v: Value<'c, 'a>, from: u32, to: u32, signed: bool) -> Result<Value<'c, 'a>> {
        let name = match () {
            () if from == to => return Ok(v),
            () if from > to => "arith.trunci",
            () if signed => "arith.extsi",
            () => "arith.extui",
        };
        self.value(name, &[v], self.int(to), &[])
    }

    /// One of two values.
    pub fn select(&self, c: Value<'c, 'a>, yes: Value<'c, 'a>, no: Value<'c, 'a>) -> Result<Value<'c, 'a>> {
        self.same_as_second("arith.select", &[c, yes, no])
    }

    /// Both conditions, of which either may be absent (and then holds).
    pub fn both(&self, a: Option<Value<'c, 'a>>, b: Option<Value<'c, 'a>>) -> Result<Option<Value<'c, 'a>>> {
        match (a, b) {
            (Some(a), Some(b)) => self.same("arith.andi", &[a, b]).map(Some),
            (a, b) => Ok(a.or(b)),
        }
    }

    /// The value of one of two branches.
    pub fn branch(
        &self,
        condition: Value<'c, 'a>,
        ty: Type<'c>,
        then: impl FnOnce(&Self) -> Result<Value<'c, 'a>>,
        otherwise: impl FnOnce(&Self) -> Result<Value<'c, 'a>>,
    ) -> Result<Value<'c, 'a>> {
        let branch = self.op_with_regions("scf.if", &[condition], &[ty], &[], 2)?;
        let place = self.enter(branch, 0, &[])?;
        let value = then(&place)?;
        place.op("scf.yield", &[value], &[], &[])?;
        let place = self.enter(branch, 1, &[])?;
        let value = otherwise(&place)?;
        place.op("scf.yield", &[value], &[], &[])?;
        branch.result(0).map(Into::into).map_err(|e| e.to_string())
    }

    /// Does something where a condition holds.
    pub fn when(&self, condition: Value<'c, 'a>, then: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let branch = self.op_with_regions("scf.if", &[condition], &[], &[], 2)?;
        let place = self.enter(branch, 0, &[])?;
        then(&place)?;
        place.op("scf.yield", &[], &[], &[]).map(drop)
    }

    /// Does one of two things.
    pub fn either(
        &self,
        condition: Value<'c, 'a>,
        then: impl FnOnce(&Self) -> Result<()>,
        otherwise: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let branch = self.op_with_regions("scf.if", &[condition], &[], &[], 2)?;
        let place = self.enter(branch, 0, &[])?;
        then(&place)?;
        place.op("scf.yield", &[], &[], &[])?;
        let place = self.enter(branch, 1, &[])?;
        otherwise(&place)?;
        place.op("scf.yield", &[], &[], &[]).map(drop)
    }

    /// A vector's element, or the value itself of a type that is no vector.
    pub fn part(&self, v: Value<'c, 'a>, index: u32, element: Type<'c>) -> Result<Value<'c, 'a>> {
        if !v.r#type().is_vector() {
            return Ok(v);
        }
        let position = DenseI64ArrayAttribute::new(self.context, &[i64::from(index)]).into();
        self.value("vector.extract", &[v], element, &[("static_position", position)])
    }
}
