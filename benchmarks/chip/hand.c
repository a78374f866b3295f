/* Kernels for the chip n1, written by hand with its intrinsics: what the compiler's kernels are compared
 * with. Sizes are multiples of the tiles. The build defines DIGEST, and the bases of memories in the window:
 * VECTOR, LEFT, RIGHT, SUMS, SHARED. Vector code is plain C; `work` tells the chip's clock what a vector unit
 * of 1024 bytes would execute for it. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tpk_npu.h"

#define KERNEL(name, ...)                                                                                    \
  const int64_t name##__scratch_bytes[] = {0, 0};                                                            \
  const int32_t name##__pointers[] = __VA_ARGS__;                                                            \
  const uint64_t name##__chip = DIGEST;                                                                      \
  int32_t name(const int64_t *args, char *window, int64_t begin, int64_t end, int32_t gx, int32_t gy,        \
               int32_t gz)

const int32_t tpk_host_abi_version = 3;

#define LINE __LINE__

enum { MATRIX = TPK_NPU_MATRIX, FIRST = TPK_NPU_DMA, SECOND = TPK_NPU_DMA + 1 };
typedef _Float16 half;

/* A transfer of rows of `bytes` bytes, which are a multiple of 2. Strides are in bytes. */
static int64_t rows(int32_t unit, int64_t target, int64_t source, int64_t count, int64_t bytes,
                    int64_t target_stride, int64_t source_stride) {
  const tpk_npu_transfer made = {.target = target,
                                 .source = source,
                                 .target_strides = {target_stride, 2},
                                 .source_strides = {source_stride, 2},
                                 .sizes = {count, bytes / 2},
                                 .high = {count, bytes / 2},
                                 .element_bytes = 2,
                                 .dimensions = 2};
  return tpk_npu_dma(unit - TPK_NPU_DMA, &made, LINE);
}

static int64_t block(int32_t unit, int64_t target, int64_t source, int64_t bytes) {
  return rows(unit, target, source, 1, bytes, bytes, bytes);
}

static int64_t multiply(int64_t c, int64_t a, int64_t b, int m, int n, int k, int c_stride, int a_stride,
                        int b_stride, int flags) {
  return tpk_npu_matrix(c, a, b, m, n, k, c_stride, a_stride, b_stride, TPK_NPU_FP16, TPK_NPU_FP16,
                        TPK_NPU_FP32, flags, LINE);
}

static inline float exp2_of(float x) {
  const float down = x < -126.0f ? -126.0f : x, whole = floorf(down), r = (down - whole) * 0.69314718f;
  const float power =
      1.0f + r * (1.0f + r * (0.5f + r * (1 / 6.0f + r * (1 / 24.0f + r * (1 / 120.0f + r * (1 / 720.0f))))));
  const int32_t bits = ((int32_t)whole + 127) << 23;
  float scale;
  memcpy(&scale, &bits, 4);
  return x < -126.0f ? 0.0f : power * scale;
}

/* --- products: a, b, c, M, N, K. Tiles of 128 x 256, whose halves along N are stored while the matrix unit
 * computes the other one. */
enum { BM = 128, BN = 256, HALF = BN / 2, BK = 64 };

typedef struct {
  const int64_t *args;
  char *window;
  int64_t begin, steps;
  int64_t loaded[2][2], read[2], done[2], stored[2];
} product;

static void fetch(product *x, int64_t g) {
  const int64_t *args = x->args, across = args[4] / BN, b = g & 1;
  const int64_t p = x->begin + g / x->steps, k = g % x->steps * BK, window = (int64_t)x->window;
  tpk_npu_order(FIRST, MATRIX, x->read[b]);
  tpk_npu_order(SECOND, MATRIX, x->read[b]);
  x->loaded[b][0] = rows(FIRST, window + LEFT + b * BM * BK * 2,
                         args[0] + 2 * (p / across * BM * args[5] + k), BM, BK * 2, BK * 2, 2 * args[5]);
  x->loaded[b][1] = rows(SECOND, window + RIGHT + b * BK * BN * 2,
                         args[1] + 2 * (k * args[4] + p % across * BN), BK, BN * 2, BN * 2, 2 * args[4]);
}

