#include "formats.h"

#include "tpk_npu.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

namespace vnpu {
namespace {

// A format of fewer than 32 bits. `top` says which patterns of the largest exponent are no numbers.
struct Format {
  int exponent, mantissa, bias;
  enum Top { Ieee, OneNan, NegativeZeroIsNan } top;
};

float valueOf(uint32_t bits, const Format &format) {
  const int width = 1 + format.exponent + format.mantissa;
  const bool negative = bits >> (width - 1) & 1;
  const uint32_t magnitude = bits & ((1u << (width - 1)) - 1);
  const uint32_t exponent = magnitude >> format.mantissa,
                 mantissa = magnitude & ((1u << format.mantissa) - 1);
  const uint32_t largest = (1u << format.exponent) - 1;
  constexpr float Nan = std::numeric_limits<float>::quiet_NaN();
  const float sign = negative ? -1.0f : 1.0f;
  if (format.top == Format::Ieee && exponent == largest)
    return mantissa ? Nan : sign * std::numeric_limits<float>::infinity();
  if (format.top == Format::OneNan && magnitude == (1u << (width - 1)) - 1)
    return Nan;
  if (format.top == Format::NegativeZeroIsNan && negative && !magnitude)
    return Nan;
  const double unit = std::ldexp(1.0, 1 - format.bias - format.mantissa);
  const double number =
      exponent ? std::ldexp(double(mantissa + (1u << format.mantissa)), int(exponent) - 1) : double(mantissa);
  return sign * float(number * unit);
}

std::unique_ptr<float[]> tableOf(const Format &format) {
  const uint32_t count = 1u << (1 + format.exponent + format.mantissa);
  auto table = std::make_unique<float[]>(count);
  for (uint32_t bits = 0; bits < count; ++bits)
    table[bits] = valueOf(bits, format);
  return table;
}

const float *halves() {
  static const std::unique_ptr<float[]> table = tableOf({5, 10, 15, Format::Ieee});
  return table.get();
}

const float *bytesOf(int32_t type) {
  static const std::unique_ptr<float[]> tables[] = {
      tableOf({4, 3, 7, Format::OneNan}), tableOf({5, 2, 15, Format::Ieee}),
      tableOf({4, 3, 8, Format::NegativeZeroIsNan}), tableOf({5, 2, 16, Format::NegativeZeroIsNan})};
  return tables[type - TPK_NPU_FP8E4NV].get();
}

template <typename Element, typename To, typename Convert>
void each(const uint8_t *from, int64_t stride, int64_t count, To *to, Convert convert) {
  for (int64_t i = 0; i < count; ++i, from += stride) {
    Element element;
    std::memcpy(&element, from, sizeof element);
    to[i] = convert(element);
  }
}

} // namespace

float halfToFloat(uint16_t bits) { return halves()[bits]; }

uint16_t floatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x477ff000) // what rounds to 2**16 or more
    return sign | 0x7c00;
  if (magnitude < 0x38800000) { // a denormal: a multiple of 2**-24
    const double scaled = std::ldexp(double(std::bit_cast<float>(magnitude)), 24);
    return sign | uint16_t(std::nearbyint(scaled));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | uint16_t((rounded >> 13) - (112u << 10));
}

float bfloatToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

uint16_t floatToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void toFloats(int32_t type, const uint8_t *from, int64_t stride, int64_t count, float *to) {
  if (type == TPK_NPU_FP32 && stride == 4)
    std::memcpy(to, from, size_t(count) * 4);
  else if (type == TPK_NPU_FP32)
    each<float>(from, stride, count, to, [](float value) { return value; });
  else if (type == TPK_NPU_BF16)
    each<uint16_t>(from, stride, count, to, bfloatToFloat);
  else if (type == TPK_NPU_FP16)
    each<uint16_t>(from, stride, count, to, [table = halves()](uint16_t bits) { return table[bits]; });
  else
    each<uint8_t>(from, stride, count, to, [table = bytesOf(type)](uint8_t bits) { return table[bits]; });
}

void toIntegers(int32_t type, const uint8_t *from, int64_t stride, int64_t count, int32_t *to) {
  if (type == TPK_NPU_I8)
    each<int8_t>(from, stride, count, to, [](int8_t value) { return int32_t(value); });
  else
    each<uint8_t>(from, stride, count, to, [](uint8_t value) { return int32_t(value); });
}

} // namespace vnpu
