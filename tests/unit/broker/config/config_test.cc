// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace sluice::broker {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto config = ParseConfig(text, "f.toml");
  return config.ok() ? "no error" : std::string(config.status().message());
}

void ExpectError(const std::string& text, const std::vector<std::string>& parts) {
  const std::string error = ErrorOf(text);
  for (const std::string& part : parts) {
    EXPECT_NE(error.find(part), std::string::npos) << "missing \"" << part << "\" in:\n" << error;
  }
}

Config Defaulted(Config config) {
  ApplyDefaults(&config);
  return config;
}

// An empty file is the built-in defaults.
TEST(ConfigTest, EmptyFileIsDefaults) {
  const auto config = ParseConfig("", "f.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->limits.max_sessions, LimitsConfig().max_sessions);
  EXPECT_TRUE(config->network.empty());
  EXPECT_TRUE(CheckConfig(Defaulted(*config)).ok());
}

// A path of Windows between double quotes is refused with the advice of single ones, also where the
// letter behind the backslash makes an escape that TOML knows.
TEST(ConfigTest, BackslashesAreExplained) {
  for (const char* path :
       {"C:\\Program Files\\x", "C:\\x", "C:\\Users\\x", "C:\\temp", "C:\\new"}) {
    const std::string text = std::string("[broker]\nsocket = \"") + path + "\"\n";
    ExpectError(text, {"f.toml:2:", "between single quotes"});
    ExpectError(std::string("[devices]\nallow = [\"") + path + "\"]\n", {"between single quotes"});
    ExpectError(std::string("[[network]]\nlisten = \"a:1\"\nkey = \"") + path + "\"\n",
                {"f.toml:3:", "between single quotes"});
  }
  EXPECT_EQ(ErrorOf("[devices]\nallow = ['C:\\new']\n"), "no error");
}

// Every key of the file reaches its field.
TEST(ConfigTest, EveryKeyIsRead) {
  const auto config = ParseConfig(R"(
[broker]
socket = "/tmp/a.sock"
socket_mode = "0660"
socket_group = "daemon"
admin_socket = "/tmp/b.sock"
monitor_socket = "/tmp/c.sock"
monitor_group = "daemon"
log_level = "debug"
probe_timeout_ms = 101
drain_timeout_ms = 102
kill_grace_ms = 103
[worker]
user = "nobody"
cache_directory = "/tmp"
cache_bytes = "6GiB"
all_caches_bytes = "7GiB"
confine_files = false
readable = ["/driver", "/its/data"]
sync = true
[worker.environment]
POCL_MAX_PTHREAD_COUNT = "2"
[access]
users = ["root", 1000]
[limits]
max_sessions = 1
max_sessions_per_user = 2
max_network_sessions = 3
max_connections = 4
max_connections_per_user = 5
memory_bytes_per_session = "2GiB"
device_memory_per_account = "3GiB"
objects_per_session = 6
in_flight_commands_per_session = 7
program_bytes = 8
build_time_ms = 9
kernel_time_ms = 10
worker_memory_bytes = "3GiB"
[scheduling]
turns = "on"
turn_us = 1000
turn_grace_us = 100
shares = "off"
[devices]
allow = "NVIDIA*"
[[network]]
listen = ["127.0.0.1:1", "[::1]:2"]
certificate = "/c"
key = "/k"
client_ca = "/a"
token_file = "/t"
memory_bytes = "5GiB"
allow_plaintext = true
)",
                                  "f.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->socket, "/tmp/a.sock");
  EXPECT_EQ(config->socket_mode, 0660u);
  EXPECT_EQ(config->socket_group, "daemon");
  EXPECT_EQ(config->admin_socket, "/tmp/b.sock");
  EXPECT_EQ(config->monitor_socket, "/tmp/c.sock");
  EXPECT_EQ(config->monitor_group, "daemon");
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
  EXPECT_EQ(config->probe_timeout_ms, 101);
  EXPECT_EQ(config->drain_timeout_ms, 102);
  EXPECT_EQ(config->kill_grace_ms, 103);
  EXPECT_EQ(config->worker.user, "nobody");
  EXPECT_EQ(config->worker.cache_directory, "/tmp");
  EXPECT_EQ(config->worker.cache_bytes, 6ULL << 30);
  EXPECT_EQ(config->worker.all_caches_bytes, 7ULL << 30);
  EXPECT_FALSE(config->worker.confine_files);
  EXPECT_EQ(config->worker.readable, (std::vector<std::string>{"/driver", "/its/data"}));
  EXPECT_TRUE(config->worker.sync);
  EXPECT_EQ(config->worker.environment.at("POCL_MAX_PTHREAD_COUNT"), "2");
  EXPECT_EQ(config->access_users, (std::vector<std::string>{"root", "1000"}));
  EXPECT_EQ(config->limits.max_sessions, 1u);
  EXPECT_EQ(config->limits.max_sessions_per_user, 2u);
  EXPECT_EQ(config->limits.max_network_sessions, 3u);
  EXPECT_EQ(config->limits.max_connections, 4u);
  EXPECT_EQ(config->limits.max_connections_per_user, 5u);
  EXPECT_EQ(config->limits.memory_bytes, 2ULL << 30);
  EXPECT_EQ(config->limits.device_memory_per_account, 3ULL << 30);
  EXPECT_EQ(config->limits.objects, 6u);
  EXPECT_EQ(config->limits.in_flight_commands, 7u);
  EXPECT_EQ(config->limits.program_bytes, 8u);
  EXPECT_EQ(config->limits.build_time_ms, 9u);
  EXPECT_EQ(config->limits.kernel_time_ms, 10u);
  EXPECT_EQ(config->limits.worker_memory_bytes, 3ULL << 30);
  EXPECT_EQ(config->turns.mode, TurnsConfig::Mode::kOn);
  EXPECT_EQ(config->turns.turn_us, 1000);
  EXPECT_EQ(config->turns.grace_us, 100);
  EXPECT_EQ(config->turns.shares, TurnsConfig::Shares::kOff);
  EXPECT_EQ(config->device_patterns, std::vector<std::string>{"NVIDIA*"});
  ASSERT_EQ(config->network.size(), 1u);
  EXPECT_EQ(config->network[0].listen.size(), 2u);
  EXPECT_EQ(config->network[0].memory_bytes, 5ULL << 30);
  EXPECT_EQ(config->network[0].certificate, "/c");
  EXPECT_EQ(config->network[0].key, "/k");
  EXPECT_EQ(config->network[0].client_ca, "/a");
  EXPECT_EQ(config->network[0].token_file, "/t");
  EXPECT_TRUE(config->network[0].allow_plaintext);
}

// An unknown key is refused with its place, the nearest name, and what is allowed.
TEST(ConfigTest, UnknownKeyNamesPlaceAndAllowed) {
  ExpectError("[limits]\nmax_sesions = 3\n",
              {"f.toml:2:1:", "unknown key \"max_sesions\" in [limits]",
               "did you mean \"max_sessions\"", "allowed are ", "max_connections"});
  ExpectError("[limit]\n", {"f.toml:1:", "unknown key \"limit\"", "did you mean \"limits\""});
  ExpectError("[worker]\nzzzzzzzzzz = 1\n", {"unknown key \"zzzzzzzzzz\"", "allowed are user"});
  ExpectError("[[network]]\nlisten = \"127.0.0.1:1\"\ncert = \"x\"\n", {"f.toml:3:1:", "\"cert\""});
}

// A value of another type is refused with its place, its type, and what is allowed.
TEST(ConfigTest, WrongTypeNamesPlaceAndAllowed) {
  ExpectError("[broker]\nsocket = 3\n", {"f.toml:2:10:", "\"socket\" in [broker] is an integer",
                                         "allowed is an absolute path"});
  ExpectError("[limits]\nmax_sessions = \"many\"\n",
              {"f.toml:2:", "is a string", "an integer from 1"});
  ExpectError("[limits]\nmax_sessions = 1.5\n", {"a number with a fraction"});
  ExpectError("[worker]\nsync = 1\n", {"true or false"});
  ExpectError("broker = 1\n", {"f.toml:1:", "\"broker\"", "allowed is a table, [broker]"});
  ExpectError("network = 1\n", {"[[network]]"});
  ExpectError("[worker.environment]\nA = 1\n", {"environment.A", "allowed is a string"});
  ExpectError("[access]\nusers = [true]\n", {"\"users\"", "an array of strings"});
}

// A value out of range or not among the allowed ones is refused, with what is allowed.
TEST(ConfigTest, WrongValueNamesAllowed) {
  ExpectError("[limits]\nmax_sessions = 0\n", {"is 0", "an integer from 1"});
  ExpectError("[limits]\nmax_sessions = -1\n", {"is -1"});
  ExpectError("[broker]\nlog_level = \"loud\"\n",
              {"\"loud\"", "trace, debug, info, warning, error"});
  ExpectError("[broker]\nsocket_mode = \"0999\"\n", {"\"0999\"", "octal"});
  ExpectError("[broker]\nsocket_mode = \"7777\"\n", {"\"7777\""});
  ExpectError("[limits]\nmemory_bytes_per_session = \"4 GB\"\n", {"\"4 GB\"", "4GiB"});
  ExpectError("[limits]\nmemory_bytes_per_session = \"99999999999TiB\"\n",
              {"\"99999999999TiB\", allowed is a number of bytes below 2^64"});
  ExpectError("[limits]\nmemory_bytes_per_session = -4\n",
              {"f.toml:2:28:", "memory_bytes_per_session", "is -4, allowed is 0 or more bytes"});
  for (const char* little : {"\"1KiB\"", "1024"}) {
    ExpectError(std::string("[limits]\nworker_memory_bytes = ") + little + "\n",
                {"f.toml:2:23:", "\"worker_memory_bytes\" in [limits] is ", little,
                 "allowed is 0, which is no limit, or at least 64MiB"});
  }
  ExpectError("[[network]]\nlisten = \"nowhere\"\n", {"f.toml:2:", "\"nowhere\"", "HOST:PORT"});
  ExpectError("[devices]\nallow = \"a,b\"\n", {"f.toml:2:", "\"a,b\"", "comma"});
  ExpectError("[scheduling]\nturns = \"yes\"\n", {"f.toml:2:", "\"yes\"", "auto, on, off"});
  ExpectError("[scheduling]\nshares = 30\n", {"f.toml:2:", "auto, on, off"});
  ExpectError("[scheduling]\nturn_us = 100\n", {"is 100", "500", "10000"});
  ExpectError("[control_groups]\nenabled = true\n", {"f.toml:2:", "auto, required, off"});
  ExpectError("[control_groups]\nmemory_bytes_per_worker = \"1MiB\"\n", {"1MiB", "64MiB"});
  ExpectError("[[network]]\n", {"f.toml:1:", "needs key \"listen\""});
}

// A value that TOML does not know is refused as any other: what is written there, its key, and what
// is allowed. Errors that have no key are told as the parser does.
TEST(ConfigTest, ValuesThatAreNoToml) {
  ExpectError(
      "[limits]\nmax_sessions = 99999999999999999999\n[nonsense]\n",
      {"f.toml:2:16: key \"max_sessions\" in [limits] is 99999999999999999999, allowed is an "
       "integer from 1 to 1000000000000",
       "f.toml:3:2: unknown key \"nonsense\""});
  ExpectError(
      "limits = {max_connections = -99999999999999999999, max_sessions = 0x1ffffffffffffffff}",
      {"f.toml:1:29: key \"max_connections\" in [limits] is -99999999999999999999, allowed",
       "key \"max_sessions\" in [limits] is 0x1ffffffffffffffff, allowed is an integer"});
  ExpectError("[limits]\nprogram_bytes = 99999999999999999999",
              {"key \"program_bytes\" in [limits] is 99999999999999999999, allowed is", "2^64"});
  ExpectError(
      "[limits]\nprogram_bytes = 4GiB # no quotes\n",
      {"f.toml:2:17: key \"program_bytes\" in [limits] is 4GiB without quotes, allowed is a "
       "number of bytes"});
  ExpectError("[broker]\nlog_level = debug\n",
              {"key \"log_level\" in [broker] is debug without quotes, allowed is one of trace"});
  ExpectError("[broker]\nsocket = /run/x.sock\n",
              {"f.toml:2:10: key \"socket\" in [broker] is /run/x.sock without quotes, allowed"});
  ExpectError("[worker]\nsync = yes\n",
              {"f.toml:2:8: key \"sync\" in [worker] is yes, allowed is true or false"});
  ExpectError("[worker]\nenvironment = {A = 99999999999999999999}\n",
              {"key \"environment.A\" in [worker] is 99999999999999999999 without quotes"});
  ExpectError(
      "[access]\nusers = [0, root]\n",
      {"f.toml:2:13: key \"users\" in [access] is root without quotes, allowed is a string"});
  ExpectError("[limits]\nmax_session = 1__2\n", {"unknown key \"max_session\" in [limits]"});
  ExpectError("[limits]\nmax_sessions = \n", {"f.toml:2:16:", "expected value"});
  ExpectError("[limits]\nmax_sessions = many of them\n", {"f.toml:2:16:", "value type"});
  ExpectError("[limits]\nmax sessions = 1\n", {"f.toml:2:5:", "expected '='"});
}

// A file that is no TOML is refused with its place; all other errors of a file are told at once.
TEST(ConfigTest, SyntaxAndSeveralErrors) {
  ExpectError("[broker\n", {"f.toml:1:"});
  ExpectError("[broker]\nsocket = \"/tmp/a\\u0000b\"\n",
              {"f.toml:2:10: ", "\"socket\" in [broker]", "a string without NUL"});
  ExpectError("[broker]\nsocket = \"a\nb\"\n", {"f.toml:2:"});
  ExpectError("[broker]\nsocket = 1\nlog_level = 2\n[nonsense]\n",
              {"f.toml:2:", "f.toml:3:", "f.toml:4:"});
}

// A file that cannot be read is named, with the reason.
TEST(ConfigTest, EditorsMarksOfUnicode) {
  EXPECT_TRUE(ParseConfig("\xef\xbb\xbf[broker]\n", "s.toml").ok());
  for (const std::string& text :
       {std::string("\xff\xfe[\0b\0", 6), std::string("\xfe\xff\0[", 4)}) {
    const std::string error(ParseConfig(text, "s.toml").status().message());
    EXPECT_NE(error.find("s.toml:1:1: the file is UTF-16"), std::string::npos) << error;
    EXPECT_NE(error.find("save it as UTF-8"), std::string::npos) << error;
  }
}

namespace {

absl::StatusOr<Config> Loaded(const std::string& path) {
  Config config;
  const absl::Status status = LoadConfigFile(path, &config);
  if (!status.ok()) return status;
  return config;
}

}  // namespace

TEST(ConfigTest, UnreadableFile) {
  const auto missing = Loaded("/nonexistent/x.toml");
  EXPECT_NE(missing.status().message().find("/nonexistent/x.toml: No such file"), std::string::npos)
      << missing.status();
  EXPECT_FALSE(Loaded("/tmp").ok());
  EXPECT_TRUE(Loaded("/dev/null").ok());
}

// A file without an end is read up to a limit, which is told.
TEST(ConfigTest, EndlessFile) {
  const std::string path = ::testing::TempDir() + "config_test_long.toml";
  std::ofstream(path) << std::string(2 << 20, '\n');
  for (const std::string& endless : {path, std::string("/dev/zero")}) {
    const auto config = Loaded(endless);
    ASSERT_FALSE(config.ok()) << endless;
    EXPECT_EQ(config.status().message(),
              "configuration file: cannot read " + endless +
                  ": it is longer than 1048576 bytes, the most that is taken");
  }
}

// Socket paths must be absolute, short enough for the kernel, and two.
TEST(ConfigTest, SocketPaths) {
  const auto check = [](const std::string& socket, const std::string& admin) {
    Config config;
    config.socket = socket;
    config.admin_socket = admin;
    ApplyDefaults(&config);
    return CheckConfig(config);
  };
  EXPECT_TRUE(check("/a/b.sock", "").ok());
  EXPECT_FALSE(check("b.sock", "/a/c.sock").ok());
  EXPECT_FALSE(check("/" + std::string(108, 'x'), "/a/c.sock").ok());
  EXPECT_FALSE(check("/a/b.sock", "/a/b.sock").ok());
}

// Byte sizes take units of 1024, in full, without overflow.
TEST(ConfigTest, ByteSizes) {
  EXPECT_EQ(ParseByteSize("0"), 0u);
  EXPECT_EQ(ParseByteSize("1000"), 1000u);
  EXPECT_EQ(ParseByteSize("3KiB"), 3072u);
  EXPECT_EQ(ParseByteSize("512 MiB"), 512u << 20);
  EXPECT_EQ(ParseByteSize("16383TiB"), 16383ULL << 40);
  for (const char* bad :
       {"", "MiB", "-1", "4GB", "1.5GiB", "1MiB2", "16777217TiB", "99999999999999999999"}) {
    EXPECT_FALSE(ParseByteSize(bad).has_value()) << bad;
  }
}

// An address needs host and port; an IPv6 host needs brackets.
TEST(ConfigTest, ListenAddresses) {
  for (const char* good : {"0.0.0.0:1", "host.name:65535", "[::]:7466", "localhost:80"}) {
    EXPECT_TRUE(CheckListenAddress(good).ok()) << good;
  }
  for (const char* bad : {"", "host", ":80", "host:", "host:0", "host:65536", "host:x", "::1:80",
                          "[::1]", "[::1:80", "::1]:80"}) {
    EXPECT_FALSE(CheckListenAddress(bad).ok()) << bad;
  }
}

// Clients of entries that trust others are told apart; with one authority and one token file, or
// none, names are the certificates' own.
TEST(ConfigTest, EntriesThatTrustOthersNameApart) {
  const auto vias = [](std::vector<NetworkConfig> networks) {
    Config config;
    config.network = std::move(networks);
    ApplyDefaults(&config);
    std::vector<std::string> all;
    for (const NetworkConfig& network : config.network) all.push_back(network.via);
    return all;
  };
  const auto entry = [](const char* listen, const char* client_ca, const char* token_file = "") {
    NetworkConfig network;
    network.listen = {listen, "[::1]:9"};
    network.client_ca = client_ca;
    network.token_file = token_file;
    return network;
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(vias({entry("a:1", "/x.pem"), entry("b:2", "")}), (Strings{"", ""}));
  EXPECT_EQ(vias({entry("a:1", "/x.pem"), entry("b:2", "/x.pem")}), (Strings{"", ""}));
  EXPECT_EQ(vias({entry("a:1", "/x.pem"), entry("b:2", "/y.pem"), entry("c:3", "/x.pem"),
                  entry("d:4", "")}),
            (Strings{"a:1", "b:2", "a:1", ""}));
  EXPECT_EQ(vias({entry("a:1", "", "/t"), entry("b:2", "", "/u")}), (Strings{"a:1", "b:2"}));
}

// The example that is installed is valid, names only known keys, and its values are the defaults.
TEST(ConfigTest, InstalledExampleIsTheDefaults) {
  const auto config = Loaded(SLUICE_TEST_EXAMPLE_CONFIG);
  ASSERT_TRUE(config.ok()) << config.status();
  const Config built_in;
  EXPECT_EQ(config->probe_timeout_ms, built_in.probe_timeout_ms);
  EXPECT_EQ(config->drain_timeout_ms, built_in.drain_timeout_ms);
  EXPECT_EQ(config->kill_grace_ms, built_in.kill_grace_ms);
  EXPECT_EQ(config->limits.max_sessions, built_in.limits.max_sessions);
  EXPECT_EQ(config->limits.max_sessions_per_user, built_in.limits.max_sessions_per_user);
  EXPECT_EQ(config->limits.max_network_sessions, built_in.limits.max_network_sessions);
  EXPECT_EQ(config->limits.max_connections, built_in.limits.max_connections);
  EXPECT_EQ(config->limits.max_connections_per_user, built_in.limits.max_connections_per_user);
  EXPECT_EQ(config->limits.memory_bytes, built_in.limits.memory_bytes);
  EXPECT_EQ(config->limits.device_memory_per_account, built_in.limits.device_memory_per_account);
  EXPECT_EQ(config->limits.worker_memory_bytes, built_in.limits.worker_memory_bytes);
  EXPECT_EQ(config->limits.objects, built_in.limits.objects);
  EXPECT_EQ(config->limits.in_flight_commands, built_in.limits.in_flight_commands);
  EXPECT_EQ(config->limits.program_bytes, built_in.limits.program_bytes);
  EXPECT_EQ(config->limits.build_time_ms, built_in.limits.build_time_ms);
  EXPECT_EQ(config->turns.mode, built_in.turns.mode);
  EXPECT_EQ(config->turns.turn_us, built_in.turns.turn_us);
  EXPECT_EQ(config->turns.grace_us, built_in.turns.grace_us);
  EXPECT_EQ(config->turns.shares, built_in.turns.shares);
  const ResourcesConfig& resources = config->resources;
  EXPECT_EQ(resources.enabled, built_in.resources.enabled);
  EXPECT_EQ(resources.max_resources, built_in.resources.max_resources);
  EXPECT_EQ(resources.max_resources_per_user, built_in.resources.max_resources_per_user);
  EXPECT_EQ(resources.max_bytes, built_in.resources.max_bytes);
  EXPECT_EQ(resources.max_bytes_per_user, built_in.resources.max_bytes_per_user);
  EXPECT_EQ(resources.max_connections, built_in.resources.max_connections);
  EXPECT_EQ(resources.max_connections_per_user, built_in.resources.max_connections_per_user);
  EXPECT_EQ(resources.max_acquires_per_connection, built_in.resources.max_acquires_per_connection);
  EXPECT_EQ(resources.max_watches_per_connection, built_in.resources.max_watches_per_connection);
  EXPECT_EQ(resources.max_wait_ms, built_in.resources.max_wait_ms);
  EXPECT_EQ(resources.max_linger_ms, built_in.resources.max_linger_ms);
}

// A value that only this machine can judge is refused with its place in the file, too.
TEST(ConfigTest, MachineDependentValuesAreRefusedWhereTheyStand) {
  ExpectError("[broker]\nsocket = \"relative\"\n", {"f.toml:2:", "\"socket\"", "absolute path"});
  ExpectError("[broker]\nadmin_socket = \"" + std::string(200, '/') + "\"\n",
              {"f.toml:2:", "\"admin_socket\"", "at most"});
  ExpectError("[broker]\n\nsocket_group = \"nosuchgroup\"\n",
              {"f.toml:3:", "\"socket_group\"", "group of this machine"});
  ExpectError("[worker]\nuser = \"nosuchuser\"\n",
              {"f.toml:2:", "\"user\"", "user of this machine"});
  ExpectError("[worker]\ncache_directory = \"relative\"\n", {"f.toml:2:", "absolute path"});
  ExpectError("[worker]\nreadable = [\"relative\"]\n", {"f.toml:2:", "no absolute path"});
  ExpectError("[worker]\nexecutable = [\"relative\"]\n", {"f.toml:2:", "no absolute path"});
  ExpectError("[worker]\nsystem_calls = \"some\"\n", {"f.toml:2:", "listed, logged, any"});
  ExpectError("[worker]\nrequire = \"walls\"\n", {"f.toml:2:", "none of files, programs"});
  ExpectError("[worker]\nconfine_files = false\nrequire = \"files\"\n",
              {"f.toml:3:", "not in force: confine_files = false"});
  ExpectError("[worker]\nrequire = [\"system-calls\"]\nsystem_calls = \"logged\"\n",
              {"f.toml:2:", "not in force: system_calls = \"logged\""});
  ExpectError("[worker]\nnamespaces = false\nrequire = [\"private-root\"]\n",
              {"f.toml:3:", "not in force: namespaces = false"});
  ExpectError("[worker]\ncache_directory = \"/nonexistent/folder\"\n",
              {"f.toml:2:", "that exists"});
  ExpectError("[access]\nusers = [\"root\", \"nosuchuser\"]\n", {"f.toml:2:18", "nosuchuser"});
  EXPECT_EQ(ErrorOf("[access]\nusers = [\"root\", 12345, \"12345\"]\n"), "no error");
  ExpectError("[access]\nusers = [-1]\n", {"f.toml:2:", "\"-1\""});
  // The system's answer about a file or a socket that is nobody's.
  ExpectError("[access]\nusers = [\"4294967295\"]\n", {"f.toml:2:10", "\"4294967295\""});
  ExpectError("[access]\nusers = [99999999999]\n", {"f.toml:2:", "\"99999999999\""});
}

// Names of the workers' environment that can be none, and the one that is Sluice's, are refused.
TEST(ConfigTest, EnvironmentNamesAreChecked) {
  ExpectError("[worker.environment]\n\"\" = \"1\"\n", {"f.toml:2:", "no variable's name"});
  ExpectError("[worker.environment]\n\"A=B\" = \"1\"\n", {"f.toml:2:", "\"A=B\""});
  ExpectError("[worker.environment]\nA = \"x\\u0000y\"\n", {"f.toml:2:", "without NUL"});
  ExpectError("[worker.environment]\nSLUICE_WORKER = \"0\"\n", {"f.toml:2:", "its own workers"});
  EXPECT_TRUE(ParseConfig("[worker.environment]\nA = \"0\"\na = \"0\"\n", "f.toml").ok());
}

// A wildcard that can match nothing is a mistake.
TEST(ConfigTest, WildcardsAreChecked) {
  ExpectError("[devices]\nallow = [\"[abc\"]\n", {"f.toml:2:", "\"[\" has no \"]\""});
  ExpectError("[devices]\nallow = \"\"\n", {"f.toml:2:", "matches no device"});
  EXPECT_EQ(ErrorOf("[devices]\nallow = [\"[ab]*\", \"[]]\", \"x?\"]\n"), "no error");
}

// All that only file and flags together show is told at once.
TEST(ConfigTest, ChecksOfTheWholeAreToldTogether) {
  const auto config = ParseConfig(R"(
[[network]]
listen = ["127.0.0.1:1", "127.0.0.1:1"]
[[network]]
listen = "0.0.0.0:2"
)",
                                  "f.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string message(CheckConfig(Defaulted(*config)).message());
  EXPECT_NE(
      message.find("f.toml:3:10: key \"listen\" in [[network]]: 127.0.0.1:1 is listened on twice"),
      std::string::npos)
      << message;
  EXPECT_NE(
      message.find("f.toml:5:10: key \"listen\" in [[network]]: listening on 0.0.0.0:2 without"),
      std::string::npos)
      << message;
}

// A key outside its table is sent there, be it on its own or in another table; errors come in the
// file's order.
TEST(ConfigTest, KeysAreSentToTheirTables) {
  const std::string error =
      ErrorOf("socket = \"/a\"\n[broker]\nmax_sessions = 3\nlog_level = 1\nlimits = 1\n");
  EXPECT_EQ(error,
            "f.toml:1:1: key \"socket\" is outside its table: it belongs in [broker]\n"
            "f.toml:3:1: key \"max_sessions\" is in [broker], but belongs in "
            "[[listener]] or [limits] or [pool]\n"
            "f.toml:4:13: key \"log_level\" in [broker] is an integer, allowed is one of trace, "
            "debug, info, warning, error\n"
            "f.toml:5:1: key \"limits\" is in [broker], but belongs at the top of the file, as "
            "[limits]");
  ExpectError("listen = \"127.0.0.1:1\"\n", {"f.toml:1:1:", "belongs in [[network]]"});
  ExpectError("[broker]\nmax_connections = 1\n",
              {"belongs in [[listener]] or [[network]] or [limits] or [resources]"});
}

// Errors about the network's files stand at the key that names the file.
TEST(ConfigTest, NetworkErrorsStandAtTheirKeys) {
  const auto error = [](const std::string& keys) {
    const auto config = ParseConfig("[[network]]\nlisten = \"127.0.0.1:1\"\n" + keys, "f.toml");
    return config.ok() ? std::string(CheckConfig(Defaulted(*config)).message())
                       : std::string(config.status().message());
  };
  EXPECT_TRUE(error("certificate = \"/dev/null\"\n")
                  .starts_with("f.toml:3:15: key \"certificate\" in [[network]] is given without"));
  EXPECT_TRUE(error("key = \"/dev/null\"\n").starts_with("f.toml:3:7: key \"key\""));
  EXPECT_TRUE(error("token_file = \"/nonexistent\"\n")
                  .starts_with("f.toml:3:14: key \"token_file\" in [[network]]: cannot read"));
  EXPECT_TRUE(error("\nclient_ca = \"/dev/null\"\n").starts_with("f.toml:4:13: key \"client_ca\""));
  for (const char* key : {"certificate", "key", "client_ca", "token_file"}) {
    const std::string text = error(std::string(key) + " = \"relative.pem\"\n");
    EXPECT_NE(text.find("is \"relative.pem\", allowed is the absolute path"), std::string::npos)
        << text;
  }
}

// One path for both sockets is told at the key that made it so; by flags, with the flags' names.
TEST(ConfigTest, OneSocketForBothIsToldWhereItStands) {
  const auto config = ParseConfig("[broker]\nsocket = \"/a\"\nadmin_socket = \"/a\"\n", "f.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string message(CheckConfig(Defaulted(*config)).message());
  EXPECT_TRUE(message.starts_with("f.toml:3:16: key \"admin_socket\"")) << message;
  Config flags;
  flags.socket = flags.admin_socket = "/a";
  EXPECT_NE(CheckConfig(Defaulted(flags)).message().find("--admin-socket"), std::string::npos);
}

}  // namespace
}  // namespace sluice::broker
