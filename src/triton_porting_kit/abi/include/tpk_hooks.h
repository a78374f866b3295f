// Binds the hooks of a device that is a C++ class: `tpk::bindHooks(type, fail)` exposes each member that has
// a hook's name to Python, with checked arguments and without the GIL. A hook that the class lacks, or has
// with other parameters, is left out. The kit raises an error when it is called, or the device binds it
// itself.
//
// Numbers are uint64_t, uint32_t or uint8_t. `memcpy_htod` and `memcpy_dtoh` may take a
// `std::shared_ptr<void>` as their last parameter, which keeps the host buffer alive until its last copy is
// destroyed. Otherwise they must not use the buffer after they return.
#ifndef TPK_HOOKS_H
#define TPK_HOOKS_H

#include "tpk_abi.h"

#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <pybind11/pybind11.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tpk {

/// Raises the kit's exception.
inline void setError(Code code, const std::string &text) {
  // Never destroyed: an error may be raised while the interpreter exits.
  static const auto *types = [] {
    auto errors = pybind11::module_::import("triton_porting_kit.errors");
    auto *found = new std::vector<pybind11::object>;
    for (const char *name : ErrorNames)
      found->push_back(errors.attr(name));
    return found;
  }();
  pybind11::set_error((*types)[static_cast<std::size_t>(code)], text.c_str());
}

/// Makes a module raise the kit's exceptions for C++ exceptions of the type `Failure`, which has a `code`.
template <typename Failure> void registerErrors() {
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown)
        std::rethrow_exception(thrown);
    } catch (const Failure &failure) {
      setError(failure.code, failure.what());
    }
  });
}

// --- buffers ---------------------------------------------------------------------------------------------

/// A contiguous Python buffer. The first `releaseFinished` after the last copy of `keep` is destroyed
/// releases it: that destruction may happen on a thread that must not wait for the GIL.
struct HeldBuffer {
  void *data;
  std::uint64_t size;
  std::shared_ptr<void> keep;
};

struct FinishedBuffer {
  Py_buffer view;
  FinishedBuffer *next;
};

/// A lock-free list: any thread may push to it, and it is taken as a whole, also across fork().
inline std::atomic<FinishedBuffer *> finishedBuffers{nullptr};

