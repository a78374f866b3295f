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
  // It may be torch's, or another library's: HIP knows all streams of the process.
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

uint64_t Device::create_stream() {
  Current current(*this, __func__);
  api::hipStream_t made = nullptr;
  check(__func__, "hipStreamCreateWithFlags", hip_.hipStreamCreateWithFlags(&made, api::kStreamNonBlocking));
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

void Device::destroy_stream(uint64_t handle) {
  Current current(*this, __func__);
  if (handle == 0)
    throw Failure(Code::InvalidArgument,
                  where(__func__) + ": stream 0 is the default stream and cannot be destroyed");
  {
    std::lock_guard lock(tables_);
    if (!streams_.erase(handle))
      throw Failure(Code::InvalidArgument,
                    text(where(__func__), ": stream ", handle, " was not made here, or was destroyed"));
  }
  auto failed = hip_.hipStreamSynchronize(streamOf(handle));
  auto error = hip_.hipStreamDestroy(streamOf(handle));
  if (error != api::hipSuccess) {
    std::lock_guard lock(tables_);
    streams_.insert(handle); // for a reset to destroy
  }
  check(__func__, "hipStreamSynchronize", failed);
  check(__func__, "hipStreamDestroy", error);
  reapAll();
}

void Device::synchronize(uint64_t handle) {
  Current current(*this, __func__);
  check(__func__, "hipStreamSynchronize", hip_.hipStreamSynchronize(stream(__func__, handle)));
  reapAll();
}

void Device::synchronize_all() {
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

uint64_t Device::create_event() {
  Current current(*this, __func__);
  api::hipEvent_t made = nullptr;
  check(__func__, "hipEventCreateWithFlags", hip_.hipEventCreateWithFlags(&made, api::kEventDefault));
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

void Device::adopt_event(uint64_t handle) {
  Current current(*this, __func__);
  if (!handle)
    throw Failure(Code::InvalidArgument, where(__func__) + ": event is NULL");
  auto error = hip_.hipEventQuery(eventOf(handle));
  if (error == api::hipErrorNotReady)
    hip_.hipGetLastError();
  else
    check(__func__, "hipEventQuery", error, Code::InvalidArgument);
  std::lock_guard lock(tables_);
  events_.try_emplace(handle, Event{false, true}); // HIP knows whether it was recorded
}

void Device::destroy_event(uint64_t handle) {
  Current current(*this, __func__);
  Event gone = event(__func__, handle);
  {
    std::lock_guard lock(tables_);
    if (!events_.erase(handle))
      throw Failure(Code::InvalidArgument, text(where(__func__), ": event ", handle, " was destroyed"));
  }
  if (!gone.owned)
    return;
  auto error = hip_.hipEventDestroy(eventOf(handle));
  if (error != api::hipSuccess) {
    std::lock_guard lock(tables_);
    events_[handle] = gone; // for a reset to destroy
  }
  check(__func__, "hipEventDestroy", error);
}

void Device::record_event(uint64_t handle, uint64_t streamHandle) {
  Current current(*this, __func__);
  event(__func__, handle);
  auto queue = stream(__func__, streamHandle);
  check(__func__, "hipEventRecord", hip_.hipEventRecord(eventOf(handle), queue));
  std::lock_guard lock(tables_);
  if (auto found = events_.find(handle); found != events_.end())
    found->second.recorded = true;
}

void Device::wait_event(uint64_t streamHandle, uint64_t handle) {
  Current current(*this, __func__);
  bool recorded = event(__func__, handle).recorded;
  auto queue = stream(__func__, streamHandle);
  if (recorded)
    check(__func__, "hipStreamWaitEvent", hip_.hipStreamWaitEvent(queue, eventOf(handle), 0));
}

void Device::synchronize_event(uint64_t handle) {
  Current current(*this, __func__);
  if (event(__func__, handle).recorded)
    check(__func__, "hipEventSynchronize", hip_.hipEventSynchronize(eventOf(handle)));
}

double Device::elapsed_time(uint64_t start, uint64_t end) {
  Current current(*this, __func__);
  for (uint64_t handle : {start, end})
    if (!event(__func__, handle).recorded)
      throw Failure(Code::InvalidArgument, text(where(__func__), ": event ", handle, " was never recorded"));
  float milliseconds = 0;
  auto error = hip_.hipEventElapsedTime(&milliseconds, eventOf(start), eventOf(end));
  if (error == api::hipErrorNotReady)
    throw Failure(Code::InvalidArgument,
                  text(where(__func__), ": events ", start, " and ", end,
                       " are not both reached yet: hipEventElapsedTime says ", library_->describe(error)));
  check(__func__, "hipEventElapsedTime", error, Code::InvalidArgument);
  return milliseconds;
}

} // namespace tpk::hip
