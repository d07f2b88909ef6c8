// SPDX-License-Identifier: Apache-2.0
#include "broker/children/child_output.h"

#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "broker/os/file.h"

namespace sluice::broker {
namespace {

constexpr size_t kMaxLineBytes = 1024;
constexpr size_t kBytesPerWakeUp = 64 << 10;
constexpr int kReadsAtOnce = 16;       // As much as a child can make its pipe hold.
constexpr int64_t kFloodPauseMs = 10;  // 6 MiB/s of a flood are read, and thrown away.
constexpr size_t kTimeBytes = sizeof("2024-01-31T10:00:00.123Z") - 1;

}  // namespace

absl::StatusOr<os::UniqueFd> ChildOutput::Open(LogField whose) {
  thread_.Assert();
  Finish();
  whose_ = std::move(whose);
  absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> ends = os::CreateOutputPipe();
  if (!ends.ok()) return ends.status();
  pipe_ = std::move(ends->first);
  Watch();
  return std::move(ends->second);
}

void ChildOutput::Watch() {
  watch_ = loop_->Watch(pipe_.get(), [this] { OnReadable(); });
}

void ChildOutput::OnReadable() {
  const std::string bytes = os::ReadPipe(pipe_.get(), kBytesPerWakeUp);
  if (bytes.empty()) return loop_->Unwatch(&watch_);  // Nobody can write any more.
  const uint64_t before = left_out_;
  TakeBytes(bytes);
  if (left_out_ == before) return;
  loop_->Unwatch(&watch_);
  pause_ = loop_->AddTimer(kFloodPauseMs, [this] {
    pause_ = 0;
    Watch();
  });
}

void ChildOutput::Take() {
  thread_.Assert();
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const std::string bytes = os::ReadPipe(pipe_.get(), kBytesPerWakeUp);
    if (bytes.empty()) break;
    TakeBytes(bytes);
  }
}

void ChildOutput::Finish() {
  thread_.Assert();
  if (!pipe_.valid()) return;
  Take();
  EndLine();
  LogLeftOut();
  loop_->Unwatch(&watch_);
  loop_->CancelTimer(&pause_);
  pipe_.reset();
}

void ChildOutput::TakeBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const size_t room = kMaxLineBytes - line_.size();
    line_.append(part.substr(0, room));
    cut_ = cut_ || part.size() > room;
    if (end == std::string_view::npos) return;
    EndLine();
    bytes.remove_prefix(end + 1);
  }
}

void ChildOutput::EndLine() {
  if (line_.ends_with('\r')) line_.pop_back();  // Windows' programs end lines so.
  if (cut_) line_ += "...";
  if (!line_.empty()) {
    if (lines_.Allow(MonotonicMs())) {
      LogLeftOut();
      LogLine(line_);
    } else {
      ++left_out_;
    }
  }
  line_.clear();
  cut_ = false;
}

void ChildOutput::LogLine(std::string_view line) {
  LogLevel level = LogLevel::kInfo;
  const std::vector<std::string> parts = absl::StrSplit(std::string(line), absl::MaxSplits(' ', 3));
  if (parts.size() == 4 && parts[0].size() == kTimeBytes && parts[0].ends_with('Z') &&
      parts[2] == component_) {
    if (const std::optional<LogLevel> own = ParseLogLevel(parts[1])) {
      level = *own;
      line = parts[3];
    }
  }
  Log(level, component_, "output", {*whose_, {"text", line}});
}

void ChildOutput::LogLeftOut() {
  if (left_out_ == 0) return;
  Log(LogLevel::kWarning, component_, "too much output: lines were left out",
      {*whose_, {"lines", std::exchange(left_out_, 0)}});
}

}  // namespace sluice::broker
