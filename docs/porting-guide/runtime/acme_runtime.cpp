#include "acme_runtime.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <elf.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Mistake {
  acme_code code;
  std::string text;
};

constexpr uint64_t MemoryBytes = uint64_t(4) << 30;
constexpr uint64_t ScratchBytes = uint64_t(16) << 20;

// --- work in order ---------------------------------------------------------------------------------------

class Timeline {
public:
  Timeline() : thread_([this] { serve(); }) {}
  ~Timeline() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // `always`: also when work before it failed, as marks are.
  void put(std::function<void()> work, bool always = false) {
    std::lock_guard lock(mutex_);
    pending_.push_back({std::move(work), always});
    changed_.notify_all();
  }

  // Throws the failure that nobody was told yet.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pending_.empty(); });
    if (auto failure = std::move(failure_))
      throw Mistake(*failure);
  }

private:
  struct Item {
    std::function<void()> work;
    bool always;
  };

  void serve() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
      if (pending_.empty())
        return;
      if (pending_.front().always || !failure_) {
        auto work = std::move(pending_.front().work);
        lock.unlock();
        std::unique_ptr<Mistake> failure;
        try {
          work();
        } catch (const Mistake &mistake) {
          failure = std::make_unique<Mistake>(mistake);
        }
        lock.lock();
        if (failure && !failure_)
          failure_ = std::move(failure);
      }
      pending_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> pending_;
  std::unique_ptr<Mistake> failure_;
  bool stopping_ = false;
  std::thread thread_;
};

// One passing of a mark.
struct Passing {
  std::mutex mutex;
  std::condition_variable changed;
  bool passed = false;
  Clock::time_point when;

  void pass() {
    std::lock_guard lock(mutex);
    when = Clock::now();
    passed = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return passed; });
  }
};

// --- kernels ---------------------------------------------------------------------------------------------

using Kernel = int32_t (*)(const void *, void *, int64_t, int64_t, int32_t, int32_t, int32_t);

struct Program {
  std::shared_ptr<void> image; // stays loaded while it runs
  Kernel kernel;
  uint64_t scratch, cleared; // bytes, of which the first ones are zero at the beginning
};

// --- the chip --------------------------------------------------------------------------------------------

struct Chip {
  std::mutex mutex;
  std::map<uint64_t, uint64_t> memory; // address, bytes
  uint64_t used = 0, next = 1;
  std::map<uint64_t, std::shared_ptr<Timeline>> timelines{{0, std::make_shared<Timeline>()}};
  std::map<uint64_t, std::shared_ptr<Passing>> marks;
  std::map<uint64_t, std::shared_ptr<void>> images;
  std::map<uint64_t, Program> programs;
  std::map<uint64_t, uint64_t> owners; // image of each program
};

Chip &chip() {
  static auto *one = new Chip; // its threads outlive static destruction
  return *one;
}

thread_local std::string explanation;

template <typename Body> acme_code guarded(const Body &body) {
  try {
    body();
    return ACME_SUCCESS;
  } catch (const Mistake &mistake) {
    explanation = mistake.text;
    return mistake.code;
  }
}

template <typename Table>
auto &entry(Table &table, const char *what, uint64_t handle, acme_code mistake = ACME_BAD_HANDLE) {
  auto found = table.find(handle);
  if (found == table.end())
    throw Mistake{mistake, std::string("there is no ") + what + " " + std::to_string(handle)};
  return found->second;
}

std::shared_ptr<Timeline> timeline(uint64_t handle) {
  std::lock_guard lock(chip().mutex);
  return entry(chip().timelines, "timeline", handle);
}

std::vector<std::shared_ptr<Timeline>> allTimelines() {
  std::lock_guard lock(chip().mutex);
  std::vector<std::shared_ptr<Timeline>> all;
  for (auto &[handle, one] : chip().timelines)
    all.push_back(one);
  return all;
}

