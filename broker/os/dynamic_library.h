// SPDX-License-Identifier: Apache-2.0
//
// A shared library opened at run time: the vendor's OpenCL in the worker, the application's GL in
// the ICD, the ICD in `sluicectl doctor`. Symbols stay local to it. Thread-compatible.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace sluice::os {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();  // Closes the library.

  // The status of a failure has the loader's message.
  static absl::StatusOr<DynamicLibrary> Open(const std::string& path);

  // A library that the process has loaded already, by the name it was loaded under; NotFoundError
  // if it has not. Keeps it loaded.
  static absl::StatusOr<DynamicLibrary> FindLoaded(const std::string& name);

  // Null if there is no such symbol.
  void* Find(const char* symbol) const;

  bool valid() const { return handle_ != nullptr; }

  // Lets the library stay loaded for the rest of the process's life: for code that starts threads
  // of its own, which must not be unmapped under them.
  void KeepForever() { handle_owned_ = false; }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void Close();

  void* handle_ = nullptr;
  bool handle_owned_ = true;
};

}  // namespace sluice::os
