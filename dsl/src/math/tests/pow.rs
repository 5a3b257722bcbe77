use super::super::{Host, pow};
use super::SPECIAL;
use super::ulp::ulp;

/// Bits without a pattern (xorshift).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }
}

#[track_caller]
fn check(x: f32, y: f32) -> f64 {
    let error = ulp(pow(&Host, x, y), libm::pow(f64::from(x), f64::from(y)));
    assert!(error < 1.0, "{x:e}^{y:e}: {error} ulp");
    error
}

/// The largest error found, over pairs of several kinds.
fn worst(pairs: u32, seed: u64) -> f64 {
    let random = &mut Random(seed);
    let mut worst: f64 = 0.0;
    for _ in 0..pairs {
        // Any bits at all.
        worst = worst.max(check(f32::from_bits(random.next() as u32), f32::from_bits(random.next() as u32)));
        // Results of every size, of any base and of bases close to 1.
        let any = f32::from_bits(random.next() as u32 % f32::INFINITY.to_bits());
        let distance = f32::from_bits((100 + random.next() as u32 % 28) << 23);
        let close = 1.0 + (random.unit() - 0.5) as f32 * distance;
        for x in [any, close] {
            let exponent = random.unit() * 300.0 - 152.0;
            worst = worst.max(check(x, (exponent / f64::from(x).log2()) as f32));
        }
        // Small integers and their halves.
        let x = (random.next() % 2001) as f32 - 1000.0;
        let y = ((random.next() % 81) as f32 - 40.0) / 2.0;
        worst = worst.max(check(x, y));
    }
    worst
}

#[test]
fn keeps_its_bound_at_samples() {
    worst(20_000, 1);
}

/// `cargo xtask exhaustive`.
#[test]
#[ignore = "minutes"]
fn keeps_its_bound_at_many_samples() {
    println!("pow: {:.4} ulp", worst(100_000_000, 2));
}

#[test]
fn special_cases_are_those_of_c() {
    let more = [3.0, -3.0, 1.5, -1.5, 0.25, 8_388_607.5, 8_388_609.0, 16_777_215.0, 16_777_216.0, 1e10, -33.0];
    let all = || SPECIAL.into_iter().chain(more);
    for (x, y) in all().flat_map(|x| all().map(move |y| (x, y))) {
        check(x, y);
        // Signs of zeros and infinities too; the reference's library function has C's special cases.
        let (value, exact) = (pow(&Host, x, y), libm::pow(f64::from(x), f64::from(y)));
        assert!(value.is_nan() || value.is_sign_negative() == exact.is_sign_negative(), "{x:e}^{y:e} is {value:e}");
    }
    let nan = f32::NAN;
    let infinity = f32::INFINITY;
    let same = |x: f32, y: f32, value: f32| assert_eq!(pow(&Host, x, y).to_bits(), value.to_bits(), "{x:e}^{y:e}");
    same(nan, 0.0, 1.0);
    same(nan, -0.0, 1.0);
    same(1.0, nan, 1.0);
    same(-1.0, infinity, 1.0);
    same(-1.0, -infinity, 1.0);
    same(-0.0, -3.0, -infinity);
    same(-0.0, -2.5, infinity);
    same(-0.0, 3.0, -0.0);
    same(-infinity, -3.0, -0.0);
    same(-infinity, 2.5, infinity);
    same(-infinity, 3.0, -infinity);
    same(0.5, -infinity, infinity);
    same(-8.0, 3.0, -512.0);
    same(-1.0, 16_777_215.0, -1.0);
    same(-1.0, 16_777_216.0, 1.0);
    assert!(pow(&Host, -8.0, 1.0 / 3.0).is_nan());
    assert!(pow(&Host, -1.0, nan).is_nan() && pow(&Host, nan, 1.0).is_nan());
}

#[test]
fn powers_that_are_numbers_are_exact() {
    for n in -149..=127 {
        assert_eq!(pow(&Host, 2.0, n as f32), 2f64.powi(n) as f32);
    }
    for n in 0..=10 {
        assert_eq!(pow(&Host, 5.0, n as f32), 5f32.powi(n));
    }
    for bits in (0..f32::INFINITY.to_bits()).step_by(1_000_003) {
        let x = f32::from_bits(bits);
        assert_eq!(pow(&Host, x, 1.0), x);
    }
}
