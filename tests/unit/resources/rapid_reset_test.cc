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

#include "tests/unit/resources/raw_client.h"

namespace sluice {
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

// Calls of Watch, each given up in the same breath.
class Resetter {
 public:
  Resetter(int socket, const std::string& capability) : socket_(socket) {
    const std::string message = "\x0a" + std::string(1, static_cast<char>(capability.size()));
    body_ = std::string(4, '\0') + static_cast<char>(message.size() + capability.size()) + message +
            capability;
    headers_ = "\x83\x86" + Field(":path", "/sluice.v1.Resources/Watch") + Field("te", "trailers") +
               Field("content-type", "application/grpc") + Field(":authority", "x");
    waiting_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "");
  }

  // False: the daemon has hung up.
  bool Send(int calls) {
    for (int i = 0; i < calls; ++i) {
      Begin();
      waiting_ += Frame(0, 1, stream_, body_) + Frame(3, 0, stream_, std::string("\0\0\0\x08", 4));
      stream_ += 2;
    }
    return Flush();
  }
  bool SendOpen(int calls) {
    for (int i = 0; i < calls; ++i) {
      Begin();
      stream_ += 2;
    }
    return Flush();
  }

 private:
  void Begin() {
    waiting_ += Frame(1, 4, stream_, headers_);
    headers_ = "\x83\x86\xc1\xc0\xbf\xbe";  // The same, out of the table.
  }
  bool Flush() {
    while (!waiting_.empty()) {
      char answers[64 * 1024];
      ssize_t got;
      while ((got = ::recv(socket_, answers, sizeof(answers), MSG_DONTWAIT)) > 0) {
      }
      if (got == 0) return false;
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
  std::string body_;
  std::string headers_;
  std::string waiting_;
  uint32_t stream_ = 1;
};

// A sanitizer keeps what was freed, or shadows it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kLittleKb = 512 * 1024;
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
    sluice_capability read;
    innocent_.MakeBuffer(4096, &read, &write_);
    before_kb_ = PeakKb(broker_);
    client_ = std::make_unique<RawClient>(broker_, false);
    resetter_ = std::make_unique<Resetter>(
        client_->transport.get(),
        std::string(reinterpret_cast<char*>(read.bytes), sizeof(read.bytes)));
  }
  bool InnocentHasATurn() {
    sluice_hold hold;
    return sluice_acquire(innocent_.get(), &write_, SLUICE_WRITE, 10'000, &hold) == SLUICE_OK &&
           sluice_release(innocent_.get(), &hold, 0) == SLUICE_OK;
  }
  void ExpectLittleCost() const { EXPECT_LT(PeakKb(broker_) - before_kb_, kLittleKb); }

  BrokerProcess broker_{directory_, {}};
  Client innocent_{broker_.endpoint()};
  sluice_capability write_ = {};
  int64_t before_kb_ = 0;
  std::unique_ptr<RawClient> client_;
  std::unique_ptr<Resetter> resetter_;
};

// Thousands of calls that are given up at once cost little memory, and others are served meanwhile.
TEST_F(RapidResetTest, CostsLittle) {
  constexpr int kBatch = 60;
  for (int i = 0; i < 300 && resetter_->Send(kBatch); ++i) {
    if (i % 10 == 0) {
      ASSERT_TRUE(InnocentHasATurn());
    }
  }
  ExpectLittleCost();
  ExpectServing(broker_);
}

// Who opens calls without end before our settings are acknowledged is cut off, at little cost.
TEST_F(RapidResetTest, OpenCallsBeforeSettings) {
  int batches = 0;
  while (batches < 1000 && resetter_->SendOpen(100)) ++batches;
  EXPECT_LT(batches, 1000);
  ExpectLittleCost();
  EXPECT_TRUE(InnocentHasATurn());
  ExpectServing(broker_);
}

}  // namespace
}  // namespace sluice
