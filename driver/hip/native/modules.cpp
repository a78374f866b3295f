// Modules, functions and launches.
#include "current.h"
#include "text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace tpk::hip {

uint64_t Device::load_module(const void *binary, uint64_t size, const std::string &name) {
  Current current(*this, __func__);
  Module module{nullptr, name, std::string(static_cast<const char *>(binary), size), {}};
  auto error = hip_.hipModuleLoadData(&module.handle, module.image.data());
  if (error != api::hipSuccess)
    library_->check(text(where(__func__), ": the binary of kernel '", name, "'"), "hipModuleLoadData", error,
                    Code::InvalidModule);
  auto handle = module.handle;
  try {
    std::lock_guard lock(tables_);
    modules_.emplace(nextHandle_, std::move(module));
    return nextHandle_++;
  } catch (...) {
    hip_.hipModuleUnload(handle);
    throw;
  }
}

void Device::unload_module(uint64_t handle) {
  Current current(*this, __func__);
  decltype(modules_)::node_type node;
  std::vector<decltype(functions_)::node_type> functions;
  {
    std::lock_guard lock(tables_);
    node = modules_.extract(handle);
    if (node)
      for (auto &[name, function] : node.mapped().functions)
        functions.push_back(functions_.extract(function));
  }
  if (!node)
    throw Failure(Code::InvalidModule,
                  text(where(__func__), ": module ", handle, " does not exist or was unloaded"));
  // Launches in flight finish first. If one fails, the module is unloaded nevertheless.
  auto failed = hip_.hipDeviceSynchronize();
  auto error = hip_.hipModuleUnload(node.mapped().handle);
  if (error != api::hipSuccess) {
    std::lock_guard lock(tables_);
    modules_.insert(std::move(node)); // for a reset to unload
    for (auto &function : functions)
      functions_.insert(std::move(function));
  }
  check(__func__, "hipDeviceSynchronize", failed);
  check(__func__, "hipModuleUnload", error, Code::InvalidModule);
}

uint64_t Device::get_function(uint64_t module, const std::string &name, KernelFacts facts) {
  Current current(*this, __func__);
  std::lock_guard lock(tables_);
  auto found = modules_.find(module);
  if (found == modules_.end())
    throw Failure(Code::InvalidModule,
                  text(where(__func__), ": module ", module, " does not exist or was unloaded"));
  auto &known = found->second.functions;
  if (auto before = known.find(name); before != known.end())
    return before->second;
  api::hipFunction_t function = nullptr;
  auto error = hip_.hipModuleGetFunction(&function, found->second.handle, name.c_str());
  if (error != api::hipSuccess)
    library_->check(text(where(__func__), ": kernel '", name, "' of module ", module), "hipModuleGetFunction",
                    error, Code::InvalidModule);
  uint64_t size = 0;
  for (auto &place : facts.arguments)
    size = std::max(size, place.offset + place.size);
  functions_.emplace(nextHandle_,
                     std::make_shared<const Function>(Function{function, name, std::move(facts), size}));
  known.emplace(name, nextHandle_);
  return nextHandle_++;
}

void Device::launch(uint64_t function, uint32_t x, uint32_t y, uint32_t z, uint64_t stream, const void *args,
                    uint64_t size) {
  start(stream, function, {x, y, z}, args, size, false);
}

