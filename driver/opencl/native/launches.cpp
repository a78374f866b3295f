#include "launches.h"

#include "grid.h"
#include "text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tpk::opencl {
namespace {

constexpr uint64_t kReadWrite = 1, kReadOnlyCopy = 4 | 32;
constexpr uint32_t kSvmPointers = 0x11B6;
constexpr uint32_t kFirstBuffer = 8; // the position of the first pointer argument of a launch of buffers

} // namespace

// --- memory
// --------------------------------------------------------------------------------------------------------

void Memory::add(uint64_t address, Allocation allocation) {
  std::unique_lock lock(mutex_);
  allocations_[address] = allocation;
  ++version_;
}

bool Memory::remove(uint64_t address, Allocation *removed) {
  std::unique_lock lock(mutex_);
  auto found = allocations_.find(address);
  if (found == allocations_.end())
    return false;
  *removed = found->second;
  allocations_.erase(found);
  ++version_;
  return true;
}

Allocation Memory::find(uint64_t address, uint64_t size, const std::string &call) const {
  std::shared_lock lock(mutex_);
  auto next = allocations_.upper_bound(address);
  if (!address || next == allocations_.begin() ||
      address - std::prev(next)->first > std::prev(next)->second.size)
    throw Failure(Code::InvalidPointer, text(call, ": ", hex(address), " is not in memory of the device"));
  auto &[start, allocation] = *std::prev(next);
  if (size > allocation.size - (address - start))
    throw Failure(Code::InvalidPointer,
                  text(call, ": ", size, " bytes from ", hex(address), " exceed the allocation of ",
                       allocation.size, " bytes at ", hex(start)));
  return allocation;
}

std::vector<std::pair<uint64_t, Allocation>> Memory::all() const {
  std::shared_lock lock(mutex_);
  return {allocations_.begin(), allocations_.end()};
}

std::vector<std::pair<uint64_t, Allocation>> Memory::clear() {
  std::unique_lock lock(mutex_);
  std::vector<std::pair<uint64_t, Allocation>> found(allocations_.begin(), allocations_.end());
  allocations_.clear();
  ++version_;
  return found;
}

// --- streams and functions
// ---------------------------------------------------------------------------------

void Queue::close() {
  std::lock_guard lock(mutex);
  closed = true;
  if (scratch)
    functions->clReleaseMemObject(scratch);
  scratch = nullptr;
}

void Device::addStream(uint64_t handle, std::shared_ptr<Queue> queue) {
  std::unique_lock lock(tables_);
  queues_[handle] = std::move(queue);
}

void Device::removeStream(uint64_t handle) {
  std::unique_lock lock(tables_);
  queues_.erase(handle);
}

void Device::addFunction(uint64_t handle, std::shared_ptr<Kernel> kernel) {
  std::unique_lock lock(tables_);
  kernels_[handle] = std::move(kernel);
}

void Device::removeFunction(uint64_t handle) {
  std::unique_lock lock(tables_);
  kernels_.erase(handle);
}

// --- launches
// ------------------------------------------------------------------------------------------------------

void Device::check(int32_t code, const Kernel &kernel, const char *what) const {
  if (code == 0) [[likely]]
    return;
  auto found = functions_->meanings.find(code);
  auto [kind, name] =
      found != functions_->meanings.end() ? found->second : std::pair(Code::DeviceError, text("code ", code));
  throw Failure(kind,
                text("OpenCL: launching '", kernel.name, "' on ", name_, ": ", what, " failed: ", name));
}

Handle Device::create(uint64_t flags, size_t size, void *data, const Kernel &kernel, const char *what) {
  int32_t code = 0;
  Handle made = functions_->clCreateBuffer(context_, flags, size, data, &code);
  check(code ? code : made ? 0 : -4, kernel, what);
  return made;
}

void Device::setMemory(Kernel &kernel) {
  uint64_t version = memory.version();
  if (kernel.memoryVersion == version)
    return;
  std::vector<uint64_t> starts;
  for (auto &[address, allocation] : memory.all())
    starts.push_back(allocation.start);
  if (!starts.empty())
    check(functions_->clSetKernelExecInfo(kernel.handle, kSvmPointers, starts.size() * sizeof(uint64_t),
                                          starts.data()),
          kernel, "naming the memory");
  kernel.memoryVersion = version;
}