/* Rounds a half of the sums and stores it. */
static void put(product *x, int64_t p, int h) {
  const int64_t across = x->args[4] / BN, n = x->args[4];
  const float *sums = (float *)(x->window + SUMS) + h * BM * HALF;
  half *out = (half *)(x->window + VECTOR) + h * BM * HALF;
  tpk_npu_wait(MATRIX, x->done[h]);
  tpk_npu_wait(FIRST, x->stored[h]);
  tpk_npu_reads((int64_t)sums, 4 * BM * HALF, LINE);
  tpk_npu_writes((int64_t)out, 2 * BM * HALF, LINE);
  for (int i = 0; i < BM * HALF; ++i)
    out[i] = (half)sums[i];
  tpk_npu_work(TPK_NPU_LOAD, BM * HALF / 256);
  tpk_npu_work(TPK_NPU_CONVERT, BM * HALF / 256);
  tpk_npu_work(TPK_NPU_STORE, BM * HALF / 512);
  x->stored[h] = rows(FIRST, x->args[2] + 2 * (p / across * BM * n + p % across * BN + h * HALF),
                      (int64_t)out, BM, HALF * 2, 2 * n, HALF * 2);
}

KERNEL(matmul, {3, 0, 8, 16}) {
  product x = {.args = args, .window = window, .begin = begin, .steps = args[5] / BK};
  const int64_t total = (end - begin) * x.steps;
  if (total)
    fetch(&x, 0);
  for (int64_t g = 0; g < total; ++g) {
    const int64_t b = g & 1, p = begin + g / x.steps, s = g % x.steps;
    if (g + 1 < total)
      fetch(&x, g + 1);
    for (int h = 0; h < 2; ++h) {
      if (!s && g)
        put(&x, p - 1, h);
      if (!h) {
        tpk_npu_order(MATRIX, FIRST, x.loaded[b][0]);
        tpk_npu_order(MATRIX, SECOND, x.loaded[b][1]);
      }
      x.done[h] =
          multiply((int64_t)window + SUMS + h * BM * HALF * 4, (int64_t)window + LEFT + b * BM * BK * 2,
                   (int64_t)window + RIGHT + b * BK * BN * 2 + h * HALF * 2, BM, HALF, BK, HALF * 4, BK * 2,
                   BN * 2, s ? TPK_NPU_ACCUMULATE : 0);
    }
    x.read[b] = x.done[1];
  }
  for (int h = 0; total && h < 2; ++h)
    put(&x, end - 1, h);
  return 0;
}

/* --- softmax: x, out, n: rows of n floats, a program each, n a multiple of 256 up to 2048 ------------ */
enum { BATCH = 32768, DEEP = 3 };

static void softmax_rows(const float *x, float *out, int64_t count, int64_t n) {
  for (int64_t r = 0; r < count; ++r, x += n, out += n) {
    float largest = -INFINITY, total = 0;
    for (int64_t i = 0; i < n; ++i)
      largest = largest < x[i] ? x[i] : largest;
    for (int64_t i = 0; i < n; ++i)
      total += out[i] = exp2_of((x[i] - largest) * 1.44269504f);
    for (int64_t i = 0; i < n; ++i)
      out[i] *= 1 / total;
  }
  /* A row of up to 2048 floats stays in 8 registers. Reductions within vectors merge those of all rows. */
  const int64_t v = n / 256;
  tpk_npu_work(TPK_NPU_LOAD, count * v);
  tpk_npu_work(TPK_NPU_SIMPLE, 2 * (count * v + 8)); /* largest and total, and their merges */
  tpk_npu_work(TPK_NPU_REARRANGE, 2 * (2 * count + 8));
  tpk_npu_work(TPK_NPU_MULTIPLY, 2 * count * v);
  tpk_npu_work(TPK_NPU_SPECIAL, count * v);
  tpk_npu_work(TPK_NPU_DIVIDE, 1);
  tpk_npu_work(TPK_NPU_STORE, count * v);
}

