// Checked mode: the host's check of accesses that are not certainly inside a kernel's arguments.
#pragma once

#include <cstdint>
#include <mutex>

namespace tpk {

// The memory of one pointer argument; `begin` is UnknownBegin if it is not known.
struct Bounds {
  uint64_t begin, bytes;
};

inline constexpr uint64_t UnknownBegin = ~uint64_t(0);

// An access in the kernel's source, as described in its object file.
struct Site {
  int64_t kind;     // see `kindNames`
  int64_t bytes;    // of an element
  int64_t argument; // index of the argument it was computed from, or -1
  int64_t arguments;
  int64_t shape[1]; // the rank, then the sizes
};

// Whether all `bytes` at an address are mapped, and writable if `writes`.
bool isMapped(uint64_t address, uint64_t bytes, bool writes);
// Mappings may have changed: the next query reads them again.
void forgetMappings();
// Locked during a fork, so that the child does not inherit it locked by a thread that it does not have.
std::mutex &mappingsMutex();

} // namespace tpk

// Whether all `bytes` at an address may be accessed; 0 means that each lane must be checked.
extern "C" int32_t tpk_host_reaches(const tpk::Site *site, const tpk::Bounds *bounds, uint64_t address,
                                    uint64_t bytes);

// Ends the kernel if one of the `count` wanted elements may not be accessed. The first one is the row-major
// `element` of the tile. `names` are those of the pointer arguments, one per line; `where` is the location in
// the kernel's source.
extern "C" void tpk_host_access(const char *where, const char *names, const tpk::Site *site,
                                const tpk::Bounds *bounds, const uint64_t *addresses, const uint8_t *wanted,
                                int64_t count, int64_t element, int32_t x, int32_t y, int32_t z);
