//! Mistakes that tracing and the verifier refuse, each with the place of the author's call.

use lathe_dsl::builder::build;
use lathe_dsl::ir::{Access, Kernel, Param, ParamKind, Scalar};
use lathe_dsl::prelude::*;
use lathe_dsl::verify::verify;

const LAUNCH: Launch = Launch::linear(1, 64);

fn traced(launch: Launch, params: Vec<Param>, f: impl for<'k> FnOnce(&'k Builder<'k>)) -> Result<Kernel, String> {
    let kernel = build("k", Target::GFX950, launch, params, f).map_err(|e| e.to_string())?;
    verify(&kernel, Target::GFX950).map_err(|e| e.to_string())?;
    Ok(kernel)
}

/// The refusal of a kernel; `{at}` in `expected` stands for a place in the statement that calls this function.
#[track_caller]
fn refused(launch: Launch, params: Vec<Param>, expected: &str, f: impl for<'k> FnOnce(&'k Builder<'k>)) {
    let first = std::panic::Location::caller().line();
    let mut message = traced(launch, params, f).expect_err("the kernel is refused");
    if let Some(located) = message.strip_prefix(&format!("{}:", file!())) {
        let (place, rest) = located.split_once(": ").expect("line:column, then the message");
        let line: u32 = place.split(':').next().and_then(|n| n.parse().ok()).expect("a line");
        assert!((first..first + 5).contains(&line), "line {line} is not in the statement at {first}");
        message = format!("{{at}}: {rest}");
    }
    assert_eq!(message, expected);
}

fn buffer(len: u64, access: Access) -> Vec<Param> {
    vec![Param { name: "x", kind: ParamKind::Buffer { elem: Scalar::F32, len, access, align: 16 } }]
}

#[test]
fn a_good_kernel_is_accepted() {
    let kernel = traced(LAUNCH, buffer(64, Access::ReadWrite), |k| {
        let i = k.thread_id(Axis::X);
        let x = k.buffer_load::<f32>(k.buffer::<f32, lathe_dsl::kernel::InOut>(0), i);
        k.buffer_store(x * 2.0, k.buffer::<f32, lathe_dsl::kernel::InOut>(0), i);
    });
    assert_eq!(kernel.unwrap().op_count(), 5);
}

#[test]
fn launch_shapes() {
    let block = |n| Launch { block: [n, 2, 1], ..LAUNCH };
    refused(block(0), vec![], "workgroup of 0x2x1 threads; gfx950 allows 1 to 1024 in all", |_| ());
    let huge = Launch { block: [1 << 22; 3], ..LAUNCH };
    refused(huge, vec![], "workgroup of 4194304x4194304x4194304 threads; gfx950 allows 1 to 1024 in all", |_| ());
    refused(block(513), vec![], "workgroup of 513x2x1 threads; gfx950 allows 1 to 1024 in all", |_| ());
    let grid = Launch { grid: [1, 70_000, 1], ..LAUNCH };
    refused(grid, vec![], "grid of 70000 workgroups along y; gfx950 allows 65535", |_| ());
    let hint = Launch { waves_per_eu: Some(9), ..LAUNCH };
    refused(hint, vec![], "waves_per_eu 9; allowed are 1 to 8", |_| ());
    let hint = Launch { maxnreg: Some(8), ..LAUNCH };
    refused(hint, vec![], "maxnreg 8; allowed are 16 to 255", |_| ());
}

#[test]
fn lds_that_the_chip_does_not_have() {
    let expected = "{at}: LDS arrays (a of 40000 u32, b of 1000 u32) need 164000 bytes, more than the 163840 bytes gfx950 has; \
                    make one smaller, or use one for what is not needed at the same time";
    refused(LAUNCH, vec![], expected, |k| {
        k.lds::<u32>("a", 40_000);
        k.lds::<u32>("b", 1_000);
    });
    // Sizes whose sum wraps in 32 bits are not small.
    let expected = "{at}: LDS arrays (a of 4294967295 u64, b of 2 u64) need 34359738384 bytes, more than the 163840 bytes gfx950 \
                    has; make one smaller, or use one for what is not needed at the same time";
    refused(LAUNCH, vec![], expected, |k| {
        k.lds::<u64>("a", u32::MAX);
        k.lds::<u64>("b", 2);
    });
    refused(LAUNCH, vec![], "{at}: LDS array `a` has no elements", |k| drop_value(k.lds::<u32>("a", 0)));
}