void Device::setArguments(Kernel &kernel, Queue &queue, const std::vector<char> &block, uint64_t groups,
                          int64_t programs, const uint32_t (&grid)[3]) {
  uint64_t needed = groups * kernel.stride;
  if (needed > queue.scratchBytes) {
    Handle larger = create(kReadWrite, needed, nullptr, kernel, "allocating scratch");
    if (queue.scratch)
      functions_->clReleaseMemObject(queue.scratch); // kernels on the queue keep it until they have run
    queue.scratch = larger;
    queue.scratchBytes = needed;
  }
  uint32_t position = 1;
  auto set = [&](const auto &value) {
    check(functions_->clSetKernelArg(kernel.handle, position++, sizeof value, &value), kernel, "an argument");
  };
  if (kernel.localBytes)
    check(functions_->clSetKernelArg(kernel.handle, position++, kernel.localBytes, nullptr), kernel,
          "local memory");
  else
    set(needed ? queue.scratch : Handle(nullptr));
  set(int64_t(0));
  set(programs);
  for (uint32_t count : grid)
    set(int32_t(count));
  set(queue.status);
  if (!kernel.buffers)
    return setMemory(kernel);
  for (uint64_t offset : kernel.pointers) {
    uint64_t address;
    std::memcpy(&address, block.data() + offset, sizeof address);
    set(address ? memory.find(address, 0, kernel.name).buffer : Handle(nullptr));
  }
}

void Device::launch(uint64_t streamHandle, uint64_t function, const uint32_t (&grid)[3], const void *args,
                    uint64_t size) {
  std::shared_ptr<Kernel> kernel;
  std::shared_ptr<Queue> queue;
  {
    std::shared_lock lock(tables_);
    if (auto found = kernels_.find(function); found != kernels_.end())
      kernel = found->second;
    if (auto found = queues_.find(streamHandle); found != queues_.end())
      queue = found->second;
  }
  auto refuse = [&](const std::string &why) {
    throw Failure(Code::LaunchError, text("launch on ", name_, ": ", why));
  };
  if (!kernel)
    refuse(text("there is no function ", function, ": it was unloaded, or never found"));
  if (!queue)
    refuse(text("there is no stream ", streamHandle, ": it was destroyed, or never created"));
  int64_t programs = countPrograms("launch", kernel->name, grid, refuse);
  std::vector<char> block(std::max<uint64_t>({size, 1, kernel->largestBlock}));
  if (size)
    std::memcpy(block.data(), args, size);
  std::vector<char> offsets;
  if (kernel->buffers)
    offsets = block;
  for (uint64_t offset : kernel->pointers) {
    uint64_t address;
    std::memcpy(&address, block.data() + offset, sizeof address);
    if (!address)
      continue;
    auto found = memory.find(address, 0, text("launch of ", kernel->name, " on ", name_));
    address -= found.start;
    if (kernel->buffers)
      std::memcpy(offsets.data() + offset, &address, sizeof address);
  }
  if (!programs)
    return;
  size_t groups = std::min<uint64_t>(programs, units_), local = kernel->workItems, items = groups * local;
  auto &sent = kernel->buffers ? offsets : block;
  Handle arguments = create(kReadOnlyCopy, sent.size(), sent.data(), *kernel, "copying the arguments");
  try {
    std::scoped_lock lock(queue->mutex, kernel->mutex);
    if (queue->closed)
      refuse(text("the stream ", streamHandle, " was destroyed"));
    check(functions_->clSetKernelArg(kernel->handle, 0, sizeof arguments, &arguments), *kernel,
          "an argument");
    setArguments(*kernel, *queue, block, groups, programs, grid);
    check(functions_->clEnqueueNDRangeKernel(queue->handle, kernel->handle, 1, nullptr, &items, &local, 0,
                                             nullptr, nullptr),
          *kernel, "enqueueing");
    if (kernel->canFail)
      queue->mayHaveFailed = true;
    functions_->clFlush(queue->handle);
  } catch (...) {
    functions_->clReleaseMemObject(arguments);
    throw;
  }
  functions_->clReleaseMemObject(arguments); // the kernel keeps it until it has run
}

} // namespace tpk::opencl

int32_t tpk_opencl_launch(void *context, uint64_t stream, uint64_t function, uint32_t gridX, uint32_t gridY,
                          uint32_t gridZ, const void *args, uint64_t argsSize, char *message,
                          uint64_t messageSize) {
  using namespace tpk;
  auto report = [&](Code code, const char *what) {
    if (message && messageSize)
      std::snprintf(message, messageSize, "%s", what);
    return int32_t(code);
  };
  try {
    const uint32_t grid[3] = {gridX, gridY, gridZ};
    static_cast<opencl::Device *>(context)->launch(stream, function, grid, args, argsSize);
    return 0;
  } catch (const opencl::Failure &failure) {
    return report(launchCode(failure.code), failure.what());
  } catch (const std::bad_alloc &) {
    return report(Code::OutOfMemory, "OpenCL: launch: the process is out of memory");
  } catch (const std::exception &error) {
    return report(Code::LaunchError, error.what());
  }
}
