// The cores: threads that run the programs of launches.
#pragma once

#include "chip.h"

#include "../../../host/native/float_environment.h"
#include "../../../host/native/services.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <vector>

namespace vnpu {

struct Kernel {
  tpk::KernelEntry entry;
  uint64_t scratchBytes, clearedBytes; // of which the first `clearedBytes` are zero before programs run
  std::string name;
};

class Cores {
public:
  static Cores &instance();
  // Throws std::system_error, and std::invalid_argument for invalid settings.
  void start(uint32_t count, uint64_t scratchpadBytes);
  // Runs a grid to its end. Throws Failure.
  void run(const Kernel &kernel, const void *args, const int32_t (&grid)[3]);
  // Ends the chip if a program has taken too long. Call it periodically.
  void watch(uint32_t milliseconds);

private:
  struct Launch {
    Launch(const Kernel &kernel, const void *args, const int32_t (&counts)[3])
        : kernel(kernel), args(args), grid{counts[0], counts[1], counts[2]},
          total(int64_t(grid[0]) * grid[1] * grid[2]) {}

    const Kernel &kernel;
    const void *args;
    const int32_t grid[3];
    const int64_t total;
    int64_t next = 0, chunk = 1;
    uint32_t running = 0;
    int64_t failedBegin = 0;
    std::string failure;
    vnpu_status status = VNPU_OK;
    std::condition_variable finished;
  };
  struct Core {
    void *scratchpad = nullptr;
    pthread_t thread;
    bool lent = false;   // to the thread of a queue, which runs programs itself
    uint64_t serial = 0; // counts chunks
    Activity running;    // no name: idle
    // For the watchdog: the chunk that it has seen, and the core's time then.
    uint64_t seenSerial = 0;
    uint64_t seenNanoseconds = 0;
  };

  [[noreturn]] void work(Core &core);
  Core *borrow();
  void runChunk(Launch &launch, Core &core, std::unique_lock<std::mutex> &lock);
  void drop(Launch &launch);

  uint64_t scratchpadBytes_ = 0;
  tpk::Denormals denormals_ = tpk::Denormals::Keep;
  std::vector<std::unique_ptr<Core>> cores_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Launch *> waiting_; // launches with programs that no core has taken
  size_t turn_ = 0;               // whose programs are next: every launch gets its share
};

} // namespace vnpu
