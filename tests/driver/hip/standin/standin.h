// What the parts of the stand-in for AMD's HIP runtime share: its devices, queues and handles.
//
// It has the functions of libamdhip64.so that drivers call, with the declarations and numbers of AMD's own
// headers, real memory and real queues behind them, and no GPU. Kernels do not run: a launch checks what a
// strict runtime could check, records the argument block by the code object's metadata, and takes its time.
#pragma once

#pragma GCC visibility push(default)
#include <hip/hip_runtime_api.h>
#pragma GCC visibility pop

#include "code_object.h"
#include "faults.h"
#include "memory.h"
#include "queue.h"

#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace standin {

template <class... Parts> std::string text(const Parts &...parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Thrown by the body of an API function, which then returns `error`.
struct Failure {
  hipError_t error;
  std::string text;
  bool undefined; // HIP promises nothing for such a call: a driver must not make it
};

template <class... Parts> [[noreturn]] void refuse(hipError_t error, const Parts &...parts) {
  throw Failure{error, text(parts...), false};
}

template <class... Parts> [[noreturn]] void misuse(hipError_t error, const Parts &...parts) {
  throw Failure{error, text(parts...), true};
}

// A place for a result, which must be there.
template <class T> T *wanted(T *result) {
  if (!result)
    refuse(hipErrorInvalidValue, "there is no place for the result");
  return result;
}

// What HIP's documentation says about an architecture's devices. Sizes in bytes, rates in kHz.
struct Architecture {
  const char *name, *fullName;
  int major, minor, units, warp;
  size_t lds;
  int clock, memoryClock, busBits;
};
const Architecture *findArchitecture(const std::string &name);

struct Device {
  const Architecture *architecture;
  std::unique_ptr<Memory> memory;
  std::shared_ptr<Queue> null;
  hipError_t failure = hipSuccess; // of work that failed: what nearly all calls return until a reset
};

struct Event {
  int device;
  unsigned flags;
  std::shared_ptr<Recording> recording; // none before the first record
};

struct Module {
  int device;
  CodeObject code;
};

struct Function {
  uint64_t module;
  int device;
  const Kernel *kernel;
};

struct Launch {
  int device;
  uint64_t stream, module;
  const Kernel *kernel;
  std::shared_ptr<const CodeObject> code; // keeps `kernel`
  unsigned grid[3], block[3], sharedBytes;
  bool cooperative;
  uint64_t passedBytes; // of the caller's argument block
  std::vector<uint8_t> segment;
  std::vector<bool> live; // of each argument: whether it is an address in an allocation as the kernel starts
  uint64_t order = 0;     // of its start among all work; 0 before
};

// A copy, a fill, a launch or an event that a queue has run.
struct Operation {
  std::string kind;
  int device;
  uint64_t stream, order, started, finished; // nanoseconds
};

struct LogEntry {
  std::string call, text;
  hipError_t error;
  bool undefined;
};

struct State {
  std::mutex lock; // guards everything here and in queues
  std::condition_variable changed;
  std::vector<Device> devices;
  bool configured = false;
  std::map<uint64_t, std::shared_ptr<Queue>> streams;
  std::map<uint64_t, Event> events;
  std::map<uint64_t, std::shared_ptr<Module>> modules;
  std::map<uint64_t, Function> functions;
  std::map<std::pair<uint64_t, std::string>, uint64_t> functionNames;
  std::map<uint64_t, size_t> pinned; // host memory: address, bytes
  uint64_t nextHandle = 0;
  uint64_t nextOrder = 1;
  uint64_t kernelMicroseconds = 0, copyMicroseconds = 0;
  std::vector<std::shared_ptr<Launch>> launches;
  std::vector<Operation> operations;
  std::vector<LogEntry> log;
  Faults faults;
};
State &state(); // never destroyed: queues run until the process ends

using Lock = std::unique_lock<std::mutex>;

// Writes down what was refused or wrong; what is undefined also into the file HIP_STANDIN_LOG, if that is
// set.
void note(LogEntry entry);

// A handle of a kind ("stream": 0x51..., ...): never used twice, and no address.
uint64_t newHandle(char kind);
void configure(const std::string &architectures, size_t memoryBytes, Lock &lock);
void configureFromEnvironment(Lock &lock);

int &currentDevice();      // of this thread
Device &device(int index); // refuses indices that there are not
Device &current();
std::shared_ptr<Queue> queueOf(hipStream_t stream);
// As queueOf, for work of the current device.
std::shared_ptr<Queue> queueHere(hipStream_t stream);
void submit(const std::shared_ptr<Queue> &queue, const char *kind, Run run, std::vector<Point> after = {});
// Until everything that is on the device now has run. Returns the device's failure.
hipError_t drain(int device, Lock &lock);
hipError_t drain(const std::shared_ptr<Queue> &queue, Lock &lock);
// Refuses unless the range lies in one live allocation of some device; that device.
int checkRange(const char *what, const void *address, size_t bytes);
bool isDeviceAddress(const void *address);
uint8_t *contents(const void *address);
// Copies that fail, instead of crashing, where this process has no memory. False then.
bool readHost(void *to, const void *from, size_t bytes);
bool writeHost(void *to, const void *from, size_t bytes);
uint64_t nanoseconds();

enum Needs { Nothing, HealthyDevice };

hipError_t enter(const char *name, Needs needs, Lock &lock);
hipError_t leave(const char *name, hipError_t error);

// The frame of every API function: counts the call, lets armed faults strike, and turns what `body` throws
// into HIP's errors.
template <class Body> hipError_t call(const char *name, Needs needs, Body body) {
  Lock lock(state().lock);
  hipError_t error = enter(name, needs, lock);
  if (error == hipSuccess) {
    try {
      if constexpr (std::is_invocable_v<Body, Lock &>)
        error = body(lock);
      else
        error = body();
    } catch (const Failure &failure) {
      note({name, failure.text, failure.error, failure.undefined});
      error = failure.error;
    }
  }
  return leave(name, error);
}

} // namespace standin
