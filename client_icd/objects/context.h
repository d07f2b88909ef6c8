// SPDX-License-Identifier: Apache-2.0
// A context: some devices of one platform, in one session. Every object of the application reaches
// its session through its context. Held by the application and by every object made in it.
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/args.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/device.h"
#include "client_icd/objects/platform.h"
#include "client_icd/session/session.h"

namespace sluice::client {

class Queue;

namespace sharing {
enum class Api;
}  // namespace sharing

// Something that lives with a context and hears of the loss of its session.
class ContextAttachment {
 public:
  virtual ~ContextAttachment() = default;
  virtual void OnSessionLost() = 0;
};

// All that must be known of a new object before its creation may go without an answer.
struct Creation {
  uint64_t memory_bytes = 0;  // That the daemon counts for the object.
  // The sort of object: the driver may refuse it as such, and will not once it has made one of it.
  // Empty: it refuses nothing of that sort.
  std::string kind = {};
  bool needs_answer = false;  // The object is of no use without what the answer says.
};

class Context : public ClObject<Context, cl_context, ObjectKind::kContext> {
 public:
  using Notify = void(CL_CALLBACK*)(const char* message, const void* info, size_t info_bytes,
                                    void* user_data);

  // Everything but the worker's answer; the caller fills the rest by SetPlacement.
  Context(std::shared_ptr<Session> session, Platform* platform, std::vector<Ref<Device>> devices,
          PropertyList properties, Notify notify, void* user_data);
  ~Context();

  Session& session() const { return *session_; }
  const std::shared_ptr<Session>& session_ptr() const { return session_; }
  CommandStream& stream() const { return session_->stream(); }
  Platform* platform() const { return platform_; }
  const PropertyList& properties() const { return properties_; }
  // It has its session, and so its worker, to itself (CL_CONTEXT_TERMINATE_KHR).
  bool is_terminatable() const;

  std::span<Device* const> devices() const { return device_pointers_; }
  bool HasDevice(const Device* device) const;
  // One of the devices does.
  bool supports_images() const;

  // The worker was made: from now on the context is released on the wire too.
  void SetPlacement(const pb::ContextPlacement& placement, bool is_local);
  // CreateBuffer places memory in the shared heap (CPU device, local session).
  bool buffers_in_heap() const { return buffers_in_heap_; }
  // Sends `command`, which makes an object of the context. CL_SUCCESS: it has been made, or will
  // be. It waits for the answer only if the worker may refuse: the specification's checks have been
  // made here, and the session's limits are far enough (CreationLease). An object that the driver
  // refuses all the same becomes a failed object (README.md). `answer`, if not null, is filled if
  // it came.
  cl_int Create(pb::Command& command, std::string_view payload, const Creation& creation,
                pb::Answer* answer = nullptr) ABSL_LOCKS_EXCLUDED(mu_);
  // Those that came with the context; null: it must be asked for.
  const std::string* ImageFormats(cl_mem_flags flags, cl_mem_object_type type) const;
  // Commands of a queue out of order pass others that wait: an implementation need not do so.
  bool overtakes() const { return overtakes_; }
  // True if OpenCL works with 1D images over a buffer that the context's driver has imported. Where
  // it does not, an image can be made, and every kernel that uses it fails. When the buffer is made
  // nobody knows whether there will be such an image, and once kernels have the buffer for an
  // argument it must stay what it is. So there it is an ordinary buffer beside the imported one, at
  // the price of a copy on the device for each turn.
  bool makes_usable_images() const { return images_of_imports_; }

  // The default queue on a device, by id: it keeps nothing alive.
  void SetDefaultDeviceQueue(const Device* device, uint64_t queue_id);
  Ref<Queue> DefaultDeviceQueue(const Device* device);  // Null if there is none.

  // The state that an API's adapter keeps for a context that was created for it (a GL context in
  // the application's share group): added before the handle is given out, constant after.
  void AddInterop(sharing::Api api, std::shared_ptr<void> interop);
  // Null if the context was not created for that API.
  void* Interop(sharing::Api api) const;
  bool has_interop() const { return !interops_.empty(); }
  // clReleaseContext; false if the application had no reference. One with such an API of which it
  // was the last ends as soon as what still uses it has, also if nobody waits or calls any more.
  bool ReleaseByApp();
  // Before the application's last release of what may keep such an API's objects: commands that
  // have ended, though nobody has looked, let go of theirs first. Nothing for a context without an
  // API.
  void CollectEnded();
  // The sharing core's state for the context: `make` makes it at first need.
  std::shared_ptr<ContextAttachment> Attachment(std::shared_ptr<ContextAttachment> (*make)()) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // User events of the application that may still get a status: what the context's queues wait for
  // may be one of them.
  int open_user_events() const { return open_user_events_.load(std::memory_order_relaxed); }
  void CountUserEvents(int by) { open_user_events_.fetch_add(by, std::memory_order_relaxed); }

  // Queues a call of the application's notify function, if it gave one.
  void QueueNotify(std::string message, std::string private_info);

 private:
  bool HasMade(const std::string& kind) const ABSL_LOCKS_EXCLUDED(mu_);

  class Listener final : public ReplyListener {
   public:
    explicit Listener(Context* context) : context_(*context) {}
    void OnNotify(const std::string& message, const std::string& private_info) override {
      context_.QueueNotify(message, private_info);
    }
    void OnCreationFailed(const std::string& call, cl_int status) override;
    void OnSessionLost(const std::string& message) override;

   private:
    Context& context_;
  };

  const std::shared_ptr<Session> session_;
  Platform* const platform_;  // Never destroyed.
  const std::vector<Ref<Device>> devices_;
  std::vector<Device*> device_pointers_;
  const PropertyList properties_;
  const Notify notify_;
  void* const user_data_;
  std::vector<std::pair<sharing::Api, std::shared_ptr<void>>> interops_;
  bool made_ = false;               // Set before the handle is given out, constant after.
  bool buffers_in_heap_ = false;    // As made_.
  bool overtakes_ = false;          // As made_.
  bool images_of_imports_ = false;  // As made_.
  // As made_.
  absl::flat_hash_map<std::pair<cl_mem_flags, cl_mem_object_type>, std::string> image_formats_;
  std::atomic<bool> creates_unasked_{false};
  std::atomic<bool> ends_soon_{false};  // The stream is eager for the destructor's sake.

  std::atomic<int> open_user_events_{0};
  Listener listener_{this};

  mutable absl::Mutex mu_;
  mutable std::shared_ptr<ContextAttachment> attachment_
      ABSL_GUARDED_BY(mu_);  // Once made, constant.
  absl::flat_hash_map<const Device*, uint64_t> default_queues_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<std::string> made_kinds_ ABSL_GUARDED_BY(mu_);
};

// Section 4.4: CL_INVALID_PLATFORM for a bad CL_CONTEXT_PLATFORM, CL_INVALID_PROPERTY for a name
// that is there twice or a value that is none, `unknown_name` for a name that is unknown.
// `platform` stays null if the list names none.
cl_int CheckContextProperties(const PropertyList& list, cl_int unknown_name, Platform** platform);

}  // namespace sluice::client
