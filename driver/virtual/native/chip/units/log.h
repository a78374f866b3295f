// What a core did, in order, for the simulation of time. The core writes it, the simulation reads it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace vnpu {

struct Record {
  enum Kind : uint8_t {
    Work,    // the core is busy for `cycles`
    Command, // a unit gets a command
    Wait,    // the core waits for command `token` of `unit`
    Order,   // later commands of `unit` wait for command `token` of `other`
  } kind;
  uint8_t unit = 0, other = 0;
  uint8_t source = 0, target = 0; // memories of a transfer
  int32_t line = 0;
  double cycles = 0; // of work; of a command, besides moving `bytes`
  int64_t token = 0;
  double bytes = 0; // that a transfer moves, in whole bursts
};

// Holds a limited number of records: a core that is far ahead of the simulation waits.
class Log {
public:
  // For the core.
  void begin();
  void work(double cycles) {
    if (!open_.empty() && open_.back().kind == Record::Work)
      open_.back().cycles += cycles;
    else
      add({.kind = Record::Work, .cycles = cycles});
  }
  void add(const Record &record) {
    if (open_.size() == ChunkRecords)
      pass();
    open_.push_back(record);
  }
  void end();

  // For the simulation: the next record, once it is there; nullptr at the end.
  const Record *next();

private:
  static constexpr size_t ChunkRecords = 4096, MostChunks = 64;
  void pass();

  std::vector<Record> open_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Record>> chunks_;
  bool ended_ = true;
  std::vector<Record> read_;
  size_t at_ = 0;
};

} // namespace vnpu
