// Writes JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

namespace standin::json {

struct Raw {
  std::string text;
};

inline std::string hexadecimal(const uint8_t *bytes, size_t count) {
  std::string result;
  char two[3];
  for (size_t i = 0; i < count; ++i) {
    std::snprintf(two, sizeof two, "%02x", bytes[i]);
    result += two;
  }
  return result;
}

inline std::string written(const std::string &value) {
  std::string result = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (c < 32 || c > 126)
      c = '?';
    result += c;
  }
  return result + '"';
}
inline std::string written(const char *value) { return written(std::string(value)); }
inline std::string written(bool value) { return value ? "true" : "false"; }
inline std::string written(const Raw &value) { return value.text; }
template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
std::string written(T value) {
  return std::to_string(value);
}
template <class T>
  requires requires(const T &value) { value.text(); }
std::string written(const T &value) {
  return value.text();
}

class List {
public:
  template <class T> List &add(const T &value) {
    items_ += (items_.empty() ? "" : ",") + written(value);
    return *this;
  }
  std::string text() const { return '[' + items_ + ']'; }

private:
  std::string items_;
};

class Object {
public:
  template <class T> Object &add(const char *key, const T &value) {
    items_ += (items_.empty() ? "" : ",") + written(key) + ':' + written(value);
    return *this;
  }
  std::string text() const { return '{' + items_ + '}'; }

private:
  std::string items_;
};

} // namespace standin::json
