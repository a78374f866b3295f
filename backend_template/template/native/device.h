// The device's hooks over the runtime's C API, independent of Python. Every call may block, may come from any
// thread, and does not hold the GIL.
#pragma once

#include "errors.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

struct Properties {
  uint64_t memory_bytes;
  uint64_t max_scratch_bytes;
  uint32_t core_count;
};

/// The number of chips in this machine, without opening one; 0 if the runtime reports an error.
uint32_t device_count() noexcept;

class Device {
public:
  Device();

  Properties properties();

  uint64_t memalloc(uint64_t size, uint64_t alignment);
  void memfree(uint64_t addr);
  void memcpy_htod(uint64_t dst, const void *src, uint64_t size, uint64_t stream);
  void memcpy_dtoh(void *dst, uint64_t src, uint64_t size, uint64_t stream);
  void memcpy_dtod(uint64_t dst, uint64_t src, uint64_t size, uint64_t stream);
  void memset(uint64_t dst, uint8_t value, uint64_t size, uint64_t stream);

  uint64_t create_stream();
  void destroy_stream(uint64_t stream);
  void synchronize(uint64_t stream);
  void synchronize_all();

  uint64_t create_event();
  void destroy_event(uint64_t event);
  void record_event(uint64_t event, uint64_t stream);
  void wait_event(uint64_t stream, uint64_t event);
  void synchronize_event(uint64_t event);
  double elapsed_time(uint64_t start, uint64_t end);

  uint64_t load_module(const void *binary, uint64_t size, const std::string &name);
  void unload_module(uint64_t module);
  uint64_t get_function(uint64_t module, const std::string &name);
  void launch(uint64_t function, uint32_t x, uint32_t y, uint32_t z, uint64_t stream, const void *args,
              uint64_t size);

  void reset();
  /// Closes the chip once no other thread is in a call. Later calls fail with DeviceLost.
  void close();

private:
  std::shared_ptr<vnpu_device> chip();

  std::mutex mutex_;
  std::shared_ptr<vnpu_device> chip_;
};

/// `Device::launch` for launchers that do not call Python; `context` is the Device. Returns 0, or the number
/// of a Kind and its text in `message`.
extern "C" int32_t launch_entry(void *context, uint64_t stream, uint64_t function, uint32_t x, uint32_t y,
                                uint32_t z, const void *args, uint64_t size, char *message,
                                uint64_t message_size);
