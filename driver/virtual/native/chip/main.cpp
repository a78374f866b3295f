// vnpu-chip: the virtual NPU's chip. The library starts it, with the shared region as descriptor 3.
#include "chip.h"
#include "cores.h"
#include "loader.h"
#include "sleeping.h"

#include "units/processor.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vnpu {
namespace {

constexpr int RegionDescriptor = 3;

bool mapRegion() {
  struct stat status;
  if (fstat(RegionDescriptor, &status) || size_t(status.st_size) < sizeof(Header))
    return false;
  void *start = mmap(nullptr, size_t(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                     RegionDescriptor, 0);
  if (start == MAP_FAILED)
    return false;
  const Header &header = *static_cast<Header *>(start);
  region = Region(start, header.queueDepth);
  limits = {header.scratchpadBytes, header.watchdogMilliseconds, header.hostProcess};
  return region.header().version == ProtocolVersion &&
         region.header().regionBytes == uint64_t(status.st_size);
}

// Returns whether the chip's memory is mapped where the library requires it.
bool mapMemory() {
  const Header &header = region.header();
  auto *wanted = reinterpret_cast<void *>(header.rangeStart);
  void *got = mmap(wanted, header.rangeBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED && errno != EEXIST)
    throw std::runtime_error(text("no ", header.rangeBytes, " bytes of addresses: ", std::strerror(errno),
                                  "; make VNPU_MEMORY_BYTES smaller"));
  if (got != wanted)
    return false;
  if (header.description[0]) { // cores find nothing at device addresses
    if (mprotect(got, header.rangeBytes, PROT_NONE))
      throw std::runtime_error(text("the system does not protect device addresses: ", std::strerror(errno)));
    got = mmap(nullptr, header.rangeBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED)
      throw std::runtime_error(text("no ", header.rangeBytes, " bytes of addresses: ", std::strerror(errno),
                                    "; make VNPU_MEMORY_BYTES smaller"));
    memoryOffset = reinterpret_cast<uint64_t>(got) - header.rangeStart;
  }
  madvise(got, header.rangeBytes, MADV_DONTFORK); // not needed where modules are tried out
  return true;
}

// Counts what is written to standard output, so that the library knows when it has forwarded everything.
void countOutput() {
  static constexpr cookie_io_functions_t Functions = {nullptr,
                                                      [](void *, const char *data, size_t size) -> ssize_t {
                                                        size_t done = 0;
                                                        while (done < size) {
                                                          ssize_t count = write(1, data + done, size - done);
                                                          if (count < 0 && errno == EINTR)
                                                            continue;
                                                          if (count < 0)
                                                            return 0;
                                                          done += size_t(count);
                                                        }
                                                        region.header().printedBytes.fetch_add(
                                                            size, std::memory_order_release);
                                                        return ssize_t(size);
                                                      },
                                                      nullptr, nullptr};
  FILE *counted = fopencookie(nullptr, "w", Functions);
  if (!counted)
    throw std::runtime_error("no standard output");
  setvbuf(counted, nullptr, _IOLBF, BUFSIZ);
  stdout = counted;
}

// Requests CPU features that kernels' compilers may have used, and resources that many modules need.
void askSystem() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  constexpr long RequestPermission = 0x1023, TileData = 18;
  syscall(SYS_arch_prctl, RequestPermission, TileData); // fails if the CPU has no such registers
#endif
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

void answerStart(Start start, const char *sentence = "") {
  Header &header = region.header();
  std::strncpy(header.startText, sentence, TextBytes - 1);
  header.start.store(start);
  wake(header.start);
}

int run() {
  try {
    if (!mapMemory()) {
      answerStart(Start::RangeTaken);
      return 0;
    }
    countOutput();
    askSystem();
    catchSignals();
    useAlternateStack();
    if (region.header().description[0])
      Processor::start(region.header().description);
    else
      Cores::instance().start(region.header().cores, limits.scratchpadBytes);
    installFirmware();
    serveQueue(ControlQueue);
    serveQueue(DefaultQueue);
  } catch (const std::exception &error) {
    answerStart(Start::Failed, error.what());
    return 1;
  }
  // The first heartbeat. Without it, the host would not notice missing ones if the chip hangs at its first
  // command.
  region.header().heartbeat.store(1);
  int host = handleOfHost();
  answerStart(Start::Ready);
  watchOverAll(host);
  return 0;
}

} // namespace
} // namespace vnpu

int main(int count, char **arguments) {
  if (count != 2 || std::strcmp(arguments[1], "--region=3") || !vnpu::mapRegion()) {
    std::fputs("vnpu-chip is the virtual NPU's chip: libvnpu starts it, and it is of no use by hand.\n"
               "If libvnpu has started it, the two are of different versions.\n",
               stderr);
    return 2;
  }
  syscall(SYS_close_range, vnpu::RegionDescriptor, ~0u, 0);
  vnpu::run();
  _exit(0);
}
