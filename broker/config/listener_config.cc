// SPDX-License-Identifier: Apache-2.0
#include "broker/config/listener_config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "broker/base/daemon_places.h"
#include "broker/config/config.h"
#include "broker/config/config_keys.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/local_socket.h"
#include "broker/os/peer_identity.h"
#include "broker/os/process.h"

namespace sluice::broker {
namespace {

namespace fs = std::filesystem;

// The mode if `users` says who may connect: everybody who reaches the socket may open it.
constexpr mode_t kForAll = 0666;
constexpr mode_t kForGroup = 0660;
constexpr mode_t kForOwner = 0600;

// Without links: /var/run is /run.
std::string RealFolderOf(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  const fs::path real = fs::weakly_canonical(folder, error);
  return error ? folder.string() : real.string();
}

bool IsOrIsIn(const std::string& folder, const std::string& other) {
  return folder == other || absl::StartsWith(folder, other + "/");
}

std::string Describe(const ListenerConfig& listener) {
  const std::string what = absl::StrCat("the listener of tenant \"", listener.tenant, "\"");
  return listener.where.empty() ? what : absl::StrCat(listener.where, ": ", what);
}

// The message if whoever has the one folder would reach the other socket, too; "" if not.
std::string FolderProblem(const ListenerConfig& listener, const std::string& other,
                          const char* whose) {
  const std::string own = RealFolderOf(listener.path);
  const std::string folder = RealFolderOf(other);
  if (own == folder) return absl::StrCat("lies in the folder of ", whose, ", ", folder);
  if (IsOrIsIn(own, folder)) return absl::StrCat("lies below the folder of ", whose, ", ", folder);
  if (IsOrIsIn(folder, own)) return absl::StrCat("has the folder of ", whose, " below its own");
  return "";
}

std::string PlaceProblem(const ListenerConfig& listener, const Config& config,
                         const std::vector<ListenerConfig>& others) {
  const std::string empty_folder = StateFolderOf(config.socket);
  const std::pair<std::string, const char*> places[] = {
      {config.socket, "the default socket"},
      {config.admin_socket, "the operators' sockets"},
      {config.monitor_socket, "the operators' sockets"},
      // Which a container of old has mounted.
      {empty_folder.empty() ? "" : empty_folder + "/file", "the daemon's own files"}};
  for (const auto& [place, whose] : places) {
    if (place.empty()) continue;
    if (const std::string problem = FolderProblem(listener, place, whose); !problem.empty())
      return problem;
  }
  for (const ListenerConfig& other : others) {
    const std::string whose = absl::StrCat("tenant \"", other.tenant, "\"");
    const std::string problem = FolderProblem(listener, other.path, whose.c_str());
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string NameProblem(const ListenerConfig& listener, const Config& config,
                        const std::vector<ListenerConfig>& others) {
  const auto same = [&listener](const std::string& name) {
    return os::IsSameLocalName(listener.path, name);
  };
  if (same(config.socket) || same(config.admin_socket) || same(config.monitor_socket))
    return "is one of the daemon's other sockets";
  const auto other =
      std::find_if(others.begin(), others.end(), [&](const auto& one) { return same(one.path); });
  return other == others.end() ? ""
                               : absl::StrCat("is also that of tenant \"", other->tenant, "\"");
}

// Of what only tenants of another system may have.
std::string FixedProblem(const ListenerConfig& listener) {
  const std::string turns = FixedKeyReason("turns");
  if (listener.share != kDefaultShare && !turns.empty())
    return absl::StrCat("has share ", listener.share, ", allowed is ", turns);
  if (listener.interactive_percent != 0 && !turns.empty()) {
    return absl::StrCat("has interactive_percent ", listener.interactive_percent, ", allowed is ",
                        turns);
  }
  const std::string pool = FixedKeyReason("pool");
  if (listener.pools == Pooling::kOn && !pool.empty())
    return absl::StrCat("has pool \"on\", allowed is ", pool);
  return "";
}

std::string Problem(const ListenerConfig& listener, const Config& config,
                    const std::vector<ListenerConfig>& others) {
  if (absl::Status name = CheckTenantName(listener.tenant); !name.ok())
    return absl::StrCat("has a name that is not allowed; allowed is ", std::string(name.message()));
  if (others.size() >= kMostListeners)
    return absl::StrCat("is one too many: there may be ", kMostListeners);
  for (const ListenerConfig& other : others) {
    if (other.tenant == listener.tenant)
      return "is there already: each tenant has one; `sluicectl listener list` shows them";
  }
  if (absl::Status path = os::CheckLocalName(listener.path); !path.ok()) {
    return absl::StrCat("has path \"", listener.path, "\", allowed is ",
                        std::string(path.message()));
  }
  if (listener.share < 1 || listener.share > kMostShare)
    return absl::StrCat("has share ", listener.share, ", allowed is 1 to ", kMostShare);
  if (listener.interactive_percent > kMostInteractivePercent) {
    return absl::StrCat("has interactive_percent ", listener.interactive_percent,
                        ", allowed is 0 to ", kMostInteractivePercent);
  }
  if (std::string fixed = FixedProblem(listener); !fixed.empty()) return fixed;
  if (listener.mode > 0777)
    return absl::StrCat("has mode ", absl::StrFormat("%o", listener.mode),
                        ", allowed is 0001 to 0777");
  if (!listener.group.empty()) {
    if (const std::string fixed = FixedKeyReason("socket_group"); !fixed.empty())
      return absl::StrCat("has a group; allowed is ", fixed);
    if (!os::LookUpGroup(listener.group).ok())
      return absl::StrCat("names group \"", listener.group, "\", which this machine does not have");
  }
  for (const std::string& user : listener.users) {
    if (const std::string wrong = UserProblem(user); !wrong.empty())
      return absl::StrCat("names user \"", user, "\", ", wrong);
  }
  if (const std::string same = NameProblem(listener, config, others); !same.empty())
    return absl::StrCat("has path \"", listener.path, "\", which ", same);
  // Pipes lie in no folder.
  if (StateFolderOf(config.socket).empty()) return "";
  const std::string place = PlaceProblem(listener, config, others);
  if (place.empty()) return "";
  return absl::StrCat("has path \"", listener.path, "\", which ", place,
                      ": a container has a folder whole, so each socket needs one of its own");
}

}  // namespace

Account AccountOf(const ListenerConfig& listener) {
  Account account;
  account.name = TenantAccountName(listener.tenant);
  account.share = listener.share;
  account.interactive_percent = listener.interactive_percent;
  account.limits = listener.limits;
  account.pools = listener.pools;
  return account;
}

void ApplyListenerDefaults(const std::string& client_name, ListenerConfig* listener) {
  if (listener->path.empty()) listener->path = TenantNameOf(client_name, listener->tenant);
  listener->path = os::NormalLocalName(listener->path);
  listener->uids = UidsOf(listener->users);
  if (listener->mode != 0) return;
  listener->mode = !listener->group.empty()   ? kForGroup
                   : !listener->users.empty() ? kForAll
                                              : kForOwner;
}

absl::Status CheckTenantName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kMostTenantName &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("1 to ", kMostTenantName, " of a to z, 0 to 9 and \"-\""));
}

bool ParseMode(const std::string& text, mode_t* mode) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > 0777) {
    return false;
  }
  *mode = value;
  return true;
}

std::string UserProblem(const std::string& user) {
  if (os::ParseUser(user).has_value() || os::LookUpUser(user).ok()) return "";
  return "which is no user of this machine: neither a name of one nor its number (on Windows its "
         "SID); groups are not taken";
}

std::set<uid_t> UidsOf(const std::vector<std::string>& users) {
  std::set<uid_t> uids;
  for (const std::string& user : users) {
    if (const std::optional<uid_t> uid = os::ParseUser(user)) {
      uids.insert(*uid);
    } else if (const auto known = os::LookUpUser(user); known.ok()) {
      uids.insert(known->uid);
    }
  }
  return uids;
}

absl::Status CheckListener(const ListenerConfig& listener, const Config& config,
                           const std::vector<ListenerConfig>& others) {
  const std::string problem = Problem(listener, config, others);
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Describe(listener), " ", problem));
}

}  // namespace sluice::broker
