// Failures on request: which call of which function fails, and with what.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace standin {

class Faults {
public:
  struct Fault {
    std::string function; // "*": any; "execute": work that a queue runs
    uint64_t left;        // calls until it strikes, this one included
    int error;
    bool stays; // whether it strikes at every call from then on
  };

  // From "function:nth:error[:stays]" with HIP's name or number of the error, several with commas between.
  // An empty text on success, else what is wrong.
  std::string arm(const std::string &text);
  bool disarm(); // whether all had struck
  // Counts a call; what it shall return, 0 for no fault.
  int strike(const std::string &function);

  const std::map<std::string, uint64_t> &calls() const { return calls_; }
  void forgetCalls() { calls_.clear(); }

private:
  std::vector<Fault> armed_;
  std::map<std::string, uint64_t> calls_;
};

} // namespace standin
