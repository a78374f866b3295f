#include "simulation.h"

#include <algorithm>
#include <cmath>

namespace vnpu {

Simulation::Simulation(const ChipDescription &chip, const std::vector<Log *> &logs,
                       std::vector<Interval> *trace, size_t most)
    : chip_(chip), cores_(logs.size()), times_(logs.size(), std::vector<UnitTimes>(chip.units())),
      memoryBytes_(chip.memories.size()), trace_(trace), most_(most), flows_(chip) {
  for (uint32_t core = 0; core < logs.size(); ++core) {
    cores_[core].log = logs[core];
    cores_[core].state = Core::Runs;
    cores_[core].units.resize(chip.units());
    schedule(0, Event::Step, core, 0);
  }
}

double Simulation::run() {
  for (;;) {
    const double flows = now_ + flows_.untilFirstEnds();
    if (events_.empty() && std::isinf(flows))
      return last_;
    const double next = events_.empty() ? flows : std::min(flows, events_.top().time);
    flows_.pass(next - now_);
    now_ = next;
    last_ = std::max(last_, now_);
    if (now_ == flows)
      for (const Flow &flow : flows_.takeEnded())
        end(flow.core, flow.unit);
    while (!events_.empty() && events_.top().time <= now_) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
    }
  }
}

void Simulation::schedule(double time, Event::Kind kind, uint32_t core, uint32_t unit) {
  events_.push({time, serial_++, kind, core, unit});
}

void Simulation::handle(const Event &event) {
  switch (event.kind) {
  case Event::Step:
    return step(event.core);
  case Event::Begin:
    return begin(event.core, event.unit);
  case Event::End:
    return end(event.core, event.unit);
  case Event::Complete:
    return complete(event.core, event.unit);
  }
}

uint32_t Simulation::room(uint32_t unit) const {
  return unit == 1 ? chip_.matrix.queue : chip_.engine(unit - 2).queue;
}

// Lets a core go on until it takes time or waits.
void Simulation::step(uint32_t index) {
  Core &core = cores_[index];
  if (core.state == Core::Issues) {
    Unit &unit = core.units[core.record.unit];
    unit.queue.push_back({core.record, now_, std::move(unit.gates)});
    unit.gates.clear();
    ++unit.issued;
    core.state = Core::Runs;
    tryStart(index, core.record.unit);
  }
  while (core.state == Core::Runs) {
    const Record *next = core.log->next();
    if (!next) {
      core.state = Core::Ended;
      return;
    }
    core.record = *next;
    if (!take(index))
      return;
  }
}

// Handles the record that a core is at. Returns whether the core can go on at once.
bool Simulation::take(uint32_t index) {
  Core &core = cores_[index];
  const Record &record = core.record;
  Unit &unit = core.units[record.unit];
  switch (record.kind) {
  case Record::Work:
    times_[index][0].busy += record.cycles;
    trace({index, 0, 0, now_, now_ + record.cycles, 0, 0, 0});
    schedule(now_ + record.cycles, Event::Step, index, 0);
    return false;
  case Record::Order:
    if (core.units[record.other].completed < record.token)
      unit.gates.push_back({record.other, record.token});
    return true;
  case Record::Wait:
    if (unit.completed >= record.token)
      return true;
    core.state = Core::WaitsForToken;
    core.since = now_;
    return false;
  case Record::Command:
    if (unit.issued - unit.completed >= int64_t(room(record.unit))) {
      core.state = Core::WaitsForRoom;
      core.since = now_;
      return false;
    }
    core.state = Core::Issues;
    times_[index][0].busy += chip_.issueCycles;
    schedule(now_ + chip_.issueCycles, Event::Step, index, 0);
    return false;
  }
  return true;
}

void Simulation::tryStart(uint32_t index, uint32_t number) {
  Core &core = cores_[index];
  Unit &unit = core.units[number];
  if (unit.busy || unit.queue.empty())
    return;
  for (const Gate &gate : unit.queue.front().gates)
    if (core.units[gate.other].completed < gate.token)
      return;
  const double ready = std::max(unit.free, unit.queue.front().issued);
  times_[index][number].ordered += now_ - ready;
  unit.running = unit.queue.front().record;
  unit.queue.pop_front();
  unit.busy = true;
  unit.started = now_;
  const bool moves = number != 1 && unit.running.bytes > 0;
  schedule(now_ + unit.running.cycles, moves ? Event::Begin : Event::End, index, number);
}

// A transfer begins to move bytes.
void Simulation::begin(uint32_t index, uint32_t number) {
  const Record &record = cores_[index].units[number].running;
  times_[index][number].bytes += record.bytes;
  memoryBytes_[record.source] += record.bytes;
  if (record.target != record.source)
    memoryBytes_[record.target] += record.bytes;
  flows_.add({index,
              number,
              {flows_.resource(index, record.source), flows_.resource(index, record.target)},
              chip_.engine(number - 2).bytesPerCycle,
              record.bytes});
}

// A unit is done with a command, and begins the next one. The results of a transfer take a while to arrive.
void Simulation::end(uint32_t index, uint32_t number) {
  Unit &unit = cores_[index].units[number];
  const Record &record = unit.running;
  UnitTimes &times = times_[index][number];
  times.busy += now_ - unit.started;
  ++times.commands;
  trace({index, number, record.line, unit.started, now_, number == 1 ? 0 : record.bytes, record.source,
         record.target});
  unit.busy = false;
  unit.free = now_;
  const double latency = number == 1 ? 0 : chip_.memories[record.source].latency;
  unit.lastCompletion = std::max(unit.lastCompletion, now_ + latency);
  schedule(unit.lastCompletion, Event::Complete, index, number);
  tryStart(index, number);
}

void Simulation::complete(uint32_t index, uint32_t number) {
  Core &core = cores_[index];
  ++core.units[number].completed;
  for (uint32_t other = 1; other < core.units.size(); ++other)
    tryStart(index, other);
  resume(index);
}

// Lets a core go on if what it waits for is there.
void Simulation::resume(uint32_t index) {
  Core &core = cores_[index];
  const Unit &unit = core.units[core.record.unit];
  UnitTimes &times = times_[index][0];
  if (core.state == Core::WaitsForToken && unit.completed >= core.record.token) {
    times.waited[core.record.unit] += now_ - core.since;
    core.state = Core::Runs;
    step(index);
  } else if (core.state == Core::WaitsForRoom &&
             unit.issued - unit.completed < int64_t(room(core.record.unit))) {
    times.queued += now_ - core.since;
    core.state = Core::Runs;
    if (take(index))
      step(index);
  }
}

void Simulation::trace(const Interval &interval) {
  if (trace_ && trace_->size() < most_)
    trace_->push_back(interval);
}

} // namespace vnpu
