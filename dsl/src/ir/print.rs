//! The printed form of Kernel IR: location-free, the same bytes on every run and machine.

use std::fmt::{self, Display, Formatter, Write as _};

use super::{
    Access, Axis, BinaryOp, Bits, Block, Inst, Kernel, LdsArray, OffsetUnit, Op, Param, ParamKind, Predicate, Scalar,
    Type, UnaryOp, Value,
};

/// Version of the printed form, in its first line.
const VERSION: u32 = 1;

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl Display for Axis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(["x", "y", "z"][self.index()])
    }
}

impl Display for UnaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Neg => "neg",
            Self::Not => "not",
            Self::HwExp2 => "hw_exp2",
            Self::HwRcp => "hw_rcp",
        })
    }
}

impl Display for BinaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::DivFloor => "div_floor",
            Self::RemFloor => "rem_floor",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Shl => "shl",
            Self::Shr => "shr",
            Self::Maximum => "maximum",
            Self::Minimum => "minimum",
        })
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
        })
    }
}

impl Display for OffsetUnit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Elements => "elements",
        })
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "read_write",
        })
    }
}

impl Display for Param {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kind {
            ParamKind::Buffer { elem, len, access, align } => {
                write!(f, "{}: buffer<{elem}> len {len} {access} align {align}", self.name)
            }
            ParamKind::Scalar(s) => write!(f, "{}: {s}", self.name),
        }
    }
}

impl Display for LdsArray {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} len {} align {}", self.name, self.elem, self.len, self.align)
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel_ir {VERSION}")?;
        let [gx, gy, gz] = self.launch.grid;
        let [bx, by, bz] = self.launch.block;
        write!(f, "kernel @{} wave {} grid {gx}x{gy}x{gz} block {bx}x{by}x{bz}", self.name, self.wave)?;
        if let Some(n) = self.launch.waves_per_eu {
            write!(f, " waves_per_eu {n}")?;
        }
        if let Some(n) = self.launch.maxnreg {
            write!(f, " maxnreg {n}")?;
        }
        writeln!(f, " {{")?;
        for (i, p) in self.params.iter().enumerate() {
            writeln!(f, "  param {} {p}", Value(i as u32))?;
        }
        for (i, a) in self.lds.iter().enumerate() {
            writeln!(f, "  lds #{i} {a}")?;
        }
        self.print_block(f, &self.body, 1)?;
        writeln!(f, "}}")
    }
}

/// A constant in the notation that reads back to the same bits: decimal where short and exact, else the bits in hex.
fn constant(bits: Bits, scalar: Scalar) -> String {
    match scalar {
        Scalar::Bool => (if bits.0 == 0 { "false" } else { "true" }).to_owned(),
        Scalar::I32 => (bits.0 as u32 as i32).to_string(),
        Scalar::I64 => (bits.0 as i64).to_string(),
        Scalar::U16 | Scalar::U32 | Scalar::U64 => bits.0.to_string(),
        Scalar::F32 => {
            let v = f32::from_bits(bits.0 as u32);
            if v.is_finite() { format!("{v:?}") } else { format!("0x{:08x}", bits.0) }
        }
        Scalar::Bf16 => format!("0x{:04x}", bits.0),
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

impl Kernel {
    fn typed(&self, values: &[Value]) -> String {
        values.iter().map(|v| format!("{v}: {}", self.ty(*v))).collect::<Vec<_>>().join(", ")
    }

    fn print_block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        for inst in &block.insts {
            write!(f, "{:1$}", "", depth * 2)?;
            self.print_inst(f, inst, depth)?;
        }
        if !block.yields.is_empty() {
            writeln!(f, "{:1$}yield {2}", "", depth * 2, list(&block.yields))?;
        }
        Ok(())
    }

    fn print_inst(&self, f: &mut Formatter<'_>, inst: &Inst, depth: usize) -> fmt::Result {
        let results = &inst.results;
        if !results.is_empty() {
            write!(f, "{} = ", self.typed(results))?;
        }
        let close = |f: &mut Formatter<'_>| writeln!(f, "{:1$}}}", "", depth * 2);
        let text = match &inst.op {
            Op::Const(bits) => format!("const {}", constant(*bits, self.ty(results[0]).scalar())),
            Op::ThreadId(axis) => format!("thread_id {axis}"),
            Op::BlockId(axis) => format!("block_id {axis}"),
            Op::Unary(op, a) => format!("{op} {a}"),
            Op::Binary(op, a, b) => format!("{op} {a}, {b}"),
            Op::Compare(p, a, b) => format!("cmp {p} {a}, {b}"),
            Op::Select { condition, on_true, on_false } => format!("select {condition}, {on_true}, {on_false}"),
            Op::Convert(a) => format!("convert {a}"),
            Op::Bitcast(a) => format!("bitcast {a}"),
            Op::VectorFrom(v) => format!("vector {}", list(v)),
            Op::Extract(v, i) => format!("extract {v}[{i}]"),
            Op::LdsBase(i) => format!("lds_base #{i}"),
            Op::PtrAdd(p, n) => format!("ptr_add {p}, {n}"),
            Op::PtrLoad(p) => format!("ptr_load {p}"),
            Op::PtrStore { value, pointer } => format!("ptr_store {value}, {pointer}"),
            Op::BufferLoad { buffer, offset, unit } => format!("buffer_load {buffer}, {offset} {unit}"),
            Op::BufferStore { value, buffer, offset, unit } => {
                format!("buffer_store {value}, {buffer}, {offset} {unit}")
            }
            Op::Barrier => "barrier".to_owned(),
            Op::If { condition, then, otherwise } => {
                writeln!(f, "if {condition} {{")?;
                self.print_block(f, then, depth + 1)?;
                if !otherwise.insts.is_empty() || !otherwise.yields.is_empty() {
                    writeln!(f, "{:1$}}} else {{", "", depth * 2)?;
                    self.print_block(f, otherwise, depth + 1)?;
                }
                return close(f);
            }
            Op::For { lo, hi, step, init, body } => {
                let mut head = format!("for {} in {lo}..{hi} step {step}", self.typed(&body.params[..1]));
                if !init.is_empty() {
                    write!(head, " carry {} = {}", self.typed(&body.params[1..]), list(init))?;
                }
                writeln!(f, "{head} {{")?;
                self.print_block(f, body, depth + 1)?;
                return close(f);
            }
        };
        writeln!(f, "{text}")
    }
}

impl Type {
    /// The printed form of a constant of this type.
    pub fn constant(self, bits: Bits) -> String {
        constant(bits, self.scalar())
    }
}
