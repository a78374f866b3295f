// Written from LLVM's "User Guide for AMDGPU Backend": ELF code object, code object V5 metadata, kernel
// descriptor.
#include "code_object.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace standin {
namespace {

constexpr unsigned MachineAmdGpu = 224, OsAbiHsa = 64, NoteMetadata = 32;
constexpr uint32_t FeatureXnack = 0x300, FeatureSramecc = 0xc00;
constexpr size_t DescriptorBytes = 64;
constexpr size_t LargestImage = size_t(1) << 30;

struct Machine {
  unsigned number; // low byte of e_flags
  const char *name;
};
constexpr Machine Machines[] = {
    {0x3f, "gfx90a"},  {0x4c, "gfx942"},  {0x4f, "gfx950"},
    {0x41, "gfx1100"}, {0x4e, "gfx1201"}, {0x49, "gfx1250"},
};

class Image {
public:
  explicit Image(std::span<const uint8_t> bytes) : bytes_(bytes), header(at<Elf64_Ehdr>(0)) {}

  template <class T> T at(uint64_t offset) const {
    auto place = part(offset, sizeof(T));
    T result;
    std::memcpy(&result, place.data(), sizeof(T));
    return result;
  }

  std::span<const uint8_t> part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      throw BadImage("the ELF file is cut off");
    return bytes_.subspan(offset, size);
  }

  std::string string(uint64_t offset, uint64_t end) const {
    auto place = part(offset, end - offset);
    auto zero = std::find(place.begin(), place.end(), 0);
    if (zero == place.end())
      throw BadImage("a name in the ELF file has no end");
    return std::string(place.begin(), zero);
  }

  std::vector<Elf64_Shdr> sections() const {
    std::vector<Elf64_Shdr> result;
    for (unsigned i = 0; i < header.e_shnum; ++i)
      result.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    return result;
  }

private:
  std::span<const uint8_t> bytes_;

public:
  Elf64_Ehdr header;
};

void checkHeader(const Elf64_Ehdr &header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB)
    throw BadImage("it is no 64-bit little-endian ELF file");
  if (header.e_machine != MachineAmdGpu)
    throw BadImage("it is for machine " + std::to_string(header.e_machine) + ", not for AMD's GPUs");
  if (header.e_ident[EI_OSABI] != OsAbiHsa)
    throw BadImage("it is not for the HSA runtime");
  if (header.e_type != ET_DYN)
    throw BadImage("it is not linked");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_shentsize != sizeof(Elf64_Shdr))
    throw BadImage("its tables have entries of another size");
}

// The metadata are in a note of a segment.
Value metadata(const Image &image) {
  for (unsigned i = 0; i < image.header.e_phnum; ++i) {
    auto segment = image.at<Elf64_Phdr>(image.header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_NOTE)
      continue;
    image.part(segment.p_offset, segment.p_filesz);
    uint64_t place = segment.p_offset, end = place + segment.p_filesz;
    while (place + sizeof(Elf64_Nhdr) <= end) {
      auto note = image.at<Elf64_Nhdr>(place);
      uint64_t name = place + sizeof note, content = name + (uint64_t(note.n_namesz) + 3) / 4 * 4;
      if (note.n_type == NoteMetadata && note.n_namesz == 7 && image.string(name, name + 7) == "AMDGPU")
        return unpack(image.part(content, note.n_descsz));
      place = content + (uint64_t(note.n_descsz) + 3) / 4 * 4;
    }
  }
  throw BadImage("it has no note with AMD's metadata");
}

// The 64 bytes of symbol `name`.
std::span<const uint8_t> descriptor(const Image &image, const std::string &name) {
  auto sections = image.sections();
  for (auto &table : sections) {
    if (table.sh_type != SHT_DYNSYM || table.sh_link >= sections.size())
      continue;
    auto &names = sections[table.sh_link];
    for (uint64_t i = 0; i + sizeof(Elf64_Sym) <= table.sh_size; i += sizeof(Elf64_Sym)) {
      auto symbol = image.at<Elf64_Sym>(table.sh_offset + i);
      if (symbol.st_name >= names.sh_size || symbol.st_shndx >= sections.size() ||
          image.string(names.sh_offset + symbol.st_name, names.sh_offset + names.sh_size) != name)
        continue;
      auto &section = sections[symbol.st_shndx];
      if (symbol.st_size != DescriptorBytes || symbol.st_value < section.sh_addr)
        throw BadImage(name + " is no kernel descriptor");
      return image.part(section.sh_offset + (symbol.st_value - section.sh_addr), DescriptorBytes);
    }
  }
  throw BadImage("there is no symbol " + name);
}

