//! Regions of device `cpu`: buffers that several devices have.

use std::any::Any;
use std::sync::{Arc, Mutex};

use super::{PeerHandle, PeerRegion, another_driver, within_the_process};
use crate::device::cpu::{self, Cpu, Memory};
use crate::device::driver::{Opened, Sharing};
use crate::device::{Device, DeviceId};
use crate::error::Error;
use crate::interp::GlobalBuffer;

struct Region {
    device: DeviceId,
    name: String,
    buffer: Arc<GlobalBuffer>,
    /// The device's own way to it.
    _opened: Open,
}

/// A buffer among a device's.
struct Open {
    memory: Arc<Mutex<Memory>>,
    address: u64,
}

impl Open {
    fn new(device: &Cpu, buffer: &Arc<GlobalBuffer>) -> Self {
        let (memory, address) = (device.shared().clone(), buffer.address());
        cpu::lock(&memory).regions.entry(address).or_insert_with(|| (buffer.clone(), 0)).1 += 1;
        Self { memory, address }
    }
}

impl Opened for Open {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        cpu::release(&mut cpu::lock(&self.memory).regions, self.address);
    }
}

impl PeerRegion for Region {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn owner(&self) -> String {
        self.name.clone()
    }

    fn address(&self) -> u64 {
        self.buffer.address()
    }

    fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    fn export(&self) -> Result<PeerHandle, Error> {
        Err(within_the_process(self.name.clone()))
    }
}

impl Sharing for Cpu {
    fn region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error> {
        let buffer = Arc::new(self.buffer(bytes, GlobalBuffer::try_zeroed)?);
        Ok(Arc::new(Region { device: self.id(), name: self.name(), _opened: Open::new(self, &buffer), buffer }))
    }

    fn import(&self, _: &PeerHandle) -> Result<Arc<dyn PeerRegion>, Error> {
        Err(within_the_process(self.name()))
    }

    fn open(&self, region: &dyn PeerRegion) -> Result<Box<dyn Opened>, Error> {
        let known: &dyn Any = region;
        let known = known.downcast_ref::<Region>().ok_or_else(|| another_driver(self.name(), region))?;
        Ok(Box::new(Open::new(self, &known.buffer)))
    }
}
