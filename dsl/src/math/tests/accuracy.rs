use super::ulp::ulp;
use super::{FUNCTIONS, Function, SPECIAL};

/// The bound that the operations promise.
const BOUND: f64 = 1.0;

/// The largest error over every `stride`-th pattern from `first` on, and where. Functions that are even or odd bit for bit,
/// which another test tells, are measured at positive operands.
fn worst(function: &Function, first: u32, stride: usize) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    let last = if function.symmetry.is_some() { f32::INFINITY.to_bits() } else { u32::MAX };
    for bits in (first..=last).step_by(stride) {
        let x = f32::from_bits(bits);
        let error = ulp((function.expansion)(x), (function.reference)(f64::from(x)));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

#[test]
fn every_function_keeps_its_bound_at_samples() {
    for function in &FUNCTIONS {
        let (error, x) = worst(function, 0, 32_771);
        assert!(error < BOUND, "{} of {x:e}: {error} ulp", function.name);
    }
}

#[test]
fn every_function_keeps_its_bound_at_boundaries() {
    for function in &FUNCTIONS {
        let around = function.boundaries.iter().chain(&SPECIAL);
        for x in around.flat_map(|x| (-300..=300).map(|d| f32::from_bits(x.to_bits().wrapping_add_signed(d)))) {
            for x in [x, -x] {
                let error = ulp((function.expansion)(x), (function.reference)(f64::from(x)));
                assert!(error < BOUND, "{} of {x:e}: {error} ulp", function.name);
            }
        }
    }
}

#[test]
fn even_and_odd_functions_are_so_bit_for_bit() {
    for function in &FUNCTIONS {
        let Some(sign) = function.symmetry else { continue };
        for bits in (0..f32::INFINITY.to_bits()).step_by(65_521) {
            let x = f32::from_bits(bits);
            let (value, mirrored) = ((function.expansion)(x), (function.expansion)(-x));
            assert_eq!(mirrored.to_bits(), (value * sign).to_bits(), "{} of ±{x:e}", function.name);
            assert!((-1.0..=1.0).contains(&value), "{} of {x:e} is {value}", function.name);
        }
    }
}

/// Over all inputs: the numbers in the module's documentation. Minutes; run it by
/// `cargo xtask exhaustive`.
#[test]
#[ignore = "minutes"]
fn every_function_keeps_its_bound_over_all_inputs() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for function in &FUNCTIONS {
        let (error, x) = std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads).map(|k| scope.spawn(move || worst(function, k as u32, threads))).collect();
            workers.into_iter().map(|w| w.join().unwrap()).fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
        });
        println!("{}: {error:.4} ulp, at {x:e}", function.name);
        assert!(error < BOUND, "{} of {x:e}: {error} ulp", function.name);
    }
}
