/* The virtual NPU's runtime: the API by which programs use a chip that is implemented in software.
 *
 * The chip is a separate process, `vnpu-chip`, which `vnpu_open` starts and `vnpu_close` ends. Its memory is
 * a separate address space: a device address is valid on the chip only, and faults if the host dereferences
 * it. Kernels run in the chip's process, so their crashes and wild stores affect only the chip. The only
 * memory of the caller's that they can reach is the region through which both communicate, at a different
 * address for every chip. Its contents are checked, and if they were overwritten, the chip is lost.
 *
 * Rules for every function:
 *
 * - It returns VNPU_OK or the kind of error, and does not change results when it fails. `vnpu_last_error` is
 *   a message about the calling thread's last failure: which call, which argument, its value, what to do.
 * - It may be called from any thread. Calls on one queue take effect in the order in which they return.
 * - Sizes are in bytes, times in nanoseconds unless their names say otherwise.
 * - Once the chip is lost, every function that needs it returns VNPU_DEVICE_LOST until `vnpu_reset`; freeing,
 *   unloading and destroying succeed, so that a program can clean up, and the counters can still be read.
 * - A forked process must not use its parent's chip: it gets VNPU_DEVICE_LOST, and may call `vnpu_reset`,
 *   which starts a chip of its own.
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
  VNPU_INVALID_POINTER = 2,  /* a device address is NULL, freed or a host address, or leaves its allocation */
  VNPU_INVALID_MODULE = 3,   /* a binary is not for this chip, or a module or function does not exist */
  VNPU_LAUNCH_FAILED = 4,    /* a launch was refused, or the kernel returned a failure */
  VNPU_DEVICE_LOST = 5,      /* the chip has failed or hangs: call `vnpu_reset` */
  VNPU_ASSERTION_FAILED = 6, /* an assertion in a kernel failed */
  VNPU_INVALID_ARGUMENT = 7, /* an invalid size, alignment, handle of a queue or event, or configuration */
  VNPU_COPY_FAILED = 8       /* the DMA engine delivered other data than were sent */
} vnpu_status;

typedef struct vnpu_device vnpu_device;
typedef uint64_t vnpu_address;
typedef uint64_t vnpu_queue; /* VNPU_DEFAULT_QUEUE always exists */
typedef uint64_t vnpu_event;
typedef uint64_t vnpu_module;
typedef uint64_t vnpu_function;

#define VNPU_DEFAULT_QUEUE ((vnpu_queue)0)

/* The message of the calling thread's last failure; never NULL, valid until its next call. */
const char *vnpu_last_error(void);
/* "VNPU_OUT_OF_MEMORY" and so on. */
const char *vnpu_status_name(vnpu_status status);

/* --- the chip ------------------------------------------------------------------------------------------- */

typedef struct vnpu_config {
  uint64_t memory_bytes; /* VNPU_MEMORY_BYTES, default 8 GiB; only pages that are written to take memory */
  uint64_t scratchpad_bytes; /* VNPU_SCRATCHPAD_BYTES, default 16 MiB: on-chip memory of each core */
  uint32_t cores;            /* VNPU_CORES, default: the CPUs that the process may use, at least 2 */
  uint32_t queue_depth;      /* VNPU_QUEUE_DEPTH, default 64: commands of a queue that may be pending */
  uint32_t watchdog_ms;      /* VNPU_WATCHDOG_MS, default 3000: CPU time that one program may take; 0: any */
  char chip_path[512];       /* VNPU_CHIP: the chip's program; default: installed with the library */
  char faults[512];          /* VNPU_FAULTS: in the syntax of `vnpu_inject`; default none */
  char description[4096];    /* VNPU_DESCRIPTION, the path of a file with this text: the description of a chip
                                with on-chip memory, which decides on cores and scratchpads; default none */
} vnpu_config;

/* The defaults, with changes from the environment variables above. VNPU_INVALID_ARGUMENT if one is not a
 * number or out of range; the message names it. */
vnpu_status vnpu_default_config(vnpu_config *config);
/* The number of chips in this machine, without starting one: VNPU_COUNT (default 1, at most 64) if the
 * chip's program can be run, else 0. Each `vnpu_open` starts another chip, and nothing limits them. */
