// Periodic tasks during the life of the chip.
#include "chip.h"
#include "cores.h"
#include "group.h"

#include "units/processor.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vnpu {

int handleOfHost() {
#ifdef SYS_pidfd_open
  return int(syscall(SYS_pidfd_open, limits.hostProcess, 0));
#else
  return -1;
#endif
}

void watchOverAll(int host) {
  constexpr int TickMilliseconds = 50;
  Header &header = region.header();
  // The handle reports the end of the library's process at once. At the next tick, so does the parent's
  // process id, which changes when another process adopts the chip.
  for (;;) {
    if (getppid() != limits.hostProcess)
      _exit(0);
    if (!hung)
      header.heartbeat.fetch_add(1);
    const uint32_t allowed = sharesMemory() ? 0 : limits.watchdogMilliseconds;
    if (Processor *processor = Processor::instance())
      processor->watch(allowed);
    else
      Cores::instance().watch(allowed);
    // If the host process executes another program, nothing reads the chip's output.
    pollfd events[] = {{host, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    poll(events, 2, TickMilliseconds);
    if (events[1].revents & POLLERR)
      _exit(0);
  }
}

} // namespace vnpu
