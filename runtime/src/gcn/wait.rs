//! Model of the wait counters: what has been issued, and what the waits so far guarantee to be complete.
//!
//! * `vmcnt` counts vector memory loads and stores; they complete in the order of issue.
//! * `lgkmcnt` counts LDS operations, which complete in order among themselves, and scalar loads (and the LDS half of
//!   FLAT), which complete in any order. So only `lgkmcnt(0)` covers a scalar load, while `lgkmcnt(n)` covers all but
//!   the last n LDS operations.
//! * `expcnt` covers exports only on these chips: memory instructions read their data registers at issue.
//!
//! gfx12 splits them: `loadcnt` is vmcnt of loads, `storecnt` of stores, `dscnt` is lgkmcnt of LDS operations, `kmcnt` of
//! scalar loads; texture counters count nothing here.

/// Order number of an asynchronous operation within its class; the first one is 1, 0 stands for none.
pub(crate) type Seq = u32;

/// What one wait instruction asks for; `None` leaves a counter alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitCounts {
    /// At most so many vector memory operations may be outstanding; on gfx12, loads (`loadcnt`).
    pub vm: Option<u32>,
    /// At most so many LDS and scalar memory operations may be outstanding.
    pub lgkm: Option<u32>,
    /// At most so many LDS operations (`dscnt`).
    pub ds: Option<u32>,
    /// At most so many scalar memory operations (`kmcnt`).
    pub km: Option<u32>,
    /// At most so many vector memory stores (`storecnt`).
    pub store: Option<u32>,
    /// Exports; has no effect in compute kernels.
    pub exp: Option<u32>,
}

impl WaitCounts {
    /// Waits for everything.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self { vm: Some(0), lgkm: Some(0), ds: None, km: None, store: None, exp: None };
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
    /// Vector memory stores, where they have a counter of their own.
    pub(crate) store: Class,
    /// LDS.
    pub(crate) lds: Class,
    /// LDS half of FLAT: no order.
    pub(crate) flat: Class,
    /// Scalar loads: no order.
    pub(crate) scalar: Class,
}

impl Outstanding {
    pub(crate) fn issue_vm(&mut self) -> Seq {
        self.vm.issue()
    }

    pub(crate) fn issue_store(&mut self) -> Seq {
        self.store.issue()
    }

    pub(crate) fn issue_lds(&mut self) -> Seq {
        self.lds.issue()
    }

    pub(crate) fn issue_flat(&mut self) -> Seq {
        self.flat.issue()
    }

    pub(crate) fn issue_scalar(&mut self) -> Seq {
        self.scalar.issue()
    }

    /// Applies a wait: moves `retired` to what is certain after it.
    pub(crate) fn wait(&mut self, counts: WaitCounts) {
        if let Some(n) = counts.vm {
            self.vm.retired = self.vm.retired.max(self.vm.issued.saturating_sub(n));
        }
        if let Some(n) = counts.store {
            self.store.retired = self.store.retired.max(self.store.issued.saturating_sub(n));
        }
        if let Some(n) = counts.lgkm.or(counts.ds) {
            // At most n outstanding in all, so at most the n last LDS operations, scalar loads or not.
            self.lds.retired = self.lds.retired.max(self.lds.issued.saturating_sub(n));
            if n == 0 {
                self.flat.retired = self.flat.issued;
            }
        }
        if counts.lgkm.or(counts.km) == Some(0) {
            self.scalar.retired = self.scalar.issued;
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
        let first = o.issue_scalar();
        o.issue_scalar();
        o.wait(lgkm(1));
        assert!(first > o.scalar.retired, "either of the two may be the one that returned");
        o.wait(lgkm(0));
        assert_eq!(o.scalar.retired, 2);
    }

    #[test]
    fn split_counters_cover_their_own_kind_only() {
        let mut o = Outstanding::default();
        let (lds, flat, scalar) = (o.issue_lds(), o.issue_flat(), o.issue_scalar());
        o.wait(WaitCounts { ds: Some(0), ..WaitCounts::default() });
        assert!(lds <= o.lds.retired && flat <= o.flat.retired && scalar > o.scalar.retired);
        o.wait(WaitCounts { km: Some(0), ..WaitCounts::default() });
        assert_eq!(scalar, o.scalar.retired);
    }

    #[test]
    fn scalar_loads_outstanding_do_not_weaken_a_wait_on_lds() {
        let mut o = Outstanding::default();
        let first = o.issue_lds();
        let second = o.issue_lds();
        let scalar = o.issue_scalar();
        o.wait(lgkm(1));
        // One of second and the scalar load may be outstanding, so neither is safe.
        assert!(first <= o.lds.retired && second > o.lds.retired && scalar > o.scalar.retired);
    }
}
