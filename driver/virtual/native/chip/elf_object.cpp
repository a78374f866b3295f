#include "elf_object.h"
#include "chip.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <vector>

namespace vnpu {
namespace {

#if defined(__x86_64__)
constexpr uint16_t Machine = EM_X86_64;
constexpr const char *MachineName = "x86-64";
#elif defined(__aarch64__)
constexpr uint16_t Machine = EM_AARCH64;
constexpr const char *MachineName = "AArch64";
#else
#error "The chip runs on x86-64 and AArch64"
#endif

constexpr uint64_t MostBytesInMemory = uint64_t(4) << 30;
constexpr uint64_t MostSymbols = 1 << 20;

[[noreturn]] void refuse(const std::string &why) { throw Failure(VNPU_INVALID_MODULE, "the binary " + why); }

class Reader {
public:
  explicit Reader(std::string_view image) : image_(image) {}

  Symbols read() {
    checkHeader();
    readSegments();
    readDynamic();
    return symbols();
  }

private:
  // A part of the file. Throws if the file does not contain it.
  template <typename Type> Type at(uint64_t offset, const char *what) const {
    Type value;
    if (offset > image_.size() || image_.size() - offset < sizeof value)
      refuse(text("is truncated: it has ", image_.size(), " bytes, and ", what, " at offset ", offset));
    std::memcpy(&value, image_.data() + offset, sizeof value);
    return value;
  }

  // The same, by the address that it will be loaded at.
  template <typename Type> Type loaded(uint64_t address, const char *what) const {
    for (const Elf64_Phdr &segment : loads_)
      if (address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz &&
          segment.p_filesz - (address - segment.p_vaddr) >= sizeof(Type))
        return at<Type>(segment.p_offset + (address - segment.p_vaddr), what);
    refuse(text("is damaged: ", what, " at address ", hex(address), " lies in no segment"));
  }

  const Elf64_Phdr *segmentOf(uint64_t address, uint64_t size) const {
    for (const Elf64_Phdr &segment : loads_)
      if (address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_memsz &&
          segment.p_memsz - (address - segment.p_vaddr) >= size)
        return &segment;
    return nullptr;
  }

  void checkHeader() {
    if (image_.size() < SELFMAG || std::memcmp(image_.data(), ELFMAG, SELFMAG))
      refuse("is not in ELF format");
    header_ = at<Elf64_Ehdr>(0, "its header");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB)
      refuse("is not 64-bit little-endian");
    if (header_.e_machine != Machine)
      refuse(text("is for another machine: ELF machine ", header_.e_machine, ", the chip runs ", MachineName,
                  " (", Machine, ")"));
    if (header_.e_type == ET_REL)
      refuse("is a relocatable object; link it into a shared object");
    if (header_.e_type != ET_DYN)
      refuse(text("is not a shared object: ELF type ", header_.e_type));
    if (header_.e_phentsize != sizeof(Elf64_Phdr) || !header_.e_phnum)
      refuse("is damaged: it has no table of segments");
    // Loading does not need the section table, but linkers put it last: if it is missing, the file is
    // truncated.
    uint64_t sections = uint64_t(header_.e_shnum) * header_.e_shentsize;
    if (header_.e_shoff > image_.size() || sections > image_.size() - header_.e_shoff)
      refuse(text("is truncated: it has ", image_.size(), " bytes, and its table of sections at offset ",
                  header_.e_shoff));
  }

  void readSegments() {
    uint64_t end = 0;
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
      auto segment = at<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr), "its table of segments");
      if (segment.p_type == PT_DYNAMIC)
        dynamic_ = segment;
      if (segment.p_type == PT_INTERP)
        refuse("is a program, not a shared object");
      if (segment.p_type != PT_LOAD)
        continue;
      if (segment.p_offset > image_.size() || segment.p_filesz > image_.size() - segment.p_offset)
        refuse(text("is truncated: it has ", image_.size(), " bytes, and a segment of ", segment.p_filesz,
                    " bytes at offset ", segment.p_offset));
      if (segment.p_filesz > segment.p_memsz || segment.p_vaddr < end ||
          segment.p_vaddr > MostBytesInMemory || segment.p_memsz > MostBytesInMemory)
        refuse("is damaged: its segments overlap, or are larger in the file than in memory");
      end = segment.p_vaddr + segment.p_memsz;
      loads_.push_back(segment);
    }
    if (loads_.empty() || !dynamic_.p_filesz)
      refuse("is damaged: it has no segments to load or no dynamic section");
  }

  void readDynamic() {
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic_.p_filesz; at += sizeof(Elf64_Dyn)) {
      auto entry = loaded<Elf64_Dyn>(dynamic_.p_vaddr + at, "its dynamic section");
      switch (entry.d_tag) {
      case DT_NULL:
        return;
      case DT_SYMTAB:
        symbolTable_ = entry.d_un.d_ptr;
        break;
      case DT_STRTAB:
        names_ = entry.d_un.d_ptr;
        break;
      case DT_STRSZ:
        namesBytes_ = entry.d_un.d_val;
        break;
      case DT_HASH:
        hash_ = entry.d_un.d_ptr;
        break;
      case DT_GNU_HASH:
        gnuHash_ = entry.d_un.d_ptr;
        break;
      }
    }
  }

  uint64_t symbolCount() const {
    if (hash_)
      return loaded<uint32_t>(hash_ + 4, "its hash table");
    if (!gnuHash_)
      refuse("has no hash table of its symbols");
    // The last chain ends at the last symbol.
    auto buckets = loaded<uint32_t>(gnuHash_, "its hash table");
    auto first = loaded<uint32_t>(gnuHash_ + 4, "its hash table");
    auto words = loaded<uint32_t>(gnuHash_ + 8, "its hash table");
    uint64_t bucketsAt = gnuHash_ + 16 + uint64_t(words) * 8, chainsAt = bucketsAt + uint64_t(buckets) * 4;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; ++i)
      last = std::max(last, loaded<uint32_t>(bucketsAt + uint64_t(i) * 4, "its hash table"));
    if (last < first)
      return first;
    while (!(loaded<uint32_t>(chainsAt + uint64_t(last - first) * 4, "its hash table") & 1))
      ++last;
    return uint64_t(last) + 1;
  }

  std::string name(uint32_t offset) const {
    std::string whole;
    for (;; ++offset) {
      if (offset >= namesBytes_)
        refuse("is damaged: a symbol's name leaves the table of names");
      char character = loaded<char>(names_ + offset, "a symbol's name");
      if (!character)
        return whole;
      whole += character;
    }
  }

  Symbols symbols() const {
    uint64_t count = symbolCount();
    if (count > MostSymbols)
      refuse(text("is damaged: it says that it has ", count, " symbols"));
    Symbols defined;
    for (uint64_t i = 1; i < count; ++i) {
      auto symbol = loaded<Elf64_Sym>(symbolTable_ + i * sizeof(Elf64_Sym), "its table of symbols");
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS ||
          ELF64_ST_BIND(symbol.st_info) == STB_LOCAL)
        continue;
      const Elf64_Phdr *segment = segmentOf(symbol.st_value, symbol.st_size);
      if (segment)
        defined[name(symbol.st_name)] = {symbol.st_value, symbol.st_size, (segment->p_flags & PF_X) != 0};
    }
    return defined;
  }

  const std::string_view image_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> loads_;
  Elf64_Phdr dynamic_{};
  uint64_t symbolTable_ = 0, names_ = 0, namesBytes_ = 0, hash_ = 0, gnuHash_ = 0;
};

} // namespace

Symbols readSharedObject(std::string_view image) { return Reader(image).read(); }

} // namespace vnpu
