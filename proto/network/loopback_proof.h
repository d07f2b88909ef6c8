// SPDX-License-Identifier: Apache-2.0
//
// The client's look at an answer from a port of loopback: whether it is the daemon's, or that of a
// program which has its port since (loopback_tokens.h). Plain functions.
#pragma once

#include <grpcpp/client_context.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/network/loopback_tokens.h"

namespace sluice::wire {

// After a call has ended, or a stream's first metadata has come. Only "nobody answers", in its
// several codes, is believed of a stranger, or of gRPC itself.
inline grpc::Status CheckLoopbackAnswer(const std::string& proof,
                                        const grpc::ClientContext& context,
                                        const grpc::Status& answer) {
  switch (answer.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
      return answer;
    default:
      break;
  }
  if (proof.empty()) return answer;
  const auto& metadata = context.GetServerInitialMetadata();
  const auto shown = metadata.find(kLoopbackProofKey);
  if (shown != metadata.end() && shown->second == proof) return answer;
  return grpc::Status(grpc::StatusCode::UNAVAILABLE,
                      "the daemon is gone, and another program answers on its port");
}

}  // namespace sluice::wire
