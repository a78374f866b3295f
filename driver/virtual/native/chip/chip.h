// Declarations shared by the parts of the chip. A process is one chip.
#pragma once

#include "protocol.h"
#include "vnpu.h"

#include "text.h"

#include <atomic>
#include <pthread.h>
#include <stdexcept>
#include <string>

namespace vnpu {

using tpk::hex;
using tpk::text;

extern Region region; // shared with the library
// Where the chip's process has device memory: elsewhere than at device addresses, if cores must not reach it.
extern uint64_t memoryOffset;
inline uint8_t *memory(uint64_t address) { return reinterpret_cast<uint8_t *>(address + memoryOffset); }
// The injected fault hang: all threads stop where they are.
extern std::atomic<bool> hung;
void stayIfHung();

// An address in the text of a failure.
inline std::string addressMark(uint64_t address) { return AddressMark + hex(address); }

// A command has failed.
class Failure : public std::runtime_error {
public:
  Failure(vnpu_status status, const std::string &sentence) : std::runtime_error(sentence), status(status) {}
  vnpu_status status;
};

// Ends the chip; the library reports the reason. Safe in signal handlers.
[[noreturn]] void lose(const char *reason);
// The same for data in the region that the library has not written.
[[noreturn]] void loseOverwritten(const char *what);

// Copied when the library starts the chip, and out of reach of kernels that write to the region.
struct Limits {
  uint64_t scratchpadBytes = 0;
  uint32_t watchdogMilliseconds = 0;
  int32_t hostProcess = 0;
};
extern Limits limits;

// What a thread is doing, for the report of a crash and for the watchdog.
struct Activity {
  const char *name = nullptr; // name of the kernel; nullptr: none runs
  int64_t begin = 0, end = 0, total = 0;
};
extern thread_local Activity activity;

// Catches signals that would end the process without a report. Call it once for the process, and for each
// thread.
void catchSignals();
void useAlternateStack();
uint64_t cpuNanoseconds(pthread_t thread); // that it has used

void serveQueue(uint32_t index); // starts a thread of its own
int handleOfHost();              // of the library's process, to poll; -1 where the system has none
void watchOverAll(int host);     // heartbeat, watchdog, parent; does not return

} // namespace vnpu
