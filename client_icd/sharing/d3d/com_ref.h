// SPDX-License-Identifier: Apache-2.0
// A counted reference to a COM object of the application, or of ours. Not thread-safe, as a
// pointer; the count that it changes is.
#pragma once

#include <unknwn.h>

#include <utility>

namespace sluice::sharing {

template <typename T>
class ComRef {
 public:
  ComRef() = default;
  ComRef(const ComRef& other) : ComRef(Share(other.object_)) {}
  ComRef(ComRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ComRef& operator=(ComRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ComRef() {
    if (object_ != nullptr) object_->Release();
  }

  // The interface of `object` that T names, in its own reference; null if it has none.
  static ComRef Of(IUnknown* object) {
    ComRef ref;
    if (object == nullptr || FAILED(object->QueryInterface(__uuidof(T), ref.out_void()))) return {};
    return ref;
  }
  static ComRef Share(T* object) {
    ComRef ref;
    ref.object_ = object;
    if (object != nullptr) object->AddRef();
    return ref;
  }

  // For functions that hand out a reference. The ref is empty.
  T** out() { return &object_; }
  void** out_void() { return reinterpret_cast<void**>(&object_); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// Whether both are the same object: COM compares by IUnknown.
inline bool IsSameObject(IUnknown* a, IUnknown* b) {
  return ComRef<IUnknown>::Of(a).get() == ComRef<IUnknown>::Of(b).get();
}

}  // namespace sluice::sharing
