// SPDX-License-Identifier: Apache-2.0
//
// The output of sluicectl. Single thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::ctl {

void Print(const std::string& text);

// With a line's end. Strings of other processes, and arguments, may be no UTF-8: they are shown as
// well as can be. ordered_json: its fields in the order in which they were added.
std::string JsonText(const nlohmann::json& json);
std::string JsonText(const nlohmann::ordered_json& json);
// All in one line, where other programs write beside it.
std::string JsonLine(const nlohmann::json& json);
void PrintJson(const nlohmann::json& json);

// True if it is UTF-8, as all text for the daemon must be.
bool IsText(const std::string& bytes);

}  // namespace sluice::ctl
