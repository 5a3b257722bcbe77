//! Launches of one kernel on the CPU device, on the executor of AMD code and, where there is one, on an NVIDIA GPU.

use std::sync::{Arc, LazyLock};

use lathe_dsl::Target;
use lathe_dsl::artifact::Artifact;
use lathe_dsl::ir::{Coordinates, Filter, Kernel, OpNumber, ParamKind, Scalar};
use lathe_runtime::ArgBlock;
use lathe_runtime::device::driver::{Image, Sampling};
use lathe_runtime::device::{Cuda, Device};
use lathe_runtime::gcn::{self, CodeObject, Memory};
use lathe_runtime::interp::{self, ArgValue, GlobalBuffer, Program};
use lathe_runtime::jit::{Code, Compiled};

use super::lists::{Content, filler};

/// Instructions after which a launch counts as endless.
const STEPS: u64 = 1_000_000;

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Arg {
    Buffer(Content),
    Scalar(u64),
    /// Device address of parameter number `of`, and so many bytes.
    Address {
        of: usize,
        plus: u64,
    },
}

/// What a launch left behind.
pub struct Done {
    /// The elements of each parameter's buffer; nothing for scalars.
    pub buffers: Vec<Vec<u64>>,
    pub findings: Vec<String>,
}

fn bytes(elem: Scalar, len: u64, content: &Content) -> Vec<u8> {
    let width = elem.bytes() as usize;
    let filled = |value: u64| vec![value; len as usize];
    let elements = match content {
        Content::Elements(elements) => elements.clone(),
        Content::Uninit | Content::Filler => filled(filler(elem)),
    };
    elements.iter().flat_map(|e| e.to_le_bytes()[..width].to_vec()).collect()
}

fn elements(elem: Scalar, bytes: &[u8]) -> Vec<u64> {
    let element = |chunk: &[u8]| chunk.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    bytes.chunks(elem.bytes() as usize).map(element).collect()
}

/// Runs on the CPU device; the fault's message if there is one.
pub fn cpu(kernel: &Kernel, program: &Program, args: &[Arg], seed: Option<u64>) -> Result<Done, String> {
    let buffers: Vec<GlobalBuffer> = kernel
        .params
        .iter()
        .zip(args)
        .map(|(param, arg)| match (param.kind.elements(), arg) {
            (Some((elem, len, _)), Arg::Buffer(Content::Uninit)) => {
                GlobalBuffer::uninit(len as usize * elem.bytes() as usize)
            }
            (Some((elem, len, _)), Arg::Buffer(content)) => GlobalBuffer::from_bytes(&bytes(elem, len, content)),
            _ => GlobalBuffer::zeroed(0),
        })
        .collect();
    let values: Vec<ArgValue<'_>> = args
        .iter()
        .zip(&buffers)
        .map(|(arg, buffer)| match arg {
            Arg::Buffer(_) => ArgValue::Buffer(buffer),
            Arg::Scalar(bits) => ArgValue::Scalar(*bits),
            Arg::Address { of, plus } => ArgValue::Scalar(buffers[*of].address().wrapping_add(*plus)),
        })
        .collect();
    let options = interp::Options { seed, threads: Some(1), step_limit: Some(STEPS), ..interp::Options::default() };
    let report = interp::launch(program, &values, &options).map_err(|e| e.to_string())?;
    let buffers = kernel
        .params
        .iter()
        .zip(&buffers)
        .map(|(param, buffer)| match param.kind.elements() {
            Some((elem, ..)) => elements(elem, &buffer.to_vec()),
            None => vec![],
        })
        .collect();
    Ok(Done { buffers, findings: report.findings.iter().map(ToString::to_string).collect() })
}

/// The GPU, if this machine has one, for tests; why not, if it has none.
pub fn gpu() -> Result<&'static Cuda, &'static str> {
    static GPU: LazyLock<Result<Cuda, String>> = LazyLock::new(|| Cuda::new(0).map_err(|e| e.to_string()));
    GPU.as_ref().map_err(String::as_str)
}

/// Runs PTX on the GPU; the error's message, if there is one.
pub fn cuda(gpu: &Cuda, kernel: &Arc<Kernel>, artifact: &Artifact, args: &[Arg]) -> Result<Done, String> {
    let mut held = vec![];
    let result = cuda_launch(gpu, kernel, artifact, args, &mut held);
    held.iter().for_each(|held| {
        if let Held::Buffer(address) = held {
            gpu.free(*address);
        }
    });
    result.map_err(|e| e.to_string())
}

/// What a parameter is passed on a GPU.
enum Held {
    Buffer(u64),
    Image(Arc<dyn Image>),
}

