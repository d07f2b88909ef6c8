// SPDX-License-Identifier: Apache-2.0
#include "proto/network/listen_check.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "broker/os/scoped_handle.h"

namespace sluice::gateway {
namespace {

using Addresses = std::vector<std::string>;

// Listens on a port of loopback that was free.
struct Listener {
  os::UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string address;

  Listener() {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(::listen(socket.get(), 1), 0);
    socklen_t length = sizeof(name);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &length), 0);
    address = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
};

std::string ErrorOf(const Addresses& listen, wire::ListenCheck check) {
  return std::string(wire::CheckListening(listen, check, absl::ZeroDuration()).message());
}

// A port in use is told with its address, and is of no interest to who only asks for the address.
TEST(ListenCheckTest, PortInUse) {
  Listener taken;
  const std::string error = ErrorOf({taken.address}, wire::ListenCheck::kPorts);
  EXPECT_NE(error.find("cannot listen on " + taken.address + ": Address already in use"),
            std::string::npos)
      << error;
  EXPECT_EQ(ErrorOf({taken.address}, wire::ListenCheck::kAddresses), "");
  const std::string everywhere = "0.0.0.0" + taken.address.substr(taken.address.rfind(':'));
  EXPECT_NE(ErrorOf({everywhere}, wire::ListenCheck::kPorts), "");
  taken.socket.reset();
  EXPECT_EQ(ErrorOf({taken.address}, wire::ListenCheck::kPorts), "");
}

// A host that nobody knows, and an address of another machine (RFC 5737's, for examples).
TEST(ListenCheckTest, AddressesThatAreNotOurs) {
  EXPECT_NE(
      ErrorOf({"sluice-test.invalid:1"}, wire::ListenCheck::kAddresses).find("has no address"),
      std::string::npos);
  EXPECT_NE(ErrorOf({"127.0.0.1:1", "192.0.2.1:1"}, wire::ListenCheck::kAddresses)
                .find("192.0.2.1:1: Cannot assign"),
            std::string::npos);
  EXPECT_EQ(ErrorOf({"localhost:1", "0.0.0.0:1"}, wire::ListenCheck::kAddresses), "");
}

// Time mends an address that is not there yet; a port in use is told even behind one.
TEST(ListenCheckTest, TellsWhatTimeMayMend) {
  Listener taken;
  const auto check = [](const Addresses& listen) {
    return wire::CheckListening(listen, wire::ListenCheck::kPorts, absl::ZeroDuration());
  };
  EXPECT_TRUE(absl::IsUnavailable(check({"192.0.2.1:1"})));
  EXPECT_TRUE(absl::IsUnavailable(check({"sluice-test.invalid:1"})));
  const absl::Status error = check({"192.0.2.1:1", taken.address});
  EXPECT_TRUE(absl::IsFailedPrecondition(error)) << error;
  EXPECT_NE(error.message().find(taken.address), std::string::npos) << error;
}

// All of IPv4 and all of IPv6 is one listener; other addresses are each their own.
TEST(ListenCheckTest, WildcardsAreOne) {
  EXPECT_EQ(wire::DistinctAddresses({"0.0.0.0:1", "[::]:1", "[::]:2"}),
            (Addresses{"0.0.0.0:1", "[::]:2"}));
  EXPECT_EQ(wire::DistinctAddresses({"127.0.0.1:1", "[::1]:1"}),
            (Addresses{"127.0.0.1:1", "[::1]:1"}));
}

}  // namespace
}  // namespace sluice::gateway
