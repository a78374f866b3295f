// The C API: looks up the device, and converts exceptions to statuses.
#pragma GCC visibility push(default)
#include "vnpu.h"
#pragma GCC visibility pop

#include "config.h"
#include "device.h"

#include <new>
#include <pthread.h>
#include <unordered_map>

namespace vnpu {
namespace {

using DevicePointer = std::shared_ptr<Device>;

// The open devices. Never destroyed: threads may outlive static destruction, and a chip ends when its host
// exits.
struct Registry {
  std::mutex mutex;
  std::unordered_map<vnpu_device *, DevicePointer> devices;
};

Registry &registry() {
  static Registry *all = [] {
    pthread_atfork(
        [] {
          registry().mutex.lock();
          for (auto &[handle, device] : registry().devices)
            device->lockForFork();
        },
        [] {
          for (auto &[handle, device] : registry().devices)
            device->unlockAfterFork(false);
          registry().mutex.unlock();
        },
        [] {
          for (auto &[handle, device] : registry().devices)
            device->unlockAfterFork(true);
          registry().mutex.unlock();
        });
    return new Registry;
  }();
  return *all;
}

thread_local std::string lastError;

template <typename Body> vnpu_status guarded(const char *call, Body body) {
  auto failed = [call](vnpu_status status, const char *what) {
    try {
      // Lower layers do not know which API call they serve.
      std::string sentence = what;
      lastError = sentence.starts_with(call) ? sentence : text(call, ": ", sentence);
    } catch (const std::bad_alloc &) {
      lastError.clear();
    }
    return status;
  };
  try {
    body();
    return VNPU_OK;
  } catch (const Error &error) {
    return failed(error.status, error.what());
  } catch (const std::bad_alloc &) {
    return failed(VNPU_OUT_OF_MEMORY, "the process is out of memory");
  } catch (const std::exception &error) {
    return failed(VNPU_DEVICE_LOST, error.what());
  }
}

DevicePointer find(vnpu_device *handle) {
  std::lock_guard lock(registry().mutex);
  auto known = registry().devices.find(handle);
  if (known == registry().devices.end())
    throw Error(VNPU_INVALID_ARGUMENT,
                handle ? "the device is closed, or was never opened" : "device is NULL");
  return known->second;
}

// Runs a call on the current session.
template <typename Body> vnpu_status onSession(const char *call, vnpu_device *device, Body body) {
  return guarded(call, [&] {
    auto session = find(device)->session();
    body(*session);
  });
}

template <typename Result> void required(Result *result, const char *name) {
  if (!result)
    throw Error(VNPU_INVALID_ARGUMENT, text(name, " is NULL"));
}

} // namespace
} // namespace vnpu

using namespace vnpu;

const char *vnpu_last_error(void) { return lastError.c_str(); }

const char *vnpu_status_name(vnpu_status status) {
  switch (status) {
  case VNPU_OK:
    return "VNPU_OK";
  case VNPU_OUT_OF_MEMORY:
    return "VNPU_OUT_OF_MEMORY";
  case VNPU_INVALID_POINTER:
    return "VNPU_INVALID_POINTER";
  case VNPU_INVALID_MODULE:
    return "VNPU_INVALID_MODULE";
  case VNPU_LAUNCH_FAILED:
    return "VNPU_LAUNCH_FAILED";
  case VNPU_DEVICE_LOST:
    return "VNPU_DEVICE_LOST";
  case VNPU_ASSERTION_FAILED:
    return "VNPU_ASSERTION_FAILED";
  case VNPU_INVALID_ARGUMENT:
    return "VNPU_INVALID_ARGUMENT";
  case VNPU_COPY_FAILED:
    return "VNPU_COPY_FAILED";
  }
  return "an unknown status";
}

// --- the chip ---------------------------------------------------------------------------------------------

vnpu_status vnpu_default_config(vnpu_config *config) {
  return guarded("vnpu_default_config", [&] {
    required(config, "config");
    *config = defaultConfig();
  });
}

vnpu_status vnpu_count(uint32_t *count) {
  return guarded("vnpu_count", [&] {
    required(count, "count");
    *count = chipCount();
  });
}

