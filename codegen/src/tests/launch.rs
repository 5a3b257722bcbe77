//! The kernel's ABI and launch facts, in emitted LLVM IR, in metadata, in PTX directives; and the line table.

use std::collections::BTreeSet;

use lathe_dsl::builder::Builder;
use lathe_dsl::ir::{Access, Axis, Kernel, Launch, Param, ParamKind, Scalar};
use lathe_dsl::kernel::{In, InOut, Out};
use lathe_dsl::{Target, ir};
use object::{Object, ObjectSection};

use super::{buffer_of, count, has, kernel_with, lacks, scalar, text};
use crate::{Level, Options, compile};

fn params() -> Vec<Param> {
    vec![
        buffer_of("a", Scalar::F32, 1024, Access::Read),
        scalar("n", Scalar::U32),
        buffer_of("b", Scalar::F32, 1024, Access::Write),
        scalar("s", Scalar::F32),
        scalar("h", Scalar::U16),
        Param {
            name: "c",
            kind: ParamKind::Buffer { elem: Scalar::U64, len: 8, access: Access::ReadWrite, align: 256 },
        },
        Param { name: "none", kind: ParamKind::Buffer { elem: Scalar::U32, len: 0, access: Access::Read, align: 4 } },
    ]
}

fn body<'k>(k: &'k Builder<'k>) {
    let (a, b, c) = (k.buffer::<f32, In>(0), k.buffer::<f32, Out>(2), k.buffer::<u64, InOut>(5));
    let (n, s, h) = (k.param::<u32>(1), k.param::<f32>(3), k.param::<u16>(4));
    let i = k.thread_id(Axis::X) + k.thread_id(Axis::Y) * 64 + k.block_id(Axis::Z);
    let x = k.buffer_load::<f32>(a, i) * s;
    k.if_(i.lt(n), || k.buffer_store(x, b, i));
    let word = k.buffer_load::<u64>(c, 3);
    k.buffer_store(word + h.to::<u64>(), c, 4);
}

fn launch() -> Launch {
    Launch { grid: [3, 5, 7], block: [64, 4, 2], waves_per_eu: Some(3), maxnreg: Some(96) }
}

fn kernel(target: Target) -> Kernel {
    kernel_with(target, launch(), params(), body)
}

#[test]
fn parameters_promise_what_is_true_of_them() {
    for target in Target::MAIN {
        let ir = text(&kernel(target), target, Level::LlvmIr);
        let signature = ir.lines().find(|l| l.starts_with("define")).expect("a kernel");
        let convention = if target == Target::SM_90 { "ptx_kernel" } else { "amdgpu_kernel" };
        has(signature, &[convention, "i32 noundef %", "float noundef %", "i16 noundef %"]);
        let parts: Vec<String> = signature
            .split("ptr addrspace(1)")
            .skip(1)
            .map(|p| p.split('%').next().unwrap_or("").trim().to_owned())
            .collect();
        let [a, b, c, none] = &parts[..] else { panic!("{signature}") };
        has(a, &["noalias", "noundef", "nonnull", "readonly", "align 16", "dereferenceable(4096)"]);
        has(b, &["noalias", "noundef", "nonnull", "writeonly", "align 16", "dereferenceable(4096)"]);
        has(c, &["noalias", "noundef", "nonnull", "align 256", "dereferenceable(64)"]);
        lacks(c, &["readonly", "writeonly"]);
        has(none, &["noalias", "noundef", "readonly", "align 4"]);
        lacks(none, &["nonnull", "dereferenceable"]);
    }
}

#[test]
fn amd_launch_hints_reach_the_function_and_its_metadata() {
    let target = Target::GFX950;
    let ir = text(&kernel(target), target, Level::LlvmIr);
    has(
        &ir,
        &[
            "\"amdgpu-flat-work-group-size\"=\"512,512\"",
            "\"amdgpu-waves-per-eu\"=\"3\"",
            "!{i32 64, i32 4, i32 2}",
            "range(i32 0, 64) i32 @llvm.amdgcn.workitem.id.x()",
            "range(i32 0, 4) i32 @llvm.amdgcn.workitem.id.y()",
            "range(i32 0, 7) i32 @llvm.amdgcn.workgroup.id.z()",
        ],
    );
    let asm = text(&kernel(target), target, Level::Asm);
    has(&asm, &[".max_flat_workgroup_size: 512", ".kernarg_segment_align: 8", "wavefront_size: 64"]);
    let wide = kernel_with(target, Launch { waves_per_eu: Some(8), ..launch() }, params(), body);
    has(&text(&wide, target, Level::LlvmIr), &["\"amdgpu-waves-per-eu\"=\"8\""]);
}

