// Checked mode: what kernels ask before they access memory that is not plainly inside of their arguments.
#pragma once

#include <cstdint>
#include <mutex>

namespace tpk {

// The memory of one pointer argument; `begin` is UnknownBegin where it is not known.
struct Bounds {
  uint64_t begin, bytes;
};

inline constexpr uint64_t UnknownBegin = ~uint64_t(0);

// An access in the kernel's source, as it stands in its object file.
struct Site {
  int64_t kind;     // see `kindNames`
  int64_t bytes;    // of an element
  int64_t argument; // that it was computed from, or -1
  int64_t arguments;
  int64_t shape[1]; // the rank, then the sizes
};

// Whether all of the `bytes` at an address are mapped, and writable where `writes`.
bool isMapped(uint64_t address, uint64_t bytes, bool writes);
// What is mapped may have changed: it is read anew at the next question.
void forgetMappings();
// Held over a fork, so that the child does not find it held by a thread that it has not.
std::mutex &mappingsMutex();

} // namespace tpk

// Whether all of the `bytes` at an address may be accessed; 0: perhaps not, ask for each lane.
extern "C" int32_t tpk_host_reaches(const tpk::Site *site, const tpk::Bounds *bounds, uint64_t address,
                                    uint64_t bytes);

// Ends the kernel if one of `count` elements that are wanted may not be accessed; the first of them is the
// row-major `element` of the tile. `names` are those of the pointer arguments, a line each, `where` is the
// place in the kernel's source.
extern "C" void tpk_host_access(const char *where, const char *names, const tpk::Site *site,
                                const tpk::Bounds *bounds, const uint64_t *addresses, const uint8_t *wanted,
                                int64_t count, int64_t element, int32_t x, int32_t y, int32_t z);
