// Services of the host for a running kernel: ending it when an assertion fails, and printing.
#pragma once

#include "tpk_abi.h"

#include <string>

namespace tpk {

// A failed assertion. `text` and `shape` (the rank, then the sizes) belong to the kernel's object file.
struct Assertion {
  const char *text = nullptr;
  int32_t program[3] = {};
  int64_t element = 0; // row-major
  const int64_t *shape = nullptr;
  std::string access = {}; // description of a forbidden access; empty: an assertion failed

  std::string describe() const;
};

// "program (x, y, z), element (i, j)" of a row-major `element` of a `shape`, as above.
std::string place(const int32_t (&program)[3], int64_t element, const int64_t *shape);

// Ends the kernel that this thread runs if `find` returns a text, which describes a forbidden access. Returns
// if the text is empty.
void endUnless(std::string (*find)(const void *), const void *what);

// Calls a kernel that may call tpk_host_fail or tpk_host_access. Returns the assertion that ended it, valid
// until the next call of this thread; or nullptr and the kernel's `code`.
const Assertion *callAsserting(KernelEntry entry, const void *args, void *scratch, int64_t begin, int64_t end,
                               const int32_t (&grid)[3], int32_t &code);

} // namespace tpk

// Ends the kernel that called it, and the other programs of that call. Does not return.
extern "C" [[noreturn]] void tpk_host_fail(const char *text, int32_t x, int32_t y, int32_t z, int64_t element,
                                           const int64_t *shape);

// Nanoseconds of a monotonic clock.
extern "C" int64_t tpk_host_nanoseconds();

// Writes a line to standard output for each element at `data`, in row-major order. `type` is their type
// ("i1", "i8" to "i64", "u8" to "u64", "f16", "bf16", "f32", "f64", "ptr"). `shape` is the rank, then the
// sizes. Without a type, it writes one line with the prefix.
extern "C" void tpk_host_print(const char *prefix, const char *type, int32_t hex, const int64_t *shape,
                               const void *data, int32_t x, int32_t y, int32_t z);
