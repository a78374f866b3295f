// A core of a chip with a description: its window, and the meaning of each intrinsic. Results are computed
// when a command is issued; the log says what it costs.
#pragma once

#include "log.h"
#include "ordering.h"

#include "tpk_npu.h"

#include <atomic>

namespace vnpu {

class NpuCore {
public:
  explicit NpuCore(const ChipDescription &chip) : chip_(chip), window_(chip), ordering_(chip, window_) {}

  Window &window() { return window_; }
  Log &log() { return log_; }
  // The line of the newest intrinsic that had one; 0: none.
  int32_t line() const { return line_; }
  // Counts what the watchdog takes for progress.
  uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  void begin();
  // While a profile is written: the bursts of global memory that the transfers of this launch have read, or
  // written.
  const Bursts &reached(bool written) const { return reached_[written]; }
  // Global memory's bytes from `address`. Throws Mistake, which begins with `what`, unless they are in one
  // allocation.
  static uint8_t *global(uint64_t address, uint64_t bytes, const std::string &what);
  // The same; nullptr unless they are in one allocation.
  static uint8_t *tryGlobal(uint64_t address, uint64_t bytes);

  // The intrinsics. They throw Mistake.
  int64_t transfer(int32_t channel, const tpk_npu_transfer &transfer, int32_t line);
  struct Indexed {
    int32_t channel;
    uint64_t local, base, offsets, mask;
    int64_t count;
    int32_t elementBytes, offsetBytes, scale;
    int64_t fill;
    int32_t line;
    bool gathers;
  };
  int64_t indexed(const Indexed &what);
  struct Product {
    uint64_t c, a, b;
    int32_t m, n, k;
    int64_t cStride, aStride, bStride;
    int32_t aType, bType, cType, flags, line;
  };
  int64_t product(const Product &what);
  void wait(int32_t unit, int64_t token);
  void order(int32_t unit, int32_t other, int64_t token);
  void touch(uint64_t address, int64_t bytes, int32_t line, bool writes);
  void work(int32_t kind, int64_t count);
  void works(const int64_t *parts, int64_t iterations);
  uint64_t load(uint64_t address, int32_t bytes, int32_t line);
  void store(uint64_t address, uint64_t value, int32_t bytes, int32_t line);
  uint64_t atomic(int32_t kind, int32_t type, uint64_t address, uint64_t value, uint64_t compare,
                  int32_t line);

private:
  struct Place {
    MemoryIndex memory = 0;
    uint8_t *data = nullptr; // of the address that was asked for
  };
  // Where the bytes of a footprint are; `address` is that of its first element.
  Place find(const Footprint &bytes, uint64_t address, const std::string &what) const;
  const EngineDescription &engine(int32_t channel, int32_t line, const char *call) const;
  void requireAligned(const Place &place, uint64_t address, uint64_t alignment,
                      const std::string &what) const;
  int64_t issue(uint32_t unit, const CommandText &text, std::vector<Access> accesses, double cycles,
                double bytes);
  uint8_t *element(uint64_t address, int32_t bytes, int32_t line, const char *action, bool reads,
                   bool writes);
  void seen(int32_t line) {
    if (line > 0)
      line_ = line;
    progress_.fetch_add(1, std::memory_order_relaxed);
  }

  const ChipDescription &chip_;
  Bursts reached_[2];
  Window window_;
  Ordering ordering_;
  Log log_;
  int32_t line_ = 0;
  std::atomic<uint64_t> progress_{0};
};

// " at line 7", or nothing.
std::string atLine(int32_t line);

} // namespace vnpu
