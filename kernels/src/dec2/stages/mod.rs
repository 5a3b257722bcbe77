//! The thirteen stages that all epilogues are made of, over tiles in the lanes of a [`Warp`](warp::Warp).
//!
//! | | stage | |
//! | --- | --- | --- |
//! | V0 | [`load`] | blocks and tables of the weight image |
//! | V1 | [`patch_scatter`] | the patch expand's sums into the patch grid |
//! | V2 | [`skip_residual`] | patch features plus skip features |
//! | V3 | [`row_norm`] | rows by their root mean square, times a gain |
//! | V4 | [`stage_quads`] | left factors through shared memory |
//! | V5 | [`score_seed`] | both factors of the scores and their bias |
//! | V6 | [`cubic_softmax`] | probabilities |
//! | V7 | [`transpose_pack`] | values as a right factor |
//! | V8 | [`col_add`] | bias plus residual |
//! | V9 | [`cubic_act`] | the activation |
//! | V10 | [`pack_quads`] | sums as a left factor |
//! | V11 | [`plane_scatter`] | features into the arena |
//! | V12 | [`kernel_gate`] | filter and gate |

pub mod col_add;
pub mod cubic_act;
pub mod cubic_softmax;
pub mod epilogue;
pub mod kernel_gate;
pub mod load;
pub mod multiply;
pub mod numeric;
pub mod pack_quads;
pub mod patch_scatter;
pub mod plane_scatter;
pub mod row_norm;
pub mod score_seed;
pub mod skip_residual;
pub mod stage_quads;
pub mod tiles;
pub mod transpose_pack;
pub mod warp;
