// What a launch needs of a device of OpenCL: its memory, streams and kernels by number, and OpenCL's
// functions by address. Python makes and registers them; launches find them here without the GIL.
#pragma once

#include "tpk_abi.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace tpk::opencl {

/// The one exception type of the native parts.
struct Failure : std::runtime_error {
  Failure(Code code, const std::string &text) : std::runtime_error(text), code(code) {}
  Code code;
};

using Handle = void *;

/// OpenCL's functions that launches call, by the addresses that the loader has them at, and what its results
/// mean: the kit's code and OpenCL's name.
struct Functions {
  std::unordered_map<int32_t, std::pair<Code, std::string>> meanings;
  Handle (*clCreateBuffer)(Handle, uint64_t, size_t, void *, int32_t *);
  int32_t (*clReleaseMemObject)(Handle);
  int32_t (*clReleaseKernel)(Handle);
  int32_t (*clSetKernelArg)(Handle, uint32_t, size_t, const void *);
  int32_t (*clSetKernelExecInfo)(Handle, uint32_t, size_t, const void *);
  int32_t (*clEnqueueNDRangeKernel)(Handle, Handle, uint32_t, const size_t *, const size_t *, const size_t *,
                                    uint32_t, const Handle *, Handle *);
  int32_t (*clFlush)(Handle);
};

/// An allocation: `start` is what OpenCL knows, from which the address is aligned, and the number that a
/// launch of buffers counts its offset from. `buffer` is null where memory is shared with the host.
struct Allocation {
  uint64_t size;
  uint64_t start;
  Handle buffer;
  uint64_t whole; // bytes that it takes
};

/// The allocations of a device by address. The version changes with each change.
class Memory {
public:
  void add(uint64_t address, Allocation allocation);
  /// Forgets the allocation at an address; false if none begins there.
  bool remove(uint64_t address, Allocation *removed);
  /// The allocation that `size` bytes from an address belong to. Throws InvalidPointer, with the call.
  Allocation find(uint64_t address, uint64_t size, const std::string &call) const;
  std::vector<std::pair<uint64_t, Allocation>> all() const;
  std::vector<std::pair<uint64_t, Allocation>> clear();
  uint64_t version() const { return version_.load(); }

private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, Allocation> allocations_;
  std::atomic<uint64_t> version_{0};
};

/// A kernel of a module. Its arguments belong to it, so only one launch at a time sets them.
struct Kernel {
  std::shared_ptr<const Functions> functions;
  Handle handle;
  std::string name;
  std::vector<uint64_t> pointers; // offsets in the argument block
  uint64_t stride;                // bytes of scratch of a work-group
  uint64_t largestBlock;          // bytes of arguments
  bool canFail;                   // whether it may write a failure, which the next wait must look for
  bool buffers;                   // whether pointers are arguments of their own
  uint64_t workItems;             // of a work-group
  uint64_t localBytes;            // scratch of a work-group in local memory
  uint64_t memoryVersion = ~uint64_t(0);
  std::mutex mutex;
  ~Kernel() { functions->clReleaseKernel(handle); }
};

/// The queue of a stream, with its scratch, which grows. Python closes it: nothing is launched afterwards.
struct Queue {
  std::shared_ptr<const Functions> functions;
  Handle handle;
  Handle status;
  Handle scratch = nullptr;
  uint64_t scratchBytes = 0;
  std::atomic<bool> mayHaveFailed{false};
  bool closed = false;
  std::mutex mutex;
  /// Whether a kernel that can fail was launched since the last call.
  bool takeFailure() { return mayHaveFailed.exchange(false); }
  void close();
};

class Device {
public:
  Device(std::shared_ptr<const Functions> functions, Handle context, std::string name, uint64_t units)
      : functions_(std::move(functions)), context_(context), name_(std::move(name)), units_(units) {}

  Memory memory;
  /// The context of buffers that launches make, after a reset.
  void setContext(uint64_t context) { context_ = reinterpret_cast<Handle>(context); }
  void addStream(uint64_t handle, std::shared_ptr<Queue> queue);
  void removeStream(uint64_t handle);
  void addFunction(uint64_t handle, std::shared_ptr<Kernel> kernel);
  void removeFunction(uint64_t handle);
  /// Runs a kernel for every program of a grid. `args` is copied. Throws Failure.
  void launch(uint64_t stream, uint64_t function, const uint32_t (&grid)[3], const void *args, uint64_t size);
  const std::string &name() const { return name_; }

private:
  void setArguments(Kernel &kernel, Queue &queue, const std::vector<char> &block, uint64_t groups,
                    int64_t programs, const uint32_t (&grid)[3]);
  void setMemory(Kernel &kernel);
  Handle create(uint64_t flags, size_t size, void *data, const Kernel &kernel, const char *what);
  void check(int32_t code, const Kernel &kernel, const char *what) const;

  std::shared_ptr<const Functions> functions_;
  std::atomic<Handle> context_;
  std::string name_;
  uint64_t units_;
  std::shared_mutex tables_;
  std::unordered_map<uint64_t, std::shared_ptr<Queue>> queues_;
  std::unordered_map<uint64_t, std::shared_ptr<Kernel>> kernels_;
};

} // namespace tpk::opencl

extern "C" int32_t tpk_opencl_launch(void *context, uint64_t stream, uint64_t function, uint32_t gridX,
                                     uint32_t gridY, uint32_t gridZ, const void *args, uint64_t argsSize,
                                     char *message, uint64_t messageSize);
