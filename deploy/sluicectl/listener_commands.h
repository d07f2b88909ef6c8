// SPDX-License-Identifier: Apache-2.0
//
// sluicectl listener add|list|remove: the sockets beside a daemon's default one, a tenant each.
// Single thread.
#pragma once

#include <CLI/CLI.hpp>

#include "deploy/sluicectl/admin_commands.h"

namespace sluice::ctl {

void DefineListenerCommands(CLI::App* app, CommonFlags* common);
int RunListenerCommand(const CommonFlags& common);

}  // namespace sluice::ctl
