// SPDX-License-Identifier: Apache-2.0
// The front on Linux: it listens itself, and gives gRPC one end of a socket pair per connection.
#include "daemon/gateway/front/front.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "platform_linux/gateway/front_state.h"
#include "platform_linux/gateway/front_thread.h"
#include "platform_linux/gateway/listeners.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

// For each connection, its socket and both ends of the pair; and for its session, the handle
// channel.
constexpr rlim_t kDescriptorsPerConnection = 4;
constexpr rlim_t kOtherDescriptors = 128;

int ThreadCount() {
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cpus / 4, 2, 8);
}

void AllowDescriptors(const ConnectionLimits& limits) {
  rlimit limit = {};
  const rlim_t wanted = static_cast<rlim_t>(limits.most) * kDescriptorsPerConnection +
                        static_cast<rlim_t>(limits.most_newcomers) * kDescriptorsPerConnection +
                        kOtherDescriptors;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return;
  Log(LogLevel::kWarning, "gateway",
      "the system allows fewer descriptors than max_connections may need",
      {{"allowed", static_cast<int64_t>(limit.rlim_cur)},
       {"wanted", static_cast<int64_t>(wanted)}});
}

class LinuxFront final : public Front {
 public:
  absl::Status Prepare(const FrontOptions& options, grpc::ServerBuilder*) override {
    state_ = new FrontState(options);  // Its threads end with the process.
    RETURN_IF_ERROR(Reload(options.tls));
    AllowDescriptors(options.limits);
    for (const std::string& address : options.listen) {
      absl::StatusOr<std::vector<os::UniqueFd>> sockets = ListenOn(address);
      if (!sockets.ok()) {
        return absl::UnavailableError(
            absl::StrCat("cannot listen on ", address, ": ", sockets.status().message()));
      }
      ports_.push_back(PortOf(sockets->front().get()));
      for (os::UniqueFd& socket : *sockets) listeners_.push_back(std::move(socket));
    }
    return absl::OkStatus();
  }

  absl::Status Start(grpc::Server* server) override {
    state_->server = server;
    std::vector<int> listeners;
    for (const os::UniqueFd& listener : listeners_) listeners.push_back(listener.get());
    for (int i = 0; i < ThreadCount(); ++i) {
      ASSIGN_OR_RETURN(FrontThread* const thread, FrontThread::StartInside(state_));
      inside_.push_back(thread);
    }
    ASSIGN_OR_RETURN(door_, FrontThread::StartAtDoor(state_, listeners, inside_));
    return absl::OkStatus();
  }

  std::vector<int> Ports() const override { return ports_; }

  void StopListening() override {
    if (door_ != nullptr) door_->StopListening();
    listeners_.clear();
  }

  AdmittedPeer PeerOf(const grpc::ServerContext& call) override {
    const std::shared_ptr<PeerRecord> record = state_->peers.Find(call.peer());
    return record == nullptr ? AdmittedPeer() : record->peer;
  }

  bool Known(const grpc::ServerContext& call) override {
    const std::shared_ptr<PeerRecord> record = state_->peers.Find(call.peer());
    if (record == nullptr) return false;  // The client has left.
    if (record->known.load()) return true;
    if (!state_->limiter.Settle(record->place.get())) return false;
    record->known.store(true);
    return true;
  }

  void SendNow(const grpc::ServerContext& call) override {
    if (state_->gives_sockets()) return;
    const std::shared_ptr<PeerRecord> record = state_->peers.Find(call.peer());
    if (record == nullptr) return;
    absl::MutexLock lock(&record->mu);
    if (record->connection != nullptr) record->connection->SendNow();
  }

  absl::Status Reload(const TlsFiles& files) override {
    if (state_->plaintext) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::shared_ptr<const TlsContext> fresh, TlsContext::Create(files));
    {
      absl::MutexLock lock(&state_->mu);
      state_->tls_context = std::move(fresh);
    }
    for (FrontThread* const thread : inside_) thread->Recheck();
    return absl::OkStatus();
  }

 private:
  FrontState* state_ = nullptr;
  std::vector<os::UniqueFd> listeners_;
  std::vector<int> ports_;
  std::vector<FrontThread*> inside_;
  FrontThread* door_ = nullptr;
};

}  // namespace

std::unique_ptr<Front> Front::Create() { return std::make_unique<LinuxFront>(); }

}  // namespace sluice::gateway
