// Compares what the driver declares of HIP for itself with AMD's own headers. Compiled, never run.
#include <hip/hip_runtime_api.h>

#include <hip_api.h>

#include <type_traits>

namespace mine = tpk::hip::api;

// Functions: the driver's types stand for HIP's one by one.
template <class T> struct Same {
  using type = T;
};
template <> struct Same<mine::hipError_t> {
  using type = ::hipError_t;
};
template <> struct Same<mine::hipStream_t> {
  using type = ::hipStream_t;
};
template <> struct Same<mine::hipEvent_t> {
  using type = ::hipEvent_t;
};
template <> struct Same<mine::hipModule_t> {
  using type = ::hipModule_t;
};
template <> struct Same<mine::hipFunction_t> {
  using type = ::hipFunction_t;
};
template <> struct Same<mine::hipDeviceProp_tR0600> {
  using type = ::hipDeviceProp_tR0600;
};
template <> struct Same<mine::hipPointerAttribute_t> {
  using type = ::hipPointerAttribute_t;
};
template <class T>
  requires(!std::is_same_v<typename Same<T>::type, T>)
struct Same<T *> {
  using type = typename Same<T>::type *;
};
template <class R, class... A> struct Same<R(A...)> {
  using type = typename Same<R>::type(typename Same<A>::type...);
};

namespace tpk::hip::api::declared {
#define TPK_HIP_DECLARE(result, name, parameters) using name = result parameters;
TPK_HIP_FUNCTIONS(TPK_HIP_DECLARE)
#undef TPK_HIP_DECLARE
} // namespace tpk::hip::api::declared

// An overload of HIP's of just that type: other conversions are none.
#define TPK_HIP_COMPARE(result, name, parameters)                                                            \
  [[maybe_unused]] constexpr Same<mine::declared::name>::type *compared_##name = &::name;
TPK_HIP_FUNCTIONS(TPK_HIP_COMPARE)
#undef TPK_HIP_COMPARE

static_assert(sizeof(mine::hipDeviceProp_tR0600) == sizeof(::hipDeviceProp_tR0600));
static_assert(sizeof(mine::hipPointerAttribute_t) == sizeof(::hipPointerAttribute_t));
static_assert(mine::kStreamNonBlocking == hipStreamNonBlocking);
static_assert(mine::kEventDefault == hipEventDefault);
static_assert(mine::kEventDisableTiming == hipEventDisableTiming);

// Members of the same name lie at the same place and have the same size.
#define TPK_HIP_MEMBER(structure, member)                                                                    \
  static_assert([]<class Real>(Real *) {                                                                     \
    if constexpr (requires(Real real) { real.member; })                                                      \
      return offsetof(Real, member) == offsetof(mine::structure, member) &&                                  \
             sizeof(Real::member) == sizeof(mine::structure::member);                                        \
    else                                                                                                     \
      return false;                                                                                          \
  }(static_cast<::structure *>(nullptr)));
#define TPK_HIP_VALUE(name) static_assert(int(mine::name) == int(::name));
// What the test found in the driver's header.
#include "members.inc"