void *checked(uint64_t address, uint64_t bytes) {
  Chip &c = chip();
  std::lock_guard lock(c.mutex);
  if (!address && !bytes)
    return nullptr;
  auto next = c.memory.upper_bound(address);
  if (next != c.memory.begin()) {
    auto [start, size] = *std::prev(next);
    uint64_t offset = address - start;
    if (offset <= size && bytes <= size - offset)
      return reinterpret_cast<void *>(address);
  }
  throw Mistake{ACME_BAD_ADDRESS, std::to_string(bytes) + " bytes at " + std::to_string(address) +
                                      " do not lie in memory that was reserved"};
}

// The loader of the C library trusts what it loads: an image that ends too early would end the process.
void checkImage(const void *elf, uint64_t bytes) {
  auto refuse = [](const char *why) { throw Mistake{ACME_BAD_IMAGE, why}; };
  Elf64_Ehdr header;
  if (bytes < sizeof header)
    refuse("the image is too short for an ELF file");
  std::memcpy(&header, elf, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_type != ET_DYN)
    refuse("the image is no ELF shared object");
  if (header.e_phoff > bytes || uint64_t(header.e_phnum) * sizeof(Elf64_Phdr) > bytes - header.e_phoff)
    refuse("the image ends within its segment table");
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, static_cast<const char *>(elf) + header.e_phoff + i * sizeof segment,
                sizeof segment);
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > bytes || segment.p_filesz > bytes - segment.p_offset))
      refuse("the image ends within a segment");
  }
}

std::shared_ptr<void> loadImage(const void *elf, uint64_t bytes) {
  checkImage(elf, bytes);
  int file = memfd_create("acme-image", MFD_CLOEXEC);
  if (file < 0 || write(file, elf, bytes) != ssize_t(bytes))
    throw Mistake{ACME_NO_MEMORY, "no memory for an image"};
  void *image = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!image) {
    close(file);
    throw Mistake{ACME_BAD_IMAGE, std::string("the image does not load: ") + dlerror()};
  }
  // The file stays open as long as the image is there: two images of one path are one to the loader.
  return {image, [file](void *gone) {
            dlclose(gone);
            close(file);
          }};
}

void runGrid(const Program &program, const uint32_t (&grid)[3], const std::vector<uint64_t> &arguments) {
  void *scratch = program.scratch ? std::aligned_alloc(64, (program.scratch + 63) / 64 * 64) : nullptr;
  if (program.scratch && !scratch)
    throw Mistake{ACME_NO_MEMORY, "the machine has no memory left for the program's scratch"};
  if (program.cleared)
    std::memset(scratch, 0, program.cleared);
  int64_t total = int64_t(grid[0]) * grid[1] * grid[2];
  int32_t code = program.kernel(arguments.data(), scratch, 0, total, int32_t(grid[0]), int32_t(grid[1]),
                                int32_t(grid[2]));
  std::free(scratch);
  if (code)
    throw Mistake{ACME_PROGRAM_FAILED, "the program failed with code " + std::to_string(code)};
}

} // namespace

const char *acme_explain(void) { return explanation.c_str(); }
uint64_t acme_memory_bytes(void) { return MemoryBytes; }
uint64_t acme_scratch_bytes(void) { return ScratchBytes; }

acme_code acme_reserve(uint64_t bytes, uint64_t alignment, uint64_t *address) {
  return guarded([&] {
    if (!alignment || (alignment & (alignment - 1)))
      throw Mistake{ACME_BAD_VALUE, "an alignment of " + std::to_string(alignment) + " is no power of two"};
    Chip &c = chip();
    std::lock_guard lock(c.mutex);
    if (bytes > MemoryBytes - c.used)
      throw Mistake{ACME_NO_MEMORY, std::to_string(bytes) + " bytes asked for, " +
                                        std::to_string(MemoryBytes - c.used) + " are free"};
    uint64_t unit = std::max<uint64_t>(alignment, 64);
    void *memory = std::aligned_alloc(unit, (bytes + unit) / unit * unit);
    if (!memory)
      throw Mistake{ACME_NO_MEMORY, "the machine has no memory left"};
    *address = reinterpret_cast<uint64_t>(memory);
    c.memory[*address] = bytes;
    c.used += bytes;
  });
}

