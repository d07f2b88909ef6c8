// SPDX-License-Identifier: Apache-2.0
#include "broker/config/socket_checks.h"

#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "broker/base/daemon_places.h"
#include "broker/config/config.h"
#include "broker/os/local_socket.h"

namespace sluice::broker {
namespace {

// For a flag, or a default made from $XDG_RUNTIME_DIR: the file's keys are checked where they are
// read.
absl::Status CheckSocketName(const std::string& name, const std::string& key) {
  const absl::Status checked = os::CheckLocalName(name);
  if (checked.ok()) return checked;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", key, "\" is \"", name, "\", allowed is ", checked.message()));
}

// The place of a key of [broker] in the file; "" if the file does not have it, or a flag won.
std::string PlaceOf(const Config& config, const std::string& key) {
  const auto place = config.places.find(key);
  return place == config.places.end() ? "" : place->second;
}

// How a message about one of the three sockets begins: the key's place, or the flag.
std::string DescribeSocket(const Config& config, const std::string& key) {
  const std::string place = PlaceOf(config, key);
  if (place.empty()) return absl::StrCat("--", absl::StrReplaceAll(key, {{"_", "-"}}));
  return absl::StrCat(place, ": key \"", key, "\" in [broker]");
}

struct NamedSocket {
  const char* key;
  const std::string& name;
};

std::string SameSocketProblem(const Config& config, const NamedSocket& one,
                              const NamedSocket& other) {
  for (const char* key : {other.key, one.key}) {
    if (PlaceOf(config, key).empty()) continue;
    return absl::StrCat(DescribeSocket(config, key), ": \"", one.key, "\" is \"", one.name,
                        "\", and \"", other.key, "\" is \"", other.name,
                        "\", which is one name; give them two");
  }
  return absl::StrCat(DescribeSocket(config, one.key), " is \"", one.name, "\", and ",
                      DescribeSocket(config, other.key), " is \"", other.name,
                      "\", which is one name; give them two");
}

// The message if the monitor socket is in the clients' reach, and at no place of old that is still
// served. If nobody named it, it follows from another key, which the message blames.
std::string MonitorInReachProblem(const Config& config) {
  const bool of_admin = config.monitor_socket == MonitorNameBeside(config.admin_socket) &&
                        config.admin_socket != AdminNameOf(config.socket);
  if (PlaceOf(config, "monitor_socket").empty() &&
      (of_admin || config.monitor_socket == MonitorNameOf(config.socket))) {
    const char* key = of_admin ? "admin_socket" : "socket";
    return absl::StrCat(DescribeSocket(config, key), " is \"",
                        of_admin ? config.admin_socket : config.socket,
                        "\", and the monitor socket would be \"", config.monitor_socket,
                        "\", which whoever has the folder of the clients' socket reaches; name "
                        "another place for one of them (monitor_socket in [broker], "
                        "--monitor-socket)");
  }
  return absl::StrCat(DescribeSocket(config, "monitor_socket"), " is \"", config.monitor_socket,
                      "\", which whoever has the folder of the clients' socket reaches; name a "
                      "place elsewhere, such as \"",
                      MonitorNameOf(config.socket), "\"");
}

}  // namespace

std::vector<std::string> SocketProblems(const Config& config) {
  std::vector<std::string> problems;
  const auto add = [&problems](const absl::Status& status) {
    if (!status.ok()) problems.emplace_back(status.message());
  };
  const NamedSocket sockets[] = {{"socket", config.socket},
                                 {"admin_socket", config.admin_socket},
                                 {"monitor_socket", config.monitor_socket}};
  const absl::Status socket = CheckSocketName(config.socket, "socket");
  add(socket);
  // A name that follows from the others would give the same message again.
  const absl::Status admin = CheckSocketName(config.admin_socket, "admin_socket");
  if (socket.ok() || config.admin_socket != AdminNameOf(config.socket)) add(admin);
  const absl::Status monitor = CheckSocketName(config.monitor_socket, "monitor_socket");
  const bool monitor_made = config.monitor_socket == MonitorNameOf(config.socket) ||
                            config.monitor_socket == MonitorNameBeside(config.admin_socket);
  if ((socket.ok() && admin.ok()) || !monitor_made) add(monitor);
  for (size_t i = 0; i < std::size(sockets); ++i) {
    for (size_t k = i + 1; k < std::size(sockets); ++k) {
      if (os::IsSameLocalName(sockets[i].name, sockets[k].name))
        problems.push_back(SameSocketProblem(config, sockets[i], sockets[k]));
    }
  }
  if (problems.empty() && IsInClientsReach(config.monitor_socket, config.socket))
    problems.push_back(MonitorInReachProblem(config));
  return problems;
}

std::vector<std::string> OldPlaces(const Config& config) {
  std::vector<std::string> found;
  if (!config.moved_socket.empty()) {
    found.push_back(absl::StrCat(DescribeSocket(config, "socket"), " is \"", config.moved_socket,
                                 "\", the default until version 0.1; now that is \"", config.socket,
                                 "\": write that, or nothing"));
  }
  if (IsInClientsReach(config.admin_socket, config.socket)) {
    found.push_back(absl::StrCat(
        DescribeSocket(config, "admin_socket"), " is \"", config.admin_socket,
        "\": root in a container that has the folder of the clients' socket administers the daemon "
        "through it; name a place elsewhere, such as the default, \"",
        AdminNameOf(config.socket), "\""));
  }
  return found;
}

std::vector<std::string> MovedDefaults(const Config& config) {
  const std::string was = OldAdminNameOf(config.socket);
  const std::string place = PlaceOf(config, "socket");
  const bool of_today = config.moved_socket.empty() && !OldClientNameOf(config.socket).empty();
  const bool by_default = config.admin_socket == AdminNameOf(config.socket);
  if (place.empty() || was.empty() || of_today || !by_default) return {};
  return {absl::StrCat(place, ": key \"admin_socket\" in [broker] is not set; it was \"", was,
                       "\" by default until version 0.1, and is \"", config.admin_socket,
                       "\" now: change whatever names the old place")};
}

}  // namespace sluice::broker