fn drop_value<T>(_: T) {}

#[test]
fn buffers_past_the_address_range() {
    let expected = "buffer `x` has 1073741824 elements of f32, past the 4294967040 bytes that one buffer can address";
    refused(LAUNCH, buffer(1 << 30, Access::Read), expected, |_| ());
    let expected =
        "buffer `x` has 4611686018427387905 elements of f32, past the 4294967040 bytes that one buffer can address";
    refused(LAUNCH, buffer((1 << 62) + 1, Access::Read), expected, |_| ());
}

#[test]
fn access_against_the_declaration() {
    refused(
        LAUNCH,
        buffer(64, Access::Read),
        "{at}: stores to buffer `x`, which is declared as only read; declare it as `Out` or `InOut`",
        |k| k.buffer_store(k.constant(1.0f32), k.buffer::<f32, lathe_dsl::kernel::Out>(0), 0),
    );
    refused(
        LAUNCH,
        buffer(64, Access::Write),
        "{at}: loads from buffer `x`, which is declared as only written; declare it as `InOut`",
        |k| drop_value(k.buffer_load::<f32>(k.buffer::<f32, lathe_dsl::kernel::In>(0), 0)),
    );
}

#[test]
fn accesses_wider_than_a_thread_has() {
    refused(
        LAUNCH,
        buffer(64, Access::Read),
        "{at}: memory access of f32x8, 32 bytes; allowed are 1, 2, 4, 8, 12 and 16",
        |k| drop_value(k.buffer_load::<Vector<f32, 8>>(k.buffer::<f32, lathe_dsl::kernel::In>(0), 0)),
    );
    refused(
        LAUNCH,
        buffer(64, Access::Read),
        "{at}: memory access of f16x5, 10 bytes; allowed are 1, 2, 4, 8, 12 and 16",
        |k| drop_value(k.buffer_load::<Vector<f16, 5>>(k.buffer::<f16, lathe_dsl::kernel::In>(0), 0)),
    );
}

/// Whatever the key makes of a guard: what it keeps from happening is not looked at.
#[test]
fn accesses_behind_guards_that_never_hold() {
    for n in [100u32, 600, 1024] {
        let made = build("k", Target::GFX950, LAUNCH, buffer(u64::from(n), Access::Read), |k| {
            let x = k.buffer::<f32, lathe_dsl::kernel::In>(0);
            let tile = k.lds::<f32>("tile", n);
            let id = k.thread_id(Axis::X);
            for j in 0..16u32 {
                let c = id + 64 * j;
                k.if_(c.lt(n) & c.ge(0), || k.ptr_store(k.buffer_load::<f32>(x, c), tile + c));
            }
            k.for_range(n, 64u32, 1, (), |i, ()| k.ptr_store(k.buffer_load::<f32>(x, i + n), tile + n));
        });
        assert_eq!(verify(&made.unwrap(), Target::GFX950).unwrap(), [], "{n}");
    }
}

/// Bytes are taken for another type only if the author says so.
#[test]
fn fragments_from_memory_of_another_type() {
    type Tile = Mma<16, 16, 32, bf16>;
    let expected =
        "{at}: a fragment of bf16 from a buffer of f32; if its bytes are meant, say so: `buffer.cast::<bf16>()`";
    refused(LAUNCH, buffer(4096, Access::Read), expected, |k| {
        let x = k.buffer::<f32, lathe_dsl::kernel::In>(0);
        let _: FragmentA<Tile> = k.load_fragment(Matrix::new(k, x, Storage::RowMajor, 0, 32));
    });
    let expected = "{at}: a fragment of codes of narrow floats from a pointer of f32; if its bytes are meant, say so: \
                    `pointer.cast::<u8>()`";
    refused(LAUNCH, vec![], expected, |k| {
        let x = k.lds::<f32>("x", 1024);
        let _: FragmentA<MmaE4m3> = k.load_fragment(Matrix::new(k, x, Storage::RowMajor, 0, 32));
    });
}

#[test]
fn values_that_leave_their_region() {
    let expected = format!(
        "{{at}}: uses a value outside the region that makes it (at dsl/tests/refusals.rs:{LEAK}:57); hand it out of `if_else`, or carry \
         it through `for_range`"
    );
    refused(LAUNCH, vec![], &expected, |k| leak(k, |x| drop_value(x + 1)));
}

