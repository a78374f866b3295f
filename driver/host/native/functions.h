// Mathematical functions for kernels, called by symbol with the lanes of one vector register at a time.
//
// A routine `tpk_math_NAME_f32` or `_f64` is `void(int64_t count, R *result, const A *a, const B *b, ...)`:
// result[i] is the function of a[i], b[i], ... The suffix is the type of its floats.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace tpk {

struct Routine {
  std::string name;
  uint64_t address;
  // "float(float, int32_t)": R, and then A, B, ...
  std::string signature = {};
};

// Functions of C's <math.h>, and simple combinations of them.
void addElementaryFunctions(std::vector<Routine> &routines);
// Error functions and their inverses, gamma and Bessel functions.
void addSpecialFunctions(std::vector<Routine> &routines);
// Arithmetic and conversions with rounding modes other than to nearest.
void addDirectedArithmetic(std::vector<Routine> &routines);

// The routine that applies a scalar function to all lanes.
template <auto function, class R, class... A> void onLanes(int64_t count, R *result, const A *...operands) {
  for (int64_t i = 0; i < count; ++i)
    result[i] = function(operands[i]...);
}

template <class T> std::string typeName() {
  if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? "float" : "double";
  else
    return (std::is_signed_v<T> ? "int" : "uint") + std::to_string(8 * sizeof(T)) + "_t";
}

// Adds a routine whose C++ function is an instance, for R and A..., of `onLanes` or a similar template.
template <class R, class... A>
void addInstance(std::vector<Routine> &routines, const std::string &name,
                 void (*instance)(int64_t, R *, const A *...)) {
  std::string operands;
  ((operands += (operands.empty() ? "" : ", ") + typeName<A>()), ...);
  routines.push_back(
      {"tpk_math_" + name, reinterpret_cast<uint64_t>(instance), typeName<R>() + "(" + operands + ")"});
}

template <auto function, class R, class... A>
void addRoutine(std::vector<Routine> &routines, const std::string &name) {
  addInstance(routines, name, &onLanes<function, R, A...>);
}

// `function` of operands whose floats are converted to the type W, rounded to R. If W is wider, the error is
// that of one rounding, or close to it.
template <auto function, class W, class R, class... A>
inline constexpr auto in = [](A... operands) -> R {
  return static_cast<R>(
      function(static_cast<std::conditional_t<std::is_floating_point_v<A>, W, A>>(operands)...));
};

} // namespace tpk