KERNEL(softmax, {2, 0, 8}) {
  const int64_t n = args[2], batch = BATCH / 4 / n, batches = (end - begin + batch - 1) / batch;
  const int64_t in = (int64_t)window + VECTOR, out = in + DEEP * BATCH;
  int64_t loaded[DEEP] = {0}, stored[DEEP] = {0};
  for (int64_t g = 1 - DEEP; g < batches; ++g) {
    const int64_t next = g + DEEP - 1;
    if (next < batches) {
      const int64_t first = begin + next * batch, count = end - first < batch ? end - first : batch;
      loaded[next % DEEP] = block(FIRST, in + next % DEEP * BATCH, args[0] + 4 * n * first, 4 * n * count);
    }
    if (g < 0)
      continue;
    const int64_t first = begin + g * batch, count = end - first < batch ? end - first : batch;
    const int64_t x = in + g % DEEP * BATCH, y = out + g % DEEP * BATCH;
    tpk_npu_wait(FIRST, loaded[g % DEEP]);
    tpk_npu_wait(SECOND, stored[g % DEEP]);
    tpk_npu_reads(x, 4 * n * count, LINE);
    tpk_npu_writes(y, 4 * n * count, LINE);
    softmax_rows((float *)x, (float *)y, count, n);
    stored[g % DEEP] = block(SECOND, args[1] + 4 * n * first, y, 4 * n * count);
  }
  return 0;
}

/* --- attention: q, k, v, out, the scale for base 2 as the bits of a float, N, causal ------------------
 * All that belongs to one query lies along a column: S = K Q^T, and the sums are V^T P. So nothing is reduced
 * or repeated within a vector. While vector code computes the weights of one chunk of keys, the matrix unit
 * adds up the chunk before and multiplies the one behind. The result is transposed on its way through the
 * cluster's memory. */
enum { QUERIES = 128, KEYS = 64, S_BYTES = KEYS * QUERIES * 4, P_BYTES = KEYS * QUERIES * 2 };

typedef struct {
  int64_t program, chunk, first, base; /* of queries, and of the head */
  int64_t chunks;                      /* of the program */
} position;

typedef struct {
  const int64_t *args;
  int64_t window, gx, d;
  int64_t keys[2], values[2], query, scored[2], added, moved, stored;
  float largest[QUERIES], total[QUERIES];
} heads;

static position at(const heads *x, int64_t program) {
  const int64_t n = x->args[5], first = program % x->gx * QUERIES;
  const int64_t chunks = (x->args[6] ? first + QUERIES : n) / KEYS;
  return (position){program, 0, first, program / x->gx * n * x->d * 2, chunks};
}

static position behind(const heads *x, position p) {
  if (p.chunk + 1 == p.chunks)
    return at(x, p.program + 1);
  ++p.chunk;
  return p;
}

static void load_keys(heads *x, position p, int64_t g) {
  const int64_t bytes = KEYS * x->d * 2;
  x->keys[g & 1] =
      block(FIRST, x->window + LEFT + (g & 1) * bytes, x->args[1] + p.base + p.chunk * bytes, bytes);
}

static void load_values(heads *x, position p, int64_t g) {
  const int64_t bytes = KEYS * x->d * 2;
  x->values[g & 1] =
      block(SECOND, x->window + LEFT + (2 + (g & 1)) * bytes, x->args[2] + p.base + p.chunk * bytes, bytes);
}

/* The queries of a program, into the vector memory. */
static void load_query(heads *x, position p) {
  const int64_t bytes = QUERIES * x->d * 2;
  block(FIRST, x->window + VECTOR, x->args[0] + p.base + p.first * x->d * 2, bytes);
}

static void score(heads *x, position p, int64_t g) {
  const int d = (int)x->d;
  if (p.chunk == 0) /* the core has waited for all products with the queries before */
    tpk_npu_order(MATRIX, FIRST, block(FIRST, x->window + RIGHT, x->window + VECTOR, QUERIES * x->d * 2));
  tpk_npu_order(MATRIX, FIRST, x->keys[g & 1]);
  x->scored[g & 1] =
      multiply(x->window + SUMS + (g & 1) * S_BYTES, x->window + LEFT + (g & 1) * KEYS * d * 2,
               x->window + RIGHT, KEYS, QUERIES, d, QUERIES * 4, 2 * d, 2 * d, TPK_NPU_TRANSPOSED_B);
}

