// SPDX-License-Identifier: Apache-2.0
//
// One `sluicectl install` or `uninstall` at a time in all of the machine: each writes several
// things, which belong together. A mutex by name, for the system and administrators alone; the
// system passes it on when its holder dies. Whoever makes the name first, which any user may, can
// keep it from us: then nothing is installed, and who asked is told the name. Of the thread that
// took it.
#pragma once

#include <windows.h>

#include <utility>

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::broker {

inline constexpr wchar_t kInstallationLock[] = L"Global\\sluice-installation.lock";

class InstallationLock {
 public:
  // Waits for who has it, saying so on stderr once that is long, and no longer than `patience_ms`:
  // one that waits for a service to stop, and one behind it, end in time.
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
