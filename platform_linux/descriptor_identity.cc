// SPDX-License-Identifier: Apache-2.0
#include "broker/os/descriptor_identity.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "platform_linux/above_standard.h"

namespace sluice::os {
namespace {

// The peer's address as gRPC writes it, with plain brackets. An IPv4 peer of a socket for both
// families is IPv4.
std::string PeerOf(int fd) {
  sockaddr_in6 address = {};
  socklen_t length = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sin6_family == AF_INET) {
    sockaddr_in ipv4;
    std::memcpy(&ipv4, &address, sizeof(ipv4));
    ::inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(ipv4.sin_port));
  }
  if (address.sin6_family != AF_INET6) return "";
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    ::inet_ntop(AF_INET, address.sin6_addr.s6_addr + 12, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(address.sin6_port));
  }
  ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
  return absl::StrCat("ipv6:[", text, "]:", ntohs(address.sin6_port));
}

// Removes the zone that a link-local address may have, which is written "%25eth0" or "%eth0".
std::string Plain(std::string_view peer) {
  std::string text =
      absl::StrReplaceAll({peer.data(), peer.size()}, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  const size_t zone = text.find('%');
  const size_t end = text.find(']');
  if (zone != text.npos && end != text.npos && zone < end) text.erase(zone, end - zone);
  return text;
}

}  // namespace

DescriptorIdentity IdentityOf(int fd) {
  struct stat info;
  if (fd < 0 || ::fstat(fd, &info) != 0) return {};
  return {fd, static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
}

bool IsStillThere(const DescriptorIdentity& identity) {
  const DescriptorIdentity now = IdentityOf(identity.fd);
  return now.fd >= 0 && now.device == identity.device && now.inode == identity.inode;
}

// A socket has an inode of its own (that of an eventfd is everybody's).
UniqueFd OpenSentinel() {
  return AboveStandard(UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
}

bool HasStandardDescriptors() {
  return ::fcntl(STDIN_FILENO, F_GETFD) >= 0 && ::fcntl(STDOUT_FILENO, F_GETFD) >= 0 &&
         ::fcntl(STDERR_FILENO, F_GETFD) >= 0;
}

std::vector<DescriptorIdentity> OpenSockets() {
  std::vector<DescriptorIdentity> found;
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    struct stat info;
    const int fd = entry->d_name[0] == '.' ? -1 : std::atoi(entry->d_name);
    if (fd >= 0 && ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode)) {
      found.push_back(IdentityOf(fd));
    }
  }
  ::closedir(folder);
  return found;
}

std::vector<DescriptorIdentity> SocketsConnectedTo(std::string_view peer,
                                                   const std::vector<DescriptorIdentity>& others) {
  const std::string wanted = Plain(peer);
  if (wanted.empty()) return {};
  std::vector<DescriptorIdentity> found = OpenSockets();
  std::erase_if(found, [&](const DescriptorIdentity& socket) {
    return PeerOf(socket.fd) != wanted || std::ranges::count(others, socket) != 0;
  });
  return found;
}

bool HasNewConnection(const std::vector<DescriptorIdentity>& others) {
  return std::ranges::any_of(OpenSockets(), [&](const DescriptorIdentity& socket) {
    return !PeerOf(socket.fd).empty() && std::ranges::count(others, socket) == 0;
  });
}

}  // namespace sluice::os
