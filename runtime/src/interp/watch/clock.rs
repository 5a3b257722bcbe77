//! What happened before what: per wave, an epoch that grows with every event that orders something, and what the wave knows of
//! the others' epochs.
//!
//! An access carries its wave's epoch. It happened before whatever comes after an event that published this epoch and that the
//! other side took part in. Knowledge is kept a wave, not a lane: what one lane acquires, its whole wave knows. Lanes of
//! one wave are told apart where they publish, and among each other ([`Joins`]).

use std::sync::Arc;

use super::know::{Joins, Know, Known, Seen, WaveId};
use crate::visibility::Reach;

/// What a wave has published for a flag that comes later.
#[derive(Clone, Default, Debug)]
pub(super) struct Release {
    pub(super) know: Know,
    pub(super) epoch: u32,
    /// Lanes whose flags carry it.
    pub(super) lanes: u64,
}

/// What an atomic location holds besides its value: what whoever reads it may take over.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) block: u64,
    pub(super) device: u32,
    pub(super) wave: WaveId,
    pub(super) epoch: u32,
    pub(super) lanes: u64,
    /// For each of [`Reach::BEYOND`]: the writer's workgroup, its device, and all.
    pub(super) know: [Know; 3],
}

impl Message {
    /// How far one must reach from it to `block` on `device`.
    fn distance(&self, block: u64, device: u32) -> Reach {
        match () {
            () if block == self.block => Reach::Workgroup,
            () if device == self.device => Reach::Device,
            () => Reach::System,
        }
    }

    /// What a reader in workgroup `block` on `device` whose operation reaches as far as `reach` learns.
    pub(super) fn know(&self, block: u64, device: u32, reach: Reach) -> Option<&Know> {
        let distance = self.distance(block, device);
        (reach >= distance).then(|| &self.know[distance.level()])
    }

    /// This one of an update of a location that held `before`: who reads it takes over both.
    pub(super) fn continuing(&self, before: &Self) -> Self {
        let distance = before.distance(self.block, self.device);
        let know = Reach::BEYOND.map(|reach| {
            let mut both = self.know[reach.level()].clone();
            both.join(&before.know[reach.max(distance).level()]);
            both
        });
        Self { know, ..*self }
    }
}

/// Messages that relaxed loads of a wave came across, for an acquire fence to take over.
#[derive(Clone, Default, Debug)]
pub(super) struct Heard {
    /// By what a fence must reach at least to take it over.
    know: [Know; 3],
    /// Those of the wave itself: until when, and whose.
    own: Option<(u32, u64)>,
    /// The latest ones: a loop that waits meets the same ones again and again.
    recent: Vec<Arc<Message>>,
}

impl Heard {
    const RECENT: usize = 8;

    pub(super) fn hear(&mut self, message: &Arc<Message>, (block, device): (u64, u32), wave: WaveId) {
        if self.recent.iter().any(|m| Arc::ptr_eq(m, message)) {
            return;
        }
        if message.wave == wave {
            let (epoch, lanes) = self.own.unwrap_or((0, 0));
            self.own = Some((epoch.max(message.epoch), lanes | message.lanes));
        } else {
            for reach in Reach::BEYOND {
                if let Some(news) = message.know(block, device, reach) {
                    self.know[reach.level()].join(news);
                }
            }
        }
        if self.recent.len() == Self::RECENT {
            self.recent.remove(0);
        }
        self.recent.push(message.clone());
    }
}

/// One wave's state.
#[derive(Clone, Default, Debug)]
pub(super) struct Clock {
    pub(super) id: WaveId,
    pub(super) block: u64,
    /// Number of the device that it runs on, in a group of launches.
    pub(super) device: u32,
    pub(super) epoch: u32,
    /// Lanes that stand for a thread.
    pub(super) live: u64,
    pub(super) know: Know,
    /// Events that order the wave's own lanes in LDS, and in global memory.
    pub(super) lds: Joins,
    pub(super) global: Joins,
    /// The release half of a fence that waits for its acquire half.
    half: Option<(u32, u64)>,
    /// What the last fence or drain published as far as each of [`Reach::BEYOND`].
    pub(super) released: [Release; 3],
    pub(super) heard: Heard,
}

impl Clock {
    /// Of a wave whose lanes `live` stand for threads.
    pub(super) fn new(live: u64) -> Self {
        Self { live, ..Self::default() }
    }

    /// At the kernel's start, in `epoch`; what happened before the launch it knows.
    pub(super) fn start(&mut self, id: WaveId, (block, device): (u64, u32), epoch: u32, know: Know) {
        *self = Self { id, block, device, epoch, live: self.live, know, ..Self::default() };
        self.lds.all(epoch - 1);
        self.global.all(epoch - 1);
    }

    /// What the wave itself did up to now and the lanes of `lanes` may publish.
    fn own(&self, lanes: u64) -> Known {
        let seen = |joins: &Joins| joins.seen(self.epoch, lanes, self.live);
        let global = seen(&self.global);
        Known { lds: seen(&self.lds), plain: global, device: global, done: global }
    }

