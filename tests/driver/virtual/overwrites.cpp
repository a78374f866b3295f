// Kernels that write where the chip and its library talk to each other.
#include "protocol.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

using namespace vnpu;

namespace {

char *start = nullptr;
Region region;

void findRegion() {
  FILE *maps = std::fopen("/proc/self/maps", "re");
  for (char line[512]; std::fgets(line, sizeof line, maps);)
    if (std::strstr(line, "/memfd:vnpu ")) {
      start = reinterpret_cast<char *>(std::strtoull(line, nullptr, 16));
      break;
    }
  std::fclose(maps);
  region = Region(start, reinterpret_cast<Header *>(start)->queueDepth);
}

struct Part {
  void *start;
  size_t bytes;
};

Part part(int64_t number, uint32_t index) {
  switch (number) {
  case 0:
    return {&region.header(), sizeof(Header)};
  case 1:
    return {&region.queue(index), sizeof(QueueState)};
  case 2:
    return {&region.queue(index).submitted, sizeof(uint64_t)};
  case 3:
    return {&region.queue(index).completed, sizeof(uint64_t)};
  case 4:
    return {&region.queue(index).failed, sizeof(QueueState) - offsetof(QueueState, failed)};
  case 5:
    return {&region.event(index), sizeof(EventStamp)};
  case 6:
    return {region.header().answers, sizeof(SlotAnswer) * SlotCount};
  case 7:
    return {region.slot(index), SlotBytes};
  case 8:
    return {&region.entry(index, 0), region.header().queueDepth * sizeof(Entry)};
  case 9:
    return {&region.header().lost, offsetof(Header, answers) - offsetof(Header, lost)};
  default:
    return {start, Region::EventsAt + 65536};
  }
}

void overwrite(void *target, size_t bytes, int64_t pattern, uint64_t seed) {
  auto *to = static_cast<volatile unsigned char *>(target);
  for (size_t i = 0; i < bytes; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    to[i] = pattern < 0 ? static_cast<unsigned char>(seed >> 56) : static_cast<unsigned char>(pattern);
  }
}

} // namespace

extern "C" {
extern const int32_t tpk_host_abi_version = 3;
extern const int64_t overwrites__scratch_bytes[] = {0, 0};
extern const int32_t overwrites__pointers[] = {0};

// args: part, index, pattern (-1: random bytes), seed, nanoseconds to go on for
int32_t overwrites(const int64_t *args, void *, int64_t, int64_t, int32_t, int32_t, int32_t) {
  findRegion();
  const Part target = part(args[0], uint32_t(args[1]));
  const int64_t pattern = args[2], nanoseconds = args[4];
  uint64_t seed = uint64_t(args[3]);
  timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    overwrite(target.start, target.bytes, pattern, ++seed);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < nanoseconds);
  return 0;
}
}
