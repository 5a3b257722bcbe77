//! Recordings: lists of launches and copies, which each run gives to the stream again.

use std::sync::{Arc, Mutex, PoisonError};

use super::context::Context;
use super::memory::Memory;
use super::module::{Loaded, Modules};
use super::stream::{HipMark, State};
use crate::device::driver::{Recorder, Recording};
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

enum Step {
    Launch(Arc<Loaded>, Box<ArgBlock>),
    Copy { to: u64, from: u64, bytes: u64 },
}

/// A recording under way.
pub(super) struct List {
    modules: Arc<Modules>,
    memory: Arc<Memory>,
    steps: Mutex<Vec<Step>>,
}

impl List {
    pub(super) fn new(modules: &Arc<Modules>, memory: &Arc<Memory>) -> Self {
        Self { modules: modules.clone(), memory: memory.clone(), steps: Mutex::default() }
    }

    fn note(&self, step: Step) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }
}

impl Recorder for List {
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error> {
        self.note(Step::Launch(self.modules.loaded(compiled)?, Box::new(*args)));
        Ok(())
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        self.memory.check(from, bytes)?;
        self.memory.check(to, bytes)?;
        if bytes > 0 {
            self.note(Step::Copy { to, from, bytes });
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Recording>, Error> {
        let steps = std::mem::take(&mut *self.steps.lock().unwrap_or_else(PoisonError::into_inner));
        let last = Mutex::new(HipMark::untimed(&self.memory.context)?);
        Ok(Arc::new(Replayed { context: self.memory.context.clone(), steps, last }))
    }
}

/// A recording as the device hands it out. Each launch that it gives to a stream keeps the kernel's code by itself.
pub(super) struct Replayed {
    context: Arc<Context>,
    steps: Vec<Step>,
    /// End of the last run: runs follow each other, in whichever streams they are. Locked while a run is given to its stream.
    last: Mutex<HipMark>,
}

impl Replayed {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Gives one run to a stream of the same device.
    pub(super) fn run(&self, state: &State) -> Result<(), Error> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.hold(state)?;
        let given = self.steps.iter().try_for_each(|step| match step {
            Step::Launch(loaded, args) => state.launch(loaded, args),
            Step::Copy { to, from, bytes } => state.copy(*to, *from, *bytes),
        });
        // Of what was given before a step that failed, too.
        given.and(last.record(state))
    }
}

impl Recording for Replayed {}
