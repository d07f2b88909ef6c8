// SPDX-License-Identifier: Apache-2.0
//
// Where the console's and the service manager's threads leave what they were told (stop_signals.cc
// hands it to the loop). Thread-safe.
#pragma once

#include <windows.h>

#include "broker/os/stop_signals.h"

namespace sluice::os {

void RaiseStopSignal(StopSignals::Kind kind);

// What the console says (CTRL_C_EVENT, ...). Where it is closed, returns only after a while: the
// process is to end by itself before.
void OnConsoleEvent(DWORD event);
// From now on it is nothing to us: the service manager says when to stop.
void IgnoreConsole();

}  // namespace sluice::os
