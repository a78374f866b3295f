// The parts of a replay that do not depend on the device: command line, files, and comparison of memory.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace replay {

using Bytes = std::vector<unsigned char>;

[[noreturn]] inline void fail(const std::string &text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

// The command line.
struct Options {
  std::string data;   // --data DIR: the recorded files
  std::string dumped; // --dump DIR: the folder for the resulting memory; empty: it is not written
  int repeat = 1;     // --repeat N

  std::string path(const char *name) const { return data + "/" + name; }

  // The content of a recorded file, which has `size` bytes.
  Bytes read(const char *name, std::size_t size) const {
    const std::string file = path(name);
    std::FILE *stream = std::fopen(file.c_str(), "rb");
    if (!stream)
      fail(file + " cannot be opened; name its folder with --data");
    Bytes content(size + 1); // one more than expected, to detect a longer file
    const std::size_t found = std::fread(content.data(), 1, content.size(), stream);
    std::fclose(stream);
    if (found != size)
      fail(file + " does not have the recorded size of " + std::to_string(size) + " bytes");
    content.resize(size);
    return content;
  }

  void dump(const char *name, const Bytes &content) const {
    if (dumped.empty())
      return;
    const std::string file = dumped + "/" + name;
    std::FILE *stream = std::fopen(file.c_str(), "wb");
    if (!stream || std::fwrite(content.data(), 1, content.size(), stream) != content.size() ||
        std::fclose(stream))
      fail(file + " cannot be written");
  }
};

inline Options parse(int argc, char **argv, const char *data) {
  Options options;
  options.data = data;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char *value = i + 1 < argc ? argv[++i] : nullptr;
    if (option == "--repeat" && value && std::atoi(value) > 0)
      options.repeat = std::atoi(value);
    else if (option == "--dump" && value)
      options.dumped = value;
    else if (option == "--data" && value)
      options.data = value;
    else
      fail(std::string("usage: ") + argv[0] + " [--repeat N] [--dump DIR] [--data DIR]");
  }
  return options;
}

using Time = std::chrono::steady_clock::time_point;

inline Time now() { return std::chrono::steady_clock::now(); }

inline void print_time(int run, Time start) {
  const std::chrono::duration<double, std::milli> time = now() - start;
  std::printf("run %d: %.3f ms\n", run, time.count());
}

// An element as text: its bits, and its value if C++ has such a type.
inline std::string element(const unsigned char *bytes, std::size_t size, const std::string &type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, size);
  char text[64];
  std::snprintf(text, sizeof text, "0x%0*llx", int(2 * size), static_cast<unsigned long long>(bits));
  std::string result = text;
  float narrow;
  double wide;
  if (type == "fp32")
    std::memcpy(&narrow, bytes, sizeof narrow), std::snprintf(text, sizeof text, " (%.9g)", double(narrow));
  else if (type == "fp64")
    std::memcpy(&wide, bytes, sizeof wide), std::snprintf(text, sizeof text, " (%.17g)", wide);
  else if (type[0] == 'i')
    std::snprintf(text, sizeof text, " (%lld)",
                  static_cast<long long>(bits << (64 - 8 * size)) >> (64 - 8 * size));
  else if (type[0] == 'u')
    std::snprintf(text, sizeof text, " (%llu)", static_cast<unsigned long long>(bits));
  else
    text[0] = '\0';
  return result + text;
}

// The elements that an argument points to: their type and size, and the byte of the buffer where they begin.
struct Elements {
  const char *type;
  std::size_t size;
  std::size_t offset;
};

// Returns whether memory is identical to the recording, bit for bit. Prints the first element that differs.
inline bool compare(const char *name, const Elements &elements, const Bytes &actual, const Bytes &expected) {
  const auto &[type, size, offset] = elements;
  if (actual == expected)
    return true;
  std::size_t byte = 0;
  while (actual[byte] == expected[byte])
    ++byte;
  const std::size_t phase = offset % size; // there are elements before `offset`, too
  const std::size_t start = byte < phase ? actual.size() : byte - (byte - phase) % size;
  if (start + size > actual.size()) {
    std::fprintf(stderr, "%s: byte %zu of the buffer differs\n", name, byte);
    return false;
  }
  const long long index =
      (static_cast<long long>(start) - static_cast<long long>(offset)) / static_cast<long long>(size);
  std::fprintf(stderr, "%s: element [%lld] is %s, recorded was %s\n", name, index,
               element(&actual[start], size, type).c_str(), element(&expected[start], size, type).c_str());
  return false;
}

} // namespace replay