acme_code acme_release(uint64_t address) {
  return guarded([&] {
    Chip &c = chip();
    {
      std::lock_guard lock(c.mutex);
      auto found = c.memory.find(address);
      if (found == c.memory.end())
        throw Mistake{ACME_BAD_ADDRESS, std::to_string(address) + " was not reserved, or released before"};
    }
    for (auto &one : allTimelines()) { // work in flight may use it
      auto passing = std::make_shared<Passing>();
      one->put([passing] { passing->pass(); }, true);
      passing->wait();
    }
    std::lock_guard lock(c.mutex);
    auto found = c.memory.find(address);
    c.used -= found->second;
    c.memory.erase(found);
    std::free(reinterpret_cast<void *>(address));
  });
}

acme_code acme_timeline_open(uint64_t *handle) {
  return guarded([&] {
    std::lock_guard lock(chip().mutex);
    *handle = chip().next++;
    chip().timelines[*handle] = std::make_shared<Timeline>();
  });
}

acme_code acme_timeline_close(uint64_t handle) {
  return guarded([&] {
    if (!handle)
      throw Mistake{ACME_BAD_HANDLE, "timeline 0 stays"};
    auto gone = timeline(handle);
    {
      std::lock_guard lock(chip().mutex);
      chip().timelines.erase(handle);
    }
    gone->wait();
  });
}

acme_code acme_timeline_wait(uint64_t handle) {
  return guarded([&] { timeline(handle)->wait(); });
}

acme_code acme_wait_all(void) {
  return guarded([&] {
    std::unique_ptr<Mistake> first;
    for (auto &one : allTimelines()) {
      try {
        one->wait();
      } catch (const Mistake &mistake) {
        if (!first)
          first = std::make_unique<Mistake>(mistake);
      }
    }
    if (first)
      throw Mistake(*first);
  });
}

acme_code acme_mark_open(uint64_t *mark) {
  return guarded([&] {
    std::lock_guard lock(chip().mutex);
    *mark = chip().next++;
    chip().marks[*mark] = nullptr;
  });
}

acme_code acme_mark_close(uint64_t mark) {
  return guarded([&] {
    std::lock_guard lock(chip().mutex);
    entry(chip().marks, "mark", mark);
    chip().marks.erase(mark);
  });
}

acme_code acme_mark_set(uint64_t mark, uint64_t handle) {
  return guarded([&] {
    auto line = timeline(handle);
    auto passing = std::make_shared<Passing>();
    {
      std::lock_guard lock(chip().mutex);
      entry(chip().marks, "mark", mark) = passing;
    }
    line->put([passing] { passing->pass(); }, true);
  });
}

acme_code acme_mark_await(uint64_t handle, uint64_t mark) {
  return guarded([&] {
    auto line = timeline(handle);
    std::lock_guard lock(chip().mutex);
    if (auto passing = entry(chip().marks, "mark", mark))
      line->put([passing] { passing->wait(); }, true);
  });
}

acme_code acme_mark_wait(uint64_t mark) {
  return guarded([&] {
    std::shared_ptr<Passing> passing;
    {
      std::lock_guard lock(chip().mutex);
      passing = entry(chip().marks, "mark", mark);
    }
    if (passing)
      passing->wait();
  });
}

acme_code acme_mark_distance(uint64_t first, uint64_t second, double *seconds) {
  return guarded([&] {
    Clock::time_point times[2];
    std::lock_guard lock(chip().mutex);
    for (int i : {0, 1}) {
      uint64_t mark = i ? second : first;
      auto passing = entry(chip().marks, "mark", mark);
      if (!passing)
        throw Mistake{ACME_BAD_VALUE, "mark " + std::to_string(mark) + " was never set"};
      std::lock_guard passed(passing->mutex);
      if (!passing->passed)
        throw Mistake{ACME_BAD_VALUE, "mark " + std::to_string(mark) + " was not passed yet"};
      times[i] = passing->when;
    }
    *seconds = std::chrono::duration<double>(times[1] - times[0]).count();
  });
}

