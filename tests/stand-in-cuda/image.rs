//! Arrays, and what kernels get of them.

use std::ffi::{c_int, c_uint, c_void};

use super::state::{Array, INVALID_VALUE, OUT_OF_MEMORY, Object, SUCCESS, state};
use super::{Code, Handle, copy, put};

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
pub struct ArrayDescriptor {
    width: usize,
    height: usize,
    depth: usize,
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

/// Bytes of an element by the driver's number of its format: of half and single floats.
fn element(format: c_uint) -> Option<usize> {
    match format {
        16 => Some(2),
        32 => Some(4),
        _ => None,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuArray3DCreate_v2(array: *mut Handle, descriptor: *const ArrayDescriptor) -> Code {
    // SAFETY: the caller gives a descriptor.
    let ArrayDescriptor { width, height, depth, format, channels, flags } = unsafe { descriptor.read() };
    // Two dimensions, four channels, for surfaces.
    let (Some(bytes), 1.., 1.., 0, 4, 2) = (element(format), width, height, depth, channels, flags) else {
        return INVALID_VALUE;
    };
    if width > 131_072 || height > 65_536 {
        return INVALID_VALUE;
    }
    let total = width * height * 4 * bytes;
    if total >= 1 << 32 {
        return OUT_OF_MEMORY;
    }
    let mut state = state();
    let handle = state.handle();
    // Nobody may rely on zeros.
    state.arrays.insert(handle, Array { row: width * 4 * bytes, texels: vec![0xff; total].into() });
    put(array, handle)
}

/// Refuses an array that something is made of.
#[unsafe(no_mangle)]
pub extern "C" fn cuArrayDestroy(array: Handle) -> Code {
    let mut state = state();
    if state.textures.values().chain(state.surfaces.values()).any(|object| object.array == array) {
        std::process::abort();
    }
    state.arrays.remove(&array).map_or(INVALID_VALUE, |_| SUCCESS)
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct Copy2d {
    from_x: usize,
    from_y: usize,
    from_type: c_uint,
    from_host: *const c_void,
    from_device: u64,
    from_array: Handle,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_type: c_uint,
    to_host: *mut c_void,
    to_device: u64,
    to_array: Handle,
    to_pitch: usize,
    width: usize,
    height: usize,
}

const HOST: c_uint = 1;
const ARRAY: c_uint = 3;

/// Between host memory and a whole array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpy2D_v2(what: *const Copy2d) -> Code {
    // SAFETY: the caller gives a description.
    let what = unsafe { what.read() };
    let mut state = state();
    let code = state.drain_blocking();
    if code != SUCCESS {
        return code;
    }
    if [what.from_x, what.from_y, what.to_x, what.to_y] != [0; 4] {
        return INVALID_VALUE;
    }
    let (handle, host, pitch) = match (what.from_type, what.to_type) {
        (HOST, ARRAY) => (what.to_array, what.from_host.addr() as u64, what.from_pitch),
        (ARRAY, HOST) => (what.from_array, what.to_host.addr() as u64, what.to_pitch),
        _ => return INVALID_VALUE,
    };
    let Some(array) = state.arrays.get(&handle) else { return INVALID_VALUE };
    let bytes = what.width * what.height;
    if what.width != array.row || pitch != array.row || bytes != array.texels.len() {
        return INVALID_VALUE;
    }
    let texels = array.texels.as_ptr().addr() as u64;
    let (to, from) = if what.to_type == ARRAY { (texels, host) } else { (host, texels) };
    copy(to, from, bytes);
    SUCCESS
}

/// `CUDA_RESOURCE_DESC` of an array: kind, array, and what is reserved.
#[repr(C)]
pub struct Resource {
    kind: c_uint,
    array: Handle,
    reserved: [c_int; 30],
    flags: c_uint,
}

/// `CUDA_TEXTURE_DESC`, its beginning.
#[repr(C)]
pub struct TextureDescriptor {
    address: [c_uint; 3],
    filter: c_uint,
    flags: c_uint,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTexObjectCreate(
    texture: *mut u64,
    resource: *const Resource,
    descriptor: *const TextureDescriptor,
    view: *const c_void,
) -> Code {
    // SAFETY: the caller gives both.
    let (Resource { kind, array, flags, .. }, how) = unsafe { (resource.read(), descriptor.read()) };
    let mut state = state();
    // An array; clamped; point or linear; texels as floats, coordinates normalized or not.
    let known = kind == 0 && flags == 0 && view.is_null() && state.arrays.contains_key(&array);
    if !known || how.address[..2] != [1, 1] || how.filter > 1 || how.flags & !2 != 0 {
        return INVALID_VALUE;
    }
    put(texture, Object::hang(&mut state.textures, array))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuSurfObjectCreate(surface: *mut u64, resource: *const Resource) -> Code {
    // SAFETY: the caller gives it.
    let Resource { kind, array, flags, .. } = unsafe { resource.read() };
    let mut state = state();
    if kind != 0 || flags != 0 || !state.arrays.contains_key(&array) {
        return INVALID_VALUE;
    }
    put(surface, Object::hang(&mut state.surfaces, array))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuTexObjectDestroy(texture: u64) -> Code {
    state().textures.remove(&texture).map_or(INVALID_VALUE, |_| SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuSurfObjectDestroy(surface: u64) -> Code {
    state().surfaces.remove(&surface).map_or(INVALID_VALUE, |_| SUCCESS)
}