/// Takes a buffer of `object`. If it has none, calls `refuse` with the reason, which must throw.
template <typename Refuse> HeldBuffer hold(pybind11::handle object, bool writable, Refuse refuse) {
  auto node = std::make_unique<FinishedBuffer>();
  if (PyObject_GetBuffer(object.ptr(), &node->view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
    pybind11::error_already_set why;
    refuse(std::string("type '") + Py_TYPE(object.ptr())->tp_name + "' is not a contiguous " +
           (writable ? "writable " : "") + "buffer: " + pybind11::str(why.value()).cast<std::string>());
  }
  HeldBuffer held{node->view.buf, static_cast<std::uint64_t>(node->view.len), nullptr};
  held.keep = std::shared_ptr<void>(node.release(), [](void *done) {
    auto *node = static_cast<FinishedBuffer *>(done);
    node->next = finishedBuffers.load(std::memory_order_relaxed);
    while (!finishedBuffers.compare_exchange_weak(node->next, node, std::memory_order_release)) {
    }
  });
  return held;
}

/// Releases the buffers whose copies have run. Call it with the GIL held.
inline void releaseFinished() {
  FinishedBuffer *node = finishedBuffers.exchange(nullptr, std::memory_order_acquire);
  while (node) {
    FinishedBuffer *next = node->next;
    PyBuffer_Release(&node->view);
    delete node;
    node = next;
  }
}

/// Calls `releaseFinished` at the end of a call.
struct Tidy {
  ~Tidy() { releaseFinished(); }
};

// --- arguments -------------------------------------------------------------------------------------------

/// An argument of a hook, and the error code if no unsigned integer can hold it.
struct Argument {
  const char *name;
  Code mistake;
};

template <typename Type, typename> using Same = Type;

/// Binds members of `Device`. `Fail` is called with the device, a Code, the hook's name and the reason, and
/// throws.
template <typename Device, typename Fail> class HookBinder {
public:
  HookBinder(pybind11::class_<Device> &type, Fail fail) : type_(type), fail_(fail) {}

  /// Converts a Python integer. Raises TypeError for other types.
  template <typename Number>
  static Number number(const Fail &fail, Device &device, const char *hook, Argument argument,
                       pybind11::handle value) {
    auto index = pybind11::reinterpret_steal<pybind11::object>(PyNumber_Index(value.ptr()));
    if (!index)
      throw pybind11::error_already_set();
    unsigned long long converted = PyLong_AsUnsignedLongLong(index.ptr());
    bool outside = converted > std::numeric_limits<Number>::max();
    if (converted == ~0ull && PyErr_Occurred()) {
      PyErr_Clear();
      outside = true;
    }
    if (outside) {
      constexpr int bits = std::numeric_limits<Number>::digits;
      fail(device, argument.mistake, hook,
           std::string(argument.name) + " " + pybind11::str(index).cast<std::string>() +
               " is not between 0 and " + (bits == 8 ? "255" : "2**" + std::to_string(bits) + " - 1"));
    }
    return static_cast<Number>(converted);
  }

  /// Binds a member that takes only numbers.
  template <typename Result, typename... Numbers, typename... Arguments>
  void numbers(const char *hook, Result (Device::*member)(Numbers...), Arguments... arguments) {
    static_assert(sizeof...(Numbers) == sizeof...(Arguments));
    type_.def(hook, [=, fail = fail_](Device &device, Same<pybind11::object, Numbers>... values) -> Result {
      std::tuple<Numbers...> converted{number<Numbers>(fail, device, hook, arguments, values)...};
      Tidy tidy;
      pybind11::gil_scoped_release released;
      return std::apply([&](Numbers... each) { return (device.*member)(each...); }, converted);
    });
  }

  void all() {
    constexpr Argument size{"size", Code::InvalidArgument}, value{"value", Code::InvalidArgument};
    constexpr Argument stream{"stream", Code::InvalidArgument}, event{"event", Code::InvalidArgument};
    constexpr Argument address{"addr", Code::InvalidPointer}, target{"dst", Code::InvalidPointer};
    constexpr Argument source{"src", Code::InvalidPointer}, module{"module", Code::InvalidModule};
    memory();
// Clang-format would parse these as declarations.
// clang-format off
#define TPK_HOOK(name, ...)                                                                                  \
  if constexpr (requires { &Device::name; })                                                                 \
    numbers(#name, &Device::name __VA_OPT__(, ) __VA_ARGS__)
    TPK_HOOK(memfree, address);
    TPK_HOOK(memcpy_dtod, target, source, size, stream);
    TPK_HOOK(memset, target, value, size, stream);
    TPK_HOOK(create_stream);
    TPK_HOOK(destroy_stream, stream);
    TPK_HOOK(synchronize, stream);
    TPK_HOOK(synchronize_all);
    TPK_HOOK(create_event);
    TPK_HOOK(destroy_event, event);
    TPK_HOOK(record_event, event, stream);
    TPK_HOOK(wait_event, stream, event);
    TPK_HOOK(synchronize_event, event);
    TPK_HOOK(elapsed_time, event, event);
    TPK_HOOK(unload_module, module);
    TPK_HOOK(close);
#undef TPK_HOOK
    // clang-format on
    if constexpr (requires(Device &device) { device.reset(); })
      numbers("reset", &Device::reset);
    peers();
    kernels();
    type_.def_property_readonly("context",
                                [](Device &device) { return reinterpret_cast<std::uint64_t>(&device); });
  }

private:
  HeldBuffer static take(const Fail &fail, Device &device, const char *hook, const char *argument,
                         pybind11::handle object, bool writable) {
    return hold(object, writable, [&](const std::string &reason) {
      fail(device, Code::InvalidArgument, hook, std::string(argument) + " of " + reason);
    });
  }

  void memory() {
    using Keep = std::shared_ptr<void>;
    constexpr Argument target{"dst", Code::InvalidPointer}, source{"src", Code::InvalidPointer};
    constexpr Argument stream{"stream", Code::InvalidArgument};
    if constexpr (requires(Device &device, std::uint64_t n) { device.memalloc(n, n); })
      type_.def("memalloc",
                [fail = fail_](Device &device, pybind11::handle size, pybind11::handle alignment) {
                  pybind11::int_ zero(0);
                  const int negative = PyObject_RichCompareBool(size.ptr(), zero.ptr(), Py_LT);
                  if (negative < 0)
                    throw pybind11::error_already_set();
                  // Too large for 64 bits is too large for the memory; below zero is a mistake of another
                  // kind.
                  const Argument bytes{"size", negative ? Code::InvalidArgument : Code::OutOfMemory};
                  auto wanted = number<std::uint64_t>(fail, device, "memalloc", bytes, size);
                  auto boundary = number<std::uint64_t>(fail, device, "memalloc",
                                                        {"alignment", Code::InvalidArgument}, alignment);
                  pybind11::gil_scoped_release released;
                  return device.memalloc(wanted, boundary);
                });
    constexpr bool copiesIn = requires(Device &d, const void *from, std::uint64_t n) {
      d.memcpy_htod(n, from, n, n);
    } || requires(Device &d, const void *from, std::uint64_t n) { d.memcpy_htod(n, from, n, n, Keep()); };
    if constexpr (copiesIn)
      type_.def("memcpy_htod", [=, fail = fail_](Device &device, pybind11::handle to, pybind11::handle from,
                                                 pybind11::handle on) {
        const char *hook = "memcpy_htod";
        auto dst = number<std::uint64_t>(fail, device, hook, target, to);
        auto queue = number<std::uint64_t>(fail, device, hook, stream, on);
        Tidy tidy;
        auto held = take(fail, device, hook, "src", from, false);
        pybind11::gil_scoped_release released;
        if constexpr (requires { device.memcpy_htod(dst, held.data, held.size, queue, Keep()); })
          device.memcpy_htod(dst, held.data, held.size, queue, std::move(held.keep));
        else
          device.memcpy_htod(dst, held.data, held.size, queue);
      });
    constexpr bool copiesOut = requires(Device &d, void *to, std::uint64_t n) {
      d.memcpy_dtoh(to, n, n, n);
    } || requires(Device &d, void *to, std::uint64_t n) { d.memcpy_dtoh(to, n, n, n, Keep()); };
    if constexpr (copiesOut)
      type_.def("memcpy_dtoh", [=, fail = fail_](Device &device, pybind11::handle to, pybind11::handle from,
                                                 pybind11::handle on) {
        const char *hook = "memcpy_dtoh";
        auto src = number<std::uint64_t>(fail, device, hook, source, from);
        auto queue = number<std::uint64_t>(fail, device, hook, stream, on);
        Tidy tidy;
        auto held = take(fail, device, hook, "dst", to, true);
        pybind11::gil_scoped_release released;
        if constexpr (requires { device.memcpy_dtoh(held.data, src, held.size, queue, Keep()); })
          device.memcpy_dtoh(held.data, src, held.size, queue, std::move(held.keep));
        else
          device.memcpy_dtoh(held.data, src, held.size, queue);
      });
  }

  void peers() {
    constexpr Argument target{"dst", Code::InvalidPointer}, source{"src", Code::InvalidPointer};
    constexpr Argument bytes{"size", Code::InvalidArgument}, stream{"stream", Code::InvalidArgument};
    constexpr Argument event{"event", Code::InvalidArgument};
    if constexpr (requires(Device &d, std::uint64_t n) { d.memcpy_peer(n, d, n, n, n); })
      type_.def("memcpy_peer",
                [=, fail = fail_](Device &device, pybind11::handle to, Device &peer, pybind11::handle from,
                                  pybind11::handle size, pybind11::handle on) {
                  const char *hook = "memcpy_peer";
                  auto dst = number<std::uint64_t>(fail, device, hook, target, to);
                  auto src = number<std::uint64_t>(fail, device, hook, source, from);
                  auto count = number<std::uint64_t>(fail, device, hook, bytes, size);
                  auto queue = number<std::uint64_t>(fail, device, hook, stream, on);
                  pybind11::gil_scoped_release released;
                  device.memcpy_peer(dst, peer, src, count, queue);
                });
    if constexpr (requires(Device &d, std::uint64_t n) { d.wait_peer_event(n, d, n); })
      type_.def("wait_peer_event", [=, fail = fail_](Device &device, pybind11::handle on, Device &peer,
                                                     pybind11::handle recorded) {
        const char *hook = "wait_peer_event";
        auto queue = number<std::uint64_t>(fail, device, hook, stream, on);
        auto mark = number<std::uint64_t>(fail, device, hook, event, recorded);
        pybind11::gil_scoped_release released;
        device.wait_peer_event(queue, peer, mark);
      });
  }

  void kernels() {
    if constexpr (requires(Device &d, const std::string &name) { d.load_module(nullptr, 0, name); })
      type_.def("load_module",
                [fail = fail_](Device &device, pybind11::handle binary, const std::string &name) {
                  Tidy tidy;
                  auto code = take(fail, device, "load_module", "binary", binary, false);
                  pybind11::gil_scoped_release released;
                  return device.load_module(code.data, code.size, name);
                });
    if constexpr (requires(Device &d, const std::string &name) { d.get_function(0, name); })
      type_.def(
          "get_function", [fail = fail_](Device &device, pybind11::handle module, const std::string &name) {
            auto handle =
                number<std::uint64_t>(fail, device, "get_function", {"module", Code::InvalidModule}, module);
            pybind11::gil_scoped_release released;
            return device.get_function(handle, name);
          });
    if constexpr (requires(Device &d, std::uint32_t n) { d.launch(0, n, n, n, 0, nullptr, 0); })
      type_.def("launch", [fail = fail_](Device &device, pybind11::handle function, pybind11::handle x,
                                         pybind11::handle y, pybind11::handle z, pybind11::handle stream,
                                         pybind11::handle args) {
        constexpr Argument count{"a count of the grid", Code::LaunchError};
        auto gx = number<std::uint32_t>(fail, device, "launch", count, x);
        auto gy = number<std::uint32_t>(fail, device, "launch", count, y);
        auto gz = number<std::uint32_t>(fail, device, "launch", count, z);
        auto handle =
            number<std::uint64_t>(fail, device, "launch", {"function", Code::LaunchError}, function);
        auto queue = number<std::uint64_t>(fail, device, "launch", {"stream", Code::LaunchError}, stream);
        Tidy tidy;
        auto block = take(fail, device, "launch", "args", args, false);
        pybind11::gil_scoped_release released;
        device.launch(handle, gx, gy, gz, queue, block.data, block.size);
      });
  }

  pybind11::class_<Device> &type_;
  Fail fail_;
};

template <typename Device, typename Fail> void bindHooks(pybind11::class_<Device> &type, Fail fail) {
  HookBinder<Device, Fail>(type, fail).all();
  // Another kit refuses the device before it opens one.
  type.attr(BuiltWith) = pybind11::make_tuple(DeviceInterface, KitRelease);
}

} // namespace tpk

#endif
