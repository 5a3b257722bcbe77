//! The facts about the block, as tests of the reference.

mod attention;
mod block;
mod filter;
mod gemm;
mod lanes;
mod mlp;
mod norm;
mod number;
mod patch;

use half::f16;
use lathe_dsl::numerics::Float;

/// The f16 with these bits.
fn h(bits: u16) -> f16 {
    f16::from_bits(bits)
}

/// The nearest f16.
fn near(x: f64) -> f16 {
    <f16 as Float>::from_f64(x)
}

/// Every f16.
fn all() -> impl Iterator<Item = f16> + Clone {
    (0..=u16::MAX).map(f16::from_bits)
}

/// Bits, all NaNs the same.
fn class(x: f16) -> u16 {
    if x.is_nan() { 0x7FFF } else { x.to_bits() }
}

/// Steps between two numbers of one sign.
fn ulps(a: f16, b: f16) -> u32 {
    u32::from(a.to_bits().abs_diff(b.to_bits()))
}

/// A standard normal number.
fn normal(rng: &mut fastrand::Rng) -> f64 {
    let (radius, angle) = ((-2.0 * libm::log(1.0 - rng.f64())).sqrt(), std::f64::consts::TAU * rng.f64());
    radius * libm::cos(angle)
}
