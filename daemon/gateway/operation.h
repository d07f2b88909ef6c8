// SPDX-License-Identifier: Apache-2.0
//
// The tag of a completion queue: an operation of some call, which keeps the call alive while gRPC
// works on it.
//
// Owner: the call, as a member. Complete runs on whichever thread took the event from the queue.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>
#include <utility>

namespace sluice::gateway {

class Operation {
 public:
  virtual void Complete(bool ok) = 0;

 protected:
  ~Operation() = default;
};

template <typename Call>
class CallOperation final : public Operation {
 public:
  using Done = void (Call::*)(bool ok);
  explicit CallOperation(Done done) : done_(done) {}

  // The tag to hand to gRPC, once per start.
  void* Start(std::shared_ptr<Call> call) {
    call_ = std::move(call);
    return static_cast<Operation*>(this);
  }
  // gRPC will not return this tag after all.
  void Drop() { call_.reset(); }

  void Complete(bool ok) override {
    const std::shared_ptr<Call> call = std::move(call_);
    (call.get()->*done_)(ok);
  }

 private:
  const Done done_;
  std::shared_ptr<Call> call_;
};

// Runs `start`, which starts one operation. If that is over at once, as most writes are, it is
// completed here, without waking a thread that waits at the queue.
template <typename StartFunction>
void RunHere(grpc::CompletionQueue* queue, StartFunction&& start) {
  void* tag = nullptr;
  bool ok = false;
  if (queue->DoThenAsyncNext(std::forward<StartFunction>(start), &tag, &ok,
                             gpr_time_0(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT) {
    static_cast<Operation*>(tag)->Complete(ok);
  }
}

}  // namespace sluice::gateway
