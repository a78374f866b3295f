// The routines that kernels may call, as a shared object created in memory whose symbols are absolute
// addresses. Kernels find them like those of any library, whichever linker was used.
#include "loader.h"

#include "units/processor.h"

#include "../../../host/native/functions.h"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vnpu {
namespace {

#if defined(__x86_64__)
constexpr uint16_t Machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t Machine = EM_AARCH64;
#endif

constexpr uint64_t Page = 65536;

std::vector<tpk::Routine> routines() {
  std::vector<tpk::Routine> all = {
      {"tpk_host_fail", reinterpret_cast<uint64_t>(&tpk_host_fail)},
      {"tpk_host_print", reinterpret_cast<uint64_t>(&tpk_host_print)},
      {"tpk_host_nanoseconds", reinterpret_cast<uint64_t>(&tpk_host_nanoseconds)}};
  tpk::addElementaryFunctions(all);
  tpk::addSpecialFunctions(all);
  tpk::addDirectedArithmetic(all);
  if (Processor::instance())
    addIntrinsics(all);
  return all;
}

// The hash function of the System V ABI.
uint32_t hashOf(const std::string &name) {
  uint32_t hash = 0;
  for (unsigned char character : name) {
    hash = (hash << 4) + character;
    uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ high >> 24) & ~high;
  }
  return hash;
}

// Appends a table, and returns its offset.
template <typename Item> uint64_t put(std::string &image, const std::vector<Item> &items) {
  image.resize((image.size() + 7) / 8 * 8);
  uint64_t at = image.size();
  image.append(reinterpret_cast<const char *>(items.data()), items.size() * sizeof(Item));
  return at;
}

std::string makeObject(const std::vector<tpk::Routine> &all) {
  std::vector<char> names(1, '\0');
  std::vector<Elf64_Sym> symbols(1);
  const uint32_t buckets = uint32_t(all.size()) | 1, count = uint32_t(all.size()) + 1;
  std::vector<uint32_t> hash(2 + buckets + count);
  hash[0] = buckets;
  hash[1] = count;
  for (const auto &[name, address, signature] : all) {
    Elf64_Sym symbol{};
    symbol.st_name = uint32_t(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = SHN_ABS;
    symbol.st_value = address;
    names.insert(names.end(), name.begin(), name.end());
    names.push_back('\0');
    uint32_t &bucket = hash[2 + hashOf(name) % buckets];
    hash[2 + buckets + symbols.size()] = bucket;
    bucket = uint32_t(symbols.size());
    symbols.push_back(symbol);
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = Machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 3;
  std::string image(sizeof header + 3 * sizeof(Elf64_Phdr), '\0');
  uint64_t namesAt = put(image, names), symbolsAt = put(image, symbols), hashAt = put(image, hash);
  auto entry = [](int64_t tag, uint64_t value) { return Elf64_Dyn{tag, {value}}; };
  uint64_t dynamicAt =
      put(image, std::vector<Elf64_Dyn>{entry(DT_HASH, hashAt), entry(DT_STRTAB, namesAt),
                                        entry(DT_STRSZ, names.size()), entry(DT_SYMTAB, symbolsAt),
                                        entry(DT_SYMENT, sizeof(Elf64_Sym)), entry(DT_NULL, 0)});
  auto segment = [](uint32_t type, uint32_t flags, uint64_t at, uint64_t size, uint64_t alignment) {
    return Elf64_Phdr{type, flags, at, at, at, size, size, alignment};
  };
  // The dynamic linker writes to the dynamic section.
  const Elf64_Phdr segments[] = {
      segment(PT_LOAD, PF_R | PF_W, 0, image.size(), Page),
      segment(PT_DYNAMIC, PF_R | PF_W, dynamicAt, image.size() - dynamicAt, 8),
      segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16),
  };
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + sizeof header, segments, sizeof segments);
  return image;
}

} // namespace

void installFirmware() {
  std::string image = makeObject(routines());
  int descriptor = memfd_create("vnpu-firmware", MFD_CLOEXEC);
  bool written = descriptor >= 0 && write(descriptor, image.data(), image.size()) == ssize_t(image.size());
  // The descriptor stays open: the dynamic linker identifies the object by this name.
  if (!written || !dlopen(text("/proc/self/fd/", descriptor).c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw std::runtime_error(text("the firmware does not load: ", written ? dlerror() : "no memory"));
}

} // namespace vnpu
