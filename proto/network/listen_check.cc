// SPDX-License-Identifier: Apache-2.0
#include "proto/network/listen_check.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "broker/os/listen_port.h"

namespace sluice::wire {
namespace {

constexpr absl::Duration kRetryInterval = absl::Milliseconds(50);

struct HostAndPort {
  std::string host;  // Without an IPv6 address's brackets.
  std::string port;
};

HostAndPort Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostAndPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.starts_with("[") && parts.host.ends_with("]"))
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

os::PortAnswer TryHost(const std::string& host, const std::string& port) {
  if (!IsWildcard(host)) return os::TryListening(host, port);
  // As gRPC: whoever asks for all of one family gets the other as well, where there is one.
  os::PortAnswer both = os::TryListening("::", port);
  return both.state == os::PortState::kAbsent ? os::TryListening("0.0.0.0", port) : both;
}

absl::Status CheckAddress(const std::string& address, ListenCheck check, absl::Time deadline) {
  const HostAndPort parts = Split(address);
  const std::string port = check == ListenCheck::kPorts ? parts.port : "0";
  os::PortAnswer answer = TryHost(parts.host, port);
  while (answer.state == os::PortState::kInUse && absl::Now() < deadline) {
    absl::SleepFor(kRetryInterval);  // Nothing tells when a port becomes free.
    answer = TryHost(parts.host, port);
  }
  if (answer.state == os::PortState::kFree) return absl::OkStatus();
  return absl::Status(answer.state == os::PortState::kAbsent
                          ? absl::StatusCode::kUnavailable
                          : absl::StatusCode::kFailedPrecondition,
                      absl::StrCat("cannot listen on ", address, ": ", answer.reason));
}

}  // namespace

std::vector<std::string> DistinctAddresses(const std::vector<std::string>& listen) {
  std::vector<std::string> distinct;
  for (const std::string& address : listen) {
    const HostAndPort parts = Split(address);
    const bool served = std::any_of(distinct.begin(), distinct.end(), [&](const auto& earlier) {
      const HostAndPort other = Split(earlier);
      return IsWildcard(parts.host) && IsWildcard(other.host) && parts.port == other.port;
    });
    if (!served) distinct.push_back(address);
  }
  return distinct;
}

std::vector<uint16_t> PortsOf(const std::vector<std::string>& listen) {
  std::vector<uint16_t> ports;
  for (const std::string& address : listen) {
    uint32_t port = 0;
    if (absl::SimpleAtoi(Split(address).port, &port) && port <= UINT16_MAX)
      ports.push_back(static_cast<uint16_t>(port));
  }
  return ports;
}

absl::Status CheckListening(const std::vector<std::string>& listen, ListenCheck check,
                            absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  absl::Status absent;
  for (const std::string& address : listen) {
    const absl::Status checked = CheckAddress(address, check, deadline);
    if (!checked.ok() && !absl::IsUnavailable(checked)) return checked;
    absent.Update(checked);
  }
  return absent;
}

}  // namespace sluice::wire
