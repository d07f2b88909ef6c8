// SPDX-License-Identifier: Apache-2.0
// Checks of the configuration's networks: listeners, TLS and who may come.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/str_join.h"
#include "broker/config/config.h"

namespace sluice::broker {
namespace {

// Plaintext is taken on loopback, or where it is allowed in words, and nowhere else.
TEST(ConfigTest, PlaintextOnlyWhereAllowed) {
  const auto check = [](const std::string& listen, bool allowed) {
    Config config;
    ApplyDefaults(&config);
    NetworkConfig network;
    network.listen = {"127.0.0.1:7466", listen};
    network.allow_plaintext = allowed;
    network.where = "f.toml:9";
    config.network = {network};
    return CheckConfig(config);
  };
  for (const char* loopback : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(check(loopback, false).ok()) << loopback;
  }
  for (const char* other : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.example.org:1", "[::2]:1",
                            "127.0.0.1.example.org:1", "localhost.example.org:1"}) {
    const absl::Status status = check(other, false);
    EXPECT_FALSE(status.ok()) << other;
    EXPECT_NE(status.message().find("f.toml:9"), std::string::npos);
    EXPECT_NE(status.message().find("allow_plaintext"), std::string::npos);
    EXPECT_TRUE(check(other, true).ok()) << other;
  }
}

// A service that asks nobody who he is is told with its addresses and what ends that; one on
// loopback where others are kept from the socket.
TEST(ConfigTest, OpenDoorsAreTold) {
  const auto doors = [](const std::function<void(Config*, NetworkConfig*)>& change) {
    Config config;
    config.socket_mode = 0666;
    NetworkConfig network;
    network.listen = {"127.0.0.1:1", "0.0.0.0:7466"};
    network.certificate = network.key = "pem";
    network.where = "f.toml:9";
    change(&config, &network);
    config.network = {network};
    ApplyDefaults(&config);
    return absl::StrJoin(OpenDoors(config), "\n");
  };
  const std::string told = doors([](Config*, NetworkConfig*) {});
  for (const char* part : {"f.toml:9", "reaches 0.0.0.0:7466 ", "client_ca", "token_file"}) {
    EXPECT_NE(told.find(part), std::string::npos) << told;
  }
  EXPECT_EQ(told.find("127.0.0.1"), std::string::npos) << told;
  EXPECT_EQ(doors([](Config*, NetworkConfig* network) { network->client_ca = "pem"; }), "");
  EXPECT_EQ(doors([](Config*, NetworkConfig* network) { network->token_file = "file"; }), "");
  const auto on_loopback = [](NetworkConfig* network) {
    network->listen = {"127.0.0.1:1"};
    network->certificate = network->key = "";
  };
  EXPECT_EQ(doors([&](Config*, NetworkConfig* network) { on_loopback(network); }), "");
  const std::string local = doors([&](Config* config, NetworkConfig* network) {
    on_loopback(network);
    config->access_users = {"alice"};
  });
  EXPECT_NE(local.find("every local user gets sessions through 127.0.0.1:1"), std::string::npos);
  EXPECT_NE(local.find("[access]"), std::string::npos) << local;
  EXPECT_EQ(local.find("client_ca"), std::string::npos) << local;
  const std::string mode = doors([&](Config* config, NetworkConfig* network) {
    on_loopback(network);
    config->socket_mode = 0660;
  });
  EXPECT_NE(mode.find("the socket's mode"), std::string::npos) << mode;
}

// Half of a TLS identity, an authority without one, and unreadable files are refused.
TEST(ConfigTest, TlsFilesGoTogether) {
  const auto check = [](const std::string& certificate, const std::string& key,
                        const std::string& client_ca) {
    Config config;
    ApplyDefaults(&config);
    NetworkConfig network;
    network.listen = {"127.0.0.1:7466"};
    network.certificate = certificate;
    network.key = key;
    network.client_ca = client_ca;
    config.network = {network};
    return CheckConfig(config);
  };
  EXPECT_TRUE(check("/dev/null", "/dev/null", "/dev/null").ok());
  EXPECT_FALSE(check("/dev/null", "", "").ok());
  EXPECT_FALSE(check("", "/dev/null", "").ok());
  EXPECT_FALSE(check("", "", "/dev/null").ok());
  const absl::Status missing = check("/nonexistent.pem", "/dev/null", "");
  EXPECT_NE(missing.message().find("/nonexistent.pem"), std::string::npos) << missing;
}

}  // namespace
}  // namespace sluice::broker
