// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/admin_channel.h"

#include <grpcpp/create_channel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::ctl {

void AdminChannel::Prepare(grpc::ClientContext*) const {}

grpc::Status AdminChannel::Check(const grpc::ClientContext&, const grpc::Status& answer) const {
  return answer;
}

absl::StatusOr<AdminChannel> OpenAdminChannel(const std::string& name, int) {
  struct stat info = {};
  if (::stat(name.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode))
    return absl::FailedPreconditionError("this is no socket; name the daemon's admin socket");
  if (::access(name.c_str(), R_OK | W_OK) != 0) return absl::ErrnoToStatus(errno, name);
  AdminChannel channel;
  channel.channel = grpc::CreateChannel("unix:" + name, grpc::InsecureChannelCredentials());
  return channel;
}

}  // namespace sluice::ctl
