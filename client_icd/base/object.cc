// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/object.h"

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace sluice::client {
namespace {

// Handles that a kernel argument may carry where its kind is not known. Never destroyed: objects
// may be released while the process ends.
struct LiveHandles {
  absl::Mutex mu;
  absl::flat_hash_map<const void*, ObjectKind> handles ABSL_GUARDED_BY(mu);
};

LiveHandles& Live() {
  static LiveHandles* const live = new LiveHandles;
  return *live;
}

bool IsListed(ObjectKind kind) {
  return kind == ObjectKind::kQueue || kind == ObjectKind::kMemory || kind == ObjectKind::kSampler;
}

}  // namespace

Object::Object(ObjectKind kind, uint64_t id, Destroy* destroy)
    : dispatch_(&kIcdDispatch), kind_(kind), id_(id), destroy_(destroy) {
  if (!IsListed(kind)) return;
  LiveHandles& live = Live();
  absl::MutexLock lock(&live.mu);
  live.handles[this] = kind;
}

Object::~Object() {
  if (IsListed(kind())) {
    LiveHandles& live = Live();
    absl::MutexLock lock(&live.mu);
    live.handles.erase(this);
  }
  kind_.store(ObjectKind::kDead, std::memory_order_relaxed);
}

void Object::RetainForApp() {
  // From zero: the application holds no reference of its own but found the handle by a query of an
  // object that keeps it.
  if (app_count_.fetch_add(1, std::memory_order_relaxed) == 0) AddInternal();
}

bool Object::ReleaseForApp() {
  uint32_t count = app_count_.load(std::memory_order_relaxed);
  do {
    if (count == 0) return false;
  } while (!app_count_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  if (count == 1) DropInternal();
  return true;
}

bool Object::AddInternalIfAlive() {
  uint32_t count = internal_count_.load(std::memory_order_relaxed);
  do {
    if (count == 0) return false;
  } while (!internal_count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
  return true;
}

bool Object::IsLive(const void* handle, ObjectKind kind) {
  LiveHandles& live = Live();
  absl::MutexLock lock(&live.mu);
  const auto it = live.handles.find(handle);
  return it != live.handles.end() && it->second == kind;
}

}  // namespace sluice::client
