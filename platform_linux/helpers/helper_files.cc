// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/helper_files.h"

#include <iterator>

#include "broker/os/file_access.h"
#include "platform_linux/helpers/driver_files.h"
#include "platform_linux/helpers/private_root.h"

namespace sluice::os {
namespace {

// The files from which libc and gRPC resolve addresses, and OpenSSL's configuration.
constexpr const char* kNetworkFiles[] = {
    "/etc/gai.conf",      "/etc/host.conf",       "/etc/hosts",
    "/etc/nsswitch.conf", "/etc/protocols",       "/etc/resolv.conf",
    "/etc/services",      "/etc/ssl/openssl.cnf", "/proc/sys/net"};

constexpr uint16_t kNameServers = 53;  // For answers that are too long for UDP.
// Any free port: gRPC binds one to find out whether there is IPv6.
constexpr uint16_t kAnyPort = 0;

absl::Status Confine(const FileAccess& access, bool private_root) {
  if (private_root) {
    if (absl::Status entered = EnterPrivateRoot(access); !entered.ok()) return entered;
  }
  const absl::Status confined = ConfineFiles(access);
  return absl::IsUnavailable(confined) ? absl::OkStatus() : confined;
}

}  // namespace

absl::Status ConfineGatewayFiles(const std::vector<uint16_t>& ports, bool private_root) {
  FileAccess access = LibraryFiles();
  access.readable.insert(access.readable.end(), std::begin(kNetworkFiles), std::end(kNetworkFiles));
  access.listen_ports = ports;
  access.listen_ports.push_back(kAnyPort);
  access.connect_ports = {kNameServers};
  return Confine(access, private_root);
}

absl::Status ConfineAllocatorFiles(const std::vector<std::string>& more, bool private_root) {
  FileAccess access = DriverFiles();
  access.readable.insert(access.readable.end(), more.begin(), more.end());
  return Confine(access, private_root);
}

}  // namespace sluice::os
