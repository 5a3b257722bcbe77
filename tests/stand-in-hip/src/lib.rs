//! A stand-in for AMD's HIP runtime: the functions that device `hip` calls, by the names and signatures of AMD's header, over GPUs
//! that execute code objects as device `gcn` does. For tests only.
//!
//! It is as strict as the header allows, and lazier than any GPU: a stream does its work no sooner than somebody waits for it or asks
//! how far it is, one step a question. Work that nobody waited for has not happened, and memory that is freed too early is missed.
//! Only the calls of the default stream are done at once, after everything that the other streams were given. A kernel that waits for
//! others runs together with those that wait elsewhere, on this GPU and on others.
//!
//! Device memory is the executor's own: addresses of the host mean nothing there, and accesses outside an allocation are errors. A
//! kernel that fails prints why to standard error and leaves the GPU with an error that every later call returns.

#![allow(non_snake_case, missing_docs, clippy::missing_safety_doc, clippy::not_unsafe_ptr_arg_deref)]
#![allow(unsafe_code)] // A C interface.

mod gpu;
mod machine;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ops::{Deref, DerefMut};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use hip_sys::hiprt::hipError_t::{self, *};
use hip_sys::hiprt::{
    hipDevice_t, hipDeviceAttribute_t, hipEvent_t, hipFunction_attribute, hipFunction_t, hipIpcMemHandle_t,
    hipMemcpyKind, hipModule_t, hipStream_t,
};

use gpu::{Gpu, Handle, Module, Place, Step};
use machine::Machine;

/// The GPUs: one for each chip that can be executed, one whose settings code for `xnack` on does not run with, and one that Lathe
/// makes no code for.
const GPUS: [(&str, &str); 5] = [
    ("Double MI300X", "gfx942:sramecc+:xnack-"),
    ("Double MI355X", "gfx950:sramecc+:xnack-"),
    ("Double RX 9070", "gfx1201"),
    ("Double MI300A", "gfx942:sramecc+:xnack+"),
    ("Double MI50", "gfx906:sramecc+:xnack-"),
];

const MEMORY_BYTES: usize = 1 << 34;
const COMPUTE_UNITS: c_int = 4;
/// Threads that a compute unit holds.
const THREADS: c_int = 2048;
/// From HIP 6 on: the size of the properties' structure, and where the architecture's name lies in it.
const PROPERTIES: (usize, usize) = (1472, 1160);

