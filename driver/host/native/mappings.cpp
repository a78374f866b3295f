// The memory mappings of the process, read from Linux.
#include "access.h"

#include <cstdio>
#include <vector>

namespace tpk {
namespace {

struct Mapping {
  uint64_t begin, end;
  bool readable, writable;
};

std::mutex mutex;
std::vector<Mapping> mappings; // by address
bool current = false;

void readMappings() {
  mappings.clear();
  std::FILE *file = std::fopen("/proc/self/maps", "re");
  if (!file)
    return;
  char line[4096];
  while (std::fgets(line, sizeof line, file)) {
    unsigned long long begin, end;
    char rights[5];
    if (std::sscanf(line, "%llx-%llx %4s", &begin, &end, rights) == 3)
      mappings.push_back({begin, end, rights[0] == 'r', rights[1] == 'w'});
  }
  std::fclose(file);
  current = true;
}

bool covers(uint64_t address, uint64_t end, bool writes) {
  for (const Mapping &mapping : mappings) {
    if (mapping.end <= address)
      continue;
    if (mapping.begin > address || !(writes ? mapping.writable : mapping.readable))
      return false;
    address = mapping.end; // adjacent mappings are merged
    if (address >= end)
      return true;
  }
  return false;
}

} // namespace

bool isMapped(uint64_t address, uint64_t bytes, bool writes) {
  uint64_t end;
  if (__builtin_add_overflow(address, bytes, &end))
    return false;
  std::lock_guard lock(mutex);
  if (current && covers(address, end, writes))
    return true;
  readMappings();                                  // it may be new
  return !current || covers(address, end, writes); // without /proc, nothing is known
}

std::mutex &mappingsMutex() { return mutex; }

void forgetMappings() {
  std::lock_guard lock(mutex);
  current = false;
}

} // namespace tpk
