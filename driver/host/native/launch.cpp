#include "grid.h"
#include "host.h"

#include <cstdio>
#include <cstring>

namespace tpk {
namespace {

// Runs a checked grid to its end, with `borrow` on torch's threads where it can. `args` is aligned to 8.
void runGrid(const Function &function, const int32_t (&grid)[3], int64_t total, const void *args,
             const std::atomic<bool> &cancel, bool borrow) {
  Pool &pool = Pool::instance();
  Job job(function, args, grid, total, cancel, pool.width());
  pool.run(job, borrow);
  const Job::Failure &failure = job.failure();
  switch (failure.kind) {
  case Job::Failure::None:
    return;
  case Job::Failure::Kernel:
    throw Error(Code::LaunchError,
                text("launch: kernel '", function.name, "' failed with code ", failure.code, " in programs ",
                     failure.begin, " to ", failure.end - 1, " of ", total));
  case Job::Failure::Assertion:
    throw Error(Code::AssertionFailed,
                text("launch: kernel '", function.name, "': ", failure.assertion.describe()));
  case Job::Failure::Scratch:
    throw Error(Code::OutOfMemory,
                text("launch: no memory for the ", function.scratchBytes,
                     " bytes of scratch that each thread of kernel '", function.name, "' needs"));
  case Job::Failure::Cancelled:
    throw Error(Code::LaunchError,
                text("launch: kernel '", function.name, "' was cancelled: the device closes"));
  }
}

} // namespace

uint64_t Host::addFunction(uint64_t entry, uint64_t scratchBytes, uint64_t clearedBytes, bool asserts,
                           std::string name) {
  auto function = std::make_shared<Function>(
      Function{reinterpret_cast<KernelEntry>(entry), scratchBytes, clearedBytes, asserts, std::move(name)});
  std::lock_guard lock(tables_);
  functions_.emplace(nextHandle_, std::move(function));
  return nextHandle_++;
}

FunctionPointer Host::removeFunction(uint64_t handle) {
  std::lock_guard lock(tables_);
  auto entry = functions_.find(handle);
  if (entry == functions_.end())
    return nullptr;
  FunctionPointer function = entry->second;
  functions_.erase(entry);
  return function;
}

void Host::launch(uint64_t streamHandle, uint64_t functionHandle, const uint32_t (&counts)[3],
                  const void *args, uint64_t size) {
  FunctionPointer function;
  StreamPointer target;
  {
    std::lock_guard lock(tables_);
    auto entry = functions_.find(functionHandle);
    if (entry == functions_.end())
      throw Error(Code::LaunchError,
                  text("launch: function ", functionHandle, " does not exist or was unloaded"));
    function = entry->second;
    if (streamHandle) {
      auto known = streams_.find(streamHandle);
      if (known == streams_.end())
        throw Error(Code::LaunchError,
                    text("launch: stream ", streamHandle, " does not exist or was destroyed"));
      target = known->second;
    }
  }
  int64_t total = countPrograms("launch", function->name, counts, [](const std::string &sentence) {
    throw Error(Code::LaunchError, sentence);
  });
  if (total == 0)
    return;
  if (!args && size)
    throw Error(Code::LaunchError, text("launch: args of kernel '", function->name, "' is NULL"));
  const int32_t grid[3] = {int32_t(counts[0]), int32_t(counts[1]), int32_t(counts[2])};
  bool aligned = reinterpret_cast<uint64_t>(args) % alignof(uint64_t) == 0;
  if (!target && aligned)
    return runGrid(*function, grid, total, args, cancel_, true);
  std::vector<uint64_t> block((size + 7) / 8);
  if (size)
    std::memcpy(block.data(), args, size);
  if (!target)
    return runGrid(*function, grid, total, block.data(), cancel_, true);
  target->submit([this, function, grid, total, block = std::move(block)] {
    runGrid(*function, grid, total, block.data(), cancel_, false);
  });
}

} // namespace tpk

int32_t tpk_host_launch(void *context, uint64_t stream, uint64_t function, uint32_t gridX, uint32_t gridY,
                        uint32_t gridZ, const void *args, uint64_t argsSize, char *message,
                        uint64_t messageSize) {
  auto report = [&](tpk::Code code, const char *what) {
    if (message && messageSize)
      std::snprintf(message, messageSize, "%s: %s", tpk::DeviceName, what);
    return int32_t(code);
  };
  try {
    static_cast<tpk::Host *>(context)->launch(stream, function, {gridX, gridY, gridZ}, args, argsSize);
    return 0;
  } catch (const tpk::Error &error) {
    return report(error.code == tpk::Code::InvalidArgument ? tpk::Code::LaunchError : error.code,
                  error.what());
  } catch (const std::bad_alloc &) {
    return report(tpk::Code::OutOfMemory, "launch: the process is out of memory");
  } catch (const std::exception &error) {
    return report(tpk::Code::DeviceLost, error.what());
  }
}
