//! Lathe's runtime: compiles a kernel once per build key ([`jit`]) and runs it on a [`device`].
//!
//! Without the feature `jit` it needs no LLVM: it has the CPU device, whose [`interp`]reter is the meaning of every
//! operation.

#![deny(unsafe_code)]

mod arch;
mod buffer;
pub mod bundle;
pub mod cache;
mod choices;
pub mod device;
pub mod drivers;
mod engine;
pub mod env;
mod error;
#[cfg(feature = "jit")]
pub mod gcn;
mod image;
pub mod interp;
pub mod jit;
pub mod key;
mod launch;
pub mod mailbox;
mod stuck;
mod visibility;

pub use buffer::DeviceBuffer;
pub use engine::Engine;
pub use error::{Error, KernelFault};
pub use image::DeviceImage;
pub use launch::ArgBlock;
