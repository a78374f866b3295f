#include "services.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace tpk {
namespace {

float halfToFloat(uint16_t bits) {
  int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  float magnitude = exponent == 0x1F ? (fraction ? NAN : INFINITY)
                    : exponent       ? std::ldexp(float(fraction | 0x400), exponent - 25)
                                     : std::ldexp(float(fraction), -24);
  return std::copysign(magnitude, bits & 0x8000 ? -1.0f : 1.0f);
}

float bfloatToFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <typename Type> Type element(const void *data, int64_t index) {
  Type value;
  std::memcpy(&value, static_cast<const char *>(data) + index * int64_t(sizeof value), sizeof value);
  return value;
}

// Prints element `index` of `data`.
using Printer = void (*)(const void *data, int64_t index, bool hex);

template <typename Type> void printSigned(const void *data, int64_t index, bool hex) {
  auto value = element<Type>(data, index);
  if (hex)
    std::printf("0x%0*" PRIx64, int(2 * sizeof value), uint64_t(std::make_unsigned_t<Type>(value)));
  else
    std::printf("%" PRId64, int64_t(value));
}

template <typename Type> void printUnsigned(const void *data, int64_t index, bool hex) {
  auto value = element<Type>(data, index);
  if (hex)
    std::printf("0x%0*" PRIx64, int(2 * sizeof value), uint64_t(value));
  else
    std::printf("%" PRIu64, uint64_t(value));
}

void printTruth(const void *data, int64_t index, bool hex) {
  std::printf(hex ? "0x%d" : "%d", element<uint8_t>(data, index) != 0);
}

void printAddress(const void *data, int64_t index, bool) {
  std::printf("0x%016" PRIx64, element<uint64_t>(data, index));
}

template <typename Type, typename Stored = Type, Type (*convert)(Stored) = nullptr>
void printFloat(const void *data, int64_t index, bool hex) {
  Type value;
  if constexpr (convert == nullptr)
    value = element<Type>(data, index);
  else
    value = convert(element<Stored>(data, index));
  std::printf(hex ? "%a" : "%f", double(value));
}

struct Printable {
  const char *type;
  Printer print;
};

constexpr Printable Printables[] = {
    {"i1", printTruth},
    {"i8", printSigned<int8_t>},
    {"i16", printSigned<int16_t>},
    {"i32", printSigned<int32_t>},
    {"i64", printSigned<int64_t>},
    {"u8", printUnsigned<uint8_t>},
    {"u16", printUnsigned<uint16_t>},
    {"u32", printUnsigned<uint32_t>},
    {"u64", printUnsigned<uint64_t>},
    {"f16", printFloat<float, uint16_t, halfToFloat>},
    {"bf16", printFloat<float, uint16_t, bfloatToFloat>},
    {"f32", printFloat<float>},
    {"f64", printFloat<double>},
    {"ptr", printAddress},
};

Printer printer(const char *type) {
  for (const Printable &known : Printables)
    if (!std::strcmp(known.type, type))
      return known.print;
  return [](const void *, int64_t, bool) { std::fputs("?", stdout); };
}

int digits(int64_t value) {
  int count = 1;
  while (value /= 10)
    ++count;
  return count;
}

// The indices of a row-major element, each padded to the width of the largest index of its dimension.
void printIndices(int64_t element, const int64_t *shape) {
  int64_t stride = 1;
  for (int64_t d = 1; d <= shape[0]; ++d)
    stride *= shape[d];
  for (int64_t d = 1; d <= shape[0]; ++d) {
    stride /= shape[d];
    std::printf(d > 1 ? ", %*" PRId64 : "%*" PRId64, digits(shape[d] - 1), element / stride % shape[d]);
  }
}

} // namespace
} // namespace tpk

// The stream stays locked from the first line to the last. Nothing here allocates memory, because an
// exception must not propagate into a kernel.
void tpk_host_print(const char *prefix, const char *type, int32_t hex, const int64_t *shape, const void *data,
                    int32_t x, int32_t y, int32_t z) {
  int64_t count = 1;
  for (int64_t d = 1; type && d <= shape[0]; ++d)
    count *= shape[d];
  tpk::Printer print = type ? tpk::printer(type) : nullptr;
  flockfile(stdout);
  for (int64_t index = 0; index < count; ++index) {
    std::printf("pid (%" PRId32 ", %" PRId32 ", %" PRId32 ")", x, y, z);
    if (print) {
      std::fputs(" idx (", stdout);
      tpk::printIndices(index, shape);
      std::fputs(")", stdout);
    }
    std::fputs(prefix, stdout);
    if (print)
      print(data, index, hex != 0);
    std::fputc('\n', stdout);
  }
  std::fflush(stdout);
  funlockfile(stdout);
}
