// Whether the user wants a thread back that runs programs or waits. This knows nothing of Python: the
// bindings say how to ask.
#pragma once

#include <atomic>

namespace tpk {

// Ends a wait or a launch of a thread that shall go back to its caller. The one who was asked has the reason.
struct Interrupted {};

// How often a thread asks while it waits. Asking may cost the GIL.
inline constexpr int InterruptMilliseconds = 50;

// Returns whether the calling thread shall stop. It may run anything that the user has registered for a
// signal.
using InterruptPoll = bool (*)();
inline std::atomic<InterruptPoll> interruptPoll{nullptr};

inline bool interrupted() {
  const InterruptPoll poll = interruptPoll.load(std::memory_order_relaxed);
  return poll && poll();
}

} // namespace tpk
