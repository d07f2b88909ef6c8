// SPDX-License-Identifier: Apache-2.0
//
// The commands that not every system has: run and others on Linux (linux/),
// install and uninstall on Windows (windows/), doctor on both. Single thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "deploy/sluicectl/admin_commands.h"

namespace sluice::ctl {

void DefineSystemCommands(CLI::App* app, CommonFlags* flags);

// The exit code; nothing if `name` is no such command.
std::optional<int> RunSystemCommand(const std::string& name, const CommonFlags& flags);

// Of a command that only other systems have: that it is not here, and what to do; else "".
std::string AbsentCommand(const std::string& name);

// Examples of what a person may write, for --help.
const char* SystemExamples();

// The meaning of their exit codes beside those of all commands, for --help.
const char* SystemExitCodes();

// Advice for when no daemon answers; `here`: on this machine. "" if there is none.
std::string AdviceWithoutDaemon(bool here);

// Names the others who may open the monitor socket: "the group NAME".
std::string MonitorsName();

// The flags that may stand before or after every command (main.cc).
void AddEverywhereFlags(CLI::App* app, CommonFlags* flags);

// A subcommand with the flags that say which daemon is meant (main.cc).
CLI::App* AddSubcommand(CLI::App* app, const std::string& name, const std::string& help,
                        CommonFlags* flags);

}  // namespace sluice::ctl
