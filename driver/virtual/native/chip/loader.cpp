#include "loader.h"
#include "group.h"
#include "signal_names.h"

#include "units/allocations.h"
#include "units/processor.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vnpu {
namespace {

constexpr unsigned TrialSeconds = 2; // of CPU time: the machine may be busy
constexpr unsigned PatienceSeconds = 20;

[[noreturn]] void refuse(const std::string &why) { throw Failure(VNPU_INVALID_MODULE, why); }

int memoryFile(const std::string &image) {
  int descriptor = memfd_create("vnpu-module", MFD_CLOEXEC);
  if (descriptor < 0)
    refuse(text("the chip has no room for another module: ", std::strerror(errno)));
  for (size_t done = 0; done < image.size();) {
    ssize_t count = write(descriptor, image.data() + done, image.size() - done);
    if (count < 0) {
      int error = errno;
      close(descriptor);
      throw Failure(VNPU_OUT_OF_MEMORY,
                    text("no memory for the ", image.size(), " bytes of the binary: ", std::strerror(error)));
    }
    done += size_t(count);
  }
  return descriptor;
}

// Loads and unloads the file in a separate process first. The dynamic linker trusts its input, and a damaged
// file may make it crash or loop forever.
void tryOut(const char *path) {
  // Shared with that process only.
  static auto *tried = static_cast<std::atomic<bool> *>(
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (tried == MAP_FAILED)
    throw Failure(VNPU_OUT_OF_MEMORY, "no memory to try the binary in");
  *tried = false;
  pid_t child = fork();
  if (child < 0)
    throw Failure(VNPU_OUT_OF_MEMORY, text("no process to try the binary in: ", std::strerror(errno)));
  if (child == 0) {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
      std::signal(number, SIG_DFL);
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rlimit seconds{TrialSeconds, TrialSeconds};
    setrlimit(RLIMIT_CPU, &seconds);
    alarm(PatienceSeconds);
    if (void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) // else it will report the error again
      dlclose(handle);                                      // which runs code of the file, too
    *tried = true;
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGXCPU || signal == SIGKILL || signal == SIGALRM)
    refuse(
        text("the binary is damaged: loading it does not end within ", TrialSeconds, " seconds of CPU time"));
  if (signal)
    refuse(text("the binary is damaged: loading it ends in ", tpk::signalName(signal)));
  if (!*tried)
    refuse("the binary ends the process that loads it");
}

} // namespace

Loader &Loader::instance() {
  static Loader *loader = new Loader;
  return *loader;
}

void Loader::addPiece(uint64_t upload, const void *data, uint64_t size) {
  uploads_[upload].append(static_cast<const char *>(data), size);
}

uint64_t Loader::load(uint64_t upload) {
  std::string image = std::move(uploads_[upload]);
  uploads_.erase(upload);
  Symbols symbols = readSharedObject(image);
  if (!symbols.contains(tpk::AbiVersionSymbol))
    refuse(text("the binary holds no kernel for this chip: it does not define ", tpk::AbiVersionSymbol));
  int descriptor = memoryFile(image);
  std::string path = text("/proc/self/fd/", descriptor);
  void *handle = nullptr;
  try {
    tryOut(path.c_str());
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      std::string why = dlerror();
      if (why.starts_with(path + ": "))
        why.erase(0, path.size() + 2);
      refuse("the binary does not load: " + why);
    }
    link_map *map = nullptr;
    dlinfo(handle, RTLD_DI_LINKMAP, &map);
    Module module{handle, descriptor, map->l_addr, std::move(symbols), {}};
    auto version = *static_cast<const int32_t *>(data(module, tpk::AbiVersionSymbol, sizeof(int32_t)));
    if (version != tpk::AbiVersion)
      refuse(text("the binary was made for kernel ABI ", version, ", this chip runs ", tpk::AbiVersion));
    modules_.emplace(next_, std::move(module));
  } catch (const Failure &) {
    if (handle)
      dlclose(handle);
    close(descriptor);
    throw;
  }
  return next_++;
}

void Loader::unload(uint64_t number) {
  auto known = modules_.find(number);
  if (known == modules_.end())
    return;
  std::vector<std::shared_ptr<const Kernel>> gone;
  {
    std::lock_guard lock(mutex_);
    for (uint64_t kernel : known->second.kernels) {
      gone.push_back(std::move(kernels_[kernel]));
      kernels_.erase(kernel);
    }
  }
  // The library has waited for launches, except those that another thread was submitting at that moment.
  for (auto &kernel : gone)
    while (kernel.use_count() > 1)
      usleep(100);
  dlclose(known->second.handle);
  close(known->second.descriptor);
  modules_.erase(known);
}

const void *Loader::data(const Module &module, const std::string &name, uint64_t size) const {
  auto symbol = module.symbols.find(name);
  if (symbol == module.symbols.end())
    refuse(text("the binary does not define ", name));
  if (symbol->second.size < size)
    refuse(text("the binary's symbol ", name, " has ", symbol->second.size, " bytes, not ", size));
  return reinterpret_cast<const void *>(module.base + symbol->second.offset);
}

