// Modules and launches. No machine code runs: what a launch was given is checked, decoded and recorded.
#include "standin.h"

#include <cstring>

using namespace standin;

namespace standin {
namespace {

void checkTarget(const CodeObject &code, const Architecture &architecture) {
  std::string full = architecture.fullName;
  auto on = [&](const char *feature) { return full.find(feature) != std::string::npos; };
  if (code.target != architecture.name)
    refuse(hipErrorNoBinaryForGpu, "it is for ", code.target, ", the device is ", full);
  if ((code.needsXnack && !on("xnack+")) || (code.refusesXnack && on("xnack+")))
    refuse(hipErrorNoBinaryForGpu, "it wants another setting of xnack than ", full, " has");
  if ((code.needsSramecc && !on("sramecc+")) || (code.refusesSramecc && on("sramecc+")))
    refuse(hipErrorNoBinaryForGpu, "it wants another setting of sramecc than ", full, " has");
}

std::shared_ptr<Module> moduleOf(hipModule_t handle) {
  auto found = state().modules.find(uint64_t(handle));
  if (found == state().modules.end())
    misuse(hipErrorInvalidHandle, "there is no module ", handle);
  return found->second;
}

const Function &functionOf(hipFunction_t handle) {
  auto found = state().functions.find(uint64_t(handle));
  if (found == state().functions.end())
    misuse(hipErrorInvalidHandle, "there is no function ", handle, ", or its module was unloaded");
  return found->second;
}

// The argument segment, from one block or from the address of each explicit argument.
std::vector<uint8_t> gather(const Kernel &kernel, void **each, void **extra, uint64_t &passed) {
  std::vector<uint8_t> segment(kernel.segmentBytes);
  if (bool(each) == bool(extra))
    refuse(hipErrorInvalidValue, "arguments come in one of two ways");
  if (each) {
    passed = 0;
    for (auto &argument : kernel.arguments) {
      if (argument.hidden())
        continue;
      if (!*each || !readHost(&segment[argument.offset], *each, argument.size))
        misuse(hipErrorInvalidValue, "there is no value for argument ", argument.name, " at ",
               argument.offset);
      passed += argument.size;
      ++each;
    }
    return segment;
  }
  if (extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE ||
      extra[4] != HIP_LAUNCH_PARAM_END)
    refuse(hipErrorInvalidValue, "the list of extra parameters is not pointer, size, end");
  size_t bytes;
  if (!readHost(&bytes, extra[3], sizeof bytes))
    misuse(hipErrorInvalidValue, "the size of the argument block cannot be read");
  passed = bytes;
  if (bytes < kernel.explicitBytes())
    misuse(hipErrorInvalidValue, "the argument block has ", bytes, " bytes, the arguments of ", kernel.name,
           " end at ", kernel.explicitBytes());
  std::vector<uint8_t> block(bytes);
  if (bytes && !readHost(block.data(), extra[1], bytes))
    misuse(hipErrorInvalidValue, "the argument block cannot be read");
  for (auto &argument : kernel.arguments)
    if (!argument.hidden())
      std::memcpy(&segment[argument.offset], &block[argument.offset], argument.size);
  return segment;
}

// The arguments that the runtime gives to kernels that ask for them (code object V5).
void fillHidden(const Kernel &kernel, const unsigned *grid, const unsigned *block,
                std::vector<uint8_t> &segment) {
  for (auto &argument : kernel.arguments) {
    if (!argument.hidden() || argument.kind.size() < 2)
      continue;
    std::string kind = argument.kind.substr(0, argument.kind.size() - 1);
    unsigned axis = unsigned(argument.kind.back() - 'x');
    uint64_t value = 0;
    if (kind == "hidden_block_count_" && axis < 3)
      value = grid[axis];
    else if (kind == "hidden_group_size_" && axis < 3)
      value = block[axis];
    else if (argument.kind == "hidden_grid_dims")
      value = grid[2] > 1 ? 3 : grid[1] > 1 ? 2 : 1;
    std::memcpy(&segment[argument.offset], &value, std::min<uint64_t>(argument.size, sizeof value));
  }
}

void checkSizes(const Kernel &kernel, const Architecture &architecture, const unsigned *grid,
                const unsigned *block, unsigned sharedBytes) {
  uint64_t threads = uint64_t(block[0]) * block[1] * block[2];
  for (int axis = 0; axis < 3; ++axis) {
    if (!grid[axis] || !block[axis])
      misuse(hipErrorInvalidConfiguration, "a count of the grid or the block is 0");
    if (uint64_t(grid[axis]) * block[axis] > UINT32_MAX)
      refuse(hipErrorInvalidConfiguration, "the grid has ", uint64_t(grid[axis]) * block[axis],
             " threads along one axis");
  }
  if (threads > 1024)
    refuse(hipErrorInvalidConfiguration, "blocks have ", threads, " threads, at most 1024 go");
  if (threads > kernel.largestBlock)
    refuse(hipErrorLaunchFailure, "blocks have ", threads, " threads, those of ", kernel.name, " at most ",
           kernel.largestBlock);
  // A Triton kernel is compiled for one count of threads, its largest; fewer leave tiles undone.
  if (threads < kernel.largestBlock)
    misuse(hipErrorLaunchFailure, "blocks have ", threads, " threads, ", kernel.name, " was made for ",
           kernel.largestBlock);
  if (kernel.groupBytes + sharedBytes > architecture.lds)
    refuse(hipErrorInvalidValue, "blocks take ", kernel.groupBytes + sharedBytes,
           " bytes of LDS, the device has ", architecture.lds);
}

void launch(hipFunction_t handle, Launch made, hipStream_t stream, void **each, void **extra) {
  State &all = state();
  auto queue = queueHere(stream);
  const Function &function = functionOf(handle);
  if (function.device != queue->device)
    misuse(hipErrorInvalidHandle, "the function is of device ", function.device, ", the stream of device ",
           queue->device);
  checkSizes(*function.kernel, *current().architecture, made.grid, made.block, made.sharedBytes);
  made.device = queue->device;
  made.stream = queue->handle;
  made.module = function.module;
  auto owner = all.modules.at(function.module);
  made.code = std::shared_ptr<const CodeObject>(owner, &owner->code);
  made.kernel = function.kernel;
  made.segment = gather(*made.kernel, each, extra, made.passedBytes);
  fillHidden(*made.kernel, made.grid, made.block, made.segment);
  auto record = std::make_shared<Launch>(std::move(made));
  all.launches.push_back(record);
  submit(queue, "launch", [record](uint64_t order) {
    State &all = state();
    Lock lock(all.lock);
    record->order = order;
    if (!all.modules.contains(record->module))
      note({"hipModuleLaunchKernel", "its module was unloaded before the kernel started", hipSuccess, true});
    for (auto &argument : record->kernel->arguments) {
      uint64_t value = 0;
      std::memcpy(&value, &record->segment[argument.offset], std::min<uint64_t>(argument.size, sizeof value));
      record->live.push_back(all.devices[record->device].memory->find(value).first != 0);
    }
  });
}

} // namespace
} // namespace standin

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  return call("hipModuleLoadData", HealthyDevice, [&] {
    if (!wanted(module) || !image)
      refuse(hipErrorInvalidValue, "there is no image");
    try {
      auto made =
          std::make_shared<Module>(Module{currentDevice(), readCodeObject(copyImage(image, readHost))});
      checkTarget(made->code, *current().architecture);
      uint64_t handle = newHandle('m');
      state().modules[handle] = made;
      *module = reinterpret_cast<hipModule_t>(handle);
    } catch (const BadImage &bad) {
      refuse(hipErrorInvalidImage, bad.what());
    }
    return hipSuccess;
  });
}

hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned, hipJitOption *, void **) {
  return hipModuleLoadData(module, image);
}

hipError_t hipModuleUnload(hipModule_t module) {
  return call("hipModuleUnload", HealthyDevice, [&] {
    moduleOf(module);
    uint64_t handle = uint64_t(module);
    State &all = state();
    std::erase_if(all.functions, [&](auto &entry) { return entry.second.module == handle; });
    std::erase_if(all.functionNames, [&](auto &entry) { return entry.first.first == handle; });
    all.modules.erase(handle);
    return hipSuccess;
  });
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  return call("hipModuleGetFunction", HealthyDevice, [&] {
    State &all = state();
    auto owner = moduleOf(module);
    auto found = owner->code.kernels.find(wanted(name));
    if (found == owner->code.kernels.end())
      refuse(hipErrorNotFound, "the module has no kernel ", name);
    uint64_t &handle = all.functionNames[{uint64_t(module), name}];
    if (!handle) {
      handle = newHandle('f');
      all.functions[handle] = {uint64_t(module), owner->device, &found->second};
    }
    *wanted(function) = reinterpret_cast<hipFunction_t>(handle);
    return hipSuccess;
  });
}

hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute which, hipFunction_t function) {
  return call("hipFuncGetAttribute", HealthyDevice, [&] {
    const Kernel &kernel = *functionOf(function).kernel;
    switch (which) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *wanted(value) = int(kernel.largestBlock);
      break;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *wanted(value) = int(kernel.groupBytes);
      break;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *wanted(value) = int(kernel.privateBytes);
      break;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
      *wanted(value) = 0; // not read
      break;
    default:
      refuse(hipErrorInvalidValue, "the stand-in does not know function attribute ", int(which));
    }
    return hipSuccess;
  });
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, hipStream_t stream, void **each,
                                 void **extra) {
  return call("hipModuleLaunchKernel", HealthyDevice, [&] {
    Launch made{};
    made.grid[0] = gx, made.grid[1] = gy, made.grid[2] = gz;
    made.block[0] = bx, made.block[1] = by, made.block[2] = bz;
    made.sharedBytes = shared;
    launch(function, std::move(made), stream, each, extra);
    return hipSuccess;
  });
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz,
                                            unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                            hipStream_t stream, void **each) {
  return call("hipModuleLaunchCooperativeKernel", HealthyDevice, [&] {
    // At least one block fits each unit; how many more is not known here.
    uint64_t blocks = uint64_t(gx) * gy * gz, threads = uint64_t(bx) * by * bz;
    uint64_t most = uint64_t(current().architecture->units) * (2048 / std::max<uint64_t>(threads, 1));
    if (blocks > most)
      refuse(hipErrorCooperativeLaunchTooLarge, blocks, " blocks cannot all run at once, at most ", most,
             " do");
    Launch made{};
    made.grid[0] = gx, made.grid[1] = gy, made.grid[2] = gz;
    made.block[0] = bx, made.block[1] = by, made.block[2] = bz;
    made.sharedBytes = shared;
    made.cooperative = true;
    launch(function, std::move(made), stream, each, nullptr);
    return hipSuccess;
  });
}