void Device::start(uint64_t streamHandle, uint64_t handle, const uint32_t (&grid)[3], const void *args,
                   uint64_t size, bool cooperative) {
  Current current(*this, "launch");
  std::shared_ptr<const Function> function;
  {
    std::lock_guard lock(tables_);
    auto found = functions_.find(handle);
    if (found != functions_.end())
      function = found->second;
  }
  if (!function)
    throw Failure(Code::LaunchError,
                  text(where("launch"), ": function ", handle, " does not exist or was unloaded"));
  auto refuse = [&](const std::string &why) {
    throw Failure(Code::LaunchError, text(where("launch"), ": kernel '", function->name, "': ", why));
  };
  api::hipStream_t queue = nullptr;
  try {
    queue = stream("launch", streamHandle);
  } catch (const Failure &failure) {
    throw Failure(Code::LaunchError, failure.what());
  }
  if (!grid[0] || !grid[1] || !grid[2])
    return;
  const auto &facts = function->facts;
  for (int axis = 0; axis < 3; ++axis) {
    // HIP counts the threads of an axis in 32 bits; a program is a group of threads along x.
    uint64_t threads = uint64_t(grid[axis]) * (axis == 0 ? facts.threads : 1);
    uint64_t limit = uint64_t(std::max(properties_.maxGridSize[axis], 0));
    if (grid[axis] > limit || threads > UINT32_MAX)
      refuse(text("grid (", grid[0], ", ", grid[1], ", ", grid[2], ") of programs of ", facts.threads,
                  " threads is too large along axis ", axis, ": the device takes ", limit,
                  " programs and 2**32 - 1 threads"));
  }
  if (size < facts.requiredBytes)
    refuse(text("its arguments take ", facts.requiredBytes, " bytes, the block has ", size));
  if (!args && size)
    refuse("args is NULL");
  std::vector<uint64_t> padded;
  if (size < function->blockSize || !args) {
    padded.resize(std::max<uint64_t>(function->blockSize / 8 + 1, 1));
    if (size)
      std::memcpy(padded.data(), args, size);
    args = padded.data();
    size = function->blockSize;
  }
  auto started = [&](const char *call, api::hipError_t error) {
    if (error != api::hipSuccess)
      library_->check(text(where("launch"), ": kernel '", function->name, "'"), call, error,
                      Code::LaunchError);
  };
  if (cooperative) {
    std::vector<void *> params;
    for (auto &place : facts.arguments)
      params.push_back(const_cast<char *>(static_cast<const char *>(args)) + place.offset);
    return started("hipModuleLaunchCooperativeKernel",
                   hip_.hipModuleLaunchCooperativeKernel(function->handle, grid[0], grid[1], grid[2],
                                                         facts.threads, 1, 1, facts.dynamicLds, queue,
                                                         params.data()));
  }
  size_t bytes = size;
  void *extra[] = {api::kLaunchBufferPointer, const_cast<void *>(args), api::kLaunchBufferSize, &bytes,
                   api::kLaunchEnd};
  started("hipModuleLaunchKernel",
          hip_.hipModuleLaunchKernel(function->handle, grid[0], grid[1], grid[2], facts.threads, 1, 1,
                                     facts.dynamicLds, queue, nullptr, extra));
}

namespace {

int32_t enter(void *context, uint64_t stream, uint64_t function, const uint32_t (&grid)[3], const void *args,
              uint64_t size, bool cooperative, char *message, uint64_t messageSize) {
  auto report = [&](Code code, const char *what) {
    if (message && messageSize)
      std::snprintf(message, messageSize, "%s", what);
    return int32_t(code);
  };
  try {
    static_cast<Device *>(context)->start(stream, function, grid, args, size, cooperative);
    return 0;
  } catch (const Failure &failure) {
    return report(launchCode(failure.code), failure.what());
  } catch (const std::bad_alloc &) {
    return report(Code::OutOfMemory, "HIP: launch: the process is out of memory");
  } catch (const std::exception &error) {
    return report(Code::LaunchError, error.what());
  }
}

} // namespace
} // namespace tpk::hip

int32_t tpk_hip_launch(void *context, uint64_t stream, uint64_t function, uint32_t gridX, uint32_t gridY,
                       uint32_t gridZ, const void *args, uint64_t argsSize, char *message,
                       uint64_t messageSize) {
  return tpk::hip::enter(context, stream, function, {gridX, gridY, gridZ}, args, argsSize, false, message,
                         messageSize);
}

int32_t tpk_hip_launch_cooperative(void *context, uint64_t stream, uint64_t function, uint32_t gridX,
                                   uint32_t gridY, uint32_t gridZ, const void *args, uint64_t argsSize,
                                   char *message, uint64_t messageSize) {
  return tpk::hip::enter(context, stream, function, {gridX, gridY, gridZ}, args, argsSize, true, message,
                         messageSize);
}
