// SPDX-License-Identifier: Apache-2.0
// This worker's part of its account's device memory, as the broker has granted it
// (broker/children/memory_grants.h). A charge beyond it asks for more and waits for the answer; the
// broker gives more than that, so that the next ones do not wait. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::worker {

class MemoryGrant {
 public:
  struct Broker {
    std::function<bool(uint64_t serial, uint64_t bytes, bool ahead)> want;  // False: it is gone.
    std::function<void(uint64_t bytes)> give_back;
  };

  // `used`: what the session has charged, this charge included.
  explicit MemoryGrant(const std::atomic<uint64_t>* used) : used_(*used) {}

  // Before the session's first command. Without it nothing is asked for.
  void Attach(Broker broker, uint64_t account_limit);
  bool attached() const { return attached_; }

  // False if the session may not have so many bytes. Waits for the broker if it must ask.
  bool Cover(uint64_t total);

  // How much may be created from now on without a failure: what a client is told (Lease), and what
  // is not given back before it is told something else. A small part of the account's.
  uint64_t Promise();

  // The broker's words.
  void OnGranted(uint64_t serial, uint64_t bytes);
  void OnSpare();
  void OnLost();  // The session keeps what it was granted.

  uint64_t granted() const {
    absl::MutexLock lock(&mu_);
    return granted_;
  }

 private:
  bool Ask(uint64_t bytes, bool ahead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AskAhead(uint64_t total) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t Spare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A program that asks and asks is slowed down before the broker takes it for hostile.
  void Pace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::atomic<uint64_t>& used_;
  bool attached_ = false;  // Constant from the first command on, these three.
  Broker broker_;
  uint64_t most_promised_ = 0;

  mutable absl::Mutex mu_;
  uint64_t granted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t promised_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t ahead_ ABSL_GUARDED_BY(mu_) = 0;  // Of the last answer, beyond the need; 0: none.
  uint64_t serial_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t wanted_ ABSL_GUARDED_BY(mu_) = 0;  // By the question that is open.
  bool asking_ ABSL_GUARDED_BY(mu_) = false;
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  int64_t next_question_ns_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice::worker
