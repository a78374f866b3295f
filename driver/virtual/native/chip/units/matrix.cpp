// Products of the matrix unit.
#include "core.h"
#include "formats.h"
#include "mistake.h"

#include "../chip.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_CPU
#endif

namespace vnpu {
namespace {

// C += A B, of dense rows; C's rows are `stride` apart. Sums are formed in the order of k, whatever the CPU.
FOR_EACH_CPU void multiply(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k,
                           int64_t stride) {
  constexpr int64_t Rows = 4, Columns = 32;
  for (int64_t column = 0; column < n; column += Columns) {
    const int64_t width = std::min(Columns, n - column);
    for (int64_t row = 0; row < m; row += Rows) {
      const int64_t height = std::min(Rows, m - row);
      float sums[Rows][Columns] = {};
      for (int64_t i = 0; i < height; ++i)
        std::memcpy(sums[i], c + (row + i) * stride + column, size_t(width) * sizeof(float));
      if (width == Columns && height == Rows) {
        for (int64_t step = 0; step < k; ++step) {
          const float *right = b + step * n + column, *left = a + row * k + step;
          for (int64_t i = 0; i < Rows; ++i)
            for (int64_t j = 0; j < Columns; ++j)
              sums[i][j] += left[i * k] * right[j];
        }
      } else {
        for (int64_t step = 0; step < k; ++step)
          for (int64_t i = 0; i < height; ++i)
            for (int64_t j = 0; j < width; ++j)
              sums[i][j] += a[(row + i) * k + step] * b[step * n + column + j];
      }
      for (int64_t i = 0; i < height; ++i)
        std::memcpy(c + (row + i) * stride + column, sums[i], size_t(width) * sizeof(float));
    }
  }
}

FOR_EACH_CPU void multiply(const int32_t *a, const int32_t *b, int32_t *c, int64_t m, int64_t n, int64_t k,
                           int64_t stride) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t step = 0; step < k; ++step) {
      const uint32_t left = uint32_t(a[row * k + step]);
      for (int64_t j = 0; j < n; ++j)
        c[row * stride + j] = int32_t(uint32_t(c[row * stride + j]) + left * uint32_t(b[step * n + j]));
    }
}

void convert(int32_t type, const uint8_t *from, int64_t stride, int64_t count, float *to) {
  toFloats(type, from, stride, count, to);
}
void convert(int32_t type, const uint8_t *from, int64_t stride, int64_t count, int32_t *to) {
  toIntegers(type, from, stride, count, to);
}

// An operand as dense rows. Transposed in memory, a row lies across its rows.
template <typename Number>
std::vector<Number> &dense(std::vector<Number> &buffer, const uint8_t *data, int32_t type, int64_t rows,
                           int64_t columns, int64_t stride, bool transposed) {
  buffer.resize(size_t(rows * columns));
  const int64_t bytes = elementBytes(type);
  for (int64_t row = 0; row < rows; ++row)
    convert(type, data + row * (transposed ? bytes : stride), transposed ? stride : bytes, columns,
            buffer.data() + row * columns);
  return buffer;
}

template <typename Number>
void compute(const NpuCore::Product &given, uint8_t *c, const uint8_t *a, const uint8_t *b) {
  static thread_local std::vector<Number> left, right, sums;
  dense(left, a, given.aType, given.m, given.k, given.aStride, given.flags & TPK_NPU_TRANSPOSED_A);
  dense(right, b, given.bType, given.k, given.n, given.bStride, given.flags & TPK_NPU_TRANSPOSED_B);
  // Rows of sums may lie at any distance, and at any address.
  sums.assign(size_t(given.m) * size_t(given.n), Number(0));
  const size_t row = size_t(given.n) * sizeof(Number);
  for (int64_t i = 0; (given.flags & TPK_NPU_ACCUMULATE) && i < given.m; ++i)
    std::memcpy(sums.data() + i * given.n, c + i * given.cStride, row);
  multiply(left.data(), right.data(), sums.data(), given.m, given.n, given.k, given.n);
  for (int64_t i = 0; i < given.m; ++i)
    std::memcpy(c + i * given.cStride, sums.data() + i * given.n, row);
}

std::string nameOf(int32_t type) {
  const char *name = elementName(type);
  return name ? name : text("type ", type);
}

} // namespace

int64_t NpuCore::product(const Product &given) {
  seen(given.line);
  const MatrixDescription &unit = chip_.matrix;
  const std::string what = text("the product", atLine(given.line));
  if (!unit.sums)
    throw Mistake{text(what, " needs a matrix unit, and ", chip_.name, " has none")};
  const ProductDescription *product = unit.product(given.aType, given.bType, given.cType);
  if (!product)
    throw Mistake{text(what, " multiplies ", nameOf(given.aType), " by ", nameOf(given.bType), " to ",
                       nameOf(given.cType), ", which the matrix unit does not")};
  if (given.m < 1 || given.n < 1 || given.k < 1)
    throw Mistake{
        text(what, " has the sizes ", given.m, ", ", given.n, ", ", given.k, "; they have to be above 0")};
  const bool acrossA = given.flags & TPK_NPU_TRANSPOSED_A, acrossB = given.flags & TPK_NPU_TRANSPOSED_B;
  if ((acrossA || acrossB) && !unit.transposes)
    throw Mistake{text(what, " has a transposed operand, and the matrix unit takes none")};

  std::vector<Access> accesses;
  auto operand = [&](const char *name, uint64_t address, int64_t rows, int64_t columns, int64_t stride,
                     int32_t type, MemoryIndex wanted, bool writes) {
    const std::string which = text(what, ", in operand ", name, ",");
    const int64_t sizes[] = {rows, columns}, strides[] = {stride, int64_t(elementBytes(type))};
    accesses.push_back({Footprint(address, sizes, strides, 2, elementBytes(type)), writes});
    const Place place = find(accesses.back().bytes, address, which);
    if (place.memory != wanted)
      throw Mistake{text(which, " is in ", chip_.memories[place.memory].name, "; it has to be in ",
                         chip_.memories[wanted].name)};
    requireAligned(place, address, unit.alignment, which);
    return place.data;
  };
  const uint8_t *a = operand("A", given.a, acrossA ? given.k : given.m, acrossA ? given.m : given.k,
                             given.aStride, given.aType, unit.a, false);
  const uint8_t *b = operand("B", given.b, acrossB ? given.n : given.k, acrossB ? given.k : given.n,
                             given.bStride, given.bType, unit.b, false);
  uint8_t *c = operand("C", given.c, given.m, given.n, given.cStride, given.cType, unit.sums, true);
  auto tiles = [&](int64_t size, int d) { return double((size + product->tile[d] - 1) / product->tile[d]); };
  const double cycles =
      unit.startCycles + product->cycles * tiles(given.m, 0) * tiles(given.n, 1) * tiles(given.k, 2);
  const int64_t number =
      issue(MatrixUnit, {.action = "product", .line = given.line}, std::move(accesses), cycles, 0);
  if (given.cType == TPK_NPU_I32)
    compute<int32_t>(given, c, a, b);
  else
    compute<float>(given, c, a, b);
  return number;
}

} // namespace vnpu
