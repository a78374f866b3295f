/* The virtual NPU's runtime: what a program does to a chip that is made of software.
 *
 * The chip is a process of its own, `vnpu-chip`, which `vnpu_open` starts and `vnpu_close` ends. Its memory
 * is an address space of its own: a device address means something to the chip only, and faults where the
 * host dereferences it. Kernels run in the chip's process: their crashes and wild stores are the chip's. All
 * that they could reach of the caller's is the region through which both talk, at an address that is another
 * for every chip; what is there is checked, and where it was overwritten the chip is lost.
 *
 * Rules for every function:
 *
 * - It returns VNPU_OK or the kind of mistake, and leaves results alone when it fails. `vnpu_last_error` has
 *   a sentence about the calling thread's last failure: which call, which argument, its value, what to do.
 * - It may be called from any thread. Calls on one queue take effect in the order in which they return.
 * - Sizes are in bytes, times in nanoseconds unless their names say otherwise.
 * - Once the chip is lost, every function that needs it returns VNPU_DEVICE_LOST until `vnpu_reset`; freeing,
 *   unloading and destroying succeed, so that a program can clean up, and the counters can still be read.
 * - A process that was forked off must not use its parent's chip: it gets VNPU_DEVICE_LOST, and may reset,
 *   which brings a chip of its own.
 */
#ifndef VNPU_H
#define VNPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VNPU_VERSION 1

typedef enum vnpu_status {
  VNPU_OK = 0,
  VNPU_OUT_OF_MEMORY = 1,
  VNPU_INVALID_POINTER = 2, /* a device address that is NULL, freed, the host's, or leaves its allocation */
  VNPU_INVALID_MODULE = 3, /* a binary that is not for this chip, or a module or function that is not there */
  VNPU_LAUNCH_FAILED = 4,  /* a launch was refused, or the kernel returned a failure */
  VNPU_DEVICE_LOST = 5,    /* the chip died or hangs: `vnpu_reset` */
  VNPU_ASSERTION_FAILED = 6,
  VNPU_INVALID_ARGUMENT = 7, /* sizes, alignments, handles of queues and events, a configuration */
  VNPU_COPY_FAILED = 8       /* what the DMA engine delivered is not what was sent */
} vnpu_status;

typedef struct vnpu_device vnpu_device;
typedef uint64_t vnpu_address;
typedef uint64_t vnpu_queue; /* VNPU_DEFAULT_QUEUE is there from the start */
typedef uint64_t vnpu_event;
typedef uint64_t vnpu_module;
typedef uint64_t vnpu_function;

#define VNPU_DEFAULT_QUEUE ((vnpu_queue)0)

/* The text of the calling thread's last failure; never NULL, valid until its next call. */
const char *vnpu_last_error(void);
/* "VNPU_OUT_OF_MEMORY" and so on. */
const char *vnpu_status_name(vnpu_status status);

/* --- the chip ------------------------------------------------------------------------------------------- */

typedef struct vnpu_config {
  uint64_t memory_bytes;     /* VNPU_MEMORY_BYTES, default 8 GiB; the machine gives what is written to */
  uint64_t scratchpad_bytes; /* VNPU_SCRATCHPAD_BYTES, default 16 MiB: on-chip memory of each core */
  uint32_t cores;            /* VNPU_CORES, default: the CPUs that the process may use, and 2 at least */
  uint32_t queue_depth;      /* VNPU_QUEUE_DEPTH, default 64: commands of a queue that may be pending */
  uint32_t watchdog_ms;      /* VNPU_WATCHDOG_MS, default 3000: CPU time that one program may take; 0: any */
  char chip_path[512];       /* VNPU_CHIP: the program that is the chip; default: beside the library */
  char faults[512];          /* VNPU_FAULTS: as `vnpu_inject` takes them; default none */
} vnpu_config;

/* The defaults, changed by the environment variables named above. VNPU_INVALID_ARGUMENT names one that is no
 * number or out of range. */
vnpu_status vnpu_default_config(vnpu_config *config);
/* How many chips are in this machine, without starting one: 1 where the program that is the chip can be run,
 * else 0. */
vnpu_status vnpu_count(uint32_t *count);
/* Starts a chip. `config` may be NULL: the defaults. */
vnpu_status vnpu_open(const vnpu_config *config, vnpu_device **device);
/* Ends the chip, whatever it is doing, and frees everything. */
vnpu_status vnpu_close(vnpu_device *device);
/* What the chip was started with. */
vnpu_status vnpu_get_config(vnpu_device *device, vnpu_config *config);
/* The process that is the chip now. */
vnpu_status vnpu_chip_process(vnpu_device *device, int64_t *process);
/* Ends the chip and starts a fresh one: all memory, queues, events, modules and counters are gone, and
 * injected faults too. Works on a lost chip, which is what it is for. */
vnpu_status vnpu_reset(vnpu_device *device);

/* --- memory --------------------------------------------------------------------------------------------- */

/* A size of 0 gives an address too, unique among the live ones. The address is a multiple of `alignment`, a
 * power of two up to 1 GiB, and of 64. Contents are undefined. */
