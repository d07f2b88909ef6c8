// SPDX-License-Identifier: Apache-2.0
//
// Windows only: a counted reference to a COM object, the application's or ours. Not thread-safe, as
// a pointer; the count that it changes is.
#pragma once

#include <unknwn.h>

#include <utility>

namespace sluice::os {

template <typename T>
class ComPtr {
 public:
  ComPtr() = default;
  ComPtr(const ComPtr& other) : ComPtr(Share(other.object_)) {}
  ComPtr(ComPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ComPtr& operator=(ComPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ComPtr() {
    if (object_ != nullptr) object_->Release();
  }

  // The interface of `object` that T names, in its own reference; null if it has none.
  static ComPtr Of(IUnknown* object) {
    ComPtr ref;
    if (object == nullptr || FAILED(object->QueryInterface(__uuidof(T), ref.out_void()))) return {};
    return ref;
  }
  static ComPtr Share(T* object) {
    ComPtr ref;
    ref.object_ = object;
    if (object != nullptr) object->AddRef();
    return ref;
  }

  // As Of, but returns COM's answer.
  template <typename Other>
  HRESULT As(ComPtr<Other>* other) const {
    return object_->QueryInterface(__uuidof(Other), other->out_void());
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

// True if both are the same object: COM compares by IUnknown.
inline bool IsSameObject(IUnknown* a, IUnknown* b) {
  return ComPtr<IUnknown>::Of(a).get() == ComPtr<IUnknown>::Of(b).get();
}

}  // namespace sluice::os
