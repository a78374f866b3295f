#include "messagepack.h"

#include <bit>

namespace standin {
namespace {

class Reader {
public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }

  Value value(int depth = 0) {
    if (depth > 32)
      throw BadImage("the metadata are nested too deeply");
    uint8_t first = uint8_t(number(1));
    if (first < 0x80)
      return {uint64_t(first)};
    if (first >= 0xe0)
      return {int64_t(int8_t(first))};
    if (first < 0x90)
      return map(first & 15, depth);
    if (first < 0xa0)
      return list(first & 15, depth);
    if (first < 0xc0)
      return {string(first & 31)};
    switch (first) {
    case 0xc0:
      return {std::monostate()};
    case 0xc2:
    case 0xc3:
      return {first == 0xc3};
    case 0xc4: // bytes
    case 0xc5:
    case 0xc6:
      return {string(number(size_t(1) << (first - 0xc4)))};
    case 0xca:
      return {double(std::bit_cast<float>(uint32_t(number(4))))};
    case 0xcb:
      return {std::bit_cast<double>(number(8))};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return {number(size_t(1) << (first - 0xcc))};
    case 0xd0:
      return {int64_t(int8_t(number(1)))};
    case 0xd1:
      return {int64_t(int16_t(number(2)))};
    case 0xd2:
      return {int64_t(int32_t(number(4)))};
    case 0xd3:
      return {int64_t(number(8))};
    case 0xd9:
    case 0xda:
    case 0xdb:
      return {string(number(size_t(1) << (first - 0xd9)))};
    case 0xdc:
      return list(number(2), depth);
    case 0xdd:
      return list(number(4), depth);
    case 0xde:
      return map(number(2), depth);
    case 0xdf:
      return map(number(4), depth);
    default:
      throw BadImage("the metadata hold a kind of value that they never have");
    }
  }

private:
  std::span<const uint8_t> take(uint64_t count) {
    if (count > rest_.size())
      throw BadImage("the metadata are cut off");
    auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  uint64_t number(size_t bytes) { // big-endian
    uint64_t result = 0;
    for (uint8_t byte : take(bytes))
      result = result << 8 | byte;
    return result;
  }

  std::string string(uint64_t length) {
    auto bytes = take(length);
    return std::string(bytes.begin(), bytes.end());
  }

  Value list(uint64_t count, int depth) {
    Value::List result;
    for (uint64_t i = 0; i < count; ++i)
      result.push_back(value(depth + 1));
    return {std::move(result)};
  }

  Value map(uint64_t count, int depth) {
    Value::Map result;
    for (uint64_t i = 0; i < count; ++i) {
      Value key = value(depth + 1);
      std::string name = key.string();
      result[name] = value(depth + 1);
    }
    return {std::move(result)};
  }

  std::span<const uint8_t> rest_;
};

template <class T> const T &as(const Value &value, const char *kind) {
  auto found = std::get_if<T>(&value.held);
  if (!found)
    throw BadImage(std::string("the metadata hold something else than ") + kind);
  return *found;
}

} // namespace

const Value &Value::at(const char *key) const {
  auto found = map().find(key);
  if (found == map().end())
    throw BadImage(std::string("the metadata have no ") + key);
  return found->second;
}

bool Value::has(const char *key) const { return map().contains(key); }
uint64_t Value::number() const { return as<uint64_t>(*this, "a number"); }
uint64_t Value::number(const char *key, uint64_t otherwise) const {
  return has(key) ? at(key).number() : otherwise;
}
const std::string &Value::string() const { return as<std::string>(*this, "a text"); }
const Value::List &Value::list() const { return as<List>(*this, "a list"); }
const Value::Map &Value::map() const { return as<Map>(*this, "a map"); }

Value unpack(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  Value result = reader.value();
  if (!reader.empty())
    throw BadImage("something lies behind the metadata");
  return result;
}

} // namespace standin
