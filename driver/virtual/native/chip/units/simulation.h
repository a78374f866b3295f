// The time that a launch takes by the chip's clock: a simulation of discrete events from the logs of its
// cores. docs/npu.md has the model.
#pragma once

#include "flows.h"
#include "log.h"

#include <queue>

namespace vnpu {

// What a unit did in a launch. Times are in cycles.
struct UnitTimes {
  double busy = 0;
  double bytes = 0;   // that its transfers moved
  double ordered = 0; // its next command waited for another unit
  double commands = 0;
  // Of the core: how long it waited for each unit's commands, and for room in their queues.
  std::array<double, 2 + MostChannels> waited{};
  double queued = 0;
};

// A command or a piece of work, for a trace.
struct Interval {
  uint32_t core, unit;
  int32_t line;
  double start, end, bytes;
  MemoryIndex source, target;
};

class Simulation {
public:
  // `logs` are those of the cores that take part, by core. `trace` gets at most `most` intervals; nullptr:
  // none.
  Simulation(const ChipDescription &chip, const std::vector<Log *> &logs,
             std::vector<Interval> *trace = nullptr, size_t most = 0);

  // Reads the logs to their ends. Returns the cycles until the last unit is idle.
  double run();
  const std::vector<std::vector<UnitTimes>> &times() const { return times_; } // by core and unit
  const std::vector<double> &memoryBytes() const { return memoryBytes_; }     // by memory

private:
  struct Gate {
    uint32_t other;
    int64_t token;
  };
  struct Pending {
    Record record;
    double issued;
    std::vector<Gate> gates;
  };
  struct Unit {
    std::deque<Pending> queue; // issued, not started
    std::vector<Gate> gates;   // of the next command
    bool busy = false;
    double free = 0, started = 0, lastCompletion = 0;
    int64_t issued = 0, completed = 0;
    Record running;
  };
  struct Core {
    Log *log = nullptr;
    enum State { Runs, Issues, WaitsForToken, WaitsForRoom, Ended } state = Ended;
    Record record; // that it is at, unless it runs
    double since = 0;
    std::vector<Unit> units;
  };
  struct Event {
    double time;
    uint64_t serial;
    enum Kind { Step, Begin, End, Complete } kind;
    uint32_t core, unit;
    bool operator<(const Event &other) const { // the earliest is on top
      return time != other.time ? time > other.time : serial > other.serial;
    }
  };

  void schedule(double time, Event::Kind kind, uint32_t core, uint32_t unit);
  void handle(const Event &event);
  void step(uint32_t core);
  bool take(uint32_t core);
  void tryStart(uint32_t core, uint32_t unit);
  void begin(uint32_t core, uint32_t unit);
  void end(uint32_t core, uint32_t unit);
  void complete(uint32_t core, uint32_t unit);
  void resume(uint32_t core);
  uint32_t room(uint32_t unit) const;
  void trace(const Interval &interval);

  const ChipDescription &chip_;
  std::vector<Core> cores_;
  std::vector<std::vector<UnitTimes>> times_;
  std::vector<double> memoryBytes_;
  std::vector<Interval> *trace_;
  size_t most_;
  Flows flows_;
  std::priority_queue<Event> events_;
  uint64_t serial_ = 0;
  double now_ = 0, last_ = 0;
};

} // namespace vnpu
