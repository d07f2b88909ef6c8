// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config_changes.h"

#include "absl/strings/str_cat.h"
#include "broker/config/config.h"

namespace sluice::broker {
namespace {

void AddChanges(const NetworkConfig& running, const NetworkConfig& fresh,
                std::vector<std::string>* keys) {
  const auto compare = [&](const char* key, bool same) {
    if (!same) keys->push_back(fresh.Describe(key));
  };
  compare("listen", running.listen == fresh.listen);
  for (const char* key :
       {"certificate", "key", "client_ca", "client_crl", "token_file", "token_key"}) {
    const std::string* const file = fresh.FileOf(key);
    if (file != nullptr) compare(key, *running.FileOf(key) == *file);
  }
  compare("allow_plaintext", running.allow_plaintext == fresh.allow_plaintext);
  compare("max_connections", running.max_connections == fresh.max_connections);
  compare("max_connections_per_address",
          running.max_connections_per_address == fresh.max_connections_per_address);
  compare("max_newcomers", running.max_newcomers == fresh.max_newcomers);
  compare("memory_bytes", running.memory_bytes == fresh.memory_bytes);
}

}  // namespace

std::vector<std::string> KeysThatAwaitAStart(const Config& running, const Config& fresh) {
  std::vector<std::string> keys;
  const auto compare = [&](const char* key, bool same) {
    if (same) return;
    const auto place = fresh.places.find(key);
    const bool given = place != fresh.places.end() && !place->second.empty();
    keys.push_back(absl::StrCat(given ? absl::StrCat(place->second, ": ") : "", "key \"", key,
                                "\" in [broker]"));
  };
  compare("socket", running.socket == fresh.socket);
  compare("socket_mode", running.socket_mode == fresh.socket_mode);
  compare("socket_group", running.socket_group == fresh.socket_group);
  compare("admin_socket", running.admin_socket == fresh.admin_socket);
  compare("monitor_socket", running.monitor_socket == fresh.monitor_socket);
  compare("monitor_group", running.monitor_group == fresh.monitor_group);
  if (running.control_groups != fresh.control_groups) keys.push_back("[control_groups]");
  if (running.network.size() != fresh.network.size()) {
    keys.push_back(absl::StrCat("[[network]], which had ", running.network.size(),
                                " entries and has ", fresh.network.size()));
    return keys;
  }
  for (size_t i = 0; i < fresh.network.size(); ++i)
    AddChanges(running.network[i], fresh.network[i], &keys);
  return keys;
}

}  // namespace sluice::broker
