//! A kernel whose ranks tell each other by fences around plain accesses what shipped kernels tell by coherent ones.

use lathe_dsl::prelude::*;

use super::exchange::RANKS;

build_key! {
    /// Each of two ranks stores words of each workgroup to the other one, raises a flag there, waits for its own and copies what it
    /// was sent.
    pub struct Fenced {
        /// Workgroups.
        blocks: u32 = 2, range(1, 64);
    }
}

kernel_args! {
    /// Arguments of [`Fenced`].
    pub struct FencedArgs(key: Fenced) {
        /// Addresses of the regions.
        peers: In<u64>[u64::from(RANKS)] align 8;
        /// This rank.
        rank: Scalar<u32>;
        /// The flag's value, not 0.
        tag: Scalar<u32>;
        /// What was sent.
        out: Out<u32>[u64::from(key.blocks * WORDS)] align 4;
    }
}

/// Words of a message, as many as threads of a workgroup: one wave on every chip, so that no barrier orders the message.
const WORDS: u32 = 32;
/// Words of a region a workgroup: the message, and the flag in lines of its own.
const SLOT: u32 = WORDS + 64;

impl Fenced {
    /// Bytes of a rank's region, zeros at first.
    pub fn region_bytes(&self) -> u64 {
        u64::from(self.blocks * SLOT * 4)
    }

    /// Words of [`FencedArgs::out`].
    pub fn words(&self) -> usize {
        (self.blocks * WORDS) as usize
    }
}

impl Kernel for Fenced {
    const NAME: &'static str = "fenced";
    type Args = FencedArgs;

    fn launch(&self) -> Launch {
        Launch::linear(self.blocks, WORDS)
    }

    fn build<'k>(&self, k: &'k Builder<'k>, args: FencedArgs<Dev<'k>>) {
        let flag = Memory::new().relaxed(Scope::System);
        let (block, thread) = (k.block_id(Axis::X), k.thread_id(Axis::X));
        let id = block * WORDS + thread;
        let other = k.constant(RANKS - 1) - args.rank;
        let [to, own] = [other, args.rank].map(|rank| k.load_ptr64(args.peers, rank).to_ptr::<u32>() + block * SLOT);
        k.ptr_store(args.rank * 1000 + args.tag * 1_000_000 + id, to + thread);
        k.fence(Order::Release, Scope::System);
        k.if_(thread.eq(0), || k.ptr_store_with(args.tag, to + WORDS, flag));
        k.while_((), |()| (k.ptr_load_with::<u32>(own + WORDS, flag).ne(args.tag), ()), |()| k.s_sleep(1));
        k.fence(Order::Acquire, Scope::System);
        k.buffer_store(k.ptr_load::<u32>(own + thread), args.out, id);
    }
}
