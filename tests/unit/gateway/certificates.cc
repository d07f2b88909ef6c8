// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/gateway/certificates.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::gateway {
namespace {

void Run(const std::string& command) {
  const int status = std::system((command + " 2>/dev/null").c_str());
  ASSERT_EQ(status, 0) << "failed (is the package openssl installed?): " << command;
}

}  // namespace

std::string ReadWholeFile(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

TestAuthority::TestAuthority(const std::string& name)
    : folder_(testing::TempDir() + "sluice_ca_" + name + "_" + std::to_string(::getpid())) {
  std::filesystem::create_directories(folder_);
  Run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" +
      name + " -keyout " + folder_ + "/ca.key -out " + folder_ + "/ca.pem");
}

void TestAuthority::Issue(const std::string& name) {
  const std::string base = folder_ + "/" + name;
  Run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
      " -keyout " + base + ".key -out " + base + ".csr");
  std::ofstream(base + ".ext") << "subjectAltName=IP:127.0.0.1\n";
  Run("openssl x509 -req -days 2 -CA " + folder_ + "/ca.pem -CAkey " + folder_ +
      "/ca.key -CAcreateserial -extfile " + base + ".ext -in " + base + ".csr -out " + base +
      ".pem");
}

}  // namespace sluice::gateway
