// SPDX-License-Identifier: Apache-2.0
// A session over the network, from the client's transport through the real gateway to a worker.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "broker/base/peer_version.h"
#include "client_icd/remote/remote_channel.h"
#include "tests/unit/gateway/gateway_process.h"

namespace sluice::gateway {
namespace {

// Above this the gateway would be keeping what it should pass on. Sanitizers need room of their
// own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kPeakMemory = 1500 << 20;
#else
constexpr uint64_t kPeakMemory = 160 << 20;
#endif

// Commands and answers of every size pass both ways, whole and in order.
TEST(NetworkSessionTest, PassesFramesBothWays) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  uint64_t sequence = 0;
  for (const size_t bytes : {0u, 1u, 1000u, 65'536u, 70'000u, 5'000'000u}) {
    ExpectWorks(client.get(), worker.get(), ++sequence);
    const std::string payload = Pattern(bytes);
    ASSERT_TRUE(SendCommand(client.get(), ++sequence, "message", payload));
    // Larger than the ring: the worker must take it while it comes.
    const wire::Frame command = worker->TakeCommand();
    EXPECT_EQ(command.payload(), payload);
    wire::Frame frame;
    std::thread sender([&worker = worker, sequence, &payload] {
      worker->Send(AnswerTo(sequence), 0, {}, payload);
    });
    ASSERT_TRUE(AwaitFrame(client.get(), &frame));
    sender.join();
    EXPECT_EQ(frame.payload(), payload);
  }
}

// A stream of small commands arrives complete, in order, without anyone waiting for answers.
TEST(NetworkSessionTest, PassesBurstsOn) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  constexpr uint64_t kCommands = 20'000;
  std::thread sender([&client = client] {
    for (uint64_t i = 1; i <= kCommands; ++i) ASSERT_TRUE(SendCommand(client.get(), i, "small"));
  });
  for (uint64_t i = 1; i <= kCommands; ++i) ASSERT_EQ(worker->TakeCommand().header().sequence, i);
  sender.join();
}

// A single command reaches the worker although its sender neither waits nor sends more.
TEST(NetworkSessionTest, LoneCommandGoesOutAtOnce) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  for (uint64_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(SendCommand(client.get(), i, "lone"));
    EXPECT_EQ(worker->TakeCommand().header().sequence, i);
  }
}

// The bytes of a granted transfer lie in the worker's heap before it hears of them.
TEST(NetworkSessionTest, WritesIntoTheHeap) {
  constexpr size_t kBytes = 6 << 20;
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  const TestMemory segment(kBytes + 4096);
  worker->OfferSegment(1, segment, kBytes + 4096);
  v1::Reply reply;
  reply.mutable_grant()->set_event_id(9);
  reply.mutable_grant()->set_size(kBytes);
  worker->Send(reply, wire::kFrameGrant, {1, 4096, kBytes});
  wire::Frame frame;
  ASSERT_TRUE(AwaitFrame(client.get(), &frame));
  EXPECT_EQ(frame.bulk().segment, 0u);
  const std::string bytes = Pattern(kBytes);
  constexpr size_t kChunk = 1 << 20;
  for (size_t at = 0; at < kBytes; at += kChunk) {
    ASSERT_TRUE(SendCommand(client.get(), at / kChunk + 1, ChunkMessage(9, at, kChunk),
                            std::string_view(bytes).substr(at, kChunk), wire::kFrameTransferChunk));
  }
  for (size_t at = 0; at < kBytes; at += kChunk) {
    const wire::Frame chunk = worker->TakeCommand();
    EXPECT_EQ(chunk.payload().size(), 0u);
    EXPECT_EQ(chunk.bulk().offset, 4096 + at);
    ASSERT_EQ(std::string_view(reinterpret_cast<char*>(segment.data()) + 4096 + at, kChunk),
              std::string_view(bytes).substr(at, kChunk));
  }
}

