#include "openmp.h"

#include <atomic>
#include <dlfcn.h>
#include <link.h>

namespace tpk {
namespace {

// The soname of torch's CPU library.
constexpr const char *TorchLibrary = "libtorch_cpu.so";

std::atomic<bool> inForkedChild{false};

// The number of libraries that this process has loaded so far.
unsigned long long loadedLibraries() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        *static_cast<unsigned long long *>(data) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

} // namespace

const OpenMP *OpenMP::find() {
  void *torch = dlopen(TorchLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (!torch)
    return nullptr;
  // Look it up in torch's library and its dependencies: other libraries may have loaded other runtimes.
  auto parallel = reinterpret_cast<Parallel>(dlsym(torch, "GOMP_parallel"));
  auto maxThreads = reinterpret_cast<Number>(dlsym(torch, "omp_get_max_threads"));
  auto thread = reinterpret_cast<Number>(dlsym(torch, "omp_get_thread_num"));
  return parallel && maxThreads && thread ? new OpenMP(parallel, maxThreads, thread)
                                          : nullptr; // for as long as the process lives
}

const OpenMP *OpenMP::ofTorch(unsigned width) {
  static std::atomic<const OpenMP *> found{nullptr};
  static std::atomic<unsigned long long> searched{0}; // the number of libraries at the last search
  if (inForkedChild.load(std::memory_order_relaxed))
    return nullptr;
  const OpenMP *runtime = found.load(std::memory_order_acquire);
  if (!runtime) {
    unsigned long long libraries = loadedLibraries();
    if (searched.exchange(libraries, std::memory_order_relaxed) == libraries)
      return nullptr;
    runtime = find();
    found.store(runtime, std::memory_order_release);
  }
  return runtime && unsigned(runtime->maxThreads_()) == width ? runtime : nullptr;
}

void OpenMP::forked() { inForkedChild.store(true, std::memory_order_relaxed); }

} // namespace tpk
