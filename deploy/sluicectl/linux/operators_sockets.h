// SPDX-License-Identifier: Apache-2.0
//
// Operators' sockets where containers reach them: whoever opens one administers the daemon, or
// watches it. Single thread.
#pragma once

#include <string>
#include <vector>

namespace sluice::ctl {

// By its name, or because it answers as they do.
bool IsOperatorsSocket(const std::string& path, const std::string& name);

// Those in a folder and some levels below it; of the default places also those that no daemon
// serves now. No link is followed.
std::vector<std::string> OperatorsSocketsIn(const std::string& folder);

// One that whoever has the folder of the clients' socket reaches, in words; "" if there is none.
std::string OperatorsSocketBeside(const std::string& client_socket);

}  // namespace sluice::ctl
