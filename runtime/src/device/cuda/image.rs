//! Images of a GPU: a CUDA array, with a texture object and a surface object of it.

#![allow(unsafe_code)] // Calls of the driver.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::{DriverError, sys};
use lathe_dsl::ir::{Coordinates, Filter, ImageType, Scalar, TEXEL};

use super::context::Context;
use crate::device::driver::{Image, ImageHandle, Images, Sampling};
use crate::error::Error;

/// A device's images, by what kernels get of them.
pub(super) struct Gallery {
    context: Arc<Context>,
    hung: Arc<Mutex<Hung>>,
}

type Hung = BTreeMap<ImageHandle, Weak<Array>>;

impl Gallery {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self { context: context.clone(), hung: Arc::default() }
    }
}

impl Images for Gallery {
    fn image(&self, image: ImageType, sampling: Sampling) -> Result<Arc<dyn Image>, Error> {
        self.context.enter()?;
        let mut array = Array {
            context: self.context.clone(),
            hung: self.hung.clone(),
            image,
            array: ptr::null_mut(),
            texture: None,
            surface: None,
        };
        array.make(sampling)?;
        let array = Arc::new(array);
        let mut hung = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in array.handles() {
            hung.insert(handle, Arc::downgrade(&array));
        }
        Ok(array)
    }

    fn owner(&self, handle: ImageHandle) -> Option<Arc<dyn Image>> {
        let hung = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        hung.get(&handle).and_then(Weak::upgrade).map(|array| array as Arc<dyn Image>)
    }
}

struct Array {
    context: Arc<Context>,
    hung: Arc<Mutex<Hung>>,
    image: ImageType,
    /// Null until it is made.
    array: sys::CUarray,
    texture: Option<sys::CUtexObject>,
    surface: Option<sys::CUsurfObject>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Array {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for Array {}

impl Array {
    /// Makes the array and its objects; what was made before an error is destroyed with this.
    fn make(&mut self, sampling: Sampling) -> Result<(), Error> {
        let context = &self.context;
        let ImageType { elem, width, height } = self.image;
        let descriptor = sys::CUDA_ARRAY3D_DESCRIPTOR {
            Width: width as usize,
            Height: height as usize,
            Depth: 0,
            Format: match elem {
                Scalar::F16 => sys::CUarray_format::CU_AD_FORMAT_HALF,
                _ => sys::CUarray_format::CU_AD_FORMAT_FLOAT,
            },
            NumChannels: TEXEL,
            Flags: sys::CUDA_ARRAY3D_SURFACE_LDST,
        };
        // SAFETY: the context is current; writes one handle through a valid pointer.
        unsafe { sys::cuArray3DCreate_v2(&raw mut self.array, &raw const descriptor) }.result().map_err(
            |e: DriverError| match e.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                    Error::OutOfMemory { device: context.name.clone(), bytes: self.image.bytes() }
                }
                _ => context.error("cuArray3DCreate", None, e),
            },
        )?;
        let resource = sys::CUDA_RESOURCE_DESC {
            resType: sys::CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
            res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
                array: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_1 { hArray: self.array },
            },
            flags: 0,
        };
        let description = texture_descriptor(sampling);
        let mut texture = 0;
        // SAFETY: as above; the array is the resource, the descriptor is whole, and no view is given.
        unsafe { sys::cuTexObjectCreate(&raw mut texture, &raw const resource, &raw const description, ptr::null()) }
            .result()
            .map_err(context.failed("cuTexObjectCreate"))?;
        self.texture = Some(texture);
        let mut surface = 0;
        // SAFETY: as above.
        unsafe { sys::cuSurfObjectCreate(&raw mut surface, &raw const resource) }
            .result()
            .map_err(context.failed("cuSurfObjectCreate"))?;
        self.surface = Some(surface);
        Ok(())
    }

    fn handles(&self) -> [ImageHandle; 2] {
        [ImageHandle::Texture(self.texture()), ImageHandle::Surface(self.surface())]
    }

    /// A copy of all texels between the array and host memory, which is as large; one of `from` and `to` is given.
    fn copy(&self, from: *const u8, to: *mut u8) -> Result<(), Error> {
        let (host, array) = (sys::CUmemorytype::CU_MEMORYTYPE_HOST, sys::CUmemorytype::CU_MEMORYTYPE_ARRAY);
        let row = self.image.width as usize * TEXEL as usize * self.image.elem.bytes() as usize;
        let writes = to.is_null();
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: if writes { host } else { array },
            srcHost: from.cast(),
            srcDevice: 0,
            srcArray: if writes { ptr::null_mut() } else { self.array },
            srcPitch: if writes { row } else { 0 },
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: if writes { array } else { host },
            dstHost: to.cast(),
            dstDevice: 0,
            dstArray: if writes { self.array } else { ptr::null_mut() },
            dstPitch: if writes { 0 } else { row },
            WidthInBytes: row,
            Height: self.image.height as usize,
        };
        self.context.enter()?;
        // SAFETY: the array lives, and whoever calls this gives host memory of its size.
        unsafe { sys::cuMemcpy2D_v2(&raw const copy) }.result().map_err(self.context.failed("cuMemcpy2D"))
    }
}

