#include "updates.h"

#include <new>
#include <shared_mutex>

namespace tpk {
namespace {

// Never destroyed: threads outlive static destruction.
union Mutex {
  std::shared_mutex mutex;
  Mutex() : mutex() {}
  ~Mutex() {}
} gate;

} // namespace

Updates::Updates(Use wanted) : use_(wanted) {
  if (use_ == Use::Exclusive && !gate.mutex.try_lock())
    use_ = Use::Shared;
  if (use_ == Use::Shared)
    gate.mutex.lock_shared();
}

Updates::~Updates() {
  if (use_ == Use::Exclusive)
    gate.mutex.unlock();
  else if (use_ == Use::Shared)
    gate.mutex.unlock_shared();
}

void Updates::forked() { new (&gate.mutex) std::shared_mutex; }

} // namespace tpk