/* The weights of a chunk, whose scores are there. Sets by what the sums change. */
static void weigh(heads *x, position p, int64_t g, float *less) {
  float *s = (float *)(x->window + SUMS + (g & 1) * S_BYTES), scale;
  const int64_t at = x->window + VECTOR + 65536 + (g & 1) * P_BYTES, bits = x->args[4];
  half *weights = (half *)at;
  float larger[QUERIES], sum[QUERIES] = {0};
  const int64_t v = S_BYTES / 1024, diagonal = x->args[6] && (p.chunk + 1) * KEYS > p.first;
  memcpy(&scale, &bits, 4);
  tpk_npu_reads((int64_t)s, S_BYTES, LINE);
  tpk_npu_writes(at, P_BYTES, LINE);
  if (diagonal) {
    tpk_npu_writes((int64_t)s, S_BYTES, LINE);
    for (int64_t i = 0; i < KEYS; ++i)
      for (int64_t j = 0; j < QUERIES; ++j)
        s[i * QUERIES + j] = p.first + j >= p.chunk * KEYS + i ? s[i * QUERIES + j] : -INFINITY;
    tpk_npu_work(TPK_NPU_SIMPLE, 4 * v); /* compare and select, in both passes */
  }
  for (int j = 0; j < QUERIES; ++j)
    larger[j] = p.chunk ? x->largest[j] : -INFINITY;
  for (int i = 0; i < KEYS; ++i)
    for (int j = 0; j < QUERIES; ++j)
      larger[j] = larger[j] < s[i * QUERIES + j] * scale ? s[i * QUERIES + j] * scale : larger[j];
  for (int i = 0; i < KEYS; ++i)
    for (int j = 0; j < QUERIES; ++j) {
      const float weight = exp2_of(s[i * QUERIES + j] * scale - larger[j]);
      sum[j] += weight;
      weights[i * QUERIES + j] = (half)weight;
    }
  for (int j = 0; j < QUERIES; ++j) {
    less[j] = p.chunk ? exp2_of(x->largest[j] - larger[j]) : 0;
    x->total[j] = (p.chunk ? x->total[j] * less[j] : 0) + sum[j];
    x->largest[j] = larger[j];
  }
  tpk_npu_work(TPK_NPU_LOAD, 2 * v); /* a pass for the largest one, and a pass for the weights */
  tpk_npu_work(TPK_NPU_SIMPLE, 2 * v + 4);
  tpk_npu_work(TPK_NPU_REARRANGE,
               3); /* the two keys of a vector are merged, twice, and the largest repeated */
  tpk_npu_work(TPK_NPU_MULTIPLY, v + 2);
  tpk_npu_work(TPK_NPU_SPECIAL, v + 1);
  tpk_npu_work(TPK_NPU_CONVERT, v);
  tpk_npu_work(TPK_NPU_STORE, v / 2);
  x->moved = block(SECOND, x->window + RIGHT + QUERIES * x->d * 2 + (g & 1) * P_BYTES, at, P_BYTES);
}

static void scale_sums(heads *x, const float *less) {
  float *sums = (float *)(x->window + SUMS + 2 * S_BYTES);
  const int64_t v = x->d * QUERIES * 4 / 1024;
  tpk_npu_reads((int64_t)sums, v * 1024, LINE);
  tpk_npu_writes((int64_t)sums, v * 1024, LINE);
  for (int64_t i = 0; i < x->d; ++i)
    for (int64_t j = 0; j < QUERIES; ++j)
      sums[i * QUERIES + j] *= less[j];
  tpk_npu_work(TPK_NPU_LOAD, v);
  tpk_npu_work(TPK_NPU_MULTIPLY, v);
  tpk_npu_work(TPK_NPU_STORE, v);
}

