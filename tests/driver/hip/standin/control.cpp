// What tests ask of the stand-in, beside HIP's functions. Answers are JSON, good until the thread's next
// call.
#include "json.h"
#include "standin.h"

using namespace standin;

namespace {

thread_local std::string answer;

const char *give(std::string text) {
  answer = std::move(text);
  return answer.c_str();
}

std::string describe(const Launch &launch) {
  json::List arguments;
  for (size_t i = 0; i < launch.kernel->arguments.size(); ++i) {
    auto &argument = launch.kernel->arguments[i];
    arguments.add(json::Object()
                      .add("name", argument.name)
                      .add("kind", argument.kind)
                      .add("offset", argument.offset)
                      .add("size", argument.size)
                      .add("bytes", json::hexadecimal(&launch.segment[argument.offset], argument.size))
                      .add("live", i < launch.live.size() && launch.live[i]));
  }
  auto three = [](const unsigned *counts) {
    return json::List().add(counts[0]).add(counts[1]).add(counts[2]);
  };
  return json::Object()
      .add("kernel", launch.kernel->name)
      .add("device", launch.device)
      .add("stream", launch.stream)
      .add("module", launch.module)
      .add("grid", three(launch.grid))
      .add("block", three(launch.block))
      .add("shared_bytes", launch.sharedBytes)
      .add("group_bytes", launch.kernel->groupBytes)
      .add("wavefront", launch.kernel->wavefront)
      .add("cooperative", launch.cooperative)
      .add("passed_bytes", launch.passedBytes)
      .add("explicit_bytes", launch.kernel->explicitBytes())
      .add("segment", json::hexadecimal(launch.segment.data(), launch.segment.size()))
      .add("arguments", arguments)
      .add("order", launch.order)
      .text();
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

// Ends all work, forgets everything, and begins anew with a device of each architecture ("gfx942,gfx1100").
void standin_configure(const char *architectures, uint64_t memoryBytes) {
  Lock lock(state().lock);
  State &all = state();
  configure(architectures, memoryBytes, lock);
  all.kernelMicroseconds = all.copyMicroseconds = 0;
  all.launches.clear();
  all.operations.clear();
  all.log.clear();
  all.faults = {};
}

// How long kernels and copies take, at least.
void standin_durations(uint64_t kernelMicroseconds, uint64_t copyMicroseconds) {
  Lock lock(state().lock);
  state().kernelMicroseconds = kernelMicroseconds;
  state().copyMicroseconds = copyMicroseconds;
}

// Lets the work on a stream wait until it is released. Which device's null stream, for 0.
int standin_hold(uint64_t stream, int device, int held) {
  Lock lock(state().lock);
  State &all = state();
  if (stream ? !all.streams.contains(stream) : size_t(device) >= all.devices.size())
    return 1;
  (stream ? all.streams[stream] : all.devices[device].null)->held = held;
  all.changed.notify_all();
  return 0;
}

const char *standin_arm(const char *faults) {
  Lock lock(state().lock);
  return give(state().faults.arm(faults));
}

// Whether all armed faults have struck, which no longer do.
int standin_disarm() {
  Lock lock(state().lock);
  return state().faults.disarm();
}

// Calls since the last of these, by function; those of the errors' texts are not counted.
const char *standin_calls() {
  Lock lock(state().lock);
  json::Object counts;
  for (auto &[name, count] : state().faults.calls())
    counts.add(name.c_str(), count);
  state().faults.forgetCalls();
  return give(counts.text());
}

// What is live, of each kind.
const char *standin_live() {
  Lock lock(state().lock);
  State &all = state();
  uint64_t allocations = 0, bytes = 0, pending = 0;
  for (auto &device : all.devices) {
    allocations += device.memory->count();
    bytes += device.memory->used();
    pending += device.null->submitted - device.null->done;
  }
  for (auto &[handle, queue] : all.streams)
    pending += queue->submitted - queue->done;
  return give(json::Object()
                  .add("allocations", allocations)
                  .add("bytes", bytes)
                  .add("streams", all.streams.size())
                  .add("events", all.events.size())
                  .add("modules", all.modules.size())
                  .add("pending", pending)
                  .text());
}

// The launches from number `first` on.
const char *standin_launches(uint64_t first) {
  Lock lock(state().lock);
  json::List list;
  for (size_t i = first; i < state().launches.size(); ++i)
    list.add(json::Raw{describe(*state().launches[i])});
  return give(list.text());
}

// What queues have run, in the order in which it ended.
const char *standin_operations() {
  Lock lock(state().lock);
  json::List list;
  for (auto &operation : state().operations)
    list.add(json::Object()
                 .add("kind", operation.kind)
                 .add("device", operation.device)
                 .add("stream", operation.stream)
                 .add("order", operation.order)
                 .add("started", operation.started)
                 .add("finished", operation.finished));
  return give(list.text());
}

// Calls that were refused, and what was seen that HIP promises nothing for ("undefined"); then they are
// forgotten.
const char *standin_log() {
  Lock lock(state().lock);
  json::List list;
  for (auto &entry : state().log)
    list.add(json::Object()
                 .add("call", entry.call)
                 .add("text", entry.text)
                 .add("error", int(entry.error))
                 .add("undefined", entry.undefined));
  state().log.clear();
  return give(list.text());
}

// The memory behind a device address, which the host cannot read there. 0 on success.
int standin_read(void *to, uint64_t address, uint64_t bytes) {
  Lock lock(state().lock);
  try {
    checkRange("the address", reinterpret_cast<void *>(address), bytes);
    return !readHost(to, contents(reinterpret_cast<void *>(address)), bytes);
  } catch (const Failure &) {
    return 1;
  }
}
}
#pragma GCC visibility pop