/// Where [`leak`] makes its value.
const LEAK: u32 = line!() + 5;

/// Lets a value escape from the region of an `if_`.
fn leak<'k>(k: &'k Builder<'k>, use_it: impl FnOnce(V<'k, u32>)) {
    let mut escaped = None;
    k.if_(k.thread_id(Axis::X).lt(3), || escaped = Some(k.block_id(Axis::X) + 1));
    use_it(escaped.expect("the region ran"));
}

#[test]
fn control_flow_whose_sides_differ() {
    let expected = "{at}: the two sides of `if_else` hand out different values: u32, u32 and u32";
    refused(LAUNCH, vec![], expected, |k| {
        drop_value(k.if_else(
            k.thread_id(Axis::X).lt(3),
            || vec![k.thread_id(Axis::X); 2],
            || vec![k.thread_id(Axis::X)],
        ))
    });
    let expected = "{at}: `for_range` carries f32, but its body hands on nothing";
    refused(LAUNCH, vec![], expected, |k| drop_value(k.for_range(0, 4, 1, vec![k.constant(0.0f32)], |_, _| vec![])));
    refused(LAUNCH, vec![], "{at}: `for_range` with step 0 never ends; the step must be at least 1", |k| {
        k.for_range(0, 4, 0, (), |_, ()| ())
    });
}

#[test]
fn elements_that_a_vector_does_not_have() {
    refused(LAUNCH, vec![], "{at}: element 2 of a vector of 2 elements", |k| {
        drop_value(k.filled::<f32, 2>(k.constant(1.0)).element(2))
    });
}

#[test]
fn kernels_with_impossible_names() {
    for name in ["", "1st", "a-b", "é"] {
        let kernel = build(name, Target::GFX950, LAUNCH, vec![], |_| ()).unwrap();
        let message = verify(&kernel, Target::GFX950).unwrap_err().to_string();
        assert!(message.contains("letters, digits and `_`"), "{name}: {message}");
    }
}

#[test]
fn a_kernel_is_for_one_wave_width() {
    let kernel = build("k", Target::SM_90, LAUNCH, vec![], |_| ()).unwrap();
    let message = verify(&kernel, Target::GFX950).unwrap_err().to_string();
    assert_eq!(message, "traced for waves of 32, but gfx950 has waves of 64");
}

#[test]
fn lds_alignments_that_no_layout_can_keep() {
    let kernel = |align| {
        let mut kernel = build("k", Target::GFX950, LAUNCH, vec![], |k| drop_value(k.lds::<u32>("a", 4))).unwrap();
        kernel.lds[0].align = align;
        kernel.lds = vec![kernel.lds[0].clone(); 3];
        verify(&kernel, Target::GFX950).map_err(|e| e.to_string())
    };
    for align in [0, 2, 12, 8192, 1 << 31] {
        let message = kernel(align).unwrap_err();
        assert!(message.contains(&format!("aligned to {align}; allowed are")), "{message}");
    }
    kernel(4096).unwrap();
}

#[test]
fn control_flow_deeper_than_any_device_keeps() {
    fn nest<'k>(k: &'k Builder<'k>, depth: usize) {
        if depth > 0 {
            k.if_(k.thread_id(Axis::X).lt(3), || nest(k, depth - 1));
        }
    }
    traced(LAUNCH, vec![], |k| nest(k, 64)).unwrap();
    let message = traced(LAUNCH, vec![], |k| nest(k, 65)).unwrap_err();
    assert!(message.ends_with("control flow nested deeper than 64 regions"), "{message}");
}

#[test]
fn vectors_of_nothing() {
    let message = traced(LAUNCH, vec![], |k| drop_value(k.vector::<f32, 0>([]).element(0))).unwrap_err();
    assert!(message.ends_with("element 0 of a vector of 0 elements"), "{message}");
}

#[test]
fn more_arguments_than_a_launch_can_pass() {
    let params = |n| vec![Param { name: "x", kind: ParamKind::Scalar(Scalar::U64) }; n];
    traced(LAUNCH, params(128), |_| ()).unwrap();
    let message = traced(LAUNCH, params(129), |_| ()).unwrap_err();
    assert_eq!(message, "129 arguments take more than the 1024 bytes that one launch can pass");
}

