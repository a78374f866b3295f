// The exception that carries a status and its message to the C API.
#pragma once

#include "vnpu.h"

#include "text.h"

#include <stdexcept>

namespace vnpu {

using tpk::hex;
using tpk::text;

class Error : public std::runtime_error {
public:
  Error(vnpu_status status, const std::string &sentence) : std::runtime_error(sentence), status(status) {}
  vnpu_status status;
};

} // namespace vnpu
