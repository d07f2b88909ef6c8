// SPDX-License-Identifier: Apache-2.0
#include "broker/config/sandbox_trial.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "broker/os/file.h"
#include "broker/os/process.h"

namespace sluice::broker {
namespace {

constexpr int kAnswerFd = 3;
constexpr int kPatienceMs = 10'000;
constexpr size_t kMostAnswerBytes = 4096;
constexpr uid_t kNobody = 65534;

// As workers' users go, some user that is not root.
std::optional<os::UserIdentity> TrialUser(const Config& config) {
  if (!os::IsPrivileged()) return std::nullopt;
  absl::StatusOr<os::UserIdentity> named = os::LookUpUser(config.worker.user.value_or("sluice"));
  if (named.ok()) return *std::move(named);
  os::UserIdentity nobody;
  nobody.uid = nobody.gid = kNobody;
  return nobody;
}

SandboxTrial All(const std::string& why) { return {why, why}; }

SandboxTrial Try(const os::SpawnOptions& asked) {
  os::SpawnOptions options = asked;
  absl::StatusOr<std::string> path = os::FindHelperExecutable("sluice-worker");
  if (!path.ok()) return All(std::string(path.status().message()));
  options.path = *std::move(path);
  const absl::StatusOr<os::UniqueFd> answer = os::CreateScratchFile("sluice-sandbox");
  if (!answer.ok()) return All(std::string(answer.status().message()));
  options.descriptors = {{answer->get(), kAnswerFd}};
  options.environment = os::OwnEnvironment();
  options.output = os::kNoOutput;
  options.sandbox.stays_in_session = true;
  absl::StatusOr<os::ChildProcess> process = os::Spawn(options);
  if (!process.ok()) return All(std::string(process.status().message()));
  const std::optional<os::ExitStatus> ended = process->WaitAndReap(kPatienceMs);
  if (!ended.has_value()) {
    process->KillGroup();
    process->WaitAndReap(kPatienceMs);
    return All("the trial did not end");
  }
  if (ended->signal != 0 || ended->code != 0)
    return All(absl::StrCat("the trial: ", ended->Describe()));
  const absl::StatusOr<std::string> text = os::ReadScratchFile(answer->get(), kMostAnswerBytes);
  if (!text.ok()) return All(std::string(text.status().message()));
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  if (lines.size() != 2) return All("the trial said nothing");
  return {lines[0], lines[1]};
}

}  // namespace

const SandboxTrial& TrySandbox(const Config& config) {
  static std::map<std::string, SandboxTrial>& known = *new std::map<std::string, SandboxTrial>;
  os::SpawnOptions options;
  options.sandbox.user = TrialUser(config);
  options.arguments = {"--try-sandbox", absl::StrCat("--snapshot-fd=", kAnswerFd)};
  for (const std::string& file : config.worker.readable)
    options.arguments.push_back(absl::StrCat("--readable=", file));
  for (const std::string& file : config.worker.executable)
    options.arguments.push_back(absl::StrCat("--executable=", file));
  const std::string key =
      absl::StrCat(options.sandbox.user.has_value() ? options.sandbox.user->uid : 0, " ",
                   absl::StrJoin(options.arguments, " "));
  if (const auto found = known.find(key); found != known.end()) return found->second;
  return known[key] = Try(options);
}

}  // namespace sluice::broker
