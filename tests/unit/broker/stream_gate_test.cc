// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/broker/stream_gate.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace sluice::broker {
namespace {

constexpr int kTimeoutMs = 20'000;

std::string Frame(uint8_t type, size_t size) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(size >> shift);
  frame += static_cast<char>(type);
  frame += std::string(5, '\0');
  return frame + std::string(size, '\3');  // As if more resets stood in it.
}

// However the bytes are cut.
TEST(FrameMeterTest, CountsFramesOnly) {
  const std::string bytes = std::string(24, '\3') + Frame(3, 4) + Frame(0, 70'000) + Frame(3, 4) +
                            Frame(4, 0) + Frame(3, 4);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
    FrameMeter meter;
    int resets = 0;
    for (size_t at = 0; at < bytes.size(); at += piece)
      resets += meter.Count(bytes.data() + at, std::min(piece, bytes.size() - at));
    EXPECT_EQ(resets, 3) << piece;
  }
}

// A frame's header, and as many bytes as it says.
std::string FrameOf(uint8_t type, uint8_t flags, size_t size) {
  std::string frame = Frame(type, size);
  frame[4] = static_cast<char>(flags);
  return frame;
}

bool Breaks(const std::string& frames) {
  FrameMeter meter;
  const std::string bytes = std::string(24, 'x') + frames;
  meter.Count(bytes.data(), bytes.size());
  return meter.broken();
}

// Calls without end are a breach until our settings are acknowledged, since until then gRPC does
// not count them; afterwards they are gRPC's to refuse.
TEST(FrameMeterTest, CallsBeforeTheAcknowledgement) {
  std::string calls;
  for (int i = 0; i < 512; ++i) calls += FrameOf(1, 4, 6);
  EXPECT_FALSE(Breaks(calls));
  EXPECT_TRUE(Breaks(calls + FrameOf(1, 4, 6)));
  EXPECT_TRUE(Breaks(FrameOf(4, 0, 6) + calls + FrameOf(1, 4, 6)));  // Settings of its own.
  EXPECT_FALSE(Breaks(FrameOf(4, 1, 0) + calls + calls));
}

// A block of headers has an end, however it is cut; one block's size does not count for the next.
TEST(FrameMeterTest, HeadersWithoutAnEnd) {
  std::string rest;
  for (int i = 0; i < 8'000; ++i) rest += FrameOf(9, 0, 0);
  EXPECT_TRUE(Breaks(FrameOf(1, 0, 10) + rest));
  EXPECT_TRUE(Breaks(FrameOf(1, 0, 60'000) + FrameOf(9, 0, 10'000)));
  EXPECT_FALSE(Breaks(FrameOf(1, 0, 60'000) + FrameOf(9, 4, 10) + FrameOf(1, 4, 60'000)));
}

class StreamGateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto gate = StreamGate::Start();
    ASSERT_TRUE(gate.ok()) << gate.status();
    gate_ = *std::move(gate);
    AddStream(&client_, &server_);
  }
  // Both ends of one more.
  void AddStream(os::UniqueFd* client_end, os::UniqueFd* server_end) {
    int client[2], server[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, server), 0);
    client_end->reset(client[0]);
    server_end->reset(server[0]);
    gate_->Add(os::UniqueFd(client[1]), os::UniqueFd(server[1]));
  }
  // The bytes that come until there are `size`, or the end.
  static std::string Receive(int fd, size_t size) {
    std::string all;
    char some[4096];
    while (all.size() < size) {
      const ssize_t got = ::recv(fd, some, sizeof(some), 0);
      if (got <= 0) break;
      all.append(some, static_cast<size_t>(got));
    }
    return all;
  }
  static bool HangsUp(int fd) {
    pollfd entry = {fd, 0, 0};
    return ::poll(&entry, 1, kTimeoutMs) == 1 && (entry.revents & POLLHUP) != 0;
  }

  std::unique_ptr<StreamGate> gate_;
  os::UniqueFd client_, server_;
};

