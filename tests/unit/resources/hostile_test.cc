// SPDX-License-Identifier: Apache-2.0
//
// Clients of the resource service that lie, hoard or flood: they get errors or lose their
// connection, others are served, and the broker is as it was before.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "broker/event_loop.h"
#include "broker/os/local_socket.h"
#include "tests/unit/resources/raw_client.h"

namespace sluice::broker {
namespace {

class HostileResourceTest : public ResourceTest {};

// Thousands of guesses open nothing, and a resource's public id does not help.
TEST_F(HostileResourceTest, GuessingCapabilities) {
  BrokerProcess broker(directory_, {});
  Client owner(broker.endpoint());
  Client thief(broker.endpoint());
  sluice_capability read, write;
  owner.MakeBuffer(4096, &read, &write);
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    sluice_capability guess = read;  // The id is right in every other one.
    for (size_t b = i % 2 == 0 ? 8 : 0; b < sizeof(guess.bytes); ++b) {
      guess.bytes[b] = static_cast<uint8_t>(random());
    }
    sluice_hold hold;
    ASSERT_EQ(sluice_acquire(thief.get(), &guess, SLUICE_READ, 0, &hold), SLUICE_PERMISSION_DENIED);
  }
  sluice_hold hold;
  EXPECT_EQ(sluice_acquire(thief.get(), &read, SLUICE_WRITE, 0, &hold), SLUICE_PERMISSION_DENIED);
}

// A hold's id is good on its own connection only.
TEST_F(HostileResourceTest, ForgedHolds) {
  BrokerProcess broker(directory_, {});
  Client owner(broker.endpoint());
  Client thief(broker.endpoint());
  sluice_capability read, write;
  owner.MakeBuffer(4096, &read, &write);
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(owner.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  EXPECT_EQ(sluice_release(thief.get(), &hold, 0), SLUICE_NOT_FOUND);
  for (uint64_t id = 0; id < 200; ++id) {
    const sluice_hold forged = {id, 0, 0, 0};
    EXPECT_EQ(sluice_release(thief.get(), &forged, 0), SLUICE_NOT_FOUND);
  }
  EXPECT_EQ(sluice_release(owner.get(), &hold, 0), SLUICE_OK);
}

// A TCP socket whose last close takes half a minute, or as long as `reader` lives.
os::UniqueFd Lingering(os::UniqueFd* reader) {
  os::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  reader->reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::string some(64 * 1024, 'x');
  while (::send(socket.get(), some.data(), some.size(), MSG_DONTWAIT) > 0) {
  }
  const linger half_a_minute = {1, 30};
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &half_a_minute, sizeof(linger)), 0);
  return socket;
}

// Sends them and closes them here. If the kernel refuses to pass them on, nothing is sent.
void SendAndClose(int socket, const void* data, size_t size, std::vector<os::UniqueFd> fds) {
  std::vector<int> numbers;
  for (const os::UniqueFd& fd : fds) numbers.push_back(fd.get());
  if (os::SendMessage(socket, data, size, numbers.data(), static_cast<int>(numbers.size())).ok()) {
    return;
  }
  const linger none = {};  // The last to close them is this test.
  for (const int fd : numbers) {
    EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
  }
}