/// How a texture object samples: beyond an edge is the texel at the edge, and elements are read as floats.
fn texture_descriptor(sampling: Sampling) -> sys::CUDA_TEXTURE_DESC {
    let filter = match sampling.filter {
        Filter::Nearest => sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
        Filter::Linear => sys::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
    };
    let flags: c_uint = match sampling.coordinates {
        Coordinates::Texels => 0,
        Coordinates::Normalized => sys::CU_TRSF_NORMALIZED_COORDINATES,
    };
    sys::CUDA_TEXTURE_DESC {
        addressMode: [sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3],
        filterMode: filter,
        flags,
        maxAnisotropy: 0,
        mipmapFilterMode: sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
        mipmapLevelBias: 0.0,
        minMipmapLevelClamp: 0.0,
        maxMipmapLevelClamp: 0.0,
        borderColor: [0.0; 4],
        reserved: [0; 12],
    }
}

impl Image for Array {
    fn number(&self) -> u64 {
        self.array.addr() as u64
    }

    fn texture(&self) -> u64 {
        self.texture.unwrap_or(0)
    }

    fn surface(&self) -> u64 {
        self.surface.unwrap_or(0)
    }

    fn write(&self, texels: &[u8]) -> Result<(), Error> {
        self.check(texels.len())?;
        self.copy(texels.as_ptr(), ptr::null_mut())?;
        self.context.settle_default()
    }

    fn read(&self, texels: &mut [u8]) -> Result<(), Error> {
        self.check(texels.len())?;
        self.copy(ptr::null(), texels.as_mut_ptr())
    }
}

impl Array {
    /// An error unless so many bytes are all of it.
    fn check(&self, bytes: usize) -> Result<(), Error> {
        if bytes as u64 == self.image.bytes() {
            return Ok(());
        }
        let elem = self.image.elem.bytes() as usize;
        Err(Error::ImageTexels { given: bytes / elem, wanted: self.image.elements() })
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let mut hung = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in self.handles() {
            // Another image may have got the number meanwhile.
            if hung.get(&handle).is_some_and(|of| of.strong_count() == 0) {
                hung.remove(&handle);
            }
        }
        drop(hung);
        self.context.drain();
        if self.context.enter().is_err() {
            return;
        }
        if let Some(surface) = self.surface {
            // SAFETY: it was made once, and no launch uses it any more.
            let _ = unsafe { sys::cuSurfObjectDestroy(surface) };
        }
        if let Some(texture) = self.texture {
            // SAFETY: as above.
            let _ = unsafe { sys::cuTexObjectDestroy(texture) };
        }
        if !self.array.is_null() {
            // SAFETY: as above; its objects are gone.
            let _ = unsafe { sys::cuArrayDestroy(self.array) };
        }
    }
}