#[test]
fn misuse_that_tracing_notices() {
    refused(
        LAUNCH,
        vec![],
        "{at}: `exit_if` inside a region; it is allowed at the kernel's top level only, use `if_` here",
        |k| k.if_(k.lane_id().lt(3), || k.exit_if(k.lane_id().eq(1))),
    );
    refused(LAUNCH, vec![], "{at}: `for_range_while` with step 0 never ends; the step must be at least 1", |k| {
        drop_value(k.for_range_while(0u32, 4, 0, k.lane_id(), |i, n| (n, i.lt(2))))
    });
    refused(LAUNCH, vec![], "{at}: `while_` carries u32, but its body hands on u32, u32", |k| {
        drop_value(k.while_(vec![k.lane_id()], |v| (v[0].lt(9), v[0]), |v| vec![v; 2]))
    });
    refused(LAUNCH, vec![], "{at}: a logical group of 16 lanes; allowed are 32 and 64", |k| drop_value(k.lanes(16)));
    refused(LAUNCH, vec![], "{at}: butterfly over distance 64; allowed are powers of two below 64", |k| {
        drop_value(k.lanes(64).lane_index().butterfly([64], ButterflyOp::Add))
    });
    refused(LAUNCH, vec![], "{at}: shuffle_xor by 40 in a group of 32 lanes", |k| {
        drop_value(k.lanes(32).lane_index().shuffle_xor(40))
    });
    refused(LAUNCH, vec![], "{at}: a value of a group of 32 lanes with one of a group of 64", |k| {
        drop_value(k.lanes(32).lane_index().zip(k.lanes(64).lane_index(), |a, b| a + b))
    });
    refused(LAUNCH, vec![], "{at}: part 1 of a value with 1", |k| drop_value(k.lanes(64).lane_index().part(1)));
    refused(LAUNCH, vec![], "{at}: 3 elements from element 2 on, of a vector of 4 elements", |k| {
        drop_value(k.filled::<f32, 4>(1.0).slice::<3>(2))
    });
    let expected = "{at}: 0.1 is not exact in bf16 (nearest is 0.100097656); write `bf16::from_f32(0.1)` to round it";
    refused(LAUNCH, vec![], expected, |k| drop_value(k.constant(bf16::ONE) * 0.1));
    refused(LAUNCH, vec![], "{at}: LDS array `a` of u64 aligned to 4; allowed are powers of two from 8 to 4096", |k| {
        drop_value(k.lds_aligned::<u64>("a", 4, 4))
    });
}

#[test]
fn options_that_the_verifier_refuses_at_the_authors_call() {
    refused(LAUNCH, vec![], "{at}: butterfly over distance 3; allowed are powers of two below 8", |k| {
        drop_value(k.lane_id().butterfly([3], ButterflyOp::Add))
    });
    refused(LAUNCH, vec![], "{at}: a group of 48 lanes; allowed are powers of two up to 64, the wave of gfx950", |k| {
        drop_value(k.lane_id().shuffle_idx(0, 48))
    });
    refused(LAUNCH, vec![], "{at}: vmcnt 99; allowed are 0 to 63", |k| k.s_waitcnt(Waitcnt::new().vmcnt(99)));
    let expected = "{at}: uses a value that is not among the arguments of its `native`; pass it as one";
    refused(LAUNCH, vec![], expected, |k| {
        let lane = k.lane_id();
        drop_value(k.native(lane, [], |x| x + lane))
    });
    refused(
        LAUNCH,
        buffer(64, Access::Read),
        "{at}: stores to buffer `x`, which is declared as only read; declare it as `Out` or `InOut`",
        |k| k.ptr_store(k.constant(1.0f32), k.buffer::<f32, lathe_dsl::kernel::In>(0).ptr() + 3),
    );
}

