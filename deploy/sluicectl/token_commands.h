// SPDX-License-Identifier: Apache-2.0
//
// sluicectl token keygen|sign: bearer tokens that a cluster signs for a tenant
// (proto/network/signed_token.h). Asks no daemon. Single thread.
#pragma once

#include <CLI/CLI.hpp>

#include "deploy/sluicectl/admin_commands.h"

namespace sluice::ctl {

void DefineTokenCommands(CLI::App* app, CommonFlags* common);
int RunTokenCommand(const CommonFlags& common);

}  // namespace sluice::ctl
