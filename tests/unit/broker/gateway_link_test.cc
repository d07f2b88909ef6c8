// SPDX-License-Identifier: Apache-2.0
//
// The broker's side of a network entry, with a stand-in gateway.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "broker/os/process.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice::broker {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

class GatewayLinkTest : public testing::Test {
 protected:
  // A network entry whose gateway does `mode`.
  std::string Config(const std::string& mode, const std::string& more = "") {
    const std::string fifo = directory_.path() + "/fifo";
    EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    // Both ways, so that it never reads an end of file between two gateways.
    fifo_.reset(::open(fifo.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    std::ofstream(directory_.path() + "/tokens") << mode << " " << fifo << "\n";
    std::ofstream(directory_.path() + "/pem") << "x";
    return "[[network]]\nlisten = [\"127.0.0.1:7001\", \"127.0.0.1:7002\"]\ntoken_file = \"" +
           directory_.path() + "/tokens\"\n" + more;
  }

  std::string Report() { return ReadUntil(fifo_.get(), "end of report\n"); }

  TestDirectory directory_;
  os::UniqueFd fifo_;
};

// A gateway gets its addresses as arguments and its files as descriptors, and the snapshot on
// hello.
TEST_F(GatewayLinkTest, GatewayIsStartedWithItsEntry) {
  const std::string pem = directory_.path() + "/pem";
  BrokerProcess broker(directory_,
                       {.arguments = {},
                        .config = Config("idle", "certificate = \"" + pem + "\"\nkey = \"" + pem +
                                                     "\"\nclient_ca = \"" + pem + "\"\n")});
  const std::string report = Report();
  for (const char* line : {"arg --listen=127.0.0.1:7001\n", "arg --listen=127.0.0.1:7002\n",
                           "arg --cert-fd=5\n", "arg --key-fd=6\n", "arg --client-ca-fd=7\n",
                           "arg --token-fd=8\n", "welcome stand-in snapshot\n"}) {
    EXPECT_NE(report.find(line), std::string::npos) << "missing " << line << " in\n" << report;
  }
  EXPECT_EQ(report.find("--allow-plaintext"), std::string::npos);
}

// A gateway's own memory is bounded by its entry.
TEST_F(GatewayLinkTest, GatewayHasWhatItsEntrySays) {
  if (kHasSanitizer) GTEST_SKIP() << "a sanitizer's memory would count";
  BrokerProcess broker(directory_,
                       {.arguments = {}, .config = Config("idle", "memory_bytes = \"777MiB\"\n")});
  const std::string report = Report();
  EXPECT_NE(report.find("data " + std::to_string(777 << 20) + "\n"), report.npos) << report;
}

// Where the entry says nothing, by half of the machine's.
TEST_F(GatewayLinkTest, GatewayHasHalfOfTheMachines) {
  if (kHasSanitizer) GTEST_SKIP() << "a sanitizer's memory would count";
  BrokerProcess broker(directory_, {.arguments = {}, .config = Config("idle")});
  const std::string report = Report();
  const std::string half = std::to_string(os::MachineMemoryBytes() / 2);
  EXPECT_NE(report.find("data " + half + "\n"), report.npos) << report;
}

// Sessions for network peers are opened with their handle channels, and counted against their
// limit.
TEST_F(GatewayLinkTest, GatewayOpensSessions) {
  BrokerProcess broker(directory_, {.arguments = {},
                                    .config = Config("open3",
                                                     "allow_plaintext = true\n"
                                                     "[limits]\nmax_network_sessions = 2\n")});
  const std::string report = Report();
  EXPECT_NE(report.find("arg --allow-plaintext\n"), std::string::npos);
  EXPECT_NE(report.find("session 100 status 0 channels 1\n"), std::string::npos) << report;
  EXPECT_NE(report.find("session 101 status 0 channels 1\n"), std::string::npos) << report;
  EXPECT_NE(report.find("session 102 status " + std::to_string(EMFILE) + " channels 0\n"),
            std::string::npos)
      << report;
  // A local user is not in their way.
  TestClient client(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(client.Greet(&welcome));
  wire::SessionOpened opened;
  EXPECT_TRUE(client.Open(&opened).valid());
}

// A gateway that has keys of signed tokens says on which terms a session is.
TEST_F(GatewayLinkTest, TermsTakeAKey) {
  const std::string pem = directory_.path() + "/pem";
  BrokerProcess broker(
      directory_, {.arguments = {}, .config = Config("terms", "token_key = \"" + pem + "\"\n")});
  const std::string report = Report();
  EXPECT_NE(report.find("session 100 status 0 channels 1\n"), std::string::npos) << report;
  EXPECT_NE(report.find("session 101 status " + std::to_string(EMFILE) + " channels 0\n"),
            std::string::npos)
      << report;
}

// Nor does it become a local client, with another identity's limits, or leave a process to be one.
TEST_F(GatewayLinkTest, GatewaysAreNoClients) {
  BrokerProcess broker(directory_, {.arguments = {}, .config = Config("connect")});
  const std::string report = Report();
  const std::string refused = "status " + std::to_string(EACCES) + "\n";
  EXPECT_NE(report.find("\n" + refused), std::string::npos) << report;
  EXPECT_NE(report.find("stays " + refused), std::string::npos) << report;
}

// A gateway that the network has taken over does not write into the daemon's log: its words are
// logged as its own.
TEST_F(GatewayLinkTest, OutputIsToldAsTheGateways) {
  BrokerProcess broker(directory_, {.arguments = {}, .config = Config("say")});
  EXPECT_NE(Report().find("welcome"), std::string::npos);
  ASSERT_TRUE(broker.WaitForLog("not cut")) << broker.Log();
  const std::string log = broker.Log();
  EXPECT_EQ(log.find("\n2026-11-22T00:00:00.000Z"), std::string::npos) << log;
  const std::string whose = "gateway msg=output listen=127.0.0.1:7001,127.0.0.1:7002 ";
  for (const std::string& line :
       {"Z info " + whose + "text=\"2026-11-22T00:00:00.000Z error broker msg=forged\"",
        "Z warning " + whose + "text=\"msg=real a=b\""}) {
    EXPECT_NE(log.find(line), std::string::npos) << "missing " << line << " in\n" << log;
  }
}

// A gateway that dies, or breaks the protocol, is started again; the broker serves on meanwhile.
TEST_F(GatewayLinkTest, DeadGatewayIsStartedAgain) {
  // Terms of a session are garbage from one that has no keys of signed tokens.
  for (const char* mode : {"die", "garbage", "terms-unasked"}) {
    SCOPED_TRACE(mode);
    ::unlink((directory_.path() + "/fifo").c_str());
    BrokerProcess broker(directory_, {.arguments = {}, .config = Config(mode)});
    EXPECT_NE(Report().find("welcome"), std::string::npos);
    EXPECT_NE(Report().find("welcome"), std::string::npos) << "no second gateway came";
    TestClient client(broker.socket());
    wire::Welcome welcome;
    EXPECT_TRUE(client.Greet(&welcome));
    broker.Signal(SIGTERM);
    EXPECT_EQ(broker.WaitForExit().code, 0);
  }
}

}  // namespace
}  // namespace sluice::broker
