// Everything of the HIP runtime API that the driver uses: the kit's own declarations of its functions,
// structures and constants. So the kit builds on any machine, and finds the library at run time. Names,
// values and layouts are the API's own, as in ROCm 6 and later. A test compares them with HIP's headers.
//
// Documentation: https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api_reference.html
#pragma once

#include <cstddef>
#include <cstdint>

namespace tpk::hip::api {

// --- handles
// -------------------------------------------------------------------------------------------------------
// Opaque pointers; a stream of NULL is the device's default stream.

using hipStream_t = struct ihipStream_t *;
using hipEvent_t = struct ihipEvent_t *;
using hipModule_t = struct ihipModule_t *;
using hipFunction_t = struct ihipModuleSymbol_t *;
using hipDeviceptr_t = void *;
using hipDevice_t = int;

// --- results
// -------------------------------------------------------------------------------------------------------
// https://rocm.docs.amd.com/projects/HIP/en/latest/reference/error_codes.html

/// The result of every function. These are the values that the driver distinguishes; others are possible.
enum hipError_t : int {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNotInitialized = 3,
  hipErrorDeinitialized = 4,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidDevicePointer = 17,
  hipErrorInsufficientDriver = 35,
  hipErrorPriorLaunchFailure = 53,
  hipErrorInvalidDeviceFunction = 98,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidImage = 200,
  hipErrorInvalidContext = 201,
  hipErrorNoBinaryForGpu = 209,
  hipErrorECCNotCorrectable = 214,
  hipErrorInvalidKernelFile = 218,
  hipErrorInvalidSource = 300,
  hipErrorFileNotFound = 301,
  hipErrorSharedObjectSymbolNotFound = 302,
  hipErrorSharedObjectInitFailed = 303,
  hipErrorInvalidHandle = 400,
  hipErrorIllegalState = 401,
  hipErrorNotFound = 500,
  hipErrorNotReady = 600,
  hipErrorIllegalAddress = 700,
  hipErrorLaunchOutOfResources = 701,
  hipErrorLaunchTimeOut = 702,
  hipErrorContextIsDestroyed = 709,
  hipErrorAssert = 710,
  hipErrorLaunchFailure = 719,
  hipErrorCooperativeLaunchTooLarge = 720,
  hipErrorNotSupported = 801,
  hipErrorUnknown = 999,
  hipErrorRuntimeMemory = 1052,
  hipErrorRuntimeOther = 1053,
};

// --- devices
// -------------------------------------------------------------------------------------------------------
// https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/structhip_device_prop__t.html

/// What hipGetDevicePropertiesR0600 fills in (ROCm 6.0 and later): 1472 bytes.
struct hipDeviceProp_tR0600 {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned int luidDeviceNodeMask;
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate; // kHz
  std::size_t totalConstMem;
  int major;
  int minor;
  std::size_t textureAlignment;
  std::size_t texturePitchAlignment;
  int deviceOverlap;
  int multiProcessorCount;
  int kernelExecTimeoutEnabled;
  int integrated;
  int canMapHostMemory;
  int computeMode;
  int textureAndSurfaceLimits[39];
  std::size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
  int memoryClockRate; // kHz
  int memoryBusWidth;  // bits
  int l2CacheSize;
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio;
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  std::size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  std::size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseHipArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingHipArraySupported;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
  int reserved[63];
  int hipReserved[32];
  char gcnArchName[256]; // such as "gfx942:sramecc+:xnack-"
  std::size_t maxSharedMemoryPerMultiProcessor;
  int clockInstructionRate; // kHz
  unsigned int arch;        // bit field of features
  unsigned int *hdpMemFlushCntl;
  unsigned int *hdpRegFlushCntl;
  int cooperativeMultiDeviceUnmatchedFunc;
  int cooperativeMultiDeviceUnmatchedGridDim;
  int cooperativeMultiDeviceUnmatchedBlockDim;
  int cooperativeMultiDeviceUnmatchedSharedMem;
  int isLargeBar;
  int asicRevision;
};

// --- memory
// --------------------------------------------------------------------------------------------------------

/// ROCm 6.0 and later.
enum hipMemoryType : int {
  hipMemoryTypeUnregistered = 0,
  hipMemoryTypeHost = 1,
  hipMemoryTypeDevice = 2,
  hipMemoryTypeManaged = 3,
  hipMemoryTypeArray = 10,
  hipMemoryTypeUnified = 11,
};

/// What hipPointerGetAttributes fills in.
struct hipPointerAttribute_t {
  hipMemoryType type;
  int device;
  void *devicePointer;
  void *hostPointer;
  int isManaged;
  unsigned int allocationFlags;
};

// --- flags and markers
// ---------------------------------------------------------------------------------------------

// Not HIP's names, which are macros (hipStreamNonBlocking, ...), so that both headers can be included
// together.

/// hipStreamCreateWithFlags: the stream does not synchronise with the default stream.
inline constexpr unsigned int kStreamNonBlocking = 1;
/// hipEventCreateWithFlags: the event records a time.
inline constexpr unsigned int kEventDefault = 0;
/// hipEventCreateWithFlags: the event records no time, and is cheaper.
inline constexpr unsigned int kEventDisableTiming = 2;

/// Markers in the `extra` of hipModuleLaunchKernel (HIP_LAUNCH_PARAM_BUFFER_POINTER, ..._BUFFER_SIZE,
/// ..._END): {kLaunchBufferPointer, block, kLaunchBufferSize, &size (size_t), kLaunchEnd}.
/// https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_driver_api.html
inline void *const kLaunchBufferPointer = reinterpret_cast<void *>(std::uintptr_t(1));
inline void *const kLaunchBufferSize = reinterpret_cast<void *>(std::uintptr_t(2));
inline void *const kLaunchEnd = reinterpret_cast<void *>(std::uintptr_t(3));

} // namespace tpk::hip::api

