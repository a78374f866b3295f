#include "processor.h"
#include "timeline.h"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

namespace vnpu {

Processor *Processor::instance_ = nullptr;

void Processor::start(const char *description) {
  instance_ = new Processor(ChipDescription::parse(description)); // never destroyed, as its threads
  for (uint32_t index = 0; index < instance_->players_.size(); ++index) {
    std::thread thread([index] { instance_->work(index); });
    pthread_setname_np(thread.native_handle(), "vnpu-core");
    instance_->players_[index]->thread = thread.native_handle();
    thread.detach();
  }
}

Processor::Processor(ChipDescription chip)
    : chip_(std::move(chip)), trace_(chip_), denormals_(tpk::requestedDenormals()) {
  for (uint32_t index = 0; index < chip_.cores(); ++index)
    players_.push_back(std::make_unique<Player>(chip_));
}

void Processor::run(const Kernel &kernel, const void *args, const int32_t (&grid)[3], uint32_t queue) {
  std::lock_guard one(launches_);
  Launch launch{kernel, args, grid, int64_t(grid[0]) * grid[1] * grid[2], 0, {}, {}, 0};
  launch.parts = std::min<int64_t>(launch.total, int64_t(players_.size()));
  launch.failures.resize(size_t(launch.parts));
  launch.statuses.resize(size_t(launch.parts));
  std::vector<Log *> logs;
  {
    std::lock_guard lock(mutex_);
    for (int64_t index = 0; index < launch.parts; ++index) {
      Player &player = *players_[size_t(index)];
      player.core.begin();
      player.stopped = false;
      player.plays = true;
      logs.push_back(&player.core.log());
    }
    launch.running = uint32_t(launch.parts);
    launch_ = &launch;
    arrived_.notify_all();
  }
  Simulation simulation(chip_, logs, trace_.intervals(), Trace::Most);
  const double cycles = chip_.launchCycles + simulation.run();
  {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return !launch.running; });
    launch_ = nullptr;
  }
  for (size_t index = 0; index < launch.failures.size(); ++index)
    if (launch.statuses[index] != VNPU_OK)
      throw Failure(launch.statuses[index], launch.failures[index]);
  const auto [start, nanoseconds] = Timeline::instance().launch(queue, cycles);
  Counters &counters = region.header().counters;
  counters.programs += uint64_t(launch.total);
  counters.kernelNanoseconds += nanoseconds;
  trace_.add(kernel.name, launch.total, start, cycles, needed(launch.parts), simulation);
}

// Bytes of global memory that the transfers of a launch have read, each once, and those that they have
// written.
double Processor::needed(int64_t parts) const {
  uint64_t bursts = 0;
  for (const bool written : {false, true}) {
    Bursts all;
    for (int64_t index = 0; index < parts; ++index)
      for (const auto &[word, bits] : players_[size_t(index)]->core.reached(written))
        all[word] |= bits;
    for (const auto &[word, bits] : all)
      bursts += uint64_t(std::popcount(bits));
  }
  return double(bursts * chip_.memories[0].burstBytes);
}

void Processor::work(uint32_t index) {
  useAlternateStack();
  Player &player = *players_[index];
  playing = {&player.core, &player.stopped, {}};
  for (;;) {
    Launch *launch;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [&] { return player.plays; });
      launch = launch_;
      const int64_t begin = launch->begin(index), end = launch->begin(index + 1);
      player.running = {launch->kernel.name.c_str(), begin, end, launch->total};
    }
    play(*launch, index);
    player.core.log().end();
    std::lock_guard lock(mutex_);
    player.plays = false;
    player.running = {};
    if (!--launch->running)
      finished_.notify_one(); // the launch may be destroyed from here on
  }
}

// Runs the programs of a core. Called without the lock.
void Processor::play(Launch &launch, uint32_t index) {
  Player &player = *players_[index];
  const Kernel &kernel = launch.kernel;
  stayIfHung();
  activity = player.running;
  void *window = player.core.window().base();
  int32_t code = 0;
  if (kernel.clearedBytes)
    std::memset(window, 0, kernel.clearedBytes);
  const tpk::Assertion *assertion;
  {
    tpk::FloatEnvironment environment(denormals_);
    assertion = tpk::callAsserting(kernel.entry, launch.args, window, activity.begin, activity.end,
                                   launch.grid, code);
  }
  const Activity ran = std::exchange(activity, {});
  stayIfHung();
  if (!assertion && !code)
    return;
  std::string why;
  vnpu_status status = VNPU_LAUNCH_FAILED;
  if (!assertion) {
    why = text("failed with code ", code);
  } else if (assertion->access.empty()) {
    why = assertion->describe();
    status = VNPU_ASSERTION_FAILED;
  } else if (playing.mistake.empty()) {
    return; // stopped, because an earlier program has failed
  } else {
    why = std::move(playing.mistake);
  }
  launch.failures[index] = text("kernel '", kernel.name, "', core ", index, ", programs ", ran.begin, " to ",
                                ran.end - 1, " of ", ran.total, ": ", why);
  launch.statuses[index] = status;
  // The failure of the first core is reported, so cores before this one go on.
  for (size_t later = index + 1; later < size_t(launch.parts); ++later)
    players_[later]->stopped = true;
}

void Processor::onFault(uint64_t address) {
  if (!playing.core || !activity.name)
    return;
  const Header &header = region.header();
  const bool global = address - header.rangeStart < header.rangeBytes;
  if (!global && !playing.core->window().contains(address))
    return;
  const int32_t line = playing.core->line();
  const std::string where = line > 0 ? text("; the last command before that is at line ", line) : "";
  playing.mistake =
      global
          ? text("core code accessed global memory, to which it has no access: ", addressMark(address), where)
          : text("core code accessed ", playing.core->window().place(address), ", where it has no access",
                 where);
  // The handler does not return, so it unblocks signals itself.
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  endKernel();
}

void Processor::watch(uint32_t milliseconds) {
  std::lock_guard lock(mutex_);
  for (auto &player : players_) {
    if (!player->running.name)
      continue;
    const uint64_t now = cpuNanoseconds(player->thread), progress = player->core.progress();
    if (player->seenProgress != progress) {
      player->seenProgress = progress;
      player->seenNanoseconds = now;
    } else if (milliseconds && now - player->seenNanoseconds > uint64_t(milliseconds) * 1000000u) {
      const Activity &running = player->running;
      lose(text("kernel '", running.name, "' was stopped by the watchdog: programs ", running.begin, " to ",
                running.end - 1, " of ", running.total, " have taken more than ", milliseconds,
                " ms of CPU time without a command for another unit; VNPU_WATCHDOG_MS sets the limit")
               .c_str());
    }
  }
}

} // namespace vnpu
