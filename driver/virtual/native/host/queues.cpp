// Queues and events of a session.
#include "session.h"

namespace vnpu {

uint32_t Session::queueIndex(const char *call, uint64_t queue) const {
  std::shared_lock lock(tables_);
  auto known = queues_.find(queue);
  if (known == queues_.end())
    throw Error(VNPU_INVALID_ARGUMENT, text(call, ": queue ", queue, " does not exist or was destroyed"));
  return known->second;
}

std::vector<uint32_t> Session::queueIndices() const {
  std::shared_lock lock(tables_);
  std::vector<uint32_t> all;
  for (auto [handle, index] : queues_)
    all.push_back(index);
  return all;
}

uint64_t Session::createQueue() {
  chip_.requireAlive();
  Command open{.kind = Kind::OpenQueue};
  {
    std::unique_lock lock(tables_);
    if (!freeQueues_.empty()) {
      open.index = freeQueues_.back();
      freeQueues_.pop_back();
    } else if (usedQueues_ < QueueCount) {
      open.index = usedQueues_++;
      chip_.region().open(open.index);
    } else {
      throw Error(VNPU_OUT_OF_MEMORY, text("vnpu_queue_create: the chip has ", UserQueues,
                                           " queues, and all are in use; destroy one first"));
    }
  }
  try {
    channel_.control(open);
  } catch (const Error &) {
    std::unique_lock lock(tables_);
    freeQueues_.push_back(open.index);
    throw;
  }
  uint64_t handle = handles_++;
  std::unique_lock lock(tables_);
  queues_.emplace(handle, open.index);
  return handle;
}

void Session::destroyQueue(uint64_t queue) {
  if (queue == VNPU_DEFAULT_QUEUE)
    throw Error(VNPU_INVALID_ARGUMENT, "vnpu_queue_destroy: queue 0 is the default queue and stays");
  uint32_t index;
  {
    std::unique_lock lock(tables_);
    auto known = queues_.find(queue);
    if (known == queues_.end())
      throw Error(VNPU_INVALID_ARGUMENT,
                  text("vnpu_queue_destroy: queue ", queue, " does not exist or was destroyed"));
    index = known->second;
    queues_.erase(known);
  }
  std::optional<Error> failure;
  if (!chip_.lost()) {
    try {
      channel_.drain(index);
      failure = channel_.takeFailure(index);
      chip_.awaitPrinted();
    } catch (const Error &) { // lost meanwhile: nothing is left to destroy
      return;
    }
  }
  {
    std::unique_lock lock(tables_);
    freeQueues_.push_back(index);
  }
  if (failure)
    throw Error(failure->status, withAllocations(failure->what()));
}

void Session::synchronize(uint64_t queue) {
  uint32_t index = queueIndex("vnpu_queue_synchronize", queue);
  chip_.requireAlive();
  channel_.drain(index);
  chip_.awaitPrinted();
  throwFailure(index);
}

void Session::synchronizeAll() {
  chip_.requireAlive();
  std::vector<uint32_t> all = queueIndices();
  for (uint32_t index : all)
    channel_.drain(index);
  chip_.awaitPrinted();
  for (uint32_t index : all)
    throwFailure(index); // failures of other queues are returned by the next call
}

// --- events -----------------------------------------------------------------------------------------------

Session::Event Session::event(const char *call, uint64_t handle) const {
  std::shared_lock lock(tables_);
  auto known = events_.find(handle);
  if (known == events_.end())
    throw Error(VNPU_INVALID_ARGUMENT, text(call, ": event ", handle, " does not exist or was destroyed"));
  return known->second;
}

uint64_t Session::createEvent() {
  chip_.requireAlive();
  std::unique_lock lock(tables_);
  uint32_t index;
  if (!freeEvents_.empty()) {
    index = freeEvents_.back();
    freeEvents_.pop_back();
  } else if (usedEvents_ < EventCount) {
    index = usedEvents_++;
  } else {
    throw Error(VNPU_OUT_OF_MEMORY, text("vnpu_event_create: the chip has ", EventCount,
                                         " events, and all are in use; destroy one first"));
  }
  uint64_t handle = handles_++;
  events_.emplace(handle, Event{.index = index});
  return handle;
}

void Session::destroyEvent(uint64_t handle) {
  std::unique_lock lock(tables_);
  auto known = events_.find(handle);
  if (known == events_.end())
    throw Error(VNPU_INVALID_ARGUMENT,
                text("vnpu_event_destroy: event ", handle, " does not exist or was destroyed"));
  freeEvents_.push_back(
      known->second.index); // record numbers increase: a late one is not mistaken for that of a new event
  events_.erase(known);
}

void Session::record(uint64_t handle, uint64_t queue) {
  uint32_t index = queueIndex("vnpu_event_record", queue);
  Event target = event("vnpu_event_record", handle);
  Command made = command(Kind::Record);
  made.index = target.index;
  made.value = ++records_;
  uint64_t reached = channel_.submit(index, made);
  std::unique_lock lock(tables_);
  auto known = events_.find(handle);
  if (known != events_.end() && known->second.number < made.value)
    known->second = {target.index, made.value, index, reached};
}

void Session::waitFor(uint64_t queue, uint64_t handle) {
  uint32_t index = queueIndex("vnpu_queue_wait", queue);
  Event awaited = event("vnpu_queue_wait", handle);
  chip_.requireAlive();
  if (!awaited.number)
    return;
  Command made = command(Kind::Wait);
  made.index = awaited.queue;
  made.value = awaited.reached;
  channel_.submit(index, made);
}

void Session::synchronizeEvent(uint64_t handle) {
  Event awaited = event("vnpu_event_synchronize", handle);
  chip_.requireAlive();
  channel_.await(awaited.queue, awaited.reached);
  chip_.awaitPrinted();
}

double Session::elapsedMilliseconds(uint64_t start, uint64_t end) {
  const uint64_t handles[] = {start, end};
  uint64_t times[2];
  for (int i = 0; i < 2; ++i) {
    const char *which = i ? "end" : "start";
    Event made = event("vnpu_event_elapsed", handles[i]);
    if (!made.number)
      throw Error(VNPU_INVALID_ARGUMENT,
                  text("vnpu_event_elapsed: the ", which, " event was never recorded"));
    chip_.requireAlive();
    if (!channel_.reached(made.queue, made.reached))
      throw Error(VNPU_INVALID_ARGUMENT,
                  text("vnpu_event_elapsed: the ", which,
                       " event has not been reached; synchronize it or its queue first"));
    times[i] = channel_.eventNanoseconds(made.index, made.number);
  }
  return double(int64_t(times[1] - times[0])) * 1e-6;
}

} // namespace vnpu
