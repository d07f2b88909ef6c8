// SPDX-License-Identifier: Apache-2.0
// A command queue, on the host or on a device. Held by the application and by the events of its
// commands; holds its context and device. Thread-safe.
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/args.h"
#include "client_icd/base/gates.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/device.h"

namespace sluice::client {

class Queue : public ClObject<Queue, cl_command_queue, ObjectKind::kQueue> {
 public:
  Queue(Ref<Context> context, Ref<Device> device, PropertyList properties, bool with_properties);
  ~Queue();

  // Null also for a queue on a device, to which the host cannot enqueue (CL_INVALID_COMMAND_QUEUE).
  static Queue* FromHost(cl_command_queue handle) {
    Queue* queue = From(handle);
    return queue != nullptr && !queue->on_device() ? queue : nullptr;
  }

  Context& context() const { return *context_; }
  Session& session() const { return context_->session(); }
  CommandStream& stream() const { return context_->stream(); }
  Device& device() const { return *device_; }

  const PropertyList& properties() const { return properties_; }
  cl_command_queue_properties flags() const { return flags_.load(std::memory_order_relaxed); }
  bool on_device() const { return (flags() & CL_QUEUE_ON_DEVICE) != 0; }
  bool profiles() const { return (flags() & CL_QUEUE_PROFILING_ENABLE) != 0; }
  cl_uint size() const { return size_; }  // Of a device queue.

  // The worker has made it: from now on it is released on the wire too.
  void SetMade();

  // A command was refused late: its code waits here for the queue's next synchronisation point,
  // which is a call that has waited for a command of the queue: it takes the code, and returns it.
  // The worker tells of the refusal before it tells of the end of any later command, so whoever has
  // seen that end finds the code. `event_id`: of its event, if the application has it; else 0. Of
  // several the first is kept, but one without an event goes before one whose event tells it.
  void SetLateError(cl_int status, uint64_t event_id);
  cl_int TakeLateError() {
    if (late_error_.load(std::memory_order_relaxed) == CL_SUCCESS) return CL_SUCCESS;
    absl::MutexLock lock(&late_mu_);
    return late_error_.exchange(CL_SUCCESS, std::memory_order_relaxed);
  }
  // The refused command's own event has told it.
  void ForgetLateError(uint64_t event_id);

  // A command has been posted, and nobody has waited for it yet. Everything that enqueues says so.
  // Not before: a Finish on another thread would count what is posted behind it.
  void NoteEnqueue() { enqueued_.fetch_add(1, std::memory_order_relaxed); }
  // Nothing was enqueued since the last Finish.
  bool idle() const {
    return finished_.load(std::memory_order_acquire) == enqueued_.load(std::memory_order_acquire);
  }
  // Commands in flight of which nothing will be told (in_flight.h). AddUncovered: after they have
  // been posted.
  void AddUncovered(uint64_t commands) {
    uncovered_.fetch_add(commands, std::memory_order_release);
  }
  // Before the command is posted that covers them.
  uint64_t TakeUncovered() { return uncovered_.exchange(0, std::memory_order_acquire); }
  bool in_order() const { return (flags() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0; }
  // A command without an event was posted: counts it, and has it covered if there are many.
  void NotePosted();
  // The application lets go of the queue: what is uncovered would stay so.
  void CoverBeforeRelease();

  // Which user events a command that is now enqueued waits for (gates.h): those of its own wait
  // list, and those of the commands before it that it comes after. `all`: of every one of them, as
  // in a queue that runs in order; `barrier`: so do all later commands come after it.
  Gates PassGates(Gates own, bool all, bool barrier);
  // The same for a command that is yet to be enqueued, whose own list is empty.
  Gates GatesBefore(bool all);
  // True if the driver may hold every command behind those before it: an implementation need not
  // use that the queue is out of order.
  bool RunsInOrder() const { return in_order() || !context_->overtakes(); }

  // Waits until all that was enqueued has ended: clFinish without the checks. With nothing enqueued
  // since the last time there is nothing to ask the worker.
  cl_int Finish();

  cl_int GetInfo(cl_command_queue_info param_name, const InfoSink& sink);

 private:
  class Listener final : public ReplyListener {
   public:
    explicit Listener(Queue* queue) : queue_(*queue) {}
    void OnLateError(const std::string& call, cl_int status, uint64_t event_id) override;

   private:
    Queue& queue_;
  };

  // Sends a Finish, which covers all that was posted before. Null: the session is lost. `soon`: its
  // end is taken though nobody waits for it.
  Ref<class Event> PostFinish(bool soon);

  const Ref<Context> context_;
  const Ref<Device> device_;
  const PropertyList properties_;  // As given; for CL_QUEUE_PROPERTIES_ARRAY.
  const bool with_properties_;     // Made by clCreateCommandQueueWithProperties.
  const cl_uint size_;
  bool made_ = false;  // Set before the handle is given out, constant after.
  std::atomic<cl_command_queue_properties> flags_;
  absl::Mutex late_mu_;
  std::atomic<cl_int> late_error_{CL_SUCCESS};  // Changed under late_mu_.
  uint64_t late_event_id_ ABSL_GUARDED_BY(late_mu_) = 0;
  std::atomic<uint64_t> uncovered_{0};
  std::atomic<uint64_t> enqueued_{0};
  absl::Mutex gates_mu_;
  Gates all_gates_ ABSL_GUARDED_BY(gates_mu_);
  Gates barrier_gates_ ABSL_GUARDED_BY(gates_mu_);
  std::atomic<uint64_t> finished_{
      0};  // The value of enqueued_ that a Finish is known to have covered.
  Listener listener_{this};
};

}  // namespace sluice::client
