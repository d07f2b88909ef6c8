// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/event.h"

#include <algorithm>
#include <utility>

#include "client_icd/base/api.h"
#include "client_icd/objects/enqueue.h"
#include "client_icd/session/info.h"
#include "client_icd/session/pending_releases.h"

namespace sluice::client {

Event::Event(Ref<Queue> queue, cl_command_type type)
    : ClObject(queue->session().NextId()),
      queue_(std::move(queue)),
      context_(&queue_->context()),
      type_(type) {}

Event::Event(Ref<Context> context, cl_command_type type)
    : ClObject(context->session().NextId()), context_(std::move(context)), type_(type) {}

Event::~Event() {
  // A user event that nobody will set any more.
  for (size_t left = callbacks_.size(); left > 0; --left) session().stream().DropEager();
  if (posted_) session().ReleaseEvent(id());
}

cl_int Event::status() const {
  if (ended()) return status_.load(std::memory_order_relaxed);
  // Not ended and never going to be: the loss is being reported to all, or this is the child of a
  // fork.
  if (!session().lost() || StaysOpen()) return status_.load(std::memory_order_relaxed);
  return session().lost_code();
}

bool Event::StaysOpen() const { return is_user() && session().terminated(); }

void Event::SetTransfer(Direction direction, const HostRegion& region) {
  pending_.SetTransfer(direction, region);
  if (direction == Direction::kToHost) session().pending_destinations().Add(region);
}

void Event::KeepUntilEnd(Ref<Object> object) {
  absl::MutexLock lock(&mu_);
  kept_.push_back(std::move(object));
}

bool Event::Keeps(absl::FunctionRef<bool(const Object&)> is_such) const {
  absl::MutexLock lock(&mu_);
  return std::any_of(kept_.begin(), kept_.end(),
                     [is_such](const Ref<Object>& kept) { return is_such(*kept); });
}

void Event::WhenEnded(Hook hook) {
  absl::MutexLock lock(&mu_);
  hooks_.push_back(std::move(hook));
}

void Event::SoonWhenEnded(Hook hook) {
  session().stream().AddEager();
  absl::MutexLock lock(&mu_);
  hooks_.push_back(std::move(hook));
  ++eager_hooks_;
}

void Event::Abandon() {
  if (direction() == Direction::kToHost) session().pending_destinations().Remove(region());
  std::vector<Ref<Object>> kept;
  absl::MutexLock lock(&mu_);
  kept.swap(kept_);
  hooks_.clear();
  for (; eager_hooks_ > 0; --eager_hooks_) session().stream().DropEager();
}

// As the worker does it (daemon/worker/queues/in_flight.h): a command that failed may have done so
// before others of its queue have ended.
void Event::ReturnCovered(cl_int status) {
  const uint64_t covers = std::exchange(covers_, 0);
  if (covers == 0) return;
  const bool all = is_finish_ || status == CL_COMPLETE;
  if (!all) queue_->AddUncovered(covers - 1);
  session().in_flight().Return(all ? covers : 1);
}

void Event::End(cl_int status, absl::Span<const uint64_t> profiling) {
  const cl_int cause = cause_.load(std::memory_order_relaxed);
  if (status < 0 && cause < 0) status = cause;
  std::vector<Ref<Object>> kept;
  std::vector<Hook> hooks;
  int eager_hooks = 0;
  {
    absl::MutexLock lock(&mu_);
    if (ended()) return;
    kept.swap(kept_);
    hooks.swap(hooks_);
    std::swap(eager_hooks, eager_hooks_);
  }
  if (direction() == Direction::kToHost) session().pending_destinations().Remove(region());
  ReturnCovered(status);
  for (const Hook& hook : hooks) hook(status);
  for (; eager_hooks > 0; --eager_hooks) session().stream().DropEager();
  // Let go before anybody sees the end: who then releases an object may count on being the last.
  hooks.clear();
  kept.clear();
  std::vector<Registered> callbacks;
  {
    absl::MutexLock lock(&mu_);
    if (ended()) return;
    has_profiling_ = profiling.size() == profiling_.size();
    if (has_profiling_) std::copy(profiling.begin(), profiling.end(), profiling_.begin());
    status_.store(status, std::memory_order_relaxed);
    pending_.SetEnded();
    callbacks.swap(callbacks_);
  }
  for (const Registered& registered : callbacks) {
    QueueCallback(registered, status);
    session().stream().DropEager();
  }
}

// Callbacks for an earlier state get that state; an abnormal end is told as it is (section 5.11).
void Event::QueueCallback(const Registered& registered, cl_int status) {
  const cl_int told = status < 0 ? status : registered.when;
  session().callbacks().Add([event = Ref<Event>(this), registered, told] {
    registered.callback(event->handle(), told, registered.user_data);
  });
}

void Event::SetUserGate() {
  user_gate_ = std::make_shared<std::atomic<bool>>(false);
  SetGates(Gates(user_gate_));
  context_->CountUserEvents(+1);
}

void Event::OpenUserGate() {
  if (user_gate_ == nullptr) return;
  user_gate_->store(true, std::memory_order_release);
  context_->CountUserEvents(-1);
}

void Event::AddCallback(cl_int when, Callback callback, void* user_data) {
  const Registered registered{when, callback, user_data};
  {
    absl::MutexLock lock(&mu_);
    // Nothing is pushed about the states before the last, so that a command that was sent counts as
    // submitted. A callback for CL_RUNNING runs at the latest moment that is allowed: when the
    // command has ended.
    if (!ended() && when != CL_SUBMITTED) {
      callbacks_.push_back(registered);
      session().stream().AddEager();
      return;
    }
  }
  QueueCallback(registered, ended() ? std::min(status(), CL_COMPLETE) : CL_SUBMITTED);
}

cl_int Event::GetInfo(cl_event_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_EVENT_COMMAND_QUEUE:
      return sink.Value<cl_command_queue>(queue_ ? queue_->handle() : nullptr);
    case CL_EVENT_CONTEXT:
      return sink.Value<cl_context>(context_->handle());
    case CL_EVENT_COMMAND_TYPE:
      return sink.Value<cl_command_type>(type_);
    case CL_EVENT_REFERENCE_COUNT:
      return sink.Value<cl_uint>(app_count());
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
      if (!ended()) session().stream().Poll();
      if (ended()) PendingReleases::Await();
      return sink.Value<cl_int>(status());
    default:
      return CL_INVALID_VALUE;
  }
}

