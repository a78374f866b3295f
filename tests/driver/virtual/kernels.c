/* Kernels for the virtual NPU's tests, written out as a compiler would make them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A kernel, its scratchpad, and its pointers: a count, then their offsets in the argument block. */
#define KERNEL(name, scratch_bytes, ...)                                                                     \
  const int64_t name##__scratch_bytes[] = {scratch_bytes, 0};                                                \
  const int32_t name##__pointers[] = __VA_ARGS__;                                                            \
  int32_t name(const int64_t *args, void *scratch, int64_t begin, int64_t end, int32_t gx, int32_t gy,       \
               int32_t gz)

void tpk_host_fail(const char *text, int32_t x, int32_t y, int32_t z, int64_t element, const int64_t *shape);
void tpk_host_print(const char *prefix, const char *type, int32_t hex, const int64_t *shape, const void *data,
                    int32_t x, int32_t y, int32_t z);
int64_t tpk_host_nanoseconds(void);
void tpk_math_lgamma_f64(int64_t count, double *result, const double *x);

const int32_t tpk_host_abi_version = 3;

KERNEL(empty, 0, {0}) { return 0; }

/* out[p] = out[p] * factor + p */
KERNEL(advance, 0, {1, 0}) {
  int64_t *out = (int64_t *)args[0];
  for (int64_t p = begin; p < end; ++p)
    out[p] = out[p] * args[1] + p;
  return 0;
}

/* out[p] = a / b, of doubles: out, a, b = args */
KERNEL(divide, 0, {1, 0}) {
  const double *operands = (const double *)args;
  for (int64_t p = begin; p < end; ++p)
    ((double *)args[0])[p] = operands[1] / operands[2];
  return 0;
}

/* Takes its time: *args[0] += 1 after args[1] nanoseconds. */
KERNEL(slow, 0, {1, 0}) {
  for (int64_t p = begin; p < end; ++p) {
    int64_t start = tpk_host_nanoseconds();
    while (tpk_host_nanoseconds() - start < args[1])
      ;
    __atomic_fetch_add((int64_t *)args[0], 1, __ATOMIC_SEQ_CST);
  }
  return 0;
}

/* Waits until *args[0] is not 0, and sets it to 2. */
KERNEL(gate, 0, {1, 0}) {
  while (!__atomic_load_n((int64_t *)args[0], __ATOMIC_SEQ_CST))
    usleep(100);
  __atomic_store_n((int64_t *)args[0], 2, __ATOMIC_SEQ_CST);
  return 0;
}

/* Each program takes args[1] nanoseconds, or until *args[0] is not 0. */
KERNEL(patient, 0, {1, 0}) {
  for (int64_t p = begin; p < end; ++p)
    for (int64_t start = tpk_host_nanoseconds();
         !__atomic_load_n((int64_t *)args[0], __ATOMIC_SEQ_CST) && tpk_host_nanoseconds() - start < args[1];)
      ;
  return 0;
}

/* Program 0 waits for program 1. */
KERNEL(meets, 0, {1, 0}) {
  for (int64_t p = begin; p < end; ++p)
    if (p)
      __atomic_store_n((int64_t *)args[0], 1, __ATOMIC_SEQ_CST);
    else
      while (!__atomic_load_n((int64_t *)args[0], __ATOMIC_SEQ_CST))
        ;
  return 0;
}

/* The scratchpad's last byte can be written, and it is aligned. out[p] = its address */
KERNEL(scratchpad, 1 << 20, {1, 0}) {
  for (int64_t p = begin; p < end; ++p) {
    ((char *)scratch)[(1 << 20) - 1] = 1;
    ((int64_t *)args[0])[p] = (int64_t)scratch;
  }
  return 0;
}

KERNEL(greedy, 1ll << 40, {0}) { return 0; }

/* out[p] = how many programs have added 1 to the scratchpad, whose first 8 bytes the chip clears, and not the
 * next */
const int64_t tally__scratch_bytes[] = {64, 8};
const int32_t tally__pointers[] = {1, 0};
int32_t tally(const int64_t *args, void *scratch, int64_t begin, int64_t end, int32_t gx, int32_t gy,
              int32_t gz) {
  int64_t *count = scratch;
  for (int64_t p = begin; p < end; ++p)
    ((int64_t *)args[0])[p] = ++count[0];
  count[0] = 1000; /* which no later programs must see */
  return 0;
}

/* Fails with code 7 in program args[0]. */
KERNEL(fails, 0, {0}) { return begin <= args[0] && args[0] < end ? 7 : 0; }

KERNEL(asserts, 0, {0}) {
  static const int64_t shape[] = {2, 3, 4};
  tpk_host_fail("it is said", (int32_t)begin, 1, 2, 7, shape);
  return 0;
}

KERNEL(prints, 0, {0}) {
  static const int64_t shape[] = {1, 2}, values[] = {11, -12};
  for (int64_t p = begin; p < end; ++p)
    tpk_host_print(" v ", "i64", 0, shape, values, (int32_t)p, 0, 0);
  return 0;
}

/* *args[0] = lgamma(*args[0]) */
KERNEL(lgammas, 0, {1, 0}) {
  tpk_math_lgamma_f64(1, (double *)args[0], (const double *)args[0]);
  return 0;
}

/* *(int *)args[0] = 1, whatever that is */
KERNEL(stores, 0, {0}) {
  *(volatile int *)args[0] = 1;
  return 0;
}

KERNEL(divides, 0, {0}) {
  volatile int64_t one = 1;
  return (int32_t)(one / args[0]);
}

KERNEL(endless, 0, {0}) {
  for (volatile int i = 0;; ++i)
    ;
}

KERNEL(aborts, 0, {0}) { abort(); }
KERNEL(exits, 0, {0}) { _exit(3); }

static int depth(volatile int *above) {
  volatile int here[1024] = {0};
  return depth(here) + here[5] + above[0];
}
KERNEL(recurses, 0, {0}) { return depth((volatile int *)args); }

const int64_t sizeless__scratch_bytes[] = {0, 0};
int32_t sizeless(const int64_t *args, void *scratch, int64_t begin, int64_t end, int32_t x, int32_t y,
                 int32_t z) {
  return 0;
}
