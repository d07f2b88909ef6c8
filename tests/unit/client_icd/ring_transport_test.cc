// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/ring_transport.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <memory>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/os/local_socket.h"
#include "proto/handle_messages.h"

namespace sluice::client {
namespace {

constexpr int kTimeoutMs = 10'000;

// The worker's end of the handle channel, in this process.
class RingTransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ends = os::CreateSocketPair();
    ASSERT_TRUE(ends.ok()) << ends.status();
    worker_ = std::move(ends->first);
    const os::UniqueFd commands = *os::CreateSharedMemory("test-ring", wire::kRingFileBytes);
    const os::UniqueFd replies = *os::CreateSharedMemory("test-ring", wire::kRingFileBytes);
    const int fds[] = {commands.get(), replies.get()};
    Send(wire::HandleMessageType::kRingOffer, wire::kRingFileBytes, 0, 0, fds, 2);
    auto transport = RingTransport::Connect(std::move(ends->second), kTimeoutMs, 0);
    ASSERT_TRUE(transport.ok()) << transport.status();
    transport_ = *std::move(transport);
  }

  void Send(wire::HandleMessageType type, uint64_t size, uint32_t segment, uint64_t address,
            const int* fds, int count) {
    wire::HandleMessage message = {};
    message.magic = wire::kHandleMagic;
    message.type = type;
    message.size = size;
    message.segment = segment;
    message.address = address;
    os::SendMessage(worker_.get(), &message, sizeof(message), fds, count).IgnoreError();
  }
  void SendShadow(uint64_t id, int count = 1) {
    const os::UniqueFd memory = *os::CreateSharedMemory("test-shadow", 4096);
    const std::vector<int> fds(static_cast<size_t>(count), memory.get());
    Send(wire::HandleMessageType::kShadowMemory, 4096, 0, id, fds.data(), count);
  }
  // Until the channel's thread has seen what was sent.
  void WaitUntilLost() {
    const absl::Time end = absl::Now() + absl::Milliseconds(kTimeoutMs);
    while (!transport_->lost() && absl::Now() < end) std::this_thread::yield();
    EXPECT_TRUE(transport_->lost());
  }

  os::UniqueFd worker_;
  std::unique_ptr<RingTransport> transport_;
};

// Memory that the worker exports is found under its object's id, once.
TEST_F(RingTransportTest, ExportedMemoryIsFoundByItsId) {
  SendShadow(7);
  SendShadow(9);
  SendShadow(11, 3);
  for (const auto& [id, count] : {std::pair(9, 1), std::pair(11, 3), std::pair(7, 1)}) {
    const std::vector<os::UniqueFd> fds = transport_->TakeDescriptors(static_cast<uint64_t>(id));
    ASSERT_EQ(fds.size(), static_cast<size_t>(count));
    struct stat info;
    for (const os::UniqueFd& fd : fds) EXPECT_EQ(fstat(fd.get(), &info), 0);
  }
  worker_.reset();
  WaitUntilLost();
  EXPECT_TRUE(transport_->TakeDescriptors(7).empty());
}

// A nap ends by its time if nothing comes, by the bell, and at once if the bell has rung before.
TEST_F(RingTransportTest, NapsEndByTheirTimeOrTheBell) {
  constexpr int64_t kLongNs = int64_t{kTimeoutMs} * 1'000'000;
  const absl::Time start = absl::Now();
  EXPECT_FALSE(transport_->Nap(transport_->Arm(wire::kSleepsForAny, 0), wire::kBitWaiter, 1000));
  const uint32_t ticket = transport_->Arm(wire::kSleepsForAny, 0);
  std::thread bell([this] { transport_->Interrupt(wire::kBitWaiter); });
  EXPECT_TRUE(transport_->Nap(ticket, wire::kBitWaiter, kLongNs));
  bell.join();
  EXPECT_TRUE(transport_->Nap(ticket, wire::kBitWaiter, kLongNs));
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(kTimeoutMs));
}

// A worker that sends memory nobody asks for, and one that sends none, lose the session.
TEST_F(RingTransportTest, FloodOfExportedMemoryLosesTheSession) {
  for (uint64_t id = 1; id <= 65; ++id) SendShadow(id);
  WaitUntilLost();
  EXPECT_NE(transport_->lost_reason().find("not asked for"), std::string::npos);
}
TEST_F(RingTransportTest, ExportedMemoryWithoutADescriptorLosesTheSession) {
  Send(wire::HandleMessageType::kShadowMemory, 4096, 0, 1, nullptr, 0);
  WaitUntilLost();
}
TEST_F(RingTransportTest, ExportedMemoryWithOneSemaphoreLosesTheSession) {
  SendShadow(1, 2);
  WaitUntilLost();
}

// A heap segment for an address where something lies already, as another session's does, is one
// that nothing fits into; the session goes on.
TEST_F(RingTransportTest, SegmentAtATakenAddressHoldsNothing) {
  const os::UniqueFd file = *os::CreateSharedMemory("test-segment", 4096);
  const os::SharedMapping in_the_way = *os::SharedMapping::Map(file.get(), 4096, /*writable=*/true);
  const int fd = file.get();
  Send(wire::HandleMessageType::kHeapSegment, 4096, wire::kFirstSvmSegment,
       reinterpret_cast<uint64_t>(in_the_way.data()), &fd, 1);
  EXPECT_EQ(transport_->Map({wire::kFirstSvmSegment, 0, 64}), nullptr);
  EXPECT_FALSE(transport_->lost());
}

// A process that may have no more descriptors, not even for those that it has let go of, cannot
// take memory. Then nothing fits into that, and the session goes on, also with memory that comes
// later.
TEST_F(RingTransportTest, SegmentsWithoutDescriptorsHoldNothing) {
  const os::UniqueFd file = *os::CreateSharedMemory("test-segment", 4096);
  const int fd = file.get();
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Send(wire::HandleMessageType::kHeapSegment, 4096, 5, 0, &fd, 1);
  Send(wire::HandleMessageType::kShadowMemory, 4096, 0, 9, &fd, 1);
  EXPECT_EQ(transport_->Map({5, 0, 64}), nullptr);
  EXPECT_TRUE(transport_->TakeDescriptors(9).empty());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  Send(wire::HandleMessageType::kHeapSegment, 4096, 6, 0, &fd, 1);
  EXPECT_NE(transport_->Map({6, 0, 64}), nullptr);
  EXPECT_FALSE(transport_->lost()) << transport_->lost_reason();
}

}  // namespace
}  // namespace sluice::client
