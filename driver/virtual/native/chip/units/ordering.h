// Which commands of a core are ordered, and hazards: accesses of the same bytes, of which one writes, by
// commands that nothing orders. It needs no time, so it finds the same hazards in every run.
#pragma once

#include "footprint.h"
#include "window.h"

#include <deque>

namespace vnpu {

inline constexpr uint32_t CoreUnit = 0, MatrixUnit = 1, FirstChannel = 2;

struct Access {
  Footprint bytes;
  bool writes = false;
};

// What an error says about a command.
struct CommandText {
  const char *action = ""; // "transfer", "product"
  MemoryIndex source = 0, target = 0;
  bool routed = false; // between these two
  int32_t line = 0;
};

class Ordering {
public:
  Ordering(const ChipDescription &chip, const Window &window) : chip_(chip), window_(window) {}

  // Forgets everything: all units are idle.
  void reset();
  // Adds a command of a unit, and returns its number. Throws Mistake for a hazard.
  int64_t issue(uint32_t unit, const CommandText &text, std::vector<Access> accesses);
  // Throws Mistake if the unit has not issued that command.
  void wait(uint32_t unit, int64_t token);
  void order(uint32_t unit, uint32_t other, int64_t token);
  // An access of the core, now. Throws Mistake for a hazard.
  void touch(const CommandText &text, const Access &access);

private:
  // For each unit, the number of its last command that is ordered before.
  using Clock = std::array<int64_t, 2 + MostChannels>;
  struct Command {
    int64_t number;
    Clock clock;
    CommandText text;
    std::vector<Access> accesses;
  };

  const Command *find(uint32_t unit, int64_t token) const;
  void requireIssued(const char *call, uint32_t unit, int64_t token) const;
  void check(const Clock &clock, uint32_t unit, int64_t number, const CommandText &text,
             const std::vector<Access> &accesses) const;
  std::string describe(uint32_t unit, int64_t number, const CommandText &text) const;
  [[noreturn]] void hazard(const std::string &earlier, const Access &first, const std::string &later,
                           const Access &second) const;

  const ChipDescription &chip_;
  const Window &window_;
  Clock issued_{}, core_{};                                // `core_`: what the core has waited for
  std::array<Clock, 2 + MostChannels> units_{};            // what the unit's next command is ordered after
  std::array<std::deque<Command>, 2 + MostChannels> live_; // those that the core has not waited for
};

} // namespace vnpu
