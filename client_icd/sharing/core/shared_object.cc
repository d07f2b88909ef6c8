// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/shared_object.h"

#include <algorithm>

#include "broker/os/threads.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/event.h"
#include "client_icd/objects/memory.h"
#include "client_icd/session/pending_releases.h"
#include "client_icd/session/session.h"

namespace sluice::client::sharing {

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

// Of all native objects that may have one memory object. Leaked: threads may still run while the
// process ends.
class TakenKeys {
 public:
  static TakenKeys& All() {
    static TakenKeys* const all = new TakenKeys;
    return *all;
  }

  // Null: the key is that state's now. Else whose it is.
  std::shared_ptr<SharedState> Take(const NativeKey& key,
                                    const std::shared_ptr<SharedState>& state) {
    absl::MutexLock lock(&mu_);
    for (const Entry& entry : entries_) {
      if (entry.key == key && entry.state->rules().api == state->rules().api) return entry.state;
    }
    entries_.push_back({key, state});
    return nullptr;
  }
  void Return(const SharedState* state) {
    absl::MutexLock lock(&mu_);
    std::erase_if(entries_, [state](const Entry& entry) { return entry.state.get() == state; });
  }
  // False: it has not been given back by then.
  bool AwaitGivenBack(const SharedState* state, absl::Time deadline) {
    const auto gone = [this, state]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return std::none_of(entries_.begin(), entries_.end(),
                          [state](const Entry& entry) { return entry.state.get() == state; });
    };
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&gone), deadline - absl::Now());
  }

 private:
  struct Entry {
    NativeKey key;
    std::shared_ptr<SharedState> state;
  };
  absl::Mutex mu_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
};

bool IsOneOnly(const ApiRules& rules) { return rules.created_twice != CL_SUCCESS; }

}  // namespace

bool SharedState::EndsByItself() const {
  std::shared_ptr<Session> session;
  bool may_be_gated = false;
  {
    absl::MutexLock lock(&holders_mu_);
    for (const MemObject* memory : holders_) {
      if (memory->app_count() != 0) return false;
      may_be_gated = may_be_gated || memory->context().open_user_events() > 0;
      session = memory->context().session_ptr();
    }
  }
  if (!may_be_gated) return true;
  const auto has_this = [this](const Object& kept) {
    return kept.kind() == ObjectKind::kMemory &&
           static_cast<const MemObject&>(kept).use_gate().get() == this;
  };
  const std::vector<Ref<Object>> pending = session->stream().Pending();
  return std::all_of(pending.begin(), pending.end(), [&has_this](const Ref<Object>& object) {
    const auto& event = static_cast<const Event&>(*object);
    return !event.Keeps(has_this) || event.gates().Open();
  });
}

void SharedState::AddHolder(const MemObject* memory) {
  if (!IsOneOnly(rules_)) return;
  absl::MutexLock lock(&holders_mu_);
  holders_.push_back(memory);
}

void SharedState::RemoveHolder(const MemObject* memory) {
  if (!IsOneOnly(rules_)) return;
  absl::MutexLock lock(&holders_mu_);
  std::erase(holders_, memory);
}

void SharedRegistry::Listen(const std::shared_ptr<EndListener>& listener) {
  absl::MutexLock lock(&mu_);
  std::erase_if(listeners_, [](const std::weak_ptr<EndListener>& one) { return one.expired(); });
  listeners_.push_back(listener);
}

std::shared_ptr<SharedRegistry> SharedRegistry::Of(const Context& context) {
  return std::static_pointer_cast<SharedRegistry>(context.Attachment(
      []() -> std::shared_ptr<ContextAttachment> { return std::make_shared<SharedRegistry>(); }));
}

void SharedRegistry::OnSessionLost() {
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

// The key last, since whoever waits for that counts on what the native object leaves to others to
// let go of.
SharedObject::~SharedObject() {
  native_ = nullptr;
  if (has_key_) TakenKeys::All().Return(state_.get());
}

bool SharedObject::TakeKey() {
  if (!IsOneOnly(rules())) return true;
  TakenKeys& taken = TakenKeys::All();
  const NativeKey key = native_->key();
  std::shared_ptr<SharedState> other = taken.Take(key, state_);
  const bool waits = other != nullptr && other->EndsByItself() && !os::OtherThreadsWereEnded();
  if (waits) {
    const absl::Time deadline = absl::Now() + native_->timeout();
    while (other != nullptr && other->EndsByItself() &&
           taken.AwaitGivenBack(other.get(), deadline)) {
      other = taken.Take(key, state_);
    }
    PendingReleases::Await();
  }
  has_key_ = other == nullptr;
  return has_key_;
}

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
void SharedObject::ReleaseAfterUse(Session& session, uint64_t memory_id) {
  const std::shared_ptr<EndListener> listener = native_->end_listener();
  if (listener == nullptr) return;
  if (way_ == Way::kStaging || !state_->acquired()) return listener->OnMemoryGone();
  session.NotifyWhenDestroyed(shadow_ ? shadow_->id() : memory_id,
                              [listener] { listener->OnMemoryGone(); });
}

void SharedObject::SetShadow(Ref<MemObject> shadow) { shadow_ = std::move(shadow); }

std::shared_ptr<Shadow> SharedObject::StagingMemory(size_t bytes) {
  absl::MutexLock lock(&mu_);
  if (staging_ == nullptr) staging_ = Shadow::Make(bytes);
  return staging_;
}

SharedObject* SharedOf(const MemObject& memory) {
  return static_cast<SharedObject*>(memory.native());
}

}  // namespace sluice::client::sharing