vnpu_status vnpu_open(const vnpu_config *config, vnpu_device **device) {
  return guarded("vnpu_open", [&] {
    required(device, "device");
    vnpu_config chosen = config ? *config : defaultConfig();
    check(chosen);
    auto opened = std::make_shared<Device>(chosen);
    auto *handle = reinterpret_cast<vnpu_device *>(opened.get());
    std::lock_guard lock(registry().mutex);
    registry().devices.emplace(handle, std::move(opened));
    *device = handle;
  });
}

vnpu_status vnpu_close(vnpu_device *device) {
  return guarded("vnpu_close", [&] {
    DevicePointer closed = find(device);
    {
      std::lock_guard lock(registry().mutex);
      registry().devices.erase(device);
    }
    closed->close();
  });
}

vnpu_status vnpu_get_config(vnpu_device *device, vnpu_config *config) {
  return guarded("vnpu_get_config", [&] {
    required(config, "config");
    *config = find(device)->config();
  });
}

vnpu_status vnpu_chip_process(vnpu_device *device, int64_t *process) {
  return onSession("vnpu_chip_process", device, [&](Session &session) {
    required(process, "process");
    session.chip().requireAlive();
    *process = session.chip().process();
  });
}

vnpu_status vnpu_reset(vnpu_device *device) {
  return guarded("vnpu_reset", [&] { find(device)->reset(); });
}

// --- memory -----------------------------------------------------------------------------------------------

vnpu_status vnpu_alloc(vnpu_device *device, uint64_t size, uint64_t alignment, vnpu_address *address) {
  return onSession("vnpu_alloc", device, [&](Session &session) {
    required(address, "address");
    *address = session.allocate(size, alignment);
  });
}

vnpu_status vnpu_free(vnpu_device *device, vnpu_address address) {
  return onSession("vnpu_free", device, [&](Session &session) { session.release(address); });
}

vnpu_status vnpu_copy_to_device(vnpu_device *device, vnpu_queue queue, vnpu_address target,
                                const void *source, uint64_t size) {
  return onSession("vnpu_copy_to_device", device,
                   [&](Session &session) { session.copyIn(queue, target, source, size); });
}

vnpu_status vnpu_copy_to_host(vnpu_device *device, vnpu_queue queue, void *target, vnpu_address source,
                              uint64_t size) {
  return onSession("vnpu_copy_to_host", device,
                   [&](Session &session) { session.copyOut(queue, target, source, size); });
}

vnpu_status vnpu_copy_on_device(vnpu_device *device, vnpu_queue queue, vnpu_address target,
                                vnpu_address source, uint64_t size) {
  return onSession("vnpu_copy_on_device", device,
                   [&](Session &session) { session.copyOnDevice(queue, target, source, size); });
}

vnpu_status vnpu_fill(vnpu_device *device, vnpu_queue queue, vnpu_address target, uint8_t value,
                      uint64_t size) {
  return onSession("vnpu_fill", device, [&](Session &session) { session.fill(queue, target, value, size); });
}

// --- queues and events ------------------------------------------------------------------------------------

vnpu_status vnpu_queue_create(vnpu_device *device, vnpu_queue *queue) {
  return onSession("vnpu_queue_create", device, [&](Session &session) {
    required(queue, "queue");
    *queue = session.createQueue();
  });
}

vnpu_status vnpu_queue_destroy(vnpu_device *device, vnpu_queue queue) {
  return onSession("vnpu_queue_destroy", device, [&](Session &session) { session.destroyQueue(queue); });
}

vnpu_status vnpu_queue_synchronize(vnpu_device *device, vnpu_queue queue) {
  return onSession("vnpu_queue_synchronize", device, [&](Session &session) { session.synchronize(queue); });
}

vnpu_status vnpu_synchronize(vnpu_device *device) {
  return onSession("vnpu_synchronize", device, [&](Session &session) { session.synchronizeAll(); });
}

vnpu_status vnpu_event_create(vnpu_device *device, vnpu_event *event) {
  return onSession("vnpu_event_create", device, [&](Session &session) {
    required(event, "event");
    *event = session.createEvent();
  });
}

vnpu_status vnpu_event_destroy(vnpu_device *device, vnpu_event event) {
  return onSession("vnpu_event_destroy", device, [&](Session &session) { session.destroyEvent(event); });
}

