// SPDX-License-Identifier: Apache-2.0
//
// Descriptors on Windows. The rest of Sluice names the system's objects by an int, as POSIX does
// (UniqueFd). Here such a number is an index into this table of the process, which owns the
// HANDLEs. 0 to 2 are never given out. Nothing in the table is inherited by a child unless Spawn
// lists it: then the child finds it under the number that Spawn said (inherited_handles.h).
//
// Thread-safe. An object lives on while a call uses it, though its descriptor is closed meanwhile.
// As with POSIX, closing a descriptor that others still use is a bug.
#pragma once

#include <windows.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

// Owns one HANDLE and closes it once. Thread-compatible.
class OwnedHandle {
 public:
  explicit OwnedHandle(HANDLE handle = nullptr) : handle_(Clean(handle)) {}
  OwnedHandle(OwnedHandle&& other) noexcept : handle_(other.release()) {}
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;
  ~OwnedHandle() { reset(); }

  HANDLE get() const { return handle_; }
  bool valid() const { return handle_ != nullptr; }
  [[nodiscard]] HANDLE release() { return std::exchange(handle_, nullptr); }
  void reset(HANDLE handle = nullptr) {
    if (handle_ != nullptr) ::CloseHandle(handle_);
    handle_ = Clean(handle);
  }

 private:
  // CreateFile's value for "none" differs from the rest of the system's.
  static HANDLE Clean(HANDLE handle) { return handle == INVALID_HANDLE_VALUE ? nullptr : handle; }

  HANDLE handle_;
};

// Another handle of the same thing in this process, not inheritable; invalid if there is none.
// `access` 0: as the first.
OwnedHandle DuplicateHandleHere(HANDLE handle, DWORD access = 0, bool inheritable = false);

enum class HandleKind { kPipe, kListener, kEvent, kSection, kProcess, kFile, kGraphics };

// The handle that a descriptor stands for.
class HandleObject {
 public:
  HandleObject(HandleKind kind, OwnedHandle handle) : kind_(kind), handle_(std::move(handle)) {}
  virtual ~HandleObject() = default;
  HandleObject(const HandleObject&) = delete;
  HandleObject& operator=(const HandleObject&) = delete;

  HandleKind kind() const { return kind_; }
  HANDLE handle() const { return handle_.get(); }

  // Prepares a wait: returns the handle that becomes signalled when there is something to read, or
  // to accept, or when the process has ended; null if the object cannot be waited for.
  virtual HANDLE PrepareWait() {
    return kind_ == HandleKind::kEvent || kind_ == HandleKind::kProcess ? handle() : nullptr;
  }

 protected:
  // For an object whose handle nobody uses any more.
  void CloseNow() { handle_.reset(); }

 private:
  const HandleKind kind_;
  OwnedHandle handle_;
};

// The lowest number that is free from 3 on; the same object may stand in several places.
UniqueFd AddDescriptor(std::shared_ptr<HandleObject> object);
// Null if there is no such descriptor.
std::shared_ptr<HandleObject> FindDescriptor(int fd);
// Null also if it is of another kind.
std::shared_ptr<HandleObject> FindDescriptor(int fd, HandleKind kind);
// The number of descriptors, for tests.
int CountDescriptors();

// A status with `what`, which was tried, and Windows' message for `error` (GetLastError).
absl::Status WindowsStatus(DWORD error, absl::string_view what);

}  // namespace sluice::os
