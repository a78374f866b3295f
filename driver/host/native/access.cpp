#include "access.h"
#include "host.h"
#include "services.h"

#include <string_view>

namespace tpk {
namespace {

constexpr const char *kindNames[] = {"a load", "a store", "an atomic operation"};

// Larger than the memory of any process: a larger extent was computed from numbers that overflowed.
constexpr uint64_t MostBytes = uint64_t(1) << 56;

bool contains(const Bounds &bounds, uint64_t address, uint64_t bytes) {
  uint64_t before = address - bounds.begin;
  return before <= bounds.bytes && bytes <= bounds.bytes - before;
}

bool isKnown(const Bounds &bounds) { return bounds.begin != UnknownBegin; }

bool writes(const Site &site) { return site.kind != 0; }

// Why memory that belongs to no known argument may not be accessed; empty if it may.
std::string refused(uint64_t address, uint64_t bytes, bool toWrite) {
  if (std::string reason = Host::refusal(address, bytes); !reason.empty())
    return reason;
  if (isMapped(address, bytes, toWrite))
    return {};
  return toWrite && isMapped(address, bytes, false) ? "that memory cannot be written"
                                                    : "no memory is mapped there";
}

std::string elements(uint64_t bytes, const Site &site) {
  uint64_t size = uint64_t(site.bytes);
  std::string sentence = text(bytes, " bytes");
  if (bytes % size == 0 && size)
    sentence += text(" (", bytes / size, bytes == size ? " element)" : " elements)");
  return sentence;
}

// How far outside an element lies, in bytes, and on which side.
struct Distance {
  uint64_t bytes;
  bool behind;
};

Distance distance(const Bounds &bounds, uint64_t address, const Site &site) {
  if (address < bounds.begin)
    return {bounds.begin - address, false};
  return {address + uint64_t(site.bytes) - (bounds.begin + bounds.bytes), true};
}

std::string name(const char *names, int64_t index) {
  std::string_view rest = names;
  while (index-- > 0)
    rest.remove_prefix(rest.find('\n') + 1);
  return std::string(rest.substr(0, rest.find('\n')));
}

std::string outside(const Bounds &bounds, uint64_t address, const Site &site, const std::string &argument) {
  auto [bytes, behind] = distance(bounds, address, site);
  if (!bounds.begin && !bounds.bytes)
    return text("argument '", argument, "', which is NULL or has no memory: the address is ", hex(address));
  return text(elements(bytes, site), behind ? " behind the end of" : " before the beginning of",
              " argument '", argument, "', which has ", elements(bounds.bytes, site));
}

struct Question {
  const char *where, *names;
  const Site *site;
  const Bounds *bounds;
  const uint64_t *addresses;
  const uint8_t *wanted;
  int64_t count, element;
  int32_t program[3];
};

// What is wrong with an element at an address; empty if nothing is.
std::string mistake(const Question &question, uint64_t address) {
  const Site &site = *question.site;
  const auto size = uint64_t(site.bytes);
  if (site.argument >= 0) {
    const Bounds &bounds = question.bounds[site.argument];
    const std::string argument = name(question.names, site.argument);
    if (isKnown(bounds))
      return contains(bounds, address, size) ? "" : text("is ", outside(bounds, address, site, argument));
    std::string reason = refused(address, size, writes(site));
    return reason.empty() ? ""
                          : text("is at address ", hex(address), ", computed from argument '", argument,
                                 "' of unknown size: ", reason);
  }
  int64_t nearest = -1;
  for (int64_t i = 0; i < site.arguments; ++i) {
    const Bounds &bounds = question.bounds[i];
    if (isKnown(bounds) && contains(bounds, address, size))
      return {};
    if (isKnown(bounds) && bounds.bytes &&
        (nearest < 0 ||
         distance(bounds, address, site).bytes < distance(question.bounds[nearest], address, site).bytes))
      nearest = i;
  }
  std::string reason = refused(address, size, writes(site));
  if (reason.empty())
    return {};
  std::string sentence = text("is at address ", hex(address), ", which is in no argument: ", reason);
  if (nearest >= 0)
    sentence += text("; the nearest is ",
                     outside(question.bounds[nearest], address, site, name(question.names, nearest)));
  return sentence;
}

std::string firstMistake(const void *what) {
  const auto &question = *static_cast<const Question *>(what);
  for (int64_t lane = 0; lane < question.count; ++lane) {
    if (!question.wanted[lane])
      continue;
    std::string found = mistake(question, question.addresses[lane]);
    if (found.empty())
      continue;
    const Site &site = *question.site;
    return text(kindNames[site.kind], " of ", site.bytes, " bytes in ",
                place(question.program, question.element + lane, site.shape), ", ", found, ": ",
                question.where);
  }
  return {};
}

} // namespace
} // namespace tpk

int32_t tpk_host_reaches(const tpk::Site *site, const tpk::Bounds *bounds, uint64_t address, uint64_t bytes) {
  using namespace tpk;
  if (bytes >= MostBytes)
    return 0;
  int64_t first = site->argument < 0 ? 0 : site->argument;
  int64_t end = site->argument < 0 ? site->arguments : site->argument + 1;
  bool known = site->argument >= 0;
  for (int64_t i = first; i < end; ++i) {
    if (isKnown(bounds[i]) && contains(bounds[i], address, bytes))
      return 1;
    known = known && isKnown(bounds[i]);
  }
  return !known && refused(address, bytes, writes(*site)).empty();
}

void tpk_host_access(const char *where, const char *names, const tpk::Site *site, const tpk::Bounds *bounds,
                     const uint64_t *addresses, const uint8_t *wanted, int64_t count, int64_t element,
                     int32_t x, int32_t y, int32_t z) {
  const tpk::Question question{where, names, site, bounds, addresses, wanted, count, element, {x, y, z}};
  tpk::endUnless(tpk::firstMistake, &question);
}
