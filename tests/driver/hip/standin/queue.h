// Queues of work, each with a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace standin {

struct Queue;

// Everything that was put on a queue up to its work of that number.
struct Point {
  std::shared_ptr<Queue> queue;
  uint64_t number;
  bool reached() const;
};

// What a queue runs, given its number in the order of all work.
using Run = std::function<void(uint64_t order)>;

struct Work {
  const char *kind;
  uint64_t number;
  std::vector<Point> after;
  Run run;
};

// What an event stands for since it was last recorded.
struct Recording {
  Point point;
  uint64_t time = 0; // nanoseconds; 0 before it is reached
};

struct Queue {
  uint64_t handle; // 0: the null stream
  int device;
  bool blocking; // whether it waits for the null stream and the null stream for it
  uint64_t submitted = 0, done = 0;
  bool held = false, closed = false;
  std::deque<Work> work;

  bool idle() const { return submitted == done; }
};

inline bool Point::reached() const { return queue->done >= number; }

// Starts the queue's thread, which ends some time after `closed` is set. What has not started then is
// dropped.
void start(const std::shared_ptr<Queue> &queue);

} // namespace standin
