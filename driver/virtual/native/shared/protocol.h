// The protocol between the library and the chip: one region of memory that both map.
//
// Each queue is a ring of commands between two counters. The library writes a command and increments
// `submitted`; the chip carries it out and increments `completed`. A command is identified by its queue and
// its value of `submitted`.
//
// Kernels run in the chip's process and can write here. Therefore everything that one side acts on is sealed
// or marked by the other (seal.h), and checked by the reader. If it does not match, the chip is lost.
// Unsealed data are only hints, without which both sides wait longer, and figures for people.
#pragma once

#include "seal.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vnpu {

inline constexpr uint32_t ProtocolVersion = 4;

inline constexpr uint32_t DefaultQueue = 0;
inline constexpr uint32_t ControlQueue = 1; // modules and housekeeping; not visible to users
inline constexpr uint32_t FirstQueue = 2;
inline constexpr uint32_t UserQueues = 1024;
inline constexpr uint32_t QueueCount = FirstQueue + UserQueues;

// Staging slots carry data that are too large for a command.
inline constexpr uint32_t SlotCount = 64;
inline constexpr uint32_t SlotBytes = 256 << 10;
inline constexpr uint32_t NoSlot = ~0u;

inline constexpr uint32_t EventCount = 1 << 20;
inline constexpr uint32_t TextBytes = 1024;
inline constexpr uint32_t InlineBytes = 896;
inline constexpr uint32_t GateCount = 256;
inline constexpr uint32_t DescriptionBytes = 4096;

enum class Kind : uint32_t {
  CopyIn,       // payload -> target, `size` bytes with `checksum`, on way `index`
  CopyOut,      // source -> slot, on way `index`
  CopyOnDevice, // source -> target
  Fill,         // byte `value` -> target
  Record,       // time stamp number `value` of event `index`
  Wait,         // until queue `index` has completed `value` commands
  Gate,         // until gate `index` is open for number `value`
  Launch,       // function `value` over `grid`, payload: the argument block
  // On the control queue:
  OpenQueue, // a thread for queue `index`
  Discard,   // payload: Extents whose contents are not needed any more
  Allocated, // on a chip with a description: `value` bytes at `target` are memory that kernels may use
  Released,  // those at `target` no more
  Import,    // maps descriptor `index` of the library's process, of `value` bytes, at `target`
  Unmap,     // ends the mapping of `value` bytes at `target`
  Fail,      // payload: why launches fail from now on; none: they do not
  Piece,     // payload: the next bytes of a module
  Load,      // the module is complete; answer: its number as a uint64_t
  Unload,    // module `value`
  Symbol,    // payload: name in module `value`; answer: a SymbolAnswer
};

// The way of a copy: it takes other time on each.
enum class Way : uint32_t { Host, Link };

// Whether a command only waits for other queues or chips.
inline bool waits(Kind kind) { return kind == Kind::Wait || kind == Kind::Gate; }

enum class Misbehaviour : uint32_t { None, Corrupt, Drop, Hang, Die };

struct Command {
  Kind kind = {};
  Misbehaviour misbehaviour = Misbehaviour::None;
  uint32_t delayMicroseconds = 0; // before it is carried out
  uint32_t counted = 0;           // 1 for the last command of a call
  uint32_t slot = NoSlot;         // where the payload is, or goes; NoSlot: in the entry
  uint32_t index = 0;
  uint32_t grid[3] = {};
  uint32_t payloadBytes = 0; // bytes that the seal covers; data of copies have a checksum
  uint64_t target = 0, source = 0, size = 0, checksum = 0, value = 0;
  uint64_t seal = 0; // of its number, of the members above, and of the payload
};

static_assert(sizeof(Command) == 88);

// The seal of command `number` of a queue.
inline uint64_t sealOf(const Command &command, uint64_t number, const void *payload) {
  return (Seal() << number).add(&command, offsetof(Command, seal)).add(payload, command.payloadBytes).value();
}

// What opens gate number `number`: the work on another chip is done, or that chip is lost.
inline uint64_t sealOfGate(uint64_t number, bool lost) {
  return (Seal() << number << uint64_t(lost)).value();
}

// An entry of a ring.
struct Entry {
  Command command;
  alignas(16) uint8_t payload[InlineBytes];
};

struct Extent {
  uint64_t address, size;
};

struct SymbolAnswer {
  uint64_t function, scratchBytes;
  uint32_t pointerCount, reserved; // followed by their offsets in the argument block, a uint32_t each
};

enum class Delivery : uint32_t { None = 0x454E4F4E, Made = 0x4544414D };

// The answer to a command that reads: a description of the data in its slot.
struct SlotAnswer {
  Delivery delivery = Delivery::None; // None: the command was dropped
  uint32_t bytes = 0;                 // on the control queue
  uint64_t sum = 0;                   // the checksum; on the control queue, the seal
};

