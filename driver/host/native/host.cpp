#include "host.h"
#include "interrupts.h"

#include <cstring>

namespace tpk {
namespace {

void *pointer(uint64_t address) { return reinterpret_cast<void *>(address); }

[[noreturn]] void unknown(const char *call, const char *what, uint64_t handle) {
  throw Error(Code::InvalidArgument, text(call, ": ", what, " ", handle, " does not exist or was destroyed"));
}

// memmove, because NULL with size 0 is valid here, and ranges may overlap.
void move(void *target, const void *source, uint64_t size) {
  if (size)
    std::memmove(target, source, size);
}

} // namespace

// The caller's objects may be destroyed soon, so its own work on all streams ends with the wait.
template <typename Wait> void Host::interruptibly(Wait wait) {
  try {
    wait();
  } catch (const Interrupted &) {
    auto all = streams();
    for (auto &stream : all)
      stream->abandon();
    for (auto &stream : all)
      stream->awaitAbandoned();
    throw;
  }
}

void Host::memfree(uint64_t address) {
  interruptibly([this] {
    for (auto &stream : streams())
      stream->drain();
  });
  memory_.release(address);
}

void Host::memcpy_htod(uint64_t target, const void *source, uint64_t size, uint64_t stream, Keep keep) {
  memory_.check(__func__, "dst", target, size);
  submit(__func__, stream, [=, keep = std::move(keep)] { move(pointer(target), source, size); });
}

void Host::memcpy_dtoh(void *target, uint64_t source, uint64_t size, uint64_t stream, Keep keep) {
  memory_.check(__func__, "src", source, size);
  submit(__func__, stream, [=, keep = std::move(keep)] { move(target, pointer(source), size); });
}

void Host::memcpy_dtod(uint64_t target, uint64_t source, uint64_t size, uint64_t stream) {
  memory_.check(__func__, "dst", target, size);
  memory_.check(__func__, "src", source, size);
  submit(__func__, stream, [=] { move(pointer(target), pointer(source), size); });
}

void Host::memset(uint64_t target, uint8_t value, uint64_t size, uint64_t stream) {
  memory_.check(__func__, "dst", target, size);
  submit(__func__, stream, [=] {
    if (size)
      std::memset(pointer(target), value, size);
  });
}

uint64_t Host::create_stream() {
  std::lock_guard lock(tables_);
  streams_.emplace(nextHandle_, std::make_shared<Stream>());
  return nextHandle_++;
}

void Host::destroy_stream(uint64_t handle) {
  if (handle == 0)
    throw Error(Code::InvalidArgument,
                text(__func__, ": stream 0 is the default stream and cannot be destroyed"));
  StreamPointer gone = stream(__func__, handle);
  interruptibly([&] { gone->drain(); });
  {
    std::lock_guard lock(tables_);
    if (!streams_.erase(handle))
      unknown(__func__, "stream", handle);
  }
  if (auto error = gone->takeError())
    throw *error;
}

void Host::synchronize(uint64_t handle) {
  if (handle == 0)
    return;
  StreamPointer waited = stream(__func__, handle);
  interruptibly([&] { waited->drain(); });
  if (auto error = waited->takeError())
    throw *error;
}

void Host::synchronize_all() {
  auto all = streams();
  interruptibly([&] {
    for (auto &stream : all)
      stream->drain();
  });
  for (auto &stream : all)
    if (auto error = stream->takeError()) // failures of other streams are thrown by the next call
      throw *error;
}

uint64_t Host::create_event() {
  std::lock_guard lock(tables_);
  events_.emplace(nextHandle_, Event{});
  return nextHandle_++;
}

void Host::destroy_event(uint64_t event) {
  std::lock_guard lock(tables_);
  if (!events_.erase(event))
    unknown(__func__, "event", event);
}

void Host::record_event(uint64_t event, uint64_t stream) {
  auto record = std::make_shared<Record>();
  latest(__func__, event);
  submit(__func__, stream, [record] { record->finish(); }, Stream::Kind::Event);
  std::lock_guard lock(tables_);
  if (auto entry = events_.find(event); entry != events_.end())
    entry->second.latest = record;
}

void Host::wait_event(uint64_t stream, uint64_t event) {
  RecordPointer record = latest(__func__, event);
  auto wait = [record] {
    if (record)
      record->wait();
  };
  if (stream == 0)
    return interruptibly(wait);
  submit(__func__, stream, wait, Stream::Kind::Event);
}

void Host::synchronize_event(uint64_t event) {
  if (RecordPointer record = latest(__func__, event))
    interruptibly([&] { record->wait(); });
}

double Host::elapsed_time(uint64_t start, uint64_t end) {
  RecordPointer records[] = {latest(__func__, start), latest(__func__, end)};
  for (int i = 0; i < 2; ++i) {
    const char *which = i ? "end" : "start";
    if (!records[i])
      throw Error(Code::InvalidArgument, text(__func__, ": the ", which, " event was never recorded"));
    if (!records[i]->finished())
      throw Error(
          Code::InvalidArgument,
          text(__func__, ": the ", which, " event has not been reached; synchronize it or its stream first"));
  }
  return double(records[1]->nanoseconds() - records[0]->nanoseconds()) * 1e-6;
}

void Host::submit(const char *call, uint64_t handle, Stream::Work work, Stream::Kind kind) {
  if (handle == 0)
    return work();
  stream(call, handle)->submit(std::move(work), kind);
}

StreamPointer Host::stream(const char *call, uint64_t handle) {
  std::lock_guard lock(tables_);
  auto entry = streams_.find(handle);
  if (entry == streams_.end())
    unknown(call, "stream", handle);
  return entry->second;
}

RecordPointer Host::latest(const char *call, uint64_t event) {
  std::lock_guard lock(tables_);
  auto entry = events_.find(event);
  if (entry == events_.end())
    unknown(call, "event", event);
  return entry->second.latest;
}

std::vector<StreamPointer> Host::streams() {
  std::lock_guard lock(tables_);
  std::vector<StreamPointer> all;
  for (auto &[handle, stream] : streams_)
    all.push_back(stream);
  return all;
}

void Host::close() {
  auto all = streams();
  closed_.store(true);
  // All streams are notified before any is joined: one may wait for an event of another.
  for (auto &stream : all)
    stream->stop();
  for (auto &stream : all)
    stream->join();
  closed_.store(false);
}

void Host::reset() {
  interruptibly([this] {
    for (auto &stream : streams())
      stream->drain();
  });
  {
    std::lock_guard lock(tables_);
    streams_.clear();
    events_.clear();
    functions_.clear();
  }
  memory_.releaseAll();
}

void Host::lockAll() {
  tables_.lock();
  for (auto &[handle, stream] : streams_)
    stream->lockForFork();
  memory_.mutex.lock();
}

void Host::unlockAll(bool child) {
  memory_.mutex.unlock();
  for (auto &[handle, stream] : streams_)
    stream->unlockAfterFork(child);
  if (child)
    for (auto &[handle, event] : events_)
      if (event.latest && !event.latest->finished()) // its stream's work belongs to the parent
        event.latest.reset();
  tables_.unlock();
}

} // namespace tpk
