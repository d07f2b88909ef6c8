// SPDX-License-Identifier: Apache-2.0
#include "broker/os/dynamic_library.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"

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
  if (handle_ != nullptr && handle_owned_) ::dlclose(handle_);
  handle_ = nullptr;
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return absl::NotFoundError(
        absl::StrCat("cannot load ", path, ": ", reason != nullptr ? reason : "unknown reason"));
  }
  return DynamicLibrary(handle);
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::FindLoaded(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) {
    ::dlerror();  // The process's next dlerror is not about this.
    return absl::NotFoundError(absl::StrCat(name, " is not loaded"));
  }
  return DynamicLibrary(handle);
}

void* DynamicLibrary::Find(const char* symbol) const {
  return handle_ != nullptr ? ::dlsym(handle_, symbol) : nullptr;
}

}  // namespace sluice::os
