// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/queue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client_icd/base/api.h"
#include "client_icd/objects/event.h"
#include "client_icd/session/info.h"
#include "client_icd/session/pending_releases.h"

namespace sluice::client {
namespace {

constexpr cl_command_queue_properties kHostFlags =
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
constexpr cl_command_queue_properties kKnownFlags =
    kHostFlags | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;

cl_command_queue_properties FlagsOf(const PropertyList& list) {
  const uint64_t* flags = list.Find(CL_QUEUE_PROPERTIES);
  return flags == nullptr ? 0 : *flags;
}

// The values of both kinds of hints are high, medium and low, numbered alike.
bool IsHint(uint64_t value) {
  return value == CL_QUEUE_PRIORITY_HIGH_KHR || value == CL_QUEUE_PRIORITY_MED_KHR ||
         value == CL_QUEUE_PRIORITY_LOW_KHR;
}

// Section 5.1: CL_INVALID_VALUE for what is no property, or no combination of them;
// CL_INVALID_QUEUE_PROPERTIES for what is valid but not supported by the device.
cl_int CheckProperties(const PropertyList& list, const Device& device) {
  bool hinted = false;
  for (size_t i = 0; i < list.words.size(); i += 2) {
    switch (list.words[i]) {
      case CL_QUEUE_PROPERTIES:
      case CL_QUEUE_SIZE:
        break;
      case CL_QUEUE_PRIORITY_KHR:
        if (!device.HasExtension("cl_khr_priority_hints") || !IsHint(list.words[i + 1]))
          return CL_INVALID_VALUE;
        hinted = true;
        break;
      case CL_QUEUE_THROTTLE_KHR:
        if (!device.HasExtension("cl_khr_throttle_hints") || !IsHint(list.words[i + 1]))
          return CL_INVALID_VALUE;
        hinted = true;
        break;
      default:
        return CL_INVALID_VALUE;
    }
  }
  if (list.HasDuplicates()) return CL_INVALID_VALUE;
  const cl_command_queue_properties flags = FlagsOf(list);
  const uint64_t* size = list.Find(CL_QUEUE_SIZE);
  if ((flags & ~kKnownFlags) != 0) return CL_INVALID_VALUE;
  const bool on_device = (flags & CL_QUEUE_ON_DEVICE) != 0;
  if (on_device && (flags & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0) return CL_INVALID_VALUE;
  if (!on_device && ((flags & CL_QUEUE_ON_DEVICE_DEFAULT) != 0 || size != nullptr))
    return CL_INVALID_VALUE;
  // Sections 9.18.1 and 9.19.1: CL_INVALID_QUEUE_PROPERTIES if a hint "is specified and the queue
  // is a CL_QUEUE_ON_DEVICE".
  if (hinted && on_device) return CL_INVALID_QUEUE_PROPERTIES;
  const cl_device_info which =
      on_device ? CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES : CL_DEVICE_QUEUE_ON_HOST_PROPERTIES;
  const auto supported = device.info().Scalar<cl_command_queue_properties>(which, 0);
  if ((flags & kHostFlags & ~supported) != 0) return CL_INVALID_QUEUE_PROPERTIES;
  if (on_device && supported == 0) return CL_INVALID_QUEUE_PROPERTIES;
  if (size != nullptr &&
      *size > device.info().Scalar<cl_uint>(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, 0)) {
    return CL_INVALID_QUEUE_PROPERTIES;
  }
  return CL_SUCCESS;
}

cl_command_queue HandleOf(const Ref<Queue>& queue) { return queue ? queue->handle() : nullptr; }

cl_int Create(cl_context context_handle, cl_device_id device_handle, PropertyList properties,
              bool with_properties, cl_command_queue* out) {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return CL_INVALID_CONTEXT;
  Device* device = Device::From(device_handle);
  if (device == nullptr || !context->HasDevice(device)) return CL_INVALID_DEVICE;
  CL_RETURN_IF_ERROR(CheckProperties(properties, *device));
  if (context->session().lost()) return context->session().lost_code();
  // Section 5.1: "There can only be one default device queue for each device within a context."
  // The call "will return the default device queue that has already been created and increment its
  // retain count by 1".
  if ((FlagsOf(properties) & CL_QUEUE_ON_DEVICE_DEFAULT) != 0) {
    if (const Ref<Queue> existing = context->DefaultDeviceQueue(device)) {
      existing->RetainForApp();
      *out = existing->handle();
      return CL_SUCCESS;
    }
  }

  Ref<Queue> queue = Ref<Queue>::Adopt(new Queue(Ref<Context>(context), Ref<Device>(device),
                                                 std::move(properties), with_properties));
  ScopedCommand command;
  pb::CreateCommandQueue& body = *command->mutable_create_command_queue();
  body.set_queue_id(queue->id());
  body.set_context_id(context->id());
  body.set_device_id(device->id());
  queue->properties().CopyTo(body.mutable_properties());
  // Only the driver knows whether there is room for a queue on the device.
  const bool asks = queue->on_device();
  // Before it is sent, since it may be told of a refused command at any time after.
  if (!asks) queue->SetMade();
  CL_RETURN_IF_ERROR(context->Create(*command, {}, {.needs_answer = asks}));
  if (asks) queue->SetMade();
  *out = queue.Detach()->handle();
  return CL_SUCCESS;
}

}  // namespace

Queue::Queue(Ref<Context> context, Ref<Device> device, PropertyList properties,
             bool with_properties)
    : ClObject(context->session().NextId()),
      context_(std::move(context)),
      device_(std::move(device)),
      properties_(std::move(properties)),
      with_properties_(with_properties),
      size_(properties_.Find(CL_QUEUE_SIZE) != nullptr
                ? static_cast<cl_uint>(*properties_.Find(CL_QUEUE_SIZE))
                : device_->info().Scalar<cl_uint>(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, 0)),
      flags_(FlagsOf(properties_)) {}

Queue::~Queue() {
  if (!made_) return;
  session().UnregisterObject(id());
  session().ReleaseObject(id());
}

void Queue::SetMade() {
  made_ = true;
  session().RegisterObject(this, &listener_);
  if ((flags() & CL_QUEUE_ON_DEVICE_DEFAULT) != 0)
    context_->SetDefaultDeviceQueue(device_.get(), id());
}

void Queue::Listener::OnLateError(const std::string& call, cl_int status, uint64_t event_id) {
  queue_.SetLateError(status, event_id);
  queue_.context().QueueNotify(
      absl::StrCat(call, " failed with error ", status, " after the call had returned"), {});
}

void Queue::SetLateError(cl_int status, uint64_t event_id) {
  absl::MutexLock lock(&late_mu_);
  const bool has_one = late_error_.load(std::memory_order_relaxed) != CL_SUCCESS;
  if (has_one && (event_id != 0 || late_event_id_ == 0)) return;
  late_event_id_ = event_id;
  late_error_.store(status, std::memory_order_relaxed);
}

void Queue::ForgetLateError(uint64_t event_id) {
  absl::MutexLock lock(&late_mu_);
  if (late_event_id_ == event_id) late_error_.store(CL_SUCCESS, std::memory_order_relaxed);
}

Gates Queue::PassGates(Gates own, bool all, bool barrier) {
  absl::MutexLock lock(&gates_mu_);
  all_gates_.ForgetSet();
  barrier_gates_.ForgetSet();
  own.Add(all || RunsInOrder() ? all_gates_ : barrier_gates_);
  all_gates_.Add(own);
  if (barrier) barrier_gates_.Add(own);
  return own;
}

Gates Queue::GatesBefore(bool all) {
  absl::MutexLock lock(&gates_mu_);
  return all || RunsInOrder() ? all_gates_ : barrier_gates_;
}

Ref<Event> Queue::PostFinish(bool soon) {
  Ref<Event> event = Ref<Event>::Adopt(new Event(Ref<Queue>(this), CL_COMMAND_MARKER));
  event->SetCovers(TakeUncovered(), /*is_finish=*/true);
  if (soon) event->SoonWhenEnded([](cl_int) {});
  ScopedCommand command;
  pb::Finish& body = *command->mutable_finish();
  body.set_queue_id(id());
  body.set_event_id(event->id());
  if (stream().Track(&event->pending())) {
    if (stream().Post(*command)) return event;
    stream().Untrack(&event->pending());
  }
  event->Abandon();
  return nullptr;
}

void Queue::NotePosted() {
  if (!session().in_flight().counts()) return;
  const uint64_t before = uncovered_.fetch_add(1, std::memory_order_release);
  if (before + 1 >= session().in_flight().check_batch()) PostFinish(/*soon=*/false);
}

void Queue::CoverBeforeRelease() {
  if (uncovered_.load(std::memory_order_relaxed) != 0 && !session().lost())
    PostFinish(/*soon=*/true);
}

cl_int Queue::Finish() {
  const uint64_t covered = enqueued_.load(std::memory_order_acquire);
  if (finished_.load(std::memory_order_acquire) == covered && !session().lost())
    return TakeLateError();
  const Ref<Event> event = PostFinish(/*soon=*/false);
  if (!event) return session().lost_code();
  const cl_int status = stream().WaitFor(&event->pending());
  const cl_int late = TakeLateError();
  if (session().lost()) return session().lost_code();
  // A fault of the device's: the driver says so at every clFinish from then on.
  if (status < 0) return late != CL_SUCCESS ? late : status;
  uint64_t before = finished_.load(std::memory_order_relaxed);
  while (before < covered &&
         !finished_.compare_exchange_weak(before, covered, std::memory_order_release)) {
  }
  return late;
}

cl_int Queue::GetInfo(cl_command_queue_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_QUEUE_CONTEXT:
      return sink.Value<cl_context>(context_->handle());
    case CL_QUEUE_DEVICE:
      return sink.Value<cl_device_id>(device_->handle());
    case CL_QUEUE_REFERENCE_COUNT:
      return sink.Value<cl_uint>(app_count());
    case CL_QUEUE_PROPERTIES:
      return sink.Value<cl_command_queue_properties>(flags());
    case CL_QUEUE_PROPERTIES_ARRAY:
      return sink.Array(with_properties_ ? properties_.WithTerminator() : std::vector<uint64_t>());
    case CL_QUEUE_SIZE:
      // "If command_queue is not a device queue: CL_INVALID_COMMAND_QUEUE" (section 5.1).
      return on_device() ? sink.Value<cl_uint>(size_) : CL_INVALID_COMMAND_QUEUE;
    case CL_QUEUE_DEVICE_DEFAULT:
      return sink.Value<cl_command_queue>(HandleOf(context_->DefaultDeviceQueue(device_.get())));
    default:
      return WireInfo(session(), {pb::GetInfo::QUEUE, id(), param_name}, sink);
  }
}

namespace api {

cl_command_queue CL_API_CALL clCreateCommandQueueWithProperties(
    cl_context context, cl_device_id device, const cl_queue_properties* properties,
    cl_int* errcode_ret) noexcept {
  PropertyList list;
  if (!ReadProperties(properties, &list)) return Fail(errcode_ret, CL_INVALID_VALUE);
  cl_command_queue queue = nullptr;
  const cl_int status = Create(context, device, std::move(list), /*with_properties=*/true, &queue);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return queue;
}

cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                  cl_command_queue_properties properties,
                                                  cl_int* errcode_ret) noexcept {
  PropertyList list;
  list.words = {CL_QUEUE_PROPERTIES, properties};
  // This call makes host queues only.
  if ((properties & ~kHostFlags) != 0 && Context::From(context) != nullptr &&
      Device::From(device) != nullptr) {
    return Fail(errcode_ret, CL_INVALID_VALUE);
  }
  cl_command_queue queue = nullptr;
  const cl_int status = Create(context, device, std::move(list), /*with_properties=*/false, &queue);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return queue;
}

cl_command_queue CL_API_CALL clCreateCommandQueueWithPropertiesKHR(
    cl_context context, cl_device_id device, const cl_queue_properties_khr* properties,
    cl_int* errcode_ret) noexcept {
  return api::clCreateCommandQueueWithProperties(
      context, device, reinterpret_cast<const cl_queue_properties*>(properties), errcode_ret);
}

cl_int CL_API_CALL clRetainCommandQueue(cl_command_queue queue) noexcept {
  return RetainHandle<Queue>(queue, CL_INVALID_COMMAND_QUEUE);
}

// An implicit flush (section 5.1); the worker also flushes by itself.
cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue handle) noexcept {
  Queue* queue = Queue::FromHost(handle);
  const bool is_last = queue != nullptr && queue->app_count() == 1;
  const bool has_interop = is_last && queue->context().has_interop();
  if (has_interop) queue->context().CollectEnded();
  if (is_last) queue->CoverBeforeRelease();
  const cl_int status = ReleaseHandle<Queue>(handle, CL_INVALID_COMMAND_QUEUE);
  if (has_interop) PendingReleases::Await();
  return status;
}

