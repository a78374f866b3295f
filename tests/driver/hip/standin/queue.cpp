#include "queue.h"

#include "standin.h"

#include <algorithm>
#include <thread>

namespace standin {
namespace {

void sleepFor(uint64_t microseconds) {
  if (microseconds)
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

void runOne(Queue &queue, Work &work, Lock &lock) {
  State &all = state();
  Operation operation{work.kind, queue.device, queue.handle, all.nextOrder++, nanoseconds(), 0};
  Device &owner = all.devices[queue.device];
  bool isEvent = operation.kind == "event" || operation.kind == "wait";
  if (owner.failure == hipSuccess && !isEvent)
    owner.failure = hipError_t(all.faults.strike("execute"));
  if (owner.failure == hipSuccess || isEvent) {
    uint64_t busy = operation.kind == "launch" ? all.kernelMicroseconds : isEvent ? 0 : all.copyMicroseconds;
    lock.unlock();
    work.run(operation.order);
    sleepFor(busy);
    work.run = nullptr;
    lock.lock();
  }
  operation.finished = nanoseconds();
  all.operations.push_back(std::move(operation));
}

void serve(std::shared_ptr<Queue> queue) {
  State &all = state();
  Lock lock(all.lock);
  while (true) {
    all.changed.wait(lock, [&] { return queue->closed || (!queue->work.empty() && !queue->held); });
    if (queue->closed)
      break;
    Work work = std::move(queue->work.front());
    queue->work.pop_front();
    all.changed.wait(lock, [&] {
      return queue->closed || std::all_of(work.after.begin(), work.after.end(),
                                          [](const Point &point) { return point.reached(); });
    });
    if (queue->closed)
      break;
    work.after.clear();
    runOne(*queue, work, lock);
    queue->done = work.number;
    all.changed.notify_all();
  }
  queue->work.clear();
  queue->done = queue->submitted; // nobody may wait for what never comes
  all.changed.notify_all();
}

} // namespace

void start(const std::shared_ptr<Queue> &queue) { std::thread(serve, queue).detach(); }

void submit(const std::shared_ptr<Queue> &queue, const char *kind, Run run, std::vector<Point> after) {
  State &all = state();
  if (!queue->handle) {
    for (auto &[handle, other] : all.streams)
      if (other->device == queue->device && other->blocking)
        after.push_back({other, other->submitted});
  } else if (queue->blocking) {
    auto &null = all.devices[queue->device].null;
    after.push_back({null, null->submitted});
  }
  queue->work.push_back({kind, ++queue->submitted, std::move(after), std::move(run)});
  all.changed.notify_all();
}

hipError_t drain(const std::shared_ptr<Queue> &queue, Lock &lock) {
  Point end{queue, queue->submitted};
  state().changed.wait(lock, [&] { return end.reached(); });
  return state().devices[queue->device].failure;
}

hipError_t drain(int index, Lock &lock) {
  State &all = state();
  std::vector<Point> ends{{all.devices[index].null, all.devices[index].null->submitted}};
  for (auto &[handle, queue] : all.streams)
    if (queue->device == index)
      ends.push_back({queue, queue->submitted});
  all.changed.wait(lock, [&] {
    return std::all_of(ends.begin(), ends.end(), [](const Point &point) { return point.reached(); });
  });
  return all.devices[index].failure;
}

} // namespace standin