#[test]
fn amd_kernel_arguments_lie_where_the_abi_says() {
    let target = Target::GFX950;
    let k = kernel(target);
    let asm = text(&k, target, Level::Asm);
    let (offsets, size) = k.abi_layout();
    let metadata = asm.split("amdhsa.kernels").nth(1).expect("metadata");
    let field = |name: &str| -> Vec<u32> {
        metadata
            .lines()
            .filter_map(|l| l.trim().trim_start_matches("- ").strip_prefix(name))
            .map(|v| v.trim().parse().expect("a number"))
            .collect()
    };
    assert_eq!(field(".offset:"), offsets);
    assert_eq!(field(".size:"), k.params.iter().map(|p| p.kind.abi_bytes()).collect::<Vec<_>>());
    assert_eq!(field(".kernarg_segment_size:"), [size]);
    lacks(metadata, &["hidden_"]);
}

#[test]
fn nvidia_launch_hints_reach_the_ptx() {
    let target = Target::SM_90;
    let ir = text(&kernel(target), target, Level::LlvmIr);
    has(
        &ir,
        &[
            "\"nvvm.reqntid\"=\"64,4,2\"",
            "\"nvvm.maxnreg\"=\"96\"",
            "range(i32 0, 64) i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
            "range(i32 0, 7) i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()",
        ],
    );
    let ptx = text(&kernel(target), target, Level::Asm);
    has(
        &ptx,
        &[
            ".target sm_90\n",
            ".visible .entry k(",
            ".reqntid 64, 4, 2",
            ".maxnreg 96",
            ".param .u64 .ptr .global .align 16",
        ],
    );
}

#[test]
fn without_hints_none_are_emitted() {
    for target in Target::MAIN {
        let k = kernel_with(target, Launch::linear(1, 64), params(), body);
        let ir = text(&k, target, Level::LlvmIr);
        lacks(&ir, &["waves-per-eu", "maxnreg"]);
        lacks(&text(&k, target, Level::Asm), &[".maxnreg"]);
    }
}

/// Operation numbers of a kernel, nested ones too.
fn numbers(k: &Kernel) -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    k.walk(&mut |inst: &ir::Inst| {
        all.insert(u64::from(inst.number.0));
    });
    all
}

#[test]
fn the_line_table_of_a_code_object_maps_code_to_operations() {
    let k = kernel(Target::GFX950);
    let artifact = compile(&k, Target::GFX950, &Options::default()).unwrap();
    let elf = object::File::parse(&*artifact.code).unwrap();
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let data = elf.section_by_name(id.name()).map(|s| s.data().unwrap()).unwrap_or_default();
        Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(load).unwrap();
    let mut units = dwarf.units();
    let header = units.next().unwrap().expect("one unit");
    let unit = dwarf.unit(header).unwrap();
    let program = unit.line_program.clone().expect("a line program");
    let mut lines = BTreeSet::new();
    let mut rows = program.rows();
    while let Some((header, row)) = rows.next_row().unwrap() {
        if row.end_sequence() {
            continue;
        }
        let file = row.file(header).expect("a file");
        let name = dwarf.attr_string(&unit, file.path_name()).unwrap();
        assert_eq!(name.to_string_lossy(), "k.kir");
        lines.extend(row.line().map(|l| l.get()));
    }
    let all = numbers(&k);
    assert!(lines.is_subset(&all), "{lines:?} are not all among {all:?}");
    // Every store has code of its own.
    let mut stores = BTreeSet::new();
    k.walk(&mut |i| {
        if matches!(i.op, ir::Op::BufferStore { .. }) {
            stores.insert(u64::from(i.number.0));
        }
    });
    assert!(stores.len() == 2 && stores.is_subset(&lines), "{stores:?} {lines:?}");
}

#[test]
fn the_line_table_of_ptx_does_not_make_it_a_debug_build() {
    let k = kernel(Target::SM_90);
    let ptx = text(&k, Target::SM_90, Level::Asm);
    has(&ptx, &[".file\t1 \"k.kir\""]);
    lacks(&ptx, &[", debug", ".debug_info"]);
    assert!(count(&ptx, ".loc\t1 ") > 5, "{ptx}");
}
