//! Lathe's kernel language: typed builder, Kernel IR, verifier. No compiler behind it, no LLVM.
//!
//! An author writes a *kernel*: a build-key struct ([`build_key!`]), an argument struct ([`kernel_args!`]) and a Rust
//! function that runs once per key and leaves a trace of device operations ([`Builder`], [`V`]). [`trace`] turns a key
//! into verified [`ir::Kernel`]; everything below (CPU device, code generators) reads that.
//!
//! ```
//! use lathe_dsl::prelude::*;
//!
//! build_key! {
//!     /// y = 2 x
//!     pub struct Double {
//!         /// Elements, a multiple of 64.
//!         n: u32 = 128, range(64, 65536);
//!     }
//! }
//!
//! kernel_args! {
//!     /// Arguments of [`Double`].
//!     pub struct DoubleArgs(key: Double) {
//!         /// Input.
//!         x: In<f32>[u64::from(key.n)] align 16;
//!         /// Output.
//!         y: Out<f32>[u64::from(key.n)] align 16;
//!     }
//! }
//!
//! impl Kernel for Double {
//!     const NAME: &'static str = "double";
//!     type Args = DoubleArgs;
//!     fn launch(&self) -> Launch {
//!         Launch::linear(self.n / 64, 64)
//!     }
//!     fn build<'k>(&self, k: &'k Builder<'k>, args: DoubleArgs<Dev<'k>>) {
//!         let i = k.block_id(Axis::X) * 64 + k.thread_id(Axis::X);
//!         let x = k.buffer_load::<f32>(args.x, i);
//!         k.buffer_store(x + x, args.y, i);
//!     }
//! }
//!
//! let kernel = trace(&Double { n: 128 }, Target::GFX950).unwrap();
//! assert!(kernel.to_string().contains("buffer_load"));
//! ```

#![forbid(unsafe_code)]

pub mod artifact;
pub mod builder;
mod error;
pub mod facts;
pub mod image;
pub mod ir;
pub mod kernel;
pub mod math;
pub mod mma;
pub mod numerics;
pub mod target;
pub mod uniform;
pub mod verify;

pub use builder::{Builder, V, Vector};
pub use error::{Error, Refusal, Warning};
pub use kernel::{Kernel, trace, trace_with_warnings};
pub use target::{Arch, Target};

/// Everything a kernel author needs.
pub mod prelude {
    pub use crate::builder::matrix::formats::{E2m1, E2m3, E3m2, E4m3, E4m3Fnuz, E5m2, E5m2Fnuz};
    pub use crate::builder::matrix::{
        Factor, Fragment, FragmentA, FragmentB, FragmentC, Matrix, MfmaScaled, Mma, MmaE4m3, NarrowFactor, Product,
        Role, Storage, roles,
    };
    pub use crate::builder::{
        AtomicOptions, Buffer, Builder, Bytes, CopyOptions, Element, Global, GlobalPtr, Group, Grouped, Idx, Lds,
        LdsPtr, LoadOptions, Mailbox, Message, Operand, Ptr, Region, StoreOptions, Surface, Texel, Texture, V, Values,
        Vector, Waitcnt, bf16, f16,
    };
    pub use crate::image::{Image2d, Units};
    pub use crate::ir::{
        AtomicOp, Axis, ButterflyOp, Cache, Coordinates, Family, FastFlags, FastMath, Filter, Launch, Memory,
        NativeForm, Order, Scope, Unroll,
    };
    pub use crate::kernel::{BuildKey, Dev, Host, In, InOut, Kernel, Out, trace};
    pub use crate::numerics::{Narrow, Overflow, ScaleRule};
    pub use crate::target::Target;
    pub use crate::{build_key, kernel_args};
}