fn cuda_launch(
    gpu: &Cuda,
    kernel: &Arc<Kernel>,
    artifact: &Artifact,
    args: &[Arg],
    held: &mut Vec<Held>,
) -> Result<Done, lathe_runtime::Error> {
    let mut addresses = vec![];
    for (param, arg) in kernel.params.iter().zip(args) {
        let data = match (param.kind.elements(), arg) {
            (Some((elem, len, _)), Arg::Buffer(content)) => bytes(elem, len, content),
            _ => vec![],
        };
        if let Some(image) = param.kind.image() {
            let sampling = match param.kind {
                ParamKind::Texture { filter, coordinates, .. } => Sampling { filter, coordinates },
                _ => Sampling { filter: Filter::Nearest, coordinates: Coordinates::Texels },
            };
            let made = gpu.images().expect("a GPU has texture units").image(image, sampling)?;
            made.write(&data)?;
            let reads = matches!(param.kind, ParamKind::Texture { .. });
            addresses.push(if reads { made.texture() } else { made.surface() });
            held.push(Held::Image(made));
        } else {
            let address = gpu.alloc(data.len() as u64)?;
            addresses.push(address);
            held.push(Held::Buffer(address));
            gpu.write(address, &data)?;
        }
    }
    let block = ArgBlock::from_bytes(&arguments(kernel, args, &addresses)).expect("a verified kernel's arguments");
    let code = Code::Object(Box::new(artifact.clone()));
    let compiled = Compiled::new(kernel.clone(), artifact.target, code, artifact.record.clone());
    gpu.launch(&compiled, &block)?;
    let mut buffers = vec![];
    for (param, held) in kernel.params.iter().zip(held) {
        let Some((elem, len, _)) = param.kind.elements() else {
            buffers.push(vec![]);
            continue;
        };
        let mut data = vec![0; len as usize * elem.bytes() as usize];
        match held {
            Held::Buffer(address) => gpu.read(*address, &mut data)?,
            Held::Image(image) => image.read(&mut data)?,
        }
        buffers.push(elements(elem, &data));
    }
    Ok(Done { buffers, findings: vec![] })
}

/// The argument block of a launch whose buffers lie at these addresses.
fn arguments(kernel: &Kernel, args: &[Arg], addresses: &[u64]) -> Vec<u8> {
    let mut arguments = vec![0; kernel.abi_bytes() as usize];
    for (i, (param, at)) in kernel.params.iter().zip(kernel.abi_layout().0).enumerate() {
        let value = match args[i] {
            Arg::Buffer(_) => addresses[i],
            Arg::Scalar(bits) => bits,
            Arg::Address { of, plus } => addresses[of].wrapping_add(plus),
        };
        let size = param.kind.abi_bytes() as usize;
        arguments[at as usize..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    arguments
}

/// Whether code objects for a target can be run.
pub fn executes(target: Target) -> bool {
    gcn::targets().any(|t| t == target)
}

/// Runs a code object; the error's message, with the place in the test, if there is one.
pub fn gcn(kernel: &Kernel, artifact: &Artifact, args: &[Arg], seed: u64) -> Result<Done, String> {
    let located = |error: gcn::GcnError| {
        let op = error.site.as_ref().and_then(|s| s.line.as_ref()).map(|(_, line)| *line);
        match op.filter(|op| (1..=kernel.op_count()).contains(op)) {
            Some(op) => format!("{}: {error}", kernel.location(OpNumber(op))),
            None => error.to_string(),
        }
    };
    let object = CodeObject::load(&artifact.code, artifact.target).map_err(located)?;
    let mut memory = Memory::default();
    let mut addresses = vec![];
    for (param, arg) in kernel.params.iter().zip(args) {
        addresses.push(match (param.kind.elements(), arg) {
            (Some((elem, len, _)), Arg::Buffer(content)) => {
                let data = bytes(elem, len, content);
                let address = memory.alloc(data.len());
                if *content != Content::Uninit {
                    memory.write(address, &data).map_err(located)?;
                }
                address
            }
            _ => 0,
        });
    }
    let arguments = arguments(kernel, args, &addresses);
    let options = gcn::Options { seed, max_steps: STEPS, ..gcn::Options::default() };
    let launch = &kernel.launch;
    gcn::launch(&object, &artifact.symbol, launch.grid, launch.block, &arguments, &mut memory, &options)
        .map_err(located)?;
    let mut buffers = vec![];
    for (param, address) in kernel.params.iter().zip(addresses) {
        buffers.push(match param.kind.elements() {
            Some((elem, len, _)) => {
                let bytes = len as usize * elem.bytes() as usize;
                elements(elem, &memory.read(address, bytes).map_err(located)?)
            }
            None => vec![],
        });
    }
    Ok(Done { buffers, findings: vec![] })
}
