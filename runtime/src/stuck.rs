//! Finds waves that go round for ever unless somebody changes memory.

/// Looks for a wave's state to come back: Brent's way, which keeps one state and finds any period.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Probe {
    version: u64,
    saved: Option<u64>,
    power: u32,
    steps: u32,
    stuck: bool,
}

impl Probe {
    /// The wave has come to a place where it lets others run; memory is at `version`.
    pub(crate) fn visit(&mut self, version: u64, state: impl FnOnce() -> u64) {
        if version != self.version {
            *self = Self { version, power: 1, ..Self::default() };
            return;
        }
        if self.stuck {
            return;
        }
        let state = state();
        if self.saved == Some(state) {
            self.stuck = true;
        } else if self.saved.is_none() || self.steps == self.power {
            (self.saved, self.power, self.steps) = (Some(state), self.power.saturating_mul(2), 0);
        }
        self.steps += 1;
    }

    /// Whether it goes round for ever unless memory changes from what it is at `version`.
    pub(crate) fn is_stuck(&self, version: u64) -> bool {
        self.stuck && self.version == version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_period_is_found_and_a_change_begins_anew() {
        for (lead, period) in [(0, 1), (0, 2), (3, 5), (40, 7), (0, 100)] {
            let mut probe = Probe::default();
            let state = |i: u64| if i < lead { 1000 + i } else { (i - lead) % period };
            let at = (0..2000).find(|i| {
                probe.visit(1, || state(*i));
                probe.is_stuck(1)
            });
            assert!(at.is_some_and(|at| at >= lead + period), "{lead} {period} {at:?}");
            assert!(!probe.is_stuck(2));
            probe.visit(2, || 0);
            assert!(!probe.is_stuck(2));
        }
        // What never repeats is never stuck.
        let mut probe = Probe::default();
        (0..5000).for_each(|i| probe.visit(1, || i));
        assert!(!probe.is_stuck(1));
    }
}
