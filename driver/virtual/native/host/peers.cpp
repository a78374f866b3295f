// What a session does with the chips of other sessions, and with memory that it shares with them.
#include "session.h"
#include "sleeping.h"

#include <algorithm>
#include <csignal>
#include <thread>

namespace vnpu {
namespace {

constexpr uint64_t Page = 65536; // the largest page size of any machine

uint64_t upToPages(uint64_t size) { return (size + Page - 1) / Page * Page; }

// Runs `body` on a thread of its own, which handles no signals of the program.
template <typename Body> void detach(Body body) {
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  struct Restored {
    const sigset_t &mask;
    ~Restored() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restored{previous};
  std::thread(body).detach();
}

} // namespace

void Session::copyPeer(uint64_t queue, uint64_t target, Session &peer, uint64_t source, uint64_t size) {
  if (&peer == this)
    return copyOnDevice(queue, target, source, size);
  constexpr uint64_t Piece = 4 * uint64_t(SlotBytes);
  uint32_t index = queueIndex("vnpu_copy_peer", queue);
  memory_.check("vnpu_copy_peer", "target", target, size);
  peer.memory_.check("vnpu_copy_peer", "source", source, size);
  chip_.requireAlive();
  peer.chip_.requireAlive();
  channel_.drain(index);
  std::vector<uint8_t> piece(std::min(size, Piece));
  for (uint64_t done = 0; done < size; done += Piece) {
    const uint64_t bytes = std::min(size - done, Piece);
    peer.copyOut(peer.linkQueue(), piece.data(), source + done, bytes, Way::Link);
    copyIn(queue, target + done, piece.data(), bytes, Way::Link);
  }
}

// The queue on which other chips read this one's memory.
uint64_t Session::linkQueue() {
  std::lock_guard lock(link_);
  if (!linkQueue_)
    linkQueue_ = createQueue();
  return linkQueue_;
}

void Session::waitForPeer(uint64_t queue, const std::shared_ptr<Session> &peer, uint64_t handle) {
  if (peer.get() == this)
    return waitFor(queue, handle);
  uint32_t index = queueIndex("vnpu_queue_wait_peer", queue);
  Event awaited = peer->event("vnpu_queue_wait_peer", handle);
  chip_.requireAlive();
  peer->chip_.requireAlive();
  if (!awaited.number || peer->channel_.reached(awaited.queue, awaited.reached))
    return;
  const std::optional<uint32_t> gate = channel_.takeGate();
  if (!gate) // the host waits instead
    return peer->channel_.await(awaited.queue, awaited.reached);
  Command made = command(Kind::Gate);
  made.index = *gate;
  made.value = handles_++;
  channel_.lendGate(*gate, index, channel_.submit(index, made));
  auto open = [own = shared_from_this(), peer, awaited, gate = *gate, number = made.value] {
    bool lost = false;
    try {
      peer->channel_.await(awaited.queue, awaited.reached);
    } catch (const Error &) {
      lost = true;
    }
    own->channel_.openGate(gate, sealOfGate(number, lost));
  };
  try {
    detach(open);
  } catch (const std::system_error &) { // the system gives no thread
    open();
  }
}

uint64_t Session::import(int descriptor, uint64_t size) {
  chip_.requireAlive();
  if (descriptor < 0 || !size)
    throw Error(VNPU_INVALID_ARGUMENT,
                text("vnpu_import: descriptor ", descriptor, " and ", size, " bytes; both are needed"));
  const uint64_t address = memory_.allocate(upToPages(size), Page);
  Command made{.kind = Kind::Import};
  made.index = uint32_t(descriptor);
  made.target = address;
  made.value = size;
  try {
    channel_.control(made);
    tellAllocated(address, size);
  } catch (...) {
    memory_.release(address, [](const std::vector<Extent> &) {});
    throw;
  }
  std::unique_lock lock(tables_);
  imports_.emplace(address, size);
  return address;
}

void Session::endImport(uint64_t address) {
  Command made{.kind = Kind::Unmap};
  made.target = address;
  {
    std::unique_lock lock(tables_);
    auto known = imports_.find(address);
    if (known == imports_.end())
      return;
    made.value = known->second;
    imports_.erase(known);
  }
  if (!chip_.lost())
    channel_.control(made);
}

void Session::failLaunches(const char *reason) {
  const std::string whole = reason ? reason : "";
  chip_.requireAlive();
  channel_.control({.kind = Kind::Fail}, whole.data(), std::min<size_t>(whole.size(), TextBytes - 1));
}

} // namespace vnpu
