/* Kernels for a chip with on-chip memory, written by hand with its intrinsics. Tests define DIGEST and the
 * bases of memories in the window: VECTOR, LEFT, RIGHT, SUMS, and CORE, the first one that core code may
 * access; and the channels between that and global memory: LOAD0, LOAD1, STORE. */
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

/* The lines in errors are those of this file. */
#define LINE __LINE__

/* A transfer of `rows` rows of `columns` elements of 4 bytes; strides are in bytes. */
static inline tpk_npu_transfer tile(int64_t target, int64_t source, int64_t rows, int64_t columns,
                                    int64_t target_stride, int64_t source_stride) {
  tpk_npu_transfer made = {.target = target,
                           .source = source,
                           .target_strides = {target_stride, 4},
                           .source_strides = {source_stride, 4},
                           .sizes = {rows, columns},
                           .high = {rows, columns},
                           .element_bytes = 4,
                           .dimensions = 2};
  return made;
}

static inline int64_t row(int32_t channel, int64_t target, int64_t source, int64_t bytes, int32_t line) {
  tpk_npu_transfer made = tile(target, source, 1, bytes / 4, bytes, bytes);
  return tpk_npu_dma(channel, &made, line);
}

/* x, y, out, n: out = x + y, 1024 floats a program, the last one clipped. */
KERNEL(add, {3, 0, 8, 16}) {
  enum { BLOCK = 1024, BYTES = 4 * BLOCK };
  for (int64_t p = begin; p < end; ++p) {
    const int64_t at = p * BLOCK, left = args[3] - at;
    int64_t tokens[2];
    for (int i = 0; i < 2; ++i) {
      tpk_npu_transfer load =
          tile((int64_t)window + CORE + i * BYTES, args[i] + 4 * at, 1, BLOCK, BYTES, BYTES);
      load.high[1] = left;
      load.fill = 0x3f800000; /* 1.0 */
      tokens[i] = tpk_npu_dma(i ? LOAD1 : LOAD0, &load, LINE);
    }
    for (int i = 0; i < 2; ++i)
      tpk_npu_wait(TPK_NPU_DMA + (i ? LOAD1 : LOAD0), tokens[i]);
    float *x = (float *)(window + CORE), *y = x + BLOCK, *out = y + BLOCK;
    tpk_npu_reads((int64_t)x, 2 * BYTES, LINE);
    tpk_npu_writes((int64_t)out, BYTES, LINE);
    for (int i = 0; i < BLOCK; ++i)
      out[i] = x[i] + y[i];
    tpk_npu_work(TPK_NPU_SIMPLE, BYTES / 1024);
    tpk_npu_transfer store = tile(args[2] + 4 * at, (int64_t)out, 1, BLOCK, BYTES, BYTES);
    store.high[1] = left;
    tpk_npu_wait(TPK_NPU_DMA + STORE, tpk_npu_dma(STORE, &store, LINE));
  }
  return 0;
}

/* a, b, c, type, c_type, flags: C[48, 32] = A[48, 64] B[64, 32] of dense operands, as they lie in memory.
 * Adds to C what is there if it accumulates. */
KERNEL(multiply, {3, 0, 8, 16}) {
  enum { M = 48, N = 32, K = 64 };
  const int bytes = args[3] == TPK_NPU_FP32 ? 4 : args[3] == TPK_NPU_FP16 || args[3] == TPK_NPU_BF16 ? 2 : 1;
  const int64_t a = (int64_t)window + LEFT, b = (int64_t)window + RIGHT, c = (int64_t)window + SUMS;
  const int64_t vector = (int64_t)window + VECTOR;
  const int32_t flags = (int32_t)args[5];
  tpk_npu_order(TPK_NPU_MATRIX, TPK_NPU_DMA, row(0, a, args[0], M * K * bytes, LINE));
  tpk_npu_order(TPK_NPU_MATRIX, TPK_NPU_DMA + 1, row(1, b, args[1], K * N * bytes, LINE));
  if (flags & TPK_NPU_ACCUMULATE) {
    tpk_npu_wait(TPK_NPU_DMA, row(0, vector, args[2], M * N * 4, LINE));
    tpk_npu_reads(vector, M * N * 4, LINE);
    tpk_npu_writes(c, M * N * 4, LINE);
    memcpy((void *)c, (void *)vector, M * N * 4);
  }
  /* In two steps of k, with blocks of operands. */
  for (int k = 0; k < K; k += K / 2) {
    const int transposed_a = flags & TPK_NPU_TRANSPOSED_A, transposed_b = flags & TPK_NPU_TRANSPOSED_B;
    const int64_t left = a + bytes * (transposed_a ? k * M : k),
                  right = b + bytes * (transposed_b ? k : k * N);
    tpk_npu_matrix(c, left, right, M, N, K / 2, N * 4, bytes * (transposed_a ? M : K),
                   bytes * (transposed_b ? K : N), (int32_t)args[3], (int32_t)args[3], (int32_t)args[4],
                   flags | (k ? TPK_NPU_ACCUMULATE : 0), LINE);
  }
  tpk_npu_order(TPK_NPU_DMA, TPK_NPU_MATRIX, flags & TPK_NPU_ACCUMULATE ? 2 : 2);
  row(0, args[2], c, M * N * 4, LINE);
  return 0;
}

/* out, table, offsets, mask, n, mode: out[i] = mask[i] ? table[offsets[i]] : 7, or, in mode 1,
 * out[offsets[i]] = table[i] where mask[i] is set. n is a multiple of 16. */
