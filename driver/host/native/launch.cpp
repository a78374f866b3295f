#include "access.h"
#include "crashes.h"
#include "grid.h"
#include "host.h"
#include "interrupts.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

namespace tpk {
namespace {

// The time limit of a launch in milliseconds, from TPK_WATCHDOG_MS; 0: none.
int64_t requestedMilliseconds() {
  static const int64_t limit = [] {
    constexpr int64_t Most = 86'400'000;
    const char *value = std::getenv("TPK_WATCHDOG_MS");
    const std::string_view digits = value ? value : "";
    int64_t number = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (!digits.empty() &&
        (error != std::errc() || rest != digits.data() + digits.size() || number < 0 || number > Most))
      throw Error(Code::LaunchError,
                  text("launch: TPK_WATCHDOG_MS is '", value, "'; set it to milliseconds from 1 to ", Most,
                       ", or to 0 or unset it for no limit"));
    return number;
  }();
  return limit;
}

thread_local Span chosen = {0, std::numeric_limits<int64_t>::max()};

Denormals denormalsOfLaunch() {
  try {
    return requestedDenormals();
  } catch (const std::invalid_argument &mistake) {
    throw Error(Code::LaunchError, text("launch: ", mistake.what()));
  }
}

// Runs programs of a checked grid to their end for a waiting caller, on torch's threads if possible. `args`
// is aligned to 8.
void runGrid(const Function &function, const int32_t (&grid)[3], const Span &programs, const void *args,
             const Job::Limits &limits) {
  Pool &pool = Pool::instance();
  Job job(function, args, grid, programs, limits, pool.width());
  const bool waits = !limits.abandoned;
  pool.run(job, waits);
  const Job::Stop stop = job.stopped();
  if (stop == Job::Stop::Interrupted)
    throw Interrupted();
  // Also if all programs have run: what they waited for was perhaps not there.
  if (limits.loss.happened())
    throw Error(Code::DeviceLost,
                text("launch: kernel '", function.name, "' was stopped: ", limits.loss.reason()));
  const Job::Failure &failure = job.failure();
  switch (failure.kind) {
  case Job::Failure::None:
    break;
  case Job::Failure::Kernel:
    throw Error(Code::LaunchError,
                text("launch: kernel '", function.name, "' failed with code ", failure.code, " in programs ",
                     failure.begin, " to ", failure.end - 1, " of ", job.total()));
  case Job::Failure::Assertion:
    throw Error(failure.assertion.access.empty() ? Code::AssertionFailed : Code::MemoryAccessError,
                text("launch: kernel '", function.name, "': ", failure.assertion.describe()));
  case Job::Failure::Scratch:
    throw Error(Code::OutOfMemory,
                text("launch: no memory for the ", function.scratchBytes,
                     " bytes of scratch that each thread of kernel '", function.name, "' needs"));
  }
  if (!job.left())
    return;
  if (stop == Job::Stop::Closed)
    throw Error(Code::LaunchError,
                text("launch: kernel '", function.name, "' was cancelled: the device closes"));
  if (stop == Job::Stop::TimedOut)
    throw Error(Code::LaunchTimeout, text("launch: kernel '", function.name, "' was stopped after ",
                                          limits.milliseconds, " ms, when ", job.total() - job.left(), " of ",
                                          job.total(), " programs had run; TPK_WATCHDOG_MS sets the limit"));
}

} // namespace

void choosePrograms(int64_t begin, int64_t end) { chosen = {begin, end}; }

uint64_t Host::addFunction(Function made) {
  catchCrashes();
  auto function = std::make_shared<Function>(std::move(made));
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

void Host::launch(uint64_t functionHandle, uint32_t x, uint32_t y, uint32_t z, uint64_t streamHandle,
                  const void *args, uint64_t size) {
  const uint32_t counts[3] = {x, y, z};
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
  if (size < function->argumentBytes)
    throw Error(Code::LaunchError,
                text("launch: kernel '", function->name, "' checks its accesses, and takes ",
                     function->argumentBytes, " bytes of arguments and their bounds; args has ", size));
  if (function->argumentBytes)
    forgetMappings();
  const Span programs = {std::min(chosen.begin, total), std::min(chosen.end, total)};
  if (programs.begin >= programs.end)
    return;
  const int32_t grid[3] = {int32_t(counts[0]), int32_t(counts[1]), int32_t(counts[2])};
  const Job::Limits limits = {closed_, target ? &target->abandoned() : nullptr, loss_,
                              requestedMilliseconds(), denormalsOfLaunch()};
  bool aligned = reinterpret_cast<uint64_t>(args) % alignof(uint64_t) == 0;
  if (!target && aligned)
    return runGrid(*function, grid, programs, args, limits);
  std::vector<uint64_t> block((size + 7) / 8);
  if (size)
    std::memcpy(block.data(), args, size);
  if (!target)
    return runGrid(*function, grid, programs, block.data(), limits);
  target->submit([limits, function, grid, programs, block = std::move(block)] {
    runGrid(*function, grid, programs, block.data(), limits);
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
    static_cast<tpk::Host *>(context)->launch(function, gridX, gridY, gridZ, stream, args, argsSize);
    return 0;
  } catch (const tpk::Error &error) {
    return report(tpk::launchCode(error.code), error.what());
  } catch (const tpk::Interrupted &) {
    return report(tpk::Code::LaunchError, "launch: interrupted");
  } catch (const std::bad_alloc &) {
    return report(tpk::Code::OutOfMemory, "launch: the process is out of memory");
  } catch (const std::exception &error) {
    return report(tpk::Code::DeviceLost, error.what());
  }
}