vnpu_status vnpu_event_record(vnpu_device *device, vnpu_event event, vnpu_queue queue) {
  return onSession("vnpu_event_record", device, [&](Session &session) { session.record(event, queue); });
}

vnpu_status vnpu_queue_wait(vnpu_device *device, vnpu_queue queue, vnpu_event event) {
  return onSession("vnpu_queue_wait", device, [&](Session &session) { session.waitFor(queue, event); });
}

vnpu_status vnpu_event_synchronize(vnpu_device *device, vnpu_event event) {
  return onSession("vnpu_event_synchronize", device,
                   [&](Session &session) { session.synchronizeEvent(event); });
}

vnpu_status vnpu_event_elapsed(vnpu_device *device, vnpu_event start, vnpu_event end, double *milliseconds) {
  return onSession("vnpu_event_elapsed", device, [&](Session &session) {
    required(milliseconds, "milliseconds");
    *milliseconds = session.elapsedMilliseconds(start, end);
  });
}

// --- kernels ----------------------------------------------------------------------------------------------

vnpu_status vnpu_module_load(vnpu_device *device, const void *binary, uint64_t size, vnpu_module *module) {
  return onSession("vnpu_module_load", device, [&](Session &session) {
    required(module, "module");
    *module = session.load(binary, size);
  });
}

vnpu_status vnpu_module_unload(vnpu_device *device, vnpu_module module) {
  return onSession("vnpu_module_unload", device, [&](Session &session) { session.unload(module); });
}

vnpu_status vnpu_get_symbol(vnpu_device *device, vnpu_module module, const char *name,
                            vnpu_function *function) {
  return onSession("vnpu_get_symbol", device, [&](Session &session) {
    required(function, "function");
    *function = session.symbol(module, name);
  });
}

vnpu_status vnpu_launch(vnpu_device *device, vnpu_queue queue, vnpu_function function, uint32_t x, uint32_t y,
                        uint32_t z, const void *args, uint64_t size) {
  return onSession("vnpu_launch", device,
                   [&](Session &session) { session.launch(queue, function, {x, y, z}, args, size); });
}

// --- several chips ----------------------------------------------------------------------------------------

vnpu_status vnpu_copy_peer(vnpu_device *device, vnpu_queue queue, vnpu_address target, vnpu_device *peer,
                           vnpu_address source, uint64_t size) {
  return onSession("vnpu_copy_peer", device, [&](Session &session) {
    session.copyPeer(queue, target, *find(peer)->session(), source, size);
  });
}

vnpu_status vnpu_queue_wait_peer(vnpu_device *device, vnpu_queue queue, vnpu_device *peer, vnpu_event event) {
  return onSession("vnpu_queue_wait_peer", device,
                   [&](Session &session) { session.waitForPeer(queue, find(peer)->session(), event); });
}

vnpu_status vnpu_import(vnpu_device *device, int descriptor, uint64_t size, vnpu_address *address) {
  return onSession("vnpu_import", device, [&](Session &session) {
    required(address, "address");
    *address = session.import(descriptor, size);
  });
}

vnpu_status vnpu_fail_launches(vnpu_device *device, const char *reason) {
  return onSession("vnpu_fail_launches", device, [&](Session &session) { session.failLaunches(reason); });
}

// --- what it did, and misbehaviour ------------------------------------------------------------------------

vnpu_status vnpu_counters(vnpu_device *device, vnpu_counters_data *counters) {
  return onSession("vnpu_counters", device, [&](Session &session) {
    required(counters, "counters");
    *counters = session.counters();
  });
}

vnpu_status vnpu_unit_counters(vnpu_device *device, uint32_t unit, vnpu_unit_data *data) {
  return onSession("vnpu_unit_counters", device, [&](Session &session) {
    required(data, "data");
    *data = session.unitCounters(unit);
  });
}

vnpu_status vnpu_memory_counters(vnpu_device *device, uint32_t memory, vnpu_memory_data *data) {
  return onSession("vnpu_memory_counters", device, [&](Session &session) {
    required(data, "data");
    *data = session.memoryCounters(memory);
  });
}

vnpu_status vnpu_inject(vnpu_device *device, const char *faults) {
  return onSession("vnpu_inject", device, [&](Session &session) {
    required(faults, "faults");
    session.chip().requireAlive();
    session.faults().arm(Faults::parse("vnpu_inject", faults));
  });
}
