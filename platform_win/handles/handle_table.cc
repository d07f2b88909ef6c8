// SPDX-License-Identifier: Apache-2.0
#include "platform_win/handles/handle_table.h"

#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/inherited_handles.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

constexpr size_t kFirstDescriptor = 3;

struct Table {
  Table() : objects(kFirstDescriptor) {
    for (InheritedHandle& inherited : TakeInheritedHandles()) {
      const auto number = static_cast<size_t>(inherited.number);
      if (objects.size() <= number) objects.resize(number + 1);
      objects[number] = std::move(inherited.object);
    }
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<HandleObject>> objects;
};

Table& TheTable() {
  // Never destroyed: threads may still have descriptors while the process ends.
  static Table* table = new Table;
  return *table;
}

absl::StatusCode CodeOf(DWORD error) {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_MOD_NOT_FOUND:
    case ERROR_NONE_MAPPED:
      return absl::StatusCode::kNotFound;
    case ERROR_ACCESS_DENIED:
    case ERROR_PRIVILEGE_NOT_HELD:
      return absl::StatusCode::kPermissionDenied;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_TOO_MANY_OPEN_FILES:
      return absl::StatusCode::kResourceExhausted;
    case ERROR_INVALID_HANDLE:
    case ERROR_INVALID_PARAMETER:
      return absl::StatusCode::kInvalidArgument;
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

OwnedHandle DuplicateHandleHere(HANDLE handle, DWORD access, bool inheritable) {
  HANDLE duplicate = nullptr;
  ::DuplicateHandle(::GetCurrentProcess(), handle, ::GetCurrentProcess(), &duplicate, access,
                    inheritable ? TRUE : FALSE, access == 0 ? DUPLICATE_SAME_ACCESS : 0);
  return OwnedHandle(duplicate);
}

UniqueFd AddDescriptor(std::shared_ptr<HandleObject> object) {
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  size_t number = kFirstDescriptor;
  while (number < table.objects.size() && table.objects[number] != nullptr) ++number;
  if (number == table.objects.size()) table.objects.emplace_back();
  table.objects[number] = std::move(object);
  return UniqueFd(static_cast<int>(number));
}

std::shared_ptr<HandleObject> FindDescriptor(int fd) {
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  if (fd < 0 || static_cast<size_t>(fd) >= table.objects.size()) return nullptr;
  return table.objects[static_cast<size_t>(fd)];
}

std::shared_ptr<HandleObject> FindDescriptor(int fd, HandleKind kind) {
  std::shared_ptr<HandleObject> object = FindDescriptor(fd);
  if (object != nullptr && object->kind() != kind) return nullptr;
  return object;
}

int CountDescriptors() {
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  int count = 0;
  for (const auto& object : table.objects) count += object != nullptr ? 1 : 0;
  return count;
}

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    const DWORD saved_error = ::GetLastError();
    std::shared_ptr<HandleObject> closed;  // Destroyed outside the lock: that may take long.
    {
      Table& table = TheTable();
      const std::lock_guard<std::mutex> lock(table.mutex);
      const auto index = static_cast<size_t>(fd_);
      if (index < table.objects.size()) closed = std::move(table.objects[index]);
    }
    closed.reset();
    ::SetLastError(saved_error);
  }
  fd_ = fd;
}

UniqueFd DuplicateFd(int fd) {
  std::shared_ptr<HandleObject> object = FindDescriptor(fd);
  return object == nullptr ? UniqueFd() : AddDescriptor(std::move(object));
}

absl::Status WindowsStatus(DWORD error, absl::string_view what) {
  wchar_t text[256] = {};
  const DWORD length =
      ::FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, error,
                       0, text, static_cast<DWORD>(std::size(text)), nullptr);
  std::string message = FromWide(std::wstring_view(text, length));
  while (!message.empty() && (message.back() == '\n' || message.back() == '\r' ||
                              message.back() == '.' || message.back() == ' ')) {
    message.pop_back();
  }
  // Wine has no messages for Winsock's errors.
  const std::string said = message.empty() ? absl::StrCat("Windows' error ", error)
                                           : absl::StrCat(message, " (", error, ")");
  return absl::Status(CodeOf(error), absl::StrCat(what, ": ", said));
}

}  // namespace sluice::os
