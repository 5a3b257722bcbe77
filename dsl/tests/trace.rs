//! What tracing records.

use lathe_dsl::builder::build;
use lathe_dsl::ir::{Kernel, Op};
use lathe_dsl::prelude::*;
use lathe_dsl::verify::verify;

fn kernel(f: impl for<'k> FnOnce(&'k Builder<'k>)) -> Kernel {
    let kernel = build("k", Target::GFX950, Launch::linear(2, 64), vec![], f).unwrap();
    verify(&kernel, Target::GFX950).unwrap();
    kernel
}

fn body(k: &Kernel) -> String {
    let text = k.to_string();
    let lines: Vec<&str> = text.lines().skip(2).collect();
    lines[..lines.len() - 1].join("\n")
}

#[test]
fn a_constant_stands_once_at_the_head_wherever_it_is_used() {
    let k = kernel(|k| {
        k.if_(k.thread_id(Axis::X).lt(7), || {
            let _ = k.block_id(Axis::X) + 7;
        });
    });
    assert_eq!(
        body(&k),
        "  %0: u32 = const 7\n  %1: u32 = thread_id x\n  %2: bool = cmp_lt %1, %0\n  if %2 {\n    %3: u32 = block_id x\n    \
         %4: u32 = add %3, %0\n  } {\n  }"
    );
}

#[test]
fn loops_carry_values_of_any_shape() {
    let k = kernel(|k| {
        let start = (k.constant(0.5f32), [k.constant(1u32), k.constant(2)]);
        let (sum, [a, _]) = k.for_range(k.block_id(Axis::X), 10, 3, start, |i, (sum, [a, b])| (sum + 1.0, [b, a + i]));
        let _ = (sum + sum, a + a);
    });
    assert_eq!(
        body(&k),
        "  %0: f32 = const 0.5\n  %1: u32 = const 1\n  %2: u32 = const 2\n  %3: u32 = const 10\n  %4: f32 = const 1.0\n  \
         %5: u32 = block_id x\n  %12: f32, %13: u32, %14: u32 = for %5, %3, [%0, %1, %2] step=3 {\n    \
         (%6: u32, %7: f32, %8: u32, %9: u32)\n    %10: f32 = add %7, %4\n    %11: u32 = add %8, %6\n    yield %10, %9, %11\n  }\n  %15: f32 = add \
         %12, %12\n  %16: u32 = add %13, %13"
    );
}

#[test]
fn both_sides_of_a_branch_hand_out_values() {
    let k = kernel(|k| {
        let x = k.thread_id(Axis::X);
        let y = k.if_else(x.lt(3), || x + 1, || x - 1);
        let _ = y * 2;
    });
    let mut branches = 0;
    k.walk(&mut |inst| {
        if let Op::If { then, otherwise, .. } = &inst.op {
            branches += 1;
            assert_eq!((then.yields.len(), otherwise.yields.len(), inst.results.len()), (1, 1, 1));
        }
    });
    assert_eq!(branches, 1);
}

#[test]
fn every_operation_knows_the_authors_line() {
    let first = line!() + 2;
    let k = kernel(|k| {
        let x = k.thread_id(Axis::X);
        let y = x.maximum(3);
        let _ = -(y.to::<f32>() / 2.0).hw_exp2();
    });
    let mut lines = vec![];
    k.walk(&mut |inst| {
        let at = k.location(inst.number);
        assert_eq!(at.file, file!());
        lines.push(at.line - first);
    });
    // Two constants at the head, then the operations in order.
    assert_eq!(lines, [1, 2, 0, 1, 2, 2, 2, 2]);
}

#[test]
fn where_a_kernel_is_written_does_not_matter() {
    let here = kernel(|k| k.if_(k.block_id(Axis::X).eq(1), || k.barrier()));
    let there = kernel(|k| {
        // A comment, another line.
        let one = k.block_id(Axis::X).eq(1);
        k.if_(one, || k.barrier());
    });
    assert_eq!(here, there);
    assert_eq!(here.to_string(), there.to_string());
    assert_ne!(here.locations, there.locations);
}

#[test]
fn numbers_print_so_that_they_read_back() {
    let k = kernel(|k| {
        let _ = (k.constant(0.1f32), k.constant(f32::NAN), k.constant(-0.0f32), k.constant(-7i32));
        let _ = (k.constant(f32::NEG_INFINITY), k.constant(bf16::from_f32(1.5)), k.constant(true), k.constant(-1i64));
    });
    let text = body(&k);
    for wanted in
        ["const 0.1", "0x7fc00000", "const -0.0", "const -7", "0xff800000", "0x3fc0", "const true", "const -1"]
    {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
}

#[test]
fn words_pack_and_unpack_bf16() {
    let k = kernel(|k| {
        let w = k.bf16_pair(k.constant(1.0), k.constant(2.0));
        let _ = (w.bf_lo(), w.bf_hi());
    });
    let text = body(&k);
    assert!(text.contains("bf16x2 = convert"), "{text}");
    assert!(text.contains("u32 = bitcast"), "{text}");
}

#[test]
fn a_kernel_survives_being_written_and_read() {
    let k = kernel(|k| {
        let lds = k.lds::<f32>("rows", 64);
        k.if_(k.thread_id(Axis::X).lt(7), || k.ptr_store(k.constant(f32::NAN), lds + k.thread_id(Axis::X)));
        k.barrier();
        k.for_range(0, 4, 1, k.constant(1.0f32), |_, x| x * x);
    });
    let text = serde_json::to_string(&k).unwrap();
    let back: Kernel = serde_json::from_str(&text).unwrap();
    assert_eq!((&back, &back.locations), (&k, &k.locations));
    assert_eq!(back.to_string(), k.to_string());
    let again: Kernel = serde_json::from_str(&text).unwrap();
    assert!(std::ptr::eq(again.lds[0].name, back.lds[0].name), "a name is kept once");
}
