// Reads an untrusted ELF shared object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace vnpu {

struct Symbol {
  uint64_t offset; // from where the object is loaded
  uint64_t size;
  bool executable;
};
using Symbols = std::unordered_map<std::string, Symbol>;

// The symbols that a shared object for this machine defines. Throws Failure with INVALID_MODULE and a
// message.
Symbols readSharedObject(std::string_view image);

} // namespace vnpu
