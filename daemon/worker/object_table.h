// SPDX-License-Identifier: Apache-2.0
// The table that finds a session's objects by the client's ids. An id of another type, or of an
// object that is gone, is found to be nothing: an answer of CL_INVALID_*, never a pointer. A failed
// object is found to be nothing as well, and the command that looked for it has its code. Session
// thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/objects.h"
#include "proto/heap_span.h"

namespace sluice::worker {

class ObjectTable {
 public:
  template <typename T>
  std::shared_ptr<T> Find(uint64_t id) const {
    const auto it = objects_.find(id);
    if (it == objects_.end() || !Is<T>(*it->second)) return nullptr;
    return std::static_pointer_cast<T>(it->second);
  }

  // A bare pointer for use within one handler, where nothing can be released meanwhile.
  template <typename T>
  T* Peek(uint64_t id) const {
    const auto it = objects_.find(id);
    if (it == objects_.end() || !Is<T>(*it->second)) return nullptr;
    return static_cast<T*>(it->second.get());
  }

  // The code of a command that ends with `status`: that of the first failed object which it looked
  // for, if there was one.
  cl_int CodeFor(cl_int status) const {
    return status == CL_SUCCESS || failed_code_ == CL_SUCCESS ? status : failed_code_;
  }
  // The next command begins.
  void ForgetFailed() { failed_code_ = CL_SUCCESS; }

  // False if the id is in use: ids are the client's, and an honest one never uses an id twice.
  bool Insert(uint64_t id, std::shared_ptr<Object> object) {
    return objects_.emplace(id, std::move(object)).second;
  }

  bool Contains(uint64_t id) const { return objects_.contains(id); }
  void Erase(uint64_t id) { objects_.erase(id); }
  size_t size() const { return objects_.size(); }

  // The pointer, if all of [address, address + size) lies in one SVM allocation.
  void* SvmPointer(uint64_t address, uint64_t size) const {
    void* found = nullptr;
    ForEach<SvmObject>([&](const SvmObject& object) {
      const uint64_t base = reinterpret_cast<uint64_t>(object.span->data);
      if (address >= base && wire::SpanFits(address - base, size, object.span->size)) {
        found = reinterpret_cast<void*>(address);
      }
    });
    return found;
  }

  // Of all objects of one type, each as the client named it.
  template <typename T>
  std::vector<uint64_t> IdsOf() const {
    std::vector<uint64_t> ids;
    for (const auto& [id, object] : objects_) {
      if (object->type == T::kType) ids.push_back(id);
    }
    return ids;
  }

  // Calls f(T&) for every object of one type.
  template <typename T, typename F>
  void ForEach(F&& f) const {
    for (const auto& [id, object] : objects_) {
      if (object->type == T::kType) f(static_cast<T&>(*object));
    }
  }

 private:
  template <typename T>
  bool Is(const Object& object) const {
    if (object.type == T::kType) return true;
    if (object.type == ObjectType::kFailed && failed_code_ == CL_SUCCESS)
      failed_code_ = static_cast<const FailedObject&>(object).code;
    return false;
  }

  absl::flat_hash_map<uint64_t, std::shared_ptr<Object>> objects_;
  mutable cl_int failed_code_ = CL_SUCCESS;
};

}  // namespace sluice::worker
