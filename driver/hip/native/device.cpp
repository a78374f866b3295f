// Creation and reset of a device, and its memory.
#include "device.h"

#include "current.h"
#include "text.h"

#include <algorithm>

namespace tpk::hip {
namespace {

constexpr uint64_t kOwnAlignment = 256; // the least alignment of hipMalloc
constexpr uint64_t kMaximumAlignment = uint64_t(1) << 30;

void *pointer(uint64_t address) { return reinterpret_cast<void *>(address); }

} // namespace

// --- life
// ----------------------------------------------------------------------------------------------------------

Device::Device(LibraryPointer library, int index)
    : library_(std::move(library)), hip_(library_->call()), index_(index) {
  int count = library_->deviceCount();
  if (index < 0 || index >= count)
    throw Failure(Code::InvalidArgument, text("HIP: there is no device ", index, " of ", count));
  properties_ = library_->properties(index);
}

Device::~Device() { close(); }

std::string Device::where(const char *call) const { return text("HIP device ", index_, ": ", call); }

void Device::check(const char *call, const char *function, api::hipError_t error, Code otherwise) const {
  if (error != api::hipSuccess) [[unlikely]]
    library_->check(where(call), function, error, otherwise);
}

api::hipError_t Device::releaseEverything() {
  decltype(memory_) memory;
  decltype(streams_) streams;
  decltype(events_) events;
  decltype(modules_) modules;
  {
    std::lock_guard lock(tables_);
    std::swap(memory, memory_);
    std::swap(streams, streams_);
    std::swap(events, events_);
    std::swap(modules, modules_);
    functions_.clear();
  }
  decltype(pending_) pending;
  decltype(markers_) markers;
  {
    std::lock_guard lock(pendingMutex_);
    std::swap(pending, pending_);
    std::swap(markers, markers_);
  }
  auto first = api::hipSuccess;
  auto note = [&](api::hipError_t error) {
    if (error == api::hipSuccess)
      return;
    hip_.hipGetLastError();
    if (first == api::hipSuccess)
      first = error;
  };
  // An error here belongs to work that the reset discards.
  if (hip_.hipDeviceSynchronize() != api::hipSuccess)
    hip_.hipGetLastError();
  for (auto &entry : pending)
    if (entry.event)
      note(hip_.hipEventDestroy(entry.event));
  for (auto marker : markers)
    note(hip_.hipEventDestroy(marker));
  for (auto &[handle, event] : events)
    if (event.owned)
      note(hip_.hipEventDestroy(reinterpret_cast<api::hipEvent_t>(handle)));
  for (uint64_t handle : streams)
    note(hip_.hipStreamDestroy(reinterpret_cast<api::hipStream_t>(handle)));
  for (auto &[handle, module] : modules)
    note(hip_.hipModuleUnload(module.handle));
  for (auto &[address, allocation] : memory)
    note(hip_.hipFree(pointer(allocation.base)));
  return first;
}

void Device::reset(bool whole) {
  Current current(*this, "reset");
  auto error = releaseEverything();
  if (whole)
    check("reset", "hipDeviceReset", hip_.hipDeviceReset(), Code::DeviceLost);
  else
    check("reset", "freeing what was made here", error);
}

void Device::close() noexcept {
  if (closed_.exchange(true) || !library_->isOwn())
    return; // everything belongs to the parent of a forked process
  int previous = index_;
  if (hip_.hipGetDevice(&previous) != api::hipSuccess || hip_.hipSetDevice(index_) != api::hipSuccess)
    hip_.hipGetLastError(); // free what can be freed nevertheless
  releaseEverything();
  if (previous != index_ && hip_.hipSetDevice(previous) != api::hipSuccess)
    hip_.hipGetLastError();
}

// --- memory
// --------------------------------------------------------------------------------------------------------

uint64_t Device::memalloc(uint64_t size, uint64_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) || alignment > kMaximumAlignment)
    throw Failure(Code::InvalidArgument, text(where(__func__), ": alignment ", alignment,
                                              " is not a power of two between 1 and ", kMaximumAlignment));
  Current current(*this, __func__);
  uint64_t slack = alignment > kOwnAlignment ? alignment : 0;
  uint64_t whole;
  if (__builtin_add_overflow(std::max<uint64_t>(size, 1), slack, &whole) ||
      whole > properties_.totalGlobalMem)
    throw Failure(Code::OutOfMemory, text(where(__func__), ": ", size, " bytes asked for, the device has ",
                                          properties_.totalGlobalMem));
  void *base = nullptr;
  auto error = hip_.hipMalloc(&base, whole);
  if (error != api::hipSuccess)
    library_->check(text(where(__func__), ": ", size, " bytes"), "hipMalloc", error, Code::OutOfMemory);
  uint64_t start = reinterpret_cast<uint64_t>(base);
  uint64_t address = (start + alignment - 1) & ~(alignment - 1);
  try {
    std::lock_guard lock(tables_);
    memory_.emplace(address, Allocation{start, size});
  } catch (...) {
    hip_.hipFree(base);
    throw;
  }
  return address;
}

