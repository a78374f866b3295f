// Lifetime of the caller's objects during asynchronous work.
#pragma once

#include <memory>

namespace tpk {

/// Keeps a host buffer alive until the last copy is destroyed.
using Keep = std::shared_ptr<void>;

} // namespace tpk
