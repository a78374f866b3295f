// The threads that torch computes with.
#pragma once

namespace tpk {

// torch's OpenMP threads spin for milliseconds after each of its calls, waiting for the next, and so take the
// cores from any other pool that starts right then. A grid that runs on them has them at once, and hot.
class OpenMP {
public:
  // The OpenMP runtime that torch is linked with; nullptr where torch is not loaded, where it computes with
  // another number of threads on this thread (its runtime would end and start threads at each change), and in
  // a forked child, which its runtime does not survive.
  static const OpenMP *ofTorch(unsigned width);
  // No runtime works in this process from now on.
  static void forked();

  // Calls `work(data)` on `width` threads, this one among them, and returns when all have; on fewer inside of
  // another parallel region.
  void run(void (*work)(void *), void *data, unsigned width) const { parallel_(work, data, width, 0); }

private:
  // Part of the ABI of libgomp, which the OpenMP runtimes of LLVM and Intel have, too.
  using Parallel = void (*)(void (*)(void *), void *, unsigned, unsigned);
  using MaxThreads = int (*)();

  OpenMP(Parallel parallel, MaxThreads maxThreads) : parallel_(parallel), maxThreads_(maxThreads) {}
  static const OpenMP *find();

  Parallel parallel_;
  MaxThreads maxThreads_;
};

} // namespace tpk
