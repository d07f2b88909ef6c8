// SPDX-License-Identifier: Apache-2.0
// The rules common to the Direct3D adapters: on which thread the application's Direct3D is used,
// and when an entry point waits.
//
// A device that may be used by several threads (multithread protection, D3DCREATE_MULTITHREADED) is
// used by the context's native thread, and while a call of ours waits for its own end, by the
// calling thread. Any other device is used on the calling thread only: acquires and releases wait
// there, and are refused if they come behind a user event without a status (gates.h), which nobody
// could set meanwhile. Another thread may handle the reply that ends a command. The thread that
// made the last such call then lets go of the command's objects, at the end of its next call
// (home_thread.h).
//
// "Any calls to Direct3D made after the call to clEnqueueRelease... will not start executing until
// after all events in event_wait_list are complete and all work already submitted to command_queue
// completes execution" (sections 9.6.7.6, 9.7.7.4, 9.8.7.6). There is nothing on this side that
// could make Direct3D wait, so a release waits in the call, but for a context with
// CL_CONTEXT_INTEROP_USER_SYNC, and never on a user event.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/com_ptr.h"
#include "client_icd/base/args.h"
#include "client_icd/base/home_thread.h"
#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/core/native_device.h"
#include "client_icd/sharing/core/native_thread.h"
#include "client_icd/sharing/core/native_wait.h"
#include "client_icd/sharing/core/native_watch.h"

namespace sluice::client::sharing {

// Thread-safe.
class D3dThread final : public NativeThread {
 public:
  // `callers_only`: jobs run in RunUntilEnded alone.
  explicit D3dThread(bool callers_only) : NativeThread("sluice-d3d"), callers_only_(callers_only) {}

  // A device of one thread has no lock to wait for.
  NativeWatch* watch() override { return callers_only_ ? nullptr : &watch_; }
  bool callers_only() const { return callers_only_; }
  bool Post(JobThread::Job job) override;
  // `kept` holds references to Direct3D's objects, and goes where they may be let go of: on a
  // thread that does nothing else, since no work of other objects is to be waited for. For whatever
  // ends where replies are handled: anywhere else they just go.
  void ReleaseElsewhere(JobThread::Job kept);
  // The calling thread is the one that uses a device of one thread.
  void BindToThisThread() { home_->BindToThisThread(); }

  // One call that waits for its own native work. Guarded by the thread's mutex.
  struct Call {
    bool ended = false;
  };
  // A token that whatever the caller waits for keeps: the call has ended once the last copy is
  // gone. From now until RunUntilEnded, jobs are kept for the caller.
  std::shared_ptr<void> Begin(std::shared_ptr<Call>* call);
  // Runs jobs on the calling thread until the call has ended.
  void RunUntilEnded(const Call& call);

 private:
  struct State {
    absl::Mutex mu;
    std::deque<JobThread::Job> jobs ABSL_GUARDED_BY(mu);
    int callers ABSL_GUARDED_BY(mu) = 0;
  };
  const bool callers_only_;
  const std::shared_ptr<HomeThread> home_ = std::make_shared<HomeThread>();
  NativeWatch watch_{"sluice-d3d-watch",
                     "timed out waiting for the Direct3D device's lock: a thread of the "
                     "application that has entered it (ID3D10Multithread::Enter, "
                     "ID3D11Multithread::Enter) must leave it before it waits for OpenCL"};
  // Shared with the tokens, which may outlive this.
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  JobThread releases_{"sluice-d3d-end"};
};

// The state of a context that was created for an API of Direct3D's (Context::AddInterop): the base
// of each adapter's own.
class D3dInterop {
 public:
  D3dInterop(bool user_sync, bool callers_only)
      : user_sync_(user_sync), thread_(std::make_shared<D3dThread>(callers_only)) {}
  virtual ~D3dInterop() = default;

  bool user_sync() const { return user_sync_; }
  const std::shared_ptr<D3dThread>& thread() const { return thread_; }

 private:
  const bool user_sync_;
  const std::shared_ptr<D3dThread> thread_;
};

// CL_CONTEXT_INTEROP_USER_SYNC.
inline bool HasUserSync(const PropertyList& list) {
  const uint64_t* value = list.Find(CL_CONTEXT_INTEROP_USER_SYNC);
  return value != nullptr && *value == CL_TRUE;
}

// Of a context, for a call of the application's on its objects; null if it was not created for that
// API.
D3dInterop* FindInterop(const Context& context, Api api);

// clEnqueueAcquire... and clEnqueueRelease...
cl_int AcquireD3d(Api api, const SyncArguments& arguments);
cl_int ReleaseD3d(Api api, const SyncArguments& arguments);

// Of an event query, by what its GetData answered.
inline NativeProgress ProgressOf(HRESULT answer) {
  if (answer == S_FALSE) return NativeProgress::kPending;
  return SUCCEEDED(answer) ? NativeProgress::kDone : NativeProgress::kFailed;
}

// The adapter that a device of DXGI runs on, or that is one; empty if it is neither.
std::optional<AdapterLuid> LuidOfDxgiDevice(IUnknown* device);
std::optional<AdapterLuid> LuidOfDxgiAdapter(IUnknown* adapter);
AdapterLuid ToAdapterLuid(const LUID& luid);

// Copies rows of slices; a packed side has pitches of row_bytes and row_bytes * rows.
struct Pitched {
  uint8_t* data;
  size_t row_pitch;
  size_t slice_pitch;
};
void CopyRows(const Pitched& to, const Pitched& from, size_t row_bytes, size_t rows, size_t slices);

}  // namespace sluice::client::sharing
