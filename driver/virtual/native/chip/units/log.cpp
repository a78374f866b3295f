#include "log.h"

#include <chrono>

namespace vnpu {

void Log::begin() {
  open_.clear();
  read_.clear();
  at_ = 0;
  std::lock_guard lock(mutex_);
  chunks_.clear();
  ended_ = false;
}

void Log::pass() {
  // A core for which the simulation does not wait may be waiting for one for which it does, by way of global
  // memory. It goes on after a while.
  constexpr auto Patience = std::chrono::milliseconds(200);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, Patience, [this] { return chunks_.size() < MostChunks; });
  chunks_.push_back(std::move(open_));
  open_.clear();
  open_.reserve(ChunkRecords);
  changed_.notify_all();
}

void Log::end() {
  std::lock_guard lock(mutex_);
  if (!open_.empty())
    chunks_.push_back(std::move(open_));
  open_.clear();
  ended_ = true;
  changed_.notify_all();
}

const Record *Log::next() {
  if (at_ == read_.size()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !chunks_.empty() || ended_; });
    if (chunks_.empty())
      return nullptr;
    read_ = std::move(chunks_.front());
    chunks_.pop_front();
    at_ = 0;
    changed_.notify_all();
  }
  return &read_[at_++];
}

} // namespace vnpu
