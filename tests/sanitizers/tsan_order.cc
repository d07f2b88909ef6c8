// SPDX-License-Identifier: Apache-2.0
// For ThreadSanitizer only. The distribution's abseil and gRPC are not instrumented, so that the
// sanitizer does not see what abseil's locks and gRPC's queues order. Every program links this
// library before those: their functions are found here first, tell the sanitizer, and do the rest.
// gRPC counts as one order: what was before the start of any operation is before the end of any
// that is taken later. That hides races between its operations, not ours beside them.
#include <dlfcn.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

struct gpr_timespec_bytes {  // Of gRPC's headers, which not everything that links this has.
  int64_t seconds;
  int32_t nanoseconds;
  int32_t clock;
};
struct grpc_event_bytes {
  int type;
  int success;
  void* tag;
};

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace {

// The function that would have been found without us.
template <typename F>
F* Real(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  // A plugin's gRPC is in no global scope.
  for (const char* library : {"libgrpc.so.29", "libgrpc_unsecure.so.29"}) {
    if (found != nullptr) break;
    if (void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) found = dlsym(handle, name);
  }
  return reinterpret_cast<F*>(found);
}

// A condition is looked at by whichever thread gives the lock up, inside abseil.
struct Watched {
  absl::Mutex* mu;
  const absl::Condition* condition;
};

__attribute__((no_sanitize("thread"))) bool Look(void* argument) {
  const auto* const watched = static_cast<const Watched*>(argument);
  __tsan_acquire(watched->mu);
  const bool holds = watched->condition->Eval();
  __tsan_release(watched->mu);
  return holds;
}

char grpc_order;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
#define ABSL(name) _ZN4absl7debian3##name
#define ABSL_CONST(name) _ZNK4absl7debian3##name
#define REAL(function) static auto* const real = Real<decltype(function)>(__func__)

extern "C" {

void ABSL(5Mutex4LockEv)(absl::Mutex* mu) {
  REAL(ABSL(5Mutex4LockEv));
  real(mu);
  __tsan_acquire(mu);
}

void ABSL(5Mutex6UnlockEv)(absl::Mutex* mu) {
  REAL(ABSL(5Mutex6UnlockEv));
  __tsan_release(mu);
  real(mu);
}

bool ABSL(5Mutex7TryLockEv)(absl::Mutex* mu) {
  REAL(ABSL(5Mutex7TryLockEv));
  const bool locked = real(mu);
  if (locked) __tsan_acquire(mu);
  return locked;
}

void ABSL(5Mutex5AwaitERKNS0_9ConditionE)(absl::Mutex* mu, const absl::Condition& condition) {
  REAL(ABSL(5Mutex5AwaitERKNS0_9ConditionE));
  Watched watched = {mu, &condition};
  __tsan_release(mu);
  real(mu, absl::Condition(&Look, static_cast<void*>(&watched)));
  __tsan_acquire(mu);
}

bool ABSL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(
    absl::Mutex* mu, const absl::Condition& condition, absl::Duration timeout) {
  REAL(ABSL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE));
  Watched watched = {mu, &condition};
  __tsan_release(mu);
  const bool held = real(mu, absl::Condition(&Look, static_cast<void*>(&watched)), timeout);
  __tsan_acquire(mu);
  return held;
}

void ABSL(7CondVar4WaitEPNS0_5MutexE)(absl::CondVar* changed, absl::Mutex* mu) {
  REAL(ABSL(7CondVar4WaitEPNS0_5MutexE));
  __tsan_release(mu);
  real(changed, mu);
  __tsan_acquire(mu);
}

bool ABSL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(absl::CondVar* changed,
                                                                absl::Mutex* mu,
                                                                absl::Duration timeout) {
  REAL(ABSL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE));
  __tsan_release(mu);
  const bool timed_out = real(changed, mu, timeout);
  __tsan_acquire(mu);
  return timed_out;
}

bool ABSL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(absl::CondVar* changed,
                                                             absl::Mutex* mu, absl::Time deadline) {
  REAL(ABSL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE));
  __tsan_release(mu);
  const bool timed_out = real(changed, mu, deadline);
  __tsan_acquire(mu);
  return timed_out;
}

void ABSL(12Notification6NotifyEv)(absl::Notification* notification) {
  REAL(ABSL(12Notification6NotifyEv));
  __tsan_release(notification);
  real(notification);
}

void ABSL_CONST(12Notification19WaitForNotificationEv)(absl::Notification* notification) {
  REAL(ABSL_CONST(12Notification19WaitForNotificationEv));
  real(notification);
  __tsan_acquire(notification);
}

bool ABSL_CONST(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)(
    absl::Notification* notification, absl::Duration timeout) {
  REAL(ABSL_CONST(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE));
  const bool notified = real(notification, timeout);
  if (notified) __tsan_acquire(notification);
  return notified;
}

int grpc_call_start_batch(void* call, const void* operations, size_t count, void* tag,
                          void* reserved) {
  REAL(grpc_call_start_batch);
  __tsan_release(&grpc_order);
  return real(call, operations, count, tag, reserved);
}

int grpc_server_request_registered_call(void* server, void* method, void** call,
                                        gpr_timespec_bytes* deadline, void* metadata,
                                        void** payload, void* of_call, void* to_notify, void* tag) {
  REAL(grpc_server_request_registered_call);
  __tsan_release(&grpc_order);
  return real(server, method, call, deadline, metadata, payload, of_call, to_notify, tag);
}

int grpc_server_request_call(void* server, void** call, void* details, void* metadata,
                             void* of_call, void* to_notify, void* tag) {
  REAL(grpc_server_request_call);
  __tsan_release(&grpc_order);
  return real(server, call, details, metadata, of_call, to_notify, tag);
}

grpc_event_bytes grpc_completion_queue_next(void* queue, gpr_timespec_bytes deadline,
                                            void* reserved) {
  REAL(grpc_completion_queue_next);
  const grpc_event_bytes event = real(queue, deadline, reserved);
  __tsan_acquire(&grpc_order);
  return event;
}

grpc_event_bytes grpc_completion_queue_pluck(void* queue, void* tag, gpr_timespec_bytes deadline,
                                             void* reserved) {
  REAL(grpc_completion_queue_pluck);
  const grpc_event_bytes event = real(queue, tag, deadline, reserved);
  __tsan_acquire(&grpc_order);
  return event;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
