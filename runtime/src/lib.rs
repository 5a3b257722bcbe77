//! Lathe's runtime: compiles a kernel once per build key ([`jit`]) and runs it on a [`device`].
//!
//! Without the feature `jit` it needs no LLVM: it has the CPU device, whose [`interp`]reter is the meaning of every
//! operation.

#![forbid(unsafe_code)]

mod buffer;
pub mod device;
mod error;
#[cfg(feature = "jit")]
pub mod gcn;
pub mod interp;
pub mod jit;
mod launch;

pub use buffer::DeviceBuffer;
pub use device::Engine;
pub use error::Error;
pub use launch::ArgBlock;