#[test]
fn a_loop_in_rust_that_makes_too_many_operations() {
    let warnings = |k: Kernel| verify(&k, Target::GFX950).unwrap();
    let kernel = |rounds: u32| {
        build("k", Target::GFX950, LAUNCH, vec![], |k| {
            (0..rounds).fold(k.thread_id(Axis::X), |x, _| x + 1);
        })
        .unwrap()
    };
    assert_eq!(warnings(kernel(9_998)), []);
    let [warning] = &warnings(kernel(9_999))[..] else { panic!("one warning") };
    assert!(warning.location.is_some_and(|l| l.file == file!()), "{warning}");
    let message = "10001 operations to compile, more than 10000: this place alone was traced 10000 times; a loop in Rust is \
                   unrolled while the kernel is traced, `for_range` is not";
    assert_eq!(warning.message, message);
    // Each at a place of its own.
    let mut kernel = kernel(9_999);
    for (i, location) in kernel.locations.iter_mut().enumerate() {
        location.line = i as u32;
    }
    let [warning] = &warnings(kernel)[..] else { panic!("one warning") };
    let message =
        "10001 operations to compile, more than 10000; use `for_range` for what repeats, or make it several kernels";
    assert_eq!(warning.to_string(), message);
}

#[test]
fn control_flow_after_an_early_exit() {
    let expected = "{at}: `barrier` in control flow that differs between lanes of a wave: ";
    let message = traced(LAUNCH, vec![], |k| {
        k.exit_if(k.thread_id(Axis::X).ge(40));
        k.barrier();
    });
    let message = message.unwrap_err();
    let (_, rest) = message.split_once(": ").unwrap();
    assert!(format!("{{at}}: {rest}").starts_with(expected), "{message}");
    // The exit is named, and what it depends on.
    assert_eq!(rest.matches(file!()).count(), 2, "{message}");
    // Whole workgroups leave together.
    traced(LAUNCH, vec![], |k| {
        k.exit_if(k.block_id(Axis::X).ge(40));
        k.barrier();
    })
    .unwrap();
}

/// A product that gfx950 lacks, through everything that takes a fragment: the first call is told, nothing panics.
#[test]
fn a_product_that_the_chip_lacks() {
    type Absent = Mma<16, 8, 16, f16>;
    type Nonsense = Mma<0, 3, 1000, E2m1>;
    let there = "there are m16n16k16, m32n32k8, m16n16k32, m32n32k16 (on gfx950)";
    let absent = format!("{{at}}: no product m16n8k16 of f16 by f16 in cdna4 fragments; {there}");
    refused(LAUNCH, vec![], &absent, |k| {
        let a: FragmentA<Absent> = k.zero_fragment();
        let sum = k.mma(a.within(3, 4), k.fragment(&[k.constant(f16::ONE)]), k.zero_fragment());
        let tile = k.lds::<f16>("tile", 1024);
        k.store_fragment(sum.map(|x| x + 1.0), Matrix::new(k, tile, Storage::RowMajor, 0, 8), |x, _| x.to::<f16>());
        let _ = k.relayout(&sum.registers(), &sum.layout(), &a.layout());
        let _ = (k.places::<Absent, roles::B>(), sum.elements(), k.run::<Absent, roles::A>(Storage::ColMajor));
        let _: FragmentB<Absent> = k.load_fragment(Matrix::new(k, tile, Storage::ColMajor, 0, 8));
    });
    let nonsense = "{at}: no product m0n3k1000 of e2m1 by e2m1 in cdna4 fragments; there are f16 by f16, bf16 by bf16, i8 by \
                    i8, e4m3 by e4m3 as m16n8k32, e4m3 or e5m2 by either; with scales, `mfma_scaled` (on gfx950)";
    refused(LAUNCH, vec![], nonsense, |k| {
        let a: FragmentA<Nonsense> = k.zero_fragment();
        let tile = k.lds::<u8>("tile", 1024);
        let b = k.load_fragment(Matrix::new(k, tile, Storage::ColMajor, 0, 1000).at_most(4));
        let _ = k.mma(a.within(1, 1), b, k.zero_fragment());
    });
}