vnpu_status vnpu_count(uint32_t *count);
/* Starts a chip. If `config` is NULL, the defaults are used. */
vnpu_status vnpu_open(const vnpu_config *config, vnpu_device **device);
/* Ends the chip, whatever it is doing, and frees everything. */
vnpu_status vnpu_close(vnpu_device *device);
/* The configuration with which the chip was started. */
vnpu_status vnpu_get_config(vnpu_device *device, vnpu_config *config);
/* The id of the chip's current process. */
vnpu_status vnpu_chip_process(vnpu_device *device, int64_t *process);
/* Ends the chip and starts a new one: all memory, queues, events, modules, counters and injected faults are
 * gone. It also works on a lost chip. */
vnpu_status vnpu_reset(vnpu_device *device);

/* --- memory --------------------------------------------------------------------------------------------- */

/* A size of 0 also gives an address, which is unique among the live ones. The address is a multiple of
 * `alignment`, a power of two up to 1 GiB, and of 64. Contents are undefined. */
vnpu_status vnpu_alloc(vnpu_device *device, uint64_t size, uint64_t alignment, vnpu_address *address);
/* Waits for work in flight, which may use the memory. */
vnpu_status vnpu_free(vnpu_device *device, vnpu_address address);
/* Copies to the chip. The source has been read when the call returns; the copy may run later. */
vnpu_status vnpu_copy_to_device(vnpu_device *device, vnpu_queue queue, vnpu_address target,
                                const void *source, uint64_t size);
/* Copies from the chip, after the work that is on the queue. Returns when the target is filled. If earlier
 * work on that queue has failed, returns that failure. */
vnpu_status vnpu_copy_to_host(vnpu_device *device, vnpu_queue queue, void *target, vnpu_address source,
                              uint64_t size);
/* Source and target must not overlap. */
vnpu_status vnpu_copy_on_device(vnpu_device *device, vnpu_queue queue, vnpu_address target,
                                vnpu_address source, uint64_t size);
vnpu_status vnpu_fill(vnpu_device *device, vnpu_queue queue, vnpu_address target, uint8_t value,
                      uint64_t size);

/* --- queues and events ---------------------------------------------------------------------------------- */

/* Work of one queue runs in order, independently of other queues. A call waits while the queue is full. When
 * work fails, later work on that queue is dropped until a call that waits for the queue has returned the
 * failure; events are recorded nevertheless. A chip has 1,024 queues in addition to the default one:
 * VNPU_OUT_OF_MEMORY if all are in use. */
vnpu_status vnpu_queue_create(vnpu_device *device, vnpu_queue *queue);
/* Waits for the queue's work, and returns its failure. The queue is destroyed in any case. */
vnpu_status vnpu_queue_destroy(vnpu_device *device, vnpu_queue queue);
vnpu_status vnpu_queue_synchronize(vnpu_device *device, vnpu_queue queue);
/* Waits for all queues, and returns the first failure. */
vnpu_status vnpu_synchronize(vnpu_device *device);

vnpu_status vnpu_event_create(vnpu_device *device, vnpu_event *event);
vnpu_status vnpu_event_destroy(vnpu_device *device, vnpu_event event);
/* Lets the event stand for the work that is on the queue now. */
vnpu_status vnpu_event_record(vnpu_device *device, vnpu_event event, vnpu_queue queue);
/* Lets later work on the queue wait for the work that the event stands for now, if any. */
vnpu_status vnpu_queue_wait(vnpu_device *device, vnpu_queue queue, vnpu_event event);
/* Waits for the event. A failure of the work is returned by calls that wait for its queue. */
vnpu_status vnpu_event_synchronize(vnpu_device *device, vnpu_event event);
/* VNPU_INVALID_ARGUMENT if one was never recorded or has not been reached yet. */
vnpu_status vnpu_event_elapsed(vnpu_device *device, vnpu_event start, vnpu_event end, double *milliseconds);

/* --- kernels -------------------------------------------------------------------------------------------- */

/* Loads an ELF shared object for the chip's cores. It must follow the kit's kernel ABI. */
vnpu_status vnpu_module_load(vnpu_device *device, const void *binary, uint64_t size, vnpu_module *module);
/* Launches in flight finish first. */
vnpu_status vnpu_module_unload(vnpu_device *device, vnpu_module module);
/* The kernel of that name. VNPU_INVALID_MODULE if it does not exist or does not fit the chip: it has another
 * ABI, or needs more scratchpad than a core has. */
vnpu_status vnpu_get_symbol(vnpu_device *device, vnpu_module module, const char *name,
                            vnpu_function *function);
