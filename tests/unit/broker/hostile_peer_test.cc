// SPDX-License-Identifier: Apache-2.0
//
// Clients and workers that lie: the liar loses its connection or session, nobody else notices, and
// the broker keeps no descriptor of it.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "broker/base/peer_version.h"
#include "broker/event_loop.h"
#include "broker/os/local_socket.h"
#include "tests/unit/broker/broker_process.h"

namespace sluice::broker {
namespace {

class HostilePeerTest : public testing::Test {
 protected:
  // A client that does everything right gets its session.
  static void ExpectServing(const BrokerProcess& broker) {
    TestClient client(broker.socket());
    wire::Welcome welcome;
    ASSERT_TRUE(client.Greet(&welcome)) << broker.Log();
    wire::SessionOpened opened;
    const os::UniqueFd channel = client.Open(&opened);
    ASSERT_TRUE(channel.valid()) << opened.message;
    EXPECT_NE(DescribeWorker(channel.get()), "");
  }

  // The broker closes descriptors a moment after its peer sees the end: wait until it has `count`.
  static bool SettlesAt(const BrokerProcess& broker, int count) {
    const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
    while (broker.CountOpenDescriptors() != count) {
      if (MonotonicMs() > deadline_ms) return false;
    }
    return true;
  }

  TestDirectory directory_;
};

// Each malformed message closes its connection, with one log line, and leaks nothing.
TEST_F(HostilePeerTest, MalformedMessagesCloseTheConnection) {
  BrokerProcess broker(directory_, {});
  ExpectServing(broker);
  const auto greet = [](TestClient* client) {
    wire::Welcome welcome;
    return client->Greet(&welcome);
  };
  const std::vector<std::pair<const char*, std::function<bool(TestClient*)>>> attacks = {
      {"one byte", [](TestClient* c) { return c->SendBytes("x", 1); }},
      {"larger than any message",
       [](TestClient* c) { return c->SendBytes(std::string(5000, 'x').data(), 5000); }},
      {"session before hello",
       [](TestClient* c) { return c->Send(wire::MakeMessage<wire::OpenSession>()); }},
      {"gateway's message",
       [](TestClient* c) { return c->Send(wire::MakeMessage<wire::GatewayHello>()); }},
      {"wrong magic",
       [](TestClient* c) {
         auto hello = wire::MakeMessage<wire::Hello>();
         hello.header.magic = 0;
         return c->Send(hello);
       }},
      {"unterminated name",
       [](TestClient* c) {
         auto hello = wire::MakeMessage<wire::Hello>();
         std::memset(hello.process_name, 'x', sizeof(hello.process_name));
         return c->Send(hello);
       }},
      {"unterminated features",
       [](TestClient* c) {
         auto hello = wire::MakeMessage<wire::Hello>();
         std::memset(hello.features, 'x', sizeof(hello.features));
         return c->Send(hello);
       }},
      {"second hello",
       [&](TestClient* c) { return greet(c) && c->Send(wire::MakeMessage<wire::Hello>()); }},
      {"unknown flags",
       [&](TestClient* c) {
         auto open = wire::MakeMessage<wire::OpenSession>();
         open.flags = 0x80;
         return greet(c) && c->Send(open);
       }},
      {"reserved field",
       [&](TestClient* c) {
         auto open = wire::MakeMessage<wire::OpenSession>();
         open.reserved = 1;
         return greet(c) && c->Send(open);
       }},
      {"descriptors",
       [](TestClient* c) {
         const auto hello = wire::MakeMessage<wire::Hello>();
         const int fds[] = {STDERR_FILENO, STDERR_FILENO};
         const absl::Status sent = os::SendMessage(c->socket(), &hello, sizeof(hello), fds, 2);
         // From Linux 6.16 on the kernel refuses them, here in the sender's face.
         return sent.ok() || (absl::IsPermissionDenied(sent) && c->SendBytes("x", 1));
       }},
  };
  // The stand-in's session above has ended when the count settles at what an idle broker has.
  TestClient idle(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(idle.Greet(&welcome));
  ASSERT_TRUE(broker.WaitForLog("session ended"));
  const int before = broker.CountOpenDescriptors();
  for (const auto& [name, attack] : attacks) {
    SCOPED_TRACE(name);
    TestClient client(broker.socket());
    ASSERT_TRUE(client.connected());
    ASSERT_TRUE(attack(&client));
    EXPECT_TRUE(client.IsClosedByPeer());
    EXPECT_TRUE(SettlesAt(broker, before)) << broker.CountOpenDescriptors() << " not " << before;
  }
  const std::string log = broker.Log();
  size_t lines = 0;
  for (size_t at = log.find("connection closed"); at != std::string::npos;
       at = log.find("connection closed", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, attacks.size()) << log;
  wire::SessionOpened opened;
  EXPECT_TRUE(idle.Open(&opened).valid());
}

// A client that asks for what this daemon does not know is told by which version, and what to do.
TEST_F(HostilePeerTest, PeerOfAnotherVersionIsTold) {
  BrokerProcess broker(directory_, {});
  ExpectServing(broker);
  TestClient newer(broker.socket());
  char hello[sizeof(wire::Hello) + 8] = {};
  const wire::MessageHeader header = {
      wire::kBrokerMagic, static_cast<uint16_t>(wire::MessageType::kHello), sizeof(hello)};
  std::memcpy(hello, &header, sizeof(header));
  ASSERT_TRUE(newer.SendBytes(hello, sizeof(hello)));
  wire::Welcome welcome;
  ASSERT_TRUE(newer.Receive(&welcome));
  EXPECT_NE(welcome.status, 0);
  EXPECT_TRUE(absl::StrContains(welcome.message, VersionAdvice("daemon", "client", "")))
      << welcome.message;
  EXPECT_TRUE(newer.IsClosedByPeer());

  TestClient client(broker.socket());
  auto greeting = wire::MakeMessage<wire::Hello>();
  wire::SetString(greeting.features, "sync,version:7.8.9");
  ASSERT_TRUE(client.Send(greeting));
  os::UniqueFd snapshot;
  ASSERT_TRUE(client.Receive(&welcome, &snapshot));
  EXPECT_EQ(VersionIn(welcome.features), VersionIn(VersionFeature())) << welcome.features;
  wire::SessionOpened opened;
  client.Open(&opened, 0x80);
  EXPECT_NE(opened.status, 0);
  EXPECT_TRUE(absl::StrContains(opened.message, VersionAdvice("daemon", "client", "7.8.9")))
      << opened.message;
  EXPECT_TRUE(client.IsClosedByPeer());
}

// A client that asks and never reads is cut off, and others go on being served.
TEST_F(HostilePeerTest, ClientThatNeverReadsIsCutOff) {
  BrokerProcess broker(directory_, {.arguments = {},
                                    .config = "[limits]\nmax_sessions_per_user = 2\n"
                                              "[broker]\nkill_grace_ms = 10\n"});
  {
    TestClient client(broker.socket());
    const auto hello = wire::MakeMessage<wire::Hello>();
    ASSERT_TRUE(client.Send(hello));
    const auto open = wire::MakeMessage<wire::OpenSession>();
    bool alive = true;
    for (int i = 0; i < 100'000 && alive; ++i) alive = client.Send(open);
    EXPECT_FALSE(alive) << "the broker took 100000 requests without an answer being read";
  }
  const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
  os::UniqueFd channel;
  while (!channel.valid() && MonotonicMs() < deadline_ms) {
    TestClient client(broker.socket());
    wire::Welcome welcome;
    ASSERT_TRUE(client.Greet(&welcome)) << broker.Log();
    wire::SessionOpened opened;
    channel = client.Open(&opened);
  }
  EXPECT_TRUE(channel.valid());
}

// Connections beyond the limit are told so, and those within it are not disturbed.
TEST_F(HostilePeerTest, ConnectionLimitHolds) {
  BrokerProcess broker(directory_,
                       {.arguments = {}, .config = "[limits]\nmax_connections_per_user = 2\n"});
  TestClient first(broker.socket());
  TestClient second(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(first.Greet(&welcome));
  ASSERT_TRUE(second.Greet(&welcome));
  TestClient third(broker.socket());
  ASSERT_TRUE(third.Greet(&welcome));
  EXPECT_EQ(welcome.status, EBUSY);
  EXPECT_TRUE(third.IsClosedByPeer());
  wire::SessionOpened opened;
  EXPECT_TRUE(first.Open(&opened).valid());
}

// A worker that breaks the control protocol, or floods it, is ended; the next session is served.
TEST_F(HostilePeerTest, MisbehavingWorkersAreEnded) {
  for (const char* mode : {"garbage ignore", "flood", "takes-memory", "returns-memory"}) {
    BrokerProcess broker(directory_, {.worker_mode = mode});
    TestClient client(broker.socket());
    wire::Welcome welcome;
    ASSERT_TRUE(client.Greet(&welcome));
    wire::SessionOpened opened;
    const os::UniqueFd channel = client.Open(&opened);
    ASSERT_TRUE(channel.valid());
    EXPECT_TRUE(WaitForEndOfFile(channel.get())) << mode;
    EXPECT_NE(broker.Log().find("worker broke the control protocol"), std::string::npos);
    EXPECT_TRUE(client.Open(&opened).valid());
  }
}

// A worker's report of its client is one log line with the session's id, however it is written, and
// is not lost when the worker exits right after it.
TEST_F(HostilePeerTest, ViolationNoticesAreOneLine) {
  for (const char* mode : {"violate", "last-words"}) {
    SCOPED_TRACE(mode);
    TestDirectory directory;
    BrokerProcess broker(directory, {.worker_mode = mode});
    TestClient client(broker.socket());
    wire::Welcome welcome;
    ASSERT_TRUE(client.Greet(&welcome));
    wire::SessionOpened opened;
    os::UniqueFd channel = client.Open(&opened);
    ASSERT_TRUE(channel.valid());
    ASSERT_EQ(::shutdown(channel.get(), SHUT_WR), 0);
    ASSERT_TRUE(broker.WaitForLog("session ended")) << broker.Log();
    char id[17];
    std::snprintf(id, sizeof(id), "%016llx", static_cast<unsigned long long>(opened.session_id));
    EXPECT_NE(broker.Log().find("worker msg=\"client sent a frame of\\nno known kind\" session=" +
                                std::string(id) + " kind=violation"),
              std::string::npos)
        << broker.Log();
  }
}

}  // namespace
}  // namespace sluice::broker
