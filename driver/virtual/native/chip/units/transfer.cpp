// Strided transfers of the DMA engines, and gathers and scatters.
#include "core.h"
#include "mistake.h"

#include "../chip.h"

#include <algorithm>
#include <cstring>

namespace vnpu {
namespace {

constexpr int Most = 5;

// A tile of up to five dimensions, and the part of it that is transferred.
struct Box {
  int dimensions;
  int64_t sizes[Most], low[Most], extent[Most]; // `extent`: how many elements from `low`
  bool empty = false, whole = true;             // the part

  explicit Box(const tpk_npu_transfer &transfer) : dimensions(transfer.dimensions) {
    for (int d = 0; d < dimensions; ++d) {
      sizes[d] = transfer.sizes[d];
      low[d] = std::clamp<int64_t>(transfer.low[d], 0, sizes[d]);
      extent[d] = std::max<int64_t>(std::min(transfer.high[d], sizes[d]) - low[d], 0);
      empty |= extent[d] == 0;
      whole &= extent[d] == sizes[d];
    }
  }
  int64_t offset(const int64_t *strides) const {
    int64_t bytes = 0;
    for (int d = 0; d < dimensions; ++d)
      bytes += low[d] * strides[d];
    return bytes;
  }
};

template <typename Element>
void copyRow(uint8_t *target, const uint8_t *source, int64_t count, int64_t targetStride,
             int64_t sourceStride) {
  if (targetStride == sizeof(Element) && sourceStride == sizeof(Element)) {
    std::memcpy(target, source, size_t(count) * sizeof(Element));
    return;
  }
  for (int64_t i = 0; i < count; ++i, target += targetStride, source += sourceStride)
    std::memcpy(target, source, sizeof(Element));
}

using CopyRow = void (*)(uint8_t *, const uint8_t *, int64_t, int64_t, int64_t);

CopyRow copyRowOf(int32_t elementBytes) {
  switch (elementBytes) {
  case 1:
    return copyRow<uint8_t>;
  case 2:
    return copyRow<uint16_t>;
  case 4:
    return copyRow<uint32_t>;
  default:
    return copyRow<uint64_t>;
  }
}

void copyBox(uint8_t *target, const uint8_t *source, const int64_t *sizes, const int64_t *targetStrides,
             const int64_t *sourceStrides, int dimensions, CopyRow row) {
  if (dimensions == 1)
    return row(target, source, sizes[0], targetStrides[0], sourceStrides[0]);
  for (int64_t i = 0; i < sizes[0]; ++i, target += targetStrides[0], source += sourceStrides[0])
    copyBox(target, source, sizes + 1, targetStrides + 1, sourceStrides + 1, dimensions - 1, row);
}

int64_t readOffset(const uint8_t *at, int32_t bytes) {
  int64_t wide = 0;
  int32_t narrow = 0;
  if (bytes == 8)
    std::memcpy(&wide, at, 8);
  else
    std::memcpy(&narrow, at, 4);
  return bytes == 8 ? wide : narrow;
}

} // namespace

int64_t NpuCore::transfer(int32_t channel, const tpk_npu_transfer &given, int32_t line) {
  seen(line);
  const EngineDescription &dma = engine(channel, line, "tpk_npu_dma");
  const std::string what = text("the transfer", atLine(line));
  if (given.dimensions < 1 || given.dimensions > int32_t(dma.dimensions))
    throw Mistake{
        text(what, " has ", given.dimensions, " dimensions; ", dma.name, " takes 1 to ", dma.dimensions)};
  if (given.element_bytes <= 0 || !(dma.elementBytes & uint32_t(given.element_bytes)) ||
      (given.element_bytes & (given.element_bytes - 1)))
    throw Mistake{text(what, " has elements of ", given.element_bytes, " bytes, which ", dma.name,
                       " does not transfer")};
  const Box box(given);
  const uint64_t bytes = uint64_t(given.element_bytes);
  const uint64_t to = uint64_t(given.target), from = uint64_t(given.source);
  const uint64_t toFirst = to + uint64_t(box.offset(given.target_strides));
  const uint64_t fromFirst = from + uint64_t(box.offset(given.source_strides));

  const bool fills = window_.contains(to) && !box.whole && !given.keeps;
  const Footprint written = fills
                                ? Footprint(to, box.sizes, given.target_strides, box.dimensions, bytes)
                                : Footprint(toFirst, box.extent, given.target_strides, box.dimensions, bytes);
  const Footprint read(fromFirst, box.extent, given.source_strides, box.dimensions, bytes);
  CommandText command{.action = "transfer", .line = line};
  std::vector<Access> accesses;
  Place target, source;
  if (!written.empty()) {
    target = find(written, fills ? to : toFirst, text(what, ", in its target,"));
    requireAligned(target, to, dma.alignment, text(what, ", in its target,"));
    accesses.push_back({written, true});
    command.source = command.target = target.memory;
  }
  if (!box.empty) {
    source = find(read, fromFirst, text(what, ", in its source,"));
    requireAligned(source, from, dma.alignment, text(what, ", in its source,"));
    accesses.push_back({read, false});
    command = {"transfer", source.memory, target.memory, true, line};
    if (!dma.routed(source.memory, target.memory))
      throw Mistake{text(what, " goes from ", chip_.memories[source.memory].name, " to ",
                         chip_.memories[target.memory].name, ", and ", dma.name, " has no such route")};
    if (source.memory == target.memory && read.overlaps(written))
      throw Mistake{text(what, " has a target that overlaps its source")};
  }
  const uint64_t moved = std::max(read.burstBytes(chip_.memories[source.memory].burstBytes),
                                  written.burstBytes(chip_.memories[target.memory].burstBytes));
  // What is filled does not come from anywhere, and is written at the speed of the channel.
  const int64_t number = issue(FirstChannel + uint32_t(channel), command, std::move(accesses),
                               dma.startCycles, box.empty && !fills ? 0 : double(moved));
  const CopyRow row = copyRowOf(given.element_bytes);
  if (fills) {
    const int64_t repeat[Most] = {};
    copyBox(target.data, reinterpret_cast<const uint8_t *>(&given.fill), box.sizes, given.target_strides,
            repeat, box.dimensions, row);
  }
  if (!box.empty)
    copyBox(target.data + (fills ? toFirst - to : 0), source.data, box.extent, given.target_strides,
            given.source_strides, box.dimensions, row);
  return number;
}

int64_t NpuCore::indexed(const Indexed &given) {
  seen(given.line);
  const char *name = given.gathers ? "gather" : "scatter";
  const EngineDescription &dma =
      engine(given.channel, given.line, given.gathers ? "tpk_npu_gather" : "tpk_npu_scatter");
  const std::string what = text("the ", name, atLine(given.line));
  if (!dma.gathers)
    throw Mistake{text(what, " is for ", dma.name, ", which does not gather")};
  const int32_t size = given.elementBytes;
  if (size <= 0 || !(dma.elementBytes & uint32_t(size)) || (size & (size - 1)) ||
      (given.offsetBytes != 4 && given.offsetBytes != 8))
    throw Mistake{text(what, " has elements of ", size, " bytes and offsets of ", given.offsetBytes)};
  CommandText command{.action = name, .line = given.line};
  std::vector<Access> accesses;
  double moved = 0;
  if (given.count > 0) {
    const uint64_t count = uint64_t(given.count), bytes = count * uint64_t(size);
    auto local = [&](uint64_t address, uint64_t length, const char *part, bool writes) {
      const std::string which = text(what, ", in its ", part, ",");
      if (!window_.contains(address))
        throw Mistake{text(which, " is at ", hex(address), ", outside of the core's window")};
      accesses.push_back({Footprint(address, length), writes});
      const Place place = find(accesses.back().bytes, address, which);
      requireAligned(place, address, dma.alignment, which);
      return place;
    };
    const Place elements = local(given.local, bytes, "elements", given.gathers);
    const Place offsets = local(given.offsets, count * uint64_t(given.offsetBytes), "offsets", false);
    const Place mask = given.mask ? local(given.mask, count, "mask", false) : Place{};
    command = {name, given.gathers ? 0 : elements.memory, given.gathers ? elements.memory : 0, true,
               given.line};
    if (!dma.routed(command.source, command.target))
      throw Mistake{text(what, " goes from ", chip_.memories[command.source].name, " to ",
                         chip_.memories[command.target].name, ", and ", dma.name, " has no such route")};
    std::vector<uint64_t> addresses;
    addresses.reserve(count);
    const CopyRow row = copyRowOf(size);
    for (uint64_t i = 0; i < count; ++i) {
      uint8_t *here = elements.data + i * uint64_t(size);
      if (mask.data && !mask.data[i]) {
        if (given.gathers)
          std::memcpy(here, &given.fill, size_t(size));
        continue;
      }
      const int64_t offset = readOffset(offsets.data + i * uint64_t(given.offsetBytes), given.offsetBytes);
      const uint64_t address = given.base + uint64_t(given.scale) * uint64_t(offset);
      uint8_t *there = tryGlobal(address, uint64_t(size));
      if (!there)
        global(address, uint64_t(size), text(what, ", in element ", i, ","));
      row(given.gathers ? here : there, given.gathers ? there : here, 1, 0, 0);
      addresses.push_back(address);
    }
    const Footprint reached = Footprint::of(std::move(addresses), uint64_t(size));
    moved = double(reached.burstBytes(chip_.memories[0].burstBytes));
    accesses.push_back({reached, !given.gathers});
  }
  return issue(FirstChannel + uint32_t(given.channel), command, std::move(accesses),
               dma.startCycles + dma.gatherCycles * double(std::max<int64_t>(given.count, 0)), moved);
}

} // namespace vnpu
