//! Steps of ranks that run `mla_post`: what each has, what must come out, and what lies in the regions before the first one.

use fastrand::Rng;
use half::bf16;
use lathe_dsl::builder::step_tag_of;
use lathe_kernels::gemm::reference::Mxfp4;
use lathe_kernels::mla::message::SLOT;
use lathe_kernels::mla::post::MlaPost;
use lathe_kernels::mla::reference::post::mla_post;
use lathe_kernels::mla::uv::ROW;
use lathe_kernels::mla::{HEADS, LATENTS};

/// Slot of all steps' tags.
pub const LAYER: u32 = 5;

/// A few steps in a row of all ranks.
pub struct Steps {
    pub key: MlaPost,
    /// Epoch of the first one.
    pub first_epoch: u32,
    /// From a step's epoch to the next one's: 1, unless the host is wrong.
    pub stride: u32,
    /// By ranks.
    pub w_v: Vec<Mxfp4>,
    /// By ranks.
    pub gate: Vec<Vec<bf16>>,
    /// `[step][rank]`.
    pub sent: Vec<Vec<Sent>>,
    /// `core`, `[step][rank]`.
    pub expected: Vec<Vec<Vec<bf16>>>,
}

/// What a rank's attention left.
pub struct Sent {
    pub o: Vec<bf16>,
    pub lse: Vec<f32>,
    pub seq_lens: Vec<i32>,
    pub qsl: Vec<i32>,
}

impl Steps {
    /// `steps` steps. KV rows are uneven: a request may have none on some rank, or on any; a rank may have none at all; tokens may be
    /// padding. What such rows hold is not to be used. Sums of products are exact in f32 in any order.
    pub fn new(key: MlaPost, steps: u32, first_epoch: u32) -> Self {
        let mut rng = Rng::with_seed(u64::from(key.tokens) << 32 | u64::from(first_epoch));
        let ranks = key.ranks as usize;
        let w_v: Vec<Mxfp4> = (0..ranks).map(|_| weights(&mut rng)).collect();
        let values = (key.tokens * ROW) as usize;
        let gate: Vec<Vec<bf16>> =
            (0..ranks).map(|_| (0..values).map(|_| bf16::from_f32(rng.f32())).collect()).collect();
        let sent: Vec<Vec<Sent>> = (0..steps)
            .map(|step| {
                let live = if step % 2 == 1 { key.tokens.saturating_sub(1).max(1) } else { key.tokens };
                (0..key.ranks).map(|rank| Sent::new(&mut rng, &key, step, rank, live)).collect()
            })
            .collect();
        let of_rank = |sent: &[Sent], p: usize| {
            let (partial, lse) = Sent::received(sent, &key, p);
            mla_post(&key, &partial, &lse, &w_v[p], &gate[p])
        };
        let expected = sent.iter().map(|sent| (0..ranks).map(|p| of_rank(sent, p)).collect()).collect();
        Self { key, first_epoch, stride: 1, w_v, gate, sent, expected }
    }

    /// Epoch of step `step`.
    pub fn epoch(&self, step: usize) -> u32 {
        self.first_epoch.wrapping_add(step as u32 * self.stride)
    }

    /// A region as older steps left it: in both halves rows that nobody may use, with tags of the epochs before (of one so far back
    /// that the count has begun anew since, too) and of this epoch's earlier layers.
    pub fn leftovers(&self) -> Vec<u8> {
        let messages = self.key.messages();
        let mut region = vec![0xFF; messages.region_bytes() as usize];
        for (i, slot) in region.chunks_exact_mut(SLOT as usize).enumerate() {
            let second = i as u64 * u64::from(SLOT) >= messages.half();
            // The half of odd epochs is the second.
            let next = (0..2).map(|n| self.first_epoch.wrapping_add(n)).find(|epoch| (epoch % 2 == 1) == second);
            let next = next.expect("one of two is odd");
            let tag = match i % 5 {
                0 => step_tag_of(next.wrapping_sub(2), LAYER),
                1 => step_tag_of(next, LAYER - 1),
                2 => step_tag_of(next, 0),
                3 => step_tag_of(next.wrapping_sub(2).wrapping_add(1 << 21), LAYER),
                _ => 0,
            };
            let (_, flags) = slot.split_at_mut(LATENTS as usize * 2);
            for pair in flags.chunks_exact_mut(8) {
                pair[..4].copy_from_slice(&1e3f32.to_le_bytes());
                pair[4..].copy_from_slice(&tag.to_le_bytes());
            }
        }
        region
    }
}

/// W_UV with scales so near each other that no sum of its products with latents is rounded.
fn weights(rng: &mut Rng) -> Mxfp4 {
    let mut w_v = Mxfp4::random(rng, ROW, LATENTS);
    w_v.scales.iter_mut().for_each(|scale| *scale = rng.u8(126..=128));
    w_v
}

impl Sent {
    fn new(rng: &mut Rng, key: &MlaPost, step: u32, rank: u32, live: u32) -> Self {
        let (requests, heads) = (key.requests(), key.heads() as usize);
        // One rank in three has nothing in a step; of the others' requests one in three; what nobody has is now and then among them.
        let length = |request: u32| i32::from((step + rank) % 3 != 2 && (step + request) % 3 != 1);
        let mut this = Self {
            o: (0..key.tokens as usize * heads * LATENTS as usize)
                .map(|_| bf16::from_f32(rng.f32() * 4.0 - 2.0))
                .collect(),
            lse: (0..key.tokens as usize * heads)
                .map(|i| if i % 7 == 5 { f32::from_bits(0x7FC0_0001) } else { rng.f32() * 4.0 - 2.0 })
                .collect(),
            seq_lens: (0..requests).map(length).collect(),
            qsl: (0..=requests).map(|r| (r * key.q).min(live) as i32).collect(),
        };
        for token in 0..key.tokens as usize {
            if !this.is_empty(key, token) {
                continue;
            }
            this.o[token * heads * LATENTS as usize..][..heads * LATENTS as usize].fill(bf16::NAN);
            this.lse[token * heads..][..heads].fill(1e3);
        }
        this
    }

    /// Whether the rank has nothing for a token.
    fn is_empty(&self, key: &MlaPost, token: usize) -> bool {
        self.seq_lens[token / key.q as usize] == 0 || token as i32 >= self.qsl[key.requests() as usize]
    }

    /// What rank `p` gets: rows `[ranks][tokens][12][512]`, and their LSE.
    fn received(sent: &[Self], key: &MlaPost, p: usize) -> (Vec<bf16>, Vec<f32>) {
        let (mut partial, mut lse) = (vec![], vec![]);
        for from in sent {
            for token in 0..key.tokens as usize {
                for head in 0..HEADS as usize {
                    let at = (token * key.ranks as usize + p) * HEADS as usize + head;
                    partial.extend_from_slice(&from.o[at * LATENTS as usize..][..LATENTS as usize]);
                    lse.push(if from.is_empty(key, token) { f32::NEG_INFINITY } else { from.lse[at] });
                }
            }
        }
        (partial, lse)
    }
}
