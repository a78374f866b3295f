// Waiting on a word of memory, asleep or spinning. It is used where waking must be cheap when nothing sleeps,
// where two processes share the word, and where the state must survive fork(): unlike a condition variable, a
// futex word does not record its waiters.
#pragma once

#include <atomic>
#include <bit>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>

namespace tpk {

// The kernel compares 32 bits: the low half of a 64-bit counter.
static_assert(std::endian::native == std::endian::little);

// Which threads sleep on a word: those of this process, or of any process that maps the memory, which is
// slower.
enum class Sleepers : int { OfThisProcess = FUTEX_PRIVATE_FLAG, OfAnyProcess = 0 };

inline constexpr int NoLimit = -1;

// Sleeps while the low half of `word` equals that of `expected`, for at most `milliseconds`; may return
// early.
template <Sleepers sleepers = Sleepers::OfThisProcess, typename Word>
void futexWait(std::atomic<Word> &word, std::type_identity_t<Word> expected, int milliseconds = NoLimit) {
  const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1000000L};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT | int(sleepers), uint32_t(expected),
          milliseconds == NoLimit ? nullptr : &limit, nullptr, 0);
}

template <Sleepers sleepers = Sleepers::OfThisProcess, typename Word>
void futexWake(std::atomic<Word> &word, int count = INT_MAX) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE | int(sleepers), count, nullptr, nullptr,
          0);
}

// Tells the core that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

} // namespace tpk
