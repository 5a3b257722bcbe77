//! Model of the wait counters: what has been issued, and what the waits so far guarantee to be complete.
//!
//! * `vmcnt` counts vector memory loads and stores; they complete in the order of issue.
//! * `lgkmcnt` counts LDS operations, which complete in order among themselves, and scalar loads (and the LDS half of
//!   FLAT), which complete in any order. So only `lgkmcnt(0)` covers a scalar load, while `lgkmcnt(n)` covers all but
//!   the last n LDS operations.
//! * `expcnt` covers exports only on these chips: memory instructions read their data registers at issue.

/// Order number of an asynchronous operation within its class; the first one is 1, 0 stands for none.
pub(crate) type Seq = u32;

/// What one `s_waitcnt` asks for; `None` leaves a counter alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitCounts {
    /// At most so many vector memory operations may be outstanding.
    pub vm: Option<u32>,
    /// At most so many LDS and scalar memory operations may be outstanding.
    pub lgkm: Option<u32>,
    /// Exports; has no effect in compute kernels.
    pub exp: Option<u32>,
}

/// Operations of one class: `retired <= issued`.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Class {
    pub(crate) issued: Seq,
    pub(crate) retired: Seq,
}

impl Class {
    fn issue(&mut self) -> Seq {
        self.issued += 1;
        self.issued
    }
}

/// Outstanding operations of one wave.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Outstanding {
    /// Vector memory.
    pub(crate) vm: Class,
    /// LDS.
    pub(crate) lds: Class,
    /// Scalar loads and FLAT: no order.
    pub(crate) unordered: Class,
}

impl Outstanding {
    pub(crate) fn issue_vm(&mut self) -> Seq {
        self.vm.issue()
    }

    pub(crate) fn issue_lds(&mut self) -> Seq {
        self.lds.issue()
    }

    pub(crate) fn issue_unordered(&mut self) -> Seq {
        self.unordered.issue()
    }

    /// Applies a wait: moves `retired` to what is certain after it.
    pub(crate) fn wait(&mut self, counts: WaitCounts) {
        if let Some(n) = counts.vm {
            self.vm.retired = self.vm.retired.max(self.vm.issued.saturating_sub(n));
        }
        if let Some(n) = counts.lgkm {
            // At most n outstanding in all, so at most the n last LDS operations, scalar loads or not.
            self.lds.retired = self.lds.retired.max(self.lds.issued.saturating_sub(n));
            if n == 0 {
                self.unordered.retired = self.unordered.issued;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lgkm(n: u32) -> WaitCounts {
        WaitCounts { lgkm: Some(n), ..WaitCounts::default() }
    }

    #[test]
    fn vmcnt_retires_in_order() {
        let mut o = Outstanding::default();
        let (a, b, c) = (o.issue_vm(), o.issue_vm(), o.issue_vm());
        o.wait(WaitCounts { vm: Some(1), ..WaitCounts::default() });
        assert!(a <= o.vm.retired && b <= o.vm.retired && c > o.vm.retired);
        // A larger count later takes nothing back.
        o.wait(WaitCounts { vm: Some(2), ..WaitCounts::default() });
        assert_eq!(o.vm.retired, b);
    }

    #[test]
    fn only_zero_covers_scalar_loads() {
        let mut o = Outstanding::default();
        let first = o.issue_unordered();
        o.issue_unordered();
        o.wait(lgkm(1));
        assert!(first > o.unordered.retired, "either of the two may be the one that returned");
        o.wait(lgkm(0));
        assert_eq!(o.unordered.retired, 2);
    }

    #[test]
    fn scalar_loads_outstanding_do_not_weaken_a_wait_on_lds() {
        let mut o = Outstanding::default();
        let first = o.issue_lds();
        let second = o.issue_lds();
        let scalar = o.issue_unordered();
        o.wait(lgkm(1));
        // One of second and the scalar load may be outstanding, so neither is safe.
        assert!(first <= o.lds.retired && second > o.lds.retired && scalar > o.unordered.retired);
    }
}
