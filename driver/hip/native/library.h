// HIP's runtime library, opened at run time, and the meaning of its results for the kit.
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

/// The number of forks between the first process and this one.
uint64_t forkCount();

/// An open library. It is never closed, because HIP has exit handlers of its own.
class Library {
public:
  /// Throws ToolchainError if the library does not open, or lacks functions that the driver needs.
  explicit Library(const std::string &path);

  const api::Functions &call() const { return functions_; }
  /// The file that the dynamic loader opened.
  const std::string &path() const { return path_; }
  /// HIP's number of the version: major * 10,000,000 + minor * 100,000 + patch.
  int version() const;
  int deviceCount() const;
  api::hipDeviceProp_tR0600 properties(int device) const;

  /// Whether this process opened the library, and not a parent from which it was forked.
  bool isOwn() const { return forks_ == forkCount(); }
  /// Throws DeviceLost in a process that was forked after the library was opened: HIP does not work there.
  void checkProcess() const;

  /// A result as text: its name, number and description. Also clears this thread's last error, so that others
  /// in the process, such as torch, do not see it.
  std::string describe(api::hipError_t error) const;
  /// Throws for anything but success: "WHERE: FUNCTION failed: NAME (NUMBER): TEXT". `otherwise` is the code
  /// of results that do not have one themselves.
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
