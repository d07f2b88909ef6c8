// SPDX-License-Identifier: Apache-2.0
//
// Clients that begin calls and give them up at once, frame by frame: a stream that was reset counts
// no more as one, but has yet to be worked off. And such as never acknowledge our settings, until
// when gRPC counts no streams at all.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/resources/raw_client.h"

namespace sluice::broker {
namespace {

// One HTTP/2 frame.
std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame + payload;
}

// A header field that goes into the table of both sides.
std::string Field(const std::string& name, const std::string& value) {
  std::string field = "\x40";
  field += static_cast<char>(name.size());
  field += name;
  field += static_cast<char>(value.size());
  return field + value;
}

// Calls, most of them given up in the same breath.
class Resetter {
 public:
  Resetter(int socket, const std::string& capability) : socket_(socket) {
    capability_ = "\x0a" + std::string(1, static_cast<char>(capability.size())) + capability;
    common_ = Field("te", "trailers") + Field("content-type", "application/grpc") +
              Field(":authority", "x");
    waiting_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "");
  }

  // False: the daemon has hung up.
  bool Send(int calls) {
    for (int i = 0; i < calls; ++i) Reset("Watch", capability_);
    return Flush();
  }
  // Acquires for reading, each a name of its own, that take what is free and wait for nothing.
  bool SendAcquires(int calls) {
    for (int i = 0; i < calls; ++i) {
      std::string hold = "\x21";  // Field 4, fixed64.
      for (int shift = 0; shift < 64; shift += 8)
        hold += static_cast<char>(uint64_t{stream_} >> shift & 0xff);
      Reset("Acquire", capability_ + std::string("\x10\x01", 2) + hold);
    }
    return Flush();
  }
  // Watches that stay, until each has told its first state.
  bool SendWatches(int calls) {
    for (int i = 0; i < calls; ++i) {
      Begin("Watch", capability_);
      stream_ += 2;
    }
    if (!Flush()) return false;
    for (pollfd readable = {socket_, POLLIN, 0}; states_ < calls;) {
      if (::poll(&readable, 1, kTestTimeoutMs) != 1 || !Read() || !Flush()) return false;
    }
    return true;
  }
  // Calls, whatever the daemon's settings are.
  bool SendOpen(int calls) {
    acknowledges_ = false;
    for (int i = 0; i < calls; ++i) {
      waiting_ += Frame(1, 4, stream_, Headers("Watch"));
      stream_ += 2;
    }
    return Flush();
  }

 private:
  std::string Headers(const std::string& method) {
    std::string path = Field(":path", "/sluice.v1.Resources/" + method);
    path[0] = '\0';                                                     // Not for the table.
    return "\x83\x86" + path + std::exchange(common_, "\xc0\xbf\xbe");  // The same, out of it.
  }
  void Begin(const std::string& method, const std::string& message) {
    waiting_ +=
        Frame(1, 4, stream_, Headers(method)) +
        Frame(0, 1, stream_, std::string(4, '\0') + static_cast<char>(message.size()) + message);
  }
  void Reset(const std::string& method, const std::string& message) {
    Begin(method, message);
    waiting_ += Frame(3, 0, stream_, std::string("\0\0\0\x08", 4));
    stream_ += 2;
  }
  // Reads all that is there: counts frames of data, acknowledges settings. False: the end.
  bool Read() {
    char some[64 * 1024];
    ssize_t got;
    while ((got = ::recv(socket_, some, sizeof(some), MSG_DONTWAIT)) > 0)
      answers_.append(some, static_cast<size_t>(got));
    constexpr size_t kHeader = 9;
    while (answers_.size() >= kHeader) {
      size_t size = kHeader;
      for (int i = 0; i < 3; ++i) size += size_t{static_cast<uint8_t>(answers_[i])} << (16 - 8 * i);
      if (answers_.size() < size) break;
      if (answers_[3] == 0) ++states_;
      if (answers_[3] == 4 && answers_[4] == 0 && acknowledges_) waiting_ += Frame(4, 1, 0, "");
      answers_.erase(0, size);
    }
    return got != 0;
  }
  bool Flush() {
    while (!waiting_.empty()) {
      if (!Read()) return false;
      const ssize_t sent =
          ::send(socket_, waiting_.data(), waiting_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) {
        waiting_.erase(0, static_cast<size_t>(sent));
        continue;
      }
      if (errno != EAGAIN) return false;
      pollfd writable = {socket_, POLLIN | POLLOUT, 0};
      ::poll(&writable, 1, kTestTimeoutMs);
    }
    return true;
  }

