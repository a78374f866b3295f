// Texts built without memory allocation, for signal handlers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tpk {

// A text of at most `Bytes` - 1 bytes; the rest is cut off.
template <size_t Bytes> class Sentence {
public:
  Sentence &operator<<(const char *part) {
    while (*part && length_ + 1 < sizeof text_)
      text_[length_++] = *part++;
    text_[length_] = 0;
    return *this;
  }
  Sentence &operator<<(int64_t number) {
    return digits(number < 0 ? -uint64_t(number) : uint64_t(number), number < 0, 10);
  }
  Sentence &hex(uint64_t number) { return *this << "0x", digits(number, false, 16); }
  const char *text() const { return text_; }
  size_t length() const { return length_; }

private:
  Sentence &digits(uint64_t number, bool negative, unsigned base) {
    char reversed[24];
    int count = 0;
    do
      reversed[count++] = "0123456789abcdef"[number % base];
    while (number /= base);
    if (negative)
      *this << "-";
    while (count) {
      const char digit[2] = {reversed[--count], 0};
      *this << digit;
    }
    return *this;
  }

  char text_[Bytes] = {};
  size_t length_ = 0;
};

} // namespace tpk
