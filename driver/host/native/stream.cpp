#include "stream.h"
#include "crashes.h"
#include "interrupts.h"

#include <chrono>
#include <pthread.h>
#include <signal.h>
#include <system_error>
#include <utility>
#include <vector>

namespace tpk {

Stream::~Stream() {
  stop();
  join();
}

void Stream::submit(Work work, Kind kind) {
  Queue &queue = *queue_;
  std::unique_lock lock(queue.mutex);
  if (queue.stopping) {
    lock.unlock();
    return work();
  }
  if (!queue.thread.joinable()) {
    sigset_t previous; // the interpreter's threads handle signals
    const sigset_t blocked = signalsOfInterpreter();
    pthread_sigmask(SIG_SETMASK, &blocked, &previous);
    try {
      queue.thread = std::thread([&queue] { serve(queue); });
      pthread_setname_np(queue.thread.native_handle(), "tpk-stream");
    } catch (const std::system_error &error) {
      pthread_sigmask(SIG_SETMASK, &previous, nullptr);
      throw Error(Code::DeviceLost, text("stream: the system gives no thread for its work: ", error.what()));
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  }
  queue.tasks.push_back({std::move(work), kind, std::this_thread::get_id()});
  ++queue.submitted;
  queue.arrived.notify_one();
}

void Stream::drain() {
  Queue &queue = *queue_;
  std::unique_lock lock(queue.mutex);
  const auto patience = std::chrono::milliseconds(InterruptMilliseconds);
  const auto done = [&queue, target = queue.submitted] { return queue.finished >= target; };
  while (!queue.progressed.wait_for(lock, patience, done)) {
    lock.unlock();
    if (interrupted())
      throw Interrupted();
    lock.lock();
  }
}

void Stream::abandon() {
  Queue &queue = *queue_;
  std::vector<Work> dropped; // destroyed without the lock
  std::lock_guard lock(queue.mutex);
  for (Task &task : queue.tasks)
    if (task.kind == Kind::Ordinary && task.owner == std::this_thread::get_id())
      dropped.push_back(std::exchange(task.work, nullptr));
  if (queue.running == std::this_thread::get_id())
    queue.abandoned.store(true, std::memory_order_relaxed);
}

void Stream::awaitAbandoned() {
  Queue &queue = *queue_;
  std::unique_lock lock(queue.mutex);
  queue.progressed.wait(lock, [&queue] { return !queue.abandoned.load(std::memory_order_relaxed); });
}

std::optional<Error> Stream::takeError() {
  Queue &queue = *queue_;
  std::lock_guard lock(queue.mutex);
  std::optional<Error> error;
  if (queue.error) {
    std::string message = queue.error->what();
    if (queue.dropped)
      message += text("; ", queue.dropped, " operations behind it on this stream did not run");
    error.emplace(queue.error->code, message);
  }
  queue.error.reset();
  queue.dropped = 0;
  return error;
}

void Stream::stop() {
  Queue &queue = *queue_;
  std::lock_guard lock(queue.mutex);
  queue.stopping = true;
  queue.arrived.notify_one();
}

void Stream::join() {
  if (queue_->thread.joinable())
    queue_->thread.join();
}

void Stream::unlockAfterFork(bool child) {
  if (!child)
    return queue_->mutex.unlock();
  // The thread and the pending work belong to the parent. The old queue is leaked: its thread object still
  // counts as running, and its work may hold objects that only the interpreter may release.
  bool stopping = queue_->stopping;
  (void)queue_.release();
  queue_.reset(new Queue);
  queue_->stopping = stopping;
}

void Stream::serve(Queue &queue) {
  for (std::unique_lock lock(queue.mutex);;) {
    queue.arrived.wait(lock, [&queue] { return queue.stopping || !queue.tasks.empty(); });
    if (queue.tasks.empty())
      return;
    Task task = std::move(queue.tasks.front());
    queue.tasks.pop_front();
    bool drop = task.kind == Kind::Ordinary && task.work && (queue.stopping || queue.error);
    if (drop)
      ++queue.dropped;
    if (task.kind == Kind::Ordinary)
      queue.running = task.owner;
    lock.unlock();
    if (drop)
      task.work = nullptr;
    else
      execute(queue, std::move(task));
    lock.lock();
    queue.running = {};
    queue.abandoned.store(false, std::memory_order_relaxed);
    ++queue.finished;
    queue.progressed.notify_all();
  }
}

void Stream::execute(Queue &queue, Task task) {
  std::optional<Error> error;
  try {
    if (task.work)
      task.work();
  } catch (const Error &failure) {
    error = failure;
  } catch (const std::exception &failure) {
    error.emplace(Code::DeviceLost, text("stream: ", failure.what()));
  }
  task.work = nullptr; // release what the work keeps alive before it counts as finished
  if (error) {
    std::lock_guard lock(queue.mutex);
    if (!queue.error)
      queue.error = error;
  }
}

} // namespace tpk
