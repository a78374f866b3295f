// Runs the steps of triton_porting_kit.toolchain.intervals before a launch: whether indices of the kernel may
// wrap around with these arguments and this grid. If so, another version of the kernel is launched, that a
// Python function gives.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

namespace tpk {

struct Interval {
  std::int64_t low, high;
};

/// The numbers of triton_porting_kit.toolchain.intervals.Op.
enum class Op : std::int64_t {
  Constant,
  Integer,
  Argument, // a: its place in the block, in bytes; b: its bits
  Program,
  Programs,
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
  Minimum,
  Maximum,
  Union,
  Wrapped,
  Unsigned,
  Counter,
  Index,
  Fits
};

struct Step {
  Op op;
  std::int64_t a, b;
};

class Steps {
public:
  std::vector<Step> steps;

  /// Whether what the steps ask is so, for the block of a launch and its grid.
  bool fit(const unsigned char *block, const std::uint32_t grid[3]) const {
    thread_local std::vector<Interval> found;
    found.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step &step = steps[i];
      if (step.op == Op::Fits) {
        if (!within(found[step.a], limits(step.b)))
          return false;
        continue;
      }
      Wide wide = interval(step, found.data(), block, grid);
      if (wide.low < -kTold || wide.high > kTold)
        return false;
      found[i] = {static_cast<std::int64_t>(wide.low), static_cast<std::int64_t>(wide.high)};
    }
    return true;
  }

private:
  __extension__ typedef __int128 Int;

  struct Wide {
    Int low, high;
  };

  static constexpr Int kTold = static_cast<Int>(1) << 62;

  static Interval limits(std::int64_t bits) {
    const std::int64_t top = static_cast<std::int64_t>((static_cast<std::uint64_t>(1) << (bits - 1)) - 1);
    return {-top - 1, top};
  }

  static bool within(Interval a, Interval b) { return b.low <= a.low && a.high <= b.high; }

  static std::int64_t read(const unsigned char *place, std::int64_t bits) {
    std::int64_t value = 0; // little endian, as the block is
    std::memcpy(&value, place, static_cast<std::size_t>(bits / 8));
    const int unused = static_cast<int>(64 - bits);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused;
  }

  static Int farthest(Interval a) { return std::max(magnitude(a.low), magnitude(a.high)); }
  static Int magnitude(Int a) { return a < 0 ? -a : a; }

  template <class Function> static Wide corners(Interval a, Interval b, Function function) {
    const Int found[] = {function(Int(a.low), Int(b.low)), function(Int(a.low), Int(b.high)),
                         function(Int(a.high), Int(b.low)), function(Int(a.high), Int(b.high))};
    return {*std::min_element(found, found + 4), *std::max_element(found, found + 4)};
  }

  static Wide interval(const Step &step, const Interval *found, const unsigned char *block,
                       const std::uint32_t grid[3]) {
    Interval a{}, b{};
    if (step.op >= Op::Add) {
      a = found[step.a];
      if (step.op != Op::Wrapped && step.op != Op::Unsigned)
        b = found[step.b];
    }
    switch (step.op) {
    case Op::Constant:
      return {step.a, step.a};
    case Op::Integer:
      a = limits(step.a);
      return {a.low, a.high};
    case Op::Argument: {
      const std::int64_t value = read(block + step.a, step.b);
      return {value, value};
    }
    case Op::Program:
      return {0, grid[step.a] ? static_cast<Int>(grid[step.a]) - 1 : 0};
    case Op::Programs:
      return {grid[step.a], grid[step.a]};
    case Op::Add:
      return {Int(a.low) + b.low, Int(a.high) + b.high};
    case Op::Subtract:
      return {Int(a.low) - b.high, Int(a.high) - b.low};
    case Op::Multiply:
      return corners(a, b, [](Int x, Int y) { return x * y; });
    case Op::Divide:
      if (b.low <= 0)
        return {-farthest(a), farthest(a)};
      return corners(a, b, [](Int x, Int y) { return x / y; });
    case Op::Remainder: {
      const Int last = std::max<Int>(farthest(b), 1) - 1;
      return {std::min<Int>(0, std::max<Int>(a.low, -last)), std::max<Int>(0, std::min<Int>(a.high, last))};
    }
    case Op::Minimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::Maximum:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::Union:
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    case Op::Wrapped:
      a = within(a, limits(step.b)) ? a : limits(step.b);
      return {a.low, a.high};
    case Op::Unsigned:
      if (a.low >= 0)
        return {a.low, a.high};
      return {0, (Int(1) << step.b) - 1};
    case Op::Counter:
      return {a.low, std::max<Int>(a.low, Int(b.high) - 1)};
    case Op::Index: {
      const Int last = std::max<Int>(farthest(b), 1) - 1;
      return {a.low >= 0 ? 0 : -last, last};
    }
    case Op::Fits:
      break;
    }
    return {-2 * kTold, 2 * kTold};
  }
};

/// A launch routine before another. `context` of `launch` is one of these.
struct Guard {
  Steps steps;
  Entry entry;
  PyObject *other; // gives the function of the other version; borrowed from who holds the guard

  static std::int32_t launch(void *context, std::uint64_t stream, std::uint64_t function,
                             std::uint32_t grid_x, std::uint32_t grid_y, std::uint32_t grid_z,
                             const void *args, std::uint64_t args_size, char *message,
                             std::uint64_t message_size) {
    const auto *guard = static_cast<const Guard *>(context);
    const std::uint32_t grid[3] = {grid_x, grid_y, grid_z};
    if (!guard->steps.fit(static_cast<const unsigned char *>(args), grid) && !guard->other_version(&function))
      return kFailed;
    return guard->entry.function(guard->entry.context, stream, function, grid_x, grid_y, grid_z, args,
                                 args_size, message, message_size);
  }

private:
  static constexpr std::int32_t kFailed = 4; // with an exception set, which says more

  bool other_version(std::uint64_t *function) const {
    const PyGILState_STATE state = PyGILState_Ensure();
    {
      Ref found(PyObject_CallNoArgs(other));
      if (found)
        *function = PyLong_AsUnsignedLongLong(found.get());
    }
    const bool failed = PyErr_Occurred() != nullptr;
    PyGILState_Release(state);
    return !failed;
  }
};

} // namespace tpk
