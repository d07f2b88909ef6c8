// SPDX-License-Identifier: Apache-2.0
#include "broker/client_socket.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/instance.h"
#include "broker/os/local_socket.h"
#include "broker/os/service.h"

namespace sluice::broker {
namespace {

// The same socket, perhaps by a link to its folder (/var/run).
bool SamePlace(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code ignored;
  return one == other ||
         (one.filename() == other.filename() &&
          std::filesystem::equivalent(one.parent_path(), other.parent_path(), ignored));
}

void WarnOfOtherPlace(const std::string& in_use, const std::string& configured) {
  if (SamePlace(in_use, configured)) return;
  Log(LogLevel::kWarning, "broker",
      "applications reach this daemon at the service manager's socket, not at the configured one",
      {{"in_use", in_use},
       {"configured", configured},
       {"advice",
        "in the daemon's configuration set socket to the one in use, or in sluiced.socket "
        "ListenSequentialPacket= to the configured one (systemctl edit sluiced.socket)"}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientSocket>> ClientSocket::Open(const Config& config,
                                                                 os::UniqueFd* listener) {
  bool ignored = false;
  for (os::InheritedSocket& inherited : os::TakeInheritedSockets()) {
    if (!os::IsLocalListener(inherited.fd.get())) {
      Log(LogLevel::kWarning, "broker", "ignoring a socket from the service manager",
          {{"name", inherited.name}, {"wanted", "ListenSequentialPacket= with a path"}});
      ignored = true;
      continue;
    }
    if (absl::Status set = os::SetNonBlocking(inherited.fd.get(), true); !set.ok()) return set;
    WarnOfOtherPlace(inherited.address, config.socket);
    *listener = std::move(inherited.fd);  // Its file belongs to the service manager.
    return std::unique_ptr<ClientSocket>(new ClientSocket(config, inherited.address, false));
  }
  absl::StatusOr<os::UniqueFd> opened =
      OpenListener({config.socket, config.socket_mode, config.socket_group});
  if (ignored && absl::IsAlreadyExists(opened.status())) {
    return absl::AlreadyExistsError(
        absl::StrCat("the service manager listens at ", config.socket,
                     " with a socket of another kind than sluiced's: its unit must say "
                     "ListenSequentialPacket=",
                     config.socket));
  }
  if (!opened.ok()) return opened.status();
  *listener = *std::move(opened);
  return std::unique_ptr<ClientSocket>(new ClientSocket(config, config.socket, true));
}

ClientSocket::~ClientSocket() {
  if (!owns_file_) return;
  RemoveSocketFile(config_.socket);
  if (linked_) UnlinkOldPlaces(config_);
}

void ClientSocket::LinkOldPlace() { linked_ = LinkOldPlaces(config_); }

}  // namespace sluice::broker
