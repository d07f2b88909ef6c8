// SPDX-License-Identifier: Apache-2.0
// The additional state of a memory object made from a native object: whose it is, whether OpenCL
// has it, and how its bytes travel. Its states, and who makes each transition:
//
//               EnqueueAcquire, accepted
//    RELEASED ----------------------------> ACQUIRED
//        ^                                      |
//        +--------------------------------------+   EnqueueRelease, accepted
//
// The state is that of the calls, not of the commands. It changes when an enqueue is accepted, as
// the specification's wording does ("have previously been acquired using"), and is given back if it
// could not be posted. A state belongs to one memory object: APIs that allow several memory objects
// of one native object give each a copy of its own; the others refuse the second (TakeKey).
//
// SharedObject is held by its memory object alone; the state by what is made from that, and by
// kernel arguments, which keep no object alive. Thread-safe: transitions are made under the
// registry's mutex; `acquired` and `written` are atomics, so that the look at every use takes no
// lock.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/native_backing.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/map.h"
#include "client_icd/sharing/core/api_rules.h"
#include "client_icd/sharing/core/native_object.h"

namespace sluice::client::sharing {

// Of one context: who works on its native objects.
class SharedRegistry final : public ContextAttachment {
 public:
  static std::shared_ptr<SharedRegistry> Of(const Context& context);

  // `listener` is told as long as somebody else keeps it.
  void Listen(const std::shared_ptr<EndListener>& listener);
  void OnSessionLost() override ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex& mu() ABSL_LOCK_RETURNED(mu_) { return mu_; }
  // For native objects that need no thread of their own.
  const std::shared_ptr<NativeThread>& thread() const { return thread_; }

 private:
  const std::shared_ptr<NativeThread> thread_ = std::make_shared<NativeThread>("sluice-native");
  absl::Mutex mu_;
  std::vector<std::weak_ptr<EndListener>> listeners_ ABSL_GUARDED_BY(mu_);
};

// Every use of the memory object looks at this.
class SharedState final : public UseGate {
 public:
  SharedState(const ApiRules& rules, bool writable) : rules_(rules), writable_(writable) {}

  const ApiRules& rules() const { return rules_; }
  bool acquired() const { return acquired_.load(std::memory_order_acquire); }

  // For every command that uses the memory object: rules().use_not_acquired while it is released.
  // `writes`: the command may change the bytes; CL_INVALID_OPERATION if the native object's cannot
  // be.
  cl_int Use(bool writes) override {
    if (!acquired()) return rules_.use_not_acquired;
    if (!writes) return CL_SUCCESS;
    if (!writable_) return CL_INVALID_OPERATION;
    written_.store(true, std::memory_order_relaxed);
    return CL_SUCCESS;
  }

  // Remembered where the API refuses a second memory object of one native object.
  void AddHolder(const MemObject* memory) override ABSL_LOCKS_EXCLUDED(holders_mu_);
  void RemoveHolder(const MemObject* memory) override ABSL_LOCKS_EXCLUDED(holders_mu_);

  // Transitions; under the registry's mutex, which the core holds.
  void SetAcquired(bool acquired) { acquired_.store(acquired, std::memory_order_release); }
  // True if a command may have written since the last acquire; forgets it.
  bool TakeWritten() { return written_.exchange(false, std::memory_order_relaxed); }

  // For APIs that refuse a second memory object: the application has released all that have the
  // state, and only commands that need nothing more of it keep one (gates.h).
  bool EndsByItself() const ABSL_LOCKS_EXCLUDED(holders_mu_);