TEST_F(StreamGateTest, PassesBytesOn) {
  std::string bytes;
  for (int i = 0; i < 1 << 20; ++i) bytes += static_cast<char>(i * 7 + i / 256);
  for (const auto& [from, to] :
       {std::pair(client_.get(), server_.get()), std::pair(server_.get(), client_.get())}) {
    std::thread sender([&bytes, fd = from] {
      for (size_t at = 0; at < bytes.size();) {
        const ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (sent <= 0) break;
        at += static_cast<size_t>(sent);
      }
    });
    EXPECT_TRUE(Receive(to, bytes.size()) == bytes);
    sender.join();
  }
}

// First the bytes that were sent before an end comes; then the end of the other.
TEST_F(StreamGateTest, EndsBoth) {
  const std::string last(10'000, 'x');
  ASSERT_EQ(::send(server_.get(), last.data(), last.size(), 0), static_cast<ssize_t>(last.size()));
  server_.reset();
  EXPECT_EQ(Receive(client_.get(), last.size() + 1), last);
}

// A peer that does not read is not waited for when the other has left.
TEST_F(StreamGateTest, EndsWhoDoesNotRead) {
  const std::string some(4096, 'x');
  // Until neither the gate nor the sockets take more.
  pollfd entry = {server_.get(), POLLOUT, 0};
  for (int quiet = 0; quiet < 3;) {
    if (::send(server_.get(), some.data(), some.size(), MSG_DONTWAIT) > 0) {
      quiet = 0;
    } else if (::poll(&entry, 1, 50) == 0) {
      ++quiet;
    }
  }
  server_.reset();
  EXPECT_TRUE(HangsUp(client_.get()));
}

// A peer that gives up calls too fast waits, loses nothing, and is forgotten if it ends meanwhile;
// others go on.
TEST_F(StreamGateTest, MakesResettersWait) {
  std::string resets(24, 'x');
  for (int i = 0; i < 600; ++i) resets += Frame(3, 4);
  os::UniqueFd leaver, leavers_server;
  AddStream(&leaver, &leavers_server);
  const auto send = [&resets](int fd) {
    return ::send(fd, resets.data(), resets.size(), 0) == static_cast<ssize_t>(resets.size());
  };
  ASSERT_TRUE(send(leaver.get()));
  ASSERT_FALSE(Receive(leavers_server.get(), 4096).empty());  // It waits now.
  leaver.reset();
  ASSERT_TRUE(send(client_.get()));  // Waits longer than the first would have.
  os::UniqueFd other, others_server;
  AddStream(&other, &others_server);
  ASSERT_EQ(::send(other.get(), "x", 1, 0), 1);
  EXPECT_EQ(Receive(others_server.get(), 1), "x");
  EXPECT_TRUE(Receive(server_.get(), resets.size()) == resets);
  EXPECT_TRUE(HangsUp(leavers_server.get()));
}

// Many streams that give up calls bring no more together than one does: they wait for each other.
// One that gives up few waits for none of them.
TEST_F(StreamGateTest, StreamsShareResets) {
  constexpr int kStreams = 40;  // The last has to wait for seconds.
  const auto resets = [](int count) {
    std::string frames(24, 'x');
    for (int i = 0; i < count; ++i) frames += Frame(3, 4);
    return frames;
  };
  const auto pass = [](int from, int to, const std::string& bytes) {
    ASSERT_EQ(::send(from, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ASSERT_TRUE(Receive(to, bytes.size()) == bytes);
  };
  os::UniqueFd clients[kStreams], servers[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    AddStream(&clients[i], &servers[i]);
    pass(clients[i].get(), servers[i].get(), resets(255));  // Any one may have so much at once.
  }
  ASSERT_EQ(::send(clients[kStreams - 1].get(), "y", 1, 0), 1);
  for (int i = 0; i < 3; ++i) pass(client_.get(), server_.get(), i == 0 ? resets(10) : Frame(3, 4));
  char y;
  EXPECT_EQ(::recv(servers[kStreams - 1].get(), &y, 1, MSG_DONTWAIT), -1) << "it did not wait";
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace sluice::broker
