// Interruption of threads that run programs or wait. This code does not use Python: the bindings install the
// poll function.
#pragma once

#include <atomic>

namespace tpk {

// Ends a wait or a launch, so that the thread returns to its caller. The poll function knows the reason.
struct Interrupted {};

// How often a waiting thread polls. Polling may need the GIL.
inline constexpr int InterruptMilliseconds = 50;

// Returns whether the calling thread should stop. It may run any signal handler that the user has installed.
using InterruptPoll = bool (*)();
inline std::atomic<InterruptPoll> interruptPoll{nullptr};

inline bool interrupted() {
  const InterruptPoll poll = interruptPoll.load(std::memory_order_relaxed);
  return poll && poll();
}

} // namespace tpk
