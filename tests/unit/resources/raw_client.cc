// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/resources/raw_client.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "broker/event_loop.h"
#include "broker/os/local_socket.h"

namespace sluice::broker {

const std::string& SharedEndpoint() {
  static const TestDirectory directory;
  static const BrokerProcess broker(directory, {});
  static const std::string endpoint = broker.endpoint();
  return endpoint;
}

RawClient::RawClient(const BrokerProcess& process, bool with_stub)
    : broker(std::make_unique<TestClient>(process.socket())) {
  auto hello = wire::MakeMessage<wire::Hello>();
  wire::SetString(hello.features, wire::kResourcesFeature);
  EXPECT_TRUE(broker->Send(hello));
  wire::Welcome welcome;
  EXPECT_TRUE(broker->Receive(&welcome));
  EXPECT_TRUE(broker->Send(wire::MakeMessage<wire::OpenResources>()));
  EXPECT_TRUE(os::WaitReadable(broker->socket(), kTestTimeoutMs).ok());
  char packet[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  const auto size = os::ReceiveMessage(broker->socket(), packet, sizeof(packet), &fds, 2);
  wire::ResourcesOpened opened;
  EXPECT_TRUE(size.ok() && wire::ParseMessage(packet, *size, &opened));
  EXPECT_EQ(fds.size(), 2u) << opened.message;
  if (fds.size() != 2) return;
  transport = std::move(fds[0]);
  channel = std::move(fds[1]);
  if (!with_stub) return;
  stub = v1::Resources::NewStub(grpc::CreateInsecureChannelFromFd("raw", transport.release()));
}

void ResourceTest::ExpectServing(const BrokerProcess& broker) {
  Client client(broker.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  sluice_hold hold;
  EXPECT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
}

int ResourceTest::Baseline(const BrokerProcess& broker) {
  ExpectServing(broker);
  int before = -1;
  int steady = 0;
  EXPECT_TRUE(Becomes([&] {
    const int now = broker.CountOpenDescriptors();
    steady = std::exchange(before, now) == now ? steady + 1 : 0;
    return steady == 50;
  }));
  return before;
}

bool ResourceTest::SettlesAt(const BrokerProcess& broker, int count) {
  int now = -1;
  const bool settles = Becomes([&] { return (now = broker.CountOpenDescriptors()) <= count; });
  EXPECT_TRUE(settles) << now << " descriptors, and " << count << " before";
  return settles;
}

os::UniqueFd MakeMemfd(uint64_t size, int seals) {
  os::UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

Forked::Forked(const std::function<int()>& child) : pid_(::fork()) {
  if (pid_ == 0) ::_exit(child());
}

void Forked::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  Wait();
}

int Forked::Wait() {
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace sluice::broker
