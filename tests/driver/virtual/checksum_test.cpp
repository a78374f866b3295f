// The checksum against one that is written out byte by byte, and what it has to notice.
#include "checksum.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

uint64_t rotate(uint64_t value) { return value << 29 | value >> 35; }
uint64_t mix(uint64_t sum, uint64_t word) { return rotate((sum ^ word) * 0x9E3779B97F4A7C15u); }

uint64_t word(const std::vector<unsigned char> &data, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i)
    value |= uint64_t(data[at + i]) << (8 * i);
  return value;
}

uint64_t plain(const std::vector<unsigned char> &data) {
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t at = 0, left = data.size();
  for (; left >= 32; left -= 32)
    for (uint64_t &lane : lanes) {
      lane = mix(lane, word(data, at, 8));
      at += 8;
    }
  for (; left >= 8; left -= 8, at += 8)
    lanes[0] = mix(lanes[0], word(data, at, 8));
  for (int lane = 1; lane < 4; ++lane)
    if (size_t bytes = 8u >> lane; left & bytes) {
      lanes[lane] = mix(lanes[lane], word(data, at, bytes));
      at += bytes;
    }
  uint64_t whole = data.size();
  for (uint64_t lane : lanes)
    whole = mix(whole, lane ^ lane >> 32);
  return whole ^ whole >> 29;
}

uint64_t fast(const std::vector<unsigned char> &data, std::vector<unsigned char> &copy) {
  vnpu::Checksum sum;
  sum.copy(copy.data(), data.data(), data.size());
  return sum.value();
}

void require(bool holds, const char *what, size_t size) {
  if (holds)
    return;
  std::printf("%s, at size %zu\n", what, size);
  std::exit(1);
}

} // namespace

int main() {
  unsigned random = 1;
  for (size_t size = 0; size < 200; ++size) {
    std::vector<unsigned char> data(size), copy(size);
    for (auto &byte : data)
      byte = (random = random * 1103515245 + 12345) >> 16;
    uint64_t sum = fast(data, copy);
    require(copy == data, "not copied", size);
    require(sum == plain(data), "another sum", size);
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      auto flipped = data;
      flipped[bit / 8] ^= 1u << bit % 8;
      require(fast(flipped, copy) != sum, "a flipped bit goes unnoticed", size);
      if (bit >= 64) { // and the same bit of another word, too
        flipped[bit / 8 - 8] ^= 1u << bit % 8;
        require(fast(flipped, copy) != sum, "two flipped bits go unnoticed", size);
      }
    }
    data.push_back(0);
    copy.push_back(1);
    require(fast(data, copy) != sum, "a zero at the end goes unnoticed", size);
  }
}
