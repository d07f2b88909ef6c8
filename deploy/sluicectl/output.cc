// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/output.h"

#include <cstdio>

namespace sluice::ctl {
namespace {

template <typename Json>
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::string JsonText(const nlohmann::json& json) { return Dump(json, 2); }
std::string JsonText(const nlohmann::ordered_json& json) { return Dump(json, 2); }
std::string JsonLine(const nlohmann::json& json) { return Dump(json, -1); }
void PrintJson(const nlohmann::json& json) { Print(JsonText(json)); }

bool IsText(const std::string& bytes) {
  const nlohmann::json json(bytes);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore) ==
         json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sluice::ctl
