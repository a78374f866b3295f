// Evaluates the steps of triton_porting_kit.abi.intervals before a launch: whether indices of the
// kernel may overflow with these arguments and this grid. If so, another version of the kernel is launched,
// which a Python function provides.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

namespace tpk {

struct Interval {
  std::int64_t low, high;
};

/// The numbers of triton_porting_kit.abi.intervals.Op.
enum class Op : std::int64_t {
  Constant,
  Integer,
  Argument, // a: its offset in the block, in bytes; b: its bits
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

  /// Whether all conditions among the steps hold, for the block of a launch and its grid.
  bool fit(const unsigned char *block, const std::uint32_t grid[3]) const {
    Interval few[96];
    std::vector<Interval> many;
    Interval *found = few;
    if (steps.size() > std::size(few)) {
      many.resize(steps.size());
      found = many.data();
    }
    Interval *next = found;
    for (const Step &step : steps)
      if (!run(step, found, block, grid, *next++))
        return false;
    return true;
  }

private:
  /// Bounds beyond these count as unknown. The sum of two values within them fits 64 bits.
  static constexpr std::int64_t kTold = static_cast<std::int64_t>(1) << 62;

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

  static std::int64_t farthest(Interval a) { return std::max(std::abs(a.low), std::abs(a.high)); }

  /// Bounds of the quotients, or products, of all pairs, for operations whose extremes are at the ends.
  template <class Function> static Interval corners(Interval a, Interval b, Function function) {
    const std::int64_t low = function(a.low, b.low);
    if (a.low == a.high && b.low == b.high)
      return {low, low};
    const std::int64_t others[] = {function(a.low, b.high), function(a.high, b.low),
                                   function(a.high, b.high)};
    return {std::min({low, others[0], others[1], others[2]}),
            std::max({low, others[0], others[1], others[2]})};
  }

  /// Evaluates one step; false if it does not fit, or is beyond what the launch provides.
  static bool run(const Step &step, const Interval *found, const unsigned char *block,
                  const std::uint32_t grid[3], Interval &result) {
    Interval a{}, b{};
    if (step.op >= Op::Add) {
      a = found[step.a];
      if (step.op < Op::Wrapped || step.op == Op::Counter || step.op == Op::Index)
        b = found[step.b];
    }
    switch (step.op) {
    case Op::Constant:
      result = {step.a, step.a};
      break;
    case Op::Integer:
      result = limits(step.a);
      break;
    case Op::Argument:
      result.low = result.high = read(block + step.a, step.b);
      break;
    case Op::Program:
      result = {0, std::max<std::int64_t>(grid[step.a], 1) - 1};
      break;
    case Op::Programs:
      result = {grid[step.a], grid[step.a]};
      break;
    case Op::Add:
      result = {a.low + b.low, a.high + b.high};
      break;
    case Op::Subtract:
      result = {a.low - b.high, a.high - b.low};
      break;
    case Op::Multiply: {
      bool over = false;
      result = corners(a, b, [&over](std::int64_t x, std::int64_t y) {
        std::int64_t product;
        over |= __builtin_mul_overflow(x, y, &product);
        return product;
      });
      if (over)
        return false;
      break;
    }
    case Op::Divide:
      if (b.low > 0)
        result = corners(a, b, [](std::int64_t x, std::int64_t y) { return x / y; });
      else
        result = {-farthest(a), farthest(a)};
      break;
    case Op::Remainder: {
      const std::int64_t last = std::max<std::int64_t>(farthest(b), 1) - 1;
      result = {std::min<std::int64_t>(0, std::max(a.low, -last)),
                std::max<std::int64_t>(0, std::min(a.high, last))};
      break;
    }
    case Op::Minimum:
      result = {std::min(a.low, b.low), std::min(a.high, b.high)};
      break;
    case Op::Maximum:
      result = {std::max(a.low, b.low), std::max(a.high, b.high)};
      break;
    case Op::Union:
      result = {std::min(a.low, b.low), std::max(a.high, b.high)};
      break;
    case Op::Wrapped:
      result = within(a, limits(step.b)) ? a : limits(step.b);
      break;
    case Op::Unsigned:
      if (a.low < 0 && step.b > 62)
        return false;
      result = a.low >= 0 ? a : Interval{0, (static_cast<std::int64_t>(1) << step.b) - 1};
      break;
    case Op::Counter:
      result = {a.low, std::max(a.low, b.high - 1)};
      break;
    case Op::Index: {
      const std::int64_t last = std::max<std::int64_t>(farthest(b), 1) - 1;
      result = {a.low >= 0 ? 0 : -last, last};
      break;
    }
    case Op::Fits:
      return within(a, limits(step.b));
    }
    return result.low >= -kTold && result.high <= kTold;
  }
};

/// A launch routine that runs before another. `context` of `launch` is one of these.
struct Guard {
  Steps steps;
  Entry entry;
  PyObject *other; // returns the function of the other version; borrowed from the owner of the guard

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
  static constexpr std::int32_t kFailed = 4; // with an exception set, which has the details

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
