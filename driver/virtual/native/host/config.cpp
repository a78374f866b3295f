#include "config.h"
#include "description.h"
#include "error.h"
#include "faults.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vnpu {
namespace {

struct Limits {
  const char *variable, *field;
  uint64_t least, most;
};

constexpr Limits Memory{"VNPU_MEMORY_BYTES", "memory_bytes", uint64_t(1) << 16, uint64_t(1) << 40};
constexpr Limits Scratchpad{"VNPU_SCRATCHPAD_BYTES", "scratchpad_bytes", 64, uint64_t(1) << 32};
constexpr Limits Cores{"VNPU_CORES", "cores", 1, 1024};
constexpr Limits QueueDepth{"VNPU_QUEUE_DEPTH", "queue_depth", 1, 4096};
constexpr Limits Count{"VNPU_COUNT", "count", 1, 64};
constexpr Limits Watchdog{"VNPU_WATCHDOG_MS", "watchdog_ms", 0, 86400000};

uint64_t number(const Limits &limits, uint64_t otherwise) {
  const char *value = std::getenv(limits.variable);
  if (!value || !*value)
    return otherwise;
  char *end = nullptr;
  errno = 0;
  uint64_t result = std::strtoull(value, &end, 10);
  if (errno || *end || *value < '0' || *value > '9' || result < limits.least || result > limits.most)
    throw Error(VNPU_INVALID_ARGUMENT,
                text("vnpu: ", limits.variable, " is '", value, "'; set it to a number from ", limits.least,
                     " to ", limits.most, ", or unset it"));
  return result;
}

void within(const Limits &limits, uint64_t value) {
  if (value < limits.least || value > limits.most)
    throw Error(VNPU_INVALID_ARGUMENT, text("vnpu_open: ", limits.field, " is ", value,
                                            "; it has to be from ", limits.least, " to ", limits.most));
}

template <size_t N> void put(char (&target)[N], const std::string &value, const char *what) {
  if (value.size() >= N)
    throw Error(VNPU_INVALID_ARGUMENT,
                text("vnpu_default_config: ", what, " is longer than ", N - 1, " characters: '", value, "'"));
  std::memcpy(target, value.c_str(), value.size() + 1);
}

template <size_t N> void terminated(const char (&value)[N], const char *field) {
  if (!std::memchr(value, 0, N))
    throw Error(VNPU_INVALID_ARGUMENT, text("vnpu_open: ", field, " is not ended by a zero byte"));
}

uint32_t usableCpus() {
  // The mask may be larger than cpu_set_t on big machines.
  for (size_t cpus = 1024; cpus <= size_t(1) << 20; cpus *= 2) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set)
      break;
    bool known = sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set) == 0;
    int count = known ? CPU_COUNT_S(CPU_ALLOC_SIZE(cpus), set) : 0;
    CPU_FREE(set);
    if (known)
      return uint32_t(count);
    if (errno != EINVAL)
      break;
  }
  return 1;
}

// The program is installed in `bin` next to the library's folder.
std::string installedChip() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<void *>(&installedChip), &here) || !here.dli_fname)
    return "vnpu-chip";
  std::string library = here.dli_fname;
  size_t slash = library.rfind('/');
  return (slash == std::string::npos ? std::string(".") : library.substr(0, slash)) + "/../bin/vnpu-chip";
}

std::string variable(const char *name, const std::string &otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// The text of the file that VNPU_DESCRIPTION names.
std::string describedBy(const std::string &path) {
  FILE *file = path.empty() ? nullptr : std::fopen(path.c_str(), "r");
  if (!file && !path.empty())
    throw Error(VNPU_INVALID_ARGUMENT, text("vnpu_default_config: VNPU_DESCRIPTION is '", path,
                                            "', which cannot be read: ", std::strerror(errno)));
  if (!file)
    return "";
  std::string whole(2 * sizeof(vnpu_config::description), '\0');
  whole.resize(std::fread(whole.data(), 1, whole.size(), file));
  std::fclose(file);
  return whole;
}

std::string chipPath() { return variable("VNPU_CHIP", installedChip()); }

} // namespace

uint32_t chipCount() {
  struct stat found;
  std::string path = chipPath();
  const bool there =
      stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && access(path.c_str(), X_OK) == 0;
  return there ? uint32_t(number(Count, 1)) : 0;
}

vnpu_config defaultConfig() {
  vnpu_config config{};
  config.memory_bytes = number(Memory, uint64_t(8) << 30);
  config.scratchpad_bytes = number(Scratchpad, uint64_t(16) << 20);
  // One kernel may wait for another, so a chip has at least two cores.
  config.cores = uint32_t(number(Cores, std::clamp<uint64_t>(usableCpus(), 2, Cores.most)));
  config.queue_depth = uint32_t(number(QueueDepth, 64));
  config.watchdog_ms = uint32_t(number(Watchdog, 3000));
  put(config.chip_path, chipPath(), "the path of vnpu-chip");
  put(config.faults, variable("VNPU_FAULTS", ""), "VNPU_FAULTS");
  put(config.description, describedBy(variable("VNPU_DESCRIPTION", "")), "the text in VNPU_DESCRIPTION");
  return config;
}

void check(const vnpu_config &config) {
  within(Memory, config.memory_bytes);
  within(Scratchpad, config.scratchpad_bytes);
  within(Cores, config.cores);
  within(QueueDepth, config.queue_depth);
  within(Watchdog, config.watchdog_ms);
  terminated(config.chip_path, "chip_path");
  terminated(config.faults, "faults");
  Faults::parse("vnpu_open", config.faults);
  terminated(config.description, "description");
}

vnpu_config described(vnpu_config config) {
  if (!config.description[0])
    return config;
  try {
    const ChipDescription chip = ChipDescription::parse(config.description);
    config.cores = chip.cores();
    config.scratchpad_bytes = chip.windowBytes();
    config.memory_bytes = std::min(config.memory_bytes, chip.memories[0].bytes);
  } catch (const std::invalid_argument &error) {
    throw Error(VNPU_INVALID_ARGUMENT, text("vnpu_open: ", error.what()));
  }
  return config;
}

} // namespace vnpu
