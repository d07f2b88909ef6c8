// SPDX-License-Identifier: Apache-2.0
#include "broker/instance.h"

#include <windows.h>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/wide_text.h"

namespace sluice::broker {
namespace {

constexpr int kBacklog = 128;

// In the namespace that all sessions of the machine share, as pipes do.
std::wstring MutexName(const std::string& pipe_name) {
  return L"Global\\" + os::ToWide(pipe_name.substr(pipe_name.rfind('\\') + 1)) + L".lock";
}

}  // namespace

// A named mutex. The system drops it with the process, however it dies.
absl::StatusOr<InstanceLock> InstanceLock::Take(const std::string& socket_path) {
  os::OwnedHandle mutex(::CreateMutexW(nullptr, FALSE, MutexName(socket_path).c_str()));
  const DWORD error = ::GetLastError();
  if (mutex.valid() && error != ERROR_ALREADY_EXISTS) {
    return InstanceLock(socket_path, os::AddDescriptor(std::make_shared<os::HandleObject>(
                                         os::HandleKind::kEvent, std::move(mutex))));
  }
  // ERROR_INVALID_HANDLE: another kind of object has the name.
  if (mutex.valid() || error == ERROR_ACCESS_DENIED || error == ERROR_INVALID_HANDLE) {
    return absl::AlreadyExistsError(
        absl::StrCat("another sluiced serves ", socket_path,
                     "; stop it first, or start this one with another --socket (if none runs, "
                     "another program has taken the name ",
                     os::FromWide(MutexName(socket_path)), ")"));
  }
  return os::WindowsStatus(error, "taking the daemon's lock");
}

InstanceLock::~InstanceLock() = default;

// Pipes lie in no directory, and are gone with their server.
absl::Status MakeParentDirectory(const std::string&) { return absl::OkStatus(); }
absl::Status MakeDaemonFolders(const Config&) { return absl::OkStatus(); }
bool LinkOldPlaces(const Config&) { return false; }
void UnlinkOldPlaces(const Config&) {}
absl::Status RemoveStaleSocket(const std::string&) { return absl::OkStatus(); }
void RemoveSocketFile(const std::string&) {}

absl::StatusOr<os::UniqueFd> OpenListener(const ListenerPlace& place) {
  if (!place.group.empty()) {
    return absl::InvalidArgumentError(
        "a socket's group is not known on Windows: the pipe is open to all, or with mode \"0600\" "
        "to administrators and the daemon's own user");
  }
  return os::ListenLocal(place.path, place.mode, kBacklog);
}

absl::Status MakeListenerFolder(const std::string&) { return absl::OkStatus(); }
void RemoveListenerFolder(const std::string&) {}

}  // namespace sluice::broker
