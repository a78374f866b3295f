#include "faults.h"

#include <algorithm>
#include <string_view>

namespace vnpu {
namespace {

using Fault = Faults::Fault;

struct Name {
  std::string_view name;
  Fault::Kind kind;
};

constexpr Name Names[] = {
    {"fail-alloc", Fault::FailAllocation},
    {"corrupt-copy", Fault::CorruptCopy},
    {"drop-copy", Fault::DropCopy},
    {"refuse-module", Fault::RefuseModule},
    {"slow-queue", Fault::SlowQueue},
    {"hang", Fault::Hang},
    {"die", Fault::Die},
};
constexpr uint32_t LongestDelay = 60'000'000;

// Removes and returns the text up to `mark`; the mark is removed, too.
std::string_view next(std::string_view &text, char mark) {
  size_t end = std::min(text.find(mark), text.size());
  std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool number(std::string_view text, uint64_t most, uint64_t &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most;
}

} // namespace

std::vector<Faults::Fault> Faults::parse(const char *call, const char *all) {
  std::vector<Fault> faults;
  std::string_view rest = all;
  while (!rest.empty()) {
    std::string_view whole = next(rest, ','), parts = whole;
    auto refuse = [&](const char *why) {
      throw Error(VNPU_INVALID_ARGUMENT, text(call, ": the fault '", whole, "' ", why));
    };
    std::string_view name = next(parts, ':'), count = next(parts, ':');
    auto known =
        std::find_if(std::begin(Names), std::end(Names), [&](auto &entry) { return entry.name == name; });
    if (known == std::end(Names))
      refuse(
          "has no known name: fail-alloc, corrupt-copy, drop-copy, refuse-module, slow-queue, hang or die");
    Fault fault{known->kind, 0, 0};
    if (!number(count, UINT64_MAX, fault.left))
      refuse("is not written name:n with n of at least 1");
    uint64_t microseconds = 0;
    if (fault.kind == Fault::SlowQueue) {
      if (!number(parts, LongestDelay, microseconds))
        refuse("is not written slow-queue:n:us with us from 1 to 60000000");
    } else if (!parts.empty()) {
      refuse("takes no parameter");
    }
    fault.microseconds = uint32_t(microseconds);
    faults.push_back(fault);
  }
  return faults;
}

void Faults::arm(const std::vector<Fault> &faults) {
  std::lock_guard lock(mutex_);
  armed_.insert(armed_.end(), faults.begin(), faults.end());
}

bool Faults::strikes(Fault::Kind kind) {
  bool struck = false;
  std::erase_if(armed_, [&](Fault &fault) {
    if (fault.kind != kind || --fault.left)
      return false;
    return struck = true;
  });
  return struck;
}

bool Faults::allocationFails() {
  std::lock_guard lock(mutex_);
  return strikes(Fault::FailAllocation);
}

bool Faults::moduleIsRefused() {
  std::lock_guard lock(mutex_);
  return strikes(Fault::RefuseModule);
}

Faults::Orders Faults::command(bool copies) {
  std::lock_guard lock(mutex_);
  if (armed_.empty())
    return {};
  Orders orders;
  for (Fault &fault : armed_) {
    if (fault.kind != Fault::SlowQueue)
      continue;
    if (fault.left == 1) // for all later commands
      orders.delayMicroseconds += fault.microseconds;
    else
      --fault.left;
  }
  if (copies && strikes(Fault::CorruptCopy))
    orders.misbehaviour = Misbehaviour::Corrupt;
  if (copies && strikes(Fault::DropCopy))
    orders.misbehaviour = Misbehaviour::Drop;
  if (strikes(Fault::Hang))
    orders.misbehaviour = Misbehaviour::Hang;
  if (strikes(Fault::Die))
    orders.misbehaviour = Misbehaviour::Die;
  return orders;
}

} // namespace vnpu
