//! A stand-in for `libcuda.so.1`: as much of the driver API as Lathe's runtime calls, for machines without a GPU. Three devices of
//! compute capability 9.0, two of which reach each other, and whose only kernels are the ones of this crate's users: `add`, which adds,
//! `relay`, which copies between peers, `shade`, which copies a texture to a surface, and `stray`, which faults.
//!
//! It shows that the runtime calls the driver in the right order with the right arguments. It shows nothing about a GPU.

#![allow(non_snake_case)] // The driver's names.
#![allow(clippy::missing_safety_doc, missing_docs)] // The driver API's manual has them.

mod image;
mod shared;
mod state;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use shared::{HANDLE_BYTES, Mapping};
use state::*;

type Code = c_int;
type Handle = usize;

/// Copies bytes.
fn copy(to: u64, from: u64, bytes: usize) {
    // SAFETY: callers of the driver give ranges that they own until the copy is done, which is what tests are to find out.
    unsafe { std::ptr::copy(from as usize as *const u8, to as usize as *mut u8, bytes) };
}

/// Sets bytes.
fn fill(to: u64, value: u8, bytes: usize) {
    // SAFETY: as for a copy.
    unsafe { std::ptr::write_bytes(to as usize as *mut u8, value, bytes) };
}

/// The 8 bytes at an address of device memory.
fn word(at: u64) -> u64 {
    // SAFETY: whoever asks has looked whether they are there.
    unsafe { (at as usize as *const u64).read_unaligned() }
}

/// `to[i] = from[i] + add`, of words that both are there.
fn relay(from: u64, to: u64, words: usize, add: u32) {
    for i in 0..words {
        let (from, to) = (from as usize as *const u32, to as usize as *mut u32);
        // SAFETY: whoever asks has looked whether they are there.
        unsafe { to.add(i).write(from.add(i).read().wrapping_add(add)) };
    }
}

/// `y[i] += factor · x[i]`
fn add(x: u64, y: u64, n: usize, factor: f32) {
    // SAFETY: both are allocations of `n` floats and differ, since a kernel's arguments do not overlap.
    let (x, y) = unsafe {
        let x = std::slice::from_raw_parts(x as usize as *const f32, n);
        (x, std::slice::from_raw_parts_mut(y as usize as *mut f32, n))
    };
    y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * x);
}

/// Writes through a pointer that the caller of the driver gave.
fn put<T>(to: *mut T, value: T) -> Code {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a place for what it asked for.
    unsafe { to.write(value) };
    SUCCESS
}

thread_local! {
    static CURRENT: Cell<Handle> = const { Cell::new(0) };
}

/// First device's primary context; those of the others follow.
const CONTEXTS: Handle = 0x1000;

/// The device of a context, if it is one.
fn device_of(context: Handle) -> Option<c_int> {
    context.checked_sub(CONTEXTS).and_then(|d| c_int::try_from(d).ok()).filter(|d| *d < DEVICES)
}