/* Runs a grid of x * y * z programs; none if a count is zero. `args` is the packed argument block, which the
 * call copies. Parameters that the binary declares as pointers must be NULL or lie in a live allocation (or
 * at its end): VNPU_INVALID_POINTER otherwise. */
vnpu_status vnpu_launch(vnpu_device *device, vnpu_queue queue, vnpu_function function, uint32_t x, uint32_t y,
                        uint32_t z, const void *args, uint64_t size);

/* --- several chips -------------------------------------------------------------------------------------- */

/* Chips of one process, which may also be the same one, copy from each other and wait for each other. */

/* Copies from the memory of `peer`, after the work that is on the queue. Returns when the source has been
 * read; the target may be written later. Work on queues of `peer` is not waited for. */
vnpu_status vnpu_copy_peer(vnpu_device *device, vnpu_queue queue, vnpu_address target, vnpu_device *peer,
                           vnpu_address source, uint64_t size);
/* Lets later work on the queue wait for the work that an event of `peer` stands for now, if any. If `peer` is
 * lost before, the queue fails with VNPU_DEVICE_LOST. */
vnpu_status vnpu_queue_wait_peer(vnpu_device *device, vnpu_queue queue, vnpu_device *peer, vnpu_event event);

/* Maps shared memory, a file descriptor of this process, into the chip's memory, where kernels and copies use
 * it like an allocation. Other chips, also of other processes, can map the same. The descriptor may be closed
 * afterwards. `vnpu_free` ends the mapping. While there is one, the watchdog does not stop kernels, since
 * they may wait for other chips. */
vnpu_status vnpu_import(vnpu_device *device, int descriptor, uint64_t size, vnpu_address *address);
/* Lets running and later launches fail with VNPU_DEVICE_LOST and this reason; NULL: no more. Running kernels
 * are not stopped. */
vnpu_status vnpu_fail_launches(vnpu_device *device, const char *reason);

/* --- counters ------------------------------------------------------------------------------------------- */

typedef struct vnpu_counters_data {
  uint64_t bytes_to_device, bytes_to_host, bytes_on_device, bytes_filled;
  uint64_t commands, launches, programs;
  uint64_t kernel_nanoseconds;    /* the sum of the durations of all kernels */
  uint64_t scratchpad_high_water; /* the largest scratchpad of a launched kernel */
  uint64_t allocated_bytes, allocated_peak, allocations;
} vnpu_counters_data;

vnpu_status vnpu_counters(vnpu_device *device, vnpu_counters_data *counters);

/* Of a chip with a description. Cycles are those of the chip's clock; all are summed over the cores. */
typedef struct vnpu_unit_data {
  char name[32];            /* "core", "matrix", "dma0", ... */
  uint64_t commands, bytes; /* that it has finished; that its transfers moved, in whole bursts */
  uint64_t busy_cycles;     /* it computed or moved data; of the core: it computed or issued commands */
  uint64_t ordered_cycles;  /* its next command waited for another unit */
  uint64_t waited_cycles;   /* the core waited for its commands; of the core: for room in a unit's queue */
} vnpu_unit_data;

typedef struct vnpu_memory_data {
  char name[32];           /* as in the description; global memory is the first */
  uint64_t bytes;          /* that transfers have read or written, in whole bursts */
  uint64_t capacity_bytes; /* that it could have moved in all launches */
} vnpu_memory_data;

/* VNPU_INVALID_ARGUMENT if the chip has no such unit or memory, or no description. */
vnpu_status vnpu_unit_counters(vnpu_device *device, uint32_t unit, vnpu_unit_data *data);
vnpu_status vnpu_memory_counters(vnpu_device *device, uint32_t memory, vnpu_memory_data *data);

/* --- fault injection ------------------------------------------------------------------------------------ */

/* Arms faults, written "name:n" or "name:n:parameter" and joined by commas. n counts from now: 1 is the next.
 * Commands are copies, fills, records, waits for events, and launches.
 *
 *   fail-alloc:n             the nth allocation fails, although there is memory
 *   corrupt-copy:n           the nth copy delivers a wrong byte
 *   drop-copy:n              the nth copy delivers nothing and reports success
 *   refuse-module:n          the nth module is refused
 *   slow-queue:n:us          from the nth command on, every command takes us microseconds longer
 *   hang:n                   the chip stops at the nth command and does not answer any more
 *   die:n                    the chip's process ends at the nth command
 */
vnpu_status vnpu_inject(vnpu_device *device, const char *faults);

#ifdef __cplusplus
}
#endif

#endif
