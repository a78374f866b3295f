// Modules and launches of a session.
#include "grid.h"
#include "session.h"

#include <algorithm>
#include <cstring>

namespace vnpu {
namespace {

constexpr uint64_t MostModuleBytes = uint64_t(1) << 30;

} // namespace

uint64_t Session::load(const void *binary, uint64_t size) {
  chip_.requireAlive();
  if (!binary && size)
    throw Error(VNPU_INVALID_ARGUMENT, "vnpu_module_load: binary is NULL");
  if (size > MostModuleBytes)
    throw Error(VNPU_INVALID_MODULE,
                text("vnpu_module_load: the binary has ", size, " bytes; the chip takes ", MostModuleBytes));
  if (faults_.moduleIsRefused())
    throw Error(VNPU_INVALID_MODULE, "vnpu_module_load: refused by the injected fault refuse-module");
  const uint64_t upload = handles_++;
  Command piece{.kind = Kind::Piece};
  piece.value = upload;
  for (uint64_t done = 0; done < size; done += SlotBytes)
    channel_.control(piece, static_cast<const char *>(binary) + done,
                     std::min<uint64_t>(size - done, SlotBytes));
  Command load{.kind = Kind::Load};
  load.value = upload;
  std::vector<uint8_t> answer = channel_.control(load);
  uint64_t number;
  if (answer.size() != sizeof number)
    chip_.loseOverwritten("the number of a module");
  std::memcpy(&number, answer.data(), sizeof number);
  uint64_t handle = handles_++;
  std::unique_lock lock(tables_);
  modules_.emplace(handle, Module{number, {}});
  return handle;
}

void Session::unload(uint64_t handle) {
  uint64_t number;
  {
    std::unique_lock lock(tables_);
    auto known = modules_.find(handle);
    if (known == modules_.end())
      throw Error(VNPU_INVALID_MODULE,
                  text("vnpu_module_unload: module ", handle, " does not exist or was unloaded"));
    number = known->second.number;
    for (auto &[name, function] : known->second.functions)
      functions_.erase(function);
    modules_.erase(known);
  }
  if (chip_.lost())
    return;
  try {
    drainAll();
    Command gone{.kind = Kind::Unload};
    gone.value = number;
    channel_.control(gone);
  } catch (const Error &error) {
    if (error.status != VNPU_DEVICE_LOST) // a lost chip has no modules
      throw;
  }
}

uint64_t Session::symbol(uint64_t handle, const char *name) {
  if (!name)
    throw Error(VNPU_INVALID_ARGUMENT, "vnpu_get_symbol: name is NULL");
  Command find{.kind = Kind::Symbol};
  {
    std::shared_lock lock(tables_);
    auto known = modules_.find(handle);
    if (known == modules_.end())
      throw Error(VNPU_INVALID_MODULE,
                  text("vnpu_get_symbol: module ", handle, " does not exist or was unloaded"));
    if (auto function = known->second.functions.find(name); function != known->second.functions.end())
      return function->second;
    find.value = known->second.number;
  }
  chip_.requireAlive();
  size_t length = std::strlen(name);
  if (length >= SlotBytes)
    throw Error(VNPU_INVALID_MODULE, text("vnpu_get_symbol: a name of ", length, " characters"));
  return addFunction(handle, name, channel_.control(find, name, length));
}

uint64_t Session::addFunction(uint64_t module, const std::string &name, const std::vector<uint8_t> &answer) {
  SymbolAnswer head;
  if (answer.size() >= sizeof head)
    std::memcpy(&head, answer.data(), sizeof head);
  if (answer.size() < sizeof head ||
      answer.size() - sizeof head != uint64_t(head.pointerCount) * sizeof(uint32_t))
    chip_.loseOverwritten("the pointers of a kernel");
  auto function = std::make_shared<Function>();
  function->module = module;
  function->number = head.function;
  function->pointers.resize(head.pointerCount);
  std::memcpy(function->pointers.data(), answer.data() + sizeof head, head.pointerCount * sizeof(uint32_t));
  function->name = name;
  std::unique_lock lock(tables_);
  auto known = modules_.find(module);
  if (known == modules_.end())
    throw Error(VNPU_INVALID_MODULE, text("vnpu_get_symbol: module ", module, " was unloaded meanwhile"));
  auto [entry, fresh] = known->second.functions.emplace(name, 0);
  if (fresh) {
    entry->second = handles_++;
    functions_.emplace(entry->second, std::move(function));
  }
  return entry->second;
}

void Session::checkPointers(const Function &function, const void *args, uint64_t size) const {
  for (uint32_t offset : function.pointers) {
    uint64_t address;
    if (offset > size || size - offset < sizeof address)
      throw Error(VNPU_LAUNCH_FAILED, text("vnpu_launch: the argument block of kernel '", function.name,
                                           "' has ", size, " bytes, and a pointer at offset ", offset));
    std::memcpy(&address, static_cast<const char *>(args) + offset, sizeof address);
    if (!memory_.isPointer(address))
      throw Error(VNPU_INVALID_POINTER,
                  text("vnpu_launch: kernel '", function.name, "': the pointer at offset ", offset,
                       " of the argument block is ", hex(address),
                       ", which is not in a live allocation of this chip; an address of the host has no "
                       "meaning here"));
  }
}

void Session::launch(uint64_t queue, uint64_t handle, const uint32_t (&grid)[3], const void *args,
                     uint64_t size) {
  std::shared_ptr<const Function> function;
  {
    std::shared_lock lock(tables_);
    auto known = functions_.find(handle);
    if (known == functions_.end())
      throw Error(VNPU_LAUNCH_FAILED,
                  text("vnpu_launch: function ", handle, " does not exist or was unloaded"));
    function = known->second;
  }
  uint32_t index = queueIndex("vnpu_launch", queue);
  chip_.requireAlive();
  if (!args && size)
    throw Error(VNPU_LAUNCH_FAILED, text("vnpu_launch: args of kernel '", function->name, "' is NULL"));
  if (size > SlotBytes)
    throw Error(VNPU_LAUNCH_FAILED, text("vnpu_launch: the argument block of kernel '", function->name,
                                         "' has ", size, " bytes; the chip takes ", SlotBytes));
  if (!tpk::countPrograms("vnpu_launch", function->name, grid,
                          [](const std::string &sentence) { throw Error(VNPU_LAUNCH_FAILED, sentence); }))
    return;
  checkPointers(*function, args, size);
  Command made = command(Kind::Launch);
  made.value = function->number;
  made.size = size;
  for (int axis = 0; axis < 3; ++axis)
    made.grid[axis] = grid[axis];
  if (size > InlineBytes)
    made.slot = channel_.takeSlot();
  channel_.submit(index, made, args, size);
}

} // namespace vnpu
