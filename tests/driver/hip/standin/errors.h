#pragma once

#include <string>

namespace standin {

// HIP's number of an error given by its name or as a number; -1 for neither.
int errorNumber(const std::string &error);

} // namespace standin
