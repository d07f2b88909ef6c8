// SPDX-License-Identifier: Apache-2.0
#include "proto/network/tls_files.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/gateway/certificates.h"

namespace sluice::gateway {
namespace {

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() {
    authority_.Issue("one");
    authority_.Issue("two");
  }
  std::string Certificate(const std::string& name) {
    return ReadWholeFile(authority_.CertificateOf(name));
  }
  std::string Key(const std::string& name) { return ReadWholeFile(authority_.KeyOf(name)); }
  static std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

  TestAuthority authority_{"tls_files"};
};

// Files that belong together are taken, with and without authorities for clients.
TEST_F(TlsFilesTest, SoundFilesAreTaken) {
  EXPECT_TRUE(wire::CheckIdentity({"c", Certificate("one")}, {"k", Key("one")}).ok());
  EXPECT_TRUE(wire::CheckAuthorities({"a", ReadWholeFile(authority_.certificate_file())}).ok());
}

// Each mistake is told by the file that holds it.
TEST_F(TlsFilesTest, MistakesAreNamed) {
  const auto expect = [](const absl::Status& status, const char* text) {
    EXPECT_TRUE(ErrorOf(status).starts_with(text)) << status;
  };
  expect(wire::CheckIdentity({"c", Certificate("one")}, {"k", Key("two")}),
         "k: it is not the key of the certificate (c)");
  expect(wire::CheckIdentity({"c", "nonsense"}, {"k", Key("one")}), "c: it holds no certificate");
  expect(wire::CheckIdentity({"c", Certificate("one")}, {"k", "nonsense"}),
         "k: it holds no private key");
  expect(wire::CheckAuthorities({"a", Key("one")}), "a: it holds no certificate");
}

}  // namespace
}  // namespace sluice::gateway
