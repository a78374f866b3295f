// What passes between the kit's compiler, launchers and devices. Written by
// `python -m triton_porting_kit.abi.header`: change what that reads.
#ifndef TPK_ABI_H
#define TPK_ABI_H

#include <cstdint>

// clang-format off
namespace tpk {

/// The kernel ABI: its version, and the symbols of an object file. Some stand behind the kernel's name.
inline constexpr std::int32_t AbiVersion = 3;
inline constexpr char AbiVersionSymbol[] = "tpk_host_abi_version";
inline constexpr char ScratchSuffix[] = "__scratch_bytes";
inline constexpr char PointersSuffix[] = "__pointers";
inline constexpr char ChipSuffix[] = "__chip";

/// The version of what compiled devices share with the kit, and the kit's release. Bound classes keep both.
inline constexpr std::int32_t DeviceInterface = 2;
inline constexpr char KitRelease[] = "0.1.0";
inline constexpr char BuiltWith[] = "tpk_built_with";

/// A compiled kernel: runs the programs [begin, end) of the grid, returns 0 or a failure code.
using KernelEntry = std::int32_t (*)(const void *args, void *scratch, std::int64_t begin, std::int64_t end,
    std::int32_t grid_x, std::int32_t grid_y, std::int32_t grid_z);

/// A device's launch routine: copies `args` before it returns, and returns a Code up to LastOfLaunch, but
/// for Ok with a text in `message`.
using LaunchFunction = std::int32_t (*)(void *context, std::uint64_t stream, std::uint64_t function,
    std::uint32_t grid_x, std::uint32_t grid_y, std::uint32_t grid_z, const void *args, std::uint64_t
    args_size, char *message, std::uint64_t message_size);

/// The kit's errors by number.
enum class Code : std::int32_t {
  Ok = 0,
  OutOfMemory = 1,
  InvalidPointer = 2,
  InvalidModule = 3,
  LaunchError = 4,
  DeviceLost = 5,
  AssertionFailed = 6,
  LaunchTimeout = 7,
  MemoryAccessError = 8,
  InvalidArgument = 9,
  CopyError = 10,
  ToolchainError = 11,
  DeviceError = 12,
};
inline constexpr Code LastOfLaunch = Code::MemoryAccessError;

/// The code that a launch routine returns for an error.
constexpr Code launchCode(Code code) {
  return code > Code::Ok && code <= LastOfLaunch ? code : Code::LaunchError;
}

/// The names of the exceptions, by Code; that of Ok is not used.
inline constexpr const char *ErrorNames[] = {
  "DeviceError",
  "OutOfMemory",
  "InvalidPointer",
  "InvalidModule",
  "LaunchError",
  "DeviceLost",
  "AssertionFailed",
  "LaunchTimeout",
  "MemoryAccessError",
  "InvalidArgument",
  "CopyError",
  "ToolchainError",
  "DeviceError",
};

} // namespace tpk
// clang-format on

#endif
