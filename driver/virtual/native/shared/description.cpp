#include "description.h"

#include "protocol.h"
#include "text.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace vnpu {
namespace {

using tpk::text;

constexpr const char *Names[] = {"",     "i8",      "i16",   "i32",     "i64",     "u8",
                                 "u16",  "u32",     "u64",   "fp16",    "bf16",    "fp32",
                                 "fp64", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16"};
constexpr int32_t Types = int32_t(sizeof Names / sizeof *Names);
constexpr uint64_t WindowStep = 65536;

// Reads the values of one line, and says which line is wrong.
class Line {
public:
  Line(std::string_view text, int number) : rest_(text), number_(number) {}

  [[noreturn]] void wrong(const std::string &why) const {
    throw std::invalid_argument(text("line ", number_, " of the chip's description ", why));
  }
  bool more() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return !rest_.empty();
  }
  std::string word() {
    if (!more())
      wrong("ends too early");
    const size_t size = std::min(rest_.find(' '), rest_.size());
    std::string found(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return found;
  }
  double number() {
    const std::string found = word();
    double value = 0;
    auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc() || end != found.data() + found.size() || !(value >= 0 && value < 1e18))
      wrong(text("has '", found, "' where a number has to be"));
    return value;
  }
  uint64_t integer() { return uint64_t(number()); }
  uint64_t positive() {
    const uint64_t value = integer();
    if (!value)
      wrong("has 0 where a positive number has to be");
    return value;
  }

private:
  std::string_view rest_;
  int number_;
};

int32_t typeOf(Line &line, const std::string &name) {
  for (int32_t type = 1; type < Types; ++type)
    if (name == Names[type])
      return type;
  line.wrong(text("has the unknown element type '", name, "'"));
}

class Parser {
public:
  explicit Parser(std::string_view text) : rest_(text) {}

  ChipDescription parse() {
    for (int number = 1; !rest_.empty(); ++number) {
      const size_t size = std::min(rest_.find('\n'), rest_.size());
      Line line(rest_.substr(0, size), number);
      rest_.remove_prefix(std::min(size + 1, rest_.size()));
      if (!line.more())
        continue;
      const std::string word = line.word();
      if ((word == "tpk-chip") != (number == 1))
        line.wrong(
            text("begins with '", word, "'; the first line, and only that, has to begin with tpk-chip"));
      read(word, line);
      if (line.more())
        line.wrong(text("has more values than a line of '", word, "' takes"));
    }
    check();
    return std::move(chip_);
  }

private:
  void read(const std::string &word, Line &line) {
    if (word == "tpk-chip")
      header(line);
    else if (word == "chip")
      top(line);
    else if (word == "core")
      chip_.issueCycles = line.number();
    else if (word == "host") {
      chip_.hostBytesPerCycle = double(line.positive());
      chip_.hostStartCycles = line.number();
    } else if (word == "link") {
      chip_.linkBytesPerCycle = double(line.positive());
      chip_.linkLatency = line.number();
      line.positive(); // the queue: for models of several chips
    } else if (word == "global" || word == "local")
      memory(line);
    else if (word == "engine")
      engine(line);
    else if (word == "route")
      route(line);
    else if (word == "vector") {
      chip_.vectorBytes = line.positive();
      for (double &cycles : chip_.workCycles)
        cycles = line.number();
    } else if (word == "matrix")
      matrix(line);
    else if (word == "product")
      product(line);
    else
      line.wrong(text("begins with the unknown word '", word, "'"));
  }

