// SPDX-License-Identifier: Apache-2.0
//
// The console's and the service manager's threads leave their orders here, and stop_signals.cc
// hands them to the loop. Thread-safe.
#pragma once

#include <windows.h>

#include "broker/os/stop_signals.h"

namespace sluice::os {

void RaiseStopSignal(StopSignals::Kind kind);

// Takes an event of the console (CTRL_C_EVENT, ...). If the console is closed, returns only after a
// while, so that the process can end by itself before.
void OnConsoleEvent(DWORD event);
// From now on console events are ignored: the service manager says when to stop.
void IgnoreConsole();

}  // namespace sluice::os
