//! Copies to LDS that are under way: whose they are, what they write, and when they have landed.
//!
//! A copy belongs to the lanes that made it. It has landed for a lane when that lane waited for it (a drain, or a wait for
//! a mark), or for all of them when the wave waited until few enough operations on vector memory were outstanding.

use lathe_dsl::ir::Location;

/// Operations of one wave on vector memory so far.
type Count = u64;

/// A copy of one wave, in LDS bytes.
struct Copy {
    wave: u32,
    /// Where lane 0 would write; lane `i` writes `i · bytes` further.
    first: i64,
    bytes: u32,
    /// Lanes whose part has not landed.
    lanes: u64,
    /// Its number among the wave's operations on vector memory.
    number: Count,
    location: Location,
}

impl Copy {
    /// Lanes whose part, not yet landed, meets bytes `at .. at + len`.
    fn meets(&self, at: usize, len: usize) -> u64 {
        let (begin, bytes) = (at as i64 - self.first, i64::from(self.bytes));
        let end = begin + len as i64;
        if end <= 0 || begin >= 64 * bytes {
            return 0;
        }
        let (low, high) = (begin.max(0) / bytes, ((end + bytes - 1) / bytes).min(64));
        self.lanes & u64::MAX << low & u64::MAX >> (64 - high)
    }

    /// First byte of a lane's part.
    fn place(&self, lane: u32) -> usize {
        (self.first + i64::from(lane) * i64::from(self.bytes)) as usize
    }

    /// The bytes of `lanes`, which copied, in runs.
    fn spans(&self, lanes: u64) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut rest = lanes;
        std::iter::from_fn(move || {
            let low = (rest != 0).then(|| rest.trailing_zeros())?;
            let run = (!(rest >> low)).trailing_zeros().min(64 - low);
            rest &= !(u64::MAX >> (64 - run) << low);
            let start = self.place(low);
            Some(start..start + (run * self.bytes) as usize)
        })
    }
}

/// The end of a group of copies.
struct Mark {
    /// Operations on vector memory before it.
    before: Count,
    /// Lanes that made it.
    lanes: u64,
}

#[derive(Default)]
struct Wave {
    issued: Count,
    /// Oldest first; none before which everything has landed.
    marks: Vec<Mark>,
}

/// Everything under way in a workgroup.
#[derive(Default)]
pub(super) struct Copies {
    copies: Vec<Copy>,
    waves: Vec<Wave>,
}

impl Copies {
    /// None, for the next workgroup.
    pub(super) fn clear(&mut self) {
        self.copies.clear();
        self.waves.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    fn wave(&mut self, wave: u32) -> &mut Wave {
        let wave = wave as usize;
        if self.waves.len() <= wave {
            self.waves.resize_with(wave + 1, Wave::default);
        }
        &mut self.waves[wave]
    }

    /// Wave `wave` made an operation on vector memory.
    pub(super) fn issue(&mut self, wave: u32) {
        // Only what follows a copy counts.
        if !self.copies.is_empty() {
            self.wave(wave).issued += 1;
        }
    }

    /// Wave `wave` starts a copy in `lanes`, all of which write within LDS; lane 0 would write to byte `first`.
    pub(super) fn start(&mut self, wave: u32, first: i64, bytes: u32, lanes: u64, location: Location) {
        let of = self.wave(wave);
        of.issued += 1;
        let number = of.issued;
        // They land in order: what this one overwrites is not waited for apart.
        self.copies.retain_mut(|c| {
            if c.wave == wave && c.first == first && c.bytes == bytes {
                c.lanes &= !lanes;
            }
            c.lanes != 0
        });
        self.copies.push(Copy { wave, first, bytes, lanes, number, location });
    }

    /// The newest copy under way that meets bytes `at .. at + len`, of a wave other than `but`: its location, and the first of
    /// the bytes.
    pub(super) fn meeting(&self, at: usize, len: usize, but: Option<u32>) -> Option<(Location, usize)> {
        self.copies.iter().rev().filter(|c| Some(c.wave) != but).find_map(|c| {
            let lanes = c.meets(at, len);
            (lanes != 0).then(|| (c.location, at.max(c.place(lanes.trailing_zeros()))))
        })
    }

    /// The lanes `lanes` of a wave end a group.
    pub(super) fn mark(&mut self, wave: u32, lanes: u64) {
        if self.copies.iter().any(|c| c.wave == wave) {
            let of = self.wave(wave);
            let before = of.issued;
            of.marks.push(Mark { before, lanes });
        }
    }

    /// The lanes `lanes` of a wave wait for what they started before their mark number `n`, counted back from the newest, 0.
    /// In `state`, one a byte of LDS, what has landed changes.
    pub(super) fn wait_mark(&mut self, wave: u32, lanes: u64, n: u32, state: &mut [u8], to: States) {
        let marks = &self.wave(wave).marks;
        let mut landed = vec![];
        let mut rest = lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let own = marks.iter().rev().filter(|m| m.lanes >> lane & 1 != 0);
            let before = own.map(|m| m.before).nth(n as usize).unwrap_or(0);
            match landed.iter_mut().find(|(b, _)| *b == before) {
                Some((_, lanes)) => *lanes |= 1 << lane,
                None => landed.push((before, 1u64 << lane)),
            }
        }
        for (before, lanes) in landed {
            self.land(wave, lanes, before, state, to);
        }
    }

    /// The lanes `lanes` of a wave wait for everything that they started.
    pub(super) fn drain(&mut self, wave: u32, lanes: u64, state: &mut [u8], to: States) {
        self.land(wave, lanes, Count::MAX, state, to);
    }

    /// A wave waits until at most `n` of its operations on vector memory are outstanding.
    pub(super) fn wait_count(&mut self, wave: u32, n: u32, state: &mut [u8], to: States) {
        let before = self.wave(wave).issued.saturating_sub(n.into());
        self.land(wave, u64::MAX, before, state, to);
    }

    /// The parts of `lanes` in copies up to number `up_to` have landed.
    fn land(&mut self, wave: u32, lanes: u64, up_to: Count, state: &mut [u8], to: States) {
        if self.copies.is_empty() {
            return;
        }
        for c in self.copies.iter_mut().filter(|c| c.wave == wave && c.number <= up_to) {
            let now = c.lanes & lanes;
            c.spans(now).for_each(|span| state[span].fill(to.landed));
            c.lanes &= !now;
        }
        self.copies.retain(|c| c.lanes != 0);
        // Later ones may write the same bytes.
        for c in self.copies.iter().filter(|c| c.wave == wave) {
            c.spans(c.lanes).for_each(|span| state[span].fill(to.pending));
        }
        let oldest = self.copies.iter().filter(|c| c.wave == wave).map(|c| c.number).min();
        let idle = self.copies.is_empty();
        let of = self.wave(wave);
        of.marks.retain(|m| oldest.is_some_and(|first| first <= m.before));
        if idle {
            of.issued = 0;
        }
    }
}

/// The states of a byte into which a copy has landed, and of one into which it has not.
#[derive(Clone, Copy)]
pub(super) struct States {
    pub(super) landed: u8,
    pub(super) pending: u8,
}
