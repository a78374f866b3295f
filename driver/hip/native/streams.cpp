// Streams and events.
#include "current.h"
#include "text.h"

namespace tpk::hip {
namespace {

api::hipStream_t streamOf(uint64_t handle) { return reinterpret_cast<api::hipStream_t>(handle); }
api::hipEvent_t eventOf(uint64_t handle) { return reinterpret_cast<api::hipEvent_t>(handle); }

} // namespace

// --- streams
// -------------------------------------------------------------------------------------------------------

api::hipStream_t Device::stream(const char *call, uint64_t handle) {
  if (handle == 0)
    return nullptr;
  {
    std::lock_guard lock(tables_);
    if (streams_.count(handle))
      return streamOf(handle);
  }
  // Perhaps torch's, or another's: HIP knows the streams of the process.
  api::hipDevice_t owner = -1;
  auto error = hip_.hipStreamGetDevice(streamOf(handle), &owner);
  if (error != api::hipSuccess)
    throw Failure(Code::InvalidArgument, text(where(call), ": stream ", handle,
                                              " does not exist or was destroyed: hipStreamGetDevice says ",
                                              library_->describe(error)));
  if (owner != index_)
    throw Failure(Code::InvalidArgument,
                  text(where(call), ": stream ", handle, " belongs to device ", owner));
  return streamOf(handle);
}

uint64_t Device::createStream() {
  Current current(*this, "create_stream");
  api::hipStream_t made = nullptr;
  check("create_stream", "hipStreamCreateWithFlags",
        hip_.hipStreamCreateWithFlags(&made, api::kStreamNonBlocking));
  uint64_t handle = reinterpret_cast<uint64_t>(made);
  try {
    std::lock_guard lock(tables_);
    streams_.insert(handle);
  } catch (...) {
    hip_.hipStreamDestroy(made);
    throw;
  }
  return handle;
}

void Device::destroyStream(uint64_t handle) {
  Current current(*this, "destroy_stream");
  if (handle == 0)
    throw Failure(Code::InvalidArgument,
                  where("destroy_stream") + ": stream 0 is the default stream and cannot be destroyed");
  {
    std::lock_guard lock(tables_);
    if (!streams_.erase(handle))
      throw Failure(Code::InvalidArgument, text(where("destroy_stream"), ": stream ", handle,
                                                " was not made here, or was destroyed"));
  }
  auto failed = hip_.hipStreamSynchronize(streamOf(handle));
  auto error = hip_.hipStreamDestroy(streamOf(handle));
  if (error != api::hipSuccess) {
    std::lock_guard lock(tables_);
    streams_.insert(handle); // for a reset to destroy
  }
  check("destroy_stream", "hipStreamSynchronize", failed);
  check("destroy_stream", "hipStreamDestroy", error);
  reapAll();
}

void Device::synchronize(uint64_t handle) {
  Current current(*this, "synchronize");
  check("synchronize", "hipStreamSynchronize", hip_.hipStreamSynchronize(stream("synchronize", handle)));
  reapAll();
}

void Device::synchronizeAll() {
  Current current(*this, "synchronize");
  check("synchronize", "hipDeviceSynchronize", hip_.hipDeviceSynchronize());
  reapUnmarked();
  reapAll();
}

// --- events
// --------------------------------------------------------------------------------------------------------

Device::Event Device::event(const char *call, uint64_t handle) {
  std::lock_guard lock(tables_);
  auto found = events_.find(handle);
  if (found == events_.end())
    throw Failure(Code::InvalidArgument,
                  text(where(call), ": event ", handle, " does not exist or was destroyed"));
  return found->second;
}

uint64_t Device::createEvent() {
  Current current(*this, "create_event");
  api::hipEvent_t made = nullptr;
  check("create_event", "hipEventCreateWithFlags", hip_.hipEventCreateWithFlags(&made, api::kEventDefault));
  uint64_t handle = reinterpret_cast<uint64_t>(made);
  try {
    std::lock_guard lock(tables_);
    events_[handle] = {true, false};
  } catch (...) {
    hip_.hipEventDestroy(made);
    throw;
  }
  return handle;
}

void Device::adoptEvent(uint64_t handle) {
  Current current(*this, "adopt_event");
  if (!handle)
    throw Failure(Code::InvalidArgument, where("adopt_event") + ": event is NULL");
  auto error = hip_.hipEventQuery(eventOf(handle));
  if (error == api::hipErrorNotReady)
    hip_.hipGetLastError();
  else
    check("adopt_event", "hipEventQuery", error, Code::InvalidArgument);
  std::lock_guard lock(tables_);
  events_.try_emplace(handle, Event{false, true}); // whether it was recorded is not known: HIP decides
}

void Device::destroyEvent(uint64_t handle) {
  Current current(*this, "destroy_event");
  Event gone = event("destroy_event", handle);
  {
    std::lock_guard lock(tables_);
    if (!events_.erase(handle))
      throw Failure(Code::InvalidArgument,
                    text(where("destroy_event"), ": event ", handle, " was destroyed"));
  }
  if (!gone.owned)
    return;
  auto error = hip_.hipEventDestroy(eventOf(handle));
  if (error != api::hipSuccess) {
    std::lock_guard lock(tables_);
    events_[handle] = gone; // for a reset to destroy
  }
  check("destroy_event", "hipEventDestroy", error);
}

void Device::recordEvent(uint64_t handle, uint64_t streamHandle) {
  Current current(*this, "record_event");
  event("record_event", handle);
  auto queue = stream("record_event", streamHandle);
  check("record_event", "hipEventRecord", hip_.hipEventRecord(eventOf(handle), queue));
  std::lock_guard lock(tables_);
  if (auto found = events_.find(handle); found != events_.end())
    found->second.recorded = true;
}

void Device::waitEvent(uint64_t streamHandle, uint64_t handle) {
  Current current(*this, "wait_event");
  bool recorded = event("wait_event", handle).recorded;
  auto queue = stream("wait_event", streamHandle);
  if (recorded)
    check("wait_event", "hipStreamWaitEvent", hip_.hipStreamWaitEvent(queue, eventOf(handle), 0));
}

void Device::synchronizeEvent(uint64_t handle) {
  Current current(*this, "synchronize_event");
  if (event("synchronize_event", handle).recorded)
    check("synchronize_event", "hipEventSynchronize", hip_.hipEventSynchronize(eventOf(handle)));
}

double Device::elapsedTime(uint64_t start, uint64_t end) {
  Current current(*this, "elapsed_time");
  for (uint64_t handle : {start, end})
    if (!event("elapsed_time", handle).recorded)
      throw Failure(Code::InvalidArgument,
                    text(where("elapsed_time"), ": event ", handle, " was never recorded"));
  float milliseconds = 0;
  auto error = hip_.hipEventElapsedTime(&milliseconds, eventOf(start), eventOf(end));
  if (error == api::hipErrorNotReady)
    throw Failure(Code::InvalidArgument,
                  text(where("elapsed_time"), ": events ", start, " and ", end,
                       " are not both reached yet: hipEventElapsedTime says ", library_->describe(error)));
  check("elapsed_time", "hipEventElapsedTime", error, Code::InvalidArgument);
  return milliseconds;
}

} // namespace tpk::hip
