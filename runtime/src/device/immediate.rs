//! Streams of a device that does everything before the call returns, made of its [`Device`] calls.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Device;
use super::driver::{Asynchronous, HostMemory, Mark, Queue, Recorder, Recording, Transit};
use crate::error::Error;
use crate::jit::Compiled;
use crate::launch::ArgBlock;

/// Such a device.
pub(super) struct Immediate(pub Arc<dyn Device>);

/// Its queues and recorders.
struct InOrder {
    device: Arc<dyn Device>,
    /// What launches found unusual.
    findings: Mutex<Vec<String>>,
}

/// When it was last recorded.
#[derive(Default)]
struct Moment(Mutex<Option<Instant>>);

/// Ordinary memory; 16 bytes a word.
struct Words {
    words: Vec<u128>,
    bytes: usize,
}

/// A copy that is done.
struct Done(Box<dyn HostMemory>);

/// Notes launches and copies.
struct Notes {
    device: Arc<dyn Device>,
    steps: Mutex<Vec<Step>>,
}

enum Step {
    Launch(Arc<Compiled>, Box<ArgBlock>),
    Copy { to: u64, from: u64, bytes: u64 },
}

/// The steps of a recording.
struct Script {
    device: Arc<dyn Device>,
    steps: Vec<Step>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ranges may overlap.
fn copy(device: &dyn Device, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
    let too_large = || Error::BadAddress { device: device.name(), address: from, bytes };
    let mut between = vec![];
    let len = usize::try_from(bytes).map_err(|_| too_large())?;
    between.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { device: device.name(), bytes })?;
    between.resize(len, 0);
    device.read(from, &mut between)?;
    device.write(to, &between)
}

impl Asynchronous for Immediate {
    fn queue(&self) -> Result<Box<dyn Queue>, Error> {
        Ok(Box::new(InOrder { device: self.0.clone(), findings: Mutex::default() }))
    }

    fn mark(&self) -> Result<Box<dyn Mark>, Error> {
        Ok(Box::new(Moment::default()))
    }

    fn host_memory(&self, bytes: usize) -> Result<Box<dyn HostMemory>, Error> {
        let mut words = vec![];
        let count = bytes.div_ceil(size_of::<u128>());
        words.try_reserve_exact(count).map_err(|_| Error::HostMemory { bytes: bytes as u64 })?;
        words.resize(count, 0);
        Ok(Box::new(Words { words, bytes }))
    }

    fn recorder(&self) -> Result<Box<dyn Recorder>, Error> {
        Ok(Box::new(Notes { device: self.0.clone(), steps: Mutex::default() }))
    }
}

impl InOrder {
    fn run(&self, compiled: &Compiled, args: &ArgBlock) -> Result<(), Error> {
        let report = self.device.launch(compiled, args)?;
        if !report.findings.is_empty() {
            lock(&self.findings).extend(report.findings);
        }
        Ok(())
    }

    fn foreign(&self, what: &'static str) -> Error {
        Error::Foreign { what, device: self.device.name() }
    }
}

impl Queue for InOrder {
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error> {
        self.run(compiled, args)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        copy(&*self.device, to, from, bytes)
    }

    fn write(&self, to: u64, from: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error> {
        self.device.write(to, from.bytes())?;
        Ok(Box::new(Done(from)))
    }

    fn read(&self, from: u64, mut to: Box<dyn HostMemory>) -> Result<Box<dyn Transit>, Error> {
        self.device.read(from, to.bytes_mut())?;
        Ok(Box::new(Done(to)))
    }

    fn replay(&self, recording: &Arc<dyn Recording>) -> Result<(), Error> {
        let recording: &dyn Any = &**recording;
        let script = recording
            .downcast_ref::<Script>()
            .filter(|script| script.device.id() == self.device.id())
            .ok_or_else(|| self.foreign("graph"))?;
        script.steps.iter().try_for_each(|step| match step {
            Step::Launch(compiled, args) => self.run(compiled, args),
            Step::Copy { to, from, bytes } => copy(&*self.device, *to, *from, *bytes),
        })
    }

    fn record(&self, mark: &dyn Mark) -> Result<(), Error> {
        let mark: &dyn Any = mark;
        let moment = mark.downcast_ref::<Moment>().ok_or_else(|| self.foreign("event"))?;
        *lock(&moment.0) = Some(Instant::now());
        Ok(())
    }

    fn wait(&self, mark: &dyn Mark) -> Result<(), Error> {
        // The work is done on this thread, so the thread waits; another driver's mark too.
        mark.synchronize()
    }

    fn is_idle(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn take_findings(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.findings))
    }
}

impl Mark for Moment {
    fn is_passed(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn elapsed(&self, end: &dyn Mark) -> Result<Duration, Error> {
        let end: &dyn Any = end;
        let foreign = || Error::Foreign { what: "event", device: "a device of the host".to_owned() };
        let end = *lock(&end.downcast_ref::<Self>().ok_or_else(foreign)?.0);
        let start = *lock(&self.0);
        let (Some(start), Some(end)) = (start, end) else { return Err(Error::NotRecorded) };
        Ok(end.saturating_duration_since(start))
    }
}

impl HostMemory for Words {
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

impl Transit for Done {
    fn is_done(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn HostMemory>, Error> {
        Ok(self.0)
    }
}

impl Recorder for Notes {
    fn launch(&self, compiled: &Arc<Compiled>, args: &ArgBlock) -> Result<(), Error> {
        lock(&self.steps).push(Step::Launch(compiled.clone(), Box::new(*args)));
        Ok(())
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        lock(&self.steps).push(Step::Copy { to, from, bytes });
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Recording>, Error> {
        let steps = self.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::new(Script { device: self.device, steps }))
    }
}

impl Recording for Script {}
