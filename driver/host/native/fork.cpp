// Devices survive fork(): every lock is held across it, so that the child finds whole tables, and what
// belongs to the parent's threads (pool, pending work of streams) is left to the parent.
#include "host.h"

#include <algorithm>
#include <pthread.h>

namespace tpk {
namespace {

std::mutex hostsMutex;
std::vector<Host *> &hosts() {
  static auto *all = new std::vector<Host *>; // never destroyed: devices may outlive static destruction
  return *all;
}

} // namespace

Host::Host(uint64_t memoryLimit) : memory_(memoryLimit) {
  std::lock_guard lock(hostsMutex);
  hosts().push_back(this);
}

Host::~Host() {
  close();
  std::lock_guard lock(hostsMutex);
  std::erase(hosts(), this);
}

void Host::lockForFork() {
  hostsMutex.lock();
  for (Host *host : hosts())
    host->lockAll();
  Pool::lockForFork();
}

void Host::unlockAfterFork(bool child) {
  Pool::unlockAfterFork(child);
  for (Host *host : hosts())
    host->unlockAll(child);
  hostsMutex.unlock();
}

void installForkHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(
        Host::lockForFork, [] { Host::unlockAfterFork(false); }, [] { Host::unlockAfterFork(true); });
  });
}

} // namespace tpk