/* Divides the sums of a program and stores them. */
static void finish(heads *x, position p, const float *total) {
  const float *sums = (float *)(x->window + SUMS + 2 * S_BYTES);
  const int64_t d = x->d, v = d * QUERIES * 4 / 1024, at = x->window + VECTOR + 131072;
  half *out = (half *)at;
  tpk_npu_wait(SECOND, x->stored);
  tpk_npu_reads((int64_t)sums, v * 1024, LINE);
  tpk_npu_writes(at, v * 512, LINE);
  for (int64_t i = 0; i < d; ++i)
    for (int64_t j = 0; j < QUERIES; ++j)
      out[i * QUERIES + j] = (half)(sums[i * QUERIES + j] * (1 / total[j]));
  tpk_npu_work(TPK_NPU_DIVIDE, 1);
  tpk_npu_work(TPK_NPU_LOAD, v);
  tpk_npu_work(TPK_NPU_MULTIPLY, v);
  tpk_npu_work(TPK_NPU_CONVERT, v);
  tpk_npu_work(TPK_NPU_STORE, v / 2);
  const tpk_npu_transfer turned = {.target = x->window + SHARED,
                                   .source = at,
                                   .target_strides = {2 * d, 2},
                                   .source_strides = {2, 2 * QUERIES},
                                   .sizes = {QUERIES, d},
                                   .high = {QUERIES, d},
                                   .element_bytes = 2,
                                   .dimensions = 2};
  tpk_npu_dma(SECOND - TPK_NPU_DMA, &turned, LINE);
  x->stored = block(SECOND, x->args[3] + p.base + p.first * d * 2, x->window + SHARED, QUERIES * d * 2);
}

static void add(heads *x, position p, int64_t g) {
  const int d = (int)x->d;
  tpk_npu_order(MATRIX, SECOND, x->moved); /* behind the values on that channel */
  x->added = multiply(x->window + SUMS + 2 * S_BYTES, x->window + LEFT + (2 + (g & 1)) * KEYS * d * 2,
                      x->window + RIGHT + QUERIES * d * 2 + (g & 1) * P_BYTES, d, QUERIES, KEYS, QUERIES * 4,
                      2 * d, QUERIES * 2, TPK_NPU_TRANSPOSED_A | (p.chunk ? TPK_NPU_ACCUMULATE : 0));
}

static void attention(heads *x, int64_t begin, int64_t end) {
  float less[QUERIES], total[QUERIES];
  position here = at(x, begin), next = behind(x, here);
  if (begin == end)
    return;
  load_query(x, here);
  load_keys(x, here, 0);
  load_values(x, here, 0);
  score(x, here, 0);
  if (next.program < end)
    load_keys(x, next, 1);
  for (int64_t g = 0; here.program < end; ++g) {
    const int new_program = here.chunk == 0;
    tpk_npu_wait(MATRIX, x->scored[g & 1]);
    if (new_program && here.program + 1 < end)
      load_query(x, at(x, here.program + 1));
    if (next.program < end) {
      const position third = behind(x, next);
      score(x, next, g + 1);
      if (third.program < end)
        load_keys(x, third, g); /* the product with the keys that were there is complete */
    }
    memcpy(total, x->total, sizeof total);
    weigh(x, here, g, less);
    tpk_npu_wait(MATRIX, x->added);
    if (next.program < end)
      load_values(x, next, g + 1);
    if (!new_program)
      scale_sums(x, less);
    else if (g)
      finish(x, at(x, here.program - 1), total);
    add(x, here, g);
    here = next;
    next = behind(x, next);
  }
  tpk_npu_wait(MATRIX, x->added);
  finish(x, at(x, end - 1), x->total);
}

KERNEL(attention64, {4, 0, 8, 16, 24}) {
  heads x = {.args = args, .window = (int64_t)window, .gx = gx, .d = 64};
  attention(&x, begin, end);
  return 0;
}

KERNEL(attention128, {4, 0, 8, 16, 24}) {
  heads x = {.args = args, .window = (int64_t)window, .gx = gx, .d = 128};
  attention(&x, begin, end);
  return 0;
}
