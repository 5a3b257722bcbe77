//! Device `gcn`: executes the linked AMD code object itself, instruction by instruction.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lathe_dsl::Target;
use lathe_dsl::ir::{Kernel, Location, OpNumber};

use super::driver::Sharing;
use super::extents::Extents;
use super::{Device, DeviceId, LaunchReport, wrong_code};
use crate::error::Error;
use crate::gcn::{self, CodeObject, GcnError, Memory, Options};
use crate::jit::{Code, Compiled};
use crate::launch::ArgBlock;

/// The code-object executor as a device.
pub struct Gcn {
    id: DeviceId,
    target: Target,
    options: Options,
    memory: Arc<Mutex<Memory>>,
    owners: Mutex<Extents>,
}

/// An execution error with the author's line, found through the object's line table and the kernel's trace.
#[derive(Debug, thiserror::Error)]
#[error("{}{error}", location.map_or(String::new(), |l| format!("{l}: ")))]
pub struct LocatedError {
    /// Where the operation that the faulty instruction came from was written.
    pub location: Option<Location>,
    /// What went wrong, with pc, workgroup, wave and lane.
    pub error: GcnError,
}

impl LocatedError {
    fn new(error: GcnError, kernel: &Kernel) -> Self {
        let op = error.site.as_ref().and_then(|site| site.line.as_ref()).map(|(_, line)| *line);
        let location = op.filter(|op| (1..=kernel.op_count()).contains(op)).map(|op| kernel.location(OpNumber(op)));
        Self { location, error }
    }
}

pub(super) fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gcn {
    /// A device with no memory in use. Waves and workgroups are interleaved by `seed`; without one, in order.
    pub fn new(target: Target, seed: Option<u64>) -> Self {
        // The executor takes 0 for "in order", which is a seed like any other here.
        let options = Options { seed: seed.map_or(0, |s| s.wrapping_add(1).max(1)), ..Options::default() };
        Self { id: DeviceId::unique(), target, options, memory: Arc::default(), owners: Mutex::default() }
    }

    fn owners(&self) -> MutexGuard<'_, Extents> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    /// What [`Sharing`] opens regions in.
    pub(super) fn shared(&self) -> &Arc<Mutex<Memory>> {
        &self.memory
    }
}

impl Device for Gcn {
    fn name(&self) -> String {
        format!("gcn:{}", self.target)
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn target(&self) -> Target {
        self.target
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        let out_of_memory = || Error::OutOfMemory { device: self.name(), bytes };
        let n = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        let address = self.memory().try_alloc(n).map_err(|_| out_of_memory())?;
        self.owners().insert(address, bytes);
        Ok(address)
    }

    fn free(&self, address: u64) {
        if self.owners().release(address) {
            // It is the memory's: it has an owner.
            let _ = self.memory().free(address);
        }
    }

    fn retain(&self, address: u64) -> Option<u64> {
        self.owners().retain(address)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let bad = |_| Error::BadAddress { device: self.name(), address, bytes: bytes.len() as u64 };
        self.memory().write(address, bytes).map_err(bad)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let n = bytes.len() as u64;
        let bad = |_| Error::BadAddress { device: self.name(), address, bytes: n };
        self.memory().read_into(address, bytes).map_err(bad)
    }

    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        let kernel = compiled.kernel();
        let wrong = |made_for: String| wrong_code(compiled, made_for, self.name());
        let Code::Object(artifact) = compiled.code() else { return Err(wrong(format!("cpu:{}", compiled.target()))) };
        if artifact.target != self.target {
            return Err(wrong(artifact.target.to_string()));
        }
        let located = |error| Error::fault(LocatedError::new(error, kernel));
        let object = CodeObject::load(&artifact.code, self.target).map_err(located)?;
        let launch = &kernel.launch;
        let start = Instant::now();
        let mut memory = self.memory();
        gcn::launch(&object, &artifact.symbol, launch.grid, launch.block, args.bytes(), &mut memory, &self.options)
            .map_err(located)?;
        Ok(LaunchReport { time: start.elapsed(), findings: vec![] })
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }
}
