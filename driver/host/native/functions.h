// Mathematical functions for kernels, called by symbol with the lanes of a vector register at a time.
//
// A routine `tpk_math_NAME_f32` or `_f64` is `void(int64_t count, R *result, const A *a, const B *b, ...)`:
// result[i] is the function of a[i], b[i], ... The suffix says the type of its floats.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tpk {

// Name and address.
using Routine = std::pair<std::string, uint64_t>;

// Functions of C's <math.h>, and those that are a line of them.
void addElementaryFunctions(std::vector<Routine> &routines);
// Error functions and their inverses, gamma and Bessel functions.
void addSpecialFunctions(std::vector<Routine> &routines);
// Arithmetic and conversions with a rounding mode other than to nearest.
void addDirectedArithmetic(std::vector<Routine> &routines);

// The routine of a function of scalars.
template <auto function, class R, class... A> void onLanes(int64_t count, R *result, const A *...operands) {
  for (int64_t i = 0; i < count; ++i)
    result[i] = function(operands[i]...);
}

template <auto function, class R, class... A>
void addRoutine(std::vector<Routine> &routines, const std::string &name) {
  routines.emplace_back("tpk_math_" + name, reinterpret_cast<uint64_t>(&onLanes<function, R, A...>));
}

// `function` of operands whose floats are taken to the type W, rounded to R: where W is wider, the error is
// that of one rounding, or nearly so.
template <auto function, class W, class R, class... A>
inline constexpr auto in = [](A... operands) -> R {
  return static_cast<R>(
      function(static_cast<std::conditional_t<std::is_floating_point_v<A>, W, A>>(operands)...));
};

} // namespace tpk
