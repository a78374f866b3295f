#include "ordering.h"
#include "mistake.h"

#include "../chip.h"

#include <algorithm>

namespace vnpu {
namespace {

template <typename Clock> void join(Clock &into, const Clock &other) {
  for (size_t unit = 0; unit < into.size(); ++unit)
    into[unit] = std::max(into[unit], other[unit]);
}

bool conflicts(const Access &first, const Access &second) {
  return (first.writes || second.writes) && first.bytes.overlaps(second.bytes);
}

} // namespace

void Ordering::reset() {
  issued_ = core_ = {};
  units_ = {};
  for (auto &commands : live_)
    commands.clear();
}

int64_t Ordering::issue(uint32_t unit, const CommandText &text, std::vector<Access> accesses) {
  Clock &clock = units_[unit];
  join(clock, core_);
  const int64_t number = issued_[unit] + 1;
  check(clock, unit, number, text, accesses);
  issued_[unit] = clock[unit] = number;
  live_[unit].push_back({number, clock, text, std::move(accesses)});
  return number;
}

void Ordering::requireIssued(const char *call, uint32_t unit, int64_t token) const {
  if (unit >= chip_.units())
    throw Mistake{
        text(call, " names unit ", int32_t(unit), "; the core has the units 0 to ", chip_.units() - 1)};
  if (token < 0 || token > issued_[unit])
    throw Mistake{text(call, " names command ", token, " of ", chip_.unitName(unit), ", which has got ",
                       issued_[unit], " commands")};
}

// Nothing if the core has waited for it.
const Ordering::Command *Ordering::find(uint32_t unit, int64_t token) const {
  return token > core_[unit] ? &live_[unit][size_t(token - live_[unit].front().number)] : nullptr;
}

void Ordering::wait(uint32_t unit, int64_t token) {
  requireIssued("tpk_npu_wait", unit, token);
  const Command *command = find(unit, token);
  if (!command)
    return;
  const Clock clock = command->clock;
  join(core_, clock);
  for (uint32_t each = 0; each < chip_.units(); ++each)
    while (!live_[each].empty() && live_[each].front().number <= core_[each])
      live_[each].pop_front();
}

void Ordering::order(uint32_t unit, uint32_t other, int64_t token) {
  requireIssued("tpk_npu_order", unit, 0);
  requireIssued("tpk_npu_order", other, token);
  if (unit == CoreUnit)
    return wait(other, token);
  if (const Command *command = find(other, token))
    join(units_[unit], command->clock);
}

void Ordering::touch(const CommandText &text, const Access &access) {
  for (auto &commands : live_)
    if (!commands.empty())
      return check(core_, CoreUnit, 0, text, {access});
}

void Ordering::check(const Clock &clock, uint32_t unit, int64_t number, const CommandText &text,
                     const std::vector<Access> &accesses) const {
  for (uint32_t other = 0; other < chip_.units(); ++other)
    for (auto command = live_[other].rbegin(); command != live_[other].rend(); ++command) {
      if (command->number <= clock[other]) // so are all before it
        break;
      for (const Access &first : command->accesses)
        for (const Access &second : accesses)
          if (conflicts(first, second))
            hazard(describe(other, command->number, command->text), first, describe(unit, number, text),
                   second);
    }
}

std::string Ordering::describe(uint32_t unit, int64_t number, const CommandText &command) const {
  std::string whole = text(unit == CoreUnit ? "the core" : chip_.unitName(unit), "'s ", command.action);
  if (number)
    whole += text(" ", number);
  if (command.routed)
    whole += text(" from ", chip_.memories[command.source].name, " to ", chip_.memories[command.target].name);
  return command.line > 0 ? text(whole, " at line ", command.line) : whole;
}

void Ordering::hazard(const std::string &earlier, const Access &first, const std::string &later,
                      const Access &second) const {
  const uint64_t low = std::max(first.bytes.low(), second.bytes.low());
  const uint64_t high = std::min(first.bytes.high(), second.bytes.high());
  const std::string where =
      window_.contains(low) ? window_.places(low, high) : text(high - low, " bytes from ", addressMark(low));
  throw Mistake{text("hazard: ", earlier, first.writes ? " writes " : " reads ", where, ", and ", later,
                     second.writes ? " writes" : " reads",
                     " there without waiting for it (tpk_npu_wait, tpk_npu_order)")};
}

} // namespace vnpu
