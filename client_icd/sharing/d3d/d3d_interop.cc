// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/d3d/d3d_interop.h"

#include <dxgi.h>

#include <cstring>
#include <utility>

#include "client_icd/base/client_log.h"
#include "client_icd/objects/event.h"
#include "client_icd/objects/queue.h"
#include "client_icd/session/pending_releases.h"

namespace sluice::client::sharing {

bool D3dThread::Post(JobThread::Job job) {
  {
    absl::MutexLock lock(&state_->mu);
    if (callers_only_ || state_->callers > 0) {
      state_->jobs.push_back(std::move(job));
      return true;
    }
  }
  return NativeThread::Post(std::move(job));
}

void D3dThread::ReleaseElsewhere(JobThread::Job kept) {
  if (callers_only_) return HomeThread::Leave(home_, std::move(kept));
  releases_.Add([kept = std::move(kept), under_way = PendingReleases::Begin()]() mutable {
    const CommandStream::Handling handling;  // As where a job's own go.
    kept = nullptr;
    under_way = nullptr;
  });
}

std::shared_ptr<void> D3dThread::Begin(std::shared_ptr<Call>* call) {
  *call = std::make_shared<Call>();
  absl::MutexLock lock(&state_->mu);
  ++state_->callers;
  return {call->get(), [state = state_, call = *call](void*) {
            absl::MutexLock ended(&state->mu);
            call->ended = true;
          }};
}

void D3dThread::RunUntilEnded(const Call& call) {
  State& state = *state_;
  const auto has_work = [&state, &call]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !state.jobs.empty() || call.ended;
  };
  std::deque<JobThread::Job> left;
  while (true) {
    JobThread::Job job;
    {
      absl::MutexLock lock(&state.mu);
      state.mu.Await(absl::Condition(&has_work));
      if (call.ended) {
        // The jobs that are left are another caller's, or the thread's if there is none.
        if (--state.callers == 0 && !callers_only_) left.swap(state.jobs);
        break;
      }
      job = std::move(state.jobs.front());
      state.jobs.pop_front();
    }
    job();
  }
  for (JobThread::Job& job : left) NativeThread::Post(std::move(job));
}

D3dInterop* FindInterop(const Context& context, Api api) {
  auto* const interop = static_cast<D3dInterop*>(context.Interop(api));
  if (interop != nullptr) interop->thread()->BindToThisThread();
  return interop;
}

namespace {

using Enqueue = cl_int(Api, const SyncArguments&, SyncSteps);

cl_int EnqueueOnCaller(Enqueue* enqueue, Api api, const SyncArguments& arguments,
                       D3dThread& thread) {
  std::shared_ptr<D3dThread::Call> call;
  SyncSteps steps;
  // Lives as long as the work that is to be done, however that ends.
  steps.after = [token = thread.Begin(&call)](absl::Time) { return CL_SUCCESS; };
  const cl_int status = enqueue(api, arguments, std::move(steps));
  thread.RunUntilEnded(*call);
  return status;
}

}  // namespace

cl_int AcquireD3d(Api api, const SyncArguments& arguments) {
  const Queue* queue = Queue::FromHost(arguments.queue);
  D3dInterop* interop = queue == nullptr ? nullptr : FindInterop(queue->context(), api);
  if (interop == nullptr || !interop->thread()->callers_only())
    return EnqueueAcquire(api, arguments);
  if (ComesBehindUserEvent(arguments)) {
    ClientLog(ClientLogLevel::kWarning,
              "sharing: the Direct3D device is of one thread, and an acquire would wait for a user "
              "event in it");
    return CL_INVALID_OPERATION;
  }
  return EnqueueOnCaller(&EnqueueAcquire, api, arguments, *interop->thread());
}

cl_int ReleaseD3d(Api api, const SyncArguments& arguments) {
  Queue* queue = Queue::FromHost(arguments.queue);
  D3dInterop* interop = queue == nullptr ? nullptr : FindInterop(queue->context(), api);
  if (interop == nullptr || arguments.num_objects == 0) return EnqueueRelease(api, arguments);
  const bool may_wait = !ComesBehindUserEvent(arguments, /*behind_all=*/true);
  const bool on_caller = interop->thread()->callers_only();
  if (on_caller && !may_wait) {
    ClientLog(ClientLogLevel::kWarning,
              "sharing: the Direct3D device is of one thread, and a release would wait for a user "
              "event in it");
    return CL_INVALID_OPERATION;
  }
  if (!on_caller && (interop->user_sync() || !may_wait)) return EnqueueRelease(api, arguments);
  cl_event own = nullptr;
  SyncArguments waited = arguments;
  if (waited.event == nullptr) waited.event = &own;
  const cl_int status = EnqueueOnCaller(&EnqueueRelease, api, waited, *interop->thread());
  if (status != CL_SUCCESS) return status;
  const Ref<Event> released(Event::From(*waited.event));
  if (own != nullptr) released->ReleaseForApp();
  // Nothing may be left that keeps the context, and so the application's device, after its last
  // release.
  if (interop->user_sync()) return CL_SUCCESS;
  const cl_int answer = WaitForRelease(*queue, released.get(), arguments.event);
  // One that fails because of its list need not have come behind all that is before it.
  if (answer != CL_SUCCESS || released->status() < 0) queue->Finish();
  queue->stream().AwaitHandled();
  return answer;
}

AdapterLuid ToAdapterLuid(const LUID& luid) {
  AdapterLuid bytes;
  static_assert(sizeof(luid) == sizeof(bytes));
  std::memcpy(bytes.data(), &luid, bytes.size());
  return bytes;
}

std::optional<AdapterLuid> LuidOfDxgiAdapter(IUnknown* object) {
  const os::ComPtr<IDXGIAdapter> adapter = os::ComPtr<IDXGIAdapter>::Of(object);
  DXGI_ADAPTER_DESC desc;
  if (!adapter || FAILED(adapter->GetDesc(&desc))) return std::nullopt;
  return ToAdapterLuid(desc.AdapterLuid);
}

std::optional<AdapterLuid> LuidOfDxgiDevice(IUnknown* object) {
  const os::ComPtr<IDXGIDevice> device = os::ComPtr<IDXGIDevice>::Of(object);
  os::ComPtr<IDXGIAdapter> adapter;
  if (!device || FAILED(device->GetAdapter(adapter.out()))) return std::nullopt;
  return LuidOfDxgiAdapter(adapter.get());
}

void CopyRows(const Pitched& to, const Pitched& from, size_t row_bytes, size_t rows,
              size_t slices) {
  for (size_t slice = 0; slice < slices; ++slice) {
    for (size_t row = 0; row < rows; ++row) {
      std::memcpy(to.data + slice * to.slice_pitch + row * to.row_pitch,
                  from.data + slice * from.slice_pitch + row * from.row_pitch, row_bytes);
    }
  }
}

}  // namespace sluice::client::sharing
