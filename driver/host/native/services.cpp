#include "services.h"
#include "status.h"

#include <chrono>
#include <csetjmp>
#include <cstdlib>

namespace tpk {
namespace {

// The jump target for ending the kernel of this thread. A kernel is plain machine code with nothing to
// unwind.
struct Trap {
  std::jmp_buf exit;
  bool armed = false;
  Assertion assertion;
};

thread_local Trap trap;

} // namespace

std::string place(const int32_t (&program)[3], int64_t element, const int64_t *shape) {
  std::string where = tpk::text("program (", program[0], ", ", program[1], ", ", program[2], ")");
  std::string index;
  int64_t rest = element;
  for (int64_t d = shape[0]; d > 0; --d) {
    index = tpk::text(rest % shape[d], index.empty() ? "" : ", ", index);
    rest /= shape[d];
  }
  if (!index.empty())
    where += tpk::text(", element (", index, ")");
  return where;
}

std::string Assertion::describe() const {
  if (!access.empty())
    return access;
  return tpk::text("a device-side assertion failed in ", place(program, element, shape), ": ", text);
}

void endUnless(std::string (*find)(const void *), const void *what) {
  trap.assertion = {};
  trap.assertion.access = find(what);
  if (trap.assertion.access.empty())
    return;
  if (!trap.armed) // not called by a kernel
    std::abort();
  std::longjmp(trap.exit, 1);
}

const Assertion *callAsserting(KernelEntry entry, const void *args, void *scratch, int64_t begin, int64_t end,
                               const int32_t (&grid)[3], int32_t &code) {
  if (setjmp(trap.exit)) {
    trap.armed = false;
    return &trap.assertion;
  }
  trap.armed = true;
  code = entry(args, scratch, begin, end, grid[0], grid[1], grid[2]);
  trap.armed = false;
  return nullptr;
}

} // namespace tpk

void tpk_host_fail(const char *text, int32_t x, int32_t y, int32_t z, int64_t element, const int64_t *shape) {
  using tpk::trap;
  if (!trap.armed) // not called by a kernel
    std::abort();
  trap.assertion = {text, {x, y, z}, element, shape};
  std::longjmp(trap.exit, 1);
}

int64_t tpk_host_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}
