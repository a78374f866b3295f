// The core's own path to global memory: single elements and atomics.
#include "core.h"
#include "formats.h"
#include "mistake.h"

#include "../chip.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace vnpu {
namespace {

// The number that an atomic leaves in memory.
template <typename Number> Number combine(int32_t kind, Number old, Number value) {
  if constexpr (std::is_integral_v<Number>) {
    using Bits = std::make_unsigned_t<Number>;
    switch (kind) {
    case TPK_NPU_ADD:
      return Number(Bits(old) + Bits(value));
    case TPK_NPU_AND:
      return old & value;
    case TPK_NPU_OR:
      return old | value;
    case TPK_NPU_XOR:
      return old ^ value;
    case TPK_NPU_MAX:
      return std::max(old, value);
    default:
      return std::min(old, value);
    }
  } else {
    if (kind == TPK_NPU_ADD)
      return old + value;
    return kind == TPK_NPU_MAX ? std::fmax(old, value) : std::fmin(old, value);
  }
}

// Numbers and their bits in memory.
template <typename Number> struct Plain {
  using Word =
      std::conditional_t<sizeof(Number) == 1, uint8_t,
                         std::conditional_t<sizeof(Number) == 2, uint16_t,
                                            std::conditional_t<sizeof(Number) == 4, uint32_t, uint64_t>>>;
  static Number number(Word bits) { return std::bit_cast<Number>(bits); }
  static Word bits(Number number) { return std::bit_cast<Word>(number); }
};
struct Half {
  using Word = uint16_t;
  static float number(Word bits) { return halfToFloat(bits); }
  static Word bits(float number) { return floatToHalf(number); }
};
struct Bfloat {
  using Word = uint16_t;
  static float number(Word bits) { return bfloatToFloat(bits); }
  static Word bits(float number) { return floatToBfloat(number); }
};

template <typename As> uint64_t change(uint8_t *data, int32_t kind, uint64_t value, uint64_t compare) {
  using Word = typename As::Word;
  std::atomic_ref<Word> memory(*reinterpret_cast<Word *>(data));
  Word old = memory.load();
  for (;;) {
    if (kind == TPK_NPU_COMPARE && old != Word(compare))
      return old;
    const Word fresh = kind >= TPK_NPU_EXCHANGE
                           ? Word(value)
                           : As::bits(combine(kind, As::number(old), As::number(Word(value))));
    if (memory.compare_exchange_strong(old, fresh))
      return old;
  }
}

using Change = uint64_t (*)(uint8_t *, int32_t, uint64_t, uint64_t);

Change changeOf(int32_t type) {
  static constexpr Change All[] = {nullptr,
                                   change<Plain<int8_t>>,
                                   change<Plain<int16_t>>,
                                   change<Plain<int32_t>>,
                                   change<Plain<int64_t>>,
                                   change<Plain<uint8_t>>,
                                   change<Plain<uint16_t>>,
                                   change<Plain<uint32_t>>,
                                   change<Plain<uint64_t>>,
                                   change<Half>,
                                   change<Bfloat>,
                                   change<Plain<float>>,
                                   change<Plain<double>>};
  return type > 0 && type <= TPK_NPU_FP64 ? All[type] : nullptr;
}

} // namespace

uint8_t *NpuCore::element(uint64_t address, int32_t bytes, int32_t line, const char *action, bool reads,
                          bool writes) {
  if (line > 0)
    line_ = line; // and no progress: a program may wait for another one in a loop of these
  const bool size = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (!size || address % uint64_t(bytes))
    throw Mistake{text("the core's ", action, atLine(line), " is of ", bytes, " bytes at ", hex(address),
                       "; elements have 1, 2, 4 or 8 bytes and lie at a multiple of that")};
  uint8_t *data = tryGlobal(address, uint64_t(bytes));
  if (!data)
    global(address, uint64_t(bytes), text("the core's ", action, atLine(line)));
  ordering_.touch({.action = action, .line = line}, {Footprint(address, uint64_t(bytes)), writes});
  const MemoryDescription &memory = chip_.memories[0];
  const double cycles = std::max<double>(double(memory.burstBytes), bytes) / memory.bytesPerCycle;
  log_.work(chip_.issueCycles + cycles + (reads ? memory.latency : 0)); // it waits for what it reads
  return data;
}

uint64_t NpuCore::load(uint64_t address, int32_t bytes, int32_t line) {
  const uint8_t *data = element(address, bytes, line, "load of an element", true, false);
  switch (bytes) {
  case 1:
    return __atomic_load_n(data, __ATOMIC_ACQUIRE);
  case 2:
    return __atomic_load_n(reinterpret_cast<const uint16_t *>(data), __ATOMIC_ACQUIRE);
  case 4:
    return __atomic_load_n(reinterpret_cast<const uint32_t *>(data), __ATOMIC_ACQUIRE);
  default:
    return __atomic_load_n(reinterpret_cast<const uint64_t *>(data), __ATOMIC_ACQUIRE);
  }
}

void NpuCore::store(uint64_t address, uint64_t value, int32_t bytes, int32_t line) {
  uint8_t *data = element(address, bytes, line, "store of an element", false, true);
  switch (bytes) {
  case 1:
    return __atomic_store_n(data, uint8_t(value), __ATOMIC_RELEASE);
  case 2:
    return __atomic_store_n(reinterpret_cast<uint16_t *>(data), uint16_t(value), __ATOMIC_RELEASE);
  case 4:
    return __atomic_store_n(reinterpret_cast<uint32_t *>(data), uint32_t(value), __ATOMIC_RELEASE);
  default:
    return __atomic_store_n(reinterpret_cast<uint64_t *>(data), value, __ATOMIC_RELEASE);
  }
}

uint64_t NpuCore::atomic(int32_t kind, int32_t type, uint64_t address, uint64_t value, uint64_t compare,
                         int32_t line) {
  const Change change = changeOf(type);
  const bool isFloat = type >= TPK_NPU_FP16;
  if (!change || kind < TPK_NPU_ADD || kind > TPK_NPU_COMPARE ||
      (isFloat && kind >= TPK_NPU_AND && kind <= TPK_NPU_XOR))
    throw Mistake{text("the core's atomic", atLine(line), " has kind ", kind, " and type ", type,
                       ", which do not go together")};
  return change(element(address, int32_t(elementBytes(type)), line, "atomic", true, true), kind, value,
                compare);
}

} // namespace vnpu
