// SPDX-License-Identifier: Apache-2.0
//
// One `sluicectl install` or `uninstall` at a time on the machine: each writes several things that
// belong together. A named mutex, for the system and administrators alone; the system passes it on
// when its holder dies. Any user may make the name first and keep it from us: then nothing is
// installed, and the error has the name. It belongs to the thread that took it.
#pragma once

#include <windows.h>

#include <utility>

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::broker {

inline constexpr wchar_t kInstallationLock[] = L"Global\\sluice-installation.lock";

class InstallationLock {
 public:
  // Waits for the holder, `patience_ms` at most, and says so on stderr once that takes long. The
  // limit is enough for a holder that waits for a service to stop.
  static absl::StatusOr<InstallationLock> Take(const wchar_t* name = kInstallationLock,
                                               DWORD patience_ms = 150'000);
  ~InstallationLock();
  InstallationLock(InstallationLock&&) = default;
  InstallationLock& operator=(InstallationLock&&) = delete;

 private:
  explicit InstallationLock(os::OwnedHandle mutex) : mutex_(std::move(mutex)) {}

  os::OwnedHandle mutex_;
};

}  // namespace sluice::broker
