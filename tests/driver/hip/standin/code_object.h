// AMD's code objects: an ELF file for the GPU whose note says how its kernels take their arguments.
#pragma once

#include "messagepack.h"

#include <functional>

namespace standin {

struct Argument {
  std::string name, kind;
  uint64_t offset, size;
  bool hidden() const { return kind.starts_with("hidden_"); }
};

struct Kernel {
  std::string name;
  std::vector<Argument> arguments;
  uint64_t segmentBytes, segmentAlignment, groupBytes, privateBytes, largestBlock, wavefront;
  // Where the explicit arguments end.
  uint64_t explicitBytes() const;
};

struct CodeObject {
  std::string target; // gfx942
  bool needsXnack, needsSramecc, refusesXnack, refusesSramecc;
  std::map<std::string, Kernel> kernels;
};

// The bytes of the ELF image that begins at `image`, found by its headers as a runtime must, which is told no
// size. `read` copies memory and says whether there was any.
std::vector<uint8_t> copyImage(const void *image,
                               const std::function<bool(void *to, const void *from, size_t bytes)> &read);
CodeObject readCodeObject(std::span<const uint8_t> image);

} // namespace standin
