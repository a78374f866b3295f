// Memory, and the copies and fills that queues run. Copies of ordinary host memory are as asynchronous as
// those of pinned memory, which HIP leaves open: the host's side is read or written when the copy's turn
// comes.
#include "standin.h"

#include <cstring>
#include <sys/mman.h>

using namespace standin;

namespace standin {
namespace {

// Host memory that a copy reads or writes. Pages that there are not are found out when the copy runs.
void checkHost(const char *what, const void *address) {
  if (!address)
    refuse(hipErrorInvalidValue, what, " is NULL");
  if (isDeviceAddress(address))
    misuse(hipErrorInvalidValue, what, ' ', address, " is memory of a device, not of the host");
}

void checkDevice(const char *what, const void *address, size_t bytes, const Queue &queue) {
  if (!address)
    refuse(hipErrorInvalidValue, what, " is NULL");
  int owner = checkRange(what, address, bytes);
  if (owner != queue.device)
    misuse(hipErrorInvalidValue, what, ' ', address, " is memory of device ", owner,
           ", the stream is of device ", queue.device);
}

// Writes down what went wrong in a queue: the host's memory was gone when a copy's turn came.
void lost(const char *copy, const void *address) {
  State &all = state();
  Lock lock(all.lock);
  note({copy, text("the host's memory at ", address, " was gone when the copy ran"), hipErrorIllegalAddress,
        true});
}

} // namespace
} // namespace standin

hipError_t hipMalloc(void **address, size_t bytes) {
  return call("hipMalloc", HealthyDevice, [&] {
    *wanted(address) = nullptr;
    if (!bytes)
      return hipSuccess;
    *address = reinterpret_cast<void *>(current().memory->allocate(bytes));
    return *address ? hipSuccess : hipErrorOutOfMemory;
  });
}

hipError_t hipFree(void *address) {
  return call("hipFree", HealthyDevice, [&](Lock &lock) {
    if (!address)
      return hipSuccess;
    for (size_t index = 0; index < state().devices.size(); ++index) {
      if (!state().devices[index].memory->reserved(uint64_t(address)))
        continue;
      if (hipError_t error = drain(int(index), lock))
        return error;
      if (!state().devices[index].memory->free(uint64_t(address)))
        misuse(hipErrorInvalidValue, address, " is no live allocation of device ", index);
      return hipSuccess;
    }
    misuse(hipErrorInvalidValue, address, " is not the memory of a device");
  });
}

hipError_t hipMemGetInfo(size_t *free, size_t *total) {
  return call("hipMemGetInfo", HealthyDevice, [&] {
    Memory &memory = *current().memory;
    *wanted(total) = memory.limit();
    *wanted(free) = memory.limit() - memory.used();
    return hipSuccess;
  });
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address) {
  return call("hipPointerGetAttributes", HealthyDevice, [&] {
    *wanted(attributes) = {};
    auto &devices = state().devices;
    for (size_t index = 0; index < devices.size(); ++index) {
      if (devices[index].memory->find(uint64_t(address)).first) {
        attributes->type = hipMemoryTypeDevice;
        attributes->device = int(index);
        attributes->devicePointer = const_cast<void *>(address);
        return hipSuccess;
      }
    }
    refuse(hipErrorInvalidValue, address, " is no memory that HIP knows");
  });
}

hipError_t hipPointerGetAttribute(void *value, hipPointer_attribute which, hipDeviceptr_t address) {
  return call("hipPointerGetAttribute", HealthyDevice, [&] {
    if (which != HIP_POINTER_ATTRIBUTE_DEVICE_POINTER)
      refuse(hipErrorInvalidValue, "the stand-in does not know pointer attribute ", int(which));
    for (auto &device : state().devices)
      if (device.memory->find(uint64_t(address)).first) {
        *static_cast<hipDeviceptr_t *>(wanted(value)) = address;
        return hipSuccess;
      }
    refuse(hipErrorInvalidValue, address, " is no memory that HIP knows");
  });
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t bytes, hipStream_t stream) {
  return call("hipMemcpyHtoDAsync", HealthyDevice, [&] {
    auto queue = queueHere(stream);
    if (!bytes)
      return hipSuccess;
    checkHost("the source", from);
    checkDevice("the destination", to, bytes, *queue);
    submit(queue, "copy to device", [=, place = contents(to)](uint64_t) {
      if (!readHost(place, from, bytes))
        lost("hipMemcpyHtoDAsync", from);
    });
    return hipSuccess;
  });
}

hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return call("hipMemcpyDtoHAsync", HealthyDevice, [&] {
    auto queue = queueHere(stream);
    if (!bytes)
      return hipSuccess;
    checkHost("the destination", to);
    checkDevice("the source", from, bytes, *queue);
    submit(queue, "copy to host", [=, place = contents(from)](uint64_t) {
      if (!writeHost(to, place, bytes))
        lost("hipMemcpyDtoHAsync", to);
    });
    return hipSuccess;
  });
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return call("hipMemcpyDtoDAsync", HealthyDevice, [&] {
    auto queue = queueHere(stream);
    if (!bytes)
      return hipSuccess;
    checkDevice("the source", from, bytes, *queue);
    checkDevice("the destination", to, bytes, *queue);
    submit(queue, "copy on device", [=, place = contents(to), source = contents(from)](uint64_t) {
      std::memmove(place, source, bytes);
    });
    return hipSuccess;
  });
}

hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t bytes, hipStream_t stream) {
  return call("hipMemsetD8Async", HealthyDevice, [&] {
    auto queue = queueHere(stream);
    if (!bytes)
      return hipSuccess;
    checkDevice("the destination", to, bytes, *queue);
    submit(queue, "fill", [=, place = contents(to)](uint64_t) { std::memset(place, value, bytes); });
    return hipSuccess;
  });
}
