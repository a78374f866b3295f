#include "device.h"
#include "config.h"

#include <new>
#include <utility>

namespace vnpu {

Device::Device(const vnpu_config &config) : config_(described(config)) {
  session_ = start();
  session_->faults().arm(Faults::parse("vnpu_open", config.faults));
}

std::shared_ptr<Session> Device::start() {
  for (unsigned attempt = 0;; ++attempt) {
    if (!range_)
      range_ = std::make_unique<Range>(config_.memory_bytes, attempt);
    try {
      return std::make_shared<Session>(config_, *range_, handles_);
    } catch (const Chip::RangeTaken &) {
      if (attempt == Range::Attempts)
        throw Error(VNPU_DEVICE_LOST, text("vnpu: the chip finds no room for ", config_.memory_bytes,
                                           " bytes of memory; make VNPU_MEMORY_BYTES smaller"));
      range_.reset();
    }
  }
}

std::shared_ptr<Session> Device::session() {
  std::lock_guard lock(mutex_);
  if (foreign_)
    throw Error(VNPU_DEVICE_LOST, "the chip is that of the process that this one was forked off from; "
                                  "vnpu_reset brings one of its own");
  if (!session_)
    throw Error(VNPU_DEVICE_LOST, "the chip is lost: no new one could be started; vnpu_reset tries again");
  return session_;
}

std::shared_ptr<Session> Device::take() {
  std::lock_guard lock(mutex_);
  // Its thread and its locks belong to the parent, so it can be neither used nor destroyed.
  if (std::exchange(foreign_, false))
    new std::shared_ptr<Session>(std::move(session_));
  return std::exchange(session_, nullptr);
}

void Device::reset() {
  std::lock_guard lock(resets_);
  if (auto old = take())
    old->chip().stop("it was reset");
  auto fresh = start();
  std::lock_guard guard(mutex_);
  session_ = std::move(fresh);
}

void Device::close() {
  std::lock_guard lock(resets_);
  if (auto old = take())
    old->chip().stop("it was closed");
}

void Device::unlockAfterFork(bool child) {
  if (child) {
    foreign_ = foreign_ || session_;
    // A reset by another thread does not continue in this process.
    new (&resets_) std::mutex;
  }
  mutex_.unlock();
}

} // namespace vnpu
