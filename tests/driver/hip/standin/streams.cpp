// Streams and events.
#include "standin.h"

using namespace standin;

namespace standin {
namespace {

Event &eventOf(hipEvent_t handle) {
  auto found = state().events.find(uint64_t(handle));
  if (found == state().events.end())
    misuse(hipErrorInvalidHandle, "there is no event ", handle);
  return found->second;
}

bool reached(const Event &event) { return !event.recording || event.recording->point.reached(); }

hipError_t failureOf(const Event &event) { return state().devices[event.device].failure; }

const Event &timed(hipEvent_t handle) {
  Event &event = eventOf(handle);
  if (!event.recording)
    refuse(hipErrorInvalidHandle, "event ", handle, " was never recorded");
  if (event.flags & hipEventDisableTiming)
    refuse(hipErrorInvalidHandle, "event ", handle, " takes no time");
  return event;
}

} // namespace
} // namespace standin

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  return call("hipStreamCreateWithFlags", HealthyDevice, [&] {
    wanted(stream);
    if (flags & ~unsigned(hipStreamNonBlocking))
      refuse(hipErrorInvalidValue, "there are no flags ", flags);
    auto queue = std::make_shared<Queue>();
    queue->handle = newHandle('s');
    queue->device = currentDevice();
    queue->blocking = !(flags & hipStreamNonBlocking);
    start(queue);
    state().streams[queue->handle] = queue;
    *stream = reinterpret_cast<hipStream_t>(queue->handle);
    return hipSuccess;
  });
}

hipError_t hipStreamCreate(hipStream_t *stream) { return hipStreamCreateWithFlags(stream, hipStreamDefault); }

hipError_t hipStreamDestroy(hipStream_t stream) {
  return call("hipStreamDestroy", HealthyDevice, [&] {
    if (!stream)
      refuse(hipErrorInvalidHandle, "the null stream is never destroyed");
    auto queue = queueOf(stream);
    bool idle = queue->idle();
    queue->closed = true;
    state().streams.erase(queue->handle);
    state().changed.notify_all();
    // HIP may drop work that has not started.
    if (!idle)
      note({"hipStreamDestroy", "the stream has work that has not run", hipSuccess, true});
    return hipSuccess;
  });
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  return call("hipStreamSynchronize", HealthyDevice,
              [&](Lock &lock) { return drain(queueOf(stream), lock); });
}

hipError_t hipStreamQuery(hipStream_t stream) {
  return call("hipStreamQuery", HealthyDevice,
              [&] { return queueOf(stream)->idle() ? hipSuccess : hipErrorNotReady; });
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *result) {
  return call("hipStreamGetDevice", HealthyDevice, [&] {
    wanted(result);
    // Documented to refuse what is no stream, so asking is no mistake.
    if (stream && !state().streams.contains(uint64_t(stream)))
      refuse(hipErrorContextIsDestroyed, "there is no stream ", stream);
    *result = queueOf(stream)->device;
    return hipSuccess;
  });
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t handle, unsigned flags) {
  return call("hipStreamWaitEvent", HealthyDevice, [&] {
    if (flags)
      refuse(hipErrorInvalidValue, "flags are ", flags, ", not 0");
    auto queue = queueOf(stream);
    Event &event = eventOf(handle);
    if (event.recording)
      submit(queue, "wait", [](uint64_t) {}, {event.recording->point});
    return hipSuccess;
  });
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  return call("hipEventCreateWithFlags", HealthyDevice, [&] {
    wanted(event);
    if (flags & ~unsigned(hipEventBlockingSync | hipEventDisableTiming))
      refuse(hipErrorInvalidValue, "there are no flags ", flags);
    uint64_t handle = newHandle('e');
    state().events[handle] = {currentDevice(), flags, nullptr};
    *event = reinterpret_cast<hipEvent_t>(handle);
    return hipSuccess;
  });
}

hipError_t hipEventCreate(hipEvent_t *event) { return hipEventCreateWithFlags(event, hipEventDefault); }

hipError_t hipEventDestroy(hipEvent_t event) {
  return call("hipEventDestroy", HealthyDevice, [&] {
    eventOf(event);
    state().events.erase(uint64_t(event));
    return hipSuccess;
  });
}

hipError_t hipEventRecord(hipEvent_t handle, hipStream_t stream) {
  return call("hipEventRecord", HealthyDevice, [&] {
    Event &event = eventOf(handle);
    auto queue = queueOf(stream);
    if (queue->device != event.device)
      misuse(hipErrorInvalidHandle, "event ", handle, " is of device ", event.device, ", stream ", stream,
             " of device ", queue->device);
    auto recording = std::make_shared<Recording>();
    submit(queue, "event", [recording](uint64_t) {
      uint64_t now = nanoseconds();
      Lock lock(state().lock);
      recording->time = now;
    });
    recording->point = {queue, queue->submitted};
    event.recording = recording;
    return hipSuccess;
  });
}

hipError_t hipEventQuery(hipEvent_t handle) {
  return call("hipEventQuery", HealthyDevice,
              [&] { return reached(eventOf(handle)) ? hipSuccess : hipErrorNotReady; });
}

hipError_t hipEventSynchronize(hipEvent_t handle) {
  return call("hipEventSynchronize", HealthyDevice, [&](Lock &lock) {
    Event event = eventOf(handle);
    state().changed.wait(lock, [&] { return reached(event); });
    return failureOf(event);
  });
}

hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t end) {
  return call("hipEventElapsedTime", HealthyDevice, [&] {
    wanted(milliseconds);
    const Event &first = timed(start), &second = timed(end);
    if (first.device != second.device)
      misuse(hipErrorInvalidHandle, "the events are of devices ", first.device, " and ", second.device);
    if (!reached(first) || !reached(second))
      return hipErrorNotReady;
    *milliseconds = float(double(int64_t(second.recording->time - first.recording->time)) / 1e6);
    return hipSuccess;
  });
}
