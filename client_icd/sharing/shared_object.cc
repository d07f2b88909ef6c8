// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/shared_object.h"

#include <algorithm>

#include "client_icd/memory.h"
#include "client_icd/session.h"

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

void SharedRegistry::Listen(const std::shared_ptr<EndListener>& listener) {
  absl::MutexLock lock(&mu_);
  std::erase_if(listeners_, [](const std::weak_ptr<EndListener>& one) { return one.expired(); });
  listeners_.push_back(listener);
}

void SharedRegistry::TellLost() {
  std::vector<std::weak_ptr<EndListener>> listeners;
  {
    absl::MutexLock lock(&mu_);
    listeners.swap(listeners_);
  }
  for (const std::weak_ptr<EndListener>& one : listeners) {
    if (const std::shared_ptr<EndListener> listener = one.lock()) listener->OnSessionLost();
  }
}

SharedObject::SharedObject(const ApiRules& rules, std::unique_ptr<NativeObject> native,
                           std::shared_ptr<SharedRegistry> registry)
    : native_(std::move(native)),
      registry_(std::move(registry)),
      state_(std::make_shared<SharedState>(rules, native_->writable())) {
  if (const auto listener = native_->end_listener()) registry_->Listen(listener);
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

// Section 5.5.1 (clReleaseMemObject): the object is deleted after the commands that use it have
// finished. Those use the native object's memory, but for staging; and after a release no more.
void SharedObject::LetGoAfterUse(Session& session, uint64_t memory_id) {
  const std::shared_ptr<EndListener> listener = native_->end_listener();
  if (listener == nullptr) return;
  if (way_ == Way::kStaging || !state_->acquired()) return listener->OnMemoryGone();
  session.TellWhenDestroyed(shadow_ ? shadow_->id() : memory_id,
                            [listener] { listener->OnMemoryGone(); });
}

void SharedObject::SetShadow(Ref<MemObject> shadow) { shadow_ = std::move(shadow); }

std::shared_ptr<Shadow> SharedObject::StagingMemory(size_t bytes) {
  absl::MutexLock lock(&mu_);
  if (staging_ == nullptr) staging_ = Shadow::Make(bytes);
  return staging_;
}

}  // namespace sluice::sharing
