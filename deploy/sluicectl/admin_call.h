// SPDX-License-Identifier: Apache-2.0
//
// One call to the daemon's admin service, and how sluicectl prints an answer. Single thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/sluicectl/admin_channel.h"
#include "deploy/sluicectl/admin_commands.h"
#include "deploy/sluicectl/output.h"
#include "proto/admin.grpc.pb.h"

namespace sluice::ctl {

// On stderr, or as JSON. Returns `exit_code`.
int Fail(const CommonFlags& flags, int exit_code, const std::string& message);

// `problem`, and what to do where no daemon runs.
std::string Advised(const std::string& problem, bool here);

// "512.0 MiB".
std::string Bytes(uint64_t count);

enum class Wants { kToLook, kToChange };

// One call to the admin service, through the admin socket, or, for who may not open that and only
// wants to look, the monitor socket; a failure is printed and becomes an exit code.
class AdminCall {
 public:
  AdminCall(const CommonFlags& flags, Wants wants) : flags_(flags), wants_(wants) {}

  using Call = std::function<grpc::Status(v1::Admin::Stub*, grpc::ClientContext*)>;

  int Run(const Call& call, const std::function<void()>& print);
  // The same without a word.
  absl::Status Ask(const Call& call);

 private:
  grpc::Status Make(const Call& call, const AdminChannel& channel) const;
  absl::StatusOr<AdminChannel> Open(const std::vector<std::string>& paths, std::string* path);
  int Unreachable(const std::string& path, const absl::Status& why) const;

  const CommonFlags& flags_;
  const Wants wants_;
};

}  // namespace sluice::ctl
