// SPDX-License-Identifier: Apache-2.0
// The common part of every OpenCL object of this driver: the dispatch pointer that loaders expect
// first, a kind by which a handle is recognised, an id on the wire, and two counts.
//
//   app count       the application's references: clRetain*, clRelease*, CL_*_REFERENCE_COUNT
//   internal count  what keeps the object alive: one for all of the application's references
//                   together, one per Ref<T>
//
// The implicit references of the specification are Refs: a queue holds its context, a kernel its
// program, a sub-buffer its parent. ReleaseObject goes to the worker when the internal count
// reaches zero, from the object's destructor, so that an object which another one keeps can still
// be used and queried.
//
// Objects are not polymorphic: the dispatch pointer must come first. Thread-safe.
// A handle is the application's word: From() recognises null, foreign and dead handles, not
// arbitrary addresses.
#pragma once

#include <CL/cl_icd.h>

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace sluice::client {

// NOLINTNEXTLINE(readability-identifier-naming): a constant, though its value is elsewhere.
extern const cl_icd_dispatch kIcdDispatch;

enum class ObjectKind : uint32_t {
  kDead = 0xdeadc1c1,
  kPlatform = 0x51c10001,
  kDevice,
  kContext,
  kQueue,
  kMemory,
  kSampler,
  kProgram,
  kKernel,
  kEvent,
};

class Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  uint64_t id() const { return id_; }
  ObjectKind kind() const { return kind_.load(std::memory_order_relaxed); }

  // The application's references. RetainForApp cannot fail on a live object; ReleaseForApp is false
  // if there was none.
  void RetainForApp();
  bool ReleaseForApp();
  cl_uint app_count() const { return app_count_.load(std::memory_order_relaxed); }

  // Only for Ref.
  void AddInternal() { internal_count_.fetch_add(1, std::memory_order_relaxed); }
  bool AddInternalIfAlive();
  void DropInternal() {
    if (internal_count_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy_(this);
  }

  // True if `handle` is a live object of this kind. Knows queues, memory objects and samplers;
  // needs no valid pointer.
  static bool IsLive(const void* handle, ObjectKind kind);

 protected:
  using Destroy = void(Object*);
  Object(ObjectKind kind, uint64_t id, Destroy* destroy);
  ~Object();

  // For From(): reads the header at `handle`.
  static bool Recognise(const void* handle, ObjectKind kind) {
    if (handle == nullptr || (reinterpret_cast<uintptr_t>(handle) & 7) != 0) return false;
    const Object* object = static_cast<const Object*>(handle);
    return object->dispatch_ == &kIcdDispatch && object->kind() == kind;
  }

 private:
  const cl_icd_dispatch* dispatch_;  // First: loaders read it.
  std::atomic<ObjectKind> kind_;
  std::atomic<uint32_t> app_count_{1};
  std::atomic<uint32_t> internal_count_{1};
  const uint64_t id_;
  Destroy* const destroy_;
};

// Keeps an object alive inside the driver.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as for std::unique_ptr.
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) object_->AddInternal();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  // NOLINTNEXTLINE(google-explicit-constructor): as a pointer converts.
  Ref(Ref<U> other) : object_(other.Detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->DropInternal();
  }

  // Takes over the one internal reference that a new object is born with.
  static Ref Adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Null if the object is already being destroyed (its last reference has gone).
  static Ref TryAcquire(T* object) {
    return object != nullptr && object->AddInternalIfAlive() ? Adopt(object) : Ref();
  }
  // Gives the reference away: to the application, or to Adopt.
  [[nodiscard]] T* Detach() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// Base of each class: `class Queue : public ClObject<Queue, cl_command_queue, ObjectKind::kQueue>`.
// A new object has an app count of one and an internal count of one, which is the application's. On
// the creating call's success return handle(). On its failure `delete` is not for you: wrap it in
// Ref<T>::Adopt from the start, and Detach on success. The class needs a public destructor and a
// constructor that passes its id: `ClObject(id)`.
template <typename Derived, typename Handle, ObjectKind kKind>
class ClObject : public Object {
 public:
  using HandleType = Handle;

  // Null if the handle is none of this kind.
  static Derived* From(Handle handle) {
    return Recognise(handle, kKind) ? static_cast<Derived*>(reinterpret_cast<Object*>(handle))
                                    : nullptr;
  }
  Handle handle() { return reinterpret_cast<Handle>(static_cast<Object*>(this)); }

 protected:
  explicit ClObject(uint64_t id)
      : Object(kKind, id, [](Object* self) { delete static_cast<Derived*>(self); }) {
    static_assert(!std::is_polymorphic_v<Derived>, "the dispatch pointer must come first");
  }
  ~ClObject() = default;
};

// clRetain* and clRelease* of class T, in full.
template <typename T>
cl_int RetainHandle(typename T::HandleType handle, cl_int invalid) {
  T* object = T::From(handle);
  if (object == nullptr) return invalid;
  object->RetainForApp();
  return CL_SUCCESS;
}
template <typename T>
cl_int ReleaseHandle(typename T::HandleType handle, cl_int invalid) {
  T* object = T::From(handle);
  return object != nullptr && object->ReleaseForApp() ? CL_SUCCESS : invalid;
}

}  // namespace sluice::client