cl_int CL_API_CALL clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info param_name,
                                         size_t param_value_size, void* param_value,
                                         size_t* param_value_size_ret) noexcept {
  Queue* queue = Queue::From(handle);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  return queue->GetInfo(param_name, InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clFlush(cl_command_queue handle) noexcept {
  Queue* queue = Queue::FromHost(handle);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  ScopedCommand command;
  command->mutable_flush()->set_queue_id(queue->id());
  // A worker that sleeps has taken everything and flushed before: it need not be woken for this.
  return queue->stream().PostQuietly(*command) ? CL_SUCCESS : queue->session().lost_code();
}

cl_int CL_API_CALL clFinish(cl_command_queue handle) noexcept {
  Queue* queue = Queue::FromHost(handle);
  return queue == nullptr ? CL_INVALID_COMMAND_QUEUE : queue->Finish();
}

// Section 5.1 of OpenCL 1.1: CL_INVALID_OPERATION unless a device of the context is of OpenCL 1.0.
// None of those has a driver that Sluice could load.
cl_int CL_API_CALL clSetCommandQueueProperty(cl_command_queue handle, cl_command_queue_properties,
                                             cl_bool, cl_command_queue_properties*) noexcept {
  return Queue::FromHost(handle) == nullptr ? CL_INVALID_COMMAND_QUEUE : CL_INVALID_OPERATION;
}

cl_int CL_API_CALL clSetDefaultDeviceCommandQueue(cl_context context_handle,
                                                  cl_device_id device_handle,
                                                  cl_command_queue queue_handle) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return CL_INVALID_CONTEXT;
  Device* device = Device::From(device_handle);
  if (device == nullptr || !context->HasDevice(device)) return CL_INVALID_DEVICE;
  // "CL_INVALID_OPERATION if device does not support a replaceable default on-device queue"
  // (section 5.1).
  const auto capabilities = device->info().Scalar<cl_device_device_enqueue_capabilities>(
      CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, 0);
  if ((capabilities & CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT) == 0) return CL_INVALID_OPERATION;
  Queue* queue = Queue::From(queue_handle);
  if (queue == nullptr || !queue->on_device() || &queue->device() != device ||
      &queue->context() != context) {
    return CL_INVALID_COMMAND_QUEUE;
  }
  ScopedCommand command;
  pb::SetDefaultDeviceCommandQueue& body = *command->mutable_set_default_device_command_queue();
  body.set_context_id(context->id());
  body.set_device_id(device->id());
  body.set_queue_id(queue->id());
  CL_RETURN_IF_ERROR(context->stream().Call(*command, {}, nullptr));
  context->SetDefaultDeviceQueue(device, queue->id());
  return CL_SUCCESS;
}

}  // namespace api
}  // namespace sluice::client
