// All cores of a chip with a description. Each is a thread that runs its part of a launch, while the
// launching thread simulates the time that the chip takes.
#pragma once

#include "intrinsics.h"
#include "trace.h"

#include "../cores.h"

namespace vnpu {

class Processor {
public:
  // The processor of this process; nullptr on a chip without a description.
  static Processor *instance() { return instance_; }
  // Throws std::invalid_argument for a wrong description, and std::runtime_error without memory.
  static void start(const char *description);

  const ChipDescription &chip() const { return chip_; }
  // Runs a grid of a queue to its end, after launches before it. Throws Failure.
  void run(const Kernel &kernel, const void *args, const int32_t (&grid)[3], uint32_t queue);
  // Ends the chip if a core has computed for too long without a command. Call it periodically.
  void watch(uint32_t milliseconds);
  // Called by the handler of a memory fault: ends the kernel if its thread plays a core and the address is
  // one that core code must not use. Returns otherwise.
  void onFault(uint64_t address);

private:
  struct Launch {
    const Kernel &kernel;
    const void *args;
    const int32_t (&grid)[3];
    int64_t total, parts;
    std::vector<std::string> failures; // by core
    std::vector<vnpu_status> statuses;
    uint32_t running = 0;

    int64_t begin(int64_t core) const { return total / parts * core + std::min(core, total % parts); }
  };
  struct Player {
    explicit Player(const ChipDescription &chip) : core(chip) {}
    NpuCore core;
    std::atomic<bool> stopped{false};
    bool plays = false; // in the launch
    pthread_t thread{};
    Activity running; // no name: idle
    uint64_t seenProgress = 0, seenNanoseconds = 0;
  };

  explicit Processor(ChipDescription chip);
  double needed(int64_t parts) const;
  [[noreturn]] void work(uint32_t index);
  void play(Launch &launch, uint32_t index);

  static Processor *instance_;
  const ChipDescription chip_;
  Trace trace_;
  tpk::Denormals denormals_;
  std::vector<std::unique_ptr<Player>> players_;
  std::mutex launches_; // held while one runs
  std::mutex mutex_;    // of what follows, and of players' `plays` and `running`
  std::condition_variable arrived_, finished_;
  Launch *launch_ = nullptr;
};

} // namespace vnpu