    fn publish(&mut self, to: Reach, own: &Known, lanes: u64) {
        let release = &mut self.released[to.level()];
        release.know.join(&self.know);
        release.know.learn(self.id, own);
        release.epoch = self.epoch;
        release.lanes |= lanes;
    }

    /// The lanes of `lanes` execute the release half of a fence.
    pub(super) fn release_fence(&mut self, reach: Reach, lanes: u64) {
        let own = self.own(lanes);
        for to in Reach::BEYOND.into_iter().filter(|to| *to <= reach) {
            self.publish(to, &own, lanes);
        }
        self.half = Some((self.epoch, lanes));
        self.epoch += 1;
    }

    /// … and the acquire half.
    pub(super) fn acquire_fence(&mut self, reach: Reach, lanes: u64) {
        if let Some((epoch, released)) = self.half.take() {
            self.join_lanes(epoch, released | lanes);
        }
        if let Some((epoch, released)) = self.heard.own.take() {
            self.join_lanes(epoch, released | lanes);
        }
        for from in Reach::BEYOND.into_iter().filter(|from| *from <= reach) {
            self.know.join(&self.heard.know[from.level()]);
        }
    }

    fn join_lanes(&mut self, epoch: u32, lanes: u64) {
        self.lds.some(epoch, lanes, self.live);
        self.global.some(epoch, lanes, self.live);
    }

    /// The lanes of `lanes` wait until what they did in global memory is done. That publishes no store further than it goes by
    /// itself: it may stay in a cache.
    pub(super) fn drain(&mut self, reach: Reach, lanes: u64) {
        self.global.some(self.epoch, lanes, self.live);
        let own = Known { lds: Seen::default(), ..self.own(lanes) };
        let through = Known { plain: Seen::default(), ..own };
        let all = [own, through, Known { device: Seen::default(), ..through }];
        for (to, own) in Reach::BEYOND.into_iter().zip(&all).filter(|(to, _)| *to <= reach) {
            self.publish(to, own, lanes);
        }
        self.epoch += 1;
    }

    /// The wave has ended: what it did and what it knew.
    pub(super) fn ended(&self) -> Know {
        let mut all = self.know.clone();
        all.learn(self.id, &Known::all(self.epoch));
        all
    }

    /// For each of [`Reach::BEYOND`], whether a store by lane `lane` tells something, after the last fence or drain.
    pub(super) fn tells(&self, reach: Reach, lane: u32) -> [bool; 3] {
        Reach::BEYOND.map(|least| reach >= least && self.released[least.level()].lanes >> lane & 1 == 1)
    }

    /// What a store that [tells](Self::tells) so much tells whoever reads it: the same whichever lane's it is.
    pub(super) fn relaxed_message(&self, tells: [bool; 3]) -> Option<Message> {
        let know = Reach::BEYOND.map(|least| match tells[least.level()] {
            true => self.released[least.level()].know.clone(),
            false => Know::default(),
        });
        if know.iter().all(Know::is_empty) {
            return None;
        }
        let Release { epoch, lanes, .. } = self.released[0];
        Some(Message { block: self.block, device: self.device, wave: self.id, epoch, lanes, know })
    }

    /// What release operations of the lanes of `lanes` tell; [`Self::released_now`] ends them.
    pub(super) fn release_message(&self, reach: Reach, lanes: u64) -> Message {
        let mut all = self.know.clone();
        all.learn(self.id, &self.own(lanes));
        let know = Reach::BEYOND.map(|least| {
            let mut know = self.released[least.level()].know.clone();
            if reach >= least {
                know.join(&all);
            }
            know
        });
        Message { block: self.block, device: self.device, wave: self.id, epoch: self.epoch, lanes, know }
    }

    pub(super) fn released_now(&mut self) {
        self.epoch += 1;
    }

    /// Lanes of `lanes` read `message` with acquire.
    pub(super) fn acquire(&mut self, message: &Message, reach: Reach, lanes: u64) {
        if message.wave == self.id {
            self.join_lanes(message.epoch, message.lanes | lanes);
        } else if let Some(know) = message.know(self.block, self.device, reach) {
            self.know.join(know);
        }
    }
}

/// All waves of a workgroup meet: LDS is in order; of global memory, what was published in the workgroup, and whatever
/// one of them knows of others. From here on they are in `epoch`.
pub(super) fn barrier(waves: &mut [Clock], epoch: u32) {
    let mut know = Know::default();
    let mut released: [Know; 3] = Default::default();
    for wave in &*waves {
        know.join(&wave.know);
        know.join(&wave.released[0].know);
        for (all, one) in released.iter_mut().zip(&wave.released) {
            all.join(&one.know);
        }
    }
    let published = !know.is_empty() || released.iter().any(|r| !r.is_empty());
    for wave in waves {
        wave.lds.all(wave.epoch);
        if published {
            wave.know = know.clone();
            for (mine, all) in wave.released.iter_mut().zip(&released) {
                let lanes = if all.is_empty() { 0 } else { wave.live };
                *mine = Release { know: all.clone(), epoch: wave.epoch, lanes };
            }
        }
        wave.epoch = epoch;
    }
}
