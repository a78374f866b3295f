// The intrinsics of tpk_npu.h as plain functions on the host's memory: each command is done at once, and every
// address is a pointer. For tests of the compiler that need no chip.
#include "tpk_npu.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>

namespace {

std::mutex mutex;
std::atomic<int64_t> tokens{0};
thread_local std::set<int64_t> local; // addresses that are known to be buffers

float widened(const uint8_t *at, int32_t type) {
  switch (type) {
  case TPK_NPU_FP16: {
    _Float16 value;
    memcpy(&value, at, 2);
    return float(value);
  }
  case TPK_NPU_BF16: {
    uint16_t bits;
    memcpy(&bits, at, 2);
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
  }
  case TPK_NPU_FP8E5: {
    uint16_t bits = uint16_t(*at) << 8;
    _Float16 value;
    memcpy(&value, &bits, 2);
    return float(value);
  }
  case TPK_NPU_FP8E4NV: {
    int exponent = (*at >> 3) & 15, mantissa = *at & 7;
    float value = exponent ? std::ldexp(float(8 + mantissa), exponent - 10) : std::ldexp(float(mantissa), -9);
    if (exponent == 15 && mantissa == 7)
      value = NAN;
    return *at & 128 ? -value : value;
  }
  default: {
    float value;
    memcpy(&value, at, 4);
    return value;
  }
  }
}

int size_of(int32_t type) {
  switch (type) {
  case TPK_NPU_I16: case TPK_NPU_U16: case TPK_NPU_FP16: case TPK_NPU_BF16:
    return 2;
  case TPK_NPU_I32: case TPK_NPU_U32: case TPK_NPU_FP32:
    return 4;
  case TPK_NPU_I64: case TPK_NPU_U64: case TPK_NPU_FP64:
    return 8;
  default:
    return 1;
  }
}

template <class T> T cast(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T> uint64_t bits_of(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T> T combined(int32_t kind, T a, T b) {
  switch (kind) {
  case TPK_NPU_ADD:
    return a + b;
  case TPK_NPU_MAX:
    return a != a ? b : b != b ? a : a > b ? a : b;
  case TPK_NPU_MIN:
    return a != a ? b : b != b ? a : a < b ? a : b;
  default:
    return b;
  }
}

template <class T> uint64_t integer(int32_t kind, uint64_t a, uint64_t b) {
  switch (kind) {
  case TPK_NPU_AND:
    return a & b;
  case TPK_NPU_OR:
    return a | b;
  case TPK_NPU_XOR:
    return a ^ b;
  default:
    return bits_of(T(combined(kind, cast<T>(a), cast<T>(b))));
  }
}

uint64_t narrowed(float value, int32_t type) {
  if (type == TPK_NPU_FP16)
    return bits_of(_Float16(value));
  uint32_t bits = uint32_t(bits_of(value));
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

uint64_t updated(int32_t kind, int32_t type, uint64_t a, uint64_t b) {
  switch (type) {
  case TPK_NPU_I8: return integer<int8_t>(kind, a, b);
  case TPK_NPU_I16: return integer<int16_t>(kind, a, b);
  case TPK_NPU_I32: return integer<int32_t>(kind, a, b);
  case TPK_NPU_I64: return integer<int64_t>(kind, a, b);
  case TPK_NPU_U8: return integer<uint8_t>(kind, a, b);
  case TPK_NPU_U16: return integer<uint16_t>(kind, a, b);
  case TPK_NPU_U32: return integer<uint32_t>(kind, a, b);
  case TPK_NPU_U64: return integer<uint64_t>(kind, a, b);
  case TPK_NPU_FP64: return bits_of(combined(kind, cast<double>(a), cast<double>(b)));
  case TPK_NPU_FP32: return bits_of(combined(kind, cast<float>(a), cast<float>(b)));
  default: {
    uint8_t left[8], right[8];
    memcpy(left, &a, 8);
    memcpy(right, &b, 8);
    return narrowed(combined(kind, widened(left, type), widened(right, type)), type);
  }
  }
}

} // namespace

extern "C" {

int64_t tpk_npu_dma(int32_t, const tpk_npu_transfer *t, int32_t) {
  int64_t index[5] = {0};
  bool stores = local.count(t->source); // a store leaves what is out of bounds; a load fills it
  for (int d = 0; d < t->dimensions; ++d)
    if (t->sizes[d] <= 0)
      return ++tokens;
  for (;;) {
    bool inside = true;
    int64_t from = t->source, to = t->target;
    for (int d = 0; d < t->dimensions; ++d) {
      inside = inside && t->low[d] <= index[d] && index[d] < t->high[d];
      from += index[d] * t->source_strides[d];
      to += index[d] * t->target_strides[d];
    }
    if (inside)
      memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), t->element_bytes);
    else if (!stores)
      memcpy(reinterpret_cast<void *>(to), &t->fill, t->element_bytes);
    int d = t->dimensions - 1;
    while (d >= 0 && ++index[d] == t->sizes[d])
      index[d--] = 0;
    if (d < 0)
      return ++tokens;
  }
}

static int64_t offset_at(int64_t offsets, int64_t i, int32_t bytes) {
  if (bytes == 8)
    return reinterpret_cast<int64_t *>(offsets)[i];
  return reinterpret_cast<int32_t *>(offsets)[i];
}

int64_t tpk_npu_gather(int32_t, int64_t to, int64_t base, int64_t offsets, int64_t mask, int64_t count,
                       int32_t bytes, int32_t offset_bytes, int32_t scale, int64_t fill, int32_t) {
  local.insert(to);
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = base + offset_at(offsets, i, offset_bytes) * scale;
    bool wanted = !mask || reinterpret_cast<uint8_t *>(mask)[i];
    memcpy(reinterpret_cast<void *>(to + i * bytes), wanted ? reinterpret_cast<void *>(from) : &fill, bytes);
  }
  return ++tokens;
}

int64_t tpk_npu_scatter(int32_t, int64_t from, int64_t base, int64_t offsets, int64_t mask, int64_t count,
                        int32_t bytes, int32_t offset_bytes, int32_t scale, int32_t) {
  for (int64_t i = 0; i < count; ++i)
    if (!mask || reinterpret_cast<uint8_t *>(mask)[i])
      memcpy(reinterpret_cast<void *>(base + offset_at(offsets, i, offset_bytes) * scale),
             reinterpret_cast<void *>(from + i * bytes), bytes);
  return ++tokens;
}

int64_t tpk_npu_matrix(int64_t c, int64_t a, int64_t b, int32_t m, int32_t n, int32_t k, int64_t c_stride,
                       int64_t a_stride, int64_t b_stride, int32_t a_type, int32_t b_type, int32_t c_type,
                       int32_t flags, int32_t) {
  local.insert(c);
  auto at = [](int64_t base, int64_t row, int64_t column, int64_t stride, int32_t type, bool turned) {
    int64_t r = turned ? column : row, q = turned ? row : column;
    return reinterpret_cast<const uint8_t *>(base + r * stride + q * size_of(type));
  };
  bool whole = c_type == TPK_NPU_I32;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      auto sum = reinterpret_cast<uint8_t *>(c + i * c_stride + j * 4);
      float number = 0;
      int32_t count = 0;
      if (flags & TPK_NPU_ACCUMULATE) {
        memcpy(&number, sum, 4);
        memcpy(&count, sum, 4);
      }
      for (int64_t l = 0; l < k; ++l) {
        auto x = at(a, i, l, a_stride, a_type, flags & TPK_NPU_TRANSPOSED_A);
        auto y = at(b, l, j, b_stride, b_type, flags & TPK_NPU_TRANSPOSED_B);
        if (whole)
          count += (a_type == TPK_NPU_U8 ? int(*x) : int(int8_t(*x))) *
                   (b_type == TPK_NPU_U8 ? int(*y) : int(int8_t(*y)));
        else
          number += widened(x, a_type) * widened(y, b_type);
      }
      if (whole)
        memcpy(sum, &count, 4);
      else
        memcpy(sum, &number, 4);
    }
  return ++tokens;
}

