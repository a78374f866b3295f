// Reads MessagePack, the form of the metadata in AMD's code objects.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace standin {

// What is wrong with an image.
struct BadImage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Value {
  using List = std::vector<Value>;
  using Map = std::map<std::string, Value>; // other keys than strings are refused
  std::variant<std::monostate, bool, uint64_t, int64_t, double, std::string, List, Map> held;

  // These throw BadImage where the value is of another kind or missing.
  const Value &at(const char *key) const;
  bool has(const char *key) const;
  uint64_t number() const;
  uint64_t number(const char *key, uint64_t otherwise) const;
  const std::string &string() const;
  const List &list() const;
  const Map &map() const;
};

// The one value that the bytes hold.
Value unpack(std::span<const uint8_t> bytes);

} // namespace standin
