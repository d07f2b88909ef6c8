// SPDX-License-Identifier: Apache-2.0
#include "broker/os/dynamic_library.h"

#include <windows.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/wide_text.h"

namespace sluice::os {

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), handle_owned_(other.handle_owned_) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  if (this != &other) {
    Close();
    handle_ = std::exchange(other.handle_, nullptr);
    handle_owned_ = other.handle_owned_;
  }
  return *this;
}

DynamicLibrary::~DynamicLibrary() { Close(); }

void DynamicLibrary::Close() {
  if (handle_ != nullptr && handle_owned_) ::FreeLibrary(static_cast<HMODULE>(handle_));
  handle_ = nullptr;
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const std::string& path) {
  // A bare name is one of the system's libraries; one with a folder may have its own dependencies
  // beside it. The current folder and PATH, where anybody may put a library, are never searched.
  const bool has_folder = path.find_first_of("\\/") != std::string::npos;
  const DWORD search = has_folder ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32
                                  : LOAD_LIBRARY_SEARCH_SYSTEM32;
  HMODULE module = ::LoadLibraryExW(ToWide(path).c_str(), nullptr, search);
  if (module == nullptr) {
    return absl::NotFoundError(
        WindowsStatus(::GetLastError(), absl::StrCat("cannot load ", path)).message());
  }
  return DynamicLibrary(module);
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::FindLoaded(const std::string& name) {
  HMODULE module = nullptr;
  if (!::GetModuleHandleExW(0, ToWide(name).c_str(), &module)) {
    return absl::NotFoundError(absl::StrCat(name, " is not loaded"));
  }
  return DynamicLibrary(module);
}

void* DynamicLibrary::Find(const char* symbol) const {
  if (handle_ == nullptr) return nullptr;
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(handle_), symbol));
}

}  // namespace sluice::os
