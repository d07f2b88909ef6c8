// SPDX-License-Identifier: Apache-2.0
//
// The port that Resources listens on, which every program of the machine can connect to: what a
// token is good for, and for whom. The client speaks by hand and does what sluice.dll does not.
#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_builder.h>

#include <atomic>

#include "proto/resources.grpc.pb.h"
// After all of gRPC, whose headers use the same name: this one undefines a macro of windows.h.
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "client_icd/connect/broker_greeting.h"
#include "proto/network/loopback_tokens.h"
#include "proto/resource_messages.h"
#include "tests/windows/resource_daemon.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::tests {

int RunChildPart(const std::string&, int, char**) { return 100; }

namespace {

constexpr char kNobodysCapability[] = "0123456789abcdef01234567";

// A connection for resources that is made by hand.
struct Ticket {
  void Open(const ResourceDaemon& daemon) {
    wire::Welcome welcome;
    std::vector<os::UniqueFd> fds;
    auto broker = client::GreetBroker(daemon.pipe_name(), wire::kResourcesFeature, &welcome, &fds);
    ASSERT_TRUE(broker.ok()) << broker.status();
    broker_ = *std::move(broker);
    const auto open = wire::MakeMessage<wire::OpenResources>();
    ASSERT_TRUE(os::SendMessage(broker_.get(), &open, sizeof(open)).ok());
    const auto opened = client::ReceiveFromBroker<wire::ResourcesOpened>(
        broker_.get(), client::AnswerTime(kTestTimeoutMs), &fds, 2);
    ASSERT_TRUE(opened.ok()) << opened.status();
    ASSERT_EQ(fds.size(), 2u) << opened->message;
    pipe_ = std::move(fds[0]);
    channel_ = std::move(fds[1]);
    ASSERT_TRUE(os::WaitReadable(pipe_.get(), kTestTimeoutMs).ok());
    char packet[wire::kMaxBrokerMessageBytes];
    const auto size = os::ReceiveMessage(pipe_.get(), packet, sizeof(packet), nullptr, 0);
    ASSERT_TRUE(size.ok() && wire::ParseMessage(packet, *size, &ticket_));
  }

  uint32_t port() const { return ticket_.port; }

  os::UniqueFd broker_;
  os::UniqueFd pipe_;
  os::UniqueFd channel_;
  wire::ResourceTicket ticket_ = {};
};

class TicketTest : public testing::Test, public Ticket {
 public:
  void SetUp() override { Open(SharedDaemon()); }

  // A connection to the port, which shares nothing with another.
  std::unique_ptr<v1::Resources::Stub> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Resources::NewStub(
        grpc::CreateCustomChannel("ipv4:127.0.0.1:" + std::to_string(ticket_.port),
                                  grpc::InsecureChannelCredentials(), arguments));
  }

  std::string token() const { return wire::LoopbackTokenText(ticket_.token); }

  // The service's answer to one who shows `token`: PERMISSION_DENIED to one who is somebody, for
  // the capability opens nothing; UNAVAILABLE to nobody.
  static grpc::StatusCode Ask(v1::Resources::Stub* stub, const std::string& token) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(kTestTimeoutMs));
    if (!token.empty()) context.AddMetadata(wire::kLoopbackTokenKey, token);
    v1::DescribeResourceRequest request;
    request.set_capability(kNobodysCapability);
    v1::ResourceDescription reply;
    return stub->Describe(&context, request, &reply).error_code();
  }
};

// Only the connection that shows a token first is somebody; who steals it later is nobody, and
// takes nothing from the first.
TEST_F(TicketTest, IsGoodForOneConnection) {
  const auto first = Connect();
  const auto second = Connect();
  EXPECT_EQ(Ask(first.get(), token()), grpc::PERMISSION_DENIED);
  EXPECT_EQ(Ask(second.get(), token()), grpc::UNAVAILABLE);
  EXPECT_EQ(Ask(second.get(), ""), grpc::UNAVAILABLE);
  EXPECT_EQ(Ask(first.get(), token()), grpc::PERMISSION_DENIED);
}