vnpu_status vnpu_alloc(vnpu_device *device, uint64_t size, uint64_t alignment, vnpu_address *address);
/* Waits for the work in flight, which may use the memory. */
vnpu_status vnpu_free(vnpu_device *device, vnpu_address address);
/* Copies into the chip. The source has been read when the call returns, the copy may run later. */
vnpu_status vnpu_copy_to_device(vnpu_device *device, vnpu_queue queue, vnpu_address target,
                                const void *source, uint64_t size);
/* Copies out of the chip, behind what is on the queue. Returns when the target is filled; a failure of the
 * work before it on that queue is returned here. */
vnpu_status vnpu_copy_to_host(vnpu_device *device, vnpu_queue queue, void *target, vnpu_address source,
                              uint64_t size);
/* The two must not overlap. */
vnpu_status vnpu_copy_on_device(vnpu_device *device, vnpu_queue queue, vnpu_address target,
                                vnpu_address source, uint64_t size);
vnpu_status vnpu_fill(vnpu_device *device, vnpu_queue queue, vnpu_address target, uint8_t value,
                      uint64_t size);

/* --- queues and events ---------------------------------------------------------------------------------- */

/* Work of one queue runs in order, independently of other queues. A call that finds a queue full waits. When
 * work fails, what is behind it on that queue is dropped until the failure has been returned by a call that
 * waits for the queue; events are recorded all the same. A chip has 1,024 queues besides the default one:
 * VNPU_OUT_OF_MEMORY when all are in use. */
vnpu_status vnpu_queue_create(vnpu_device *device, vnpu_queue *queue);
/* Waits for the queue's work, and returns its failure. The queue is gone in any case. */
vnpu_status vnpu_queue_destroy(vnpu_device *device, vnpu_queue queue);
vnpu_status vnpu_queue_synchronize(vnpu_device *device, vnpu_queue queue);
/* All queues; the first failure. */
vnpu_status vnpu_synchronize(vnpu_device *device);

vnpu_status vnpu_event_create(vnpu_device *device, vnpu_event *event);
vnpu_status vnpu_event_destroy(vnpu_device *device, vnpu_event event);
/* The event stands for the work that is on the queue now. */
vnpu_status vnpu_event_record(vnpu_device *device, vnpu_event event, vnpu_queue queue);
/* What comes on the queue from now on waits for what the event stands for now (nothing: does not wait). */
vnpu_status vnpu_queue_wait(vnpu_device *device, vnpu_queue queue, vnpu_event event);
/* Waits; a failure of the work stays with its queue. */
vnpu_status vnpu_event_synchronize(vnpu_device *device, vnpu_event event);
/* VNPU_INVALID_ARGUMENT when one was never recorded or not reached yet. */
vnpu_status vnpu_event_elapsed(vnpu_device *device, vnpu_event start, vnpu_event end, double *milliseconds);

/* --- kernels -------------------------------------------------------------------------------------------- */

/* Loads an ELF shared object for the chip's cores, which follows the kit's kernel ABI. */
vnpu_status vnpu_module_load(vnpu_device *device, const void *binary, uint64_t size, vnpu_module *module);
/* Launches in flight end first. */
vnpu_status vnpu_module_unload(vnpu_device *device, vnpu_module module);
/* The kernel of that name. VNPU_INVALID_MODULE when it is not there or does not fit the chip: another ABI, or
 * more scratchpad than a core has. */
vnpu_status vnpu_get_symbol(vnpu_device *device, vnpu_module module, const char *name,
                            vnpu_function *function);
/* Runs a grid of x * y * z programs; none with a zero count. `args` is the packed argument block, copied by
 * the call. Parameters that the binary declares as pointers must be NULL or lie in a live allocation (or
 * right behind it): VNPU_INVALID_POINTER otherwise. */
vnpu_status vnpu_launch(vnpu_device *device, vnpu_queue queue, vnpu_function function, uint32_t x, uint32_t y,
                        uint32_t z, const void *args, uint64_t size);

/* --- what it did ---------------------------------------------------------------------------------------- */

typedef struct vnpu_counters_data {
  uint64_t bytes_to_device, bytes_to_host, bytes_on_device, bytes_filled;
  uint64_t commands, launches, programs;
  uint64_t kernel_nanoseconds;    /* from the start of each kernel to its end, added up */
  uint64_t scratchpad_high_water; /* the largest scratchpad that a launched kernel took */
  uint64_t allocated_bytes, allocated_peak, allocations;
} vnpu_counters_data;

vnpu_status vnpu_counters(vnpu_device *device, vnpu_counters_data *counters);

/* --- misbehaviour on request ---------------------------------------------------------------------------- */

/* Arms faults, written "name:n" or "name:n:parameter" and joined by commas. n counts from now: 1 is the next.
 * Commands are copies, fills, records, waits for events, and launches.
 *
 *   fail-alloc:n             the nth allocation fails, although there is memory
 *   corrupt-copy:n           the nth copy delivers a wrong byte
 *   drop-copy:n              the nth copy delivers nothing and says that it did
 *   refuse-module:n          the nth module is refused
 *   slow-queue:n:us          from the nth command on, every command takes us microseconds longer
 *   hang:n                   the chip stops at the nth command and answers nothing any more
 *   die:n                    the chip's process ends at the nth command
 */
vnpu_status vnpu_inject(vnpu_device *device, const char *faults);

#ifdef __cplusplus
}
#endif

#endif
