#include "functions.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace tpk {
namespace {

constexpr long double pi = 3.141592653589793238462643383279502884L;
constexpr long double rootOfHalf = 0.707106781186547524400844362104849039L;
constexpr long double twoOverRootOfPi = 1.128379167095512573896158903121545172L;

// Sums stop at a term of this size, which is below the precision of any result.
template <class T> constexpr T negligible = T(0x1p-72L);

// exp(x^2) for an x of at most 53 bits. The error of x^2 would be multiplied by x^2, so x is split: the
// square of the upper bits is exact, the rest is small.
template <class T> T expOfSquare(T x) {
  T upper = static_cast<float>(x);
  return std::exp(upper * upper) * std::exp((x - upper) * (x + upper));
}

// exp(x^2) erfc(x).
template <class T> T erfcx(T x) {
  if (x < 0)
    return x < -27 ? std::numeric_limits<T>::infinity() : 2 * expOfSquare(x) - erfcx(-x);
  if (!(x >= 10))
    return expOfSquare(x) * std::erfc(x);
  // The asymptotic expansion (Abramowitz and Stegun 7.1.23), whose terms shrink to 10^-43.
  T step = T(-0.5) / (x * x), term = 1, sum = 1;
  for (int k = 1; std::fabs(term) > negligible<T>; k += 2)
    sum += term *= step * k;
  return sum / (x * std::sqrt(T(pi)));
}

// The initial approximation is from S. Winitzki, "A handy approximation for the error function and its
// inverse" (2008), within 0.4 %.
template <class T> T erfinvApproximately(T x) {
  T size = std::fabs(x);
  if (size < T(0.125))
    return T(0.886226925L) * x * (1 + T(pi / 12) * x * x);
  T logarithm = std::log1p(-size) + std::log1p(size);
  constexpr T a = T(0.147);
  T half = T(2 / pi) / a + logarithm / 2;
  return std::copysign(std::sqrt(std::sqrt(half * half - logarithm / a) - half), x);
}

// Whether the error after a change of this size, which is cubic in it, is below the precision of any type.
template <class T> bool isLast(T change, T y) { return std::fabs(change) < std::fabs(y) * T(0x1p-36); }

// The y > 0 of erfc(y) = q, for 0 < q <= 1/2: Halley's iteration.
template <class T> T erfcinvOfTail(T q) {
  T y;
  if (std::is_same_v<T, long double> && q > 0x1p-1000L) {
    // Most iterations use double precision, which is many times as fast; one step remains.
    y = erfcinvOfTail(static_cast<double>(q));
  } else {
    // For small q, 1 - q is 1. Winitzki's formula needs the logarithm of 1 - (1 - q)^2.
    constexpr T a = T(0.147);
    T logarithm = std::log(q) + std::log(2 - q);
    T half = T(2 / pi) / a + logarithm / 2;
    y = std::sqrt(std::sqrt(half * half - logarithm / a) - half);
  }
  for (int i = 0; i < 12; ++i) {
    // (erfc(y) - q) over its derivative, both scaled by exp(y^2): erfcx does not underflow.
    T newton = (std::erfc(y) - q) / (-T(twoOverRootOfPi) * std::exp(-y * y));
    T change = newton / (1 + y * newton);
    y -= change;
    if (isLast(change, y))
      break;
  }
  return y;
}

template <class T> T erfinv(T x) {
  T size = std::fabs(x);
  if (!(size < 1))
    return size == 1 ? std::copysign(std::numeric_limits<T>::infinity(), x)
                     : std::numeric_limits<T>::quiet_NaN();
  if (size > T(0.5))
    return std::copysign(erfcinvOfTail(1 - size), x);
  // In double precision first, as for the tail, except where a double would lose bits, or all of them.
  bool inDouble = std::is_same_v<T, long double> && size > 0x1p-1000L;
  T y = inDouble ? static_cast<T>(erfinv(static_cast<double>(x))) : erfinvApproximately(x);
  for (int i = 0; i < 3; ++i) {
    T newton = (std::erf(y) - x) / (T(twoOverRootOfPi) * std::exp(-y * y));
    T change = newton / (1 + y * newton);
    y -= change;
    if (isLast(change, y))
      break;
  }
  return y;
}

template <class T> T erfcinv(T x) {
  if (x >= T(0.5) && x <= T(1.5))
    return erfinv(1 - x);
  if (!(x > 0 && x < 2)) {
    if (x == 0 || x == 2)
      return std::copysign(std::numeric_limits<T>::infinity(), 1 - x);
    return std::numeric_limits<T>::quiet_NaN();
  }
  return x < 1 ? erfcinvOfTail(x) : -erfcinvOfTail(2 - x);
}

// erfc(-x / sqrt(2)) / 2, corrected for the argument's error d, which would contribute 2 d x.
template <class T> T normcdf(T x) {
  T y = -x * T(rootOfHalf), value = std::erfc(y) / 2;
  if (!(std::fabs(y) < 40))
    return value;
  T error = std::fma(-x, T(rootOfHalf), -y) - x * T(rootOfHalf - static_cast<long double>(T(rootOfHalf)));
  return value - error * T(twoOverRootOfPi / 2) * std::exp(-y * y);
}

// lgamma without its side effect: C stores the sign in a global variable.
long double logGamma(long double x) {
  int sign;
  return ::lgammal_r(x, &sign);
}

// The modified Bessel functions of the first kind of order 0 and 1, for x >= 0: the power series, whose terms
// are all positive (Abramowitz and Stegun 9.6.10), or the asymptotic expansion (9.7.1).
template <int order, class T> T besselI(T x) {
  T term = 1, sum = 1;
  if (x < 30) {
    T square = x * x / 4;
    for (int k = 1; term > sum * negligible<T>; ++k)
      sum += term *= square / (k * T(k + order));
    return order ? sum * x / 2 : sum;
  }
  if (std::isinf(x))
    return x;
  for (int k = 1; std::fabs(term) > negligible<T> && k < 60; ++k)
    sum += term *= (T(2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * x * k);
  return std::exp(x) / std::sqrt(2 * T(pi) * x) * sum;
}

template <class T> T besselI0(T x) { return besselI<0>(std::fabs(x)); }
template <class T> T besselI1(T x) { return std::copysign(besselI<1>(std::fabs(x)), x); }

// Both types, by way of the types W and V.
template <auto function, class W, class V>
void addReal(std::vector<Routine> &routines, const std::string &name) {
  addRoutine<in<function, W, float, float>, float, float>(routines, name + "_f32");
  addRoutine<in<function, V, double, double>, double, double>(routines, name + "_f64");
}

template <auto function> void widened(std::vector<Routine> &routines, const std::string &name) {
  addReal<function, double, long double>(routines, name);
}

// For Bessel functions with zeros, near which every bit matters.
template <auto function> void widest(std::vector<Routine> &routines, const std::string &name) {
  addReal<function, long double, long double>(routines, name);
}

template <auto function> void addWithOrder(std::vector<Routine> &routines, const std::string &name) {
  constexpr auto single = [](int32_t n, float x) { return static_cast<float>(function(n, x)); };
  constexpr auto twofold = [](int32_t n, double x) { return static_cast<double>(function(n, x)); };
  addRoutine<single, float, int32_t, float>(routines, name + "_f32");
  addRoutine<twofold, double, int32_t, double>(routines, name + "_f64");
}

} // namespace

void addSpecialFunctions(std::vector<Routine> &routines) {
  widened<[](auto x) { return std::erf(x); }>(routines, "erf");
  widened<[](auto x) { return std::erfc(x); }>(routines, "erfc");
  widened<[](auto x) { return erfcx(x); }>(routines, "erfcx");
  widened<[](auto x) { return erfinv(x); }>(routines, "erfinv");
  widened<[](auto x) { return erfcinv(x); }>(routines, "erfcinv");
  widened<[](auto x) { return normcdf(x); }>(routines, "normcdf");
  widened<[](auto x) { return 0 - decltype(x)(1 / rootOfHalf) * erfcinv(2 * x); }>(routines, "normcdfinv");
  widened<[](auto x) { return std::tgamma(x); }>(routines, "tgamma");
  widest<[](long double x) { return logGamma(x); }>(routines, "lgamma");
  widened<[](auto x) { return besselI0(x); }>(routines, "cyl_bessel_i0");
  widened<[](auto x) { return besselI1(x); }>(routines, "cyl_bessel_i1");
  widest<[](long double x) { return ::j0l(x); }>(routines, "j0");
  widest<[](long double x) { return ::j1l(x); }>(routines, "j1");
  widest<[](long double x) { return ::y0l(x); }>(routines, "y0");
  widest<[](long double x) { return ::y1l(x); }>(routines, "y1");
  addWithOrder<[](int n, long double x) { return ::jnl(n, x); }>(routines, "jn");
  addWithOrder<[](int n, long double x) { return ::ynl(n, x); }>(routines, "yn");
}

} // namespace tpk
