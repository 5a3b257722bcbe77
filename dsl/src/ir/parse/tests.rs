//! Reading gives back what was printed, and whatever is read ends in a kernel or in an error.

mod samples;

use std::collections::BTreeSet;

use super::parse;
use crate::ir::{
    Access, Bits, Block, Coordinates, FastFlags, FastMath, Filter, ImageType, Inst, Kernel, Launch, LdsArray, Location,
    Op, OpNumber, Param, ParamKind, Scalar, Type, Value, def::Family,
};
use crate::target::Target;
use crate::verify;

/// A kernel under construction whose operations need not make sense.
struct Sketch(Kernel);

impl Sketch {
    /// With four scalars of type `u32` as parameters.
    fn new() -> Self {
        let params = ["a", "b", "c", "d"].map(|name| Param { name, kind: ParamKind::Scalar(Scalar::U32) });
        Self(Kernel {
            name: "sketch".to_owned(),
            wave: 64,
            launch: Launch::linear(1, 64),
            fast_math: FastMath::STRICT,
            values: params.iter().map(Param::ty).collect(),
            params: params.into(),
            lds: vec![],
            body: Block::default(),
            locations: vec![],
        })
    }

    fn value(&mut self, ty: Type) -> Value {
        self.0.values.push(ty);
        Value(self.0.values.len() as u32 - 1)
    }

    fn inst(&mut self, op: Op, results: &[Type]) -> Inst {
        self.0.locations.push(Location { file: "sketch", line: 1, column: 1 });
        let number = OpNumber(self.0.locations.len() as u32);
        Inst { number, op, results: results.iter().map(|t| self.value(*t)).collect() }
    }

    fn push(&mut self, op: Op, results: &[Type]) {
        let inst = self.inst(op, results);
        self.0.body.insts.push(inst);
    }
}

/// Printed, read and printed again.
#[track_caller]
fn round_trip(kernel: Kernel) -> String {
    let kernel = kernel.normalised();
    let text = kernel.to_string();
    let read = parse(&text, "round_trip.kir").unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(read.to_string(), text);
    assert_eq!(read, kernel, "{text}");
    text
}

/// Every operation, with every attribute at each of its values.
fn everything() -> Kernel {
    let mut sketch = Sketch::new();
    for (op, results) in samples::all(&mut sketch) {
        sketch.push(op, &results);
    }
    sketch.0
}

/// Every operation at least once, as text.
fn one_of_each() -> String {
    let mut sketch = Sketch::new();
    let all = samples::all(&mut sketch);
    for (i, (op, results)) in all.iter().enumerate() {
        let next = all.get(i + 1).map(|(next, _)| next.def().name);
        // The last one of its kind has the most attributes.
        if next != Some(op.def().name) || !op.blocks().is_empty() {
            sketch.push(op.clone(), results);
        }
    }
    sketch.0.normalised().to_string()
}

