// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/broker_link.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "broker/os/local_socket.h"
#include "proto/broker_messages.h"

namespace sluice::gateway {
namespace {

constexpr auto kHang = std::chrono::seconds(30);

// A link, and the broker's end of it, which reads when the test does.
class BrokerLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = os::CreateSocketPair();
    ASSERT_TRUE(pair.ok());
    broker_ = std::move(pair->first);
    const auto welcome = wire::MakeMessage<wire::Welcome>();
    ASSERT_TRUE(os::SendMessage(broker_.get(), &welcome, sizeof(welcome)).ok());
    auto link = BrokerLink::Connect(std::move(pair->second), absl::Seconds(30));
    ASSERT_TRUE(link.ok()) << link.status();
    wire::GatewayHello hello;
    ASSERT_TRUE(Receive(&hello));
    link_ = link->release();  // Its threads run on, as in a gateway.
    ASSERT_TRUE(link_->Start([](BrokerEnd) {}, [](uint32_t, std::vector<os::UniqueFd>) {}).ok());
  }
  // The next message, if it is a T.
  template <typename T>
  bool Receive(T* message) {
    char packet[wire::kMaxBrokerMessageBytes];
    std::vector<os::UniqueFd> fds;
    const auto size = os::ReceiveMessage(broker_.get(), packet, sizeof(packet), &fds, 0);
    return size.ok() && wire::ParseMessage(packet, *size, message);
  }

  os::UniqueFd broker_;
  BrokerLink* link_ = nullptr;
};

// A broker that reads nothing holds up no session's end and no opening beyond its time, and gets
// all of it, in order, when it goes on.
TEST_F(BrokerLinkTest, NobodyWaitsForAStoppedBroker) {
  constexpr uint64_t kSessions = 5000;  // Far more than the socket holds.
  std::future<void> closed = std::async(std::launch::async, [this] {
    for (uint64_t id = 1; id <= kSessions; ++id) link_->CloseSession(id);
  });
  EXPECT_EQ(closed.wait_for(kHang), std::future_status::ready);
  const auto opened = link_->OpenSession(0, "peer", "process", absl::Milliseconds(1));
  EXPECT_EQ(opened.status().message(), "the daemon did not answer in time");
  link_->CloseSession(kSessions + 1);
  for (uint64_t id = 1; id <= kSessions + 1; ++id) {
    wire::CloseSession close;
    ASSERT_TRUE(Receive(&close)) << id;
    ASSERT_EQ(close.session_id, id);
  }
}

}  // namespace
}  // namespace sluice::gateway
