// Copies of a session: in pieces, through staging slots, with checksums at both ends.
#include "checksum.h"
#include "session.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace vnpu {
namespace {

constexpr size_t PiecesAhead = 4; // of a copy to the host

// Changes one byte, as a faulty line would.
void corrupt(uint8_t *data, uint64_t size) { data[size / 2] ^= 0x10; }

} // namespace

void Session::copyIn(uint64_t queue, uint64_t target, const void *source, uint64_t size, Way way) {
  uint32_t index = queueIndex("vnpu_copy_to_device", queue);
  memory_.check("vnpu_copy_to_device", "target", target, size);
  if (!source && size)
    throw Error(VNPU_INVALID_ARGUMENT, "vnpu_copy_to_device: source is NULL");
  chip_.requireAlive();
  if (!size)
    return;
  Command made = command(Kind::CopyIn, true);
  made.index = uint32_t(way);
  uint8_t small[InlineBytes];
  for (uint64_t done = 0; done < size; done += made.size) {
    made.target = target + done;
    made.size = std::min<uint64_t>(size - done, SlotBytes);
    made.counted = done + made.size == size;
    bool fits = made.size <= InlineBytes;
    made.slot = fits ? NoSlot : channel_.takeSlot();
    uint8_t *staged = fits ? small : channel_.slot(made.slot);
    Checksum sum;
    sum.copy(staged, static_cast<const char *>(source) + done, made.size);
    made.checksum = sum.value();
    if (made.misbehaviour == Misbehaviour::Corrupt)
      corrupt(staged, made.size);
    channel_.submit(index, made, small, fits ? made.size : 0);
    if (made.misbehaviour != Misbehaviour::Drop) // drops the whole copy; other faults apply once
      made.misbehaviour = Misbehaviour::None;
    made.delayMicroseconds = 0;
  }
}

void Session::copyOut(uint64_t queue, void *target, uint64_t source, uint64_t size, Way way) {
  uint32_t index = queueIndex("vnpu_copy_to_host", queue);
  memory_.check("vnpu_copy_to_host", "source", source, size);
  if (!target && size)
    throw Error(VNPU_INVALID_ARGUMENT, "vnpu_copy_to_host: target is NULL");
  chip_.requireAlive();
  if (!size) {
    channel_.drain(index);
    return throwFailure(index);
  }
  struct Piece {
    uint64_t number, offset, size;
    uint32_t slot;
  };
  std::deque<Piece> pieces;
  Command made = command(Kind::CopyOut, true);
  made.index = uint32_t(way);
  bool delivered = true, intact = true;
  for (uint64_t done = 0; done < size || !pieces.empty();) {
    // A copy that holds slots does not wait for more of them.
    if (done < size && pieces.size() < PiecesAhead) {
      uint32_t slot = pieces.empty() ? channel_.takeSlot() : channel_.trySlot();
      if (slot != NoSlot) {
        made.slot = slot;
        made.source = source + done;
        made.size = std::min<uint64_t>(size - done, SlotBytes);
        made.counted = done + made.size == size;
        channel_.expectAnswer(slot);
        pieces.push_back({channel_.submit(index, made), done, made.size, slot});
        done += made.size;
        if (made.misbehaviour != Misbehaviour::Drop)
          made.misbehaviour = Misbehaviour::None;
        made.delayMicroseconds = 0;
        continue;
      }
    }
    Piece piece = pieces.front();
    pieces.pop_front();
    channel_.await(index, piece.number);
    SlotAnswer answer;
    const bool arrived = channel_.takeAnswer(piece.slot, answer);
    if (arrived) {
      Checksum sum;
      sum.copy(static_cast<char *>(target) + piece.offset, channel_.slot(piece.slot), piece.size);
      intact &= sum.value() == answer.sum;
    }
    delivered &= arrived;
    channel_.giveSlot(piece.slot);
  }
  chip_.awaitPrinted();
  throwFailure(index);
  if (!delivered)
    throw Error(VNPU_LAUNCH_FAILED,
                "vnpu_copy_to_host: dropped, because work before it on the queue has failed");
  if (!intact)
    throw Error(VNPU_COPY_FAILED, text("vnpu_copy_to_host: the ", size, " bytes at ", hex(source),
                                       " did not arrive as they were sent; their checksum differs"));
}

void Session::copyOnDevice(uint64_t queue, uint64_t target, uint64_t source, uint64_t size) {
  uint32_t index = queueIndex("vnpu_copy_on_device", queue);
  memory_.check("vnpu_copy_on_device", "target", target, size);
  memory_.check("vnpu_copy_on_device", "source", source, size);
  chip_.requireAlive();
  if (!size)
    return;
  Command made = command(Kind::CopyOnDevice, true);
  made.target = target;
  made.source = source;
  made.size = size;
  channel_.submit(index, made);
}

void Session::fill(uint64_t queue, uint64_t target, uint8_t value, uint64_t size) {
  uint32_t index = queueIndex("vnpu_fill", queue);
  memory_.check("vnpu_fill", "target", target, size);
  chip_.requireAlive();
  if (!size)
    return;
  Command made = command(Kind::Fill);
  made.target = target;
  made.value = value;
  made.size = size;
  channel_.submit(index, made);
}

} // namespace vnpu
