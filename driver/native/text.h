// Building of texts.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <type_traits>

namespace tpk {

// Texts are built without streams, which need the C++ library's locales. A process that mixes statically and
// dynamically linked libraries has several of those, which do not know each other.
template <typename Number> void appendNumber(std::string &text, Number number, int base = 10) {
  char digits[72];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  text.append(digits, end);
}

template <typename Part> void append(std::string &text, const Part &part) {
  if constexpr (std::is_integral_v<Part> && !std::is_same_v<Part, char>)
    appendNumber(text, part);
  else
    text += part;
}

template <typename... Parts> std::string text(const Parts &...parts) {
  std::string whole;
  (append(whole, parts), ...);
  return whole;
}

inline std::string hex(uint64_t address) {
  std::string whole = "0x";
  appendNumber(whole, address, 16);
  return whole;
}

} // namespace tpk
