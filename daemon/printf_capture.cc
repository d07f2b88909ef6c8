// SPDX-License-Identifier: Apache-2.0
#include "daemon/printf_capture.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/replies.h"

namespace sluice {

absl::Status PrintfCapture::Start(Replies* replies) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return absl::ErrnoToStatus(errno, "pipe for the output of kernels");
  read_end_.reset(ends[0]);
  UniqueFd write_end(ends[1]);
  fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
  fcntl(write_end.get(), F_SETPIPE_SZ, 1 << 20);  // A wish; a smaller pipe works too.
  std::fflush(stdout);
  if (dup2(write_end.get(), STDOUT_FILENO) < 0) return absl::ErrnoToStatus(errno, "dup2 of stdout");
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  replies_ = replies;
  // A kernel that prints more than the pipe holds must not wait for its own completion to drain it.
  std::thread([this] {
    pollfd entry = {read_end_.get(), POLLIN, 0};
    while (poll(&entry, 1, -1) >= 0 || errno == EINTR) {
      if ((entry.revents & POLLIN) != 0) DrainNow();
      if ((entry.revents & (POLLERR | POLLNVAL)) != 0) return;
    }
  }).detach();
  return absl::OkStatus();
}

void PrintfCapture::DrainNow() {
  absl::MutexLock lock(&mu_);
  char text[16 * 1024];
  while (true) {
    const ssize_t bytes = read(read_end_.get(), text, sizeof(text));
    if (bytes <= 0) return;
    pb::Reply reply;
    reply.mutable_printed()->set_text(text, static_cast<size_t>(bytes));
    replies_->Send(reply, Wake::kUrgent);
    if (static_cast<size_t>(bytes) < sizeof(text)) return;
  }
}

}  // namespace sluice