Kernel readKernel(const Image &image, const Value &entry) {
  Kernel kernel;
  kernel.name = entry.at(".name").string();
  kernel.segmentBytes = entry.at(".kernarg_segment_size").number();
  kernel.segmentAlignment = entry.at(".kernarg_segment_align").number();
  kernel.groupBytes = entry.at(".group_segment_fixed_size").number();
  kernel.privateBytes = entry.at(".private_segment_fixed_size").number();
  kernel.largestBlock = entry.at(".max_flat_workgroup_size").number();
  kernel.wavefront = entry.at(".wavefront_size").number();
  if (entry.has(".args"))
    for (auto &argument : entry.at(".args").list()) {
      kernel.arguments.push_back({argument.has(".name") ? argument.at(".name").string() : "",
                                  argument.at(".value_kind").string(), argument.at(".offset").number(),
                                  argument.at(".size").number()});
      auto &made = kernel.arguments.back();
      if (made.offset > kernel.segmentBytes || made.size > kernel.segmentBytes - made.offset)
        throw BadImage("an argument of " + kernel.name + " leaves its segment");
    }
  auto bytes = descriptor(image, entry.at(".symbol").string());
  uint32_t sizes[3]; // LDS, scratch, argument segment
  std::memcpy(sizes, bytes.data(), sizeof sizes);
  if (sizes[0] != kernel.groupBytes || sizes[2] != kernel.segmentBytes)
    throw BadImage("descriptor and metadata of " + kernel.name + " differ");
  return kernel;
}

} // namespace

uint64_t Kernel::explicitBytes() const {
  uint64_t end = 0;
  for (auto &argument : arguments)
    if (!argument.hidden())
      end = std::max(end, argument.offset + argument.size);
  return end;
}

std::vector<uint8_t> copyImage(const void *image,
                               const std::function<bool(void *, const void *, size_t)> &read) {
  auto wanted = [&](void *to, uint64_t offset, size_t bytes) {
    if (!read(to, static_cast<const uint8_t *>(image) + offset, bytes))
      throw BadImage("the image ends before its headers say");
  };
  Elf64_Ehdr header;
  wanted(&header, 0, sizeof header);
  checkHeader(header);
  // Section headers are behind everything else.
  uint64_t size = std::max(header.e_shoff + uint64_t(header.e_shnum) * sizeof(Elf64_Shdr),
                           header.e_phoff + uint64_t(header.e_phnum) * sizeof(Elf64_Phdr));
  if (header.e_shoff > LargestImage || size > LargestImage)
    throw BadImage("its headers say that it is huge");
  std::vector<uint8_t> result(std::max<uint64_t>(size, sizeof header));
  wanted(result.data(), 0, result.size());
  return result;
}

CodeObject readCodeObject(std::span<const uint8_t> bytes) {
  Image image(bytes);
  checkHeader(image.header);
  CodeObject result{};
  uint32_t flags = image.header.e_flags;
  for (auto &machine : Machines)
    if ((flags & 0xff) == machine.number)
      result.target = machine.name;
  if (result.target.empty())
    result.target = "machine " + std::to_string(flags & 0xff);
  result.refusesXnack = (flags & FeatureXnack) == 0x200;
  result.needsXnack = (flags & FeatureXnack) == 0x300;
  result.refusesSramecc = (flags & FeatureSramecc) == 0x800;
  result.needsSramecc = (flags & FeatureSramecc) == 0xc00;
  Value all = metadata(image);
  std::string target = all.at("amdhsa.target").string();
  if (auto colon = target.find(':'); colon != std::string::npos)
    target.resize(colon);
  // The triple before it is spelt differently by releases of LLVM.
  if (!target.ends_with('-' + result.target) || target.find("-amd-amdhsa-") == std::string::npos)
    throw BadImage("its header says " + result.target + ", its metadata " + target);
  for (auto &entry : all.at("amdhsa.kernels").list()) {
    Kernel kernel = readKernel(image, entry);
    std::string name = kernel.name;
    result.kernels.emplace(name, std::move(kernel));
  }
  return result;
}

} // namespace standin
