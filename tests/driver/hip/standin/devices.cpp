// Devices: how many, what they are, which is current.
#include "standin.h"

#include <cstring>
#include <dlfcn.h>

using namespace standin;

namespace standin {
namespace {

constexpr Architecture Architectures[] = {
    {"gfx90a", "gfx90a:sramecc+:xnack-", 9, 0, 104, 64, 64 << 10, 1700000, 1600000, 4096},
    {"gfx942", "gfx942:sramecc+:xnack-", 9, 4, 304, 64, 64 << 10, 2100000, 1300000, 8192},
    {"gfx950", "gfx950:sramecc+:xnack-", 9, 5, 256, 64, 160 << 10, 2400000, 2000000, 8192},
    {"gfx1100", "gfx1100", 11, 0, 48, 32, 64 << 10, 2482000, 1249000, 384},
    {"gfx1201", "gfx1201", 12, 0, 32, 32, 64 << 10, 2970000, 1258000, 256},
    {"gfx1250", "gfx1250", 12, 5, 256, 32, 320 << 10, 2400000, 2000000, 8192},
};

} // namespace

const Architecture *findArchitecture(const std::string &name) {
  for (auto &architecture : Architectures)
    if (name == architecture.name)
      return &architecture;
  return nullptr;
}

namespace {

void describe(hipDeviceProp_t &properties, const Device &device, int index) {
  auto &architecture = *device.architecture;
  std::memset(&properties, 0, sizeof properties);
  std::snprintf(properties.name, sizeof properties.name, "Stand-in %s (no GPU)", architecture.name);
  std::snprintf(properties.gcnArchName, sizeof properties.gcnArchName, "%s", architecture.fullName);
  properties.totalGlobalMem = device.memory->limit();
  properties.sharedMemPerBlock = architecture.lds;
  properties.sharedMemPerMultiprocessor = architecture.lds;
  properties.maxSharedMemoryPerMultiProcessor = architecture.lds;
  properties.regsPerBlock = properties.regsPerMultiprocessor = 65536;
  properties.warpSize = architecture.warp;
  properties.maxThreadsPerBlock = 1024;
  std::fill_n(properties.maxThreadsDim, 3, 1024);
  properties.maxGridSize[0] = INT32_MAX;
  properties.maxGridSize[1] = properties.maxGridSize[2] = 65536;
  properties.clockRate = architecture.clock;
  properties.memoryClockRate = architecture.memoryClock;
  properties.memoryBusWidth = architecture.busBits;
  properties.major = architecture.major;
  properties.minor = architecture.minor;
  properties.multiProcessorCount = architecture.units;
  properties.maxThreadsPerMultiProcessor = 2048;
  properties.concurrentKernels = properties.cooperativeLaunch = 1;
  properties.unifiedAddressing = 1;
  properties.canMapHostMemory = 1;
  properties.pciBusID = index + 1;
}

int attribute(hipDeviceAttribute_t which, int index) {
  hipDeviceProp_t properties;
  describe(properties, device(index), index);
  switch (which) {
  case hipDeviceAttributeWarpSize:
    return properties.warpSize;
  case hipDeviceAttributeMultiprocessorCount:
    return properties.multiProcessorCount;
  case hipDeviceAttributeMaxSharedMemoryPerBlock:
    return int(properties.sharedMemPerBlock);
  case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
    return int(properties.maxSharedMemoryPerMultiProcessor);
  case hipDeviceAttributeMaxThreadsPerBlock:
    return properties.maxThreadsPerBlock;
  case hipDeviceAttributeMaxBlockDimX:
  case hipDeviceAttributeMaxBlockDimY:
  case hipDeviceAttributeMaxBlockDimZ:
    return properties.maxThreadsDim[0];
  case hipDeviceAttributeMaxGridDimX:
    return properties.maxGridSize[0];
  case hipDeviceAttributeMaxGridDimY:
  case hipDeviceAttributeMaxGridDimZ:
    return properties.maxGridSize[1];
  case hipDeviceAttributeMaxRegistersPerBlock:
    return properties.regsPerBlock;
  case hipDeviceAttributeClockRate:
    return properties.clockRate;
  case hipDeviceAttributeMemoryClockRate:
    return properties.memoryClockRate;
  case hipDeviceAttributeMemoryBusWidth:
    return properties.memoryBusWidth;
  case hipDeviceAttributeComputeCapabilityMajor:
    return properties.major;
  case hipDeviceAttributeComputeCapabilityMinor:
    return properties.minor;
  case hipDeviceAttributePciBusId:
    return properties.pciBusID;
  case hipDeviceAttributePciDeviceId:
  case hipDeviceAttributePciDomainID:
  case hipDeviceAttributeIntegrated:
    return 0;
  default:
    refuse(hipErrorInvalidValue, "the stand-in does not know device attribute ", int(which));
  }
}

// Everything that was made on the device is gone.
void wipe(int index, Lock &lock) {
  State &all = state();
  Device &device = all.devices[index];
  (void)drain(index, lock);
  auto here = [&](auto &entry) { return entry.second.device == index; };
  std::erase_if(all.streams, [&](auto &entry) {
    if (entry.second->device != index)
      return false;
    entry.second->closed = true;
    return true;
  });
  std::erase_if(all.functionNames,
                [&](auto &entry) { return all.functions.at(entry.second).device == index; });
  std::erase_if(all.events, here);
  std::erase_if(all.functions, here);
  std::erase_if(all.modules, [&](auto &entry) { return entry.second->device == index; });
  device.memory->freeAll();
  device.failure = hipSuccess;
  all.changed.notify_all();
}

} // namespace
} // namespace standin

