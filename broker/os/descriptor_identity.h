// SPDX-License-Identifier: Apache-2.0
//
// Tells whether a descriptor is still the one that it was. An application may close descriptors
// that it did not open (programs that go into the background close them all), and the next ones
// that it opens get the same numbers. So code in a stranger's process looks before it reads, writes
// or closes. Windows cannot tell: every descriptor counts as there. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/os/scoped_handle.h"

namespace sluice::os {

struct DescriptorIdentity {
  int fd = -1;
  uint64_t device = 0;
  uint64_t inode = 0;

  friend bool operator==(const DescriptorIdentity&, const DescriptorIdentity&) = default;
};

DescriptorIdentity IdentityOf(int fd);
bool IsStillThere(const DescriptorIdentity& identity);

// A descriptor of ours that the application may close under us; then its number is left alone. As
// UniqueFd otherwise. Thread-safe but for Reset.
class GuardedFd {
 public:
  explicit GuardedFd(UniqueFd fd) : fd_(std::move(fd)), identity_(IdentityOf(fd_.get())) {}
  ~GuardedFd() { Reset(); }
  GuardedFd(const GuardedFd&) = delete;
  GuardedFd& operator=(const GuardedFd&) = delete;

  bool there() const { return IsStillThere(identity_); }
  int get() const { return there() ? fd_.get() : -1; }
  void Reset() {
    if (!there()) static_cast<void>(fd_.release());
    fd_.reset();
    identity_ = {};
  }

 private:
  UniqueFd fd_;
  DescriptorIdentity identity_;
};

// A descriptor that is nobody else's, and good for nothing but to see whether it is still there.
UniqueFd OpenSentinel();

// True if 0, 1 and 2 are open. While one is not, code that opens a descriptor without choosing its
// number (gRPC) may get it, and the program would take that for its own input or output.
bool HasStandardDescriptors();

// The sockets of this process.
std::vector<DescriptorIdentity> OpenSockets();
// Those that are connected to `peer` and are none of `others`. The peer is written as gRPC writes
// it: "ipv4:127.0.0.1:80", "ipv6:%5B::1%5D:80" or "ipv6:[::1]:80".
std::vector<DescriptorIdentity> SocketsConnectedTo(std::string_view peer,
                                                   const std::vector<DescriptorIdentity>& others);
// True if a socket that is none of `others` is connected by IPv4 or IPv6. Never on Windows, where
// sockets are not told apart.
bool HasNewConnection(const std::vector<DescriptorIdentity>& others);

}  // namespace sluice::os
