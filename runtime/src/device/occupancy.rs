//! What a kernel needs of a device once it is loaded there, and how much of it runs at once.

use serde::Serialize;

use super::Device;
use crate::error::Error;
use crate::jit::Compiled;

/// What a kernel's loaded code needs. `None` where the device does not tell: the interpreter has no registers, and what the
/// driver's own compiler does is known only after loading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LoadedResources {
    /// 32-bit registers a thread (AMD: vector registers).
    pub registers: Option<u32>,
    /// AMD: scalar registers a wave.
    pub scalar_registers: Option<u32>,
    /// Memory of a thread's own, in bytes: its stack and what registers were spilled to.
    pub local_bytes: Option<u32>,
    /// AMD: registers spilled.
    pub spills: Option<u32>,
    /// LDS (shared memory) a workgroup that the code brings along, in bytes.
    pub static_lds_bytes: u32,
    /// LDS a workgroup that each launch allocates, in bytes.
    pub dynamic_lds_bytes: u32,
    /// Threads that a workgroup of this kernel may have, which registers can limit.
    pub max_block: Option<u32>,
}

impl LoadedResources {
    /// What the compiler said.
    pub(super) fn of_record(compiled: &Compiled) -> Self {
        let resources = &compiled.record().resources;
        Self {
            registers: resources.vgpr,
            scalar_registers: resources.sgpr,
            local_bytes: resources.scratch_bytes,
            spills: resources.spills,
            static_lds_bytes: resources.lds_bytes - resources.dynamic_lds_bytes.min(resources.lds_bytes),
            dynamic_lds_bytes: resources.dynamic_lds_bytes,
            max_block: None,
        }
    }
}

/// How many workgroups of a kernel run at once when nothing else does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Occupancy {
    /// Workgroups on one compute unit (streaming multiprocessor).
    pub blocks_per_unit: u32,
    /// Compute units of the device.
    pub units: u32,
}

impl Occupancy {
    /// Workgroups on the whole device.
    pub fn resident_blocks(&self) -> u64 {
        u64::from(self.blocks_per_unit) * u64::from(self.units)
    }
}

impl Compiled {
    /// What the kernel needs on `device`, where it is loaded if it was not.
    ///
    /// # Errors
    /// Code for another device, or what the driver says.
    pub fn resources_on(&self, device: &dyn Device) -> Result<LoadedResources, Error> {
        device.resources(self)
    }

    /// How many of its workgroups run at once on `device`; `None` where that has no meaning: devices that run on the host.
    ///
    /// # Errors
    /// As [`Compiled::resources_on`].
    pub fn occupancy(&self, device: &dyn Device) -> Result<Option<Occupancy>, Error> {
        device.occupancy(self)
    }
}

impl dyn Device {
    /// Workgroups of the kernel that are on the device at once when nothing else is: a launch with more of them cannot have
    /// all wait for each other. `None` as for [`Compiled::occupancy`].
    ///
    /// # Errors
    /// As [`Compiled::resources_on`].
    pub fn resident_blocks(&self, compiled: &Compiled) -> Result<Option<u64>, Error> {
        Ok(self.occupancy(compiled)?.map(|o| o.resident_blocks()))
    }

    /// Whether `blocks` workgroups of the kernel are on the device at once when nothing else is, so that all can wait for each
    /// other. Always on devices that run on the host.
    ///
    /// # Errors
    /// [`Error::NotCoResident`]; as [`Compiled::resources_on`].
    pub fn co_resident(&self, compiled: &Compiled, blocks: u64) -> Result<(), Error> {
        match self.resident_blocks(compiled)? {
            Some(resident) if resident < blocks => {
                let kernel = compiled.kernel().name.clone();
                Err(Error::NotCoResident { kernel, device: self.name(), blocks, resident })
            }
            _ => Ok(()),
        }
    }
}