/// The device of the calling thread's context.
fn current() -> c_int {
    device_of(CURRENT.get()).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Code {
    if flags == 0 { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    put(version, 12_040)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    put(count, DEVICES)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    put(device, ordinal)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, _device: c_int) -> Code {
    let text = c"Stand-in";
    if (len as usize) < text.count_bytes() + 1 {
        return INVALID_VALUE;
    }
    // SAFETY: the name has room for `len` bytes.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), name, text.count_bytes() + 1) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) -> Code {
    put(bytes, 1 << 37)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) -> Code {
    // Multiprocessors; compute capability, major and minor.
    match attribute {
        16 => put(value, 132),
        75 => put(value, 9),
        76 => put(value, 0),
        _ => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> Code {
    put(context, CONTEXTS + device as usize)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: Handle) -> Code {
    CURRENT.set(context);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetCurrent(context: *mut Handle) -> Code {
    put(context, CURRENT.get())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(code: Code, name: *mut *const c_char) -> Code {
    let text = match code {
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        INVALID_IMAGE => c"CUDA_ERROR_INVALID_IMAGE",
        INVALID_CONTEXT => c"CUDA_ERROR_INVALID_CONTEXT",
        UNSUPPORTED_PTX_VERSION => c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        ILLEGAL_ADDRESS => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        _ => c"CUDA_ERROR_UNKNOWN",
    };
    put(name, text.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(_code: Code, text: *mut *const c_char) -> Code {
    put(text, c"as the stand-in says".as_ptr())
}

// Memory

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> Code {
    match state().alloc(current(), bytes) {
        Ok(start) => put(address, start),
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> Code {
    state().free(address)
}

/// As the driver's, it is not done when it returns.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8_v2(to: u64, value: u8, bytes: usize) -> Code {
    state().give(DEFAULT, Step::Fill { to, value, bytes })
}

// Peers

/// Whether there is a way between two devices.
fn linked(device: c_int, peer: c_int) -> bool {
    let last = DEVICES - 1;
    device != peer && device != last && peer != last
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> Code {
    if [device, peer].iter().all(|d| (0..DEVICES).contains(d)) {
        put(can, c_int::from(linked(device, peer)))
    } else {
        INVALID_DEVICE
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxEnablePeerAccess(context: Handle, flags: c_uint) -> Code {
    let Some(peer) = device_of(context).filter(|_| flags == 0) else { return INVALID_VALUE };
    let own = current();
    if !linked(own, peer) {
        PEER_ACCESS_UNSUPPORTED
    } else if state().peers.insert((own, peer)) {
        SUCCESS
    } else {
        PEER_ACCESS_ALREADY_ENABLED
    }
}

/// `CUipcMemHandle`, which is passed by value.
#[repr(C)]
pub struct MemHandle([u8; HANDLE_BYTES]);

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcGetMemHandle(handle: *mut MemHandle, address: u64) -> Code {
    match state().mapping(address) {
        Some(mapping) => put(handle, MemHandle(mapping.handle())),
        // Others would see what else lies in the block.
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcOpenMemHandle_v2(address: *mut u64, handle: MemHandle, flags: c_uint) -> Code {
    if flags != 1 {
        return INVALID_VALUE;
    }
    if Mapping::is_own(&handle.0) {
        return INVALID_CONTEXT;
    }
    match Mapping::open(&handle.0) {
        Some(mapping) => put(address, state().import(current(), mapping)),
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcCloseMemHandle(address: u64) -> Code {
    state().close(address)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) -> Code {
    match state().range(address) {
        Some((start, bytes)) => put(base, start).max(put(size, bytes)),
        None => INVALID_VALUE,
    }
}

/// The size is kept in front of the memory.
const HEADER: usize = 64;

fn host_layout(bytes: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes.checked_add(HEADER)?, HEADER).ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostAlloc(start: *mut *mut c_void, bytes: usize, _flags: c_uint) -> Code {
    let Some(layout) = host_layout(bytes) else { return OUT_OF_MEMORY };
    // SAFETY: the layout has at least the header's size, in which the size is written.
    unsafe {
        let memory = std::alloc::alloc(layout);
        if memory.is_null() {
            return OUT_OF_MEMORY;
        }
        memory.cast::<usize>().write(bytes);
        put(start, memory.add(HEADER).cast())
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(start: *mut c_void) -> Code {
    // SAFETY: it came from `cuMemHostAlloc`, which wrote the size in front of it.
    unsafe {
        let memory = start.cast::<u8>().sub(HEADER);
        let Some(layout) = host_layout(memory.cast::<usize>().read()) else { return INVALID_VALUE };
        std::alloc::dealloc(memory, layout);
    }
    SUCCESS
}

/// A copy that waits for everything, as all that are ordered with the default stream do.
fn copy_now(to: u64, from: u64, bytes: usize) -> Code {
    let code = state().drain_blocking();
    if code == SUCCESS {
        copy(to, from, bytes);
    }
    code
}

/// As the driver's from memory that is not page-locked: when it returns, it is done with `from`, but not with `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> Code {
    // SAFETY: the caller gives so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
    state().give(DEFAULT, Step::Write { to, bytes: bytes.into() })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> Code {
    copy_now(to.addr() as u64, from, bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle) -> Code {
    state().give(stream, Step::Copy { to, from: from.addr() as u64, bytes })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle) -> Code {
    state().give(stream, Step::Copy { to: to.addr() as u64, from, bytes })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) -> Code {
    state().give(stream, Step::Copy { to, from, bytes })
}

// Streams and events

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreate(stream: *mut Handle, flags: c_uint) -> Code {
    let mut state = state();
    let handle = state.handle();
    state.streams.insert(handle, Stream { blocking: flags == 0, ..Stream::default() });
    put(stream, handle)
}

/// Refuses a stream that has work: the runtime waits first.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Code {
    match state().streams.remove(&stream) {
        Some(Stream { waiting, capture: None, .. }) if waiting.is_empty() => SUCCESS,
        _ => std::process::abort(),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: Handle) -> Code {
    let mut state = state();
    match state.streams.get(&stream) {
        None => INVALID_VALUE,
        Some(Stream { capture: Some(_), .. }) => STREAM_CAPTURE_UNSUPPORTED,
        Some(_) => state.drain(stream),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: Handle) -> Code {
    let state = state();
    match state.streams.get(&stream) {
        _ if state.fault != SUCCESS => state.fault,
        None => INVALID_VALUE,
        Some(stream) if stream.waiting.is_empty() => SUCCESS,
        Some(_) => NOT_READY,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) -> Code {
    state().give(stream, Step::Wait(event))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventCreate(event: *mut Handle, _flags: c_uint) -> Code {
    let mut state = state();
    let handle = state.handle();
    state.events.insert(handle, Event::default());
    put(event, handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: Handle) -> Code {
    state().events.remove(&event).map_or(INVALID_VALUE, |_| SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Code {
    let mut state = state();
    let Some(known) = state.events.get_mut(&event) else { return INVALID_VALUE };
    *known = Event { stream, pending: true, ..*known };
    state.give(stream, Step::Record(event))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: Handle) -> Code {
    let state = state();
    match state.events.get(&event) {
        _ if state.fault != SUCCESS => state.fault,
        None => INVALID_VALUE,
        Some(event) if event.pending => NOT_READY,
        Some(_) => SUCCESS,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: Handle) -> Code {
    let mut state = state();
    match state.events.get(&event).copied() {
        None => INVALID_VALUE,
        Some(Event { stream, pending: true, .. }) => state.drain(stream),
        Some(_) => state.fault,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) -> Code {
    let state = state();
    match (state.events.get(&start), state.events.get(&end)) {
        (Some(start), Some(end)) if start.pending || end.pending => NOT_READY,
        (Some(start), Some(end)) => put(milliseconds, end.time - start.time),
        _ => INVALID_VALUE,
    }
}

// Graphs

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) -> Code {
    match state().streams.get_mut(&stream) {
        // Relaxed, in a stream that the default one does not wait for: any other would be spoiled by other calls.
        Some(known) if !known.blocking && stream != DEFAULT && mode == 2 && known.capture.is_none() => {
            known.capture = Some(vec![]);
            SUCCESS
        }
        _ => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamIsCapturing(stream: Handle, status: *mut c_int) -> Code {
    match state().streams.get(&stream) {
        Some(known) => put(status, c_int::from(known.capture.is_some())),
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> Code {
    let mut state = state();
    let handle = state.handle();
    let Some(steps) = state.streams.get_mut(&stream).and_then(|s| s.capture.take()) else { return INVALID_VALUE };
    state.captured.insert(handle, steps);
    put(graph, handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, _flags: c_ulonglong) -> Code {
    let mut state = state();
    let handle = state.handle();
    let Some(steps) = state.captured.get(&graph).cloned() else { return INVALID_VALUE };
    state.graphs.insert(handle, Arc::new(steps));
    put(exec, handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: Handle) -> Code {
    state().captured.remove(&graph).map_or(INVALID_VALUE, |_| SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(exec: Handle) -> Code {
    match state().graphs.remove(&exec).map(Arc::try_unwrap) {
        Some(Ok(_)) => SUCCESS,
        // A stream is still to run it.
        _ => std::process::abort(),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(exec: Handle, stream: Handle) -> Code {
    let mut state = state();
    let Some(steps) = state.graphs.get(&exec).cloned() else { return INVALID_VALUE };
    state.give(stream, Step::Graph(steps))
}

// Modules

/// What the stand-in's linker makes: an ELF file as far as its first bytes tell.
const CUBIN: &[u8; 8] = b"\x7fELFcuda";

/// Whether the driver's compiler takes it; if not, it writes so into the log that the options name.
///
/// # Safety
/// As many options as values; the first two are the log and its size.
unsafe fn compile(ptx: &str, options: *const c_int, values: *const *mut c_void, count: c_uint) -> Code {
    if !ptx.contains(".version 99.9") {
        return SUCCESS;
    }
    // SAFETY: as above. CU_JIT_ERROR_LOG_BUFFER is 5, its size 6.
    unsafe {
        if count == 2 && *options == 5 && *options.add(1) == 6 {
            let text = c"ptxas fatal :\n too new";
            assert!((*values.add(1)).addr() > text.count_bytes());
            std::ptr::copy_nonoverlapping(text.as_ptr(), (*values).cast(), text.count_bytes() + 1);
        }
    }
    UNSUPPORTED_PTX_VERSION
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_char,
    count: c_uint,
    options: *const c_int,
    values: *const *mut c_void,
) -> Code {
    // SAFETY: an image is a text that ends in a zero byte, or an ELF file of more than 8 bytes.
    let code = unsafe {
        match std::slice::from_raw_parts(image.cast::<u8>(), 4) {
            b"\x7fELF" if std::slice::from_raw_parts(image.cast::<u8>(), 8) == CUBIN => SUCCESS,
            b"\x7fELF" => INVALID_IMAGE,
            _ => compile(&CStr::from_ptr(image).to_string_lossy(), options, values, count),
        }
    };
    if code != SUCCESS {
        return code;
    }
    let mut state = state();
    let handle = state.handle();
    state.modules.insert(handle, ());
    put(module, handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: Handle) -> Code {
    state().modules.remove(&module).map_or(INVALID_VALUE, |()| SUCCESS)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> Code {
    // SAFETY: a name ends in a zero byte.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    let mut state = state();
    let handle = state.handle();
    state.functions.insert(handle, (module, name));
    put(function, handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, _function: Handle) -> Code {
    // Threads a workgroup, shared memory, local memory, registers.
    match attribute {
        0 => put(value, 1024),
        1 | 3 => put(value, 0),
        4 => put(value, 16),
        _ => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    _function: Handle,
    threads: c_int,
    _dynamic: usize,
) -> Code {
    put(blocks, 2048 / threads)
}

/// The linker's options, which it keeps until it is destroyed.
struct Log {
    options: *const c_int,
    values: *const *mut c_void,
    count: c_uint,
}

thread_local! {
    static LOG: Cell<Option<Log>> = const { Cell::new(None) };
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkCreate_v2(
    count: c_uint,
    options: *const c_int,
    values: *const *mut c_void,
    linker: *mut Handle,
) -> Code {
    LOG.set(Some(Log { options, values, count }));
    let mut state = state();
    let handle = state.handle();
    state.linkers.insert(handle, vec![]);
    put(linker, handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkAddData_v2(
    linker: Handle,
    kind: c_int,
    data: *const u8,
    bytes: usize,
    _name: *const c_char,
    count: c_uint,
    _options: *const c_int,
    _values: *const *mut c_void,
) -> Code {
    // SAFETY: there are so many bytes.
    let data = unsafe { std::slice::from_raw_parts(data, bytes) };
    // CU_JIT_INPUT_PTX is 1: a text that ends in a zero byte.
    let (1, 0, Some(Log { options, values, count: logs })) = (kind, count, LOG.take()) else { return INVALID_VALUE };
    let Ok(ptx) = CStr::from_bytes_with_nul(data) else { return INVALID_VALUE };
    // SAFETY: the linker's options, which its maker keeps.
    let code = unsafe { compile(&ptx.to_string_lossy(), options, values, logs) };
    match state().linkers.get_mut(&linker) {
        Some(made) if code == SUCCESS => made.extend(CUBIN.iter().chain(data)),
        Some(_) => {}
        None => return INVALID_VALUE,
    }
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkComplete(linker: Handle, cubin: *mut *const u8, bytes: *mut usize) -> Code {
    match state().linkers.get(&linker) {
        Some(made) => put(cubin, made.as_ptr()).max(put(bytes, made.len())),
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkDestroy(linker: Handle) -> Code {
    state().linkers.remove(&linker).map_or(INVALID_VALUE, |_| SUCCESS)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: Handle,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _dynamic: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
    extra: *const *const c_void,
) -> Code {
    let mut state = state();
    let Some((module, name)) = state.functions.get(&function).cloned() else { return INVALID_VALUE };
    if !state.modules.contains_key(&module) || !params.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the list has five entries: a tag, the argument block, a tag, the place of its size, the end.
    let args = unsafe {
        let [one, block, two, size, end] = *extra.cast::<[*const c_void; 5]>();
        if one.addr() != 1 || two.addr() != 2 || !end.is_null() {
            return INVALID_VALUE;
        }
        std::slice::from_raw_parts(block.cast::<u8>(), *size.cast::<usize>())
    };
    // As the driver: where the environment says so, a launch returns when the kernel is done.
    let blocking = std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1");
    let step = match (name.split('_').next(), args) {
        (Some("stray"), _) => Step::Stray,
        (Some("add"), [x @ .., f0, f1, f2, f3]) if x.len() == 16 => {
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| x[at + i]));
            Step::Add { module, x: word(0), y: word(8), factor: f32::from_le_bytes([*f0, *f1, *f2, *f3]) }
        }
        (Some("shade"), words) if words.len() == 16 => {
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| words[at + i]));
            Step::Shade { module, texture: word(0), surface: word(8) }
        }
        (Some("relay"), args) if args.len() == 24 => {
            let [t0, t1, t2, t3, t4, t5, t6, t7, rest @ ..] = args else { return INVALID_VALUE };
            let table = u64::from_le_bytes([*t0, *t1, *t2, *t3, *t4, *t5, *t6, *t7]);
            let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|b| rest[4 * i + b]));
            let (from, to, add, words) = (word(0), word(1), word(2), word(3));
            Step::Relay { module, device: current(), table, from, to, add, words }
        }
        _ => return INVALID_VALUE,
    };
    match state.give(stream, step) {
        SUCCESS if blocking => state.drain(stream),
        code => code,
    }
}
