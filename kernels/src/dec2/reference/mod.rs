//! The block in plain Rust, over whole matrices: what every stage, every product and the whole must give.
//!
//! Each operation is rounded where the device's is, and sums are added in its order, so results are equal bit for bit where a
//! device's approximate instructions are correctly rounded, as on `cpu`. The other devices' differ by a unit in the last place of
//! an exponential or a sigmoid. NaNs are equal as a class: their payloads are the device's.

pub mod attention;
pub mod block;
pub mod filter;
pub mod gemm;
pub mod image;
mod matrix;
pub mod mlp;
pub mod norm;
pub mod number;
pub mod patch;
#[cfg(test)]
mod tests;

pub use block::{BlockTrace, Inputs, Outputs, frame};
pub use image::Image;
pub use matrix::Matrix;
