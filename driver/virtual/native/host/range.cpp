#include "range.h"
#include "error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace vnpu {

Range::Range(uint64_t memoryBytes, unsigned attempt) {
  // High addresses, away from programs and libraries; the low ones are for machines with few address bits.
  static constexpr uint64_t Hints[Attempts] = {0x200000000000, 0x300000000000, 0x100000000000, 0x180000000000,
                                               0x080000000000, 0x010000000000, 0x4000000000,   0x2000000000};
  constexpr uint64_t Page = 65536, Slack = uint64_t(2) << 30;
  bytes_ = (2 * memoryBytes + Slack + Page - 1) / Page * Page;
  void *start = mmap(reinterpret_cast<void *>(Hints[attempt % Attempts]), bytes_, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    throw Error(VNPU_OUT_OF_MEMORY, text("vnpu_open: no ", bytes_, " bytes of addresses for ", memoryBytes,
                                         " bytes of device memory: ", std::strerror(errno),
                                         "; make VNPU_MEMORY_BYTES smaller, or lift `ulimit -v`"));
  start_ = reinterpret_cast<uint64_t>(start);
}

Range::~Range() { munmap(reinterpret_cast<void *>(start_), bytes_); }

} // namespace vnpu
