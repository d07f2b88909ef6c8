// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/printf_capture.h"

#include <string>

#include "broker/os/local_socket.h"
#include "broker/os/threads.h"
#include "daemon/worker/replies.h"
#include "daemon/worker/worker_process.h"

namespace sluice::worker {

absl::Status PrintfCapture::Start(Replies* replies) {
  absl::StatusOr<os::UniqueFd> captured = CaptureStdout();
  if (!captured.ok()) return captured.status();
  read_end_ = *std::move(captured);
  replies_ = replies;
  // A kernel that prints more than the pipe holds must not wait for its own completion to drain it.
  os::StartDetached([this] {
    while (os::WaitReadable(read_end_.get(), -1).ok()) DrainNow();
  });
  return absl::OkStatus();
}

void PrintfCapture::DrainNow() {
  absl::MutexLock lock(&mu_);
  constexpr size_t kAtOnce = 16 * 1024;
  while (true) {
    const std::string text = ReadCaptured(read_end_.get(), kAtOnce);
    if (text.empty()) return;
    pb::Reply reply;
    reply.mutable_printed()->set_text(text);
    replies_->Send(reply, wire::Wake::kUrgent);
  }
}

}  // namespace sluice::worker
