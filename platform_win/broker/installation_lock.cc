// SPDX-License-Identifier: Apache-2.0
#include "platform_win/broker/installation_lock.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform_win/security/access_notation.h"
#include "platform_win/wide_text.h"

namespace sluice::broker {
namespace {

constexpr wchar_t kList[] = L"D:P(A;;GA;;;SY)(A;;GA;;;BA)";
constexpr DWORD kTellAfterMs = 2'000;  // A person waits this long without wondering.

std::string DescribeTakenName(const wchar_t* name) {
  return absl::StrCat("another program has taken the name ", os::FromWide(name),
                      ", which must end first");
}

bool IsOurs(DWORD answer) { return answer == WAIT_OBJECT_0 || answer == WAIT_ABANDONED; }

}  // namespace

absl::StatusOr<InstallationLock> InstallationLock::Take(const wchar_t* name, DWORD patience_ms) {
  const os::AccessNotation access(kList);
  if (access.get() == nullptr) return os::WindowsStatus(::GetLastError(), "writing an access list");
  SECURITY_ATTRIBUTES attributes = {sizeof(attributes), access.get(), FALSE};
  os::OwnedHandle mutex(::CreateMutexW(&attributes, FALSE, name));
  if (!mutex.valid()) {
    const DWORD error = ::GetLastError();
    if (error == ERROR_ACCESS_DENIED) {
      return absl::PermissionDeniedError(absl::StrCat(
          "only an administrator may install and uninstall, in a prompt that was opened as "
          "administrator (if this is one, ",
          DescribeTakenName(name), ")"));
    }
    // Another kind of object has the name.
    if (error == ERROR_INVALID_HANDLE) return absl::AlreadyExistsError(DescribeTakenName(name));
    return os::WindowsStatus(error, "taking the lock of installations");
  }
  const DWORD first = std::min(kTellAfterMs, patience_ms);
  DWORD answer = ::WaitForSingleObject(mutex.get(), first);
  if (answer == WAIT_TIMEOUT && first < patience_ms) {
    std::fprintf(stderr, "waiting for another `sluicectl install` or `uninstall` to end\n");
    answer = ::WaitForSingleObject(mutex.get(), patience_ms - first);
  }
  if (IsOurs(answer)) return InstallationLock(std::move(mutex));
  if (answer != WAIT_TIMEOUT) return os::WindowsStatus(::GetLastError(), "waiting for the other");
  return absl::DeadlineExceededError(absl::StrCat(
      "another `sluicectl install` or `uninstall` has not ended within ", patience_ms / 1000,
      " s: look what it waits for, or end it (Task Manager), and try again (if there is none, ",
      DescribeTakenName(name), ")"));
}

InstallationLock::~InstallationLock() {
  if (mutex_.valid()) ::ReleaseMutex(mutex_.get());
}

}  // namespace sluice::broker
