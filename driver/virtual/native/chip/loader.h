// Modules: ELF shared objects in the chip's process.
#pragma once

#include "cores.h"
#include "elf_object.h"

#include <unordered_map>

namespace vnpu {

// Carries out a command of the control queue.
void control(const Command &command);

class Loader {
public:
  static Loader &instance();

  void addPiece(uint64_t upload, const void *data, uint64_t size);
  // Throws Failure with INVALID_MODULE. Returns the module's number.
  uint64_t load(uint64_t upload);
  void unload(uint64_t module);
  // Writes a SymbolAnswer of at most `capacity` bytes and returns its size. Throws Failure with
  // INVALID_MODULE.
  uint64_t symbol(uint64_t module, const std::string &name, void *answer, uint64_t capacity);
  std::shared_ptr<const Kernel> kernel(uint64_t number);

private:
  struct Module {
    void *handle;
    int descriptor; // open while the module is loaded: the dynamic linker identifies it by this name
    uint64_t base;
    Symbols symbols;
    std::vector<uint64_t> kernels;
  };

  // The module's data of `size` bytes with this name; throws Failure.
  const void *data(const Module &module, const std::string &name, uint64_t size) const;
  void requireChip(const Module &module, const std::string &name) const;

  std::mutex mutex_; // of the kernels, which queues look up
  std::unordered_map<uint64_t, std::string> uploads_;
  std::unordered_map<uint64_t, Module> modules_;
  std::unordered_map<uint64_t, std::shared_ptr<const Kernel>> kernels_;
  uint64_t next_ = 1;
};

// Makes the chip's routines for kernels available to the dynamic linker. Throws std::runtime_error.
void installFirmware();

} // namespace vnpu
