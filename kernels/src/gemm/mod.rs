//! Matrix products as kernels of their own.

pub mod mx;
mod reference;
mod run;
