#include "functions.h"

#include <cmath>
#include <limits>

namespace tpk {
namespace {

// The number of operands, all floats of the result's type.
enum Operands { One = 1, Two, Three, Four };

template <class T, size_t> using Each = T;

template <auto function, class W, class R, size_t... index>
void addOf(std::vector<Routine> &routines, const std::string &name, std::index_sequence<index...>) {
  addRoutine<in<function, W, R, Each<R, index>...>, R, Each<R, index>...>(routines, name);
}

// A function that the C library computes in double precision within one ulp.
template <auto function, int operands = One>
void direct(std::vector<Routine> &routines, const std::string &name) {
  addOf<function, double, float>(routines, name + "_f32", std::make_index_sequence<operands>());
  addOf<function, double, double>(routines, name + "_f64", std::make_index_sequence<operands>());
}

// A function that the C library does not: computed in the next wider type.
template <auto function, int operands = One>
void widened(std::vector<Routine> &routines, const std::string &name) {
  addOf<function, double, float>(routines, name + "_f32", std::make_index_sequence<operands>());
  addOf<function, long double, double>(routines, name + "_f64", std::make_index_sequence<operands>());
}

template <class T> constexpr T pi = T(3.141592653589793238462643383279502884L);

// sin(pi r) for 0 <= r <= 1/2, computed from the nearer of 0 and 1/2.
template <class T> T sinOfPi(T r) {
  return r <= T(0.25) ? std::sin(pi<T> * r) : std::cos(pi<T> * (T(0.5) - r));
}

template <class T> T sinpi(T x) {
  T r = std::remainder(x, T(2)), size = std::fabs(r);
  T value = std::copysign(sinOfPi(size > T(0.5) ? 1 - size : size), r);
  return value == 0 ? std::copysign(value, x) : value;
}

template <class T> T cospi(T x) {
  T distance = T(0.5) - std::fabs(std::remainder(x, T(2)));
  return distance == 0 ? T(0) : std::copysign(sinOfPi(std::fabs(distance)), distance);
}

// An infinite operand gives infinity even beside NaN, as in hypot. The wide type represents every square.
template <class T, class... Ts> T norm(T first, Ts... rest) {
  if (std::isinf(first) || (std::isinf(rest) || ...))
    return std::numeric_limits<T>::infinity();
  return std::sqrt(first * first + ((rest * rest) + ...));
}

template <class T> int32_t exponentOf(T x) {
  if (x == 0 || std::isnan(x))
    return std::numeric_limits<int32_t>::min();
  return std::isinf(x) ? std::numeric_limits<int32_t>::max() : std::ilogb(x);
}

} // namespace

void addElementaryFunctions(std::vector<Routine> &routines) {
  direct<[](auto x) { return std::exp(x); }>(routines, "exp");
  direct<[](auto x) { return std::exp2(x); }>(routines, "exp2");
  direct<[](auto x) { return std::expm1(x); }>(routines, "expm1");
  direct<[](auto x) { return std::log(x); }>(routines, "log");
  direct<[](auto x) { return std::log1p(x); }>(routines, "log1p");
  direct<[](auto x) { return std::log2(x); }>(routines, "log2");
  direct<[](auto x) { return std::sin(x); }>(routines, "sin");
  direct<[](auto x) { return std::cos(x); }>(routines, "cos");
  direct<[](auto x) { return std::tan(x); }>(routines, "tan");
  direct<[](auto x) { return std::asin(x); }>(routines, "asin");
  direct<[](auto x) { return std::acos(x); }>(routines, "acos");
  direct<[](auto x) { return std::atan(x); }>(routines, "atan");
  direct<[](auto x, auto y) { return std::atan2(x, y); }, Two>(routines, "atan2");
  direct<[](auto x, auto y) { return std::pow(x, y); }, Two>(routines, "pow");
  direct<[](auto x, auto y) { return std::fmod(x, y); }, Two>(routines, "fmod");
  direct<[](auto x, auto y) { return std::remainder(x, y); }, Two>(routines, "remainder");
  direct<[](auto x, auto y) { return std::fdim(x, y); }, Two>(routines, "fdim");
  direct<[](auto x) { return std::logb(x); }>(routines, "logb");

  widened<[](auto x) { return ::exp10l(x); }>(routines, "exp10");
  widened<[](auto x) { return std::log10(x); }>(routines, "log10");
  widened<[](auto x) { return std::sinh(x); }>(routines, "sinh");
  widened<[](auto x) { return std::cosh(x); }>(routines, "cosh");
  widened<[](auto x) { return std::tanh(x); }>(routines, "tanh");
  widened<[](auto x) { return std::asinh(x); }>(routines, "asinh");
  widened<[](auto x) { return std::acosh(x); }>(routines, "acosh");
  widened<[](auto x) { return std::atanh(x); }>(routines, "atanh");
  widened<[](auto x) { return std::cbrt(x); }>(routines, "cbrt");
  widened<[](auto x) { return 1 / std::cbrt(x); }>(routines, "rcbrt");
  widened<[](auto x) { return sinpi(x); }>(routines, "sinpi");
  widened<[](auto x) { return cospi(x); }>(routines, "cospi");
  widened<[](auto x, auto y) { return norm(x, y); }, Two>(routines, "hypot");
  widened<[](auto x, auto y) { return 1 / norm(x, y); }, Two>(routines, "rhypot");
  widened<[](auto x, auto y, auto z) { return norm(x, y, z); }, Three>(routines, "norm3d");
  widened<[](auto x, auto y, auto z) { return 1 / norm(x, y, z); }, Three>(routines, "rnorm3d");
  widened<[](auto x, auto y, auto z, auto w) { return norm(x, y, z, w); }, Four>(routines, "norm4d");
  widened<[](auto x, auto y, auto z, auto w) { return 1 / norm(x, y, z, w); }, Four>(routines, "rnorm4d");

  constexpr auto powi = [](auto x, int32_t n) { return std::pow(x, static_cast<double>(n)); };
  addRoutine<in<powi, double, float, float, int32_t>, float, float, int32_t>(routines, "powi_f32");
  addRoutine<in<powi, double, double, double, int32_t>, double, double, int32_t>(routines, "powi_f64");
  constexpr auto ldexp = [](auto x, int32_t n) { return std::ldexp(x, n); };
  addRoutine<in<ldexp, double, float, float, int32_t>, float, float, int32_t>(routines, "ldexp_f32");
  addRoutine<in<ldexp, double, double, double, int32_t>, double, double, int32_t>(routines, "ldexp_f64");
  constexpr auto nextafter = [](auto x, auto y) { return std::nextafter(x, y); };
  addRoutine<nextafter, float, float, float>(routines, "nextafter_f32");
  addRoutine<nextafter, double, double, double>(routines, "nextafter_f64");
  constexpr auto ilogb = [](auto x) { return exponentOf(x); };
  addRoutine<ilogb, int32_t, float>(routines, "ilogb_f32");
  addRoutine<ilogb, int32_t, double>(routines, "ilogb_f64");
}

} // namespace tpk
