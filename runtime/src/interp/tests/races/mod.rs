//! Data races: what is one, what is none, and how it is told.

mod global;
mod in_wave;
mod lds;
mod messages;

use lathe_dsl::ir::{Order, Scope};

use super::*;

/// What is found in a kernel run on zeroed buffers: the same whatever the schedule.
#[track_caller]
pub(super) fn found(kernel: &Kernel) -> Vec<String> {
    let program = Program::new(kernel).unwrap();
    let mut first: Option<Vec<String>> = None;
    for threads in [1, 2] {
        for seed in [None, Some(0), Some(1), Some(2), Some(3), Some(4)] {
            let buffers: Vec<GlobalBuffer> =
                kernel.params.iter().map(|p| GlobalBuffer::zeroed(p.kind.buffer_bytes().unwrap() as usize)).collect();
            let args: Vec<ArgValue<'_>> = buffers.iter().map(ArgValue::Buffer).collect();
            let options = Options { seed, threads: Some(threads), step_limit: Some(10_000_000), ..Options::default() };
            let report = launch(&program, &args, &options).unwrap();
            let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
            assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{seed:?} {threads}");
        }
    }
    first.unwrap_or_default()
}

/// As [`found`], of a kernel with one race.
#[track_caller]
pub(super) fn race(kernel: &Kernel) -> String {
    let found = found(kernel);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.into_iter().next().unwrap()
}

impl Build {
    fn fence(&mut self, order: Order, scope: Scope) {
        self.void(Op::Fence { order, scope });
    }

    fn drain(&mut self, scope: Scope) {
        self.void(Op::Drain { scope });
    }

    fn barrier(&mut self) {
        self.void(Op::Barrier);
    }

    /// Every thread stores `value` at its own element of a new LDS array, in order; gives the array.
    fn filled_lds(&mut self, len: u32) -> Value {
        let l = self.lds("l", Scalar::U32, len);
        let t = self.tid();
        let p = self.ptr(l, t);
        self.ptr_store(t, p);
        l
    }

    fn first_only(&mut self, f: impl FnOnce(&mut Self)) {
        let (t, zero) = (self.tid(), self.u32(0));
        let first = self.compare(Predicate::Eq, t, zero);
        self.if_(first, f);
    }
}
