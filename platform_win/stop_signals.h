// SPDX-License-Identifier: Apache-2.0
//
// Where the console's and the service manager's threads leave what they were told (stop_signals.cc
// hands it to the loop). Thread-safe.
#pragma once

#include "broker/os/stop_signals.h"

namespace sluice {

void RaiseStopSignal(StopSignals::Kind kind);

}  // namespace sluice