 private:
  const ApiRules& rules_;
  const bool writable_;
  std::atomic<bool> acquired_{
      false};  // Release in SetAcquired; pairs with the acquire in acquired.
  std::atomic<bool> written_{false};
  mutable absl::Mutex holders_mu_;
  std::vector<const MemObject*> holders_ ABSL_GUARDED_BY(holders_mu_);
};

// Turns with the semaphores of a shadow: a binary semaphore must not be signalled again before
// that signal has been waited for. Each direction has one turn; it is taken when a command that
// uses the semaphore is made and given back when both sides are known to have used it. A use that
// fails, or of which nobody knows, keeps it: from then on that direction goes without.
// Thread-safe.
class SemaphoreTurns {
 public:
  enum Direction { kToOpenCl, kFromOpenCl };
  bool Take(Direction direction) {
    return !taken_[direction].exchange(true, std::memory_order_acquire);
  }
  // Release; pairs with the acquire in Take.
  void Return(Direction direction) { taken_[direction].store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_[2] = {false, false};
};

// The abilities of a worker's shadow beside being memory.
struct ShadowAbilities {
  bool copies_images = false;
  std::shared_ptr<SemaphoreTurns> semaphores = {};  // Null: there are none.
};

class SharedObject final : public NativeBacking {
 public:
  SharedObject(const ApiRules& rules, std::unique_ptr<NativeObject> native,
               std::shared_ptr<SharedRegistry> registry);
  ~SharedObject() override;

  // Before its memory is made. False if the API refuses a second memory object of this key and
  // there is one, in any context of the process: "if a cl_mem from <resource> has already been
  // created" (sections 9.6.7.3 and 9.8.7.3). Two could be acquired at the same time. One that the
  // application has released is no such object to it, though commands keep it. Its end is waited
  // for, as long as the native object's timeout, unless that asks for more of the application.
  bool TakeKey();

  const ApiRules& rules() const { return state_->rules(); }
  NativeObject& native() const { return *native_; }
  const std::shared_ptr<SharedState>& state() const { return state_; }
  std::shared_ptr<UseGate> gate() const override { return state_; }
  bool is_staged() const override { return way_ == Way::kStaging; }
  Way way() const { return way_; }
  void SetWay(Way way) { way_ = way; }  // Before the handle is given out.
  // True if the worker's driver uses memory that the native API uses as well, and must be told when
  // it changes hands: every shadow, and imports of what only a driver can open. Before the handle
  // is given out.
  bool changes_hands() const { return changes_hands_; }
  void SetChangesHands() { changes_hands_ = true; }

  // The event of the newest acquire, until its release takes it: what was not acquired well must
  // not be stored.
  void SetAcquireEvent(Ref<Object> event);
  Ref<Object> TakeAcquireEvent();
  Ref<Object> AcquireEvent();

  // Way::kShadow, of the worker's making, and not a buffer: the buffer that lies in the shadow.
  // Before the handle is given out.
  void SetShadow(Ref<MemObject> shadow);
  const Ref<MemObject>& shadow() const { return shadow_; }
  // Way::kShadow. Before the handle is given out.
  void SetShadowAbilities(ShadowAbilities abilities) { abilities_ = std::move(abilities); }
  const ShadowAbilities& shadow_abilities() const { return abilities_; }

  // For the memory object's destructor, before it is released on the wire: tells the native
  // object's listener when its memory is not used any more.
  void ReleaseAfterUse(Session& session, uint64_t memory_id) override;

  // True if no call of the native object's is under way on another thread, which is so unless one
  // was given up (native_watch.h). If so, ReturnNative must follow.
  bool TakeNative() { return !native_taken_.exchange(true, std::memory_order_acquire); }
  void ReturnNative() { native_taken_.store(false, std::memory_order_release); }

  // Staging memory of `bytes`, made with the first use and kept; null if there is not enough.
  std::shared_ptr<Shadow> StagingMemory(size_t bytes);

 private:
  std::unique_ptr<NativeObject> native_;  // Constant until the end.
  bool has_key_ = false;                  // Constant after TakeKey.
  const std::shared_ptr<SharedRegistry> registry_;
  const std::shared_ptr<SharedState> state_;
  Way way_ = Way::kStaging;  // Constant once the handle is given out, as are the next two.
  bool changes_hands_ = false;
  Ref<MemObject> shadow_;
  ShadowAbilities abilities_;
  std::atomic<bool> native_taken_{false};  // Release in ReturnNative; pairs with TakeNative.
  absl::Mutex mu_;
  Ref<Object> acquire_event_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Shadow> staging_ ABSL_GUARDED_BY(mu_);
};

// Null if the memory object was not made from a native object.
SharedObject* SharedOf(const MemObject& memory);

}  // namespace sluice::client::sharing
