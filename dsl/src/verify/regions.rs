//! What each region of an operation takes and hands out.

use super::{MAX_VECTOR, Scope, listed};
use crate::ir::{Block, Inst, NativeCode, NativeForm, Op, Scalar, Type, Value};
use crate::target::{Arch, CHIPS};

/// A region and the types that its operation gives it.
pub(super) struct Region<'b> {
    /// As a message calls it.
    pub name: &'static str,
    pub block: &'b Block,
    pub params: Vec<Type>,
    pub yields: Vec<Type>,
}

impl Scope<'_> {
    /// The regions of an operation whose operands are known to be defined.
    pub(super) fn regions<'b>(&self, inst: &'b Inst) -> Result<Vec<Region<'b>>, String> {
        let results = inst.results.iter().map(|r| self.declared(*r)).collect::<Result<Vec<_>, _>>()?;
        let types = |values: &[Value]| values.iter().map(|v| self.ty(*v)).collect::<Result<Vec<_>, _>>();
        let region = |name, block, params: &[Type], yields: &[Type]| Region {
            name,
            block,
            params: params.to_vec(),
            yields: yields.to_vec(),
        };
        let regions = match &inst.op {
            Op::If { then, otherwise, .. } => {
                vec![region("first region", then, &[], &results), region("second region", otherwise, &[], &results)]
            }
            Op::For { lo, init, body, .. } => {
                let carried = types(init)?;
                if carried != results {
                    let (given, wanted) = (listed(&results), listed(&carried));
                    return Err(format!("`for` carries {wanted}, but results in {given}"));
                }
                let params: Vec<Type> = std::iter::once(self.ty(*lo)?).chain(carried.iter().copied()).collect();
                vec![region("body", body, &params, &carried)]
            }
            Op::While { init, before, after } => {
                let state = types(init)?;
                let condition: Vec<Type> = std::iter::once(Type::BOOL).chain(results.iter().copied()).collect();
                vec![region("condition", before, &state, &condition), region("body", after, &results, &state)]
            }
            Op::Native { args, meaning, forms } => {
                let args = types(args)?;
                forms.iter().try_for_each(|f| form(f, &args, &results))?;
                vec![region("meaning", meaning, &args, &results)]
            }
            _ => return Ok(vec![]),
        };
        for ty in regions.iter().flat_map(|r| r.params.iter().chain(&r.yields)).chain(&results) {
            match ty {
                Type::Buffer(_) => {
                    return Err(format!(
                        "{ty} at the edge of a region; only data and pointers enter or leave one: use the buffer inside"
                    ));
                }
                Type::Texture(_) | Type::Surface(_) => {
                    return Err(format!(
                        "{ty} at the edge of a region; only data and pointers enter or leave one: use the image inside"
                    ));
                }
                Type::Vector(_, n) if *n == 0 || *n > MAX_VECTOR => {
                    return Err(format!("a vector of {n} elements; allowed are 1 to {MAX_VECTOR}"));
                }
                _ => {}
            }
        }
        Ok(regions)
    }
}

/// A form of a `native`: where it is used, and whether it can take these arguments and give these results.
fn form(form: &NativeForm, args: &[Type], results: &[Type]) -> Result<(), String> {
    let target = form.target.as_str();
    let arch = match target {
        "amdgpu" => Arch::Amdgpu,
        "nvptx" => Arch::Nvptx,
        chip => match CHIPS.iter().find(|c| c.name == chip) {
            Some(chip) => chip.arch,
            None => {
                let chips: Vec<&str> = CHIPS.iter().map(|c| c.name).collect();
                return Err(format!(
                    "a `native` form for `{target}`; known are amdgpu, nvptx and the chips {}",
                    chips.join(", ")
                ));
            }
        },
    };
    let all = || args.iter().chain(results);
    if let Some(ty) = all().find(|t| t.scalar() == Scalar::Idx) {
        return Err(format!("`native` form for {target} with {ty}, which has no fixed width; use i32 or i64"));
    }
    match &form.code {
        NativeCode::Asm { template, .. } if template.trim().is_empty() => {
            Err(format!("`native` form for {target} without assembly; write its instructions, or leave the form out"))
        }
        NativeCode::Asm { .. } => match all().find(|t| t.scalar() == Scalar::Bool) {
            Some(ty) => Err(format!("assembly for {target} with {ty}, which has no register form; use u32")),
            None => Ok(()),
        },
        NativeCode::Intrinsic { name } => {
            let other = match arch {
                Arch::Amdgpu => "llvm.nvvm.",
                Arch::Nvptx => "llvm.amdgcn.",
            };
            if !name.starts_with("llvm.") || name.starts_with(other) {
                return Err(format!(
                    "{target} has no intrinsic `{name}`; its names start with `llvm.`, never with `{other}`"
                ));
            }
            Ok(())
        }
    }
}
