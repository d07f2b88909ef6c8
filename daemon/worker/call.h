// SPDX-License-Identifier: Apache-2.0
// The things that a handler gets beside its message, and those that it gives back. An *answer* is
// an OpenCL status, which the application sees; a *violation* is an absl::Status: the client broke
// the protocol, and the session ends. Session thread only.
#pragma once

#include <CL/cl.h>

#include <utility>

#include "absl/status/status.h"
#include "proto/command.pb.h"
#include "proto/frame.h"

namespace sluice::worker {

namespace pb = v1;

class HandlerResult {
 public:
  HandlerResult(cl_int status) : kind_(Kind::kAnswer), status_(status) {}  // NOLINT: by design
  HandlerResult(absl::Status violation)                                    // NOLINT
      : kind_(Kind::kViolation), violation_(std::move(violation)) {}
  // The handler's own thread will send the answer.
  static HandlerResult Later() { return HandlerResult(Kind::kLater); }

  bool is_violation() const { return kind_ == Kind::kViolation; }
  bool is_later() const { return kind_ == Kind::kLater; }
  cl_int status() const { return status_; }
  const absl::Status& violation() const { return violation_; }

 private:
  enum class Kind { kAnswer, kViolation, kLater };
  explicit HandlerResult(Kind kind) : kind_(kind) {}
  Kind kind_;
  cl_int status_ = CL_SUCCESS;
  absl::Status violation_;
};

struct Call {
  wire::Frame& frame;  // A handler that keeps the payload moves the frame away.
  pb::Answer&
      answer;  // Filled by commands whose mode is Answer; the loop adds sequence and status.
  uint64_t sequence() const { return frame.header().sequence; }
};

}  // namespace sluice::worker
