#include "device.h"

#include <cstdio>

// --- life ----------------------------------------------------------------------------------------

uint32_t device_count() noexcept {
  uint32_t count = 0;
  return vnpu_count(&count) == VNPU_OK ? count : 0;
}

Device::Device() {
  vnpu_device *opened;
  check("open", vnpu_open(nullptr, &opened));
  chip_ = std::shared_ptr<vnpu_device>(opened, vnpu_close);
}

std::shared_ptr<vnpu_device> Device::chip() {
  std::lock_guard lock(mutex_);
  if (!chip_)
    throw Failure(Kind::DeviceLost, "call", "the device is closed; it closes when the interpreter exits");
  return chip_;
}

void Device::close() {
  std::lock_guard lock(mutex_);
  chip_.reset();
}

void Device::reset() { check("reset", vnpu_reset(chip().get())); }

Properties Device::properties() {
  vnpu_config config;
  check("properties", vnpu_get_config(chip().get(), &config));
  return {config.memory_bytes, config.scratchpad_bytes, config.cores};
}

// --- memory --------------------------------------------------------------------------------------

uint64_t Device::memalloc(uint64_t size, uint64_t alignment) {
  vnpu_address address;
  check("memalloc", vnpu_alloc(chip().get(), size, alignment, &address));
  return address;
}

void Device::memfree(uint64_t addr) { check("memfree", vnpu_free(chip().get(), addr)); }

void Device::memcpy_htod(uint64_t dst, const void *src, uint64_t size, uint64_t stream) {
  check("memcpy_htod", vnpu_copy_to_device(chip().get(), stream, dst, src, size));
}

void Device::memcpy_dtoh(void *dst, uint64_t src, uint64_t size, uint64_t stream) {
  check("memcpy_dtoh", vnpu_copy_to_host(chip().get(), stream, dst, src, size));
}

void Device::memcpy_dtod(uint64_t dst, uint64_t src, uint64_t size, uint64_t stream) {
  check("memcpy_dtod", vnpu_copy_on_device(chip().get(), stream, dst, src, size));
}

void Device::memset(uint64_t dst, uint8_t value, uint64_t size, uint64_t stream) {
  check("memset", vnpu_fill(chip().get(), stream, dst, value, size));
}

// --- streams and events --------------------------------------------------------------------------

uint64_t Device::create_stream() {
  vnpu_queue queue;
  check("create_stream", vnpu_queue_create(chip().get(), &queue));
  return queue;
}

void Device::destroy_stream(uint64_t stream) {
  check("destroy_stream", vnpu_queue_destroy(chip().get(), stream));
}

void Device::synchronize(uint64_t stream) {
  check("synchronize", vnpu_queue_synchronize(chip().get(), stream));
}

void Device::synchronize_all() { check("synchronize", vnpu_synchronize(chip().get())); }

uint64_t Device::create_event() {
  vnpu_event event;
  check("create_event", vnpu_event_create(chip().get(), &event));
  return event;
}

void Device::destroy_event(uint64_t event) {
  check("destroy_event", vnpu_event_destroy(chip().get(), event));
}

void Device::record_event(uint64_t event, uint64_t stream) {
  check("record_event", vnpu_event_record(chip().get(), event, stream));
}

void Device::wait_event(uint64_t stream, uint64_t event) {
  check("wait_event", vnpu_queue_wait(chip().get(), stream, event));
}

void Device::synchronize_event(uint64_t event) {
  check("synchronize_event", vnpu_event_synchronize(chip().get(), event));
}

double Device::elapsed_time(uint64_t start, uint64_t end) {
  double milliseconds;
  check("elapsed_time", vnpu_event_elapsed(chip().get(), start, end, &milliseconds));
  return milliseconds;
}

// --- kernels -------------------------------------------------------------------------------------

uint64_t Device::load_module(const void *binary, uint64_t size, const std::string &name) {
  vnpu_module module;
  check("load_module: kernel '" + name + "'", vnpu_module_load(chip().get(), binary, size, &module));
  return module;
}

void Device::unload_module(uint64_t module) {
  check("unload_module", vnpu_module_unload(chip().get(), module));
}

uint64_t Device::get_function(uint64_t module, const std::string &name) {
  vnpu_function function;
  check("get_function", vnpu_get_symbol(chip().get(), module, name.c_str(), &function));
  return function;
}

void Device::launch(uint64_t function, uint32_t x, uint32_t y, uint32_t z, uint64_t stream, const void *args,
                    uint64_t size) {
  vnpu_status status = vnpu_launch(chip().get(), stream, function, x, y, z, args, size);
  // An unknown stream or function is reported as a failure of the launch.
  if (status == VNPU_INVALID_ARGUMENT || status == VNPU_INVALID_MODULE)
    status = VNPU_LAUNCH_FAILED;
  check("launch", status);
}

extern "C" int32_t launch_entry(void *context, uint64_t stream, uint64_t function, uint32_t x, uint32_t y,
                                uint32_t z, const void *args, uint64_t size, char *message,
                                uint64_t message_size) {
  try {
    static_cast<Device *>(context)->launch(function, x, y, z, stream, args, size);
    return 0;
  } catch (const Failure &failure) {
    std::snprintf(message, message_size, "%s", failure.what());
    return static_cast<int32_t>(tpk::launchCode(failure.code));
  } catch (const std::exception &error) {
    std::snprintf(message, message_size, "%s: launch: %s", kDeviceName, error.what());
    return static_cast<int32_t>(Kind::DeviceLost);
  }
}
