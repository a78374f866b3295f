// The chip's process: starting, watching and ending it.
#pragma once

#include "vnpu.h"

#include <string>
#include <sys/types.h>

namespace vnpu {

class Process {
public:
  Process() = default;
  ~Process();
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  // Starts the program with the region as descriptor 3 and standard output into a pipe. Throws DeviceLost.
  void start(const char *program, int region);
  void kill();
  // Waits until the process is gone. Returns how it ended.
  std::string reap();
  // Whether a debugger has stopped it.
  bool traced() const;

  pid_t id() const { return id_; }
  int output() const { return output_; } // of the pipe, does not block
  int handle() const { return handle_; } // readable once the process has ended; -1 if not supported

private:
  pid_t id_ = 0;
  int output_ = -1, handle_ = -1;
};

} // namespace vnpu