  void header(Line &line) {
    if (line.integer() != 1)
      line.wrong("has another version than 1");
    const std::string digits = line.word();
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), chip_.digest, 16);
    if (error != std::errc() || *end)
      line.wrong(text("has '", digits, "' where the digest has to be"));
  }

  void top(Line &line) {
    chip_.name = line.word();
    chip_.clockMegahertz = double(line.positive());
    chip_.clusters = uint32_t(line.positive());
    chip_.coresPerCluster = uint32_t(line.positive());
    chip_.launchCycles = line.number();
    if (uint64_t(chip_.clusters) * chip_.coresPerCluster > 1024)
      line.wrong("has more than 1024 cores");
  }

  void memory(Line &line) {
    MemoryDescription memory;
    memory.name = line.word();
    memory.scope = MemoryDescription::Scope(std::min<uint64_t>(line.integer(), 2));
    memory.bytes = line.positive();
    memory.base = line.integer();
    memory.alignment = line.positive();
    memory.banks = line.positive();
    memory.burstBytes = line.positive();
    memory.bytesPerCycle = double(line.positive());
    memory.latency = line.number();
    memory.coreAccess = line.integer() != 0;
    if ((memory.scope == MemoryDescription::OfChip) != chip_.memories.empty())
      line.wrong("is not the one global memory, which has to come first");
    if (memory.base % WindowStep)
      line.wrong("has a memory that does not begin at a multiple of 64 KiB of the window");
    if (chip_.memories.size() > 1 && memory.base < chip_.windowBytes())
      line.wrong("has a memory that overlaps the one before it");
    if (chip_.memories.size() >= MostMemories)
      line.wrong(text("has more memories than ", MostMemories));
    chip_.memories.push_back(std::move(memory));
  }

  void engine(Line &line) {
    EngineDescription engine;
    engine.name = line.word();
    engine.channels = uint32_t(line.positive());
    engine.dimensions = uint32_t(line.positive());
    engine.alignment = line.positive();
    engine.bytesPerCycle = double(line.positive());
    engine.startCycles = line.number();
    engine.queue = uint32_t(line.positive());
    engine.gathers = line.integer() != 0;
    engine.gatherCycles = line.number();
    engine.elementBytes = uint32_t(line.positive());
    if (chip_.channels() + engine.channels > MostChannels || engine.dimensions > 5)
      line.wrong("has too many channels or dimensions");
    chip_.channelEngines.insert(chip_.channelEngines.end(), engine.channels, uint32_t(chip_.engines.size()));
    chip_.engines.push_back(std::move(engine));
  }

  MemoryIndex known(Line &line) {
    const std::string name = line.word();
    for (MemoryIndex index = 0; index < chip_.memories.size(); ++index)
      if (chip_.memories[index].name == name)
        return index;
    line.wrong(text("names the memory '", name, "', which there is not"));
  }

  void route(Line &line) {
    if (chip_.engines.empty())
      line.wrong("has a route of no engine");
    const MemoryIndex source = known(line), target = known(line);
    chip_.engines.back().routes.emplace_back(source, target);
  }

  void matrix(Line &line) {
    MatrixDescription &matrix = chip_.matrix;
    matrix.a = known(line);
    matrix.b = known(line);
    matrix.sums = known(line);
    if (!matrix.a || !matrix.b || !matrix.sums)
      line.wrong("has operands in global memory");
    matrix.alignment = line.positive();
    matrix.startCycles = line.number();
    matrix.queue = uint32_t(line.positive());
    matrix.transposes = line.integer() != 0;
  }

  void product(Line &line) {
    ProductDescription product;
    product.sums = typeOf(line, line.word());
    for (int64_t &size : product.tile)
      size = int64_t(line.positive());
    product.cycles = line.number();
    while (line.more())
      product.operands.push_back(typeOf(line, line.word()));
    chip_.matrix.products.push_back(std::move(product));
  }

  void check() const {
    if (!chip_.digest || chip_.memories.size() < 2 || chip_.engines.empty())
      throw std::invalid_argument("the chip's description has no digest, no local memory or no DMA engine");
  }

  std::string_view rest_;
  ChipDescription chip_;
};

} // namespace

ChipDescription ChipDescription::parse(std::string_view text) { return Parser(text).parse(); }

uint64_t ChipDescription::windowBytes() const {
  const MemoryDescription &last = memories.back();
  return last.base + ((last.bytes + WindowStep - 1) / WindowStep + 1) * WindowStep;
}

uint32_t ChipDescription::instances(const MemoryDescription &memory) const {
  if (memory.scope == MemoryDescription::OfChip)
    return 1;
  return memory.scope == MemoryDescription::OfCluster ? clusters : cores();
}

std::string ChipDescription::unitName(uint32_t unit) const {
  if (unit < 2)
    return unit ? "matrix" : "core";
  return text("dma", unit - 2);
}

const ProductDescription *MatrixDescription::product(int32_t a, int32_t b, int32_t sums) const {
  auto has = [](const ProductDescription &product, int32_t type) {
    for (int32_t operand : product.operands)
      if (operand == type)
        return true;
    return false;
  };
  for (const ProductDescription &product : products)
    if (product.sums == sums && has(product, a) && has(product, b) &&
        (a == b || (elementBytes(a) == 1 && elementBytes(b) == 1)))
      return &product;
  return nullptr;
}

const char *elementName(int32_t type) { return type > 0 && type < Types ? Names[type] : nullptr; }

uint32_t elementBytes(int32_t type) {
  static constexpr uint8_t Bytes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1, 1, 1};
  static_assert(sizeof Bytes == Types);
  return type > 0 && type < Types ? Bytes[type] : 0;
}

} // namespace vnpu
