// SPDX-License-Identifier: Apache-2.0
#include "broker/os/stop_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "broker/os/scoped_handle.h"
#include "platform_linux/errno_status.h"

namespace sluice::os {
namespace {

class SignalFd final : public StopSignals {
 public:
  explicit SignalFd(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const override { return fd_.get(); }

  std::optional<Kind> Next() override {
    signalfd_siginfo info;
    if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
    return info.ssi_signo == SIGHUP ? Kind::kReload : Kind::kStop;
  }

 private:
  const UniqueFd fd_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Open() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, number);
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "signalfd");
  return std::make_unique<SignalFd>(std::move(fd));
}

}  // namespace sluice::os