static MACHINE: LazyLock<Mutex<Machine>> = LazyLock::new(|| {
    let gpu = |(number, (_, architecture)): (usize, &(&str, &'static str))| Gpu::new(number, architecture);
    Mutex::new(Machine { gpus: GPUS.iter().enumerate().map(gpu).collect() })
});

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

type Done<T = ()> = Result<T, hipError_t>;

/// One of the GPUs; while somebody has it, nobody else has any.
struct Locked {
    machine: MutexGuard<'static, Machine>,
    number: usize,
}

impl Deref for Locked {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.machine.gpus[self.number]
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Gpu {
        &mut self.machine.gpus[self.number]
    }
}

impl Locked {
    fn give(&mut self, stream: Handle, step: Step) -> Done {
        self.machine.give((self.number, stream), step)
    }

    fn query(&mut self, stream: Handle, ticket: u64) -> Done {
        self.machine.query((self.number, stream), ticket)
    }

    fn finish(&mut self, stream: Handle, ticket: u64) -> Done {
        self.machine.finish((self.number, stream), ticket)
    }

    fn record(&mut self, event: Handle, stream: Handle) -> Done {
        self.machine.gpus[self.number].record(event, stream)?;
        if stream == Handle::DEFAULT_STREAM { self.finish(stream, u64::MAX) } else { Ok(()) }
    }

    /// As AMD's: what it was given is done first.
    fn destroy_stream(&mut self, stream: Handle) -> Done {
        if stream == Handle::DEFAULT_STREAM || !self.has(stream) {
            return Err(hipErrorInvalidHandle);
        }
        let done = self.finish(stream, u64::MAX);
        self.remove_stream(stream);
        done
    }
}

fn gpu(number: usize) -> Done<Locked> {
    if number >= GPUS.len() {
        return Err(hipErrorInvalidDevice);
    }
    Ok(Locked { machine: MACHINE.lock().unwrap_or_else(PoisonError::into_inner), number })
}

/// The calling thread's GPU.
fn current() -> Locked {
    gpu(CURRENT.get()).expect("hipSetDevice checks the number")
}

fn code(done: Done) -> hipError_t {
    done.err().unwrap_or(hipSuccess)
}

/// Writes a result through a pointer of the caller's.
fn give<T>(to: *mut T, value: T) -> Done {
    if to.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: the caller says that it may be written to.
    unsafe { to.write(value) };
    Ok(())
}

fn number(device: c_int) -> Done<usize> {
    usize::try_from(device).ok().filter(|n| *n < GPUS.len()).ok_or(hipErrorInvalidDevice)
}

fn handle<T>(handle: Handle) -> *mut T {
    std::ptr::without_provenance_mut(handle.0 as usize)
}

fn of<T>(pointer: *mut T) -> Handle {
    Handle(pointer.addr() as u64)
}

/// The GPU of a stream; of the default stream, the thread's own.
fn stream_gpu(stream: hipStream_t) -> Done<Locked> {
    if stream.is_null() { Ok(current()) } else { gpu(of(stream).gpu()).map_err(|_| hipErrorInvalidHandle) }
}

fn event_gpu(event: hipEvent_t) -> Done<Locked> {
    gpu(of(event).gpu()).map_err(|_| hipErrorInvalidHandle)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipInit(flags: c_uint) -> hipError_t {
    if flags == 0 { hipSuccess } else { hipErrorInvalidValue }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDriverGetVersion(version: *mut c_int) -> hipError_t {
    code(give(version, 70_000_000))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetDeviceCount(count: *mut c_int) -> hipError_t {
    code(give(count, GPUS.len() as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
    code(number(ordinal).and_then(|_| give(device, ordinal)))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) -> hipError_t {
    code(number(device).and_then(|n| {
        let text = GPUS[n].0.as_bytes();
        if name.is_null() || text.len() >= len as usize {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: the caller has room for `len` bytes, which is more than the text with its zero byte.
        unsafe { name.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        // SAFETY: as above.
        give(unsafe { name.add(text.len()) }, 0)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) -> hipError_t {
    code(number(device).and_then(|_| give(bytes, MEMORY_BYTES)))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetDevicePropertiesR0600(properties: *mut c_void, device: c_int) -> hipError_t {
    code(number(device).and_then(|n| {
        if properties.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let (size, at) = PROPERTIES;
        let mut bytes = vec![0u8; size];
        let (name, architecture) = GPUS[n];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[at..at + architecture.len()].copy_from_slice(architecture.as_bytes());
        // SAFETY: the caller has room for the structure.
        unsafe { properties.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), size) };
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int) -> hipError_t {
    code(number(device).and_then(|_| {
        if attribute == hipDeviceAttribute_t::hipDeviceAttributeMultiprocessorCount as c_uint {
            give(value, COMPUTE_UNITS)
        } else {
            Err(hipErrorInvalidValue)
        }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipSetDevice(device: c_int) -> hipError_t {
    code(number(device).map(|n| CURRENT.set(n)))
}

/// Errors that this library returns, as AMD's names and describes them.
const ERRORS: [(hipError_t, &CStr, &CStr); 16] = [
    (hipSuccess, c"hipSuccess", c"no error"),
    (hipErrorInvalidValue, c"hipErrorInvalidValue", c"invalid argument"),
    (hipErrorOutOfMemory, c"hipErrorOutOfMemory", c"out of memory"),
    (hipErrorInvalidConfiguration, c"hipErrorInvalidConfiguration", c"invalid configuration argument"),
    (hipErrorInvalidMemcpyDirection, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    (hipErrorInvalidDevice, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    (hipErrorInvalidImage, c"hipErrorInvalidImage", c"device kernel image is invalid"),
    (hipErrorNoBinaryForGpu, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
    (hipErrorInvalidHandle, c"hipErrorInvalidHandle", c"invalid resource handle"),
    (hipErrorNotFound, c"hipErrorNotFound", c"named symbol not found"),
    (hipErrorNotReady, c"hipErrorNotReady", c"device not ready"),
    (hipErrorIllegalAddress, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
    (
        hipErrorPeerAccessUnsupported,
        c"hipErrorPeerAccessUnsupported",
        c"peer access is not supported between these two devices",
    ),
    (hipErrorPeerAccessAlreadyEnabled, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
    (hipErrorLaunchFailure, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    (hipErrorUnknown, c"hipErrorUnknown", c"unknown error"),
];

fn known(error: c_uint) -> &'static (hipError_t, &'static CStr, &'static CStr) {
    ERRORS.iter().find(|(e, ..)| *e as c_uint == error).unwrap_or(&ERRORS[ERRORS.len() - 1])
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(error: c_uint) -> *const c_char {
    known(error).1.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorString(error: c_uint) -> *const c_char {
    known(error).2.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMalloc(start: *mut *mut c_void, bytes: usize) -> hipError_t {
    code(current().alloc(bytes).and_then(|address| give(start, std::ptr::without_provenance_mut(address as usize))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFree(start: *mut c_void) -> hipError_t {
    let address = start.addr() as u64;
    let own = CURRENT.get();
    if !current().unshare(address) {
        return code(current().free(address));
    }
    let reaches = |n: usize| n == own || gpu(n).is_ok_and(|g| g.peers.contains(&own));
    code((0..GPUS.len()).filter(|n| reaches(*n)).try_for_each(|n| gpu(n)?.lose(address)))
}

/// Kinds of memory that other GPUs see stores to at once: fine-grained, and uncached.
const SEEN_BY_OTHERS: [c_uint; 2] = [1, 3];

#[unsafe(no_mangle)]
pub extern "C" fn hipExtMallocWithFlags(start: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
    let own = CURRENT.get();
    let allocate = || {
        if !SEEN_BY_OTHERS.contains(&flags) {
            return Err(hipErrorInvalidValue);
        }
        let shared = current().alloc_shared(bytes)?;
        for n in 0..GPUS.len() {
            let mut other = gpu(n)?;
            if other.peers.contains(&own) {
                other.reach(&shared);
            }
        }
        give(start, std::ptr::without_provenance_mut(shared.address() as usize))
    };
    code(allocate())
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemset(start: *mut c_void, value: c_int, bytes: usize) -> hipError_t {
    let to = start.addr() as u64;
    let mut gpu = current();
    code(
        gpu.check(&Place::Device(to), bytes)
            .and_then(|()| gpu.give(of(std::ptr::null_mut::<c_void>()), Step::Fill { to, value: value as u8, bytes })),
    )
}

/// The GPUs from this one on have no way to others.
const APART: usize = 3;

fn linked(device: usize, peer: usize) -> bool {
    device != peer && device.max(peer) < APART
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> hipError_t {
    code(number(device).and_then(|device| give(can, c_int::from(linked(device, number(peer)?)))))
}

/// From then on, a GPU reaches all that the other one has of the kinds that are `SEEN_BY_OTHERS`, and gets.
#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> hipError_t {
    let enable = || {
        let (own, peer) = (CURRENT.get(), number(peer)?);
        if flags != 0 {
            return Err(hipErrorInvalidValue);
        }
        if !linked(own, peer) {
            return Err(hipErrorPeerAccessUnsupported);
        }
        let theirs = gpu(peer)?.shared();
        let mut gpu = current();
        if !gpu.peers.insert(peer) {
            return Err(hipErrorPeerAccessAlreadyEnabled);
        }
        theirs.iter().for_each(|shared| gpu.reach(shared));
        Ok(())
    };
    code(enable())
}

/// First bytes of a handle, which process and bytes follow.
const HANDLE: &[u8; 8] = b"stand-in";

#[unsafe(no_mangle)]
pub extern "C" fn hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, start: *mut c_void) -> hipError_t {
    code(current().shared_bytes(start.addr() as u64).and_then(|bytes| {
        let mut text = [0u8; 64];
        text[..8].copy_from_slice(HANDLE);
        text[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        text[12..20].copy_from_slice(&(bytes as u64).to_le_bytes());
        give(handle, hipIpcMemHandle_t { reserved: text.map(u8::cast_signed) })
    }))
}

/// Gives memory of its own in place of the other process's.
#[unsafe(no_mangle)]
pub extern "C" fn hipIpcOpenMemHandle(start: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint) -> hipError_t {
    let handle = handle.reserved.map(c_char::cast_unsigned);
    let own = handle[8..12] == std::process::id().to_le_bytes();
    if flags != 1 || own || &handle[..8] != HANDLE {
        return hipErrorInvalidValue;
    }
    let bytes = u64::from_le_bytes(std::array::from_fn(|i| handle[12 + i])) as usize;
    code(current().import(bytes).and_then(|address| give(start, std::ptr::without_provenance_mut(address as usize))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipIpcCloseMemHandle(start: *mut c_void) -> hipError_t {
    code(current().close(start.addr() as u64))
}

/// Of memory of other processes; nobody asks of other memory.
#[unsafe(no_mangle)]
pub extern "C" fn hipMemGetAddressRange(base: *mut *mut c_void, size: *mut usize, start: *mut c_void) -> hipError_t {
    code(current().range(start.addr() as u64).and_then(|(start, bytes)| {
        give(base, std::ptr::without_provenance_mut(start as usize))?;
        give(size, bytes)
    }))
}

/// Where an allocation of host memory keeps its size.
const HOST_HEADER: usize = 64;

fn host_layout(bytes: usize) -> Done<std::alloc::Layout> {
    let bytes = bytes.checked_add(HOST_HEADER).ok_or(hipErrorOutOfMemory)?;
    std::alloc::Layout::from_size_align(bytes, HOST_HEADER).map_err(|_| hipErrorOutOfMemory)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostMalloc(start: *mut *mut c_void, bytes: usize, _flags: c_uint) -> hipError_t {
    code(host_layout(bytes).and_then(|layout| {
        // SAFETY: the layout is not empty.
        let block = unsafe { std::alloc::alloc(layout) };
        if block.is_null() {
            return Err(hipErrorOutOfMemory);
        }
        // SAFETY: the block is larger than its header, and aligned to it.
        unsafe { block.cast::<usize>().write(bytes) };
        // Whoever takes it for zeros is mistaken.
        // SAFETY: so many bytes lie behind the header.
        unsafe { block.add(HOST_HEADER).write_bytes(0xa5, bytes) };
        // SAFETY: as above.
        give(start, unsafe { block.add(HOST_HEADER) }.cast())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostFree(start: *mut c_void) -> hipError_t {
    if start.is_null() {
        return hipSuccess;
    }
    // SAFETY: the caller got it from `hipHostMalloc`, which put the header there.
    let block = unsafe { start.cast::<u8>().sub(HOST_HEADER) };
    // SAFETY: as above.
    let bytes = unsafe { block.cast::<usize>().read() };
    code(host_layout(bytes).map(|layout| {
        // Copies that still use it will show.
        // SAFETY: so many bytes lie behind the header.
        unsafe { start.cast::<u8>().write_bytes(0x5a, bytes) };
        // SAFETY: it was allocated with this layout, and is freed once.
        unsafe { std::alloc::dealloc(block, layout) };
    }))
}

/// Both ends of a copy.
fn places(to: *mut c_void, from: *const c_void, kind: c_uint) -> Done<(Place, Place)> {
    let is = |k: hipMemcpyKind| k as c_uint == kind;
    // Those of the host are used later, by their number.
    let (to, from) = (to.expose_provenance() as u64, from.expose_provenance() as u64);
    if is(hipMemcpyKind::hipMemcpyHostToDevice) {
        Ok((Place::Device(to), Place::Host(from)))
    } else if is(hipMemcpyKind::hipMemcpyDeviceToHost) {
        Ok((Place::Host(to), Place::Device(from)))
    } else if is(hipMemcpyKind::hipMemcpyDeviceToDevice) {
        Ok((Place::Device(to), Place::Device(from)))
    } else {
        Err(hipErrorInvalidMemcpyDirection)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_uint) -> hipError_t {
    hipMemcpyAsync(to, from, bytes, kind, std::ptr::null_mut())
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyAsync(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_uint,
    stream: hipStream_t,
) -> hipError_t {
    let copy = places(to, from, kind).and_then(|(to, from)| {
        let mut gpu = stream_gpu(stream)?;
        gpu.check(&to, bytes)?;
        gpu.check(&from, bytes)?;
        gpu.give(of(stream), Step::Copy { to, from, bytes })
    });
    code(copy)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) -> hipError_t {
    if flags > 1 {
        return hipErrorInvalidValue;
    }
    code(current().stream().and_then(|s| give(stream, handle(s))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamDestroy(stream: hipStream_t) -> hipError_t {
    code(stream_gpu(stream).and_then(|mut gpu| gpu.destroy_stream(of(stream))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamQuery(stream: hipStream_t) -> hipError_t {
    code(stream_gpu(stream).and_then(|mut gpu| gpu.query(of(stream), u64::MAX)))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamSynchronize(stream: hipStream_t) -> hipError_t {
    code(stream_gpu(stream).and_then(|mut gpu| gpu.finish(of(stream), u64::MAX)))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, _flags: c_uint) -> hipError_t {
    let wait = || {
        let of_event = event_gpu(event)?;
        let (recorded_in, ticket) = of_event.recorded(of(event))?;
        let on = (of_event.number, recorded_in);
        drop(of_event);
        stream_gpu(stream)?.give(of(stream), Step::Wait { stream: on, ticket })
    };
    code(wait())
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) -> hipError_t {
    code(current().event(flags).and_then(|e| give(event, handle(e))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventDestroy(event: hipEvent_t) -> hipError_t {
    code(event_gpu(event).and_then(|mut gpu| gpu.destroy_event(of(event))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t {
    code(event_gpu(event).and_then(|mut gpu| gpu.record(of(event), of(stream))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventQuery(event: hipEvent_t) -> hipError_t {
    code(event_gpu(event).and_then(|mut gpu| {
        let (stream, ticket) = gpu.recorded(of(event)).map_err(|_| hipErrorNotReady)?;
        gpu.query(stream, ticket)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventSynchronize(event: hipEvent_t) -> hipError_t {
    code(event_gpu(event).and_then(|mut gpu| {
        let (stream, ticket) = gpu.recorded(of(event))?;
        gpu.finish(stream, ticket)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> hipError_t {
    code(event_gpu(start).and_then(|gpu| {
        let (start, stop) = (gpu.time(of(start))?, gpu.time(of(stop))?);
        let forth = stop.saturating_duration_since(start).as_secs_f32();
        give(ms, 1e3 * (forth - start.saturating_duration_since(stop).as_secs_f32()))
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) -> hipError_t {
    let load = || {
        // SAFETY: the caller says that there is a whole ELF file.
        let bytes = unsafe { elf(image.cast()) }?;
        let mut gpu = current();
        let loaded = gpu.load(bytes)?;
        give(module, handle(loaded))
    };
    code(load())
}

/// The ELF file at an address: as large as its own headers say.
///
/// # Safety
/// A whole ELF file lies there, or bytes that do not begin like one.
unsafe fn elf<'a>(image: *const u8) -> Done<&'a [u8]> {
    const HEADER: usize = 64;
    if image.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: the file's header comes first; of anything else one byte after the other is looked at.
    let magic = b"\x7fELF".iter().enumerate().all(|(i, byte)| unsafe { image.add(i).read() } == *byte);
    if !magic {
        return Err(hipErrorInvalidImage);
    }
    // SAFETY: it is an ELF file, which has a header.
    let header = unsafe { std::slice::from_raw_parts(image, HEADER) };
    let number = |at: usize, bytes: usize| header[at..at + bytes].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b));
    // The table of sections is what lld puts last.
    let size = number(40, 8) + number(58, 2) * number(60, 2);
    // SAFETY: the file reaches to the end of its table.
    Ok(unsafe { std::slice::from_raw_parts(image, size.max(HEADER)) })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleUnload(module: hipModule_t) -> hipError_t {
    code(gpu(of(module).gpu()).and_then(|mut gpu| gpu.unload(of(module))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleGetFunction(
    function: *mut hipFunction_t,
    module: hipModule_t,
    name: *const c_char,
) -> hipError_t {
    let get = || {
        if name.is_null() {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: the caller says that it ends in a zero byte.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| hipErrorNotFound)?;
        give(function, handle(gpu(of(module).gpu())?.function(of(module), name)?))
    };
    code(get())
}

/// Most threads that a workgroup of a kernel may have.
fn most_threads(module: &Module, symbol: &str) -> Done<u32> {
    Ok(module.object.kernel(symbol).map_err(|_| hipErrorNotFound)?.metadata.max_threads)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFuncGetAttribute(value: *mut c_int, attribute: c_uint, function: hipFunction_t) -> hipError_t {
    code(gpu(of(function).gpu()).and_then(|gpu| {
        let (module, symbol) = gpu.code(of(function))?;
        if attribute == hipFunction_attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as c_uint {
            give(value, most_threads(&module, &symbol)? as c_int)
        } else {
            Err(hipErrorInvalidValue)
        }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    function: hipFunction_t,
    threads: c_int,
    _dynamic_lds: usize,
) -> hipError_t {
    code(gpu(of(function).gpu()).and_then(|gpu| {
        gpu.code(of(function))?;
        if threads < 1 { Err(hipErrorInvalidValue) } else { give(blocks, THREADS / threads) }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleLaunchKernel(
    function: hipFunction_t,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _dynamic_lds: c_uint,
    stream: hipStream_t,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> hipError_t {
    let launch = || {
        // SAFETY: the caller says so.
        let kernarg = unsafe { kernarg(parameters, extra) }?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let mut gpu = stream_gpu(stream)?;
        let (module, symbol) = gpu.code(of(function))?;
        let threads = block.iter().map(|n| u64::from(*n)).product::<u64>();
        if grid.contains(&0) || threads == 0 || threads > u64::from(most_threads(&module, &symbol)?) {
            return Err(hipErrorInvalidConfiguration);
        }
        gpu.give(of(stream), Step::Launch { module, symbol, grid, block, kernarg })
    };
    code(launch())
}

/// A copy of the launch's argument block.
///
/// # Safety
/// `extra` is null or a list as `hipModuleLaunchKernel` takes it.
unsafe fn kernarg(parameters: *mut *mut c_void, extra: *mut *mut c_void) -> Done<Vec<u8>> {
    const BUFFER: usize = 1;
    const SIZE: usize = 2;
    const END: usize = 3;
    if !parameters.is_null() || extra.is_null() {
        return Err(hipErrorInvalidValue);
    }
    let (mut buffer, mut size, mut at) = (std::ptr::null::<u8>(), 0usize, 0);
    loop {
        // SAFETY: the list goes on to its end.
        let item = unsafe { extra.add(at).read() };
        if item.addr() == END {
            break;
        }
        // SAFETY: a value follows each name.
        let value = unsafe { extra.add(at + 1).read() };
        match item.addr() {
            BUFFER => buffer = value.cast(),
            // SAFETY: the value is a pointer to a size.
            SIZE => size = unsafe { value.cast::<usize>().read() },
            _ => return Err(hipErrorInvalidValue),
        }
        at += 2;
    }
    if size == 0 {
        return Ok(vec![]);
    }
    if buffer.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: the caller's block is as large as it says.
    Ok(unsafe { std::slice::from_raw_parts(buffer, size) }.to_vec())
}