uint64_t Loader::symbol(uint64_t number, const std::string &name, void *answer, uint64_t capacity) {
  auto known = modules_.find(number);
  if (known == modules_.end())
    refuse(text("module ", number, " is not loaded"));
  Module &module = known->second;
  auto entry = module.symbols.find(name);
  if (entry == module.symbols.end() || !entry->second.executable)
    refuse(text("the module has no kernel '", name, "'"));
  int64_t sizes[2] = {};
  std::memcpy(sizes, data(module, name + tpk::ScratchSuffix, sizeof sizes), sizeof sizes);
  auto [scratch, cleared] = sizes;
  uint64_t limit = limits.scratchpadBytes;
  if (scratch < 0 || uint64_t(scratch) > limit)
    refuse(text("kernel '", name, "' needs ", scratch, " bytes of scratchpad, a core has ", limit,
                " (VNPU_SCRATCHPAD_BYTES)"));
  if (cleared < 0 || cleared > scratch)
    refuse(
        text("kernel '", name, "' wants ", cleared, " of ", scratch, " bytes of scratchpad to be cleared"));
  requireChip(module, name);
  const void *table = data(module, name + tpk::PointersSuffix, sizeof(uint32_t));
  int32_t count = 0;
  std::memcpy(&count, table, sizeof count);
  uint64_t size = sizeof(SymbolAnswer) + uint64_t(uint32_t(count)) * sizeof(uint32_t);
  if (count < 0 || size > capacity)
    refuse(text("kernel '", name, "' says that it has ", count, " pointers"));
  data(module, name + tpk::PointersSuffix, sizeof(uint32_t) * (1 + uint64_t(count)));
  SymbolAnswer head{next_++, uint64_t(scratch), uint32_t(count), 0};
  std::memcpy(answer, &head, sizeof head);
  std::memcpy(static_cast<char *>(answer) + sizeof head, static_cast<const char *>(table) + sizeof count,
              uint64_t(count) * sizeof(uint32_t));
  auto function = reinterpret_cast<tpk::KernelEntry>(module.base + entry->second.offset);
  module.kernels.push_back(head.function);
  std::lock_guard lock(mutex_);
  kernels_.emplace(head.function,
                   std::make_shared<Kernel>(Kernel{function, uint64_t(scratch), uint64_t(cleared), name}));
  return size;
}

// Refuses a kernel that was compiled for another description, or for none.
void Loader::requireChip(const Module &module, const std::string &name) const {
  const Processor *processor = Processor::instance();
  const bool described = module.symbols.contains(name + tpk::ChipSuffix);
  if (!processor && !described)
    return;
  if (!processor)
    refuse(text("kernel '", name,
                "' was compiled for a chip with a description, and this chip has none; set "
                "VNPU_DESCRIPTION"));
  if (!described)
    refuse(text("kernel '", name, "' was compiled for cores that read memory themselves, and this chip is ",
                processor->chip().name, "; compile it for that"));
  uint64_t digest;
  std::memcpy(&digest, data(module, name + tpk::ChipSuffix, sizeof digest), sizeof digest);
  if (digest != processor->chip().digest)
    refuse(text("kernel '", name, "' was compiled for the chip with the digest ", hex(digest),
                ", and this one, ", processor->chip().name, ", has ", hex(processor->chip().digest),
                "; compile it again"));
}

std::shared_ptr<const Kernel> Loader::kernel(uint64_t number) {
  std::lock_guard lock(mutex_);
  auto known = kernels_.find(number);
  if (known == kernels_.end())
    throw Failure(VNPU_LAUNCH_FAILED, "the kernel's module was unloaded before the launch ran");
  return known->second;
}

namespace {

// Carries out a command of the control queue. Returns how many bytes it has written to its slot.
uint64_t answerTo(const Command &command, uint8_t *slot) {
  Loader &loader = Loader::instance();
  switch (command.kind) {
  case Kind::OpenQueue:
    serveQueue(command.index);
    return 0;
  case Kind::Discard:
    for (uint64_t at = 0; at + sizeof(Extent) <= command.size; at += sizeof(Extent)) {
      Extent extent;
      std::memcpy(&extent, slot + at, sizeof extent);
      madvise(memory(extent.address), extent.size, MADV_DONTNEED);
    }
    return 0;
  case Kind::Allocated:
    Allocations::instance().add(command.target, command.value);
    return 0;
  case Kind::Released:
    Allocations::instance().remove(command.target);
    return 0;
  case Kind::Import:
    import(command);
    return 0;
  case Kind::Unmap:
    unmap(command);
    return 0;
  case Kind::Fail:
    failLaunches(std::string(reinterpret_cast<const char *>(slot), command.size));
    return 0;
  case Kind::Piece:
    loader.addPiece(command.value, slot, command.size);
    return 0;
  case Kind::Load: {
    uint64_t number = loader.load(command.value);
    std::memcpy(slot, &number, sizeof number);
    return sizeof number;
  }
  case Kind::Unload:
    loader.unload(command.value);
    return 0;
  case Kind::Symbol: {
    std::string name(reinterpret_cast<const char *>(slot), command.size);
    return loader.symbol(command.value, name, slot, SlotBytes);
  }
  default:
    throw Failure(VNPU_INVALID_ARGUMENT, text("a command of unknown kind ", uint32_t(command.kind)));
  }
}

} // namespace

void control(const Command &command) {
  uint8_t *slot = region.slot(command.slot);
  const uint64_t bytes = answerTo(command, slot);
  region.header().answers[command.slot] = {Delivery::Made, uint32_t(bytes), Seal().add(slot, bytes).value()};
}

} // namespace vnpu
