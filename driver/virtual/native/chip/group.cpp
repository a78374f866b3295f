#include "group.h"
#include "sleeping.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vnpu {
namespace {

constexpr int PatienceMilliseconds = 200; // then a sleeping thread checks the gate again

std::atomic<uint32_t> imports{0};
std::atomic<bool> failing{false};
std::mutex reasonMutex;
std::string failingFor;

struct Descriptor {
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  const int number;
};

[[noreturn]] void refuse(const std::string &why) { throw Failure(VNPU_INVALID_ARGUMENT, why); }

} // namespace

void import(const Command &command) {
  const std::string path = text("/proc/", limits.hostProcess, "/fd/", command.index);
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status;
  if (file.number < 0 || fstat(file.number, &status))
    refuse(text("descriptor ", command.index,
                " cannot be opened for reading and writing: ", std::strerror(errno)));
  if (!S_ISREG(status.st_mode) || uint64_t(status.st_size) < command.value)
    refuse(text("descriptor ", command.index, " is not of memory or a file of ", command.value, " bytes"));
  void *start = memory(command.target);
  if (mmap(start, command.value, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.number, 0) != start)
    throw Failure(VNPU_OUT_OF_MEMORY,
                  text("the ", command.value, " bytes cannot be mapped: ", std::strerror(errno)));
  madvise(start, command.value, MADV_DONTFORK);
  ++imports;
}

void unmap(const Command &command) {
  void *start = memory(command.target);
  if (mmap(start, command.value, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != start)
    throw Failure(VNPU_OUT_OF_MEMORY, text("the memory cannot be replaced: ", std::strerror(errno)));
  madvise(start, command.value, MADV_DONTFORK);
  --imports;
}

bool sharesMemory() { return imports.load() != 0; }

void failLaunches(const std::string &reason) {
  std::lock_guard lock(reasonMutex);
  failingFor = reason;
  failing = !reason.empty();
}

void requireWholeGroup() {
  if (!failing.load())
    return;
  std::lock_guard lock(reasonMutex);
  throw Failure(VNPU_DEVICE_LOST, failingFor);
}

void awaitGate(const Command &command) {
  if (command.index >= GateCount)
    loseOverwritten("a gate has no place");
  std::atomic<uint64_t> &gate = region.header().gates[command.index];
  uint64_t seen;
  while (!(seen = gate.load()))
    sleepOn(gate, seen, PatienceMilliseconds);
  if (seen == sealOfGate(command.value, false))
    return;
  if (seen != sealOfGate(command.value, true))
    loseOverwritten("a gate was not opened by the library");
  throw Failure(VNPU_DEVICE_LOST, "the other chip, for whose event the queue has waited, is lost");
}

} // namespace vnpu