  const int socket_;
  std::string capability_;  // As a field of a message.
  std::string common_;      // Headers that all calls have.
  std::string waiting_;
  std::string answers_;  // The beginning of a frame.
  int states_ = 0;
  bool acknowledges_ = true;
  uint32_t stream_ = 1;
};

// A sanitizer keeps what was freed, or shadows it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kLittleKb = 768 * 1024;
#else
constexpr int64_t kLittleKb = 48 * 1024;
#endif

// The most memory that the broker has had.
int64_t PeakKb(const BrokerProcess& broker) {
  std::ifstream status("/proc/" + std::to_string(broker.pid()) + "/status");
  std::string word;
  int64_t kb = -1;
  while (status >> word) {
    if (word == "VmHWM:") status >> kb;
  }
  return kb;
}

// A daemon, an innocent client with a resource, and the calls of one that is not.
class RapidResetTest : public ResourceTest {
 protected:
  void SetUp() override {
    sluice_capability read, write;
    innocent_.MakeBuffer(4096, &read, &own_);
    innocent_.MakeBuffer(4096, &read, &write);
    before_kb_ = PeakKb(broker_);
    read_.assign(reinterpret_cast<char*>(read.bytes), sizeof(read.bytes));
    client_ = std::make_unique<RawClient>(broker_, false);
    resetter_ = std::make_unique<Resetter>(client_->transport.get(), read_);
  }
  bool InnocentHasATurn() {
    sluice_hold hold;
    return sluice_acquire(innocent_.get(), &own_, SLUICE_WRITE, 10'000, &hold) == SLUICE_OK &&
           sluice_release(innocent_.get(), &hold, 0) == SLUICE_OK;
  }
  void ExpectLittleCost() const { EXPECT_LT(PeakKb(broker_) - before_kb_, kLittleKb); }

  BrokerProcess broker_{directory_, {}};
  Client innocent_{broker_.endpoint()};
  sluice_capability own_ = {};  // The innocent client's own room.
  std::string read_;  // Opens what the other has too, who may hold it as long as it likes.
  int64_t before_kb_ = 0;
  std::unique_ptr<RawClient> client_;
  std::unique_ptr<Resetter> resetter_;
};

// Thousands of calls that are given up at once cost little memory, and others are served meanwhile.
TEST_F(RapidResetTest, CostsLittle) {
  constexpr int kBatch = 60;
  for (int i = 0; i < 120; ++i) {
    ASSERT_TRUE(resetter_->Send(kBatch));
    if (i % 10 == 0) {
      ASSERT_TRUE(InnocentHasATurn());
    }
  }
  ExpectLittleCost();
  ExpectServing(broker_);
}

// Nor do those of many connections of one user, each of which would tell a thousand watches.
TEST_F(RapidResetTest, ManyConnectionsCostLittle) {
  constexpr int kConnections = 16;
  constexpr int kBatch = 60;
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::unique_ptr<Resetter>> resetters;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<RawClient>(broker_, false));
    resetters.push_back(std::make_unique<Resetter>(clients.back()->transport.get(), read_));
    ASSERT_TRUE(resetters.back()->SendWatches(kBatch));
  }
  before_kb_ = PeakKb(broker_);
  for (int round = 0; round < 30; ++round) {
    for (auto& resetter : resetters) ASSERT_TRUE(resetter->SendAcquires(kBatch));
    if (round % 5 == 0) {
      ASSERT_TRUE(InnocentHasATurn());
    }
  }
  ASSERT_TRUE(InnocentHasATurn());
  ExpectLittleCost();
  ExpectServing(broker_);
}

// A client that opens calls without end before our settings are acknowledged is cut off, at little
// cost.
TEST_F(RapidResetTest, OpenCallsBeforeSettings) {
  int batches = 0;
  while (batches < 1000 && resetter_->SendOpen(100)) ++batches;
  EXPECT_LT(batches, 1000);
  ExpectLittleCost();
  EXPECT_TRUE(InnocentHasATurn());
  ExpectServing(broker_);
}

}  // namespace
}  // namespace sluice::broker