hipError_t hipInit(unsigned flags) {
  return call("hipInit", Nothing, [&] {
    if (flags)
      refuse(hipErrorInvalidValue, "flags are ", flags, ", not 0");
    return state().devices.empty() ? hipErrorNoDevice : hipSuccess;
  });
}

hipError_t hipGetDeviceCount(int *count) {
  return call("hipGetDeviceCount", Nothing, [&] {
    *wanted(count) = int(state().devices.size());
    return *count ? hipSuccess : hipErrorNoDevice;
  });
}

hipError_t hipGetDevice(int *index) {
  return call("hipGetDevice", Nothing, [&] {
    if (state().devices.empty())
      return hipErrorNoDevice;
    *wanted(index) = currentDevice();
    return hipSuccess;
  });
}

hipError_t hipSetDevice(int index) {
  return call("hipSetDevice", Nothing, [&] {
    device(index);
    currentDevice() = index;
    return hipSuccess;
  });
}

hipError_t hipDeviceGet(hipDevice_t *result, int index) {
  return call("hipDeviceGet", Nothing, [&] {
    device(index);
    *wanted(result) = index;
    return hipSuccess;
  });
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t which, int index) {
  return call("hipDeviceGetAttribute", Nothing, [&] {
    *wanted(value) = attribute(which, index);
    return hipSuccess;
  });
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int index) { // the header adds R0600
  return call("hipGetDevicePropertiesR0600", Nothing, [&] {
    describe(*wanted(properties), device(index), index);
    return hipSuccess;
  });
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t index) {
  return call("hipDeviceTotalMem", Nothing, [&] {
    *wanted(bytes) = device(index).memory->limit();
    return hipSuccess;
  });
}

hipError_t hipDeviceGetName(char *name, int length, hipDevice_t index) {
  return call("hipDeviceGetName", Nothing, [&] {
    if (length <= 0)
      refuse(hipErrorInvalidValue, "the name has ", length, " bytes");
    std::snprintf(wanted(name), size_t(length), "Stand-in %s (no GPU)", device(index).architecture->name);
    return hipSuccess;
  });
}

hipError_t hipDeviceSynchronize() {
  return call("hipDeviceSynchronize", HealthyDevice,
              [&](Lock &lock) { return drain(currentDevice(), lock); });
}

hipError_t hipDeviceReset() {
  return call("hipDeviceReset", Nothing, [&](Lock &lock) {
    current();
    wipe(currentDevice(), lock);
    return hipSuccess;
  });
}

hipError_t hipRuntimeGetVersion(int *version) {
  return call("hipRuntimeGetVersion", Nothing, [&] {
    *wanted(version) = HIP_VERSION;
    return hipSuccess;
  });
}

hipError_t hipDriverGetVersion(int *version) {
  return call("hipDriverGetVersion", Nothing, [&] {
    *wanted(version) = HIP_VERSION;
    return hipSuccess;
  });
}

hipError_t hipGetProcAddress(const char *symbol, void **function, int, uint64_t,
                             hipDriverProcAddressQueryResult *found) {
  return call("hipGetProcAddress", Nothing, [&] {
    Dl_info here;
    void *library =
        dladdr(reinterpret_cast<void *>(hipInit), &here) ? dlopen(here.dli_fname, RTLD_LAZY) : nullptr;
    if (!library)
      refuse(hipErrorNotSupported, "the stand-in does not find itself");
    std::string name = wanted(symbol);
    if (name == "hipGetDeviceProperties")
      name += "R0600";
    *wanted(function) = dlsym(library, name.c_str());
    dlclose(library);
    if (found)
      *found = *function ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!*function)
      refuse(hipErrorInvalidValue, "the stand-in has no function ", name);
    return hipSuccess;
  });
}
