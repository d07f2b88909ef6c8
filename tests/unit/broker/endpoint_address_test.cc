// SPDX-License-Identifier: Apache-2.0
#include "broker/base/endpoint_address.h"

#include <gtest/gtest.h>

namespace sluice::broker {
namespace {

// A network endpoint has a port that there can be; what else is written is refused with its name.
TEST(EndpointAddressTest, NetworkEndpointsHavePorts) {
  for (const char* good : {"host:1", "127.0.0.1:65535", "[::1]:7466", "[fe80::1%eth0]:7466",
                           "dns:///name:7466", "gpu_host.example:7466"}) {
    const auto addresses = ParseEndpoints(good);
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    EXPECT_EQ(addresses->size(), 1u);
    EXPECT_EQ((*addresses)[0].kind, EndpointAddress::Kind::kRemote);
  }
  for (const char* bad : {"host", "host:", ":1", "host:0", "host:65536", "host:99999", "host:1x",
                          "::1:7699", "http://127.0.0.1:7699", "[::1:80", "::1]:80", "[name]:80",
                          "a/b:80", "me@host:80", "ho st:80", "//host:80", "[]:80", "ho[st:80"}) {
    const auto addresses = ParseEndpoints(bad);
    ASSERT_FALSE(addresses.ok()) << bad;
    EXPECT_NE(addresses.status().message().find(bad), absl::string_view::npos);
  }
}

// A user who pastes a URL is told the right form.
TEST(EndpointAddressTest, UrlsAreTranslated) {
  for (const char* url :
       {"http://127.0.0.1:7533", "https://127.0.0.1:7533/", "tcp://127.0.0.1:7533/x"}) {
    const auto addresses = ParseEndpoints(url);
    EXPECT_NE(addresses.status().message().find("; write 127.0.0.1:7533"), absl::string_view::npos)
        << addresses.status();
  }
}

// The caller has a name of its own for the text, and reads the text as it was written.
TEST(EndpointAddressTest, TellsSourceAndText) {
  EXPECT_EQ(ParseEndpoints("garbage", nullptr, "--endpoint")
                .status()
                .message()
                .find("--endpoint: 'garbage' is none of "),
            0u);
  EXPECT_EQ(ParseEndpoints(",", nullptr, "--endpoint").status().message(),
            "--endpoint names no endpoint");
  const auto addresses = ParseEndpoints("\tdns:///a:1 \n,b:2\n");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_EQ(addresses->size(), 2u);
  EXPECT_EQ((*addresses)[0].text, "dns:///a:1");
  EXPECT_EQ((*addresses)[1].text, "b:2");
}

// A port that there cannot be is told of; where something else is wrong, it is not.
TEST(EndpointAddressTest, PortsAreTold) {
  for (const char* bad : {"host:99999", "host:0", "host:", "[::1]:http", "dns:///host:0"})
    EXPECT_NE(ParseEndpoints(bad).status().message().find("; a port is a number from 1 to 65535"),
              absl::string_view::npos)
        << bad;
  for (const char* bad : {"host", "a/b:99999", "::1:99999", "http://host", "unix:/x", "pipe:/x"})
    EXPECT_EQ(ParseEndpoints(bad).status().message().find("a port is"), absl::string_view::npos)
        << bad;
}

// A mistyped one takes nothing from the others, and is not the default either.
TEST(EndpointAddressTest, OthersThanTheRefused) {
  std::vector<absl::Status> refused;
  const auto addresses = ParseEndpoints("garbage,a:1,b:", &refused);
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_EQ(addresses->size(), 1u);
  EXPECT_EQ((*addresses)[0].target, "a:1");
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_NE(refused[1].message().find("'b:'"), absl::string_view::npos);
  const auto none = ParseEndpoints("garbage", &refused);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->empty());
}

// A text of commas alone is a mistake, as it is to sluicectl; only an empty one is the default.
TEST(EndpointAddressTest, NamesOneAtLeast) {
  for (const char* none : {",,", " ", " , "}) {
    EXPECT_EQ(ParseEndpoints(none).status().message(), "SLUICE_ENDPOINT names no endpoint");
    std::vector<absl::Status> refused;
    const auto addresses = ParseEndpoints(none, &refused);
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    EXPECT_TRUE(addresses->empty());
    EXPECT_EQ(refused.size(), 1u);
  }
  const auto otherwise = ParseEndpoints("");
  ASSERT_TRUE(otherwise.ok()) << otherwise.status();
  EXPECT_EQ(otherwise->size(), 1u);
}

// A local name that is none is refused with what it must be.
TEST(EndpointAddressTest, LocalNamesAreTold) {
  const auto addresses = ParseEndpoints("unix:relative");
  EXPECT_NE(addresses.status().message().find("what follows unix: must be an absolute path"),
            absl::string_view::npos)
      << addresses.status();
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
}  // namespace sluice::broker