// Section 5.14: CL_PROFILING_INFO_NOT_AVAILABLE for a queue without profiling, a command that has
// not ended, a user event.
cl_int Event::GetProfilingInfo(cl_profiling_info param_name, const InfoSink& sink) {
  if (param_name < CL_PROFILING_COMMAND_QUEUED || param_name > CL_PROFILING_COMMAND_COMPLETE)
    return CL_INVALID_VALUE;
  if (!ended()) session().stream().Poll();
  if (!ended() || !has_profiling_ || status() != CL_COMPLETE)
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  return sink.Value<cl_ulong>(profiling_[param_name - CL_PROFILING_COMMAND_QUEUED]);
}

namespace {

// Section 5.11: all events of one context; CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if one has
// failed. Else what was refused late in the queue of one.
cl_int WaitForAll(cl_uint count, const cl_event* list) {
  if (count == 0 || list == nullptr) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    const Event* event = Event::From(list[i]);
    if (event == nullptr) return CL_INVALID_EVENT;
    if (&event->context() != &Event::From(list[0])->context()) return CL_INVALID_CONTEXT;
  }
  // Another thread may release the application's references meanwhile.
  absl::InlinedVector<Ref<Event>, 8> events;
  for (cl_uint i = 0; i < count; ++i) events.emplace_back(Event::From(list[i]));
  cl_int result = CL_SUCCESS;
  for (const Ref<Event>& event : events) {
    const cl_int status = event->session().stream().WaitFor(&event->pending());
    // A user event of a terminated context may never end: nobody waits for it.
    if (status >= 0 && event->ended()) continue;
    result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (event->queue() != nullptr) event->queue()->ForgetLateError(event->id());
  }
  if (result != CL_SUCCESS) return result;
  for (const Ref<Event>& event : events) {
    if (event->queue() != nullptr) CL_RETURN_IF_ERROR(event->queue()->TakeLateError());
  }
  return CL_SUCCESS;
}

}  // namespace

