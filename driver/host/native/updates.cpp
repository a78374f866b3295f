#include "updates.h"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>

namespace tpk {
namespace {

// The kernel ABI: `LOCKS` locks, `LOCK_BYTES` apart. Each is a uint32_t, 1 while a thread holds it.
alignas(64) char stripes[256 * 64];

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  long atomics = 0, locks = 0, waiting = 0; // calls that run, and calls that wait to use atomic operations
  bool exclusive = false;
};

// Never destroyed: threads outlive static destruction.
union Kept {
  Gate gate;
  Kept() : gate() {}
  ~Kept() {}
} kept;

} // namespace

Updates::Updates(bool updates, bool mayExclude, bool mayLock) {
  if (!updates)
    return;
  Gate &gate = kept.gate;
  std::unique_lock lock(gate.mutex);
  const bool free = !gate.exclusive && !gate.atomics && !gate.waiting;
  if (mayExclude && free && !gate.locks) {
    gate.exclusive = true;
    use_ = Use::Exclusive;
  } else if (mayLock && free) {
    ++gate.locks;
    use_ = Use::Locks;
  } else {
    ++gate.waiting;
    gate.changed.wait(lock, [&] { return !gate.exclusive && !gate.locks; });
    --gate.waiting;
    ++gate.atomics;
    use_ = Use::Atomic;
  }
}

Updates::~Updates() {
  if (use_ == Use::None)
    return;
  Gate &gate = kept.gate;
  std::lock_guard lock(gate.mutex);
  if (use_ == Use::Exclusive)
    gate.exclusive = false;
  else
    --(use_ == Use::Locks ? gate.locks : gate.atomics);
  if (gate.waiting)
    gate.changed.notify_all();
}

int64_t Updates::locks() const { return use_ == Use::Locks ? reinterpret_cast<int64_t>(stripes) : 0; }

void Updates::forked() {
  new (&kept.gate) Gate;
  std::memset(stripes, 0, sizeof stripes);
}

} // namespace tpk
