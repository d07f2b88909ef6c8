// SPDX-License-Identifier: Apache-2.0
//
// The way to the daemon's admin service: a Unix socket; on Windows a port of loopback, with a token
// that the admin pipe gives (broker/admin_listener.h). Single thread.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::ctl {

struct AdminChannel {
  std::shared_ptr<grpc::Channel> channel;
  std::string token;  // Empty where none is wanted.
  std::string proof;  // That the daemon answers; empty where none is needed.
  os::UniqueFd pipe;  // Stays open as long as the token is used.

  void Prepare(grpc::ClientContext* context) const;
  // After the call: `answer`, or that it is not the daemon's.
  grpc::Status Check(const grpc::ClientContext& context, const grpc::Status& answer) const;
};

// kNotFound: nothing has this name; kPermissionDenied; kUnavailable: nobody answers;
// kFailedPrecondition: this is not the daemon's.
absl::StatusOr<AdminChannel> OpenAdminChannel(const std::string& name, int timeout_ms);

}  // namespace sluice::ctl
