// What happens now and then as long as the chip lives.
#include "chip.h"
#include "cores.h"

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
  // The handle tells at once when the library's process ends; its number, which changes to that of whoever
  // adopts the chip, tells it at the next tick.
  for (;;) {
    if (getppid() != limits.hostProcess)
      _exit(0);
    if (!hung)
      header.heartbeat.fetch_add(1);
    Cores::instance().watch(limits.watchdogMilliseconds);
    // Nobody reads the output of a chip whose host has become another program.
    pollfd events[] = {{host, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    poll(events, 2, TickMilliseconds);
    if (events[1].revents & POLLERR)
      _exit(0);
  }
}

} // namespace vnpu