KERNEL(collect, {4, 0, 8, 16, 24}) {
  const int64_t n = args[4], vector = (int64_t)window + VECTOR;
  const int64_t offsets = vector, mask = offsets + 4 * n, values = mask + n;
  row(0, offsets, args[2], 4 * n, LINE);
  row(0, mask, args[3], n, LINE);
  if (args[5]) {
    row(0, values, args[1], 4 * n, LINE);
    tpk_npu_scatter(0, values, args[0], offsets, mask, n, 4, 4, 4, LINE);
  } else {
    tpk_npu_gather(0, values, args[1], offsets, mask, n, 4, 4, 4, 7, LINE);
    row(0, args[0], values, 4 * n, LINE);
  }
  return 0;
}

/* values, results, kind, type, value, compare: an atomic of each program on values[0]; results[p] = what was
 * there. */
KERNEL(counts, {2, 0, 8}) {
  for (int64_t p = begin; p < end; ++p)
    tpk_npu_element_store(args[1] + 8 * p,
                          tpk_npu_atomic((int32_t)args[2], (int32_t)args[3], args[0], (uint64_t)args[4],
                                         (uint64_t)args[5], 0, LINE),
                          8, LINE);
  return 0;
}

/* from, to, bytes: elements of those bytes, one by one, a program each */
KERNEL(moves, {2, 0, 8}) {
  for (int64_t p = begin; p < end; ++p)
    tpk_npu_element_store(args[1] + p * args[2],
                          tpk_npu_element_load(args[0] + p * args[2], (int32_t)args[2], LINE),
                          (int32_t)args[2], LINE);
  return 0;
}

/* target, source: a transfer with all dimensions, in and out again: a tile of (2, 3, 4, 5, 6) bytes of which
 * a box is moved, with signs and orders of strides of its own. args[2] points to the transfer in. */
KERNEL(boxes, {2, 0, 8}) {
  tpk_npu_transfer in, out;
  const int64_t bytes = 2 * 3 * 4 * 5 * 6;
  int64_t stride = 1;
  memset(&in, 0, sizeof in);
  for (int d = 4; d >= 0; --d) {
    in.sizes[d] = 2 + d;
    in.low[d] = d % 2;
    in.high[d] = in.sizes[d] + (d == 0) - (d > 2); /* the first is clipped to the size */
    in.target_strides[d] = stride;
    stride *= in.sizes[d];
  }
  stride = 1;
  for (int d = 0; d < 5; ++d) {
    in.source_strides[d] = d == 2 ? -stride : stride;
    stride *= in.sizes[d];
  }
  in.target = (int64_t)window + VECTOR;
  in.source = args[1] - 3 * in.source_strides[2];
  in.fill = 0xee;
  in.element_bytes = 1;
  in.dimensions = 5;
  tpk_npu_dma(0, &in, LINE);
  out = in;
  out.source = in.target;
  out.target = args[0];
  memcpy(out.source_strides, in.target_strides, sizeof in.target_strides);
  if (args[2]) /* all of it, with what was filled */
    row(0, args[0], in.target, bytes, LINE);
  else
    tpk_npu_dma(0, &out, LINE);
  return 0;
}

/* Accesses global memory itself: reads args[0] + args[1]. */
KERNEL(direct, {1, 0}) {
  tpk_npu_transfer load = tile((int64_t)window + VECTOR, args[0], 1, 16, 64, 64);
  tpk_npu_wait(TPK_NPU_DMA, tpk_npu_dma(0, &load, 1234));
  return *(volatile int32_t *)(args[0] + args[1]);
}

/* Reads the byte of its window at an offset. */
KERNEL(reads_window, {0}) { return *(volatile char *)(window + args[0]) & 0; }

KERNEL(endless, {0}) {
  for (;;)
    tpk_npu_work(TPK_NPU_SCALAR, 1);
}

/* x, y, then for each core where in args the list of its commands begins, and how many they are. Each has
 * four numbers: what, unit, and two more. Transfers never meet in memory. */
KERNEL(play, {2, 0, 8}) {
  const int64_t *command = args + args[2 + 2 * begin], *last = command + 4 * args[3 + 2 * begin];
  for (int64_t at = 4096 * begin, local = 0; command < last; command += 4) {
    const int32_t unit = (int32_t)command[1];
    const int64_t bytes = command[2], here = (int64_t)window + VECTOR + local;
    switch (command[0]) {
    case 0:
      tpk_npu_work(TPK_NPU_SCALAR, bytes);
      break;
    case 1: /* from global memory */
      row(unit - TPK_NPU_DMA, here, args[0], bytes, LINE);
      break;
    case 2: /* to global memory */
      row(unit - TPK_NPU_DMA, args[1] + 16 * at + local, here, bytes, LINE);
      break;
    case 3: /* from the cluster's memory */
      row(unit - TPK_NPU_DMA, here, (int64_t)window + SHARED, bytes, LINE);
      break;
    case 4: /* tiles of k */
      tpk_npu_matrix((int64_t)window + SUMS, (int64_t)window + LEFT, (int64_t)window + RIGHT, 16, 16,
                     (int32_t)(16 * bytes), 64, 2048, 32, TPK_NPU_FP16, TPK_NPU_FP16, TPK_NPU_FP32, 0, LINE);
      break;
    case 5:
      tpk_npu_wait(unit, command[3]);
      break;
    case 6:
      tpk_npu_order(unit, (int32_t)command[2], command[3]);
      break;
    }
    if (command[0] >= 1 && command[0] <= 3)
      local += 8192;
  }
  return 0;
}
