// What asynchronous work needs of its caller.
#pragma once

#include <memory>

namespace tpk {

/// Keeps a host buffer alive; dropping the last copy lets go of it.
using Keep = std::shared_ptr<void>;

} // namespace tpk
