// SPDX-License-Identifier: Apache-2.0
//
// A listener beside the default socket: one tenant's way in, with a folder of its own (a container
// mounts it), and what that tenant may have. From [[listener]] in the configuration, or an
// operator's AddListener; both are checked here.
//
// Plain data.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/types.h"
#include "broker/tenants/tenant.h"

namespace sluice::broker {

struct Config;

struct ListenerConfig {
  std::string tenant;              // Its account is "tenant:" and this.
  std::string path;                // "" = as base/daemon_places.h says.
  mode_t mode = 0;                 // 0 = 0660 with a group, 0666 with users, else 0600.
  std::string group;               // "" = leave.
  std::vector<std::string> users;  // Names or numeric uids; empty = whoever can open the socket.
  std::set<uid_t> uids;            // Of `users`.
  uint32_t share = kDefaultShare;
  uint32_t interactive_percent = 0;
  AccountLimits limits;
  Pooling pools = Pooling::kAsConfigured;
  // For messages: "file:line" of its entry; "" of an operator's.
  std::string where;
};

Account AccountOf(const ListenerConfig& listener);

// Fills what was left open. `client_name`: the daemon's default socket.
void ApplyListenerDefaults(const std::string& client_name, ListenerConfig* listener);

inline constexpr size_t kMostTenantName = 32;
// OK if it can be a tenant's name; else the message says what is allowed.
absl::Status CheckTenantName(const std::string& name);
// "0660"; nothing else than 0001 to 0777 in octal.
bool ParseMode(const std::string& text, mode_t* mode);
// The fault of a user's name in a list, in words that follow `is "NAME"`; "" if there is none.
std::string UserProblem(const std::string& user);
// Of those that there are.
std::set<uid_t> UidsOf(const std::vector<std::string>& users);

// Of one listener, with its defaults, beside the daemon's other sockets and `others`. The message
// begins with the listener's place, or its tenant's name.
absl::Status CheckListener(const ListenerConfig& listener, const Config& config,
                           const std::vector<ListenerConfig>& others);

inline constexpr size_t kMostListeners = 256;

}  // namespace sluice::broker
