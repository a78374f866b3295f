// A queue of work with its own thread.
#pragma once

#include "status.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace tpk {

// Work runs in the order of submission. After a failure, later work is dropped until the failure has been
// taken. Records and waits of events always run, or other streams would wait forever.
class Stream {
public:
  using Work = std::function<void()>;
  enum class Kind { Ordinary, Event };

  Stream() : queue_(new Queue) {}
  ~Stream();

  // Starts the thread at the first call. Throws DeviceLost if the system cannot create one.
  void submit(Work work, Kind kind = Kind::Ordinary);
  // Returns when everything submitted before the call has run. Throws Interrupted.
  void drain();
  // Drops what the calling thread has submitted, except records and waits of events. Running work is asked to
  // stop by `abandoned`; `awaitAbandoned` waits until it has ended.
  void abandon();
  void awaitAbandoned();
  const std::atomic<bool> &abandoned() const { return queue_->abandoned; }
  // The failure since the last call, if any.
  std::optional<Error> takeError();
  // `stop` drops work that has not started, and `join` waits for the thread to end. Then work runs on the
  // caller.
  void stop();
  void join();

  void lockForFork() { queue_->mutex.lock(); }
  void unlockAfterFork(bool child);

private:
  struct Task {
    Work work; // none: dropped
    Kind kind;
    std::thread::id owner;
  };
  struct Queue {
    std::mutex mutex;
    std::condition_variable arrived, progressed;
    std::deque<Task> tasks;
    uint64_t submitted = 0, finished = 0;
    bool stopping = false;
    std::optional<Error> error;
    uint64_t dropped = 0;
    std::thread::id running; // the thread that submitted the running work
    std::atomic<bool> abandoned{false};
    std::thread thread;
  };

  static void serve(Queue &queue);
  static void execute(Queue &queue, Task task);

  std::unique_ptr<Queue> queue_;
};

} // namespace tpk
