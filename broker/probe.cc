// SPDX-License-Identifier: Apache-2.0
#include "broker/probe.h"

#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/file.h"
#include "broker/os/shared_memory.h"
#include "broker/os/this_process.h"

namespace sluice::broker {
namespace {

// Of the reason that clients are told.
constexpr size_t kMostReasonBytes = 200;

// For a daemon that was told where its drivers are, and finds none.
std::string DriverHint() {
  const std::string vendors = os::EnvironmentVariable("OCL_ICD_VENDORS").value_or("");
  if (vendors.empty()) return "";
  return absl::StrCat("; the daemon looks only where OCL_ICD_VENDORS=", vendors, " says");
}

// A failed probe writes its reason in place of a snapshot.
std::string PlainText(std::string_view bytes) {
  std::string text(bytes.substr(0, kMostReasonBytes));
  for (char& c : text) c = absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  return text;
}

}  // namespace

Probe::~Probe() { Cancel(); }

void Probe::Cancel() {
  thread_.Assert();
  watch_.Stop();
  loop_->CancelTimer(&timer_);
  KillAndReap(&child_, "probe");
  said_.Finish();
}

Probe::Summary Probe::Copy() const {
  absl::MutexLock lock(&mutex_);
  return summary_;
}

void Probe::Start(const WorkerLauncher& launcher, uint64_t memory_limit, int64_t timeout_ms,
                  std::function<void()> on_done) {
  thread_.Assert();
  if (child_.valid()) return;
  on_done_ = std::move(on_done);
  timeout_ms_ = timeout_ms;
  timed_out_ = false;
  absl::StatusOr<os::UniqueFd> output = os::CreateScratchFile("sluice-probe");
  if (!output.ok()) return Finish(output.status());
  output_ = *std::move(output);
  absl::StatusOr<os::UniqueFd> said = said_.Open({"task", "probe"});
  if (!said.ok()) return Finish(said.status());
  absl::StatusOr<os::ChildProcess> child =
      launcher.Launch({"--probe", "--snapshot-fd=3", absl::StrCat("--limit-memory=", memory_limit)},
                      {{output_.get(), 3}}, "", said->get());
  if (!child.ok()) return Finish(child.status());
  child_ = *std::move(child);
  watch_.Start(&child_, [this](const os::ExitStatus& status) { OnExit(status); });
  timer_ = loop_->AddTimer(timeout_ms, [this] {
    timer_ = 0;
    timed_out_ = true;
    child_.KillGroup();  // OnExit follows.
  });
}

absl::StatusOr<std::string> Probe::Collect(const os::ExitStatus& status) const {
  if (timed_out_) {
    return absl::DeadlineExceededError(
        absl::StrCat("the probe for devices did not end in ", timeout_ms_,
                     " ms (probe_timeout_ms); a driver hangs, or the machine is very busy"));
  }
  // Not ReadSealedCopy: the file is still writable, by the probe's offspring perhaps.
  absl::StatusOr<std::string> bytes = os::ReadScratchFile(output_.get(), kMaxSnapshotBytes);
  if (status.signal != 0 || status.code != 0) {
    // Clients are told this, and cannot see the daemon's log.
    const std::string why = status.signal == 0 && bytes.ok() ? PlainText(*bytes) : "";
    return absl::InternalError(absl::StrCat("the probe for devices ended with ", status.Describe(),
                                            why.empty() ? "" : ": ", why, DriverHint()));
  }
  if (!bytes.ok()) {
    return absl::Status(bytes.status().code(),
                        absl::StrCat("the probe's answer: ", bytes.status().message()));
  }
  if (bytes->empty()) {
    return absl::NotFoundError(
        "no OpenCL platform with an allowed device on the daemon's machine; install its "
        "driver there (on Linux for the processor, pocl-opencl-icd) or check [devices] in its "
        "configuration" +
        DriverHint());
  }
  return bytes;
}

void Probe::OnExit(const os::ExitStatus& status) {
  loop_->CancelTimer(&timer_);
  said_.Finish();
  Finish(Collect(status));
}

void Probe::Finish(absl::StatusOr<std::string> snapshot) {
  output_.reset();
  absl::StatusOr<os::UniqueFd> sealed =
      snapshot.ok() ? os::CreateSealedCopy("sluice-snapshot", snapshot->data(), snapshot->size())
                    : absl::StatusOr<os::UniqueFd>(snapshot.status());
  const std::string problem = sealed.ok() ? "" : std::string(sealed.status().message());
  changed_ = results_ == 0 || problem != problem_ || (sealed.ok() && *snapshot != Copy().bytes);
  problem_ = problem;
  // Only a probe whose result differs from the last one's is logged.
  if (sealed.ok()) {
    sealed_ = *std::move(sealed);
    size_ = snapshot->size();
    Log(changed_ ? LogLevel::kInfo : LogLevel::kDebug, "broker", "devices found",
        {{"snapshot_bytes", size_}});
  } else {
    Log(changed_ ? LogLevel::kError : LogLevel::kDebug, "broker", "no devices to offer",
        {{"reason", problem_}});
  }
  const bool none_allowed = absl::IsNotFound(snapshot.status());
  if (!sealed_.valid() || none_allowed) {
    // Clients get an empty snapshot and the reason, so that `sluicectl doctor` can show it.
    size_ = 0;
    absl::StatusOr<os::UniqueFd> empty = os::CreateSealedCopy("sluice-snapshot", "", 0);
    if (empty.ok()) sealed_ = *std::move(empty);
  }
  ++results_;
  {
    absl::MutexLock lock(&mutex_);
    if (snapshot.ok() || none_allowed) summary_.bytes = snapshot.value_or("");
    summary_.problem = problem_;
  }
  const std::function<void()> on_done = std::exchange(on_done_, nullptr);
  if (on_done) on_done();
}

}  // namespace sluice::broker
