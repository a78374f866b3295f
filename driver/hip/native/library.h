// HIP's runtime library, opened while the process runs, and what its results mean to the kit.
#pragma once

#include "failure.h"
#include "hip_api.h"

#include <memory>

namespace tpk::hip {

namespace api {
struct Functions {
#define TPK_HIP_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  TPK_HIP_FUNCTIONS(TPK_HIP_MEMBER)
#undef TPK_HIP_MEMBER
};
} // namespace api

/// How many forks lie between the first process and this one.
uint64_t forkCount();

/// An open library. It stays in the process: HIP has handlers of its own that run when the process ends.
class Library {
public:
  /// Throws ToolchainError where the library does not open, or lacks functions that the driver needs.
  explicit Library(const std::string &path);

  const api::Functions &call() const { return functions_; }
  /// The file that the dynamic loader took.
  const std::string &path() const { return path_; }
  /// As HIP counts: major * 10,000,000 + minor * 100,000 + patch.
  int version() const;
  int deviceCount() const;
  api::hipDeviceProp_tR0600 properties(int device) const;

  /// Whether this process, and not one that it was forked off, opened the library.
  bool isOwn() const { return forks_ == forkCount(); }
  /// Throws DeviceLost in a process that was forked off after the library was opened: HIP does not work
  /// there.
  void checkProcess() const;

  /// A result in words: its name, number and text. Also clears this thread's last error, so that nobody else,
  /// such as torch, takes it for theirs.
  std::string describe(api::hipError_t error) const;
  /// Throws for anything but success: "WHERE: FUNCTION failed: NAME (NUMBER): TEXT". `otherwise` is the kind
  /// of results that do not themselves say what went wrong.
  void check(const std::string &where, const char *function, api::hipError_t error,
             Code otherwise = Code::DeviceError) const {
    if (error != api::hipSuccess) [[unlikely]]
      fail(where, function, error, otherwise);
  }

private:
  [[noreturn]] void fail(const std::string &where, const char *function, api::hipError_t error,
                         Code otherwise) const;

  api::Functions functions_;
  std::string path_;
  uint64_t forks_;
};

using LibraryPointer = std::shared_ptr<const Library>;

} // namespace tpk::hip
