#include "faults.h"

#include "errors.h"

#include <algorithm>
#include <sstream>

namespace standin {

std::string Faults::arm(const std::string &text) {
  std::vector<Fault> parsed;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one, ',');) {
    std::istringstream parts(one);
    std::string function, count, error, rest;
    std::getline(parts, function, ':');
    std::getline(parts, count, ':');
    std::getline(parts, error, ':');
    std::getline(parts, rest);
    uint64_t nth = std::strtoull(count.c_str(), nullptr, 10);
    int number = errorNumber(error);
    if (function.empty() || !nth || number <= 0 || (!rest.empty() && rest != "stays"))
      return "the fault '" + one + "' is not function:nth:error[:stays]";
    parsed.push_back({function, nth, number, rest == "stays"});
  }
  armed_.insert(armed_.end(), parsed.begin(), parsed.end());
  return "";
}

int Faults::strike(const std::string &function) {
  bool isCall = function != "execute";
  if (isCall)
    ++calls_[function];
  int struck = 0;
  std::erase_if(armed_, [&](Fault &fault) {
    if (fault.function != function && !(isCall && fault.function == "*"))
      return false;
    if (fault.left > 1) {
      --fault.left;
      return false;
    }
    fault.left = 0;
    struck = fault.error;
    return !fault.stays;
  });
  return struck;
}

bool Faults::disarm() {
  bool all = std::all_of(armed_.begin(), armed_.end(), [](const Fault &fault) { return !fault.left; });
  armed_.clear();
  return all;
}

} // namespace standin
