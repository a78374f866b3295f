// Element types of the matrix unit and of atomics, converted to and from float.
#pragma once

#include <cstdint>

namespace vnpu {

// `count` elements of a floating-point type of tpk_npu.h, up to 32 bits, `stride` bytes apart.
void toFloats(int32_t type, const uint8_t *from, int64_t stride, int64_t count, float *to);
// The same for 8-bit integers.
void toIntegers(int32_t type, const uint8_t *from, int64_t stride, int64_t count, int32_t *to);

float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value); // to nearest even
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(float value);

} // namespace vnpu
