//! Matrix products: every shape of every chip, in its instructions.

use std::fmt::Write as _;

use lathe_dsl::ir::{Kernel, Scalar, Type, parse};
use lathe_dsl::mma::{Fragments, MmaShape, MmaType, plain, scaled};
use lathe_dsl::numerics::Narrow;
use lathe_dsl::{Arch, Target};

use super::{count, has, text};
use crate::{Level, Options, compile, listing};

const TYPES: [MmaType; 10] = [
    MmaType::F16,
    MmaType::Bf16,
    MmaType::I8,
    MmaType::Narrow(Narrow::E4m3),
    MmaType::Narrow(Narrow::E5m2),
    MmaType::Narrow(Narrow::E4m3Fnuz),
    MmaType::Narrow(Narrow::E5m2Fnuz),
    MmaType::Narrow(Narrow::E2m3),
    MmaType::Narrow(Narrow::E3m2),
    MmaType::Narrow(Narrow::E2m1),
];

/// Kernel IR of a kernel of one wave: every lane loads its registers of these types, one behind the other, from `x`, and
/// stores those of the result to `y`.
fn program(target: Target, operands: &[Type], result: Type, op: &str, attributes: &str) -> String {
    let wave = target.chip().wave;
    let words = |t: &Type| t.lanes() * t.scalar().bits() / 32;
    let (reads, writes) = (operands.iter().map(words).sum::<u32>(), words(&result));
    let mut text = format!(
        "kernel_ir 2\nkernel @k wave {wave} grid 1x1x1 block {wave}x1x1 {{\n  param %x x: buffer<u32> len {} read align 16\n  \
         param %y y: buffer<u32> len {} write align 16\n  %lane: u32 = thread_id x\n  %reads: u32 = const {reads}\n  \
         %writes: u32 = const {writes}\n  %from: u32 = mul %lane, %reads\n  %to: u32 = mul %lane, %writes\n",
        wave * reads,
        wave * writes
    );
    let mut line = |l: String| writeln!(text, "  {l}").unwrap();
    let mut at = 0;
    for (i, ty) in operands.iter().enumerate() {
        let mut names = vec![];
        for _ in 0..words(ty) {
            line(format!("%n{at}: u32 = const {at}"));
            line(format!("%p{at}: u32 = add %from, %n{at}"));
            line(format!("%w{at}: u32 = buffer_load %x, %p{at}"));
            names.push(format!("%w{at}"));
            at += 1;
        }
        let (n, source) = (names.len(), names.join(", "));
        match ty {
            Type::Scalar(_) => line(format!("%a{i}: u32 = bitcast {source}")),
            _ if n == 1 => line(format!("%a{i}: {ty} = bitcast {source}")),
            _ => {
                line(format!("%v{i}: u32x{n} = vector [{source}]"));
                line(format!("%a{i}: {ty} = bitcast %v{i}"));
            }
        }
    }
    let names: Vec<String> = (0..operands.len()).map(|i| format!("%a{i}")).collect();
    line(format!("%d: {result} = {op} {} {attributes}", names.join(", ")));
    line(format!("%r: u32x{writes} = bitcast %d"));
    for i in 0..writes {
        line(format!("%o{i}: u32 = const {i}"));
        line(format!("%q{i}: u32 = add %to, %o{i}"));
        line(format!("%e{i}: u32 = extract %r, {i}"));
        line(format!("buffer_store %e{i}, %y, %q{i}"));
    }
    text + "}\n"
}

