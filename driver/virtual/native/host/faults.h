// Injected faults: which are armed, and what they do to which call.
#pragma once

#include "error.h"
#include "protocol.h"

#include <mutex>
#include <vector>

namespace vnpu {

class Faults {
public:
  struct Fault {
    enum Kind { FailAllocation, CorruptCopy, DropCopy, RefuseModule, SlowQueue, Hang, Die } kind;
    uint64_t left; // calls until it strikes, including this one
    uint32_t microseconds;
  };

  // Throws InvalidArgument whose message begins with `call`.
  static std::vector<Fault> parse(const char *call, const char *text);
  void arm(const std::vector<Fault> &faults);

  // Each counts one call, and says what should happen to it.
  bool allocationFails();
  bool moduleIsRefused();
  struct Orders {
    Misbehaviour misbehaviour = Misbehaviour::None;
    uint32_t delayMicroseconds = 0;
  };
  Orders command(bool copies);

private:
  bool strikes(Fault::Kind kind);

  std::mutex mutex_;
  std::vector<Fault> armed_;
};

} // namespace vnpu
