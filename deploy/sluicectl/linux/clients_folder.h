// SPDX-License-Identifier: Apache-2.0
//
// What doctor says of the folder that containers mount. Single thread.
#pragma once

#include <string>

namespace sluice::ctl {

// An operators' socket that whoever has the folder of the clients' socket reaches, in words; "" if
// there is none.
std::string OperatorsSocketBeside(const std::string& client_socket);

}  // namespace sluice::ctl
