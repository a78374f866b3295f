// Copies. HIP may access a host buffer until the copy has run, so buffers are kept until then: an event after
// each copy tells when.
#include "current.h"
#include "text.h"

#include <limits>

namespace tpk::hip {
namespace {

// The number of old copies that each new one checks: more than one, so that there are never many.
constexpr size_t kReaped = 4;

void *pointer(uint64_t address) { return reinterpret_cast<void *>(address); }

} // namespace

api::hipEvent_t Device::takeMarker(const char *call) {
  {
    std::lock_guard lock(pendingMutex_);
    if (!markers_.empty()) {
      auto marker = markers_.back();
      markers_.pop_back();
      return marker;
    }
  }
  api::hipEvent_t marker = nullptr;
  check(call, "hipEventCreateWithFlags", hip_.hipEventCreateWithFlags(&marker, api::kEventDisableTiming));
  return marker;
}

void Device::reap(size_t limit) {
  std::lock_guard lock(pendingMutex_);
  size_t looked = 0;
  for (auto entry = pending_.begin(); entry != pending_.end() && looked < limit; ++looked) {
    if (!entry->event) {
      ++entry;
      continue;
    }
    auto error = hip_.hipEventQuery(entry->event);
    if (error != api::hipSuccess) {
      hip_.hipGetLastError(); // not ready, or a failure that the next synchronize raises
      ++entry;
      continue;
    }
    markers_.push_back(entry->event);
    entry = pending_.erase(entry);
  }
}

void Device::reapAll() { reap(std::numeric_limits<size_t>::max()); }

void Device::reapUnmarked() {
  std::lock_guard lock(pendingMutex_);
  std::erase_if(pending_, [](const Pending &entry) { return !entry.event; });
}

template <typename Copy>
void Device::copy(const char *call, const char *function, uint64_t size, uint64_t streamHandle, Keep keep,
                  Copy start) {
  auto queue = stream(call, streamHandle);
  reap(kReaped);
  if (size == 0)
    return;
  auto marker = takeMarker(call);
  auto giveBack = [&] {
    std::lock_guard lock(pendingMutex_);
    markers_.push_back(marker);
  };
  auto error = start(queue);
  if (error != api::hipSuccess) {
    giveBack();
    check(call, function, error);
  }
  error = hip_.hipEventRecord(marker, queue);
  if (error == api::hipSuccess) {
    std::lock_guard lock(pendingMutex_);
    pending_.push_back({marker, std::move(keep)});
    return;
  }
  // The copy has started, and no event will tell when it has run: wait for it here.
  giveBack();
  if (hip_.hipStreamSynchronize(queue) != api::hipSuccess) {
    std::lock_guard lock(pendingMutex_);
    pending_.push_back({nullptr, std::move(keep)});
  }
  check(call, "hipEventRecord", error);
}

void Device::memcpy_htod(uint64_t dst, const void *src, uint64_t size, uint64_t streamHandle, Keep keep) {
  Current current(*this, __func__);
  checkRange(__func__, "dst", dst, size);
  copy(__func__, "hipMemcpyHtoDAsync", size, streamHandle, std::move(keep),
       [&](api::hipStream_t queue) { return hip_.hipMemcpyHtoDAsync(pointer(dst), src, size, queue); });
}

void Device::memcpy_dtoh(void *dst, uint64_t src, uint64_t size, uint64_t streamHandle, Keep keep) {
  Current current(*this, __func__);
  checkRange(__func__, "src", src, size);
  copy(__func__, "hipMemcpyDtoHAsync", size, streamHandle, std::move(keep),
       [&](api::hipStream_t queue) { return hip_.hipMemcpyDtoHAsync(dst, pointer(src), size, queue); });
}

void Device::memcpy_dtod(uint64_t dst, uint64_t src, uint64_t size, uint64_t streamHandle) {
  Current current(*this, __func__);
  checkRange(__func__, "dst", dst, size);
  checkRange(__func__, "src", src, size);
  auto queue = stream(__func__, streamHandle);
  if (size)
    check(__func__, "hipMemcpyDtoDAsync", hip_.hipMemcpyDtoDAsync(pointer(dst), pointer(src), size, queue));
}

void Device::memset(uint64_t dst, uint8_t value, uint64_t size, uint64_t streamHandle) {
  Current current(*this, __func__);
  checkRange(__func__, "dst", dst, size);
  auto queue = stream(__func__, streamHandle);
  if (size)
    check(__func__, "hipMemsetD8Async", hip_.hipMemsetD8Async(pointer(dst), value, size, queue));
}

} // namespace tpk::hip
