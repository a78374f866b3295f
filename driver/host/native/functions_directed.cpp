// Compiled with -frounding-math: operations must not be folded or moved as if rounding were to nearest.
#include "functions.h"

#include <cfenv>
#include <cmath>

namespace tpk {
namespace {

// Sets the rounding mode of this thread during its lifetime.
class RoundingMode {
public:
  explicit RoundingMode(int mode) : before(std::fegetround()) { std::fesetround(mode); }
  ~RoundingMode() { std::fesetround(before); }
  RoundingMode(const RoundingMode &) = delete;

private:
  int before;
};

// Operands and results are in memory that the calls which set the mode could access, as far as the compiler
// knows. So it moves nothing across these calls.
template <int mode, auto function, class R, class... A>
void onLanesRounding(int64_t count, R *result, const A *...operands) {
  RoundingMode here(mode);
  for (int64_t i = 0; i < count; ++i)
    result[i] = function(operands[i]...);
}

template <auto function, class R, class... A>
void addModes(std::vector<Routine> &routines, const std::string &name, const std::string &suffix) {
  auto add = [&]<int mode>(const char *letters, std::integral_constant<int, mode>) {
    addInstance(routines, name + letters + suffix, &onLanesRounding<mode, function, R, A...>);
  };
  add("_rz", std::integral_constant<int, FE_TOWARDZERO>());
  add("_rd", std::integral_constant<int, FE_DOWNWARD>());
  add("_ru", std::integral_constant<int, FE_UPWARD>());
}

template <class T> void addArithmetic(std::vector<Routine> &routines, const std::string &suffix) {
  addModes<[](T a, T b) { return a + b; }, T, T, T>(routines, "add", suffix);
  addModes<[](T a, T b) { return a - b; }, T, T, T>(routines, "sub", suffix);
  addModes<[](T a, T b) { return a * b; }, T, T, T>(routines, "mul", suffix);
  addModes<[](T a, T b) { return a / b; }, T, T, T>(routines, "div", suffix);
  addModes<[](T a) { return 1 / a; }, T, T>(routines, "rcp", suffix);
  addModes<[](T a) { return std::sqrt(a); }, T, T>(routines, "sqrt", suffix);
  addModes<[](T a, T b, T c) { return std::fma(a, b, c); }, T, T, T, T>(routines, "fma", suffix);
}

template <class R, class A> R converted(A a) { return static_cast<R>(a); }

} // namespace

void addDirectedArithmetic(std::vector<Routine> &routines) {
  addArithmetic<float>(routines, "_f32");
  addArithmetic<double>(routines, "_f64");
  addModes<converted<float, double>, float, double>(routines, "double2float", "_f64");
  addModes<converted<float, int32_t>, float, int32_t>(routines, "int2float", "_f32");
  addModes<converted<float, uint32_t>, float, uint32_t>(routines, "uint2float", "_f32");
  addModes<converted<float, int64_t>, float, int64_t>(routines, "ll2float", "_f32");
  addModes<converted<float, uint64_t>, float, uint64_t>(routines, "ull2float", "_f32");
  addModes<converted<double, int64_t>, double, int64_t>(routines, "ll2double", "_f64");
  addModes<converted<double, uint64_t>, double, uint64_t>(routines, "ull2double", "_f64");
}

} // namespace tpk