// Memory that the worker lets a client read comes along with the frames, all of it.
TEST(NetworkSessionTest, ReadsFromTheHeap) {
  constexpr size_t kBytes = 7'000'001;
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  const TestMemory segment(8 << 20);
  const std::string bytes = Pattern(kBytes);
  std::memcpy(segment.data() + 8192, bytes.data(), kBytes);
  worker->OfferSegment(1, segment, 8 << 20);
  v1::Reply reply;
  reply.mutable_read_data()->set_event_id(9);
  reply.mutable_read_data()->set_size(kBytes);
  worker->Send(reply, wire::kFrameReadData, {1, 8192, kBytes});
  std::string got;
  while (got.size() < kBytes) {
    wire::Frame frame;
    ASSERT_TRUE(AwaitFrame(client.get(), &frame)) << client->lost_reason();
    v1::Reply part;
    ASSERT_TRUE(part.ParseFromString(std::string(frame.message())));
    EXPECT_EQ(part.read_data().offset(), got.size());
    got += frame.payload();
  }
  EXPECT_EQ(got, bytes);
}

// A worker that takes its time makes the client wait; the gateway keeps no more than a few
// messages.
TEST(NetworkSessionTest, SlowWorkerSlowsTheClient) {
  constexpr int kFrames = 300;
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  const std::string payload = Pattern(1 << 20);
  std::atomic<int> sent{0};
  std::thread sender([&, client = client.get()] {
    for (int i = 1; i <= kFrames; ++i) {
      ASSERT_TRUE(SendCommand(client, i, "large", payload));
      sent.store(i);
      sent.notify_all();
    }
  });
  // More than the ring holds is under way before the worker takes anything.
  for (int seen = 0; seen < 4; seen = sent.load()) sent.wait(seen);
  for (int i = 1; i <= kFrames; ++i) {
    const wire::Frame frame = worker->TakeCommand();
    ASSERT_EQ(frame.header().sequence, static_cast<uint64_t>(i));
    ASSERT_EQ(frame.payload(), payload);
  }
  sender.join();
  EXPECT_LT(gateway.PeakMemoryBytes(), kPeakMemory);
}

// A client that takes its time leaves the replies in the worker's ring, not in the gateway.
TEST(NetworkSessionTest, SlowClientSlowsTheWorker) {
  constexpr int kFrames = 300;
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  const std::string payload = Pattern(1 << 20);
  std::thread sender([&payload, worker = worker.get()] {
    for (int i = 1; i <= kFrames; ++i) worker->Send(AnswerTo(i), 0, {}, payload);
  });
  while (!worker->was_full()) std::this_thread::yield();
  for (int i = 1; i <= kFrames; ++i) {
    wire::Frame frame;
    ASSERT_TRUE(AwaitFrame(client.get(), &frame)) << client->lost_reason();
    ASSERT_EQ(frame.message(), AnswerTo(i).SerializeAsString());
    ASSERT_EQ(frame.payload(), payload);
  }
  sender.join();
  EXPECT_LT(gateway.PeakMemoryBytes(), kPeakMemory);
}

// A worker's last words arrive; then the session is lost, with the reason.
TEST(NetworkSessionTest, WorkersEndEndsTheSession) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  v1::Reply last;
  last.mutable_session_ended()->set_reason("so it was decided");
  worker->Send(last);
  worker->Die();
  wire::Frame frame;
  ASSERT_TRUE(AwaitFrame(client.get(), &frame));
  EXPECT_EQ(frame.message(), last.SerializeAsString());
  EXPECT_FALSE(AwaitFrame(client.get(), &frame));
  EXPECT_NE(client->lost_reason().find("worker has ended"), std::string::npos)
      << client->lost_reason();
  EXPECT_FALSE(SendCommand(client.get(), 1, "too late"));
}

// The client's end is the worker's, and nobody else's.
TEST(NetworkSessionTest, ClientsEndEndsTheWorker) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  auto [other_client, other_worker] = gateway.OpenSession();
  ASSERT_TRUE(client != nullptr && other_client != nullptr);
  client.reset();
  worker->AwaitClientsEnd();
  ExpectWorks(other_client.get(), other_worker.get(), 1);
}

// A killed gateway is noticed by a client that waits, and by one that sends.
TEST(NetworkSessionTest, GatewaysDeathEndsTheSession) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  gateway.Kill();
  wire::Frame frame;
  EXPECT_FALSE(AwaitFrame(client.get(), &frame));
  EXPECT_TRUE(client->lost());
  EXPECT_FALSE(SendCommand(client.get(), 1, "anyone?"));
}

