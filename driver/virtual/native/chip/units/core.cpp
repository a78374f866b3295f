#include "core.h"
#include "allocations.h"
#include "mistake.h"
#include "trace.h"

#include "../chip.h"

#include <cstdlib>

namespace vnpu {

std::string atLine(int32_t line) { return line > 0 ? text(" at line ", line) : ""; }

void NpuCore::begin() {
  static const char *poison = std::getenv("VNPU_POISON");
  if (poison && *poison == '1')
    window_.fill(0xff); // floats of all types are no numbers
  ordering_.reset();
  for (Bursts &bursts : reached_)
    bursts.clear();
  log_.begin();
  line_ = 0;
  progress_.fetch_add(1, std::memory_order_relaxed);
}

uint8_t *NpuCore::tryGlobal(uint64_t address, uint64_t bytes) {
  return Allocations::instance().hold(address, bytes) ? memory(address) : nullptr;
}

uint8_t *NpuCore::global(uint64_t address, uint64_t bytes, const std::string &what) {
  const Header &header = region.header();
  const uint64_t offset = address - header.rangeStart;
  if (offset >= header.rangeBytes || bytes > header.rangeBytes - offset)
    throw Mistake{text(what, " reaches address ", hex(address),
                       ", which is neither in the core's window nor in global memory")};
  uint8_t *data = tryGlobal(address, bytes);
  if (!data)
    throw Mistake{text(what, " reaches ", bytes, " bytes that are not in one allocation: from ",
                       addressMark(address), " to ", addressMark(address + bytes - 1))};
  return data;
}

NpuCore::Place NpuCore::find(const Footprint &bytes, uint64_t address, const std::string &what) const {
  if (!window_.contains(bytes.low()))
    return {0, global(bytes.low(), bytes.high() - bytes.low(), what) + (address - bytes.low())};
  const MemoryIndex index = window_.memory(bytes.low(), bytes.high(), what);
  return {index, window_.data(index, address)};
}

const EngineDescription &NpuCore::engine(int32_t channel, int32_t line, const char *call) const {
  if (channel < 0 || uint32_t(channel) >= chip_.channels())
    throw Mistake{
        text(call, atLine(line), " names DMA channel ", channel, "; a core has ", chip_.channels())};
  return chip_.engine(uint32_t(channel));
}

void NpuCore::requireAligned(const Place &place, uint64_t address, uint64_t alignment,
                             const std::string &what) const {
  if (place.memory && address % alignment)
    throw Mistake{
        text(what, " begins at ", window_.place(address), ", which is not a multiple of ", alignment)};
}

int64_t NpuCore::issue(uint32_t unit, const CommandText &text, std::vector<Access> accesses, double cycles,
                       double bytes) {
  if (Trace::asked())
    for (const Access &access : accesses)
      if (!access.bytes.empty() && !window_.contains(access.bytes.low()))
        access.bytes.mark(chip_.memories[0].burstBytes, reached_[access.writes]);
  const int64_t number = ordering_.issue(unit, text, std::move(accesses));
  log_.add({.kind = Record::Command,
            .unit = uint8_t(unit),
            .source = uint8_t(text.source),
            .target = uint8_t(text.target),
            .line = text.line,
            .cycles = cycles,
            .bytes = bytes});
  return number;
}

void NpuCore::wait(int32_t unit, int64_t token) {
  seen(0);
  ordering_.wait(uint32_t(unit), token);
  if (token)
    log_.add({.kind = Record::Wait, .unit = uint8_t(unit), .token = token});
}

void NpuCore::order(int32_t unit, int32_t other, int64_t token) {
  if (unit == TPK_NPU_CORE)
    return wait(other, token);
  seen(0);
  ordering_.order(uint32_t(unit), uint32_t(other), token);
  if (token && unit != other)
    log_.add({.kind = Record::Order, .unit = uint8_t(unit), .other = uint8_t(other), .token = token});
}

void NpuCore::touch(uint64_t address, int64_t bytes, int32_t line, bool writes) {
  seen(line);
  if (bytes <= 0)
    return;
  const char *action = writes ? "write" : "read";
  const MemoryIndex index = window_.memoryOf(address, address + uint64_t(bytes));
  if (!index || !chip_.memories[index].coreAccess) {
    const std::string what = text("the core's ", action, atLine(line));
    if (!window_.contains(address))
      throw Mistake{text(what, " is at ", hex(address),
                         ", outside of the core's window: core code has no access to global memory")};
    window_.memory(address, address + uint64_t(bytes), what);
    throw Mistake{text(what, " is in '", chip_.memories[index].name, "', to which core code has no access")};
  }
  ordering_.touch({.action = action, .line = line}, {Footprint(address, uint64_t(bytes)), writes});
}

void NpuCore::work(int32_t kind, int64_t count) {
  if (kind < 0 || uint32_t(kind) >= WorkKinds || count < 0)
    throw Mistake{
        text("tpk_npu_work got kind ", kind, " and count ", count, "; kinds are 0 to ", WorkKinds - 1)};
  log_.work(double(count) * chip_.workCycles[size_t(kind)]);
}

void NpuCore::works(const int64_t *parts, int64_t iterations) {
  constexpr int64_t Whole = 1024;
  for (int32_t kind = 0; kind < int32_t(WorkKinds); ++kind)
    if (parts[kind])
      work(kind, (iterations * parts[kind] + Whole - 1) / Whole);
}

} // namespace vnpu
