// The host CPU as a device: memory, streams, events and functions under integer handles. Does not use Python.
#pragma once

#include "allocator.h"
#include "events.h"
#include "keep.h"
#include "loss.h"
#include "pool.h"
#include "stream.h"

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tpk {

using FunctionPointer = std::shared_ptr<const Function>;
using StreamPointer = std::shared_ptr<Stream>;

// Stream 0 is the default stream: its work runs on the calling thread and has finished when the call returns.
// It is not ordered with other streams. Every member may be called from any thread. Hooks have the names that
// `tpk::bindHooks` binds.
class Host {
public:
  explicit Host(uint64_t memoryLimit);
  ~Host();
  Host(const Host &) = delete;
  Host &operator=(const Host &) = delete;

  uint64_t memalloc(uint64_t size, uint64_t alignment) { return memory_.allocate(size, alignment); }
  // Waits for all asynchronous work first, which may use the memory.
  void memfree(uint64_t address);
  Allocator::Usage usage() { return memory_.usage(); }
  std::optional<Allocator::Extent> allocationOf(uint64_t address) { return memory_.find(address); }
  // Why a kernel may not access this memory, as far as the devices of this process know; empty if they do not
  // know it.
  static std::string refusal(uint64_t address, uint64_t size);

  // `keep` keeps `source` or `target` alive if it is outside of this device's memory.
  void memcpy_htod(uint64_t target, const void *source, uint64_t size, uint64_t stream, Keep keep);
  void memcpy_dtoh(void *target, uint64_t source, uint64_t size, uint64_t stream, Keep keep);
  void memcpy_dtod(uint64_t target, uint64_t source, uint64_t size, uint64_t stream);
  void memset(uint64_t target, uint8_t value, uint64_t size, uint64_t stream);

  uint64_t create_stream();
  void destroy_stream(uint64_t stream);
  // Both wait, and throw the first failure of asynchronous work that has not been thrown yet.
  //
  // An interrupted thread stops waiting: in these functions, for an event, for memory to be freed, and for a
  // stream to be destroyed. When `Interrupted` is thrown, nothing that the thread has enqueued on streams
  // writes memory any more.
  void synchronize(uint64_t stream);
  void synchronize_all();

  uint64_t create_event();
  void destroy_event(uint64_t event);
  void record_event(uint64_t event, uint64_t stream);
  void wait_event(uint64_t stream, uint64_t event);
  void synchronize_event(uint64_t event);
  double elapsed_time(uint64_t start, uint64_t end);

  uint64_t addFunction(Function function);
  // The caller keeps the code in memory until it holds the only reference.
  FunctionPointer removeFunction(uint64_t function);
  // `args` is copied if the launch does not finish within the call.
  void launch(uint64_t function, uint32_t x, uint32_t y, uint32_t z, uint64_t stream, const void *args,
              uint64_t size);

  // Running and later launches end with DeviceLost and this reason, until `allowLaunches`.
  void failLaunches(std::string reason) { loss_.tell(std::move(reason)); }
  void allowLaunches() { loss_.clear(); }

  // Drops work that has not started, and waits for running work. Afterwards, all work runs on the calling
  // thread.
  void close();
  // Waits, then destroys every stream, event and function, and frees all memory.
  void reset();

  static void lockForFork();
  static void unlockAfterFork(bool child);

private:
  struct Event {
    RecordPointer latest;
  };

  void submit(const char *call, uint64_t stream, Stream::Work work,
              Stream::Kind kind = Stream::Kind::Ordinary);
  template <typename Wait> void interruptibly(Wait wait);
  StreamPointer stream(const char *call, uint64_t handle);
  RecordPointer latest(const char *call, uint64_t event);
  std::vector<StreamPointer> streams();
  void lockAll();
  void unlockAll(bool child);

  Allocator memory_;
  std::mutex tables_; // of the maps below; never held while work runs
  std::unordered_map<uint64_t, StreamPointer> streams_;
  std::unordered_map<uint64_t, Event> events_;
  std::unordered_map<uint64_t, FunctionPointer> functions_;
  uint64_t nextHandle_ = 1;
  std::atomic<bool> closed_{false};
  Loss loss_;
};

// Launches of the calling thread run only programs [begin, end) of their grid, until another call.
void choosePrograms(int64_t begin, int64_t end);

// Installs the handlers that let a forked child continue with its copy of every device.
void installForkHandlers();

} // namespace tpk

// The launch entry of the kit's devices; `context` is a tpk::Host.
extern "C" int32_t tpk_host_launch(void *context, uint64_t stream, uint64_t function, uint32_t gridX,
                                   uint32_t gridY, uint32_t gridZ, const void *args, uint64_t argsSize,
                                   char *message, uint64_t messageSize);