void Device::memfree(uint64_t address) {
  Current current(*this, __func__);
  if (!address)
    throw Failure(Code::InvalidPointer, where(__func__) + ": addr is NULL");
  decltype(memory_)::node_type node;
  {
    std::lock_guard lock(tables_);
    node = memory_.extract(address);
    if (!node) {
      auto next = memory_.upper_bound(address);
      if (next != memory_.begin()) {
        auto [start, allocation] = *std::prev(next);
        if (address - start < allocation.size)
          throw Failure(Code::InvalidPointer,
                        text(where(__func__), ": addr ", hex(address), " lies ", address - start,
                             " bytes inside the allocation at ", hex(start), "; free that address"));
      }
    }
  }
  if (!node)
    throw Failure(Code::InvalidPointer, text(where(__func__), ": addr ", hex(address),
                                             " was not allocated by this device, or was freed before"));
  // hipFree itself waits for the work in flight.
  auto error = hip_.hipFree(pointer(node.mapped().base));
  if (error != api::hipSuccess) {
    std::lock_guard lock(tables_);
    memory_.insert(std::move(node)); // for a reset to free
  }
  check(__func__, "hipFree", error, Code::InvalidPointer);
  reapAll();
}

void Device::checkRange(const char *call, const char *argument, uint64_t address, uint64_t size) {
  uint64_t end;
  if (__builtin_add_overflow(address, size, &end))
    throw Failure(Code::InvalidPointer, text(where(call), ": ", argument, " ", hex(address), " plus ", size,
                                             " bytes leaves the address space"));
  if (!address) {
    if (size == 0) // an empty torch tensor has no memory and no address
      return;
    throw Failure(Code::InvalidPointer, text(where(call), ": ", argument, " is NULL"));
  }
  {
    std::lock_guard lock(tables_);
    auto next = memory_.upper_bound(address);
    if (next != memory_.begin()) {
      auto [start, allocation] = *std::prev(next);
      uint64_t limit = start + allocation.size;
      if (end <= limit)
        return;
      if (address < limit || (address == start && !allocation.size))
        throw Failure(Code::InvalidPointer,
                      text(where(call), ": ", argument, " ", hex(address), " plus ", size, " bytes ends ",
                           end - limit, " bytes behind the allocation of ", allocation.size, " bytes at ",
                           hex(start)));
    }
  }
  checkForeign(call, argument, address, size);
}

void Device::checkForeign(const char *call, const char *argument, uint64_t address, uint64_t size) const {
  // Memory that others in the process allocated, such as torch. HIP finds its allocation from any of its
  // addresses.
  for (uint64_t at : {address, address + (size ? size - 1 : 0)}) {
    api::hipPointerAttribute_t found{};
    auto error = hip_.hipPointerGetAttributes(&found, pointer(at));
    if (error != api::hipSuccess)
      throw Failure(Code::InvalidPointer,
                    text(where(call), ": ", argument, " ", hex(address), " (", size,
                         " bytes) is not memory of this device, or was freed: hipPointerGetAttributes says ",
                         library_->describe(error)));
    if (found.type != api::hipMemoryTypeDevice && found.type != api::hipMemoryTypeManaged &&
        found.type != api::hipMemoryTypeUnified)
      throw Failure(Code::InvalidPointer, text(where(call), ": ", argument, " ", hex(address), " (", size,
                                               " bytes) is not memory of this device, or was freed"));
    if (found.type == api::hipMemoryTypeDevice && found.device != index_)
      throw Failure(Code::InvalidPointer, text(where(call), ": ", argument, " ", hex(address),
                                               " is memory of device ", found.device));
  }
}

} // namespace tpk::hip
