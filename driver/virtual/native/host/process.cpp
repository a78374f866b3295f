#include "process.h"
#include "error.h"
#include "signal_names.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace vnpu {
namespace {

int openHandle(pid_t id) {
#ifdef SYS_pidfd_open
  return int(syscall(SYS_pidfd_open, id, 0));
#else
  (void)id;
  return -1;
#endif
}

std::string ending(int status) {
  if (WIFSIGNALED(status))
    return text("its process was killed by signal ", WTERMSIG(status), " (",
                tpk::signalName(WTERMSIG(status)), ")");
  return text("its process ended with status ", WEXITSTATUS(status));
}

struct Actions {
  Actions() { posix_spawn_file_actions_init(&value); }
  ~Actions() { posix_spawn_file_actions_destroy(&value); }
  posix_spawn_file_actions_t value;
};

// Signal handling as in a program started by a shell, whatever the caller has set.
struct Attributes {
  Attributes() {
    posix_spawnattr_init(&value);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&value, &none);
    posix_spawnattr_setsigdefault(&value, &all);
    posix_spawnattr_setflags(&value, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&value); }
  posix_spawnattr_t value;
};

} // namespace

Process::~Process() {
  for (int descriptor : {output_, handle_})
    if (descriptor >= 0)
      close(descriptor);
}

void Process::start(const char *program, int region) {
  auto refuse = [&](const char *what, int error) {
    throw Error(VNPU_DEVICE_LOST,
                text("vnpu: the chip '", program, "' does not start: ", what, ": ", std::strerror(error),
                     error == ENOENT ? "; set VNPU_CHIP to its path" : ""));
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    refuse("pipe", errno);
  output_ = ends[0];
  fcntl(output_, F_SETFL, O_NONBLOCK);
  Actions actions;
  Attributes attributes;
  posix_spawn_file_actions_adddup2(&actions.value, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions.value, region, 3);
  posix_spawn_file_actions_addopen(&actions.value, 0, "/dev/null", O_RDONLY, 0);
  char name[] = "vnpu-chip", mode[] = "--region=3";
  char *arguments[] = {name, mode, nullptr};
  int error = posix_spawn(&id_, program, &actions.value, &attributes.value, arguments, environ);
  close(ends[1]);
  if (error) {
    id_ = 0;
    refuse("posix_spawn", error);
  }
  handle_ = openHandle(id_);
  if (handle_ >= 0)
    fcntl(handle_, F_SETFD, FD_CLOEXEC);
}

void Process::kill() {
#ifdef SYS_pidfd_send_signal
  // If another thread has waited for it, its process id may already be reused.
  if (handle_ >= 0) {
    syscall(SYS_pidfd_send_signal, handle_, SIGKILL, nullptr, 0);
    return;
  }
#endif
  ::kill(id_, SIGKILL);
}

std::string Process::reap() {
  int status = 0;
  pid_t done;
  do
    done = waitpid(id_, &status, 0);
  while (done < 0 && errno == EINTR);
  return done == id_ ? ending(status) : "its process ended, and somebody else has taken its status";
}

bool Process::traced() const {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", int(id_));
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path, "re"), &std::fclose);
  if (!file)
    return false;
  int tracer = 0;
  for (char line[256]; std::fgets(line, sizeof line, file.get());)
    if (std::sscanf(line, "TracerPid: %d", &tracer) == 1)
      break;
  return tracer != 0;
}

} // namespace vnpu