// A text that is no token, or nearly one, is nobody's, also where a token has been shown before.
TEST_F(TicketTest, WrongTokensAreNobodys) {
  const auto stub = Connect();
  std::string almost = token();
  almost.back() = almost.back() == '0' ? '1' : '0';
  for (const std::string& wrong : {std::string("x"), almost, token() + token()}) {
    EXPECT_EQ(Ask(stub.get(), wrong), grpc::UNAVAILABLE) << wrong;
  }
  EXPECT_EQ(Ask(stub.get(), token()), grpc::PERMISSION_DENIED);
  EXPECT_EQ(Ask(stub.get(), almost), grpc::UNAVAILABLE);
}

// A hold belongs to the connection that took it: under another token its id means nothing.
TEST_F(TicketTest, HoldsAreTheirConnections) {
  broker::Client other;
  sluice_capability read, write;
  other.MakeBuffer(4096, &read, &write);
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(other.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  const auto stub = Connect();
  grpc::ClientContext context;
  context.AddMetadata(wire::kLoopbackTokenKey, token());
  v1::ReleaseResourceRequest request;
  request.set_hold_id(hold.id);
  v1::ReleaseResourceReply reply;
  EXPECT_EQ(stub->Release(&context, request, &reply).error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(sluice_release(other.get(), &hold, 0), SLUICE_OK);
}

// The end of the connection to the port is nobody's death: who held a turn may still write, and who
// connects anew with its token may have stolen it. So nobody takes the turn over until the pipe
// ends, which no process outlives.
TEST_F(TicketTest, HoldsStayUntilThePipeEnds) {
  broker::Client other;
  sluice_capability read, write;
  other.MakeBuffer(4096, &read, &write);
  auto holder = Connect();
  v1::AcquireResourceRequest request;
  request.set_capability(std::string(reinterpret_cast<const char*>(write.bytes), 24));
  request.set_access(v1::RESOURCE_ACCESS_WRITE);
  request.set_hold_id(1);
  v1::AcquireResourceReply reply;
  {
    grpc::ClientContext context;
    context.AddMetadata(wire::kLoopbackTokenKey, token());
    const grpc::Status acquired = holder->Acquire(&context, request, &reply);
    ASSERT_TRUE(acquired.ok()) << acquired.error_message();
  }
  holder.reset();  // And with it the connection.
  const auto again = Connect();
  EXPECT_EQ(Ask(again.get(), token()), grpc::UNAVAILABLE);
  {
    grpc::ClientContext context;
    context.AddMetadata(wire::kLoopbackTokenKey, token());
    v1::ReleaseResourceRequest release;
    release.set_hold_id(1);
    v1::ReleaseResourceReply released;
    EXPECT_EQ(again->Release(&context, release, &released).error_code(), grpc::UNAVAILABLE);
  }
  sluice_hold hold;
  EXPECT_EQ(sluice_acquire(other.get(), &read, SLUICE_READ, 300, &hold), SLUICE_TIMED_OUT);
  pipe_.reset();
  ASSERT_EQ(sluice_acquire(other.get(), &read, SLUICE_READ, kTestTimeoutMs, &hold), SLUICE_OK)
      << sluice_error_text();
  EXPECT_EQ(hold.indeterminate, 1u);
}

// The end of the pipe, of the handle channel or of the connection to the broker is the token's.
TEST_F(TicketTest, EndsWithEachOfTheThree) {
  for (os::UniqueFd Ticket::*end : {&Ticket::pipe_, &Ticket::channel_, &Ticket::broker_}) {
    Open(SharedDaemon());
    const auto stub = Connect();
    ASSERT_EQ(Ask(stub.get(), token()), grpc::PERMISSION_DENIED);
    (this->*end).reset();
    EXPECT_TRUE(broker::Becomes([&] { return Ask(stub.get(), token()) == grpc::UNAVAILABLE; }));
  }
}

// An Import whose offer comes after it is answered all the same, since a message on a pipe may be
// seen late; one without an offer is refused.
TEST_F(TicketTest, OffersMayComeLate) {
  const auto stub = Connect();
  v1::ImportResourceRequest request;
  request.mutable_shape()->set_size_bytes(4096);
  request.set_token(7);
  v1::CreateResourceReply reply;
  grpc::ClientContext context;
  context.AddMetadata(wire::kLoopbackTokenKey, token());
  grpc::CompletionQueue queue;
  const auto call = stub->AsyncImport(&context, request, &queue);
  grpc::Status status;
  call->Finish(&reply, &status, &queue);
  EXPECT_EQ(Ask(stub.get(), token()), grpc::PERMISSION_DENIED);  // Which came after it.
  const auto memory = os::CreateSharedMemory("offer", 4096);
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto offer = wire::MakeMessage<wire::OfferHandle>();
  offer.token = 7;
  const int fd = memory->get();
  ASSERT_TRUE(os::SendMessage(channel_.get(), &offer, sizeof(offer), &fd, 1).ok());
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.read_capability().size(), 24u);

  request.set_token(8);
  grpc::ClientContext other_context;
  other_context.AddMetadata(wire::kLoopbackTokenKey, token());
  EXPECT_EQ(stub->Import(&other_context, request, &reply).error_code(), grpc::INVALID_ARGUMENT);
}

// Nothing is said on the pipe after the ticket, and no handle is offered but memory: who does
// otherwise has no connection any more, and others keep theirs.
TEST_F(TicketTest, NonsenseEndsTheConnection) {
  broker::Client other;
  for (os::UniqueFd Ticket::*where : {&Ticket::pipe_, &Ticket::channel_}) {
    Open(SharedDaemon());
    const auto stub = Connect();
    ASSERT_EQ(Ask(stub.get(), token()), grpc::PERMISSION_DENIED);
    ASSERT_TRUE(os::SendMessage((this->*where).get(), "nonsense", 8).ok());
    EXPECT_TRUE(broker::Becomes([&] { return Ask(stub.get(), token()) == grpc::UNAVAILABLE; }));
  }
  sluice_capability read, write;
  other.MakeBuffer(4096, &read, &write);
}

// A program that listens where the daemon did, and grants whatever it is asked for.
class Impostor final : public v1::Resources::Service {
 public:
  explicit Impostor(uint32_t port) {
    const std::string address = "127.0.0.1:" + std::to_string(port);
    EXPECT_TRUE(broker::Becomes([&] {
      int bound = 0;
      grpc::ServerBuilder builder;
      builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &bound);
      builder.RegisterService(this);
      server_ = builder.BuildAndStart();
      return server_ != nullptr && bound != 0;
    }));
  }
  ~Impostor() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Create(grpc::ServerContext* context, const v1::CreateResourceRequest*,
                      v1::CreateResourceReply* reply) override {
    const auto shown = context->client_metadata().find(wire::kLoopbackTokenKey);
    if (shown != context->client_metadata().end())
      shown_ = std::string(shown->second.data(), shown->second.size());
    reply->set_read_capability(kNobodysCapability);
    reply->set_write_capability(kNobodysCapability);
    ++asked_;
    // The most that it could know: the token that it was shown.
    context->AddInitialMetadata(wire::kLoopbackProofKey, shown_);
    return grpc::Status::OK;
  }

  int asked() const { return asked_; }
  const std::string& shown() const { return shown_; }

 private:
  std::atomic<int> asked_ = 0;
  std::string shown_;
  std::unique_ptr<grpc::Server> server_;
};

// After the daemon's end another program may have its port. A client does not believe it, nor show
// it what the daemon would have proved itself with.
TEST(ImpostorTest, IsNotBelieved) {
  ResourceDaemon daemon;
  broker::Client client(daemon.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  Ticket ticket;
  ASSERT_NO_FATAL_FAILURE(ticket.Open(daemon));
  daemon.Kill();
  Impostor impostor(ticket.port());
  const sluice_create_info info = broker::BufferInfo(4096);
  // The first call may only find that the daemon's connection is gone.
  broker::Becomes([&] {
    EXPECT_NE(sluice_create(client.get(), &info, &read, &write), SLUICE_OK);
    return impostor.asked() > 0 || testing::Test::HasFailure();
  });
  EXPECT_NE(impostor.shown().size(), 2 * wire::kLoopbackTokenBytes);  // All of it, in hexadecimal.
  EXPECT_NE(sluice_create(client.get(), &info, &read, &write), SLUICE_OK);
}

}  // namespace
}  // namespace sluice::tests
