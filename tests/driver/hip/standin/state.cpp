#include "standin.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <sys/uio.h>
#include <unistd.h>

namespace standin {

State &state() {
  static State *made = new State;
  return *made;
}

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

void note(LogEntry entry) {
  if (const char *path = entry.undefined ? std::getenv("HIP_STANDIN_LOG") : nullptr)
    if (FILE *file = std::fopen(path, "a")) {
      std::fprintf(file, "%s: %s\n", entry.call.c_str(), entry.text.c_str());
      std::fclose(file);
    }
  state().log.push_back(std::move(entry));
}

uint64_t newHandle(char kind) {
  // Above all addresses of processes, and odd: nothing else looks like it.
  return uint64_t(0x5A) << 56 | uint64_t(kind) << 48 | (++state().nextHandle << 4 | 1);
}

int &currentDevice() {
  static thread_local int index = 0;
  if (index >= int(state().devices.size()))
    index = 0;
  return index;
}

Device &device(int index) {
  auto &devices = state().devices;
  if (index < 0 || index >= int(devices.size()))
    refuse(hipErrorInvalidDevice, "there is no device ", index, " of ", devices.size());
  return devices[index];
}

Device &current() { return device(currentDevice()); }

void configure(const std::string &architectures, size_t memoryBytes, Lock &lock) {
  State &all = state();
  all.configured = true;
  std::vector<std::shared_ptr<Queue>> queues;
  for (auto &[handle, queue] : all.streams)
    queues.push_back(queue);
  for (Device &old : all.devices)
    queues.push_back(old.null);
  for (auto &queue : queues)
    queue->closed = true;
  all.changed.notify_all();
  all.changed.wait(lock, [&] {
    return std::all_of(queues.begin(), queues.end(), [](auto &queue) { return queue->idle(); });
  });
  all.streams.clear();
  all.events.clear();
  all.modules.clear();
  all.functions.clear();
  all.functionNames.clear();
  all.devices.clear();
  std::istringstream names(architectures);
  for (std::string name; std::getline(names, name, ',');) {
    auto found = findArchitecture(name);
    if (!found) {
      std::fprintf(stderr, "HIP stand-in: there is no architecture '%s'\n", name.c_str());
      std::abort();
    }
    auto null = std::make_shared<Queue>();
    null->device = int(all.devices.size());
    null->blocking = true;
    null->handle = 0;
    start(null);
    all.devices.push_back({found, std::make_unique<Memory>(memoryBytes), null});
  }
}

void configureFromEnvironment(Lock &lock) {
  State &all = state();
  if (all.configured)
    return;
  auto value = [](const char *name, const char *otherwise) {
    const char *set = std::getenv(name);
    return std::string(set ? set : otherwise);
  };
  configure(value("HIP_STANDIN_DEVICES", "gfx942"),
            std::strtoull(value("HIP_STANDIN_MEMORY", "1073741824").c_str(), nullptr, 10), lock);
  all.kernelMicroseconds = std::strtoull(value("HIP_STANDIN_KERNEL_US", "0").c_str(), nullptr, 10);
  all.copyMicroseconds = std::strtoull(value("HIP_STANDIN_COPY_US", "0").c_str(), nullptr, 10);
  std::string wrong = all.faults.arm(value("HIP_STANDIN_FAULTS", ""));
  if (!wrong.empty()) {
    std::fprintf(stderr, "HIP stand-in: %s\n", wrong.c_str());
    std::abort();
  }
}

std::shared_ptr<Queue> queueOf(hipStream_t stream) {
  if (!stream)
    return current().null;
  auto found = state().streams.find(uint64_t(stream));
  if (found == state().streams.end())
    misuse(hipErrorInvalidHandle, "there is no stream ", stream);
  return found->second;
}

std::shared_ptr<Queue> queueHere(hipStream_t stream) {
  auto queue = queueOf(stream);
  if (queue->device != currentDevice())
    misuse(hipErrorInvalidHandle, "stream ", stream, " is of device ", queue->device, ", device ",
           currentDevice(), " is current");
  return queue;
}

int checkRange(const char *what, const void *address, size_t bytes) {
  auto &devices = state().devices;
  for (size_t index = 0; index < devices.size(); ++index) {
    if (!devices[index].memory->reserved(uint64_t(address)))
      continue;
    auto [begin, size] = devices[index].memory->find(uint64_t(address));
    if (!begin)
      misuse(hipErrorInvalidValue, what, ' ', address, " is in no live allocation of device ", index);
    if (bytes > begin + size - uint64_t(address))
      misuse(hipErrorInvalidValue, what, ' ', address, " + ", bytes, " leaves the ", size, " bytes at ",
             reinterpret_cast<void *>(begin));
    return int(index);
  }
  misuse(hipErrorInvalidValue, what, ' ', address, " is not the memory of a device");
}

bool isDeviceAddress(const void *address) {
  for (auto &device : state().devices)
    if (device.memory->reserved(uint64_t(address)))
      return true;
  return false;
}

uint8_t *contents(const void *address) {
  for (auto &device : state().devices)
    if (device.memory->reserved(uint64_t(address)))
      return device.memory->contents(uint64_t(address));
  return nullptr;
}

namespace {

// The longest piece that one call of the kernel moves.
constexpr size_t Most = size_t(1) << 30;

template <class Move> bool inPieces(void *to, const void *from, size_t bytes, Move move) {
  while (bytes) {
    iovec local{}, remote{};
    size_t piece = std::min(bytes, Most);
    local.iov_len = remote.iov_len = piece;
    ssize_t moved = move(local, remote, to, from);
    if (moved <= 0)
      return false;
    to = static_cast<uint8_t *>(to) + moved;
    from = static_cast<const uint8_t *>(from) + moved;
    bytes -= size_t(moved);
  }
  return true;
}

} // namespace

bool readHost(void *to, const void *from, size_t bytes) {
  return inPieces(to, from, bytes, [](iovec &local, iovec &remote, void *to, const void *from) {
    local.iov_base = to;
    remote.iov_base = const_cast<void *>(from);
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  });
}

bool writeHost(void *to, const void *from, size_t bytes) {
  return inPieces(to, from, bytes, [](iovec &local, iovec &remote, void *to, const void *from) {
    local.iov_base = const_cast<void *>(from);
    remote.iov_base = to;
    return process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
  });
}

} // namespace standin
