// SPDX-License-Identifier: Apache-2.0
#include "client_icd/endpoint_address.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// A network endpoint has a port that there can be; what else is written is refused with its name.
TEST(EndpointAddressTest, NetworkEndpointsHavePorts) {
  for (const char* good : {"host:1", "127.0.0.1:65535", "[::1]:7466", "dns:///name:7466"}) {
    const auto addresses = ParseEndpoints(good);
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    EXPECT_EQ(addresses->size(), 1u);
    EXPECT_EQ((*addresses)[0].kind, EndpointAddress::Kind::kRemote);
  }
  for (const char* bad : {"host", "host:", ":1", "host:0", "host:65536", "host:99999", "host:1x"}) {
    const auto addresses = ParseEndpoints(bad);
    ASSERT_FALSE(addresses.ok()) << bad;
    EXPECT_NE(addresses.status().message().find(bad), absl::string_view::npos);
  }
}

// A daemon that is named twice is one platform.
TEST(EndpointAddressTest, EachOnce) {
  const auto addresses = ParseEndpoints("b:2,a:1, b:2,,a:1,b:3");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  std::vector<std::string> targets;
  for (const EndpointAddress& address : *addresses) targets.push_back(address.target);
  EXPECT_EQ(targets, (std::vector<std::string>{"b:2", "a:1", "b:3"}));
}

}  // namespace
}  // namespace sluice
