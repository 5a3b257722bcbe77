//! The weight image: where its blocks lie, and how dense weights become one.

mod dense;
mod layout;

pub use dense::{DenseWeights, HeadWeights, WeightError};
pub use layout::{LayoutError, WeightBlock, WeightItem, WeightLayout, WeightShape};