acme_code acme_write(uint64_t handle, uint64_t target, const void *source, uint64_t bytes) {
  return guarded([&] {
    auto line = timeline(handle);
    void *to = checked(target, bytes);
    auto data = std::make_shared<std::vector<char>>(bytes);
    if (bytes)
      std::memcpy(data->data(), source, bytes);
    line->put([to, data] {
      if (!data->empty())
        std::memcpy(to, data->data(), data->size());
    });
  });
}

acme_code acme_read(uint64_t handle, void *target, uint64_t source, uint64_t bytes) {
  return guarded([&] {
    auto line = timeline(handle);
    const void *from = checked(source, bytes);
    line->put([=] {
      if (bytes)
        std::memcpy(target, from, bytes);
    });
    line->wait();
  });
}

acme_code acme_move(uint64_t handle, uint64_t target, uint64_t source, uint64_t bytes) {
  return guarded([&] {
    auto line = timeline(handle);
    void *to = checked(target, bytes);
    const void *from = checked(source, bytes);
    line->put([=] {
      if (bytes)
        std::memcpy(to, from, bytes);
    });
  });
}

acme_code acme_set(uint64_t handle, uint64_t target, uint8_t value, uint64_t bytes) {
  return guarded([&] {
    auto line = timeline(handle);
    void *to = checked(target, bytes);
    line->put([=] {
      if (bytes)
        std::memset(to, value, bytes);
    });
  });
}

acme_code acme_image_load(const void *elf, uint64_t bytes, uint64_t *image) {
  return guarded([&] {
    auto loaded = loadImage(elf, bytes);
    std::lock_guard lock(chip().mutex);
    *image = chip().next++;
    chip().images[*image] = loaded;
  });
}

acme_code acme_image_unload(uint64_t image) {
  return guarded([&] {
    std::lock_guard lock(chip().mutex);
    entry(chip().images, "image", image, ACME_BAD_IMAGE);
    chip().images.erase(image);
    std::erase_if(chip().programs, [&](auto &item) { return chip().owners[item.first] == image; });
  });
}

acme_code acme_program(uint64_t image, const char *name, uint64_t *program) {
  return guarded([&] {
    std::lock_guard lock(chip().mutex);
    auto loaded = entry(chip().images, "image", image, ACME_BAD_IMAGE);
    auto kernel = reinterpret_cast<Kernel>(dlsym(loaded.get(), name));
    auto scratch =
        static_cast<int64_t *>(dlsym(loaded.get(), (std::string(name) + "__scratch_bytes").c_str()));
    if (!kernel || !scratch)
      throw Mistake{ACME_BAD_IMAGE, std::string("the image holds no program '") + name + "'"};
    *program = chip().next++;
    chip().programs[*program] = {loaded, kernel, uint64_t(scratch[0]), uint64_t(scratch[1])};
    chip().owners[*program] = image;
  });
}

acme_code acme_run(uint64_t handle, uint64_t program, const uint32_t grid[3], const void *arguments,
                   uint64_t bytes) {
  return guarded([&] {
    auto line = timeline(handle);
    std::vector<uint64_t> block((bytes + 7) / 8);
    if (bytes)
      std::memcpy(block.data(), arguments, bytes);
    std::lock_guard lock(chip().mutex);
    Program found = entry(chip().programs, "program", program);
    line->put([found, block = std::move(block), x = grid[0], y = grid[1], z = grid[2]] {
      runGrid(found, {x, y, z}, block);
    });
  });
}

acme_code acme_restart(void) {
  acme_wait_all();
  Chip &c = chip();
  std::lock_guard lock(c.mutex);
  for (auto &[address, bytes] : c.memory)
    std::free(reinterpret_cast<void *>(address));
  c.memory.clear();
  c.used = 0;
  c.timelines.clear();
  c.timelines[0] = std::make_shared<Timeline>();
  c.marks.clear();
  c.programs.clear();
  c.images.clear();
  return ACME_SUCCESS;
}
