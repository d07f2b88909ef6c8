// SPDX-License-Identifier: Apache-2.0
// The ways to be let in: TLS, mutual TLS and bearer tokens between the client's transport and the
// real gateway.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "client_icd/remote/remote_channel.h"
#include "tests/unit/gateway/certificates.h"
#include "tests/unit/gateway/gateway_process.h"

namespace sluice::gateway {
namespace {

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

class NetworkSecurityTest : public testing::Test {
 protected:
  static TestAuthority& Authority() {
    static TestAuthority& authority = []() -> TestAuthority& {
      auto* made = new TestAuthority("authority");
      made->Issue("server");
      made->Issue("alice");
      return *made;
    }();
    return authority;
  }
  static TestAuthority& Stranger() {
    static TestAuthority& authority = []() -> TestAuthority& {
      auto* made = new TestAuthority("stranger");
      made->Issue("mallory");
      return *made;
    }();
    return authority;
  }

  void TearDown() override {
    for (const char* name :
         {"SLUICE_TLS_CA", "SLUICE_TLS_CERT", "SLUICE_TLS_KEY", "SLUICE_TOKEN_FILE"}) {
      ::unsetenv(name);
    }
  }
  static void Set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  static void UseCertificate(TestAuthority& authority, const std::string& name) {
    Set("SLUICE_TLS_CERT", authority.CertificateOf(name));
    Set("SLUICE_TLS_KEY", authority.KeyOf(name));
  }
  static void UseToken(const std::string& token) {
    const std::string path = testing::TempDir() + "token_" + std::to_string(::getpid());
    std::ofstream(path) << token << "\n";
    Set("SLUICE_TOKEN_FILE", path);
  }

  static GatewayProcess::Options Tls() {
    GatewayProcess::Options options;
    options.certificate = ReadWholeFile(Authority().CertificateOf("server"));
    options.key = ReadWholeFile(Authority().KeyOf("server"));
    return options;
  }
  static GatewayProcess::Options MutualTls() {
    GatewayProcess::Options options = Tls();
    options.client_ca = ReadWholeFile(Authority().certificate_file());
    return options;
  }

  // Neither way in is open.
  static void ExpectRefused(const GatewayProcess& gateway) {
    EXPECT_FALSE(client::DescribePlatforms(gateway.endpoint(), std::chrono::seconds(5)).ok());
    EXPECT_FALSE(
        client::RemoteTransport::Connect(gateway.endpoint(), std::chrono::seconds(5)).ok());
  }
};

// A client that trusts the server's authority has a session over TLS.
TEST_F(NetworkSecurityTest, TlsWorks) {
  GatewayProcess gateway(Tls());
  Set("SLUICE_TLS_CA", Authority().certificate_file());
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  ExpectWorks(client.get(), worker.get(), 1);
  EXPECT_TRUE(client::DescribePlatforms(gateway.endpoint(), std::chrono::seconds(30)).ok());
}

// A client that trusts another authority, or speaks plaintext, gets nothing.
TEST_F(NetworkSecurityTest, TlsRefusesOthers) {
  GatewayProcess gateway(Tls());
  ExpectRefused(gateway);
  Set("SLUICE_TLS_CA", Stranger().certificate_file());
  ExpectRefused(gateway);
}

// A client that insists on TLS does not talk to a plaintext server.
TEST_F(NetworkSecurityTest, TlsClientRefusesPlaintextServer) {
  GatewayProcess gateway;
  Set("SLUICE_TLS_CA", Authority().certificate_file());
  ExpectRefused(gateway);
}

// With a certificate of the right authority a client is let in, and known by its subject.
TEST_F(NetworkSecurityTest, MutualTlsKnowsTheClient) {
  GatewayProcess gateway(MutualTls());
  Set("SLUICE_TLS_CA", Authority().certificate_file());
  UseCertificate(Authority(), "alice");
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  EXPECT_NE(worker->peer().find("alice"), std::string::npos) << worker->peer();
  ExpectWorks(client.get(), worker.get(), 1);
}

// Where another gateway trusts others, the name says by which one the client came.
TEST_F(NetworkSecurityTest, NamesSayTheGateway) {
  GatewayProcess::Options options = MutualTls();
  options.via = "[::1]:7466";
  GatewayProcess gateway(options);
  Set("SLUICE_TLS_CA", Authority().certificate_file());
  UseCertificate(Authority(), "alice");
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  EXPECT_NE(worker->peer().find("alice via [::1]:7466"), std::string::npos) << worker->peer();
}

// Without a certificate, or with a stranger's, a client is refused in the handshake.
TEST_F(NetworkSecurityTest, MutualTlsRefusesStrangers) {
  GatewayProcess gateway(MutualTls());
  Set("SLUICE_TLS_CA", Authority().certificate_file());
  ExpectRefused(gateway);
  UseCertificate(Stranger(), "mallory");
  ExpectRefused(gateway);
}

// A client that lacks what TLS needs is told which variable may help.
TEST_F(NetworkSecurityTest, RefusalsHintAtTls) {
  const auto expect_hint = [](const GatewayProcess& gateway, const char* variable) {
    const auto refused = client::DescribePlatforms(gateway.endpoint(), std::chrono::seconds(30));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find(variable), absl::string_view::npos)
        << refused.status();
  };
  GatewayProcess gateway(MutualTls());
  expect_hint(gateway, "set SLUICE_TLS_CA");
  Set("SLUICE_TLS_CA", Authority().certificate_file());
  expect_hint(gateway, "set SLUICE_TLS_CERT");
  UseCertificate(Stranger(), "mallory");
  expect_hint(gateway, "in SLUICE_TLS_CERT");
}

// A client with one of the tokens is let in, under a name that stays when other lines go.
TEST_F(NetworkSecurityTest, TokenLetsIn) {
  GatewayProcess::Options options;
  options.tokens = std::string("another token of some length\n") + kToken + "\n";
  GatewayProcess gateway(options);
  UseToken(kToken);
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(worker->peer(), "token 3eb1bd439947");
  ExpectWorks(client.get(), worker.get(), 1);
  EXPECT_TRUE(client::DescribePlatforms(gateway.endpoint(), std::chrono::seconds(30)).ok());
}

// Without a token, or with another, a client is refused, and told how to send one.
TEST_F(NetworkSecurityTest, RefusesWithoutToken) {
  GatewayProcess::Options options;
  options.tokens = kToken;
  GatewayProcess gateway(options);
  ExpectRefused(gateway);
  UseToken("0123456789abcdef0123456789abcdee");
  const auto refused =
      client::RemoteTransport::Connect(gateway.endpoint(), std::chrono::seconds(30));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("does not know the token"), absl::string_view::npos)
      << refused.status();
  ExpectRefused(gateway);
}

}  // namespace
}  // namespace sluice::gateway
