#include "library.h"

#include "text.h"

#include <atomic>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <pthread.h>

namespace tpk::hip {
namespace {

std::atomic<uint64_t> forks{0};

Code codeOf(api::hipError_t error, Code otherwise) {
  switch (error) {
  case api::hipErrorOutOfMemory:
    return Code::OutOfMemory;
  case api::hipErrorInvalidDevicePointer:
    return Code::InvalidPointer;
  case api::hipErrorInvalidImage:
  case api::hipErrorNoBinaryForGpu:
  case api::hipErrorInvalidKernelFile:
  case api::hipErrorInvalidSource:
  case api::hipErrorSharedObjectSymbolNotFound:
  case api::hipErrorSharedObjectInitFailed:
    return Code::InvalidModule;
  case api::hipErrorInvalidConfiguration:
  case api::hipErrorInvalidDeviceFunction:
  case api::hipErrorLaunchOutOfResources:
  case api::hipErrorCooperativeLaunchTooLarge:
    return Code::LaunchError;
  case api::hipErrorAssert:
    return Code::AssertionFailed;
  // After these errors nothing works until the device is reset.
  case api::hipErrorDeinitialized:
  case api::hipErrorPriorLaunchFailure:
  case api::hipErrorNoDevice:
  case api::hipErrorECCNotCorrectable:
  case api::hipErrorIllegalAddress:
  case api::hipErrorLaunchTimeOut:
  case api::hipErrorLaunchFailure:
    return Code::DeviceLost;
  default:
    return otherwise;
  }
}

std::string loadedPath(void *handle, const std::string &asked) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
    return map->l_name;
  return asked;
}

} // namespace

uint64_t forkCount() { return forks.load(std::memory_order_relaxed); }

Library::Library(const std::string &path) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { ++forks; }); });
  forks_ = forkCount();
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    throw Failure(Code::ToolchainError,
                  text("HIP's runtime library ", path, " does not open: ", why ? why : "unknown"));
  }
  path_ = loadedPath(handle, path);
  std::string missing;
  int count = 0;
#define TPK_HIP_LOOK_UP(result, name, parameters)                                                            \
  functions_.name = reinterpret_cast<result(*) parameters>(dlsym(handle, #name));                            \
  if (!functions_.name && ++count <= 3)                                                                      \
    missing += missing.empty() ? #name : ", " #name;
  using namespace api;
  TPK_HIP_FUNCTIONS(TPK_HIP_LOOK_UP)
#undef TPK_HIP_LOOK_UP
  if (count) {
    dlclose(handle);
    throw Failure(Code::ToolchainError,
                  text(path_, " lacks ", count, " functions of HIP (", missing, count > 3 ? ", ..." : "",
                       "): the driver needs the runtime library of ROCm 6.0 or later"));
  }
}

int Library::version() const {
  checkProcess();
  int version = 0;
  check("HIP", "hipRuntimeGetVersion", functions_.hipRuntimeGetVersion(&version));
  return version;
}

int Library::deviceCount() const {
  checkProcess();
  int count = 0;
  auto error = functions_.hipGetDeviceCount(&count);
  if (error == api::hipErrorNoDevice) {
    functions_.hipGetLastError();
    return 0;
  }
  check("HIP", "hipGetDeviceCount", error);
  return count;
}

api::hipDeviceProp_tR0600 Library::properties(int device) const {
  checkProcess();
  api::hipDeviceProp_tR0600 found{};
  check(text("HIP device ", device, ": properties"), "hipGetDevicePropertiesR0600",
        functions_.hipGetDevicePropertiesR0600(&found, device));
  return found;
}

void Library::checkProcess() const {
  if (!isOwn())
    throw Failure(Code::DeviceLost,
                  "HIP: this process was forked off one that uses HIP, which does not work in it; "
                  "start it with multiprocessing's 'spawn' method, or fork before the first call");
}

std::string Library::describe(api::hipError_t error) const {
  const char *name = functions_.hipGetErrorName(error);
  const char *words = functions_.hipGetErrorString(error);
  std::string whole = text(name ? name : "unknown error", " (", int(error), ")");
  if (words && *words)
    whole += text(": ", words);
  functions_.hipGetLastError();
  return whole;
}

void Library::fail(const std::string &where, const char *function, api::hipError_t error,
                   Code otherwise) const {
  Code code = codeOf(error, otherwise);
  std::string whole = text(where, ": ", function, " failed: ", describe(error));
  if (code == Code::DeviceLost)
    whole += "; reset the device, or start the process again";
  throw Failure(code, whole);
}

} // namespace tpk::hip