// Descriptors whose closing takes as long as their sender likes hold up nobody else, wherever they
// are sent. That may be to a socket that takes none, as an offer, as two, with something malformed
// and unread behind it. Nor do those who send them get more connections by it.
TEST_F(HostileResourceTest, DescriptorsThatAreSlowToClose) {
  BrokerProcess broker(directory_, {.config = "[resources]\nmax_connections_per_user = 5\n"});
  const int before = Baseline(broker);
  std::vector<os::UniqueFd> readers;
  const auto lingering = [&readers](int count) {
    std::vector<os::UniqueFd> fds;
    for (int i = 0; i < count; ++i) {
      readers.emplace_back();
      fds.push_back(Lingering(&readers.back()));
    }
    return fds;
  };
  {
    TestClient greets(broker.socket());
    RawClient calls(broker, false);
    RawClient offers(broker);
    RawClient offers_two(broker);
    RawClient unread(broker);
    const auto hello = wire::MakeMessage<wire::Hello>();
    auto offer = wire::MakeMessage<wire::OfferHandle>();
    offer.token = 1;
    // It sleeps meanwhile, so that the last to close them is not this test. Once: a signal ends the
    // closes that wait.
    broker.Signal(SIGSTOP);
    SendAndClose(greets.socket(), &hello, sizeof(hello), lingering(1));
    SendAndClose(calls.transport.get(), "x", 1, lingering(1));
    SendAndClose(offers.channel.get(), &offer, sizeof(offer), lingering(1));
    SendAndClose(offers_two.channel.get(), &offer, sizeof(offer), lingering(2));
    SendAndClose(unread.channel.get(), "x", 1, lingering(1));
    SendAndClose(unread.channel.get(), "x", 1, lingering(1));
    broker.Signal(SIGCONT);
    const int64_t began_ms = MonotonicMs();
    ExpectServing(broker);
    EXPECT_LT(MonotonicMs() - began_ms, 15'000);
  }
  {
    // Three of five are still being closed.
    std::vector<std::unique_ptr<TestClient>> clients;
    std::vector<os::UniqueFd> kept;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(std::make_unique<TestClient>(broker.socket()));
      TestClient& client = *clients.back();
      auto hello = wire::MakeMessage<wire::Hello>();
      wire::SetString(hello.features, wire::kResourcesFeature);
      wire::Welcome welcome;
      ASSERT_TRUE(client.Send(hello) && client.Receive(&welcome));
      ASSERT_TRUE(client.Send(wire::MakeMessage<wire::OpenResources>()));
      ASSERT_TRUE(os::WaitReadable(client.socket(), kTestTimeoutMs).ok());
      char packet[wire::kMaxBrokerMessageBytes];
      std::vector<os::UniqueFd> fds;
      ASSERT_TRUE(os::ReceiveMessage(client.socket(), packet, sizeof(packet), &fds, 2).ok());
      for (os::UniqueFd& fd : fds) kept.push_back(std::move(fd));
    }
    EXPECT_LE(kept.size(), 2u * 2);
  }
  readers.clear();
  EXPECT_TRUE(SettlesAt(broker, before));
}

// Quotas of count and bytes hold, over all connections of a user, and come back.
TEST_F(HostileResourceTest, QuotasHold) {
  BrokerProcess broker(directory_, {.config = "[resources]\nmax_resources_per_user = 3\n"
                                              "max_bytes_per_user = \"1MiB\"\n"});
  Client one(broker.endpoint());
  Client two(broker.endpoint());
  sluice_capability read, write, last;
  const sluice_create_info large = BufferInfo((1 << 20) + 1);
  EXPECT_EQ(sluice_create(one.get(), &large, &read, &write), SLUICE_LIMIT);
  EXPECT_NE(std::string(sluice_error_text()).find("max_bytes_per_user"), std::string::npos);
  sluice_create_info vulkan = large;  // Whatever is behind it.
  vulkan.backing = SLUICE_BACKING_VULKAN;
  EXPECT_EQ(sluice_create(one.get(), &vulkan, &read, &write), SLUICE_LIMIT);
  one.MakeBuffer(1, &read, &write);
  one.MakeBuffer(1, &read, &write);
  two.MakeBuffer(1, &read, &last);
  const sluice_create_info small = BufferInfo(1);
  EXPECT_EQ(sluice_create(two.get(), &small, &read, &write), SLUICE_LIMIT);
  EXPECT_EQ(sluice_destroy(one.get(), &last), SLUICE_OK);
  EXPECT_EQ(sluice_create(two.get(), &small, &read, &write), SLUICE_OK);
  one.Disconnect();
  EXPECT_TRUE(
      Becomes([&] { return sluice_create(two.get(), &small, &read, &write) == SLUICE_OK; }));
}

