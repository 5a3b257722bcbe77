//! Matrix products as kernels of their own.

pub mod mx;
pub mod reference;
mod run;
