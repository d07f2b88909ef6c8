// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "proto/network/loopback.h"

namespace sluice::gateway {
namespace {

absl::StatusOr<GatewayOptions> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sluice-gateway");
  return ParseGatewayOptions(static_cast<int>(arguments.size()), arguments.data());
}

// A descriptor from which `content` can be read, as an argument.
std::string FileArgument(const char* name, const std::string& content) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], content.data(), content.size()), static_cast<ssize_t>(content.size()));
  ::close(ends[1]);
  return std::string(name) + "=" + std::to_string(ends[0]);
}

// Plaintext stays on this machine unless the operator wrote otherwise.
TEST(OptionsTest, RefusesPlaintextBeyondLoopback) {
  EXPECT_TRUE(Parse({"--listen=127.0.0.1:7466", "--listen=[::1]:7466"}).ok());
  EXPECT_FALSE(Parse({"--listen=0.0.0.0:7466"}).ok());
  EXPECT_FALSE(Parse({"--listen=127.0.0.1:7466", "--listen=192.0.2.1:7466"}).ok());
  EXPECT_TRUE(Parse({"--listen=0.0.0.0:7466", "--allow-plaintext"}).ok());
}

// With certificate and key, every address may be served; with one of them, none.
TEST(OptionsTest, TlsNeedsBothFiles) {
  const std::string certificate = FileArgument("--cert-fd", "certificate");
  const std::string key = FileArgument("--key-fd", "key");
  const absl::StatusOr<GatewayOptions> options =
      Parse({"--listen=0.0.0.0:7466", certificate.c_str(), key.c_str()});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->tls.certificate, "certificate");
  EXPECT_EQ(options->tls.key, "key");
  EXPECT_FALSE(options->plaintext());
  const std::string alone = FileArgument("--cert-fd", "certificate");
  EXPECT_FALSE(Parse({"--listen=127.0.0.1:7466", alone.c_str()}).ok());
  const std::string authority = FileArgument("--client-ca-fd", "authority");
  EXPECT_FALSE(Parse({"--listen=127.0.0.1:7466", authority.c_str()}).ok());
}

// An argument that is no option, no descriptor, or an empty file is refused by name.
TEST(OptionsTest, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(Parse({}).ok());
  EXPECT_FALSE(Parse({"--listen="}).ok());
  EXPECT_FALSE(Parse({"--listen=127.0.0.1:1", "--fast"}).ok());
  EXPECT_FALSE(Parse({"--listen=127.0.0.1:1", "--cert-fd=x"}).ok());
  EXPECT_FALSE(Parse({"--listen=127.0.0.1:1", "--log-level=loud"}).ok());
  const std::string empty = FileArgument("--token-fd", "");
  const absl::StatusOr<GatewayOptions> options = Parse({"--listen=127.0.0.1:1", empty.c_str()});
  ASSERT_FALSE(options.ok());
  EXPECT_EQ(options.status().message(), "token_file: it is empty");
}

// Only what cannot be another machine counts as loopback.
TEST(OptionsTest, KnowsLoopback) {
  for (const char* address :
       {"127.0.0.1:1", "127.3.2.1:65535", "[::1]:1", "localhost:1", "dns:///localhost:1"}) {
    EXPECT_TRUE(wire::IsLoopbackTarget(address)) << address;
  }
  for (const char* address : {"128.0.0.1:1", "0.0.0.0:1", "[::]:1", "127.0.0.1.example.org:1",
                              "localhost.example.org:1", "127.0.0.1", "dns:///example.org:1", ""}) {
    EXPECT_FALSE(wire::IsLoopbackTarget(address)) << address;
  }
}

}  // namespace
}  // namespace sluice::gateway
