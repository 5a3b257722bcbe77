//! Copies of host memory that are under way: the same for every driver.

use std::sync::Arc;

use super::driver::{HostMemory, Mark, Transit};
use crate::error::Error;

/// A stream of a driver, as copies see it.
pub(super) trait Flow: Send + Sync {
    /// What is recorded in it.
    type Mark: Mark;

    /// Puts a mark behind what it was given.
    fn record(&self, mark: &Self::Mark) -> Result<(), Error>;

    /// Waits for everything that it was given.
    fn synchronize(&self) -> Result<(), Error>;

    /// Name of its device.
    fn device(&self) -> &str;
}

/// A copy of host memory that may be under way.
pub(super) struct Moving<F: Flow> {
    /// Taken when it is known that no copy uses it.
    host: Option<Box<dyn HostMemory>>,
    flow: Arc<F>,
    arrived: F::Mark,
    /// Whether `arrived` is behind the copy in the stream.
    marked: bool,
    begun: bool,
}

impl<F: Flow> Moving<F> {
    pub(super) fn new(host: Box<dyn HostMemory>, flow: Arc<F>, arrived: F::Mark) -> Self {
        Self { host: Some(host), flow, arrived, marked: false, begun: false }
    }

    /// The memory, for the copy that is about to be given to the stream; `None` if it is empty.
    pub(super) fn begin(&mut self) -> Option<&mut dyn HostMemory> {
        let host = self.host.as_deref_mut().filter(|host| !host.bytes().is_empty())?;
        self.begun = true;
        Some(host)
    }

    /// Marks the end of the copy, which the stream was given.
    pub(super) fn marked(&mut self) -> Result<(), Error> {
        if self.begun {
            self.flow.record(&self.arrived)?;
            self.marked = true;
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), Error> {
        match (self.begun, self.marked) {
            (false, _) => Ok(()),
            (true, true) => self.arrived.synchronize(),
            (true, false) => self.flow.synchronize(),
        }
    }
}

impl<F: Flow> Transit for Moving<F> {
    fn is_done(&self) -> Result<bool, Error> {
        if self.begun { self.arrived.is_passed() } else { Ok(true) }
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn HostMemory>, Error> {
        self.wait()?;
        let lost = || Error::Foreign { what: "transfer", device: self.flow.device().to_owned() };
        self.host.take().ok_or_else(lost)
    }
}

impl<F: Flow> Drop for Moving<F> {
    fn drop(&mut self) {
        if let Some(host) = self.host.take()
            && self.wait().is_err()
        {
            // Nobody can tell whether the copy still runs: the memory stays.
            std::mem::forget(host);
        }
    }
}
