// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/shared_object.h"

#include <algorithm>

#include "client_icd/memory.h"

namespace sluice::sharing {

const char* WayName(Way way) {
  switch (way) {
    case Way::kImport:
      return "import";
    case Way::kShadow:
      return "shadow";
    case Way::kStaging:
      return "staging";
  }
  return "none";
}

namespace {

// Leaked: threads may still run while the process ends.
struct TakenKeys {
  absl::Mutex mu;
  std::vector<std::pair<Api, NativeKey>> keys ABSL_GUARDED_BY(mu);
};

TakenKeys& Taken() {
  static TakenKeys* const taken = new TakenKeys;
  return *taken;
}

}  // namespace

bool TakeKey(const ApiRules& rules, const NativeKey& key) {
  if (rules.created_twice == CL_SUCCESS) return true;
  const std::pair<Api, NativeKey> entry(rules.api, key);
  TakenKeys& taken = Taken();
  absl::MutexLock lock(&taken.mu);
  if (std::find(taken.keys.begin(), taken.keys.end(), entry) != taken.keys.end()) return false;
  taken.keys.push_back(entry);
  return true;
}

void GiveKeyBack(const ApiRules& rules, const NativeKey& key) {
  if (rules.created_twice == CL_SUCCESS) return;
  TakenKeys& taken = Taken();
  absl::MutexLock lock(&taken.mu);
  const auto it = std::find(taken.keys.begin(), taken.keys.end(), std::pair(rules.api, key));
  if (it != taken.keys.end()) taken.keys.erase(it);
}

void SharedRegistry::Listen(const std::shared_ptr<LossListener>& listener) {
  absl::MutexLock lock(&mu_);
  std::erase_if(listeners_, [](const std::weak_ptr<LossListener>& one) { return one.expired(); });
  listeners_.push_back(listener);
}

void SharedRegistry::TellLost() {
  std::vector<std::weak_ptr<LossListener>> listeners;
  {
    absl::MutexLock lock(&mu_);
    listeners.swap(listeners_);
  }
  for (const std::weak_ptr<LossListener>& one : listeners) {
    if (const std::shared_ptr<LossListener> listener = one.lock()) listener->OnSessionLost();
  }
}

SharedObject::SharedObject(const ApiRules& rules, std::unique_ptr<NativeObject> native,
                           std::shared_ptr<SharedRegistry> registry)
    : native_(std::move(native)),
      registry_(std::move(registry)),
      state_(std::make_shared<SharedState>(rules, native_->writable())) {
  if (const auto listener = native_->loss_listener()) registry_->Listen(listener);
}

SharedObject::~SharedObject() { GiveKeyBack(rules(), native_->key()); }

void SharedObject::SetAcquireEvent(Ref<Object> event) {
  absl::MutexLock lock(&mu_);
  std::swap(acquire_event_, event);  // The old one is let go after the lock.
}

Ref<Object> SharedObject::TakeAcquireEvent() {
  absl::MutexLock lock(&mu_);
  return std::exchange(acquire_event_, nullptr);
}

Ref<Object> SharedObject::AcquireEvent() {
  absl::MutexLock lock(&mu_);
  return acquire_event_;
}

void SharedObject::SetShadow(Ref<MemObject> shadow) { shadow_ = std::move(shadow); }

std::shared_ptr<Shadow> SharedObject::StagingMemory(size_t bytes) {
  absl::MutexLock lock(&mu_);
  if (staging_ == nullptr) staging_ = Shadow::Make(bytes);
  return staging_;
}

}  // namespace sluice::sharing
