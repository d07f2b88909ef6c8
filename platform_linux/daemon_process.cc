// SPDX-License-Identifier: Apache-2.0
#include "broker/os/daemon_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sluice {

void EnsureStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", O_RDWR) < 0) ::_exit(1);
  }
}

void PrepareDaemonProcess() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // Before there are threads: all inherit it.
  // A session is 3 descriptors here and a connection 2: the soft limit of 1024 is soon reached.
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

int BecomeProgram(const std::string& path, char** argv) {
  ::execv(path.c_str(), argv);
  std::fprintf(stderr, "sluiced: cannot run %s: %s\n", path.c_str(), std::strerror(errno));
  return -1;
}

}  // namespace sluice