struct QueueState {
  alignas(64) std::atomic<uint64_t> submitted; // marked, as `completed`
  std::atomic<uint32_t> chipSleeps;            // on `submitted`
  alignas(64) std::atomic<uint64_t> completed;
  std::atomic<uint32_t> waiters; // of both processes, on `completed`
  // Once a command has failed, the chip drops later ones, until the library has taken the failure. Holds the
  // seal of the failure, or its complement once the library has taken it.
  alignas(64) std::atomic<uint64_t> failed;
  int32_t status;
  char text[TextBytes];
};

inline uint64_t sealOfFailure(int32_t status, const char (&text)[TextBytes]) {
  return (Seal() << uint64_t(uint32_t(status))).add(text, TextBytes).value();
}

struct EventStamp {
  std::atomic<uint64_t> number; // the newest record that was reached
  std::atomic<uint64_t> nanoseconds;
  std::atomic<uint64_t> seal; // of the two
};

struct Counters {
  std::atomic<uint64_t> bytesToDevice, bytesToHost, bytesOnDevice, bytesFilled;
  std::atomic<uint64_t> commands, launches, programs, kernelNanoseconds, scratchpadHighWater;
};

// Of a chip with a description, summed over its cores; in cycles of its clock.
struct UnitCounters {
  std::atomic<uint64_t> commands, bytes, busyCycles, orderedCycles, waitedCycles;
};
inline constexpr uint32_t MostUnits = 18, MostMemories = 32;

enum class Start : uint32_t { Pending, Ready, Failed, RangeTaken };

struct Header {
  uint32_t version;
  int32_t hostProcess;
  uint64_t regionBytes;
  uint64_t rangeStart, rangeBytes; // of device addresses
  uint64_t scratchpadBytes;
  uint32_t cores, queueDepth, watchdogMilliseconds;
  char description[DescriptionBytes]; // of a chip with on-chip memory; empty: any other chip

  std::atomic<Start> start;
  char startText[TextBytes];
  std::atomic<uint64_t> heartbeat;
  std::atomic<uint64_t> printedBytes;
  std::atomic<uint32_t> servedQueues; // queues above have never been used
  std::atomic<uint32_t> lost;         // 2: `lostText` says why the chip ends
  std::atomic<uint64_t> lostSeal;
  char lostText[TextBytes];

  alignas(64) std::atomic<uint32_t> slotEpoch; // incremented when one may have become free
  std::atomic<uint32_t> slotWaiters;
  SlotAnswer answers[SlotCount];
  std::atomic<uint64_t> gates[GateCount]; // 0: closed; else `sealOfGate`
  Counters counters;
  std::atomic<uint64_t> launchCycles, fullQueueCycles;
  UnitCounters units[MostUnits];
  std::atomic<uint64_t> memoryBytes[MostMemories];
};

// An address in the text of a failure, of which the library says in which allocation it lies.
inline constexpr char AddressMark[] = "global address "; // then the address, as 0x1234

static_assert(std::atomic<uint64_t>::is_always_lock_free && SlotCount == 64);

// Rounds up to a multiple of the largest page size of any machine.
constexpr size_t upToPage(size_t bytes) { return (bytes + 65535) / 65536 * 65536; }

// The layout of the region. Untouched pages take no memory.
class Region {
public:
  Region() = default;
  Region(void *start, uint32_t depth) : start_(static_cast<char *>(start)), depth_(depth) {}

  static constexpr size_t QueuesAt = upToPage(sizeof(Header));
  static constexpr size_t EventsAt = QueuesAt + upToPage(QueueCount * sizeof(QueueState));
  static constexpr size_t SlotsAt = EventsAt + upToPage(EventCount * sizeof(EventStamp));
  static constexpr size_t RingsAt = SlotsAt + size_t(SlotCount) * SlotBytes;
  static constexpr size_t bytes(uint32_t depth) {
    return RingsAt + upToPage(size_t(QueueCount) * depth * sizeof(Entry));
  }

  // Prepares a queue that was never used. Called by the library.
  void open(uint32_t index) const {
    queue(index).submitted.store(marked(0));
    queue(index).completed.store(marked(0));
  }

  Header &header() const { return *reinterpret_cast<Header *>(start_); }
  QueueState &queue(uint32_t index) const { return reinterpret_cast<QueueState *>(start_ + QueuesAt)[index]; }
  EventStamp &event(uint32_t index) const { return reinterpret_cast<EventStamp *>(start_ + EventsAt)[index]; }
  uint8_t *slot(uint32_t index) const {
    return reinterpret_cast<uint8_t *>(start_ + SlotsAt) + size_t(index) * SlotBytes;
  }
  Entry &entry(uint32_t queue, uint64_t number) const {
    return reinterpret_cast<Entry *>(start_ + RingsAt)[size_t(queue) * depth_ + number % depth_];
  }

private:
  char *start_ = nullptr;
  uint32_t depth_ = 0;
};

} // namespace vnpu
