//! Device `cpu`: interprets Kernel IR on the host and checks it.

use std::collections::{BTreeMap, TryReserveError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lathe_dsl::Target;
use lathe_dsl::ir::ParamKind;

use super::driver::Sharing;
use super::{Device, DeviceId, LaunchReport, wrong_code};
use crate::error::Error;
use crate::interp::{self, ArgValue, GlobalBuffer};
use crate::jit::{Code, Compiled};
use crate::launch::ArgBlock;

/// How the CPU device runs a launch: [`interp::Options`].
pub type CpuOptions = interp::Options;

/// The interpreter as a device, with the wave width and the limits of a chip.
pub struct Cpu {
    id: DeviceId,
    target: Target,
    options: CpuOptions,
    memory: Arc<Mutex<Memory>>,
}

/// Buffers by address, each with the number of its owners.
type Buffers = BTreeMap<u64, (Arc<GlobalBuffer>, u32)>;

/// What a device's kernels reach.
#[derive(Default)]
pub(super) struct Memory {
    own: Buffers,
    /// What was opened here, by its own device too.
    pub regions: Buffers,
}

impl Memory {
    /// The buffer that covers `bytes` at `address`, and where in it they begin.
    fn find(&self, address: u64, bytes: u64) -> Option<(Arc<GlobalBuffer>, usize)> {
        [&self.own, &self.regions].into_iter().find_map(|buffers| {
            let (start, (buffer, _)) = buffers.range(..=address).next_back()?;
            let end = address.checked_add(bytes)?;
            (end <= *start + buffer.len() as u64).then(|| (buffer.clone(), (address - start) as usize))
        })
    }

    fn all(&self) -> impl Iterator<Item = &Arc<GlobalBuffer>> {
        self.own.values().chain(self.regions.values()).map(|(buffer, _)| buffer)
    }
}

pub(super) fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cpu {
    /// A device with no memory in use.
    pub fn new(target: Target, options: CpuOptions) -> Self {
        Self { id: DeviceId::unique(), target, options, memory: Arc::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    /// What [`Sharing`] opens regions in.
    pub(super) fn shared(&self) -> &Arc<Mutex<Memory>> {
        &self.memory
    }

    /// A buffer of so many bytes, for which the host must have room.
    pub(super) fn buffer(
        &self,
        bytes: u64,
        make: impl FnOnce(usize) -> Result<GlobalBuffer, TryReserveError>,
    ) -> Result<GlobalBuffer, Error> {
        let full = || Error::OutOfMemory { device: self.name(), bytes };
        let len = usize::try_from(bytes).ok().filter(|n| *n <= 1 << 40).ok_or_else(full)?;
        make(len).map_err(|_| full())
    }

    fn find(&self, address: u64, bytes: u64) -> Result<(Arc<GlobalBuffer>, usize), Error> {
        let bad = || Error::BadAddress { device: self.name(), address, bytes };
        self.memory().find(address, bytes).ok_or_else(bad)
    }
}

/// One owner fewer; without any the buffer is gone.
pub(super) fn release(buffers: &mut Buffers, address: u64) {
    if let Some((_, owners)) = buffers.get_mut(&address) {
        *owners -= 1;
        if *owners == 0 {
            buffers.remove(&address);
        }
    }
}

impl Device for Cpu {
    fn name(&self) -> String {
        format!("cpu:{}", self.target)
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn target(&self) -> Target {
        self.target
    }

    fn alloc(&self, bytes: u64) -> Result<u64, Error> {
        let buffer = self.buffer(bytes, GlobalBuffer::try_uninit)?;
        let address = buffer.address();
        self.memory().own.insert(address, (Arc::new(buffer), 1));
        Ok(address)
    }

    fn free(&self, address: u64) {
        release(&mut self.memory().own, address);
    }

    fn retain(&self, address: u64) -> Option<u64> {
        let mut memory = self.memory();
        let (start, (buffer, owners)) = memory.own.range_mut(..=address).next_back()?;
        if address - start > buffer.len() as u64 {
            return None;
        }
        *owners += 1;
        Some(*start)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let (buffer, offset) = self.find(address, bytes.len() as u64)?;
        buffer.write(offset, bytes).map_err(Error::fault)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let (buffer, offset) = self.find(address, bytes.len() as u64)?;
        buffer.read(offset, bytes).map_err(Error::fault)
    }

    fn launch(&self, compiled: &Compiled, args: &ArgBlock) -> Result<LaunchReport, Error> {
        let kernel = compiled.kernel();
        let wrong = |made_for: String| wrong_code(compiled, made_for, self.name());
        let Code::Program(program) = compiled.code() else { return Err(wrong(compiled.target().to_string())) };
        if compiled.target() != self.target {
            return Err(wrong(format!("cpu:{}", compiled.target())));
        }
        let (offsets, _) = kernel.abi_layout();
        let word = |at: u32, size: u32| {
            let mut bytes = [0; 8];
            if let Some(given) = args.bytes().get(at as usize..(at + size) as usize) {
                bytes[..size as usize].copy_from_slice(given);
            }
            u64::from_le_bytes(bytes)
        };
        let mut buffers = vec![];
        for (param, at) in kernel.params.iter().zip(&offsets) {
            let value = word(*at, param.kind.abi_bytes());
            if let ParamKind::Buffer { .. } = param.kind {
                let bytes = param.kind.buffer_bytes().unwrap_or(0);
                match self.find(value, bytes)? {
                    (buffer, 0) => buffers.push(buffer),
                    // A launch argument is a whole buffer.
                    _ => return Err(Error::BadAddress { device: self.name(), address: value, bytes }),
                }
            }
        }
        let mut next = buffers.iter();
        let values: Vec<ArgValue<'_>> = kernel
            .params
            .iter()
            .zip(&offsets)
            .map(|(param, at)| match (param.kind, param.kind.abi_bytes()) {
                (ParamKind::Buffer { .. }, _) => next.next().map_or(ArgValue::Scalar(0), |b| ArgValue::Buffer(b)),
                (ParamKind::Scalar(_), size) => ArgValue::Scalar(word(*at, size)),
            })
            .collect();
        // Pointers reach whatever is allocated when the launch begins.
        let live: Vec<Arc<GlobalBuffer>> = self.memory().all().cloned().collect();
        let others: Vec<&GlobalBuffer> = live.iter().map(Arc::as_ref).collect();
        let start = Instant::now();
        let report = interp::launch_among(program, &values, &others, &self.options).map_err(Error::fault)?;
        let time = start.elapsed();
        let findings = report.findings.iter().map(ToString::to_string).collect();
        Ok(LaunchReport { time, findings })
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }
}
