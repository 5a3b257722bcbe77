//! What a queue was given and may not have finished: it must stay loaded, and it is what a fault can come from.

use std::sync::Arc;

/// Something that runs on a device: a kernel's code, or a recording of several.
pub(super) trait Running: Send + Sync {
    /// Adds the kernels that it runs, each as [`Compiled::label`](crate::jit::Compiled::label) has it.
    fn kernels(&self, list: &mut Vec<String>);
}

/// What one queue was given since it was last known to be idle.
#[derive(Default)]
pub(super) struct InFlight {
    /// Number of things given so far.
    given: u64,
    /// So many of them are done.
    done: u64,
    /// What runs, in the order in which it was first given, with the number of its last run.
    held: Vec<(Arc<dyn Running>, u64)>,
}

impl InFlight {
    /// Notes something that was given; what it holds on to, if anything. Allocates only for what it does not hold yet.
    pub(super) fn give(&mut self, running: Option<&Arc<dyn Running>>) {
        self.given += 1;
        let Some(running) = running else { return };
        // Newest first: mostly one kernel follows itself.
        match self.held.iter_mut().rev().find(|(held, _)| Arc::ptr_eq(held, running)) {
            Some((_, last)) => *last = self.given,
            None => self.held.push((running.clone(), self.given)),
        }
    }

    /// Number of what was given last, to be told to [`InFlight::settle`] once it is done.
    pub(super) fn mark(&self) -> u64 {
        self.given
    }

    /// Everything up to `mark` is done. What is no longer needed is handed out, to be dropped where no lock is held.
    pub(super) fn settle(&mut self, mark: u64) -> Vec<Arc<dyn Running>> {
        self.done = self.done.max(mark);
        self.held.extract_if(.., |(_, last)| *last <= mark).map(|(running, _)| running).collect()
    }

    /// Whether everything is known to be done.
    pub(super) fn is_settled(&self) -> bool {
        self.done == self.given
    }

    /// Adds the kernels that may be running.
    pub(super) fn kernels(&self, list: &mut Vec<String>) {
        self.held.iter().for_each(|(running, _)| running.kernels(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Running for Named {
        fn kernels(&self, list: &mut Vec<String>) {
            list.push(self.0.to_owned());
        }
    }

    fn kernels(flight: &InFlight) -> Vec<String> {
        let mut list = vec![];
        flight.kernels(&mut list);
        list
    }

    #[test]
    fn what_was_given_after_the_mark_stays() {
        let [a, b]: [Arc<dyn Running>; 2] = [Arc::new(Named("a")), Arc::new(Named("b"))];
        let mut flight = InFlight::default();
        assert!(flight.is_settled());
        flight.give(Some(&a));
        flight.give(Some(&b));
        flight.give(None);
        assert!(!flight.is_settled());
        assert_eq!(kernels(&flight), ["a", "b"]);
        let mark = flight.mark();
        flight.give(Some(&b));
        assert_eq!(flight.settle(mark).len(), 1, "a alone is done");
        assert_eq!(kernels(&flight), ["b"]);
        assert!(!flight.is_settled(), "b runs again");
        assert_eq!(Arc::strong_count(&a), 1);
        assert_eq!(Arc::strong_count(&b), 2);
        drop(flight.settle(flight.mark()));
        assert!(flight.is_settled());
        assert_eq!(Arc::strong_count(&b), 1);
    }

    #[test]
    fn an_old_mark_takes_nothing_back() {
        let a: Arc<dyn Running> = Arc::new(Named("a"));
        let mut flight = InFlight::default();
        flight.give(Some(&a));
        let old = 0;
        flight.settle(flight.mark());
        assert!(flight.settle(old).is_empty());
        assert!(flight.is_settled());
    }

    #[test]
    fn one_kernel_is_held_once() {
        let a: Arc<dyn Running> = Arc::new(Named("a"));
        let mut flight = InFlight::default();
        (0..1000).for_each(|_| flight.give(Some(&a)));
        assert_eq!(kernels(&flight), ["a"]);
        assert_eq!(Arc::strong_count(&a), 2);
    }
}
