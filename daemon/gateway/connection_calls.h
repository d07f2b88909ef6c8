// SPDX-License-Identifier: Apache-2.0
//
// How many calls there are: CallCount of one kind, ConnectionCalls of each connection. gRPC 1.51
// holds a peer to MAX_CONCURRENT_STREAMS only once the peer has acknowledged the settings. One that
// never does so could have calls without end, at some 11 KiB each. The caller cancels a call that
// is over the limit.
//
// Owner: GatewayServer. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace sluice::gateway {

class CallCount {
 public:
  explicit CallCount(int most) : most_(most) {}

  // False, and nothing counted, if there are as many as there may be.
  bool Enter() {
    if (count_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    Leave();
    return false;
  }
  void Leave() { count_.fetch_sub(1, std::memory_order_relaxed); }
  int count() const { return count_.load(std::memory_order_relaxed); }

 private:
  const int most_;
  std::atomic<int> count_{0};
};

class ConnectionCalls {
 public:
  explicit ConnectionCalls(int most) : most_(most) {}

  // One call's place, from its beginning to its end.
  class Place {
   public:
    Place() = default;
    ~Place() {
      if (calls_ != nullptr) calls_->Leave(connection_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // `connection`: the context's peer(), host and port. False: it has as many as it may.
    bool Take(ConnectionCalls* calls, std::string connection) {
      if (!calls->Enter(connection)) return false;
      calls_ = calls;
      connection_ = std::move(connection);
      return true;
    }

   private:
    ConnectionCalls* calls_ = nullptr;
    std::string connection_;
  };

 private:
  bool Enter(const std::string& connection) {
    absl::MutexLock lock(&mu_);
    int& count = counts_[connection];
    if (count >= most_) return false;
    ++count;
    return true;
  }
  void Leave(const std::string& connection) {
    absl::MutexLock lock(&mu_);
    const auto it = counts_.find(connection);
    if (--it->second == 0) counts_.erase(it);
  }

  const int most_;
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, int> counts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::gateway
