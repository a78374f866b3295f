// Sleeping on a word of memory that two processes share.
#pragma once

#include <atomic>
#include <bit>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vnpu {

// The kernel compares 32 bits: of a 64-bit counter, the low ones.
static_assert(std::endian::native == std::endian::little);

// Sleeps while the low half of `word` is that of `expected`, at most `milliseconds`; may return early.
template <typename Word> void futexWait(std::atomic<Word> &word, Word expected, int milliseconds) {
  timespec limit{milliseconds / 1000, milliseconds % 1000 * 1000000L};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT, uint32_t(expected), &limit, nullptr, 0);
}

template <typename Word> void futexWake(std::atomic<Word> &word, int count = INT_MAX) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE, count, nullptr, nullptr, 0);
}

// Tells the core that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

} // namespace vnpu
