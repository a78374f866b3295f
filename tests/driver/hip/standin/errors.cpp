#include "errors.h"

#include "standin.h"

#include <algorithm>

namespace standin {
namespace {

struct Entry {
  hipError_t error;
  const char *name, *text;
};

constexpr Entry Entries[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorDeinitialized, "hipErrorDeinitialized", "deinitialized"},
    {hipErrorProfilerDisabled, "hipErrorProfilerDisabled", "profiler disabled"},
    {hipErrorProfilerNotInitialized, "hipErrorProfilerNotInitialized", "profiler not initialized"},
    {hipErrorProfilerAlreadyStarted, "hipErrorProfilerAlreadyStarted", "profiler already started"},
    {hipErrorProfilerAlreadyStopped, "hipErrorProfilerAlreadyStopped", "profiler already stopped"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue", "invalid pitch value"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid memcpy direction"},
    {hipErrorInsufficientDriver, "hipErrorInsufficientDriver", "insufficient driver"},
    {hipErrorMissingConfiguration, "hipErrorMissingConfiguration", "missing configuration"},
    {hipErrorPriorLaunchFailure, "hipErrorPriorLaunchFailure", "prior launch failure"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid context"},
    {hipErrorContextAlreadyCurrent, "hipErrorContextAlreadyCurrent", "context already current"},
    {hipErrorMapFailed, "hipErrorMapFailed", "map failed"},
    {hipErrorUnmapFailed, "hipErrorUnmapFailed", "unmap failed"},
    {hipErrorArrayIsMapped, "hipErrorArrayIsMapped", "array is mapped"},
    {hipErrorAlreadyMapped, "hipErrorAlreadyMapped", "already mapped"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorAlreadyAcquired, "hipErrorAlreadyAcquired", "already acquired"},
    {hipErrorNotMapped, "hipErrorNotMapped", "not mapped"},
    {hipErrorNotMappedAsArray, "hipErrorNotMappedAsArray", "not mapped as array"},
    {hipErrorNotMappedAsPointer, "hipErrorNotMappedAsPointer", "not mapped as pointer"},
    {hipErrorECCNotCorrectable, "hipErrorECCNotCorrectable", "eccnot correctable"},
    {hipErrorUnsupportedLimit, "hipErrorUnsupportedLimit", "unsupported limit"},
    {hipErrorContextAlreadyInUse, "hipErrorContextAlreadyInUse", "context already in use"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported", "peer access unsupported"},
    {hipErrorInvalidKernelFile, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {hipErrorInvalidGraphicsContext, "hipErrorInvalidGraphicsContext", "invalid graphics context"},
    {hipErrorInvalidSource, "hipErrorInvalidSource", "invalid source"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorSharedObjectSymbolNotFound, "hipErrorSharedObjectSymbolNotFound",
     "shared object symbol not found"},
    {hipErrorSharedObjectInitFailed, "hipErrorSharedObjectInitFailed", "shared object init failed"},
    {hipErrorOperatingSystem, "hipErrorOperatingSystem", "operating system"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorIllegalState, "hipErrorIllegalState", "illegal state"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "launch out of resources"},
    {hipErrorLaunchTimeOut, "hipErrorLaunchTimeOut", "launch time out"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled", "peer access already enabled"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled", "peer access not enabled"},
    {hipErrorSetOnActiveProcess, "hipErrorSetOnActiveProcess", "set on active process"},
    {hipErrorContextIsDestroyed, "hipErrorContextIsDestroyed", "context is destroyed"},
    {hipErrorAssert, "hipErrorAssert", "assert"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "host memory already registered"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered", "host memory not registered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge", "cooperative launch too large"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported", "stream capture unsupported"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated", "stream capture invalidated"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge", "stream capture merge"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched", "stream capture unmatched"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined", "stream capture unjoined"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation", "stream capture isolation"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit", "stream capture implicit"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent", "captured event"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread", "stream capture wrong thread"},
    {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure", "graph exec update failure"},
    {hipErrorInvalidChannelDescriptor, "hipErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    {hipErrorInvalidTexture, "hipErrorInvalidTexture", "invalid texture"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
    {hipErrorRuntimeMemory, "hipErrorRuntimeMemory", "runtime memory"},
    {hipErrorRuntimeOther, "hipErrorRuntimeOther", "runtime other"},
};

const Entry *find(int error) {
  auto found =
      std::find_if(std::begin(Entries), std::end(Entries), [&](auto &e) { return e.error == error; });
  return found == std::end(Entries) ? nullptr : found;
}

thread_local hipError_t last = hipSuccess;

} // namespace

int errorNumber(const std::string &error) {
  char *end;
  long number = std::strtol(error.c_str(), &end, 10);
  if (!error.empty() && !*end)
    return int(number);
  auto found = std::find_if(std::begin(Entries), std::end(Entries), [&](auto &e) { return e.name == error; });
  return found == std::end(Entries) ? -1 : found->error;
}

hipError_t enter(const char *name, Needs needs, Lock &lock) {
  configureFromEnvironment(lock);
  if (int struck = state().faults.strike(name))
    return hipError_t(struck);
  if (needs == Nothing)
    return hipSuccess;
  if (state().devices.empty())
    return hipErrorNoDevice;
  return state().devices[currentDevice()].failure;
}

hipError_t leave(const char *, hipError_t error) {
  if (error != hipSuccess)
    last = error;
  return error;
}

} // namespace standin

// These never fail, and are not counted.

const char *hipGetErrorName(hipError_t error) {
  auto entry = standin::find(error);
  return entry ? entry->name : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error) {
  auto entry = standin::find(error);
  return entry ? entry->text : "unknown error";
}

hipError_t hipGetLastError() { return std::exchange(standin::last, hipSuccess); }

hipError_t hipPeekAtLastError() { return standin::last; }
