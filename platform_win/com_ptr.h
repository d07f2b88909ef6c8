// SPDX-License-Identifier: Apache-2.0
//
// Owns one reference of a COM object and gives it back once. Thread-compatible.
#pragma once

#include <unknwn.h>

#include <utility>

namespace sluice {

template <typename T>
class ComPtr {
 public:
  ComPtr() = default;
  ComPtr(ComPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ComPtr& operator=(ComPtr&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ComPtr() {
    if (object_ != nullptr) object_->Release();
  }

  // For functions that hand out a reference. The pointer is empty.
  T** out() { return &object_; }
  void** out_void() { return reinterpret_cast<void**>(&object_); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace sluice
