// SPDX-License-Identifier: Apache-2.0
#include "broker/children/cache_folder.h"

namespace sluice::broker {

// WorkerUsers gives no worker a folder of its own.
CacheUse BoundCache(const std::string&, uint64_t, uint64_t) { return CacheUse(); }
bool RemoveCache(const std::string&) { return false; }

}  // namespace sluice::broker
