/* The intrinsics of a chip with on-chip memory: what a kernel's code on a core calls to command the other
 * units. docs/npu.md defines units, tokens, hazards and time. A vendor replaces this header's functions by
 * the chip's own.
 *
 * Local addresses are pointers into the core's window, global ones device addresses. `line` is the kernel's
 * source line, for error messages and profiles; 0 if it is not known.
 */
#ifndef TPK_NPU_H
#define TPK_NPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The units of a core, by number: DMA channel c is unit TPK_NPU_DMA + c. */
enum tpk_npu_unit { TPK_NPU_CORE = 0, TPK_NPU_MATRIX = 1, TPK_NPU_DMA = 2 };

/* Element types of the matrix unit and of atomics. */
enum tpk_npu_type {
  TPK_NPU_I8 = 1,
  TPK_NPU_I16 = 2,
  TPK_NPU_I32 = 3,
  TPK_NPU_I64 = 4,
  TPK_NPU_U8 = 5,
  TPK_NPU_U16 = 6,
  TPK_NPU_U32 = 7,
  TPK_NPU_U64 = 8,
  TPK_NPU_FP16 = 9,
  TPK_NPU_BF16 = 10,
  TPK_NPU_FP32 = 11,
  TPK_NPU_FP64 = 12,
  TPK_NPU_FP8E4NV = 13,
  TPK_NPU_FP8E5 = 14,
  TPK_NPU_FP8E4B8 = 15,
  TPK_NPU_FP8E5B16 = 16
};

/* Flags of a product. */
enum tpk_npu_flag {
  TPK_NPU_ACCUMULATE = 1,   /* C += A B instead of C = A B */
  TPK_NPU_TRANSPOSED_A = 2, /* A lies in memory as k rows of m elements */
  TPK_NPU_TRANSPOSED_B = 4  /* B lies in memory as n rows of k elements */
};

/* Kinds of work of a core. All but the first are vector instructions. */
enum tpk_npu_kind {
  TPK_NPU_SCALAR = 0,
  TPK_NPU_SIMPLE = 1,
  TPK_NPU_MULTIPLY = 2,
  TPK_NPU_DIVIDE = 3,
  TPK_NPU_SPECIAL = 4,
  TPK_NPU_LOAD = 5,
  TPK_NPU_STORE = 6,
  TPK_NPU_REARRANGE = 7,
  TPK_NPU_CONVERT = 8
};

/* Kinds of atomics. The type decides whether numbers are signed or floating-point. */
enum tpk_npu_atomic_kind {
  TPK_NPU_ADD = 0,
  TPK_NPU_AND = 1,
  TPK_NPU_OR = 2,
  TPK_NPU_XOR = 3,
  TPK_NPU_MAX = 4,
  TPK_NPU_MIN = 5,
  TPK_NPU_EXCHANGE = 6,
  TPK_NPU_COMPARE = 7 /* exchange if the memory holds `compare`, compared by bits */
};

/* A strided transfer of `dimensions` dimensions, from 1 to 5; the last is innermost. Dimension d of an array
 * is its element d. One of target and source, or both, are local. */
typedef struct tpk_npu_transfer {
  int64_t target, source;    /* addresses of element 0 */
  int64_t target_strides[5]; /* in bytes, signed */
  int64_t source_strides[5]; /* in bytes, signed; 0 repeats */
  int64_t sizes[5];          /* elements of the whole tile */
  int64_t low[5], high[5]; /* only elements low <= i < high are transferred, clipped to the tile. A target in
                              local memory gets `fill` in the others, one in global memory keeps them. */
  int64_t fill;            /* the bits of an element */
  int64_t keeps;           /* not 0: a target in local memory keeps them, too */
  int32_t element_bytes;   /* 1, 2, 4, 8 */
  int32_t dimensions;
} tpk_npu_transfer;

/* Asynchronous commands. Each returns a token: the number of the command on its unit, from 1. */
int64_t tpk_npu_dma(int32_t channel, const tpk_npu_transfer *transfer, int32_t line);

/* Element i of `count` elements is at base + scale * offset[i] in global memory, and at `local` + i *
 * element_bytes. `offsets` are signed integers of `offset_bytes` (4 or 8) and `mask` is bytes, 0 or not, or
 * the address 0 for all elements; both lie in local memory. A gather writes `fill` where the mask is 0. */
int64_t tpk_npu_gather(int32_t channel, int64_t local, int64_t base, int64_t offsets, int64_t mask,
                       int64_t count, int32_t element_bytes, int32_t offset_bytes, int32_t scale,
                       int64_t fill, int32_t line);
int64_t tpk_npu_scatter(int32_t channel, int64_t local, int64_t base, int64_t offsets, int64_t mask,
                        int64_t count, int32_t element_bytes, int32_t offset_bytes, int32_t scale,
                        int32_t line);

/* C[m, n] (+)= A[m, k] B[k, n]. Strides are those of rows in bytes, as they lie in memory. */
int64_t tpk_npu_matrix(int64_t c, int64_t a, int64_t b, int32_t m, int32_t n, int32_t k, int64_t c_stride,
                       int64_t a_stride, int64_t b_stride, int32_t a_type, int32_t b_type, int32_t c_type,
                       int32_t flags, int32_t line);

/* Waits until a command is complete. Token 0 always is. */
void tpk_npu_wait(int32_t unit, int64_t token);
/* Lets later commands of `unit` start only after that command of `other` is complete. */
void tpk_npu_order(int32_t unit, int32_t other, int64_t token);

/* What the core's own loads and stores read and write in local memory, announced before they happen. */
void tpk_npu_reads(int64_t address, int64_t bytes, int32_t line);
void tpk_npu_writes(int64_t address, int64_t bytes, int32_t line);
/* Instructions that the core executes: `count` of a kind, each on up to the vector unit's bytes of operands.
 */
void tpk_npu_work(int32_t kind, int64_t count);
/* The work of a loop: of each kind, iterations * parts[kind] / 1024 instructions, rounded up. `parts` has an
 * element for each of tpk_npu_kind. */
void tpk_npu_works(const int64_t *parts, int64_t iterations);

/* The core's own accesses of global memory, an element at a time. The core waits for them. */
uint64_t tpk_npu_element_load(int64_t address, int32_t bytes, int32_t line);
void tpk_npu_element_store(int64_t address, uint64_t value, int32_t bytes, int32_t line);
/* Returns the bits that were there. `order` is not used by chips whose cores see each other's writes in
 * order. */
uint64_t tpk_npu_atomic(int32_t kind, int32_t type, int64_t address, uint64_t value, uint64_t compare,
                        int32_t order, int32_t line);

#ifdef __cplusplus
}
#endif

#endif