// --- functions
// -----------------------------------------------------------------------------------------------------
// X(result, name, parameters): every function that the driver looks up in the library. All have C linkage. A
// library that lacks one of them is refused.
//
// Device numbers are the process's own (after HIP_VISIBLE_DEVICES). "The current device" is per thread.
// clang-format off
#define TPK_HIP_FUNCTIONS(X) \
  /* errors; hipGetLastError also clears this thread's last error, which others may ask for */ \
  X(const char *, hipGetErrorName,    (hipError_t error)) \
  X(const char *, hipGetErrorString,  (hipError_t error)) \
  X(hipError_t, hipGetLastError,      (void)) \
  /* devices */ \
  X(hipError_t, hipRuntimeGetVersion, (int *version)) \
  X(hipError_t, hipGetDeviceCount,    (int *count)) \
  X(hipError_t, hipGetDevice,         (int *device)) \
  X(hipError_t, hipSetDevice,         (int device)) \
  X(hipError_t, hipGetDevicePropertiesR0600, (hipDeviceProp_tR0600 *properties, int device)) \
  X(hipError_t, hipDeviceSynchronize, (void)) \
  X(hipError_t, hipDeviceReset,       (void)) \
  /* memory; hipFree waits for the device; copies are ordered by their stream */ \
  X(hipError_t, hipMalloc,            (void **address, std::size_t size)) \
  X(hipError_t, hipFree,              (void *address)) \
  X(hipError_t, hipPointerGetAttributes, (hipPointerAttribute_t *attributes, const void *address)) \
  X(hipError_t, hipMemcpyHtoDAsync,   (hipDeviceptr_t dst, const void *src, std::size_t size, hipStream_t stream)) \
  X(hipError_t, hipMemcpyDtoHAsync,   (void *dst, hipDeviceptr_t src, std::size_t size, hipStream_t stream)) \
  X(hipError_t, hipMemcpyDtoDAsync,   (hipDeviceptr_t dst, hipDeviceptr_t src, std::size_t size, hipStream_t stream)) \
  X(hipError_t, hipMemsetD8Async,     (hipDeviceptr_t dst, unsigned char value, std::size_t count, hipStream_t stream)) \
  /* streams; hipStreamGetDevice refuses what is no stream (hipErrorContextIsDestroyed, hipErrorInvalidHandle) */ \
  X(hipError_t, hipStreamCreateWithFlags, (hipStream_t *stream, unsigned int flags)) \
  X(hipError_t, hipStreamDestroy,     (hipStream_t stream)) \
  X(hipError_t, hipStreamSynchronize, (hipStream_t stream)) \
  X(hipError_t, hipStreamWaitEvent,   (hipStream_t stream, hipEvent_t event, unsigned int flags)) \
  X(hipError_t, hipStreamGetDevice,   (hipStream_t stream, hipDevice_t *device)) \
  /* events; hipEventQuery and hipEventElapsedTime give hipErrorNotReady while work is pending */ \
  X(hipError_t, hipEventCreateWithFlags, (hipEvent_t *event, unsigned int flags)) \
  X(hipError_t, hipEventDestroy,      (hipEvent_t event)) \
  X(hipError_t, hipEventRecord,       (hipEvent_t event, hipStream_t stream)) \
  X(hipError_t, hipEventSynchronize,  (hipEvent_t event)) \
  X(hipError_t, hipEventQuery,        (hipEvent_t event)) \
  X(hipError_t, hipEventElapsedTime,  (float *milliseconds, hipEvent_t start, hipEvent_t end)) \
  /* kernels; grids are counted in blocks, `extra` is as above and `params` then NULL */ \
  X(hipError_t, hipModuleLoadData,    (hipModule_t *module, const void *image)) \
  X(hipError_t, hipModuleUnload,      (hipModule_t module)) \
  X(hipError_t, hipModuleGetFunction, (hipFunction_t *function, hipModule_t module, const char *name)) \
  X(hipError_t, hipModuleLaunchKernel, (hipFunction_t function, \
      unsigned int gridX, unsigned int gridY, unsigned int gridZ, \
      unsigned int blockX, unsigned int blockY, unsigned int blockZ, \
      unsigned int sharedBytes, hipStream_t stream, void **params, void **extra)) \
  /* the same for grids whose programs wait for each other; `params` points to each argument in turn */ \
  X(hipError_t, hipModuleLaunchCooperativeKernel, (hipFunction_t function, \
      unsigned int gridX, unsigned int gridY, unsigned int gridZ, \
      unsigned int blockX, unsigned int blockY, unsigned int blockZ, \
      unsigned int sharedBytes, hipStream_t stream, void **params))
// clang-format on
