// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config_changes.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config/config.h"

namespace sluice::broker {
namespace {

Config Read(const std::string& text) {
  absl::StatusOr<Config> config = ParseConfig(text, "f.toml");
  EXPECT_TRUE(config.ok()) << config.status();
  Config read = config.ok() ? *config : Config();
  ApplyDefaults(&read);
  return read;
}

std::string Changes(const std::string& running, const std::string& fresh) {
  return absl::StrJoin(KeysThatAwaitAStart(Read(running), Read(fresh)), "\n");
}

// Keys that a reload gives effect to are not among them.
TEST(ConfigChangesTest, NothingAwaitsAStart) {
  EXPECT_EQ(Changes("", ""), "");
  EXPECT_EQ(Changes("", "[limits]\nmax_sessions = 3\n[broker]\nlog_level = \"debug\"\n"), "");
}

// Each key of a network's entry, by its place in the file.
TEST(ConfigChangesTest, NetworkKeys) {
  const std::string entry = "[[network]]\nlisten = \"127.0.0.1:1\"\n";
  for (const char* line :
       {"client_ca = \"/a\"", "client_crl = \"/a\"", "token_file = \"/a\"", "certificate = \"/a\"",
        "key = \"/a\"", "allow_plaintext = true", "max_connections = 7",
        "max_connections_per_address = 7", "max_newcomers = 7", "memory_bytes = \"512MiB\""}) {
    const std::string key = std::string(line).substr(0, std::string(line).find(' '));
    const std::string changes = Changes(entry, entry + line + "\n");
    EXPECT_NE(changes.find(absl::StrCat("key \"", key, "\" in [[network]]")), std::string::npos)
        << changes;
    EXPECT_NE(changes.find("f.toml:"), std::string::npos) << changes;
  }
  EXPECT_NE(Changes(entry, "[[network]]\nlisten = \"127.0.0.1:2\"\n").find("\"listen\""),
            std::string::npos);
  EXPECT_NE(Changes("", entry).find("had 0 entries and has 1"), std::string::npos);
}

TEST(ConfigChangesTest, SocketKeys) {
  for (const char* line : {"socket = \"/tmp/s/a.sock\"", "socket_mode = \"0640\"",
                           "socket_group = \"root\"", "admin_socket = \"/tmp/t/a.sock\"",
                           "monitor_socket = \"/tmp/t/m.sock\"", "monitor_group = \"root\""}) {
    const std::string key = std::string(line).substr(0, std::string(line).find(' '));
    const std::string changes = Changes("", absl::StrCat("[broker]\n", line, "\n"));
    EXPECT_NE(changes.find(absl::StrCat("key \"", key, "\" in [broker]")), std::string::npos)
        << line << ": " << changes;
  }
}

}  // namespace
}  // namespace sluice::broker
