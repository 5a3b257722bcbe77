//! Writing MLIR operations one after another.

use melior::Context;
use melior::dialect::llvm;
use melior::ir::attribute::{
    DenseElementsAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute, StringAttribute,
    TypeAttribute,
};
use melior::ir::operation::{OperationBuilder, OperationLike, OperationRef};
use melior::ir::r#type::IntegerType;
use melior::ir::{
    Attribute, Block, BlockLike, BlockRef, Identifier, Location, Region, RegionLike, Type, TypeLike, Value, ValueLike,
};

use lathe_dsl::ir::{self, FastFlags};

/// Why lowering stopped; [`super::Lowering`] adds the operation to blame.
pub type Result<T> = std::result::Result<T, String>;

/// A named attribute.
pub type Named<'c> = (&'static str, Attribute<'c>);

/// LLVM address space of device memory, for both targets.
pub const GLOBAL: u32 = 1;
/// LLVM address space of LDS (shared memory), for both targets.
pub const LDS: u32 = 3;

/// A place in the MLIR module where operations are appended, and the source location they get.
#[derive(Clone, Copy)]
pub struct Emitter<'c, 'a> {
    pub context: &'c Context,
    pub block: BlockRef<'c, 'a>,
    pub location: Location<'c>,
}

impl<'c, 'a> Emitter<'c, 'a> {
    /// Appends an operation with `regions` empty regions.
    pub fn op_with_regions(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[Named<'c>],
        regions: usize,
    ) -> Result<OperationRef<'c, 'a>> {
        let mut attributes: Vec<_> = attributes.iter().map(|(n, a)| (Identifier::new(self.context, n), *a)).collect();
        if matches!(name, "llvm.call_intrinsic" | "llvm.inline_asm") {
            // MLIR makes one block of two that differ in nothing but locations; and what asks which lanes are there does not
            // do the same in both arms of a branch.
            let line = self.location.file_line_col_range_start_line();
            attributes.push((Identifier::new(self.context, "line"), self.int_attribute(64, line as i64)));
        }
        let operation = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec((0..regions).map(|_| Region::new()).collect())
            .build()
            .map_err(|e| format!("`{name}` could not be built: {e}"))?;
        Ok(self.block.append_operation(operation))
    }

    /// Appends an operation.
    pub fn op(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[Named<'c>],
    ) -> Result<OperationRef<'c, 'a>> {
        self.op_with_regions(name, operands, results, attributes, 0)
    }

    /// Appends an operation with one result.
    pub fn value(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        result: Type<'c>,
        attributes: &[Named<'c>],
    ) -> Result<Value<'c, 'a>> {
        let operation = self.op(name, operands, &[result], attributes)?;
        operation.result(0).map(Into::into).map_err(|e| e.to_string())
    }

    /// Appends an operation whose one result has the type of its first operand.
    pub fn same(&self, name: &str, operands: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>> {
        self.value(name, operands, operands[0].r#type(), &[])
    }

    /// Appends an operation whose one result has the type of its second operand, such as a select.
    pub fn same_as_second(&self, name: &str, operands: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>> {
        self.value(name, operands, operands[1].r#type(), &[])
    }

    /// Gives a region of an operation its block, with parameters of these types.
    pub fn enter(&self, operation: OperationRef<'c, 'a>, region: usize, params: &[Type<'c>]) -> Result<Self> {
        let region = operation.region(region).map_err(|e| e.to_string())?;
        let params: Vec<_> = params.iter().map(|t| (*t, self.location)).collect();
        Ok(Self { block: region.append_block(Block::new(&params)), ..*self })
    }

    /// Parameter of the current block.
    pub fn param(&self, index: usize) -> Result<Value<'c, 'a>> {
        self.block.argument(index).map(Into::into).map_err(|e| e.to_string())
    }

    /// Signless integer type.
    pub fn int(&self, bits: u32) -> Type<'c> {
        IntegerType::new(self.context, bits).into()
    }

    /// Type of a scalar.
    pub fn scalar(&self, s: ir::Scalar) -> Type<'c> {
        match s {
            ir::Scalar::F16 => Type::float16(self.context),
            ir::Scalar::Bf16 => Type::bfloat16(self.context),
            ir::Scalar::F32 => Type::float32(self.context),
            ir::Scalar::F64 => Type::float64(self.context),
            s => self.int(s.bits()),
        }
    }

    /// Type of a Kernel IR value.
    pub fn ty(&self, t: ir::Type) -> Type<'c> {
        match t {
            ir::Type::Scalar(s) => self.scalar(s),
            ir::Type::Vector(s, n) => Type::vector(&[u64::from(n)], self.scalar(s)),
            ir::Type::Texture(_) | ir::Type::Surface(_) => self.int(64),
            ir::Type::Ptr(ir::Space::Lds, _) => llvm::r#type::pointer(self.context, LDS),
            ir::Type::Ptr(ir::Space::Global, _) | ir::Type::Buffer(_) => llvm::r#type::pointer(self.context, GLOBAL),
        }
    }

    /// The attribute whose presence is all it says.
    pub fn unit(&self) -> Attribute<'c> {
        Attribute::unit(self.context)
    }

    /// A parsed attribute.
    pub fn attribute(&self, text: &str) -> Result<Attribute<'c>> {
        Attribute::parse(self.context, text).ok_or_else(|| format!("`{text}` is not an MLIR attribute"))
    }

    /// An integer attribute of this many bits.
    pub fn int_attribute(&self, bits: u32, value: i64) -> Attribute<'c> {
        IntegerAttribute::new(self.int(bits), value).into()
    }

    /// A string attribute.
    pub fn string(&self, text: &str) -> Attribute<'c> {
        StringAttribute::new(self.context, text).into()
    }

    /// Zeros of an integer type or of a vector of one.
    pub fn zeros(&self, ty: Type<'c>) -> Result<Value<'c, 'a>> {
        let text = if ty.is_vector() { format!("dense<0> : {ty}") } else { format!("0 : {ty}") };
        self.value("arith.constant", &[], ty, &[("value", self.attribute(&text)?)])
    }

    /// An integer constant of this many bits.
    pub fn int_const(&self, bits: u32, value: i64) -> Result<Value<'c, 'a>> {
        self.value("arith.constant", &[], self.int(bits), &[("value", self.int_attribute(bits, value))])
    }

    /// A constant of a Kernel IR type: these bits in every element.
    pub fn constant(&self, ty: ir::Type, bits: u64) -> Result<Value<'c, 'a>> {
        let scalar = ty.scalar();
        let element = match scalar {
            // Written as bits, so that a NaN keeps its payload.
            ir::Scalar::F16 => self.attribute(&format!("0x{bits:04X} : f16"))?,
            ir::Scalar::Bf16 => self.attribute(&format!("0x{bits:04X} : bf16"))?,
            ir::Scalar::F32 => self.attribute(&format!("0x{bits:08X} : f32"))?,
            ir::Scalar::F64 => self.attribute(&format!("0x{bits:016X} : f64"))?,
            // MLIR wants the value as it reads in the type's own width.
            s => self.int_attribute(s.bits(), sign_extend(bits, s.bits())),
        };
        let value = match ty {
            ir::Type::Vector(..) => {
                DenseElementsAttribute::new(self.ty(ty), &[element]).map_err(|e| e.to_string())?.into()
            }
            _ => element,
        };
        self.value("arith.constant", &[], self.ty(ty), &[("value", value)])
    }

    /// Elements of a vector, or the scalar itself.
    pub fn elements(&self, ty: ir::Type, value: Value<'c, 'a>) -> Result<Vec<Value<'c, 'a>>> {
        match ty {
            ir::Type::Vector(_, n) => (0..n).map(|i| self.extract(ty.scalar(), value, i)).collect(),
            _ => Ok(vec![value]),
        }
    }

    /// One element of a vector.
    pub fn extract(&self, scalar: ir::Scalar, vector: Value<'c, 'a>, index: u32) -> Result<Value<'c, 'a>> {
        let position = DenseI64ArrayAttribute::new(self.context, &[i64::from(index)]).into();
        self.value("vector.extract", &[vector], self.scalar(scalar), &[("static_position", position)])
    }

    /// The vector (or the scalar itself) of these elements.
    pub fn gather(&self, ty: ir::Type, elements: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>> {
        match ty {
            ir::Type::Vector(..) => self.value("vector.from_elements", elements, self.ty(ty), &[]),
            _ => elements.first().copied().ok_or_else(|| "no elements".into()),
        }
    }

    /// Applies a scalar function to every element.
    pub fn each(
        &self,
        ty: ir::Type,
        value: Value<'c, 'a>,
        f: impl Fn(Value<'c, 'a>) -> Result<Value<'c, 'a>>,
    ) -> Result<Value<'c, 'a>> {
        let elements = self.elements(ty, value)?.into_iter().map(f).collect::<Result<Vec<_>>>()?;
        self.gather(ty, &elements)
    }

    /// The same bits as another type.
    pub fn bitcast(&self, value: Value<'c, 'a>, to: Type<'c>) -> Result<Value<'c, 'a>> {
        if value.r#type() == to { Ok(value) } else { self.value("llvm.bitcast", &[value], to, &[]) }
    }

    /// Integer comparison with an MLIR predicate name.
    pub fn cmpi(
        &self,
        predicate: IntPredicate,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
        ty: Type<'c>,
    ) -> Result<Value<'c, 'a>> {
        self.value("arith.cmpi", &[a, b], ty, &[("predicate", self.int_attribute(64, predicate as i64))])
    }

    /// `pointer + index` elements, without a promise about the result.
    pub fn gep(&self, pointer: Value<'c, 'a>, index: GepIndex<'c, 'a>, element: Type<'c>) -> Result<Value<'c, 'a>> {
        let (operands, constant) = match index {
            // The marker for "taken from the operands".
            GepIndex::Value(v) => (vec![pointer, v], i32::MIN),
            GepIndex::Constant(n) => (vec![pointer], n),
        };
        let attributes = [
            ("rawConstantIndices", DenseI32ArrayAttribute::new(self.context, &[constant]).into()),
            ("elem_type", TypeAttribute::new(element).into()),
        ];
        self.value("llvm.getelementptr", &operands, pointer.r#type(), &attributes)
    }

    /// An LLVM store with a known alignment in bytes.
    pub fn store(&self, value: Value<'c, 'a>, pointer: Value<'c, 'a>, align: u64) -> Result<()> {
        self.op("llvm.store", &[value, pointer], &[], &[("alignment", self.int_attribute(64, align as i64))])?;
        Ok(())
    }
}

impl<'c, 'a> Emitter<'c, 'a> {
    /// A float constant that every float type holds exactly.
    pub fn float_constant(&self, ty: ir::Type, value: f32) -> Result<Value<'c, 'a>> {
        let bits = value.to_bits();
        let bits = match ty.scalar() {
            ir::Scalar::F64 => f64::from(value).to_bits(),
            ir::Scalar::Bf16 => u64::from(bits >> 16),
            // Of 0 and numbers in f16's normal range.
            ir::Scalar::F16 => {
                let magnitude = ((bits & 0x7FFF_FFFF) >> 13).saturating_sub(112 << 10);
                u64::from(magnitude | bits >> 16 & 0x8000)
            }
            _ => u64::from(bits),
        };
        self.constant(ty, bits)
    }

    /// An intrinsic's name for operands of this type: `llvm.name.v2f32`.
    pub fn overloaded(&self, name: &str, ty: ir::Type) -> String {
        let scalar = match ty.scalar() {
            s if s.is_float() => s.name().to_owned(),
            s => format!("i{}", s.bits()),
        };
        match ty {
            ir::Type::Vector(_, n) => format!("{name}.v{n}{scalar}"),
            _ => format!("{name}.{scalar}"),
        }
    }

    /// A call of a float intrinsic whose operands and result have this type. By name, because MLIR's passes take its own
    /// operations for these as calls of a vendor's library.
    pub fn float_intrinsic(
        &self,
        name: &str,
        ty: ir::Type,
        operands: &[Value<'c, 'a>],
        flags: &[Named<'c>],
    ) -> Result<Value<'c, 'a>> {
        self.intrinsic(&self.overloaded(name, ty), operands, self.ty(ty), flags)
    }

    /// Licences as the attribute that `llvm` operations carry.
    pub fn llvm_flags(&self, flags: FastFlags) -> Result<Vec<Named<'c>>> {
        self.flags("fastmathFlags", "llvm", flags)
    }

    /// Licences as the attribute that `arith` operations carry.
    pub fn arith_flags(&self, flags: FastFlags) -> Result<Vec<Named<'c>>> {
        self.flags("fastmath", "arith", flags)
    }

    fn flags(&self, key: &'static str, dialect: &str, flags: FastFlags) -> Result<Vec<Named<'c>>> {
        if flags.is_empty() {
            return Ok(vec![]);
        }
        let names = flags.names().collect::<Vec<_>>().join(", ");
        Ok(vec![(key, self.attribute(&format!("#{dialect}.fastmath<{names}>"))?)])
    }

    /// A call of an LLVM intrinsic by its full name.
    pub fn intrinsic(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        result: Type<'c>,
        flags: &[Named<'c>],
    ) -> Result<Value<'c, 'a>> {
        let segments = self.attribute(&format!("array<i32: {}, 0>", operands.len()))?;
        let mut attributes = vec![
            ("intrin", self.string(name)),
            ("operandSegmentSizes", segments),
            ("op_bundle_sizes", self.attribute("array<i32>")?),
        ];
        attributes.extend_from_slice(flags);
        self.value("llvm.call_intrinsic", operands, result, &attributes)
    }
}

/// Index of [`Emitter::gep`].
#[derive(Clone, Copy)]
pub enum GepIndex<'c, 'a> {
    Value(Value<'c, 'a>),
    Constant(i32),
}

/// `arith.cmpi` predicates, numbered as MLIR numbers them.
#[derive(Clone, Copy)]
pub enum IntPredicate {
    Eq = 0,
    Ne = 1,
    Slt = 2,
    Sle = 3,
    Sgt = 4,
    Sge = 5,
    Ult = 6,
    Ule = 7,
    Ugt = 8,
    Uge = 9,
}

/// The low `bits` bits, read as a signed number.
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    ((value << unused) as i64) >> unused
}