namespace {

// Distinct events in one list, which a command has room for whatever the daemon's limits are.
constexpr size_t kMostWaits = 1 << 18;
// A short list may name an event twice; that costs less than to look for it.
constexpr size_t kShortList = 64;

}  // namespace

cl_int ReadWaitList(cl_uint count, const cl_event* list, const Context& context, WaitIds* ids,
                    LinkedEvents linked) {
  if ((count == 0) != (list == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  for (cl_uint i = 0; i < count; ++i) {
    const Event* event = Event::From(list[i]);
    if (event == nullptr) return CL_INVALID_EVENT_WAIT_LIST;
    if (&event->context() != &context) return CL_INVALID_CONTEXT;
    if (event->is_linked() && linked == LinkedEvents::kRefuse) return CL_INVALID_EVENT;
    if (event->status() != CL_COMPLETE) ids->push_back(event->id());
  }
  if (ids->size() <= kShortList) return CL_SUCCESS;
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
  return ids->size() <= kMostWaits ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

cl_int MakeUserEvent(Context* context, Ref<Event>* out) {
  return MakeLinkedEvent(context, CL_COMMAND_USER, out);
}

cl_int MakeLinkedEvent(Context* context, cl_command_type type, Ref<Event>* out) {
  Ref<Event> event = Ref<Event>::Adopt(new Event(Ref<Context>(context), type));
  ScopedCommand command;
  pb::CreateUserEvent& body = *command->mutable_create_user_event();
  body.set_event_id(event->id());
  body.set_context_id(context->id());
  // Tracked, so that the loss of the session ends it too.
  if (!context->stream().Track(&event->pending())) return context->session().lost_code();
  event->SetPosted();
  if (!context->stream().Post(*command)) {
    context->stream().Untrack(&event->pending());
    return context->session().lost_code();
  }
  *out = std::move(event);
  return CL_SUCCESS;
}

cl_int EndUserEvent(Event* event, cl_int status) {
  CommandStream& stream = event->session().stream();
  ScopedCommand command;
  pb::SetUserEventStatus& body = *command->mutable_set_user_event_status();
  body.set_event_id(event->id());
  body.set_status(status);
  const bool posted = stream.Post(*command);
  const Ref<Event> keep(event);
  stream.Untrack(&event->pending());
  // cl_khr_terminate_context: "the status of user events can be set".
  const bool taken = posted || event->session().terminated();
  event->End(taken ? status : event->session().lost_code(), {});
  stream.WakeWaiters();
  return taken ? CL_SUCCESS : event->session().lost_code();
}

void EndOwnEvent(Ref<Event> event, cl_int status) {
  const std::shared_ptr<Session> session = event->context().session_ptr();
  const uint64_t id = event->id();
  session->stream().Untrack(&event->pending());
  event->End(status, {});
  event->SetReleased();
  event = nullptr;
  ScopedCommand command;
  pb::SetUserEventStatus& body = *command->mutable_set_user_event_status();
  body.set_event_id(id);
  body.set_status(status);
  session->stream().Post(*command);
  session->ReleaseEvent(id);
}

namespace api {

cl_int CL_API_CALL clWaitForEvents(cl_uint num_events, const cl_event* event_list) noexcept {
  return WaitForAll(num_events, event_list);
}

cl_int CL_API_CALL clGetEventInfo(cl_event handle, cl_event_info param_name,
                                  size_t param_value_size, void* param_value,
                                  size_t* param_value_size_ret) noexcept {
  Event* event = Event::From(handle);
  if (event == nullptr) return CL_INVALID_EVENT;
  return event->GetInfo(param_name, InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clGetEventProfilingInfo(cl_event handle, cl_profiling_info param_name,
                                           size_t param_value_size, void* param_value,
                                           size_t* param_value_size_ret) noexcept {
  Event* event = Event::From(handle);
  if (event == nullptr) return CL_INVALID_EVENT;
  return event->GetProfilingInfo(param_name,
                                 InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clRetainEvent(cl_event event) noexcept {
  return RetainHandle<Event>(event, CL_INVALID_EVENT);
}

cl_int CL_API_CALL clReleaseEvent(cl_event handle) noexcept {
  Event* event = Event::From(handle);
  if (event == nullptr) return CL_INVALID_EVENT;
  const Ref<Event> keep(event);
  if (!event->ReleaseForApp()) return CL_INVALID_EVENT;
  // A user event that nobody can set any more: the stream need not look after it, and the worker
  // fails what waits for it.
  if (event->is_user() && event->app_count() == 0 && event->ClaimUserStatus()) {
    event->OpenUserGate();
    event->session().stream().Untrack(&event->pending());
  }
  return CL_SUCCESS;
}

cl_event CL_API_CALL clCreateUserEvent(cl_context context_handle, cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  Ref<Event> event;
  const cl_int status = MakeUserEvent(context, &event);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  event->SetUserGate();
  Succeed(errcode_ret);
  return event.Detach()->handle();
}

// Section 5.11: CL_INVALID_VALUE unless CL_COMPLETE or negative; CL_INVALID_OPERATION the second
// time.
cl_int CL_API_CALL clSetUserEventStatus(cl_event handle, cl_int execution_status) noexcept {
  Event* event = Event::From(handle);
  if (event == nullptr || !event->is_user()) return CL_INVALID_EVENT;
  if (execution_status > CL_COMPLETE) return CL_INVALID_VALUE;
  if (!event->ClaimUserStatus()) return CL_INVALID_OPERATION;
  event->OpenUserGate();
  return EndUserEvent(event, execution_status);
}

cl_int CL_API_CALL clSetEventCallback(cl_event handle, cl_int command_exec_callback_type,
                                      Event::Callback pfn_notify, void* user_data) noexcept {
  Event* event = Event::From(handle);
  if (event == nullptr) return CL_INVALID_EVENT;
  if (pfn_notify == nullptr || command_exec_callback_type < CL_COMPLETE ||
      command_exec_callback_type > CL_SUBMITTED) {
    return CL_INVALID_VALUE;
  }
  CL_RETURN_IF_ERROR(event->session().callbacks().Ready());
  event->AddCallback(command_exec_callback_type, pfn_notify, user_data);
  return CL_SUCCESS;
}

cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue queue_handle, cl_uint num_events,
                                               const cl_event* wait_list,
                                               cl_event* event) noexcept {
  Queue* queue = Queue::FromHost(queue_handle);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  EnqueueCall call(queue, num_events, wait_list, event, CL_COMMAND_MARKER);
  CL_RETURN_IF_ERROR(call.status());
  // Section 5.12: only without a list do they wait for all that came before, and hold back what
  // comes after.
  if (call.list_has_completed()) return call.SubmitNothing();
  return call.Submit(call.command().mutable_enqueue_marker()->mutable_on());
}

cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue queue_handle, cl_uint num_events,
                                                const cl_event* wait_list,
                                                cl_event* event) noexcept {
  Queue* queue = Queue::FromHost(queue_handle);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  EnqueueCall call(queue, num_events, wait_list, event, CL_COMMAND_BARRIER);
  CL_RETURN_IF_ERROR(call.status());
  if (call.list_has_completed()) return call.SubmitNothing();
  return call.Submit(call.command().mutable_enqueue_barrier()->mutable_on());
}

cl_int CL_API_CALL clEnqueueMarker(cl_command_queue queue, cl_event* event) noexcept {
  if (Queue::FromHost(queue) == nullptr) return CL_INVALID_COMMAND_QUEUE;
  if (event == nullptr) return CL_INVALID_VALUE;
  return api::clEnqueueMarkerWithWaitList(queue, 0, nullptr, event);
}

cl_int CL_API_CALL clEnqueueBarrier(cl_command_queue queue) noexcept {
  return api::clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr);
}

// The older call has an error code of its own for a bad list, and needs one.
cl_int CL_API_CALL clEnqueueWaitForEvents(cl_command_queue queue, cl_uint num_events,
                                          const cl_event* event_list) noexcept {
  if (Queue::FromHost(queue) == nullptr) return CL_INVALID_COMMAND_QUEUE;
  if (num_events == 0 || event_list == nullptr) return CL_INVALID_VALUE;
  const cl_int status = api::clEnqueueBarrierWithWaitList(queue, num_events, event_list, nullptr);
  return status == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : status;
}

}  // namespace api
}  // namespace sluice::client