// When the broker is gone the sessions go on, nobody new is taken, and with the last session the
// gateway ends.
TEST(NetworkSessionTest, OutlivesTheBroker) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  gateway.LoseBroker();
  while (client::RemoteTransport::Connect(gateway.endpoint(), std::chrono::seconds(30)).ok()) {
  }
  ExpectWorks(client.get(), worker.get(), 1);
  client.reset();
  EXPECT_TRUE(gateway.HasEnded(30'000));
}

// The broker may ask for the end: the sessions, and then the process, are over at once.
TEST(NetworkSessionTest, EndsWhenTold) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  ExpectWorks(client.get(), worker.get(), 1);
  gateway.TellToEnd();
  wire::Frame frame;
  EXPECT_FALSE(AwaitFrame(client.get(), &frame));
  worker->AwaitClientsEnd();
  EXPECT_TRUE(gateway.HasEnded(30'000));
}

// Why the broker opens no session is what the client hears.
TEST(NetworkSessionTest, RefusalReachesTheClient) {
  GatewayProcess::Options options;
  options.refuse_status = EMFILE;
  GatewayProcess gateway(options);
  const auto refused =
      client::RemoteTransport::Connect(gateway.endpoint(), std::chrono::seconds(30));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find(GatewayProcess::kRefusal), absl::string_view::npos)
      << refused.status();
}

// The platforms are described without a session.
TEST(NetworkSessionTest, DescribesPlatforms) {
  GatewayProcess gateway;
  const absl::StatusOr<std::string> snapshot =
      client::DescribePlatforms(gateway.endpoint(), std::chrono::seconds(30));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(*snapshot, GatewayProcess::kSnapshot);
}

// With the description comes the version of the daemon's release.
TEST(NetworkSessionTest, DaemonTellsItsVersion) {
  GatewayProcess gateway;
  std::string version;
  ASSERT_TRUE(
      client::DescribePlatforms(gateway.endpoint(), std::chrono::seconds(30), &version).ok());
  EXPECT_EQ(version, VersionIn(VersionFeature()));
}

// Where nobody listens, both ways to begin fail at once, and say where.
TEST(NetworkSessionTest, NobodyThere) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(client::DescribePlatforms("127.0.0.1:1", std::chrono::seconds(60)).ok());
  const auto session = client::RemoteTransport::Connect("127.0.0.1:1", std::chrono::seconds(60));
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.status().message().find("127.0.0.1:1"), absl::string_view::npos)
      << session.status();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// A sleeping application thread and the background thread are each woken by their bell.
TEST(NetworkSessionTest, InterruptWakesSleepers) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 50; ++i) {
    const uint32_t ticket = client->Arm(i % 2 == 0 ? wire::kSleepsLazily : wire::kSleepsEagerly, 0);
    std::thread background(
        [&client = client, ticket] { client->Wait(ticket, wire::kBitBackground); });
    std::thread waiter([&client = client, ticket] { client->Wait(ticket, wire::kBitWaiter); });
    client->Interrupt(i % 3 == 0 ? wire::kBitWaiter : wire::kBitBackground);
    client->Interrupt(wire::kBitWaiter | wire::kBitBackground);
    background.join();
    waiter.join();
  }
  ExpectWorks(client.get(), worker.get(), 1);
}

// The background thread takes replies when no application thread waits.
TEST(NetworkSessionTest, BackgroundThreadTakesReplies) {
  GatewayProcess gateway;
  auto [client, worker] = gateway.OpenSession();
  ASSERT_NE(client, nullptr);
  std::atomic<int> taken{0};
  std::thread background([&taken, client = client.get()] {
    wire::Frame frame;
    while (!client->lost()) {
      while (client->Receive(&frame)) {
        taken.fetch_add(1);
        taken.notify_all();
      }
      client->Wait(client->Arm(wire::kSleepsLazily, 0), wire::kBitBackground);
    }
  });
  for (int i = 1; i <= 20; ++i) {
    worker->Send(AnswerTo(i));
    for (int seen = taken.load(); seen < i; seen = taken.load()) taken.wait(seen);
  }
  client->Lose("enough");
  background.join();
  EXPECT_EQ(taken.load(), 20);
}

}  // namespace
}  // namespace sluice::gateway