#[test]
fn misuse_of_fragments() {
    type Tile = Mma<16, 16, 32, bf16>;
    type Fp6 = MfmaScaled<E2m3>;
    let wrong = "{at}: 3 registers for A of a product m16n16k32; it has bf16x8 on gfx950";
    refused(LAUNCH, vec![], wrong, |k| {
        let _: FragmentA<Tile> = k.fragment(&[k.constant(bf16::ONE); 3]);
    });
    refused(LAUNCH, vec![], "{at}: 0 registers for C of a product m16n16k32; it has f32x4 on gfx950", |k| {
        let _: FragmentC<Tile> = k.fragment(&[]);
    });
    let apart = "{at}: 4 elements of a 16×16 matrix over 64 lanes into a 16×32 matrix over 64 lanes; it must be the same one, \
                 and the elements all that a lane has";
    refused(LAUNCH, vec![], apart, |k| {
        let sum: FragmentC<Tile> = k.zero_fragment();
        let _ = k.relayout(&sum.registers(), &sum.layout(), &k.fragment_layout::<Tile, roles::A>());
    });
    refused(LAUNCH, vec![], "{at}: scales of a logical group of 32 lanes; 64 give them", |k| {
        let scale = k.lanes(32).filled(k.constant(127u32));
        let _: FragmentC<Fp6> = k.mfma_scaled(k.zero_fragment(), k.zero_fragment(), k.zero_fragment(), scale, scale);
    });
    let other = "{at}: elements of 6 bits that do not lie side by side along this fragment's rows: store the matrix the other \
                 way round";
    refused(LAUNCH, vec![], other, |k| {
        let tile = k.lds::<u8>("tile", 4096);
        let _: FragmentA<Fp6> = k.load_fragment(Matrix::new(k, tile, Storage::ColMajor, 0, 16));
    });
    let masked = "{at}: a matrix in LDS with extents to keep within; only one in a buffer has them";
    refused(LAUNCH, vec![], masked, |k| {
        let tile = k.lds::<bf16>("tile", 4096);
        let matrix = Matrix::new(k, tile, Storage::RowMajor, 0, 32).within(k.lane_id(), k.lane_id());
        let _: FragmentA<Tile> = k.load_fragment(matrix);
    });
    let cached = "{at}: a matrix in LDS with a cache behaviour; only one in a buffer has one";
    refused(LAUNCH, vec![], cached, |k| {
        let tile = k.lds::<bf16>("tile", 4096);
        let _: FragmentA<Tile> = k.load_fragment(Matrix::new(k, tile, Storage::RowMajor, 0, 32).cached(Cache::DEV));
    });
    for n in [0, 3] {
        let size = format!("{{at}}: accesses of at most {n} elements; allowed are powers of two");
        refused(LAUNCH, vec![], &size, |k| {
            let tile = k.lds::<bf16>("tile", 4096);
            let _: FragmentA<Tile> = k.load_fragment(Matrix::new(k, tile, Storage::RowMajor, 0, 32).at_most(n));
        });
    }
    let bits = "{at}: accesses of at most 4 codes of 6 bits, which end within bytes; this fragment's accesses take 32";
    refused(LAUNCH, vec![], bits, |k| {
        let tile = k.lds::<u8>("tile", 4096);
        let _: FragmentA<Fp6> = k.load_fragment(Matrix::new(k, tile, Storage::RowMajor, 0, 128).at_most(4));
    });
}

#[test]
fn stores_to_a_clamped_matrix() {
    type Tile = Mma<16, 16, 32, bf16>;
    let message = "{at}: a store to a clamped matrix; its last row would be stored to more than once";
    refused(LAUNCH, vec![], message, |k| {
        let tile = Matrix::new(k, k.lds::<bf16>("tile", 16 * 16), Storage::RowMajor, 0, 16);
        k.store_fragment(k.zero_fragment::<Tile, _>(), tile.clamped(4), |x, _| x.to::<bf16>());
    });
}

#[test]
fn messages_that_cannot_arrive() {
    let hidden = "{at}: messages in memory that caches may hide; allowed are Cache::DEV and Cache::SYS";
    refused(LAUNCH, vec![], hidden, |k| drop_value(k.message_region(k.constant(0u64), 64, Cache::NT, 1)));
    let mixed = "{at}: one poll of messages in regions of different cache behaviour";
    refused(LAUNCH, vec![], mixed, |k| {
        let of = |cache| Message::new(k.message_region(k.constant(0u64), 64, cache, 1), k.constant(0u32), 1);
        drop_value(Mailbox::new(k, k.step_tag(1, 2)).poll(&[of(Cache::SYS), of(Cache::DEV)]));
    });
    let odd = "{at}: 3 values as pairs of bf16; an even number is wanted";
    refused(LAUNCH, vec![], odd, |k| {
        let region = k.message_region(k.constant(0u64), 64, Cache::SYS, 1);
        Mailbox::new(k, k.step_tag(1, 2)).put_bf(region, k.constant(0u32), &[k.constant(1.0f32); 3]);
    });
}
