// SPDX-License-Identifier: Apache-2.0
#include "broker/base/daemon_places.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "broker/base/version.h"
#include "broker/config/config.h"
#include "broker/os/local_endpoint.h"

namespace sluice::broker {
namespace {

namespace fs = std::filesystem;

// The machine's daemon has its places as they are documented, each in a folder of its own.
TEST(DaemonPlacesTest, TheMachines) {
  const std::string name = "/run/sluice/clients/broker.sock";
  if (::geteuid() == 0) {
    EXPECT_EQ(DefaultLocalName(), name);
  }
  EXPECT_EQ(AdminNameOf(name), "/run/sluice-admin/admin.sock");
  EXPECT_EQ(MonitorNameOf(name), "/run/sluice-admin/monitor.sock");
  EXPECT_EQ(StateFolderOf(name), "/run/sluice");
  EXPECT_EQ(StateFileOf(name, ".lock"), "/run/sluice/broker.sock.lock");
  EXPECT_EQ(OldClientNameOf(name), "/run/sluice/broker.sock");
  EXPECT_EQ(OldAdminNameOf(name), "/run/sluice/admin.sock");
}

// A socket in a folder of any other name has everything else outside of that folder, too.
TEST(DaemonPlacesTest, AnyOthers) {
  const std::string name = "/srv/gpu/one.sock";
  EXPECT_EQ(AdminNameOf(name), "/srv/gpu-admin/admin.sock");
  EXPECT_EQ(MonitorNameOf(name), "/srv/gpu-admin/monitor.sock");
  EXPECT_EQ(StateFileOf(name, ".lock"), "/srv/gpu-state/one.sock.lock");
  EXPECT_EQ(OldClientNameOf(name), "");
  EXPECT_EQ(OldAdminNameOf(name), "/srv/gpu/admin.sock");
  for (const std::string& client :
       {name, std::string("/one.sock"), std::string("/clients/one.sock"),
        std::string("/run/sluice/clients/broker.sock")}) {
    EXPECT_FALSE(IsInClientsReach(AdminNameOf(client), client)) << client;
    EXPECT_FALSE(IsInClientsReach(MonitorNameOf(client), client)) << client;
    EXPECT_TRUE(AdminNameOf(client).starts_with("/")) << client;
    EXPECT_TRUE(StateFolderOf(client).starts_with("/")) << client;
  }
}

// An admin socket with a name of its own has its monitor socket beside it; two have two.
TEST(DaemonPlacesTest, MonitorsBesideAdmins) {
  EXPECT_EQ(MonitorNameBeside("/a/admin.sock"), "/a/monitor.sock");
  EXPECT_EQ(MonitorNameBeside("/a/one.sock"), "/a/one-monitor.sock");
  EXPECT_EQ(MonitorNameBeside("/a/two"), "/a/two-monitor.sock");
}

// A file in the clients' folder, below it, or where containers of old have it, is in their reach,
// also by a link; a folder whose name only begins so is not.
TEST(DaemonPlacesTest, ClientsReach) {
  const std::string name = "/run/sluice/clients/broker.sock";
  for (const char* near : {"/run/sluice/clients/admin.sock", "/run/sluice/clients/deep/er/a.sock",
                           "/run/sluice/admin.sock", "/run/sluice/clients/../admin.sock"}) {
    EXPECT_TRUE(IsInClientsReach(near, name)) << near;
  }
  for (const char* far : {"/run/sluice-admin/admin.sock", "/run/admin.sock", "/admin.sock",
                          "/run/sluice/clients2/admin.sock", "/run/sluice/admin/admin.sock"}) {
    EXPECT_FALSE(IsInClientsReach(far, name)) << far;
  }
  EXPECT_TRUE(IsInClientsReach("/tmp/x/admin.sock", "/tmp/x/b.sock"));
  EXPECT_FALSE(IsInClientsReach("/tmp/admin.sock", "/tmp/x/b.sock"));
  char pattern[] = "/tmp/sluice-test-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern);
  fs::create_directories(folder / "clients");
  fs::create_directory_symlink(folder / "clients", folder / "alias");
  EXPECT_TRUE(IsInClientsReach(folder / "alias/a.sock", folder / "clients/b.sock"));
  fs::remove_all(folder);
}

// The version decides how long the places of old are served, as numbers.
TEST(DaemonPlacesTest, OldPlacesEnd) {
  for (const char* served : {"0.1.0", "0.2.0", "0.2.99", "0.2", "unversioned", ""})
    EXPECT_TRUE(OldPlacesServedBy(served)) << served;
  for (const char* ended : {"0.3.0", "0.3.1", "0.10.0", "1.0.0"})
    EXPECT_FALSE(OldPlacesServedBy(ended)) << ended;
}

// A client takes its user's daemon before the machine's, and today's place before that of old.
TEST(DaemonPlacesTest, ClientsSearch) {
  char pattern[] = "/tmp/sluice-test-XXXXXX";
  const fs::path runtime = ::mkdtemp(pattern);
  const char* before = ::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
  EXPECT_TRUE(os::DefaultClientName().starts_with("/run/sluice/"));
  fs::create_directories(runtime / "sluice/clients");
  std::ofstream(runtime / "sluice/broker.sock") << "x";
  if (OldPlacesServed()) {
    EXPECT_EQ(os::DefaultClientName(), runtime / "sluice/broker.sock");
  }
  std::ofstream(runtime / "sluice/clients/broker.sock") << "x";
  EXPECT_EQ(os::DefaultClientName(), runtime / "sluice/clients/broker.sock");
  if (before == nullptr) {
    ::unsetenv("XDG_RUNTIME_DIR");
  } else {
    ::setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  }
  fs::remove_all(runtime);
}

Config WithDefaults(Config config) {
  ApplyDefaults(&config);
  return config;
}

// An operators' socket in the clients' reach is named with its place and a better one. That of
// administration was the default once: it is a warning for versions that serve places of old.
TEST(DaemonPlacesTest, OperatorsSocketsAreOutOfClientsReach) {
  const auto parsed = [](const std::string& text) {
    const auto config = ParseConfig("[broker]\nsocket = \"/a/clients/b.sock\"\n" + text, "f.toml");
    EXPECT_TRUE(config.ok()) << config.status();
    return WithDefaults(*config);
  };
  const Config fine = parsed("");
  EXPECT_EQ(fine.admin_socket, "/a-admin/admin.sock");
  EXPECT_EQ(fine.monitor_socket, "/a-admin/monitor.sock");
  EXPECT_TRUE(OldPlaces(fine).empty());
  EXPECT_TRUE(CheckConfig(fine, false).ok());
  for (const char* near : {"/a/clients/admin.sock", "/a/admin.sock"}) {
    const Config config = parsed(std::string("admin_socket = \"") + near + "\"\n");
    EXPECT_EQ(config.monitor_socket, "/a-admin/monitor.sock") << "never in the clients' reach";
    EXPECT_TRUE(CheckConfig(config, true).ok());
    const std::vector<std::string> told = OldPlaces(config);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_TRUE(told[0].starts_with("f.toml:3:16: key \"admin_socket\"")) << told[0];
    for (const char* part : {near, "container", "/a-admin/admin.sock"})
      EXPECT_NE(told[0].find(part), std::string::npos) << told[0];
    EXPECT_EQ(CheckConfig(config, false).message(), told[0]);
  }
  const absl::Status refused =
      CheckConfig(parsed("monitor_socket = \"/a/clients/m.sock\"\n"), true);
  EXPECT_TRUE(std::string(refused.message()).starts_with("f.toml:3:18: key \"monitor_socket\""))
      << refused;
  Config flags;
  flags.socket = "/a/b.sock";
  flags.admin_socket = "/a/admin.sock";
  EXPECT_TRUE(OldPlaces(WithDefaults(flags))[0].starts_with("--admin-socket is \"/a/admin.sock\""));
}

// A file that names the socket and not the admin socket is told that this one has moved.
TEST(DaemonPlacesTest, MovedDefaultsAreNamed) {
  const auto moved = [](const std::string& broker) {
    const auto config = ParseConfig("[broker]\n" + broker, "f.toml");
    EXPECT_TRUE(config.ok()) << config.status();
    return MovedDefaults(WithDefaults(*config));
  };
  const std::vector<std::string> told = moved("socket = \"/srv/a/b.sock\"\n");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with("f.toml:2:10: key \"admin_socket\"")) << told[0];
  for (const char* part : {"/srv/a/admin.sock", "/srv/a-admin/admin.sock"})
    EXPECT_NE(told[0].find(part), std::string::npos) << told[0];
  EXPECT_TRUE(moved("").empty());
  EXPECT_TRUE(moved("socket = \"/srv/clients/b.sock\"\n").empty()) << "written for today";
  EXPECT_TRUE(moved("socket = \"/srv/a/b.sock\"\nadmin_socket = \"/x/y.sock\"\n").empty());
}

// A user who names the default of old gets today's, with a warning; and so do programs, by the
// link.
TEST(DaemonPlacesTest, TheOldDefaultLeadsToTodays) {
  const std::string old = OldClientNameOf(DefaultLocalName());
  const auto parsed = ParseConfig("[broker]\nsocket = \"" + old + "\"\n", "f.toml");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Config config = WithDefaults(*parsed);
  EXPECT_EQ(config.socket, DefaultLocalName());
  EXPECT_EQ(config.admin_socket, AdminNameOf(DefaultLocalName()));
  ASSERT_EQ(OldPlaces(config).size(), 1u);
  EXPECT_TRUE(OldPlaces(config)[0].starts_with("f.toml:2:10: key \"socket\""))
      << OldPlaces(config)[0];
  EXPECT_NE(OldPlaces(config)[0].find(DefaultLocalName()), std::string::npos);
  EXPECT_TRUE(CheckConfig(config, true).ok());
  EXPECT_FALSE(CheckConfig(config, false).ok());
}

}  // namespace
}  // namespace sluice::broker