#[test]
fn every_operation_round_trips_in_all_its_forms() {
    let kernel = everything();
    let mut seen = BTreeSet::new();
    kernel.walk(&mut |inst| {
        seen.insert(inst.op.def().name);
    });
    let all: BTreeSet<&str> = Op::all_defs().iter().map(|d| d.name).collect();
    assert_eq!(seen, all);
    let text = round_trip(kernel);
    for part in [" scalar=%2", " fill=%1", " order=seq_cst scope=wave", " mask=\"0 7 4294967295\"", " likely=true"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn names_are_mnemonics_once() {
    let all = Op::all_defs();
    assert_eq!(all.iter().map(|d| d.name).collect::<BTreeSet<_>>().len(), all.len());
}

#[test]
fn constants_of_every_type_round_trip() {
    let mut sketch = Sketch::new();
    for scalar in Scalar::ALL.iter().copied() {
        let mask = u64::MAX >> (64 - scalar.bits());
        let top = 1u64 << (scalar.bits() - 1);
        let mut bits = vec![0, 1, 2, 5, top, top - 1, top | 1, mask, mask - 1, mask / 3];
        match scalar {
            Scalar::F32 => bits.extend([0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0x7F80_0001, 0xFFC1_2345, 0x3F80_0000]),
            Scalar::F64 => bits.extend([0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 0x7FF0_0000_0000_0001, 0x3FF0 << 48]),
            Scalar::F16 => bits.extend([0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x3C00]),
            Scalar::Bf16 => bits.extend([0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0x3F80]),
            _ => {}
        }
        for b in bits {
            for ty in [Type::Scalar(scalar), Type::Vector(scalar, 4)] {
                sketch.push(Op::Const(Bits(b & mask)), &[ty]);
            }
        }
    }
    let text = round_trip(sketch.0);
    for part in
        ["f32 = const -0.0", "f32 = const 1e-45", "f32 = const 0xffc12345", "i8 = const -128", "idxx4 = const -1"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn random_floats_round_trip() {
    let mut sketch = Sketch::new();
    let mut random = Random(7);
    for _ in 0..2000 {
        let bits = random.next();
        sketch.push(Op::Const(Bits(bits >> 32)), &[Type::Scalar(Scalar::F32)]);
        sketch.push(Op::Const(Bits(bits)), &[Type::Scalar(Scalar::F64)]);
    }
    round_trip(sketch.0);
}

#[test]
fn the_whole_header_round_trips() {
    let mut sketch = Sketch::new();
    let kernel = &mut sketch.0;
    kernel.wave = 32;
    kernel.launch = Launch { grid: [u32::MAX, 2, 3], block: [4, 5, 6], waves_per_eu: Some(3), maxnreg: Some(168) };
    kernel.fast_math = FastMath::STRICT
        .allow(Family::Arith, FastFlags::REASSOC | FastFlags::CONTRACT)
        .allow(Family::Math, FastFlags::FAST)
        .flush();
    for (name, scalar, access) in [
        ("x", Scalar::F16, Access::Read),
        ("a b", Scalar::Bf16, Access::Write),
        ("\"\\\n\u{1}ü", Scalar::I8, Access::ReadWrite),
        ("", Scalar::U8, Access::Read),
        ("0", Scalar::U8, Access::Read),
    ] {
        kernel.values.push(Type::Buffer(scalar));
        kernel.params.push(Param { name, kind: ParamKind::Buffer { elem: scalar, len: u64::MAX, access, align: 16 } });
        kernel.lds.push(LdsArray { name, elem: scalar, len: u32::MAX, align: 1 });
    }
    for (name, elem, [width, height]) in [("t", Scalar::F16, [1, u32::MAX]), ("u", Scalar::F32, [3, 4])] {
        let image = ImageType { elem, width, height };
        for filter in Filter::ALL.iter().copied() {
            for coordinates in Coordinates::ALL.iter().copied() {
                kernel.values.push(Type::Texture(elem));
                kernel.params.push(Param { name, kind: ParamKind::Texture { image, filter, coordinates } });
            }
        }
        kernel.values.push(Type::Surface(elem));
        kernel.params.push(Param { name, kind: ParamKind::Surface(image) });
    }
    let text = round_trip(sketch.0);
    for part in [
        "kernel_ir 2\nkernel @sketch wave 32 grid 4294967295x2x3 block 4x5x6 waves_per_eu 3 maxnreg 168 \
         fast_arith reassoc|contract fast_math reassoc|nnan|ninf|nsz|arcp|contract|afn flush_subnormals {\n",
        "param %6 \"\\\"\\\\\\n\\u{1}ü\": buffer<i8> len 18446744073709551615 read_write align 16\n",
        "lds #1 \"a b\": bf16 len 4294967295 align 1\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let every = FastMath::STRICT.allow_all(FastFlags::AFN);
    round_trip(Kernel { fast_math: every, ..Sketch::new().0 });
}

const SMALL: &str = "
kernel_ir 2 ; a comment
kernel @k grid 1x1x1 wave 64 block 64x1x1 {
  param %x x: buffer<u32> len 64 read_write align 4
  param %8 n: u32
  %i: u32 = thread_id x
  %cond: bool = cmp_lt %i, %8
  %sum.1: u32 = if %cond {
    %one: u32 = const 1     ; another
    %s: u32 = add %i, %one  yield %s
  } { yield %i }
  %2: u32 = for %i, %8, [%sum.1] unroll=never step=0x2 { (%0: u32, %acc: u32) yield %acc }
  buffer_store %2, %x, %i coherence=device unit=bytes
}";

/// [`SMALL`] as it is printed.
const PRINTED: &str = "kernel_ir 2
kernel @k wave 64 grid 1x1x1 block 64x1x1 {
  param %0 x: buffer<u32> len 64 read_write align 4
  param %1 n: u32
  %2: u32 = thread_id x
  %3: bool = cmp_lt %2, %1
  %6: u32 = if %3 {
    %4: u32 = const 1
    %5: u32 = add %2, %4
    yield %5
  } {
    yield %2
  }
  %9: u32 = for %2, %1, [%6] step=2 unroll=never {
    (%7: u32, %8: u32)
    yield %8
  }
  buffer_store %9, %0, %2 unit=bytes coherence=device
}
";

#[test]
fn names_blanks_comments_and_the_order_of_attributes_are_free() {
    let kernel = parse(SMALL, "small.kir").unwrap();
    assert_eq!(kernel.to_string(), PRINTED);
    verify::verify(&kernel, Target::GFX950).unwrap();
    let lines: Vec<(u32, u32)> = kernel.locations.iter().map(|l| (l.line, l.column)).collect();
    assert_eq!(lines, [(6, 3), (7, 3), (8, 3), (9, 5), (10, 5), (12, 3), (13, 3)]);
    assert!(kernel.locations.iter().all(|l| l.file == "small.kir"));
}

#[test]
fn a_refusal_points_into_the_text() {
    let kernel = parse(&SMALL.replace("add %i, %one", "add %i, %cond"), "small.kir").unwrap();
    let refusal = verify::verify(&kernel, Target::GFX950).unwrap_err();
    assert!(refusal.to_string().starts_with("small.kir:10:5: "), "{refusal}");
    // A name that is defined in another region is known to the reader, but not to the verifier.
    let kernel = parse(&SMALL.replace("yield %i }", "yield %one }"), "small.kir").unwrap();
    let refusal = verify::verify(&kernel, Target::GFX950).unwrap_err();
    assert!(refusal.to_string().contains("outside the region"), "{refusal}");
}

#[test]
fn errors_say_where_what_and_what_else() {
    let cases = [
        (
            "kernel_ir 2",
            "kernel_ir 1",
            "2:1: found `kernel_ir 1` where `kernel_ir 2`, the one version that is known, is wanted",
        ),
        ("kernel_ir 2", "kernel_ir", "2:1: found `kernel_ir kernel` where"),
        ("kernel_ir 2", "", "3:1: found `kernel` where `kernel_ir 2`"),
        ("@k", "k", "3:8: found `k` where `@` is wanted"),
        ("grid 1x1x1", "grid 1x1", "3:16: found `1x1` where an extent"),
        ("grid 1x1x1", "grid 1x1x99999999999", "3:16: found `1x1x99999999999` where an extent"),
        ("grid 1x1x1", "", "3:33: found `{` where `grid` is wanted"),
        ("wave 64", "wave 64 wave 64", "3:30: found `wave` where what is not said yet is wanted"),
        ("wave 64", "wave many", "found `many` where lanes of a wave is wanted"),
        ("wave 64", "waves 64", "found `waves` where wave, grid, block,"),
        ("wave 64", "wave 64 fast_arith slow", "found `slow` where a fast-math flag is wanted"),
        ("wave 64", "wave 64 fast_logic nnan", "found `fast_logic` where wave,"),
        ("read_write", "reads", "4:34: found `reads` where one of read, write, read_write is wanted"),
        ("align 4", "align -4", "found `-4` where an alignment"),
        ("n: u32", "n: u32x4", "5:15: found `u32x4` where a scalar, buffer or image type is wanted"),
        ("%i: u32 =", "%i: u33 =", "6:7: found `u33` where a type is wanted"),
        ("%i: u32 =", "%i: u32x99999999999 =", "6:7: found `u32x99999999999` where a type is wanted"),
        ("%i: u32 =", "%x: u32 =", "6:3: found `%x`, which line 4 defines, where a new name is wanted"),
        ("%i: u32 =", "%i: u32", "6:11: found `thread_id` where `=` is wanted"),
        ("thread_id x", "thread_id w", "6:23: found `w` where one of x, y, z is wanted"),
        ("cmp_lt %i, %8", "cmp_lt %i %8", "7:27: found `%8` where `,` is wanted"),
        ("cmp_lt %i, %8", "cmp_lt %i, %one", "7:28: found `%one` where a value that is defined before is wanted"),
        ("cmp_lt %i, %8", "cmp_lt %i, 8", "7:28: found `8` where a value, such as %0, is wanted"),
        ("cmp_lt %i", "less %i", "7:17: found `less` where an operation, `yield` or `}` is wanted"),
        ("const 1", "const 1.0", "9:23: found `1.0` where a number of type u32 is wanted"),
        ("const 1", "const 4294967296", "9:23: found `4294967296` where a number of type u32 is wanted"),
        ("const 1", "const %i", "9:23: found `%i` where a constant of type u32 is wanted"),
        ("yield %s", "yield", "11:3: found `}` where a value, such as %0, is wanted"),
        ("yield %s", "yield %s barrier", "10:38: found `barrier` where `}` is wanted"),
        ("step=0x2", "", "12:48: found `{` where `step=` with a number is wanted"),
        (
            "step=0x2",
            "step=2 step=3",
            "12:54: found `step=` where another attribute of `for` (step=, unroll=), each once, is wanted",
        ),
        ("step=0x2", "step=%i", "12:52: found `%i` where a number is wanted"),
        ("step=0x2", "step=", "found `{` where the value of `step` is wanted"),
        ("unroll=never", "unroll=maybe", "12:41: found `maybe` where one of auto, full, never is wanted"),
        (
            "unit=bytes",
            "bytes=4",
            "found `bytes=` where another attribute of `buffer_store` (unit=, scalar=, mask=, coherence=, nontemporal=)",
        ),
        ("unit=bytes", "mask=true", "13:49: found `true` where a value, such as %0, is wanted"),
        ("yield %i }", "yield %i ", "12:3: found `%2` where `}` is wanted"),
        (
            "device unit=bytes\n}",
            "device",
            "13:43: found the end of the text where an operation, `yield` or `}` is wanted",
        ),
        ("device unit=bytes\n}", "device } kernel_ir", "13:46: found `kernel_ir` where the end of the text is wanted"),
        ("device unit", "device % unit", "13:44: found `%` where a name after it is wanted"),
        ("device unit", "device ~ unit", "13:44: found `~` where a word, number, name or mark is wanted"),
        ("device unit", "\"a\\x\" unit", "13:39: found a wrong escape where one of"),
        (
            "device unit",
            "\"a\nunit",
            "13:37: found a text in quotes without an end where `\"` on the same line is wanted",
        ),
    ];
    let mut failures = vec![];
    for (old, new, wanted) in cases {
        assert!(SMALL.contains(old), "{old}");
        let error = parse(&SMALL.replacen(old, new, 1), "small.kir").unwrap_err().to_string();
        if !error.starts_with("small.kir:") || !error.contains(wanted) {
            failures.push(format!("`{old}` -> `{new}`\n  {error}\n  {wanted}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn nesting_is_bounded() {
    let nest = |depth: usize| {
        let (open, close) = ("if %c { ".repeat(depth), "} { } ".repeat(depth));
        let text = format!(
            "kernel_ir 2 kernel @k wave 64 grid 1x1x1 block 64x1x1 {{ %i: u32 = thread_id x %c: bool = cmp_eq %i, %i {open}{close} }}"
        );
        parse(&text, "deep.kir")
    };
    verify::verify(&nest(verify::MAX_DEPTH).unwrap(), Target::GFX950).unwrap();
    for depth in [verify::MAX_DEPTH + 1, 100_000] {
        let error = nest(depth).unwrap_err();
        assert_eq!(error.wanted, "control flow nested at most 64 deep");
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
}

/// Reads a text that may be anything; what is read must print, read again and be judged by the verifier.
fn survives(text: &str) -> bool {
    let Ok(kernel) = parse(text, "mutant.kir") else { return false };
    let printed = kernel.to_string();
    assert_eq!(parse(&printed, "mutant.kir").as_ref(), Ok(&kernel), "{printed}");
    for target in Target::all() {
        let _ = verify::verify(&kernel, target);
    }
    true
}

#[test]
fn a_text_cut_anywhere_is_an_error() {
    // Every place, if the time allows.
    let step = if cfg!(debug_assertions) { 17 } else { 1 };
    for (text, step) in [(SMALL.trim_end().to_owned(), 1), (one_of_each(), step)] {
        for end in (0..text.trim_end().len()).step_by(step).filter(|i| text.is_char_boundary(*i)) {
            assert!(parse(&text[..end], "cut.kir").is_err(), "{}", &text[..end]);
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    let texts = [SMALL.to_owned(), one_of_each()];
    let mut random = Random(1);
    let mut read = 0;
    for i in 0..4000 {
        let mut bytes = texts[usize::from(i % 3 == 0)].clone().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = b"%{}()[]<>,:=|@#\"\\;-0x9ae. \n"[random.below(27)],
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[at]),
            }
        }
        read += usize::from(survives(&String::from_utf8_lossy(&bytes)));
    }
    assert!(read > 100, "{read} mutants of 4000 are kernels");
}

#[test]
fn moved_words_never_panic() {
    let text = one_of_each();
    let mut random = Random(2);
    for _ in 0..1000 {
        let mut words: Vec<&str> = if random.below(2) == 0 { SMALL } else { &text }.split(' ').collect();
        let (a, b) = (random.below(words.len()), random.below(words.len()));
        match random.below(3) {
            0 => words.swap(a, b),
            1 => words[a] = words[b],
            _ => drop(words.remove(a)),
        }
        survives(&words.join(" "));
    }
}
