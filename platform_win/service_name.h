// SPDX-License-Identifier: Apache-2.0
// The service's name in the service manager and in the event log.
#pragma once

namespace sluice::os {

inline constexpr wchar_t kServiceName[] = L"Sluice";

}  // namespace sluice::os
