// SPDX-License-Identifier: Apache-2.0
//
// The commands that give the client to containers, export-client and cdi: their flags. Main thread
// only.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deploy/sluicectl/admin_commands.h"

namespace sluice::ctl {

struct CdiFlags {
  std::string client_folder;
  std::string socket_folder;
  std::string kind;
  std::string output;
  std::vector<std::string> files;
  std::vector<std::string> folders;  // That hold CDI files.
  bool json = false;
};

void DefineContainerCommands(CLI::App* app, CommonFlags* common);

// The exit code; nothing if `name` is no such command.
std::optional<int> RunContainerCommand(const std::string& name, const CommonFlags& common);

int CdiGenerateCommand(const CdiFlags& flags);
int CdiListCommand(const CdiFlags& flags);
int CdiValidateCommand(const CdiFlags& flags);

}  // namespace sluice::ctl