fn read(text: &str) -> Kernel {
    parse(text, "k.kir").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn product(target: Target, shape: MmaShape, a: MmaType, b: MmaType) -> Result<String, String> {
    let fragments = Fragments::of(target);
    let tiles = plain(fragments, shape, a, b)?;
    let sum = Type::Vector(a.sum(), tiles.c.elements());
    let operands = [a.registers(tiles.a.elements()), b.registers(tiles.b.elements()), sum];
    let attributes = format!("shape={shape} a_type={a} b_type={b} fragments={fragments}");
    Ok(program(target, &operands, sum, "mma", &attributes))
}

const SCALED: [Narrow; 5] = [Narrow::E4m3, Narrow::E5m2, Narrow::E2m3, Narrow::E3m2, Narrow::E2m1];

fn scaled_product(target: Target, [a, b]: [Narrow; 2], [a_byte, b_byte]: [u32; 2]) -> String {
    let fragments = Fragments::of(target);
    let all = scaled(fragments, a, b).unwrap();
    let registers = |ty, n| MmaType::Narrow(ty).registers(n);
    let sum = Type::Vector(Scalar::F32, all.tiles.c.elements());
    let scale = if all.scale_a.elements() == 1 { Type::U32 } else { Type::Vector(Scalar::U32, 2) };
    let operands = [registers(a, all.tiles.a.elements()), registers(b, all.tiles.b.elements()), sum, scale, scale];
    let attributes = format!("a_type={a} b_type={b} a_byte={a_byte} b_byte={b_byte} fragments={fragments}");
    program(target, &operands, sum, "mfma_scaled", &attributes)
}

/// What an instruction is called where it is one: the name as assembly has it.
fn native(target: Target, MmaShape { m, n, k }: MmaShape, a: MmaType, b: MmaType) -> String {
    let fp8 = |t: MmaType| if t.name().starts_with("e4m3") { "fp8" } else { "bf8" };
    match (target.chip().arch, a) {
        (Arch::Nvptx, MmaType::I8) => format!("mma.sync.aligned.m16n8k{k}.row.col.s32.s8.s8.s32"),
        (Arch::Nvptx, _) => format!("mma.sync.aligned.m16n8k{k}.row.col.f32.{a}.{b}.f32"),
        (_, MmaType::I8) if target == Target::GFX1201 => "v_wmma_i32_16x16x16_iu8".into(),
        (_, MmaType::F16 | MmaType::Bf16) if target == Target::GFX1201 => format!("v_wmma_f32_16x16x16_{a}"),
        _ if target == Target::GFX1201 => format!("v_wmma_f32_16x16x16_{}_{}", fp8(a), fp8(b)),
        (_, MmaType::I8) => format!("v_mfma_i32_{m}x{n}x{k}_i8"),
        (_, MmaType::F16 | MmaType::Bf16) => format!("v_mfma_f32_{m}x{n}x{k}_{a}"),
        _ => format!("v_mfma_f32_{m}x{n}x{k}_{}_{}", fp8(a), fp8(b)),
    }
}

#[test]
fn every_product_of_every_chip_is_its_instruction() {
    let mut products = 0;
    for target in Target::all() {
        let pairs = TYPES.iter().flat_map(|a| TYPES.iter().map(move |b| (*a, *b)));
        for (a, b) in pairs {
            for (m, n) in [(16, 8), (16, 16), (32, 32)] {
                for k in [8, 16, 32, 64] {
                    let shape = MmaShape::new(m, n, k);
                    let Ok(kernel) = product(target, shape, a, b) else { continue };
                    products += 1;
                    let asm = text(&read(&kernel), target, Level::Asm);
                    let what = format!("{target} {shape} {a} {b}");
                    let (name, times) = match target.chip().arch {
                        // Two of what the chip has make one, where that is not the chip's own.
                        Arch::Amdgpu if n == 8 && target == Target::GFX1201 => {
                            ("v_wmma_f32_16x16x16_fp8_fp8".to_owned(), 2)
                        }
                        Arch::Amdgpu if n == 8 => ("v_mfma_f32_16x16x32_fp8_fp8".to_owned(), 2),
                        Arch::Nvptx if a.bits() == 8 && a != MmaType::I8 && target != Target::SM_90 => {
                            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32".to_owned(), 2)
                        }
                        _ => (native(target, shape, a, b), 1),
                    };
                    let mnemonic = |l: &&str| {
                        let first = l.split_whitespace().next().unwrap_or_default();
                        // An encoding's suffix.
                        first.strip_suffix("_e64").unwrap_or(first) == name
                    };
                    assert_eq!(asm.lines().filter(mnemonic).count(), times, "{what}: {name} in\n{asm}");
                    let all =
                        asm.lines().filter(|l| l.contains("mfma_") || l.contains("wmma_") || l.contains("mma.sync"));
                    assert_eq!(all.count(), times, "{what}: other products in\n{asm}");
                }
            }
        }
    }
    // By chip, as the table of shapes has them.
    assert_eq!(products, 21 + 15 + 8 + 3 * 10);
}

#[test]
fn a_kernel_asks_for_no_later_ptx_than_it_needs() {
    let e4m3 = MmaType::Narrow(Narrow::E4m3);
    for (target, shape, ty, version) in [
        (Target::SM_90, MmaShape::new(16, 8, 16), MmaType::F16, "7.8"),
        (Target::SM_90, MmaShape::new(16, 8, 32), MmaType::I8, "7.8"),
        (Target::SM_90, MmaShape::new(16, 8, 32), e4m3, "8.4"),
        (Target::SM_89, MmaShape::new(16, 8, 16), MmaType::Bf16, "7.8"),
        (Target::SM_89, MmaShape::new(16, 8, 32), e4m3, "8.1"),
        (Target::SM_120A, MmaShape::new(16, 8, 32), e4m3, "8.7"),
    ] {
        let asm = text(&read(&product(target, shape, ty, ty).unwrap()), target, Level::Asm);
        has(&asm, &[&format!(".version {version}\n")]);
    }
}

#[test]
fn a_product_between_branches_on_one_condition_is_not_drawn_into_their_arms() {
    for target in Target::all() {
        let shape = MmaShape::new(16, if target.chip().arch == Arch::Nvptx { 8 } else { 16 }, 16);
        let kernel = product(target, shape, MmaType::F16, MmaType::F16).unwrap();
        let (before, after) = kernel.split_at(kernel.find("  %d: ").unwrap());
        let product = after.lines().next().unwrap();
        let before = before.replacen("  %lane", "  param %address address: u64\n  %lane", 1);
        let arm = "if %low {\n  buffer_store %few, %y, %lane\n  } { }";
        let kernel = read(&format!(
            "{before}  %few: u32 = const 7\n  %low: bool = cmp_lt %lane, %few\n  %p: global<f32> = int_to_ptr %address\n  {arm}\n{product}\n  \
             %one: f32 = extract %d, 0\n  ptr_store %one, %p\n  {arm}\n}}\n"
        ));
        let asm = text(&kernel, target, Level::Asm);
        let products: Vec<usize> = ["mfma_f32", "wmma_f32", "mma.sync"].map(|m| count(&asm, m)).into();
        assert_eq!(products.iter().sum::<usize>(), 1, "{target}:\n{asm}");
    }
}

#[test]
fn every_scaled_product_of_every_chip_is_products_of_the_chip() {
    for target in Target::all() {
        for (a, b) in SCALED.iter().flat_map(|a| SCALED.iter().map(move |b| (*a, *b))) {
            let asm = text(&read(&scaled_product(target, [a, b], [1, 2])), target, Level::Asm);
            let what = format!("{target} {a} {b}:\n{asm}");
            let fp4 = [a, b] == [Narrow::E2m1; 2];
            // Formats as fp8 of gfx1201 that has room for their fractions.
            let like = |f| if matches!(f, Narrow::E4m3 | Narrow::E2m3) { "fp8" } else { "bf8" };
            let (name, times) = match target.chip().name {
                "gfx950" => ("v_mfma_scale_f32_16x16x128_f8f6f4".to_owned(), 1),
                "gfx942" => ("v_mfma_f32_16x16x16_f16".to_owned(), 8),
                "gfx1201" => (format!("v_wmma_f32_16x16x16_{}_{}", like(a), like(b)), 8),
                "sm_120a" if fp4 => ("kind::mxf4.block_scale.scale_vec::2X".to_owned(), 4),
                "sm_120a" => (format!("scale_vec::1X.f32.{a}.{b}.f32.ue8m0"), 8),
                _ => ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32".to_owned(), 16),
            };
            assert_eq!(count(&asm, &name), times, "{name} {what}");
            let all = asm.lines().filter(|l| ["v_mfma_", "v_wmma_", "mma.sync"].iter().any(|m| l.contains(m)));
            assert_eq!(all.count(), times, "other products {what}");
        }
    }
}
#[test]
fn scales_come_from_the_byte_that_is_named() {
    for (a_byte, b_byte) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
        let source = scaled_product(Target::GFX950, [Narrow::E2m1, Narrow::E3m2], [a_byte, b_byte]);
        let artifact = compile(&read(&source), Target::GFX950, &Options::default()).unwrap();
        // Read back from the object: encoders have had these bits wrong.
        let lines = listing(&artifact).unwrap();
        let product = lines.iter().find(|l| l.contains("mfma_scale")).unwrap();
        // Bit 0 of either byte is in `op_sel`, bit 1 in `op_sel_hi`.
        let low = match (a_byte & 1, b_byte & 1) {
            (0, 0) => String::new(),
            (a, b) => format!(" op_sel:[{a},{b},0]"),
        };
        let wanted = format!("{low} op_sel_hi:[{},{},0] cbsz:4 blgp:3", a_byte >> 1, b_byte >> 1);
        assert!(product.ends_with(&wanted), "{a_byte} {b_byte}: {wanted} is not in {product}");
        assert!(product.contains("op_sel:") != low.is_empty(), "{product}");
    }
}

