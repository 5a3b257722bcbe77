//! Regions of device `gcn`: shared allocations of its memory.

use std::any::Any;
use std::sync::{Arc, Mutex};

use super::{PeerHandle, PeerRegion, another_driver, within_the_process};
use crate::device::driver::{Opened, Sharing};
use crate::device::gcn::{self, Gcn};
use crate::device::{Device, DeviceId};
use crate::error::Error;
use crate::gcn::{Memory, Shared};

struct Region {
    device: DeviceId,
    name: String,
    shared: Arc<Shared>,
    bytes: u64,
    /// The device's own way to it.
    _opened: Open,
}

/// A shared allocation in a device's memory.
struct Open {
    memory: Arc<Mutex<Memory>>,
    address: u64,
}

impl Open {
    fn new(device: &Gcn, shared: &Arc<Shared>) -> Self {
        let memory = device.shared().clone();
        gcn::lock(&memory).open(shared);
        Self { memory, address: shared.address() }
    }
}

impl Opened for Open {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // It was opened once for this.
        let _ = gcn::lock(&self.memory).close(self.address);
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
        self.shared.address()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&self) -> Result<PeerHandle, Error> {
        Err(within_the_process(self.name.clone()))
    }
}

impl Sharing for Gcn {
    fn region(&self, bytes: u64) -> Result<Arc<dyn PeerRegion>, Error> {
        let out_of_memory = || Error::OutOfMemory { device: self.name(), bytes };
        let n = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        let shared = Shared::zeroed(n).map_err(|_| out_of_memory())?;
        Ok(Arc::new(Region { device: self.id(), name: self.name(), bytes, _opened: Open::new(self, &shared), shared }))
    }

    fn import(&self, _: &PeerHandle) -> Result<Arc<dyn PeerRegion>, Error> {
        Err(within_the_process(self.name()))
    }

    fn open(&self, region: &dyn PeerRegion) -> Result<Box<dyn Opened>, Error> {
        let known: &dyn Any = region;
        let known = known.downcast_ref::<Region>().ok_or_else(|| another_driver(self.name(), region))?;
        Ok(Box::new(Open::new(self, &known.shared)))
    }
}
