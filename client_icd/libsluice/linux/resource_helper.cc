// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_helper.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/os/local_socket.h"
#include "client_icd/connect/helper_program.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

// Beyond the call's own time.
constexpr uint64_t kHelperPatienceMs = 5'000;
// States that nobody has taken: a few.
constexpr int kWatchBufferBytes = 4 * 1024;

absl::Status Gone() { return absl::UnavailableError("the daemon, or the process to it, is gone"); }

int Bounded(int64_t ms) { return static_cast<int>(std::clamp<int64_t>(ms, 0, 1'000'000'000)); }

struct Received {
  bool last = false;
  absl::Status told;  // By the daemon, of the call.
  std::string bytes;
};

// kUnavailable: nothing is there yet. kAborted: the helper has ended.
absl::StatusOr<Received> Receive(int socket) {
  std::string packet(kMaxHelperMessage, '\0');
  ASSIGN_OR_RETURN(const size_t size,
                   os::ReceiveMessage(socket, packet.data(), packet.size(), nullptr, 0));
  if (size == 0) return absl::AbortedError("end of file");
  HelperReply header = {};
  if (size >= sizeof(header)) std::memcpy(&header, packet.data(), sizeof(header));
  if (header.magic != kResourceHelperMagic)
    return absl::InternalError("a broken answer of the helper");
  Received received;
  received.last = header.last != 0;
  received.bytes = packet.substr(sizeof(header), size - sizeof(header));
  received.told = absl::Status(static_cast<absl::StatusCode>(header.code), received.bytes);
  return received;
}

class HelperWatch final : public ResourceWatch, private WatchedState {
 public:
  explicit HelperWatch(os::UniqueFd socket) : socket_(std::move(socket)) {}

  absl::StatusOr<v1::ResourceState> Next(uint32_t timeout_ms) override {
    WaitForNews(absl::Milliseconds(timeout_ms));
    absl::MutexLock lock(&mutex_);
    return TakeLocked();
  }
  absl::Status WaitForFirst(absl::Duration timeout) override {
    WaitForNews(timeout);
    absl::MutexLock lock(&mutex_);
    return FirstLocked();
  }

 private:
  void WaitForNews(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time end = absl::Now() + timeout;
    while (!Drain()) {
      const int left_ms =
          Bounded(absl::ToInt64Milliseconds(absl::Ceil(end - absl::Now(), absl::Milliseconds(1))));
      if (!os::WaitReadable(socket_.get(), left_ms).ok()) return;
    }
  }

  // True: there is something to tell.
  bool Drain() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    while (!done_) {
      const absl::StatusOr<Received> received = Receive(socket_.get());
      if (absl::IsUnavailable(received.status())) break;
      if (received.ok() && !received->last) {
        news_ = latest_.ParseFromString(received->bytes) || news_;
        continue;
      }
      done_ = true;
      end_ = received.ok() ? received->told : Gone();
    }
    return news_ || done_;
  }

  const os::UniqueFd socket_;  // Its end is the Watch's.
};

class HelperCalls final : public ResourceHelper {
 public:
  HelperCalls(os::UniqueFd calls, std::shared_ptr<HelperProcess> process)
      : process_(std::move(process)), calls_(std::move(calls)) {}

  absl::Status Call(const char* method, const google::protobuf::MessageLite& request,
                    uint64_t timeout_ms, google::protobuf::MessageLite* reply) override {
    HelperCall call = {};
    call.timeout_ms = timeout_ms;
    std::strncpy(call.method, method, sizeof(call.method) - 1);
    ASSIGN_OR_RETURN(const os::UniqueFd answer, Send(call, request));
    if (!os::WaitReadable(answer.get(),
                          Bounded(static_cast<int64_t>(timeout_ms + kHelperPatienceMs)))
             .ok()) {
      return absl::DeadlineExceededError("the daemon does not answer");
    }
    const absl::StatusOr<Received> received = Receive(answer.get());
    if (!received.ok()) return Gone();
    if (!received->told.ok()) return received->told;
    if (!reply->ParseFromString(received->bytes))
      return absl::InternalError("a broken answer of the daemon");
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ResourceWatch>> Watch(
      const google::protobuf::MessageLite& request) override {
    HelperCall call = {};
    call.watches = 1;
    ASSIGN_OR_RETURN(os::UniqueFd answer, Send(call, request));
    RETURN_IF_ERROR(os::SetNonBlocking(answer.get(), true));
    return std::unique_ptr<ResourceWatch>(std::make_unique<HelperWatch>(std::move(answer)));
  }

 private:
  // This end of the socket that the answer comes on.
  absl::StatusOr<os::UniqueFd> Send(HelperCall call, const google::protobuf::MessageLite& request) {
    call.magic = kResourceHelperMagic;
    std::string packet(reinterpret_cast<const char*>(&call), sizeof(call));
    request.AppendToString(&packet);
    if (packet.size() > kMaxHelperMessage) {
      return absl::InvalidArgumentError(absl::StrCat("the request has ", packet.size(),
                                                     " bytes, allowed are ", kMaxHelperMessage));
    }
    ASSIGN_OR_RETURN(auto ends, os::CreateSocketPair());
    if (call.watches != 0) os::LimitUnread(ends.second.get(), kWatchBufferBytes);
    const int theirs = ends.second.get();
    if (!os::SendMessage(calls_.get(), packet.data(), packet.size(), &theirs, 1).ok())
      return Gone();
    return std::move(ends.first);
  }

  const std::shared_ptr<HelperProcess> process_;
  const os::UniqueFd calls_;  // Closed first.
};

}  // namespace

absl::StatusOr<std::unique_ptr<ResourceHelper>> ResourceHelper::Start(os::UniqueFd transport,
                                                                      const absl::Status& why) {
  ASSIGN_OR_RETURN(auto ends, os::CreateSocketPair());
  absl::StatusOr<std::shared_ptr<HelperProcess>> started =
      StartHelperProgram(kResourceHelper, {},
                         {{ends.second.get(), kCallsSocket}, {transport.get(), kTransportSocket}});
  if (started.ok())
    return std::make_unique<HelperCalls>(std::move(ends.first), *std::move(started));
  return absl::UnimplementedError(absl::StrCat(
      why.message(),
      "; and the program for that case cannot be started: ", started.status().message()));
}

}  // namespace sluice::client
