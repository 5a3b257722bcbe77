//! The kernels that Lathe ships, and a [`registry`] of them by name.

#![forbid(unsafe_code)]

pub mod dec2;
pub mod gemm;
pub mod mla;
pub mod registry;
pub mod run;
