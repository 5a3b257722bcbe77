// What Lathe believes of AMD's HIP runtime, held against AMD's own header: functions' signatures, numbers and sizes. Only ever compiled.
// What the header alone of HIP 6 and later has is left out.

#define __HIP_PLATFORM_AMD__
#include <stddef.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

// Numbers

#define IS(name, number) _Static_assert((unsigned)(name) == (number), #name)
IS(hipSuccess, 0);
IS(hipErrorInvalidValue, 1);
IS(hipErrorOutOfMemory, 2);
IS(hipErrorNoDevice, 100);
IS(hipErrorInvalidDevice, 101);
IS(hipErrorECCNotCorrectable, 214);
IS(hipErrorPeerAccessUnsupported, 217);
IS(hipErrorNotReady, 600);
IS(hipErrorIllegalAddress, 700);
IS(hipErrorLaunchTimeOut, 702);
IS(hipErrorPeerAccessAlreadyEnabled, 704);
IS(hipErrorAssert, 710);
IS(hipErrorLaunchFailure, 719);
IS(hipDeviceAttributeMultiprocessorCount, 63);
IS(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
IS(hipMemcpyHostToDevice, 1);
IS(hipMemcpyDeviceToHost, 2);
IS(hipMemcpyDeviceToDevice, 3);
IS(hipStreamDefault, 0);
IS(hipEventDefault, 0);
IS(hipEventDisableTiming, 2);
IS(hipHostMallocPortable, 1);
IS(hipDeviceMallocFinegrained, 1);
IS((uintptr_t)HIP_LAUNCH_PARAM_BUFFER_POINTER, 1);
IS((uintptr_t)HIP_LAUNCH_PARAM_BUFFER_SIZE, 2);
IS((uintptr_t)HIP_LAUNCH_PARAM_END, 3);

// Sizes

_Static_assert(sizeof(hipIpcMemHandle_t) == 64, "hipIpcMemHandle_t");
_Static_assert(sizeof(hipDeviceProp_t) <= 1 << 16, "hipDeviceProp_t");
_Static_assert(sizeof(hipError_t) == 4 && sizeof(hipMemcpyKind) == 4, "enumerations are ints");

// Functions: a pointer of another type is an error.

hipError_t (*init)(unsigned) = hipInit;
hipError_t (*driver_version)(int *) = hipDriverGetVersion;
hipError_t (*count)(int *) = hipGetDeviceCount;
hipError_t (*device)(hipDevice_t *, int) = hipDeviceGet;
hipError_t (*name)(char *, int, hipDevice_t) = hipDeviceGetName;
hipError_t (*total)(size_t *, hipDevice_t) = hipDeviceTotalMem;
hipError_t (*set_device)(int) = hipSetDevice;
hipError_t (*attribute)(int *, hipDeviceAttribute_t, int) = hipDeviceGetAttribute;
hipError_t (*properties)(hipDeviceProp_t *, int) = hipGetDeviceProperties;
const char *(*error_name)(hipError_t) = hipGetErrorName;
const char *(*error_string)(hipError_t) = hipGetErrorString;
hipError_t (*allocate)(void **, size_t) = hipMalloc;
hipError_t (*allocate_with)(void **, size_t, unsigned) = hipExtMallocWithFlags;
hipError_t (*release)(void *) = hipFree;
hipError_t (*host_allocate)(void **, size_t, unsigned) = hipHostMalloc;
hipError_t (*host_release)(void *) = hipHostFree;
hipError_t (*fill)(void *, int, size_t) = hipMemset;
hipError_t (*copy)(void *, const void *, size_t, hipMemcpyKind) = hipMemcpy;
hipError_t (*copy_async)(void *, const void *, size_t, hipMemcpyKind, hipStream_t) = hipMemcpyAsync;
hipError_t (*stream_create)(hipStream_t *, unsigned) = hipStreamCreateWithFlags;
hipError_t (*stream_destroy)(hipStream_t) = hipStreamDestroy;
hipError_t (*stream_query)(hipStream_t) = hipStreamQuery;
hipError_t (*stream_synchronize)(hipStream_t) = hipStreamSynchronize;
hipError_t (*stream_wait)(hipStream_t, hipEvent_t, unsigned) = hipStreamWaitEvent;
hipError_t (*event_create)(hipEvent_t *, unsigned) = hipEventCreateWithFlags;
hipError_t (*event_destroy)(hipEvent_t) = hipEventDestroy;
hipError_t (*event_record)(hipEvent_t, hipStream_t) = hipEventRecord;
hipError_t (*event_query)(hipEvent_t) = hipEventQuery;
hipError_t (*event_synchronize)(hipEvent_t) = hipEventSynchronize;
hipError_t (*event_elapsed)(float *, hipEvent_t, hipEvent_t) = hipEventElapsedTime;
hipError_t (*load)(hipModule_t *, const void *) = hipModuleLoadData;
hipError_t (*unload)(hipModule_t) = hipModuleUnload;
hipError_t (*get_function)(hipFunction_t *, hipModule_t, const char *) = hipModuleGetFunction;
hipError_t (*function_attribute)(int *, hipFunction_attribute, hipFunction_t) = hipFuncGetAttribute;
hipError_t (*occupancy)(int *, hipFunction_t, int, size_t) = hipModuleOccupancyMaxActiveBlocksPerMultiprocessor;
hipError_t (*launch)(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, hipStream_t, void **,
                     void **) = hipModuleLaunchKernel;
hipError_t (*can_access)(int *, int, int) = hipDeviceCanAccessPeer;
hipError_t (*enable_access)(int, unsigned) = hipDeviceEnablePeerAccess;
hipError_t (*ipc_get)(hipIpcMemHandle_t *, void *) = hipIpcGetMemHandle;
hipError_t (*ipc_open)(void **, hipIpcMemHandle_t, unsigned) = hipIpcOpenMemHandle;
hipError_t (*ipc_close)(void *) = hipIpcCloseMemHandle;
hipError_t (*range)(void **, size_t *, void *) = hipMemGetAddressRange;