// One who exports and never reads gets an error soon, and costs the broker no descriptor.
TEST_F(HostileResourceTest, UnreadHandles) {
  BrokerProcess broker(directory_, {});
  const int before = Baseline(broker);
  {
    RawClient client(broker);
    v1::CreateResourceRequest create;
    create.mutable_shape()->set_size_bytes(4096);
    v1::CreateResourceReply created;
    grpc::ClientContext create_context;
    ASSERT_TRUE(client.stub->Create(&create_context, create, &created).ok());
    grpc::StatusCode last = grpc::StatusCode::OK;
    for (int i = 0; i < 1000 && last == grpc::StatusCode::OK; ++i) {
      v1::ExportResourceRequest request;
      request.set_capability(created.write_capability());
      request.set_access(v1::RESOURCE_ACCESS_WRITE);
      v1::ExportResourceReply reply;
      grpc::ClientContext context;
      last = client.stub->Export(&context, request, &reply).error_code();
    }
    EXPECT_EQ(last, grpc::StatusCode::RESOURCE_EXHAUSTED);
    ExpectServing(broker);
  }
  EXPECT_TRUE(SettlesAt(broker, before));
}

// Thousands of acquires at once: those beyond the limit fail, the rest end with the connection.
TEST_F(HostileResourceTest, ThousandsOfAcquires) {
  BrokerProcess broker(directory_, {.config = "[resources]\nmax_acquires_per_connection = 100\n"});
  const int before = Baseline(broker);
  constexpr int kCalls = 3000;
  {
    RawClient client(broker);
    Client owner(broker.endpoint());
    sluice_capability read, write;
    owner.MakeBuffer(4096, &read, &write);
    sluice_hold hold;
    ASSERT_EQ(sluice_acquire(owner.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
    v1::AcquireResourceRequest request;
    request.set_capability(std::string(reinterpret_cast<char*>(read.bytes), sizeof(read.bytes)));
    request.set_access(v1::RESOURCE_ACCESS_READ);
    request.set_timeout_ms(600'000);
    struct Pending {
      v1::AcquireResourceRequest request;
      grpc::ClientContext context;
      v1::AcquireResourceReply reply;
    };
    std::vector<Pending> pending(kCalls);
    std::atomic<int> refused{0};
    std::atomic<int> ended{0};
    uint64_t hold_id = 1;
    for (Pending& one : pending) {
      one.request = request;
      one.request.set_hold_id(hold_id++);
      client.stub->async()->Acquire(
          &one.context, &one.request, &one.reply, [&](grpc::Status status) {
            if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) ++refused;
            ++ended;
          });
    }
    EXPECT_TRUE(Becomes([&] { return refused == kCalls - 100; })) << refused;
    ExpectServing(broker);
    client.broker.reset();  // The connection to the broker is the life of the others.
    EXPECT_TRUE(Becomes([&] { return ended == kCalls; })) << ended;
    EXPECT_EQ(sluice_release(owner.get(), &hold, 0), SLUICE_OK);
    EXPECT_EQ(sluice_acquire(owner.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  }
  EXPECT_TRUE(SettlesAt(broker, before));
}

// A caller that cancels, and then releases the name that it chose, holds nothing, however the two
// messages and the grant crossed; and nobody has written.
TEST_F(HostileResourceTest, CancelledAcquiresHoldNothing) {
  BrokerProcess broker(directory_, {});
  RawClient client(broker);
  Client owner(broker.endpoint());
  sluice_capability read, write;
  owner.MakeBuffer(4096, &read, &write);
  v1::AcquireResourceRequest request;
  request.set_capability(std::string(reinterpret_cast<char*>(write.bytes), sizeof(write.bytes)));
  request.set_access(v1::RESOURCE_ACCESS_WRITE);
  request.set_timeout_ms(60'000);
  std::atomic<int> granted{0};
  for (uint64_t i = 1; i <= 200; ++i) {
    request.set_hold_id(i);
    grpc::ClientContext context;
    v1::AcquireResourceReply reply;
    std::atomic<bool> done{false};
    client.stub->async()->Acquire(&context, &request, &reply, [&](grpc::Status status) {
      granted += status.ok() ? 1 : 0;
      done = true;
    });
    context.TryCancel();
    ASSERT_TRUE(Becomes([&] { return done.load(); }));
    v1::ReleaseResourceRequest release;
    release.set_hold_id(request.hold_id());
    release.set_contents_untouched(true);
    v1::ReleaseResourceReply released;
    grpc::ClientContext own;
    const grpc::StatusCode code = client.stub->Release(&own, release, &released).error_code();
    EXPECT_TRUE(code == grpc::StatusCode::OK || code == grpc::StatusCode::NOT_FOUND) << code;
  }
  sluice_hold hold;
  ASSERT_EQ(sluice_acquire(owner.get(), &write, SLUICE_WRITE, 10'000, &hold), SLUICE_OK)
      << sluice_error_text();
  EXPECT_EQ(hold.generation, 0u);
}

// Connections that never speak, and ones that speak nonsense, disturb nobody and leave nothing.
TEST_F(HostileResourceTest, SilenceAndNonsense) {
  BrokerProcess broker(directory_, {});
  const int before = Baseline(broker);
  {
    std::vector<std::unique_ptr<RawClient>> clients;
    std::mt19937_64 random(2);
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<RawClient>(broker, false));
      if (i % 2 == 0) continue;
      std::string nonsense(i % 4 == 1 ? 100 : 100'000, '\0');
      for (char& c : nonsense) c = static_cast<char>(random());
      if (i % 5 == 0) nonsense = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + nonsense;
      ::send(clients.back()->transport.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    }
    ExpectServing(broker);
  }
  EXPECT_TRUE(SettlesAt(broker, before));
}

// Resident memory of the broker.
int64_t ResidentKb(const BrokerProcess& broker) {
  std::ifstream status("/proc/" + std::to_string(broker.pid()) + "/status");
  std::string word;
  int64_t kb = -1;
  while (status >> word) {
    if (word == "VmRSS:") status >> kb;
  }
  return kb;
}

// Connections that ask for answers without end, and read none, are read no further, and cost little
// memory: what a socket takes is the end of it.
TEST_F(HostileResourceTest, PingsWithoutEndCostLittle) {
  BrokerProcess broker(directory_, {});
  ExpectServing(broker);
  const int64_t before_kb = ResidentKb(broker);
  const std::string preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  const std::string ping("\0\0\10\6\0\0\0\0\0AAAAAAAA", 17);
  std::string pings;
  for (int i = 0; i < 10'000; ++i) pings += ping;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(broker, false));
    const int socket = clients.back()->transport.get();
    ASSERT_EQ(::send(socket, preface.data(), preface.size(), MSG_NOSIGNAL), 33);
    size_t sent = 0;
    while (sent < 20 * pings.size() && os::WaitWritable(socket, 200).ok()) {
      const size_t at = sent % pings.size();
      const ssize_t count =
          ::send(socket, pings.data() + at, pings.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count <= 0) break;
      sent += static_cast<size_t>(count);
    }
  }
  EXPECT_LT(ResidentKb(broker) - before_kb, 64 * 1024);
  ExpectServing(broker);
}

// Each malformed message on the handle channel ends the connection; nothing that came with it
// stays.
TEST_F(HostileResourceTest, MalformedOffers) {
  BrokerProcess broker(directory_, {});
  const int before = Baseline(broker);
  const os::UniqueFd memory = MakeMemfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
  const int fds[] = {memory.get(), memory.get()};
  const auto offer = [&](RawClient* client, uint64_t token, int fd_count) {
    auto message = wire::MakeMessage<wire::OfferHandle>();
    message.token = token;
    return os::SendMessage(client->channel.get(), &message, sizeof(message), fds, fd_count).ok();
  };
  const std::vector<std::pair<const char*, std::function<bool(RawClient*)>>> attacks = {
      {"no descriptor", [&](RawClient* c) { return offer(c, 1, 0); }},
      {"two descriptors", [&](RawClient* c) { return offer(c, 1, 2); }},
      {"one token twice", [&](RawClient* c) { return offer(c, 1, 1) && offer(c, 1, 1); }},
      {"too many offers",
       [&](RawClient* c) {
         for (int i = 0; i <= wire::kMaxOffers; ++i) {
           if (!offer(c, static_cast<uint64_t>(i), 1)) return false;
         }
         return true;
       }},
      {"another message",
       [&](RawClient* c) {
         const auto message = wire::MakeMessage<wire::ResourceHandle>();
         return os::SendMessage(c->channel.get(), &message, sizeof(message), fds, 1).ok();
       }},
      {"one byte", [&](RawClient* c) { return os::SendMessage(c->channel.get(), "x", 1).ok(); }},
  };
  for (const auto& [name, attack] : attacks) {
    RawClient client(broker);
    ASSERT_TRUE(attack(&client)) << name;
    EXPECT_TRUE(WaitForEndOfFile(client.channel.get())) << name;
  }
  EXPECT_TRUE(SettlesAt(broker, before));
  ExpectServing(broker);
}

// A client that offers its own connection, and then closes all it has of it, has left.
TEST_F(HostileResourceTest, OffersItsOwnSockets) {
  BrokerProcess broker(directory_, {});
  const int before = Baseline(broker);
  for (int round = 0; round < 3; ++round) {
    RawClient client(broker, false);
    uint64_t token = 0;
    for (const int fd : {client.channel.get(), client.transport.get(), client.broker->socket()}) {
      auto message = wire::MakeMessage<wire::OfferHandle>();
      message.token = ++token;
      ASSERT_TRUE(os::SendMessage(client.channel.get(), &message, sizeof(message), &fd, 1).ok());
    }
  }
  EXPECT_TRUE(SettlesAt(broker, before));
  ExpectServing(broker);
}

// Tokens that were never offered, shapes that overflow, long labels and wrong numbers are refused.
TEST_F(HostileResourceTest, WrongArguments) {
  BrokerProcess broker(directory_, {});
  RawClient client(broker);
  const auto import = [&](uint64_t token) {
    v1::ImportResourceRequest request;
    request.mutable_shape()->set_size_bytes(1);
    request.set_token(token);
    v1::CreateResourceReply reply;
    grpc::ClientContext context;
    return client.stub->Import(&context, request, &reply).error_code();
  };
  EXPECT_EQ(import(42), grpc::StatusCode::INVALID_ARGUMENT);
  const auto create = [&](const std::function<void(v1::CreateResourceRequest*)>& change) {
    v1::CreateResourceRequest request;
    request.mutable_shape()->set_size_bytes(1);
    change(&request);
    v1::CreateResourceReply reply;
    grpc::ClientContext context;
    return client.stub->Create(&context, request, &reply).error_code();
  };
  EXPECT_EQ(create([](v1::CreateResourceRequest* r) { r->mutable_shape()->set_size_bytes(0); }),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(create([](v1::CreateResourceRequest* r) { r->set_label(std::string(64, 'x')); }),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(create([](v1::CreateResourceRequest* r) {
              v1::ImageShape* image = r->mutable_shape()->mutable_image();
              image->set_drm_fourcc(0x34325241);
              image->set_width(~uint64_t{0});
              image->set_height(~uint64_t{0});
            }),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(create([](v1::CreateResourceRequest* r) { r->set_label(std::string(1 << 20, 'x')); }),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectServing(broker);
}

// A string that is no UTF-8 is no message; the log stays the daemon's own.
TEST_F(HostileResourceTest, BrokenStringsWriteNoLog) {
  BrokerProcess broker(directory_, {});
  RawClient client(broker);
  v1::CreateResourceRequest request;
  request.mutable_shape()->set_size_bytes(1);
  request.set_label("\xff\xfe");
  v1::CreateResourceReply reply;
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    EXPECT_FALSE(client.stub->Create(&context, request, &reply).ok());
  }
  ExpectServing(broker);
  EXPECT_EQ(broker.Log().find("UTF-8"), std::string::npos) << broker.Log();
}

// The service is for those who named the feature, once per connection, up to the user's limit.
TEST_F(HostileResourceTest, ConnectionsAreAskedForRightly) {
  BrokerProcess broker(directory_, {.config = "[resources]\nmax_connections_per_user = 2\n"});
  TestClient unnamed(broker.socket());
  wire::Welcome welcome;
  ASSERT_TRUE(unnamed.Greet(&welcome));
  EXPECT_TRUE(unnamed.Send(wire::MakeMessage<wire::OpenResources>()));
  EXPECT_TRUE(unnamed.IsClosedByPeer());
  {
    RawClient twice(broker);
    EXPECT_TRUE(twice.broker->Send(wire::MakeMessage<wire::OpenResources>()));
    wire::ResourcesOpened opened;
    ASSERT_TRUE(twice.broker->Receive(&opened));
    EXPECT_EQ(opened.status, EALREADY);
    RawClient second(broker);
    sluice_connection* third = nullptr;
    const std::string endpoint = broker.endpoint();
    EXPECT_EQ(sluice_connect(endpoint.c_str(), &third), SLUICE_LIMIT) << sluice_error_text();
  }
  EXPECT_TRUE(Becomes([&] {
    sluice_connection* third = nullptr;
    const std::string endpoint = broker.endpoint();
    const bool good = sluice_connect(endpoint.c_str(), &third) == SLUICE_OK;
    sluice_disconnect(third);
    return good;
  }));
}

// A daemon that is told to share nothing says so.
TEST_F(HostileResourceTest, Disabled) {
  BrokerProcess broker(directory_, {.config = "[resources]\nenabled = false\n"});
  sluice_connection* none = nullptr;
  const std::string endpoint = broker.endpoint();
  EXPECT_EQ(sluice_connect(endpoint.c_str(), &none), SLUICE_NO_DAEMON);
  EXPECT_NE(std::string(sluice_error_text()).find("enabled"), std::string::npos);
}

// Hundreds of lives with calls still in flight at their end: identities never mix, and the broker
// has no descriptor more.
TEST_F(HostileResourceTest, ShortLivesLeaveNothing) {
  BrokerProcess broker(directory_, {});
  const int before = Baseline(broker);
  Client owner(broker.endpoint());
  sluice_capability read, write;
  owner.MakeBuffer(4096, &read, &write);
  sluice_hold held;
  ASSERT_EQ(sluice_acquire(owner.get(), &write, SLUICE_WRITE, 0, &held), SLUICE_OK);
  v1::AcquireResourceRequest request;
  request.set_capability(std::string(reinterpret_cast<char*>(read.bytes), sizeof(read.bytes)));
  request.set_access(v1::RESOURCE_ACCESS_READ);
  request.set_timeout_ms(600'000);
  request.set_hold_id(1);
  for (int i = 0; i < 200; ++i) {
    RawClient client(broker);
    grpc::ClientContext context;
    v1::AcquireResourceReply reply;
    std::atomic<bool> done{false};
    client.stub->async()->Acquire(&context, &request, &reply, [&](grpc::Status) { done = true; });
    v1::CreateResourceRequest create;
    create.mutable_shape()->set_size_bytes(4096);
    v1::CreateResourceReply created;
    grpc::ClientContext create_context;
    ASSERT_TRUE(client.stub->Create(&create_context, create, &created).ok());
    if (i % 3 == 0) client.channel.reset();
    if (i % 3 == 1) client.broker.reset();
    if (i % 3 == 2) context.TryCancel();
    ASSERT_TRUE(Becomes([&] { return done.load(); })) << i;
  }
  EXPECT_EQ(sluice_release(owner.get(), &held, 0), SLUICE_OK);
  ASSERT_EQ(sluice_acquire(owner.get(), &write, SLUICE_WRITE, 5'000, &held), SLUICE_OK);
  owner.Disconnect();
  EXPECT_TRUE(SettlesAt(broker, before));
}

}  // namespace
}  // namespace sluice::broker