#[test]
fn scales_that_are_constants_are_scales() {
    for scale in [0, 127] {
        let source = scaled_product(Target::GFX950, [Narrow::E2m1; 2], [0, 0]);
        let source: String = source
            .lines()
            .map(|line| match line.trim_start().split_once(": u32 = bitcast") {
                Some((name, _)) => format!("{name}: u32 = const {scale}\n"),
                None => format!("{line}\n"),
            })
            .collect();
        let asm = text(&read(&source), Target::GFX950, Level::Asm);
        // LLVM makes a product without scales of two zeros, and the chip takes no constants.
        let product = asm.lines().find(|l| l.contains("mfma_scale")).unwrap_or_else(|| panic!("{asm}"));
        let operands: Vec<&str> = product.split(", ").skip(4).collect();
        assert!(operands.len() == 2 && operands.iter().all(|o| o.starts_with('v')), "{product}");
    }
}

#[test]
fn what_a_product_costs_beside_its_products() {
    // Instructions of a whole kernel, on AMD vector ones, without products and memory; the test's own are fewer than ten.
    let cost = |source: &str, target| {
        let artifact = compile(&read(source), target, &Options::default()).unwrap();
        let own = ["mfma", "wmma", "mma.", "nop", "buffer_", "ld.", "st."];
        let vector = |l: &&String| match target.chip().arch {
            Arch::Amdgpu => l.starts_with("v_") || l.starts_with("ds_"),
            Arch::Nvptx => !l.starts_with('.') && !l.starts_with("mov"),
        };
        listing(&artifact).unwrap().iter().filter(vector).filter(|l| !own.iter().any(|o| l.contains(o))).count()
    };
    let e4m3 = MmaType::Narrow(Narrow::E4m3);
    for (target, most) in [(Target::GFX950, 37), (Target::GFX942, 89), (Target::GFX1201, 4)] {
        let n = cost(&product(target, MmaShape::new(16, 8, 32), e4m3, e4m3).unwrap(), target);
        assert!(n <= most, "{target}: {n}");
    }
    // What is done to factors is done once for all products that have them in common; a NaN of A is added to each one's sums.
    let once = product(Target::GFX950, MmaShape::new(16, 8, 32), e4m3, e4m3).unwrap();
    let line = once.lines().find(|l| l.contains("%d: ")).unwrap();
    let twice = format!("{}\n{}", line.replace("%d:", "%d1:"), line.replace("%a2", "%d1"));
    assert_eq!(cost(&once.replace(line, &twice), Target::GFX950), cost(&once, Target::GFX950) + 2);
    for (target, formats, most) in [
        (Target::GFX950, [Narrow::E2m1; 2], 2),
        (Target::GFX942, [Narrow::E2m1; 2], 256),
        (Target::GFX942, [Narrow::E4m3; 2], 352),
        (Target::GFX1201, [Narrow::E2m1; 2], 374),
        (Target::GFX1201, [Narrow::E4m3; 2], 187),
        (Target::SM_90, [Narrow::E2m1; 2], 660),
        (Target::SM_90, [Narrow::E4m3; 2], 452),
        (Target::SM_120A, [Narrow::E2m1; 2], 24),
        (Target::SM_120A, [Narrow::E2m3, Narrow::E4m3], 160),
    ] {
        let n = cost(&scaled_product(target, formats, [0, 3]), target);
        assert!(n <= most, "{target} {formats:?}: {n}");
    }
}
