// What the parts of the chip share. A process is one chip.
#pragma once

#include "protocol.h"
#include "vnpu.h"

#include "text.h"

#include <atomic>
#include <stdexcept>
#include <string>

namespace vnpu {

using tpk::hex;
using tpk::text;

extern Region region; // shared with the library
// The injected fault hang: everything stands still where it is.
extern std::atomic<bool> hung;
void stayIfHung();

// A command fails.
class Failure : public std::runtime_error {
public:
  Failure(vnpu_status status, const std::string &sentence) : std::runtime_error(sentence), status(status) {}
  vnpu_status status;
};

// Ends the chip; the library will say why. Safe in signal handlers.
[[noreturn]] void lose(const char *reason);
// The same for what is in the region and was not written by the library.
[[noreturn]] void loseOverwritten(const char *what);

// As the library wrote them when it started the chip, out of the reach of kernels that write to the region.
struct Limits {
  uint64_t scratchpadBytes = 0;
  uint32_t watchdogMilliseconds = 0;
  int32_t hostProcess = 0;
};
extern Limits limits;

// What a thread is doing, for the reason when it crashes, and for the watchdog.
struct Activity {
  const char *name = nullptr; // of the kernel; nullptr: none runs
  int64_t begin = 0, end = 0, total = 0;
};
extern thread_local Activity activity;

// Catches what would end the process silently. Once for the process, and once for each thread.
void catchSignals();
void useAlternateStack();

void serveQueue(uint32_t index); // on a thread of its own, which is made here
int handleOfHost();              // of the library's process, to poll; -1 where the system has none
void watchOverAll(int host);     // heartbeat, watchdog, parent; does not return

} // namespace vnpu
