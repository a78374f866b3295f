// torch's OpenMP threads.
#pragma once

namespace tpk {

// After each call, torch's OpenMP threads spin for milliseconds to wait for the next one, and so take the
// cores from any other pool that starts at that time. A grid that runs on these threads gets them at once,
// already running.
class OpenMP {
public:
  // torch's OpenMP runtime. nullptr in three cases: torch is not loaded; torch uses another number of threads
  // on this thread, since its runtime would end and start threads at each change; or in a forked child, which
  // the runtime does not support.
  static const OpenMP *ofTorch(unsigned width);
  // No runtime works in this process from now on.
  static void forked();

  // Calls `work(data)` on `width` threads, including this one, and returns when all calls have returned; on
  // fewer threads inside another parallel region.
  void run(void (*work)(void *), void *data, unsigned width) const { parallel_(work, data, width, 0); }
  // In such a call: the number of its thread, from 0, that of the caller.
  unsigned thread() const { return unsigned(thread_()); }

private:
  // Part of the ABI of libgomp, which LLVM's and Intel's OpenMP runtimes also implement.
  using Parallel = void (*)(void (*)(void *), void *, unsigned, unsigned);
  using Number = int (*)();

  OpenMP(Parallel parallel, Number maxThreads, Number thread)
      : parallel_(parallel), maxThreads_(maxThreads), thread_(thread) {}
  static const OpenMP *find();

  Parallel parallel_;
  Number maxThreads_, thread_;
};

} // namespace tpk
