// The floating-point environment of programs. Header only, because replay programs include it, too.
#pragma once

#include "text.h"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace tpk {

enum class Denormals { Keep, Flush };

// During its lifetime, the calling thread rounds to nearest even, traps nothing, and either keeps denormals
// or flushes them to zero, as operands and as results. Afterwards, the thread's own environment and exception
// flags are restored.
class FloatEnvironment {
public:
  explicit FloatEnvironment(Denormals denormals);
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment &) = delete;
  FloatEnvironment &operator=(const FloatEnvironment &) = delete;

  // Whether the calling thread flushes denormals now, for example after torch.set_flush_denormal(True).
  static Denormals ofThread();

private:
#if defined(__x86_64__)
  // The x87 unit is included, because mathematical routines may compute with long double.
  static constexpr uint32_t MxcsrDefault = 0x1f80, MxcsrFlush = 0x8040; // FZ and DAZ
  static constexpr uint16_t ControlDefault = 0x37f, StatusFlags = 0x7f; // exceptions, stack fault
  uint32_t mxcsr_;
  uint16_t control_, status_;
#elif defined(__aarch64__)
  static constexpr uint64_t FpcrFlush = uint64_t(1) << 24; // FZ
  uint64_t control_, status_;
#else
  std::fenv_t before_;
#endif
};

#if defined(__x86_64__)

inline FloatEnvironment::FloatEnvironment(Denormals denormals) : mxcsr_(_mm_getcsr()) {
  asm volatile("fnstcw %0\n\tfnstsw %1" : "=m"(control_), "=m"(status_));
  if (control_ != ControlDefault)
    asm volatile("fldcw %0" : : "m"(ControlDefault));
  _mm_setcsr(MxcsrDefault | (denormals == Denormals::Flush ? MxcsrFlush : 0));
}

inline FloatEnvironment::~FloatEnvironment() {
  uint16_t status;
  asm volatile("fnstsw %0" : "=m"(status));
  if (((status ^ status_) & StatusFlags) != 0) { // rare, and slow
    struct {
      uint32_t control, status, rest[5];
    } state;
    asm volatile("fnstenv %0" : "=m"(state));
    state.status = (state.status & ~uint32_t(StatusFlags)) | (status_ & StatusFlags);
    asm volatile("fldenv %0" : : "m"(state));
  }
  if (control_ != ControlDefault)
    asm volatile("fldcw %0" : : "m"(control_));
  _mm_setcsr(mxcsr_);
}

inline Denormals FloatEnvironment::ofThread() {
  return _mm_getcsr() & MxcsrFlush ? Denormals::Flush : Denormals::Keep;
}

#elif defined(__aarch64__)

inline FloatEnvironment::FloatEnvironment(Denormals denormals) {
  const uint64_t wanted = denormals == Denormals::Flush ? FpcrFlush : 0;
  asm volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control_), "=r"(status_));
  if (control_ != wanted)
    asm volatile("msr fpcr, %0" : : "r"(wanted));
}

inline FloatEnvironment::~FloatEnvironment() {
  asm volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(control_), "r"(status_));
}

inline Denormals FloatEnvironment::ofThread() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control & FpcrFlush ? Denormals::Flush : Denormals::Keep;
}

#else

inline FloatEnvironment::FloatEnvironment(Denormals) {
  std::fegetenv(&before_);
  std::fesetenv(FE_DFL_ENV);
}

inline FloatEnvironment::~FloatEnvironment() { std::fesetenv(&before_); }

inline Denormals FloatEnvironment::ofThread() { return Denormals::Keep; }

#endif

// The treatment of denormals that TPK_DENORMALS selects for launches of the calling thread. The variable is
// read once. Throws std::invalid_argument for an unknown value.
inline Denormals requestedDenormals() {
  enum class Rule { Keep, Flush, Caller };
  static const Rule rule = [] {
    const char *value = std::getenv("TPK_DENORMALS");
    const std::string_view word = value ? value : "";
    if (word.empty() || word == "keep")
      return Rule::Keep;
    if (word == "flush")
      return Rule::Flush;
    if (word == "caller")
      return Rule::Caller;
    throw std::invalid_argument(text("TPK_DENORMALS is '", value,
                                     "'; set it to keep, to flush, or to caller, which does as "
                                     "torch.set_flush_denormal says, or unset it"));
  }();
  if (rule == Rule::Caller)
    return FloatEnvironment::ofThread();
  return rule == Rule::Flush ? Denormals::Flush : Denormals::Keep;
}

} // namespace tpk
