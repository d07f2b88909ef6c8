// SPDX-License-Identifier: Apache-2.0
// Clients and workers that lie to the real gateway: each ends its own session, while another one
// goes on.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/base/peer_version.h"
#include "broker/os/local_socket.h"
#include "client_icd/remote/remote_channel.h"
#include "proto/control.pb.h"
#include "proto/handle_messages.h"
#include "tests/unit/gateway/gateway_process.h"

namespace sluice::gateway {
namespace {

// A client that sends what it likes.
class RawClient {
 public:
  RawClient(const std::string& endpoint, const std::string& method) {
    EXPECT_TRUE(client::PrepareGrpc().ok());
    grpc::GenericStub stub(client::MakeChannel(endpoint, {}));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = stub.PrepareCall(&context_, method, &queue_);
    stream_->StartCall(nullptr);
    Next();
  }
  ~RawClient() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  bool Write(const std::string& message) {
    const grpc::Slice slice(message);
    stream_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    return Next();
  }
  // `features`: one, or none; `opened`: the answer.
  bool Open(uint32_t flags = 0, const std::string& features = "",
            v1::SessionOpened* opened = nullptr) {
    v1::ClientMessage open;
    open.mutable_open()->set_process_name("raw");
    open.mutable_open()->set_flags(flags);
    if (!features.empty()) open.mutable_open()->add_features(features);
    std::string answer;
    if (!Write(open.SerializeAsString()) || !Read(&answer)) return false;
    return opened == nullptr || opened->ParseFromString(answer);
  }
  bool Read(std::string* message) {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, nullptr);
    if (!Next()) return false;
    wire::MessageReader reader;
    uint32_t field = 0;
    if (!reader.Reset(buffer)) return false;
    if (reader.NextField(&field) == wire::MessageReader::Step::kField) *message = reader.Rest();
    return true;
  }
  // Reads to the end; how the server ended the call.
  grpc::Status AwaitEnd() {
    std::string message;
    while (Read(&message)) {
    }
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Next();
    return status;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

constexpr char kStream[] = "/sluice.v1.Session/Stream";

class NetworkHostileTest : public testing::Test {
 protected:
  NetworkHostileTest() { std::tie(bystander_, bystander_worker_) = gateway_.OpenSession(); }
  void TearDown() override {
    ASSERT_NE(bystander_, nullptr);
    ExpectWorks(bystander_.get(), bystander_worker_.get(), 1);
  }

  GatewayProcess gateway_;
  std::unique_ptr<client::RemoteTransport> bystander_;
  std::unique_ptr<PlayedWorker> bystander_worker_;
};

// Pieces that make no frame end the session that sent them, with INVALID_ARGUMENT, and its worker.
TEST_F(NetworkHostileTest, MalformedPiecesEndTheirSession) {
  const wire::PieceHeader lies[] = {{1000, wire::kPieceFirst | wire::kPieceLast},
                                    {8, wire::kPieceLast},
                                    {0xffffffff, wire::kPieceFirst},
                                    {64, 77}};
  for (const wire::PieceHeader& lie : lies) {
    RawClient client(gateway_.endpoint(), kStream);
    ASSERT_TRUE(client.Open());
    const std::unique_ptr<PlayedWorker> worker = gateway_.TakeWorker();
    std::string pieces(reinterpret_cast<const char*>(&lie), sizeof(lie));
    pieces.append(64, 'x');
    ASSERT_TRUE(client.Write(PiecesMessage(pieces)));
    EXPECT_EQ(client.AwaitEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    worker->AwaitClientsEnd();
  }
}

// A message that is no message ends its session, as the first one and as a later one.
TEST_F(NetworkHostileTest, MalformedMessagesEndTheirSession) {
  RawClient first(gateway_.endpoint(), kStream);
  ASSERT_TRUE(first.Write("\x0a\xff\xff\xff\x7f"));
  EXPECT_EQ(first.AwaitEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  RawClient later(gateway_.endpoint(), kStream);
  ASSERT_TRUE(later.Open());
  ASSERT_TRUE(later.Write("\x12\xff\xff\xff\x7f"));
  EXPECT_EQ(later.AwaitEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// A stream that does not begin with `open`, or with flags that the gateway does not know, starts no
// worker.
TEST_F(NetworkHostileTest, ImproperOpenStartsNoWorker) {
  RawClient pieces(gateway_.endpoint(), kStream);
  ASSERT_TRUE(pieces.Write(PiecesMessage(FrameBytes("x", ""))));
  EXPECT_EQ(pieces.AwaitEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  RawClient flags(gateway_.endpoint(), kStream);
  EXPECT_FALSE(flags.Open(0x80));
  EXPECT_EQ(flags.AwaitEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// A client that tells its version is told the daemon's; one that tells none, as all did once, or
// what is none, is served as ever. A client that asks for a feature unknown to this daemon reads
// both.
TEST_F(NetworkHostileTest, VersionsAreTold) {
  v1::SessionOpened opened;
  RawClient newer(gateway_.endpoint(), kStream);
  ASSERT_TRUE(newer.Open(0, "version:7.8.9", &opened));
  EXPECT_EQ(VersionAmong(opened.features()), VersionIn(VersionFeature()));
  EXPECT_NE(gateway_.TakeWorker(), nullptr);
  for (const char* features : {"", "version:7.8\n9", "sync"}) {
    RawClient older(gateway_.endpoint(), kStream);
    ASSERT_TRUE(older.Open(0, features, &opened)) << features;
    EXPECT_EQ(opened.features_size(), 0) << features;
    EXPECT_NE(gateway_.TakeWorker(), nullptr);
  }
  RawClient demanding(gateway_.endpoint(), kStream);
  EXPECT_FALSE(demanding.Open(0x80, "version:7.8.9"));
  EXPECT_EQ(demanding.AwaitEnd().error_message(),
            "unknown session flags 128; " + VersionAdvice("daemon", "client", "7.8.9"));
}

// A message larger than allowed is refused before it is kept.
TEST_F(NetworkHostileTest, OversizedMessageEndsItsSession) {
  RawClient client(gateway_.endpoint(), kStream);
  ASSERT_TRUE(client.Open());
  client.Write(std::string(6 << 20, '\x12'));
  EXPECT_EQ(client.AwaitEnd().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// A client that leaves while its session is being opened leaves nothing behind: its worker ends.
TEST_F(NetworkHostileTest, EarlyExitLeavesNothing) {
  for (int i = 0; i < 20; ++i) {
    std::unique_ptr<PlayedWorker> worker;
    {
      RawClient client(gateway_.endpoint(), kStream);
      v1::ClientMessage open;
      open.mutable_open();
      ASSERT_TRUE(client.Write(open.SerializeAsString()));
      worker = gateway_.TakeWorker();
    }
    worker->AwaitClientsEnd();
  }
}

// As above, where the client leaves before the worker has offered anything.
TEST(NetworkSlowWorkerTest, EarlyExitLeavesNothing) {
  GatewayProcess::Options options;
  options.offer_rings = false;
  GatewayProcess gateway(options);
  for (int i = 0; i < 5; ++i) {
    std::unique_ptr<PlayedWorker> worker;
    {
      RawClient client(gateway.endpoint(), kStream);
      v1::ClientMessage open;
      open.mutable_open();
      ASSERT_TRUE(client.Write(open.SerializeAsString()));
      worker = gateway.TakeWorker();
    }
    worker->OfferRings();
    worker->AwaitClientsEnd();
  }
}

// Methods that do not exist are answered as such; health is answered.
TEST_F(NetworkHostileTest, OtherMethods) {
  RawClient unknown(gateway_.endpoint(), "/sluice.v1.Session/Format");
  EXPECT_EQ(unknown.AwaitEnd().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  RawClient health(gateway_.endpoint(), "/grpc.health.v1.Health/Check");
  ASSERT_TRUE(health.Write(""));
  EXPECT_TRUE(health.AwaitEnd().ok());
}

// A worker whose reply ring makes no sense ends its own session.
TEST_F(NetworkHostileTest, TamperedReplyRingEndsItsSession) {
  auto [client, worker] = gateway_.OpenSession();
  ASSERT_NE(client, nullptr);
  worker->reply_ring()->produced.store(uint64_t{1} << 50);
  worker->reply_ring()->bell.fetch_add(1);
  wire::Frame frame;
  EXPECT_FALSE(AwaitFrame(client.get(), &frame));
  worker->AwaitClientsEnd();
}

// A worker that grants or sends memory it has not shown ends its own session.
TEST_F(NetworkHostileTest, ForgedSpansEndTheirSession) {
  for (const uint32_t flags : {wire::kFrameGrant, wire::kFrameReadData}) {
    auto [client, worker] = gateway_.OpenSession();
    ASSERT_NE(client, nullptr);
    const TestMemory segment(1 << 20);
    worker->OfferSegment(1, segment, 1 << 20);
    v1::Reply reply;
    if (flags == wire::kFrameGrant) {
      reply.mutable_grant()->set_size(4096);
    } else {
      reply.mutable_read_data()->set_size(4096);
    }
    worker->Send(reply, flags, {1, (1 << 20) - 100, 4096});
    wire::Frame frame;
    EXPECT_FALSE(AwaitFrame(client.get(), &frame));
    worker->AwaitClientsEnd();
  }
}

// A worker that offers memory it could still shrink, or that sends garbage on the handle channel,
// ends its own session.
TEST_F(NetworkHostileTest, UnsafeSegmentEndsItsSession) {
  auto [client, worker] = gateway_.OpenSession();
  ASSERT_NE(client, nullptr);
  const os::UniqueFd unsealed(::memfd_create("unsealed", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 1 << 20), 0);
  wire::HandleMessage offer = {
      wire::kHandleMagic, wire::HandleMessageType::kHeapSegment, 1 << 20, 1, 0, 0};
  const int fd = unsealed.get();
  ASSERT_TRUE(os::SendMessage(worker->channel(), &offer, sizeof(offer), &fd, 1).ok());
  wire::Frame frame;
  EXPECT_FALSE(AwaitFrame(client.get(), &frame));

  auto [second_client, second_worker] = gateway_.OpenSession();
  ASSERT_NE(second_client, nullptr);
  ASSERT_TRUE(os::SendMessage(second_worker->channel(), "garbage", 7).ok());
  EXPECT_FALSE(AwaitFrame(second_client.get(), &frame));
}

// Speaks HTTP/2 as far as it takes to open streams, and acknowledges no settings.
class Http2Client {
 public:
  // `settings`: the body of its SETTINGS frame.
  Http2Client(const std::string& endpoint, const std::string& settings) {
    const size_t colon = endpoint.rfind(':');
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(endpoint.substr(colon + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, settings));
  }

  static constexpr uint8_t kHeaders = 1, kReset = 3, kPing = 6;

  // So many streams with `path`, whose client has more to say; returns when the gateway has seen
  // them. False: it did not take them.
  bool OpenStreams(int count, const std::string& path) {
    const std::string headers = Literal(":method", "POST") + Literal(":scheme", "http") +
                                Literal(":path", path) + Literal(":authority", "a") +
                                Literal("te", "trailers") +
                                Literal("content-type", "application/grpc");
    std::string frames;
    for (int i = 0; i < count; ++i, stream_ += 2)
      frames += Frame(kHeaders, kEndHeaders, stream_, headers);
    const std::string payload = absl::StrCat("ping", absl::Dec(stream_ % 10'000, absl::kZeroPad4));
    return Send(frames + Frame(kPing, 0, 0, payload)) && ReadUntil(kPing, payload);
  }
  // A message on the stream opened last; an empty one as its end.
  bool SendData(const std::string& message) {
    const std::string prefix =
        message.empty() ? "" : std::string(4, '\0') + static_cast<char>(message.size());
    return Send(Frame(kData, message.empty() ? kEndStream : 0, stream_ - 2, prefix + message));
  }
  // Reads on to a frame of a type that has `text` in it, for half a minute; answers pings
  // meanwhile.
  bool ReadUntil(uint8_t type, std::string_view text = {}) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (Buffer(kFrameHeaderBytes, deadline)) {
      const auto byte = [this](size_t at) { return static_cast<uint8_t>(unread_[at]); };
      const size_t size = kFrameHeaderBytes + (byte(0) << 16 | byte(1) << 8 | byte(2));
      if (!Buffer(size, deadline)) break;
      const uint8_t got = byte(3);
      const bool asks = got == kPing && byte(4) == 0;
      const std::string body = unread_.substr(kFrameHeaderBytes, size - kFrameHeaderBytes);
      unread_.erase(0, size);
      if (asks && !Send(Frame(kPing, kAck, 0, body))) break;
      if (got == type && !asks && body.find(text) != std::string::npos) return true;
    }
    return false;
  }

 private:
  static constexpr uint8_t kData = 0, kSettings = 4, kAck = 1, kEndStream = 1, kEndHeaders = 4;
  static constexpr size_t kFrameHeaderBytes = 9;

  static std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& body) {
    const auto byte = [](uint64_t value, int shift) { return static_cast<char>(value >> shift); };
    return std::string{byte(body.size(), 16), byte(body.size(), 8), byte(body.size(), 0),
                       byte(type, 0),         byte(flags, 0),       byte(stream, 24),
                       byte(stream, 16),      byte(stream, 8),      byte(stream, 0)} +
           body;
  }
  static std::string Literal(const std::string& name, const std::string& value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name +
           static_cast<char>(value.size()) + value;
  }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // False: so many bytes did not come.
  bool Buffer(size_t bytes, absl::Time deadline) {
    while (unread_.size() < bytes) {
      char buffer[65536];
      const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
      if (left_ms <= 0 || !os::WaitReadable(socket_.get(), static_cast<int>(left_ms)).ok())
        return false;
      const ssize_t size = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (size <= 0) return false;
      unread_.append(buffer, static_cast<size_t>(size));
    }
    return true;
  }

  os::UniqueFd socket_;
  uint32_t stream_ = 1;
  std::string unread_;
};

// A client that does not open its flow-control window keeps nothing of a session that is over, be
// it that the client ended it or the worker.
TEST_F(NetworkHostileTest, ClosedWindowKeepsNothing) {
  const std::string no_window("\0\x04\0\0\0\0", 6);  // SETTINGS_INITIAL_WINDOW_SIZE = 0
  v1::ClientMessage open;
  open.mutable_open();
  Http2Client clients[] = {{gateway_.endpoint(), no_window}, {gateway_.endpoint(), no_window}};
  std::unique_ptr<PlayedWorker> workers[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(clients[i].OpenStreams(1, kStream));
    ASSERT_TRUE(clients[i].SendData(open.SerializeAsString()));
    workers[i] = gateway_.TakeWorker();
    // `opened` is behind them, and stays where it is.
    ASSERT_TRUE(clients[i].ReadUntil(Http2Client::kHeaders));
  }
  ASSERT_TRUE(clients[0].SendData(""));
  workers[0]->AwaitClientsEnd();
  workers[1]->Send(AnswerTo(1));
  workers[1]->Die();
  for (Http2Client& client : clients) EXPECT_TRUE(client.ReadUntil(Http2Client::kReset));
}

// A peer that never acknowledges how many streams it may have has no more than others all the same.
TEST_F(NetworkHostileTest, StreamsWithoutEndCostLittle) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  for (const char* path : {"/sluice.v1.Session/Stream", "/sluice.v1.Session/DescribePlatforms",
                           "/grpc.health.v1.Health/Watch"}) {
    SCOPED_TRACE(path);
    const uint64_t before = gateway_.PeakMemoryBytes();
    Http2Client flood(gateway_.endpoint(), "");
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(flood.OpenStreams(1000, path)) << i;
      // Which comes after them: what has been read and not yet looked at does not pile up.
      ASSERT_TRUE(client::DescribePlatforms(gateway_.endpoint(), std::chrono::seconds(30)).ok())
          << i;
    }
    EXPECT_LT(gateway_.PeakMemoryBytes(), before + (uint64_t{64} << 20));
  }
}

// Watches of the health service, which need no token, keep neither a session out nor what else the
// gateway answers; those over the bound are refused.
TEST_F(NetworkHostileTest, IdleWatchesKeepNobodyOut) {
  constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
  constexpr int kConnections = 16;  // Of 64 calls each: as many as the gateway has sessions.
  std::vector<std::unique_ptr<Http2Client>> watchers;
  for (int i = 0; i < kConnections; ++i) {
    watchers.push_back(std::make_unique<Http2Client>(gateway_.endpoint(), ""));
    ASSERT_TRUE(watchers.back()->OpenStreams(64, kWatch));
  }
  RawClient watch(gateway_.endpoint(), kWatch);
  EXPECT_EQ(watch.AwaitEnd().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(client::DescribePlatforms(gateway_.endpoint(), std::chrono::seconds(30)).ok());
  auto [client, worker] = gateway_.OpenSession();
  ASSERT_NE(client, nullptr);
  ExpectWorks(client.get(), worker.get(), 1);
  RawClient check(gateway_.endpoint(), "/grpc.health.v1.Health/Check");
  ASSERT_TRUE(check.Write(""));
  EXPECT_TRUE(check.AwaitEnd().ok());
}

// A call that is no session and no watch does not wait for ever for its client to say something.
TEST_F(NetworkHostileTest, SilentCallsAreEnded) {
  RawClient clients[] = {
      {gateway_.endpoint(), "/grpc.health.v1.Health/Check"},
      {gateway_.endpoint(), "/sluice.v1.Session/DescribePlatforms"},
      {gateway_.endpoint(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}};
  for (RawClient& client : clients)
    EXPECT_EQ(client.AwaitEnd().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace sluice::gateway
