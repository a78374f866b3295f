// Everything that lives as long as a chip: its memory, queues, events and modules, under handles.
#pragma once

#include "channel.h"
#include "faults.h"
#include "memory.h"

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

namespace vnpu {

// Every member may be called from any thread, and throws Error: DeviceLost once the chip is lost, except for
// releasing, destroying and unloading.
class Session : public std::enable_shared_from_this<Session> {
public:
  // `handles` continues to count over resets, so that a handle is never reused.
  Session(const vnpu_config &config, const Range &range, std::atomic<uint64_t> &handles);

  Chip &chip() { return chip_; }
  Faults &faults() { return faults_; }

  uint64_t allocate(uint64_t size, uint64_t alignment);
  void release(uint64_t address);
  void copyIn(uint64_t queue, uint64_t target, const void *source, uint64_t size, Way way = Way::Host);
  void copyOut(uint64_t queue, void *target, uint64_t source, uint64_t size, Way way = Way::Host);
  void copyOnDevice(uint64_t queue, uint64_t target, uint64_t source, uint64_t size);
  void fill(uint64_t queue, uint64_t target, uint8_t value, uint64_t size);

  // Also of `peer` itself.
  void copyPeer(uint64_t queue, uint64_t target, Session &peer, uint64_t source, uint64_t size);
  void waitForPeer(uint64_t queue, const std::shared_ptr<Session> &peer, uint64_t event);
  uint64_t import(int descriptor, uint64_t size);
  // Lets launches fail; nullptr: no more.
  void failLaunches(const char *reason);

  uint64_t createQueue();
  void destroyQueue(uint64_t queue);
  void synchronize(uint64_t queue);
  void synchronizeAll();

  uint64_t createEvent();
  void destroyEvent(uint64_t event);
  void record(uint64_t event, uint64_t queue);
  void waitFor(uint64_t queue, uint64_t event);
  void synchronizeEvent(uint64_t event);
  double elapsedMilliseconds(uint64_t start, uint64_t end);

  uint64_t load(const void *binary, uint64_t size);
  void unload(uint64_t module);
  uint64_t symbol(uint64_t module, const char *name);
  void launch(uint64_t queue, uint64_t function, const uint32_t (&grid)[3], const void *args, uint64_t size);

  vnpu_counters_data counters() const;
  // Throws InvalidArgument if there is no such unit or memory.
  vnpu_unit_data unitCounters(uint32_t unit) const;
  vnpu_memory_data memoryCounters(uint32_t memory) const;

private:
  struct Event {
    uint32_t index;      // of its time stamp
    uint64_t number = 0; // of its newest record; 0: never recorded
    uint32_t queue = 0;
    uint64_t reached = 0; // the queue's completed count when the record is reached
  };
  struct Module {
    uint64_t number; // the chip's
    std::unordered_map<std::string, uint64_t> functions;
  };
  struct Function {
    uint64_t module, number;
    std::vector<uint32_t> pointers;
    std::string name;
  };

  uint32_t queueIndex(const char *call, uint64_t queue) const;
  std::vector<uint32_t> queueIndices() const;
  Event event(const char *call, uint64_t event) const;
  void drainAll();
  void tellAllocated(uint64_t address, uint64_t size);
  void endImport(uint64_t address);
  uint64_t linkQueue();
  std::string withAllocations(std::string sentence) const;
  void throwFailure(uint32_t queue);
  Command command(Kind kind, bool copies = false);
  void checkPointers(const Function &function, const void *args, uint64_t size) const;
  uint64_t addFunction(uint64_t module, const std::string &name, const std::vector<uint8_t> &answer);

  Chip chip_;
  Channel channel_;
  Memory memory_;
  Faults faults_;
  std::atomic<uint64_t> &handles_;

  mutable std::shared_mutex tables_; // protects the members below; never held while waiting for the chip
  std::unordered_map<uint64_t, uint32_t> queues_;
  std::vector<uint32_t> freeQueues_;
  uint32_t usedQueues_ = FirstQueue;
  std::unordered_map<uint64_t, Event> events_;
  std::vector<uint32_t> freeEvents_;
  uint32_t usedEvents_ = 0;
  std::atomic<uint64_t> records_{0};
  std::unordered_map<uint64_t, Module> modules_;
  std::unordered_map<uint64_t, std::shared_ptr<const Function>> functions_;
  std::unordered_map<uint64_t, uint64_t> imports_; // bytes by address
  std::mutex link_;                                // protects what follows
  uint64_t linkQueue_ = 0;
};

} // namespace vnpu
