// SPDX-License-Identifier: Apache-2.0
// A certificate authority for tests: made afresh by the openssl command, in a folder of the test's
// own.
#pragma once

#include <string>

namespace sluice::gateway {

std::string ReadWholeFile(const std::string& path);

class TestAuthority {
 public:
  // `name` keeps authorities of one test program apart.
  explicit TestAuthority(const std::string& name);

  std::string certificate_file() const { return folder_ + "/ca.pem"; }

  // Makes NAME.pem and NAME.key, signed by this authority, for 127.0.0.1 and with the subject
  // CN=NAME.
  void Issue(const std::string& name);
  std::string CertificateOf(const std::string& name) const { return folder_ + "/" + name + ".pem"; }
  std::string KeyOf(const std::string& name) const { return folder_ + "/" + name + ".key"; }

 private:
  const std::string folder_;
};

}  // namespace sluice::gateway
