//! Device `cpu`: interprets Kernel IR on the host and checks it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lathe_dsl::Target;
use lathe_dsl::image;
use lathe_dsl::ir::{ImageType, Param};
use lathe_dsl::numerics::MmaRounding;

use super::driver::{Image, ImageHandle, Images, Sampling, Sharing};
use super::group::{Blamed, Rank};
use super::{Device, DeviceId, LaunchReport, wrong_code};
use crate::error::Error;
use crate::interp::{self, ArgValue, GlobalBuffer, GroupError, Launch, Program};
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
        make: impl FnOnce(usize) -> Option<GlobalBuffer>,
    ) -> Result<GlobalBuffer, Error> {
        let full = || Error::OutOfMemory { device: self.name(), bytes };
        let len = usize::try_from(bytes).ok().filter(|n| *n <= 1 << 40).ok_or_else(full)?;
        make(len).ok_or_else(full)
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

    fn mma_rounding(&self) -> MmaRounding {
        self.options.mma
    }

    fn another(&self) -> Option<Arc<dyn Device>> {
        Some(Arc::new(Self::new(self.target, self.options.clone())))
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
        let resolved = self.resolve(compiled, args)?;
        let (values, others) = (resolved.values(), resolved.others());
        let start = Instant::now();
        let report = interp::launch_among(resolved.program, &values, &others, &self.options).map_err(Error::fault)?;
        Ok(told(&report, start.elapsed()))
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }

    fn images(&self) -> Option<&dyn Images> {
        image::has_units(self.target).then_some(self)
    }
}

/// Texels of an image, row by row.
struct Rows {
    memory: Arc<Mutex<Memory>>,
    address: u64,
    texels: Arc<GlobalBuffer>,
}

impl Images for Cpu {
    fn image(&self, image: ImageType, _: Sampling) -> Result<Arc<dyn Image>, Error> {
        let address = self.alloc(image.bytes())?;
        let (texels, _) = self.find(address, image.bytes())?;
        Ok(Arc::new(Rows { memory: self.memory.clone(), address, texels }))
    }

    fn owner(&self, handle: ImageHandle) -> Option<Arc<dyn Image>> {
        let (ImageHandle::Texture(address) | ImageHandle::Surface(address)) = handle;
        let mut memory = self.memory();
        let (texels, owners) = memory.own.get_mut(&address)?;
        *owners += 1;
        Some(Arc::new(Rows { memory: self.memory.clone(), address, texels: texels.clone() }))
    }
}

impl Image for Rows {
    fn number(&self) -> u64 {
        self.address
    }

    fn texture(&self) -> u64 {
        self.address
    }

    fn surface(&self) -> u64 {
        self.address
    }

    fn write(&self, texels: &[u8]) -> Result<(), Error> {
        self.texels.write(0, texels).map_err(Error::fault)
    }

    fn read(&self, texels: &mut [u8]) -> Result<(), Error> {
        self.texels.read(0, texels).map_err(Error::fault)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        release(&mut lock(&self.memory).own, self.address);
    }
}

/// A launch's arguments, found in the device's memory.
struct Resolved<'c> {
    program: &'c Program,
    values: Vec<Value>,
    /// Pointers reach whatever is allocated when the launch begins.
    live: Vec<Arc<GlobalBuffer>>,
}

enum Value {
    Buffer(Arc<GlobalBuffer>),
    Scalar(u64),
}

impl Value {
    fn as_arg(&self) -> ArgValue<'_> {
        match self {
            Self::Buffer(buffer) => ArgValue::Buffer(buffer),
            Self::Scalar(bits) => ArgValue::Scalar(*bits),
        }
    }
}

impl Resolved<'_> {
    fn values(&self) -> Vec<ArgValue<'_>> {
        self.values.iter().map(Value::as_arg).collect()
    }

    fn others(&self) -> Vec<&GlobalBuffer> {
        self.live.iter().map(Arc::as_ref).collect()
    }
}

fn told(report: &interp::Report, time: Duration) -> LaunchReport {
    LaunchReport { time, findings: report.findings.iter().map(ToString::to_string).collect() }
}

impl Cpu {
    fn resolve<'c>(&self, compiled: &'c Compiled, args: &ArgBlock) -> Result<Resolved<'c>, Error> {
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
        let value = |(param, at): (&Param, &u32)| {
            let value = word(*at, param.kind.abi_bytes());
            let Some((elem, len, _)) = param.kind.elements() else { return Ok(Value::Scalar(value)) };
            let bytes = len * u64::from(elem.bytes());
            match self.find(value, bytes)? {
                (buffer, 0) => Ok(Value::Buffer(buffer)),
                // A launch argument is a whole buffer.
                _ => Err(Error::BadAddress { device: self.name(), address: value, bytes }),
            }
        };
        let values = kernel.params.iter().zip(&offsets).map(value).collect::<Result<_, _>>()?;
        let live = self.memory().all().cloned().collect();
        Ok(Resolved { program, values, live })
    }
}

/// Runs the launches of a group whose ranks are on `devices`, as the first one's options say.
pub(super) fn together(devices: &[&Cpu], ranks: &[Rank], seed: Option<u64>) -> Result<Vec<Vec<LaunchReport>>, Blamed> {
    let mut resolved = vec![];
    for (number, (device, rank)) in devices.iter().zip(ranks).enumerate() {
        let launches = rank.launches.iter().map(|(compiled, args)| device.resolve(compiled, args));
        resolved.push(launches.collect::<Result<Vec<_>, _>>().map_err(|error| (number, error))?);
    }
    let mut arguments = vec![];
    for rank in &resolved {
        arguments.push(rank.iter().map(|r| (r.values(), r.others())).collect::<Vec<_>>());
    }
    let mut launches = vec![];
    for (rank, arguments) in resolved.iter().zip(&arguments) {
        let launch = rank.iter().zip(arguments).map(|(r, (args, others))| Launch { program: r.program, args, others });
        launches.push(launch.collect::<Vec<_>>());
    }
    let options = devices.first().map_or_else(CpuOptions::default, |device| device.options.clone());
    let options = CpuOptions { seed: seed.or(options.seed), ..options };
    let start = Instant::now();
    let reports =
        interp::launch_group(&launches, &options).map_err(|GroupError { rank, error }| (rank, Error::fault(error)))?;
    let time = start.elapsed();
    Ok(reports.iter().map(|rank| rank.iter().map(|report| told(report, time)).collect()).collect())
}
