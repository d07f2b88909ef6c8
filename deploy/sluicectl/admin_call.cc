// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/admin_call.h"

#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "deploy/sluicectl/endpoint.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/system_commands.h"

namespace sluice::ctl {

int Fail(const CommonFlags& flags, int exit_code, const std::string& message) {
  if (flags.json) {
    PrintJson({{"error", message}});
  } else {
    std::fflush(stdout);  // In one file, what came before stays before.
    std::fprintf(stderr, "sluicectl: %s\n", message.c_str());
  }
  return exit_code;
}

std::string Bytes(uint64_t count) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(count);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrCat(count, " B");
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string Advised(const std::string& problem, bool here) {
  const std::string advice = AdviceWithoutDaemon(here);
  return advice.empty() ? problem : absl::StrCat(problem, "; ", advice);
}

grpc::Status AdminCall::Make(const Call& call, const AdminChannel& channel) const {
  const auto stub = v1::Admin::NewStub(channel.channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(flags_.timeout_ms));
  channel.Prepare(&context);
  return channel.Check(context, call(stub.get(), &context));
}

int AdminCall::Run(const Call& call, const std::function<void()>& print) {
  const absl::StatusOr<std::vector<std::string>> paths =
      ResolveAdminSockets(flags_.admin_socket, flags_.endpoint, wants_ == Wants::kToLook);
  if (!paths.ok()) return Fail(flags_, kExitUsage, std::string(paths.status().message()));
  std::string path;
  const absl::StatusOr<AdminChannel> channel = Open(*paths, &path);
  if (!channel.ok()) return Unreachable(path, channel.status());
  const grpc::Status status = Make(call, *channel);
  if (status.ok()) {
    print();
    return kExitOk;
  }
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
    return Fail(flags_, kExitNoSession, status.error_message());
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return Unreachable(path, absl::UnavailableError("nobody answers"));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Unreachable(path, absl::DeadlineExceededError("no answer in time"));
  }
  return Fail(flags_, kExitFailed, absl::StrCat("the daemon answered: ", status.error_message()));
}

absl::Status AdminCall::Ask(const Call& call) {
  const absl::StatusOr<std::vector<std::string>> paths =
      ResolveAdminSockets(flags_.admin_socket, flags_.endpoint, wants_ == Wants::kToLook);
  if (!paths.ok()) return paths.status();
  std::string path;
  const absl::StatusOr<AdminChannel> channel = Open(*paths, &path);
  if (!channel.ok()) return channel.status();
  const grpc::Status status = Make(call, *channel);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// The first that can be opened. Else the problem of the last of those that refuse, for which the
// fewest rights are needed; else of the first that is there, or of the first. `path`: which one.
absl::StatusOr<AdminChannel> AdminCall::Open(const std::vector<std::string>& paths,
                                             std::string* path) {
  absl::Status problem;
  for (const std::string& candidate : paths) {
    absl::StatusOr<AdminChannel> channel = OpenAdminChannel(candidate, flags_.timeout_ms);
    if (channel.ok()) {
      *path = candidate;
      return channel;
    }
    const bool both_refuse =
        absl::IsPermissionDenied(problem) && absl::IsPermissionDenied(channel.status());
    if (!problem.ok() && !both_refuse &&
        (!absl::IsNotFound(problem) || absl::IsNotFound(channel.status())))
      continue;
    problem = channel.status();
    *path = candidate;
  }
  return problem;
}

int AdminCall::Unreachable(const std::string& path, const absl::Status& why) const {
  std::string advice;
  if (absl::IsPermissionDenied(why)) {
    advice = wants_ == Wants::kToLook
                 ? absl::StrCat("only the daemon's own user and ", MonitorsName(),
                                " may look; try as an administrator")
                 : "only the daemon's own user may administer it; try as an administrator";
  } else if (absl::IsFailedPrecondition(why)) {  // It is another program's, or no socket.
    advice = std::string(why.message());
  } else if (absl::IsNotFound(why)) {
    advice = Advised("is sluiced running? --endpoint or --admin-socket names another daemon",
                     /*here=*/true);
  } else if (absl::IsDeadlineExceeded(why)) {
    advice = absl::StrCat(
        "sluiced is there, but has not answered within ", flags_.timeout_ms,
        " ms; is it stopped, or the machine busy? See its log, or give a longer --timeout-ms");
  } else {
    advice = Advised("nobody answers there; start sluiced", /*here=*/true);
  }
  return Fail(flags_, kExitNoDaemon, absl::StrCat("cannot reach ", path, ": ", advice));
}

}  // namespace sluice::ctl
