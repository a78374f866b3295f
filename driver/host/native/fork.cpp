// Devices across fork(). Every lock is held during the fork, so that the child finds consistent tables. What
// belongs to the parent's threads (pool, pending work of streams) is left to the parent.
#include "access.h"
#include "crashes.h"
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

std::string Host::refusal(uint64_t address, uint64_t size) {
  std::lock_guard lock(hostsMutex);
  try {
    for (Host *host : hosts())
      host->memory_.check("device memory", "the address", address, size);
  } catch (const Error &error) {
    return error.what();
  }
  return {};
}

void Host::lockForFork() {
  hostsMutex.lock();
  for (Host *host : hosts())
    host->lockAll();
  Pool::lockForFork();
  mappingsMutex().lock();
}

void Host::unlockAfterFork(bool child) {
  mappingsMutex().unlock();
  Pool::unlockAfterFork(child);
  if (child) {
    forgetOtherThreads();
    Updates::forked();
  }
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