void tpk_npu_wait(int32_t, int64_t) {}
void tpk_npu_order(int32_t, int32_t, int64_t) {}
void tpk_npu_reads(int64_t, int64_t, int32_t) {}
void tpk_npu_writes(int64_t address, int64_t, int32_t) { local.insert(address); }
void tpk_npu_work(int32_t, int64_t) {}

uint64_t tpk_npu_element_load(int64_t address, int32_t bytes, int32_t) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t value = 0;
  memcpy(&value, reinterpret_cast<void *>(address), bytes);
  return value;
}

void tpk_npu_element_store(int64_t address, uint64_t value, int32_t bytes, int32_t) {
  std::lock_guard<std::mutex> lock(mutex);
  memcpy(reinterpret_cast<void *>(address), &value, bytes);
}

uint64_t tpk_npu_atomic(int32_t kind, int32_t type, int64_t address, uint64_t value, uint64_t compare, int32_t,
                        int32_t) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t old = 0;
  int bytes = size_of(type);
  memcpy(&old, reinterpret_cast<void *>(address), bytes);
  uint64_t next = kind == TPK_NPU_COMPARE ? (old == compare ? value : old)
                  : kind == TPK_NPU_EXCHANGE ? value
                                             : updated(kind, type, old, value);
  memcpy(reinterpret_cast<void *>(address), &next, bytes);
  return old;
}
}
