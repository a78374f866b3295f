// Seals: numbers computed from bytes. Kernels can write to the region that the library and the chip share. By
// the seals, each side notices if it reads something that the other has not written.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

namespace vnpu {

class Seal {
public:
  Seal &operator<<(uint64_t word) {
    sum_ = std::rotl((sum_ ^ word) * 0x9E3779B97F4A7C15u, 29);
    return *this;
  }
  Seal &add(const void *data, uint64_t size) {
    auto *bytes = static_cast<const unsigned char *>(data);
    uint64_t word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
      std::memcpy(&word, bytes, sizeof word);
      *this << word;
    }
    word = 0;
    if (size)
      std::memcpy(&word, bytes, size);
    return *this << word << size;
  }
  // Never 0, so that cleared memory has no valid seal.
  uint64_t value() const {
    const uint64_t mixed = sum_ ^ sum_ >> 32;
    return mixed ? mixed : 1;
  }

private:
  uint64_t sum_ = 0x243F6A8885A308D3u;
};

// The representation of a count in the region: its low 48 bits, and a mark above them that depends on the
// count.
constexpr uint64_t marked(uint64_t count) {
  constexpr uint64_t CountBits = 48, Mask = (uint64_t(1) << CountBits) - 1;
  const uint64_t mark = ((count & Mask) + 1) * 0xD1B54A32D192ED03u >> CountBits;
  return (count & Mask) | (mark ? mark : 1) << CountBits;
}

// The count in a word of the region; nothing if the word was not made by `marked`.
constexpr std::optional<uint64_t> countIn(uint64_t word) {
  const uint64_t count = word & ((uint64_t(1) << 48) - 1);
  return marked(count) == word ? std::optional(count) : std::nullopt;
}

} // namespace vnpu
