/* The runtime library of a chip that is not the virtual NPU: what the walk-through replaces hooks with.
 *
 * It stands for what a vendor's software team delivers. Other names, other conventions: negative codes for
 * mistakes, images and programs in place of modules and functions, timelines in place of queues. The "chip"
 * is a few threads of the caller's process.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum acme_code {
  ACME_SUCCESS = 0,
  ACME_NO_MEMORY = -1,
  ACME_BAD_ADDRESS = -2,
  ACME_BAD_IMAGE = -3,
  ACME_BAD_HANDLE = -4,
  ACME_BAD_VALUE = -5,
  ACME_PROGRAM_FAILED = -6
} acme_code;

/* About the calling thread's last mistake. */
const char *acme_explain(void);

/* Memory of the chip. */
acme_code acme_reserve(uint64_t bytes, uint64_t alignment, uint64_t *address);
acme_code acme_release(uint64_t address);
uint64_t acme_memory_bytes(void);
/* Memory of its own that each program of a grid may use. */
uint64_t acme_scratch_bytes(void);

/* Timelines carry work in order; 0 is always there. A mark is a point of a timeline. */
acme_code acme_timeline_open(uint64_t *timeline);
acme_code acme_timeline_close(uint64_t timeline);
acme_code acme_timeline_wait(uint64_t timeline);
acme_code acme_wait_all(void);
acme_code acme_mark_open(uint64_t *mark);
acme_code acme_mark_close(uint64_t mark);
acme_code acme_mark_set(uint64_t mark, uint64_t timeline);
acme_code acme_mark_await(uint64_t timeline, uint64_t mark);
acme_code acme_mark_wait(uint64_t mark);
acme_code acme_mark_distance(uint64_t first, uint64_t second, double *seconds);

/* Transfers. `acme_write` has read its source when it returns, `acme_read` has filled its target. */
acme_code acme_write(uint64_t timeline, uint64_t target, const void *source, uint64_t bytes);
acme_code acme_read(uint64_t timeline, void *target, uint64_t source, uint64_t bytes);
acme_code acme_move(uint64_t timeline, uint64_t target, uint64_t source, uint64_t bytes);
acme_code acme_set(uint64_t timeline, uint64_t target, uint8_t value, uint64_t bytes);

/* An image is an ELF shared object for the chip; a program one kernel in it. */
acme_code acme_image_load(const void *elf, uint64_t bytes, uint64_t *image);
acme_code acme_image_unload(uint64_t image);
acme_code acme_program(uint64_t image, const char *name, uint64_t *program);
acme_code acme_run(uint64_t timeline, uint64_t program, const uint32_t grid[3], const void *arguments,
                   uint64_t bytes);

/* Everything back to the start. */
acme_code acme_restart(void);

#ifdef __cplusplus
}
#endif
