// One HIP device behind the kit's hooks. This code does not use Python: every call may wait, from any thread,
// without the GIL.
//
// Handles of streams and events are HIP's own, so that they can be shared with others in the process. Modules
// and functions have numbers of this device's, which are never reused.
#pragma once

#include "keep.h"
#include "library.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tpk::hip {

/// The position of an explicit argument in the block, in bytes.
struct ArgumentPlace {
  uint64_t offset;
  uint64_t size;
};

/// The properties of a kernel that a launch needs, from its code object.
struct KernelFacts {
  uint32_t threads;
  uint32_t dynamicLds;
  uint64_t requiredBytes; // least size of an argument block; the rest up to blockSize is zero
  std::vector<ArgumentPlace> arguments;
};

struct Function {
  api::hipFunction_t handle;
  std::string name;
  KernelFacts facts;
  uint64_t blockSize; // bytes of the argument block that the kernel reads
};

class Device {
public:
  Device(LibraryPointer library, int index);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// The prefix of messages: the device and the hook.
  std::string where(const char *call) const;
  const api::hipDeviceProp_tR0600 &properties() const { return properties_; }

  uint64_t memalloc(uint64_t size, uint64_t alignment);
  void memfree(uint64_t address);
  void memcpy_htod(uint64_t dst, const void *src, uint64_t size, uint64_t stream, Keep keep);
  void memcpy_dtoh(void *dst, uint64_t src, uint64_t size, uint64_t stream, Keep keep);
  void memcpy_dtod(uint64_t dst, uint64_t src, uint64_t size, uint64_t stream);
  void memset(uint64_t dst, uint8_t value, uint64_t size, uint64_t stream);

  uint64_t create_stream();
  void destroy_stream(uint64_t stream);
  void synchronize(uint64_t stream);
  void synchronize_all();

  uint64_t create_event();
  /// Lets the hooks use an event that was created elsewhere. destroy_event ends that, and does not destroy
  /// the event.
  void adopt_event(uint64_t event);
  void destroy_event(uint64_t event);
  void record_event(uint64_t event, uint64_t stream);
  void wait_event(uint64_t stream, uint64_t event);
  void synchronize_event(uint64_t event);
  double elapsed_time(uint64_t start, uint64_t end);

  uint64_t load_module(const void *binary, uint64_t size, const std::string &name);
  void unload_module(uint64_t module);
  uint64_t get_function(uint64_t module, const std::string &name, KernelFacts facts);
  void launch(uint64_t function, uint32_t x, uint32_t y, uint32_t z, uint64_t stream, const void *args,
              uint64_t size);
  /// The same; a cooperative launch if requested.
  void start(uint64_t stream, uint64_t function, const uint32_t (&grid)[3], const void *args, uint64_t size,
             bool cooperative);

  /// Frees everything that this device created; `whole`: also lets HIP reset the device for the whole
  /// process.
  void reset(bool whole);
  /// Frees everything and refuses later calls. Does nothing in a forked process.
  void close() noexcept;

private:
  struct Allocation {
    uint64_t base; // what hipMalloc returned
    uint64_t size;
  };
  struct Event {
    bool owned;
    bool recorded;
  };
  struct Module {
    api::hipModule_t handle;
    std::string name;
    std::string image; // HIP may read it as long as the module is loaded
    std::map<std::string, uint64_t> functions;
  };
  struct Pending {
    api::hipEvent_t event; // null: known only when all work has ended
    Keep keep;
  };
  /// Makes this device current for the calling thread, and restores the previous one afterwards, because
  /// others use it.
  class Current;

  void check(const char *call, const char *function, api::hipError_t error,
             Code otherwise = Code::DeviceError) const;

  void checkRange(const char *call, const char *argument, uint64_t address, uint64_t size);
  void checkForeign(const char *call, const char *argument, uint64_t address, uint64_t size) const;
  api::hipStream_t stream(const char *call, uint64_t handle);
  Event event(const char *call, uint64_t handle);

  template <typename Copy>
  void copy(const char *call, const char *function, uint64_t size, uint64_t streamHandle, Keep keep,
            Copy start);
  api::hipEvent_t takeMarker(const char *call);
  void reap(size_t limit);
  void reapAll();
  void reapUnmarked();

  api::hipError_t releaseEverything();

  LibraryPointer library_;
  const api::Functions &hip_;
  int index_;
  api::hipDeviceProp_tR0600 properties_;
  std::atomic<bool> closed_{false};

  std::mutex tables_;
  std::map<uint64_t, Allocation> memory_;
  std::unordered_set<uint64_t> streams_;
  std::unordered_map<uint64_t, Event> events_;
  std::unordered_map<uint64_t, Module> modules_;
  std::unordered_map<uint64_t, std::shared_ptr<const Function>> functions_;
  uint64_t nextHandle_ = 1;

  std::mutex pendingMutex_;
  std::deque<Pending> pending_;          // copies whose host buffers may still be in use
  std::vector<api::hipEvent_t> markers_; // events that mark the ends of copies
};

} // namespace tpk::hip

/// `NativeLaunchEntry`; `context` is the Device.
extern "C" int32_t tpk_hip_launch(void *context, uint64_t stream, uint64_t function, uint32_t gridX,
                                  uint32_t gridY, uint32_t gridZ, const void *args, uint64_t argsSize,
                                  char *message, uint64_t messageSize);
/// The same for kernels whose programs wait for each other: all of them run concurrently, or the launch
/// fails.
extern "C" int32_t tpk_hip_launch_cooperative(void *context, uint64_t stream, uint64_t function,
                                              uint32_t gridX, uint32_t gridY, uint32_t gridZ,
                                              const void *args, uint64_t argsSize, char *message,
                                              uint64_t messageSize);
