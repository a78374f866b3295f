// Copying with a checksum in one pass. Each end of a transfer sums up the bytes that it moves, and the sums
// are compared. Nothing is read twice, so concurrent writes to the same memory cause no false alarm.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace vnpu {

class Checksum {
public:
  // Copies `size` bytes and adds them to the sum. Words are copied whole, for kernels that wait for one.
  void copy(void *target, const void *source, uint64_t size) {
    auto *to = static_cast<unsigned char *>(target);
    auto *from = static_cast<const unsigned char *>(source);
    length_ += size;
    uint64_t a = lanes_[0], b = lanes_[1], c = lanes_[2], d = lanes_[3];
    for (; size >= 32; size -= 32, to += 32, from += 32) {
      uint64_t words[4];
      std::memcpy(words, from, 32);
      std::memcpy(to, words, 32);
      a = mix(a, words[0]);
      b = mix(b, words[1]);
      c = mix(c, words[2]);
      d = mix(d, words[3]);
    }
    for (; size >= 8; size -= 8, to += 8, from += 8)
      a = mix(a, move<uint64_t>(to, from));
    if (size & 4) {
      b = mix(b, move<uint32_t>(to, from));
      to += 4, from += 4;
    }
    if (size & 2) {
      c = mix(c, move<uint16_t>(to, from));
      to += 2, from += 2;
    }
    if (size & 1)
      d = mix(d, move<uint8_t>(to, from));
    lanes_[0] = a, lanes_[1] = b, lanes_[2] = c, lanes_[3] = d;
  }

  uint64_t value() const {
    uint64_t whole = length_;
    for (uint64_t lane : lanes_)
      whole = mix(whole, lane ^ lane >> 32);
    return whole ^ whole >> 29;
  }

private:
  // Multiplication by an odd number and rotation are bijective, so a single changed word always changes the
  // sum.
  static uint64_t mix(uint64_t sum, uint64_t word) {
    return std::rotl((sum ^ word) * 0x9E3779B97F4A7C15u, 29);
  }
  template <typename Word> static Word move(void *to, const void *from) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    std::memcpy(to, &word, sizeof word);
    return word;
  }

  uint64_t lanes_[4] = {1, 2, 3, 4};
  uint64_t length_ = 0;
};

} // namespace vnpu
