// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/private_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/sluicectl/endpoint.h"

extern char** environ;

namespace sluice::ctl {
namespace {

constexpr int kDrainTimeoutMs = 2000;
constexpr int kStopTimeoutMs = 5000;
constexpr int kHoldFd = 3;  // It only stays open.

bool MayMakeFilesIn(const std::string& folder) {
  return ::access(folder.c_str(), W_OK | X_OK) == 0;
}

// True if drivers have a folder for compiled kernels: PoCL has no device without one.
bool HasCache() {
  for (const char* const name : {"POCL_CACHE_DIR", "XDG_CACHE_HOME"}) {
    if (std::getenv(name) != nullptr) return true;  // As it was wanted.
  }
  const char* const home = std::getenv("HOME");
  if (home == nullptr) return false;
  const std::string cache = absl::StrCat(home, "/.cache");
  return MayMakeFilesIn(::access(cache.c_str(), F_OK) == 0 ? cache : home);
}

// Ours, but for what would make the daemon talk to our own service manager, and with a place for
// the cache of who has none.
std::vector<std::string> DaemonEnvironment(const std::string& notify_path,
                                           const std::string& directory) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("NOTIFY_SOCKET=") || text.starts_with("LISTEN_")) continue;
    environment.emplace_back(text);
  }
  environment.push_back("NOTIFY_SOCKET=" + notify_path);
  if (!HasCache()) environment.push_back(absl::StrCat("XDG_CACHE_HOME=", directory, "/cache"));
  return environment;
}

absl::StatusOr<os::UniqueFd> BindNotifySocket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path ", path, " is too long for a socket; set TMPDIR to a shorter one"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("binding ", path));
  }
  return socket;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateDaemon>> PrivateDaemon::Start(const Options& options,
                                                                    int signals) {
  std::unique_ptr<PrivateDaemon> daemon(new PrivateDaemon);
  daemon->socket_path_ = options.directory + "/sluice/clients/broker.sock";
  if (daemon->socket_path_.find(',') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path ", daemon->socket_path_,
                     " has a comma, which separates endpoints; set TMPDIR to a place without one"));
  }
  const std::string notify_path = options.directory + "/notify.sock";
  absl::StatusOr<os::UniqueFd> notify = BindNotifySocket(notify_path);
  if (!notify.ok()) return notify.status();
  absl::StatusOr<std::string> executable = FindDaemon();
  if (!executable.ok()) return executable.status();

  os::SpawnOptions spawn;
  spawn.path = *std::move(executable);
  spawn.arguments = {
      "--socket", daemon->socket_path_,
      // An empty file: a private daemon does not depend on the system's configuration.
      "--config", options.config_file.empty() ? "/dev/null" : options.config_file,
      "--drain-timeout-ms", absl::StrCat(kDrainTimeoutMs)};
  // The directory is closed to others: root's program has root's workers, as with a driver of its
  // own, unless its configuration says otherwise. Users of the workers' own would not reach the
  // compile caches in there.
  if (::geteuid() == 0)
    spawn.arguments.insert(spawn.arguments.end(), {"--default-worker-user", "root"});
  spawn.environment = DaemonEnvironment(notify_path, options.directory);
  spawn.sandbox.parent_death_signal = SIGTERM;
  if (options.hold >= 0) spawn.descriptors = {{options.hold, kHoldFd}};
  os::UniqueFd log;
  if (!options.verbose) {
    daemon->log_path_ = options.directory + "/sluiced.log";
    log.reset(::open(daemon->log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log.valid())
      return absl::ErrnoToStatus(errno, absl::StrCat("creating ", daemon->log_path_));
    spawn.output = log.get();
  }
  absl::StatusOr<os::ChildProcess> process = os::Spawn(spawn);
  if (!process.ok()) return process.status();
  daemon->process_ = *std::move(process);
  absl::Status ready = daemon->WaitUntilReady(notify->get(), signals, options.start_timeout_ms);
  if (!ready.ok()) return ready;
  return daemon;
}

absl::Status PrivateDaemon::Failed(const std::string& what) {
  std::ifstream file(log_path_);
  std::stringstream log;
  if (file) log << file.rdbuf();
  return absl::InternalError(log.str().empty() ? what
                                               : absl::StrCat(what, "; its log:\n", log.str()));
}

absl::Status PrivateDaemon::WaitUntilReady(int notify_socket, int signals, int timeout_ms) {
  while (true) {
    pollfd entries[] = {
        {notify_socket, POLLIN, 0}, {process_.pidfd(), POLLIN, 0}, {signals, POLLIN, 0}};
    const int count = ::poll(entries, std::size(entries), timeout_ms);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) return Failed(absl::StrCat("sluiced was not ready in ", timeout_ms, " ms"));
    if (entries[2].revents != 0) return absl::CancelledError("interrupted");
    if (entries[0].revents != 0) {
      char state[1024];
      const ssize_t size = ::recv(notify_socket, state, sizeof(state), 0);
      const std::string_view text(state, size > 0 ? static_cast<size_t>(size) : 0);
      if (!text.starts_with("READY=1")) continue;
      constexpr std::string_view kNoDevices = "STATUS=No devices: ";
      if (const size_t at = text.find(kNoDevices); at != std::string_view::npos) {
        problem_ = std::string(text.substr(at + kNoDevices.size()));
      }
      return absl::OkStatus();
    }
    if (entries[1].revents != 0) {
      const std::optional<os::ExitStatus> status = process_.WaitAndReap(-1);
      return Failed(absl::StrCat("sluiced ended with ", status->Describe(), " instead of serving"));
    }
  }
}

PrivateDaemon::~PrivateDaemon() {
  // Once to drain; again to end what its client left behind; and then by force.
  for (int i = 0; i < 2 && process_.valid(); ++i) {
    process_.Signal(SIGTERM).IgnoreError();
    process_.WaitAndReap(kStopTimeoutMs);
  }
  if (!process_.valid()) return;
  process_.KillGroup();
  process_.WaitAndReap(-1);
}

}  // namespace sluice::ctl
