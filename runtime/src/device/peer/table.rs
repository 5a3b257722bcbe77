//! Where a kernel finds its peers' memory.

use std::fmt;
use std::sync::Arc;

use lathe_dsl::kernel::BufferArg;

use super::{OpenRegion, PeerRegion};
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::error::Error;

/// The addresses of regions as one device reaches them, in a buffer of that device: what a kernel's argument
/// `peers: In<u64>[ranks]` takes. The regions stay open as long as this lives; launches that are under way when it is dropped are
/// waited for. A [`Graph`](crate::device::Graph) keeps the buffer and not the regions: keep this as long as the graph.
pub struct PeerTable {
    /// Dropped first.
    addresses: DeviceBuffer<u64>,
    open: Vec<OpenRegion>,
}

impl PeerTable {
    /// Opens `regions` on `device`, in their order: that of the ranks. Its own region is among them.
    ///
    /// # Errors
    /// As [`Device::open_region`](trait@Device#method.open_region) of each; [`Error::OutOfMemory`].
    pub fn new(device: &Arc<dyn Device>, regions: &[Arc<dyn PeerRegion>]) -> Result<Self, Error> {
        let open = regions.iter().map(|region| device.open_region(region)).collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<u64> = open.iter().map(OpenRegion::address).collect();
        Ok(Self { addresses: DeviceBuffer::from_slice(device, &addresses)?, open })
    }

    /// The table as a launch argument: one address a region.
    pub fn arg(&self) -> BufferArg<'_, u64> {
        self.addresses.arg()
    }

    /// What is open, in the order of the table.
    pub fn regions(&self) -> &[OpenRegion] {
        &self.open
    }
}

impl fmt::Debug for PeerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.open).finish()
    }
}
