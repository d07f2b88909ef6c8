// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/context.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/threads.h"
#include "client_icd/base/api.h"
#include "client_icd/base/client_log.h"
#include "client_icd/objects/endpoint.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/objects/queue.h"
#include "client_icd/session/info.h"
#include "client_icd/session/pending_releases.h"

namespace sluice::client {
namespace {

// cl_khr_initialize_memory: CL_CONTEXT_MEMORY_INITIALIZE_LOCAL_KHR and _PRIVATE_KHR.
constexpr uint64_t kMemoryInitializeBits = 3;

bool IsTerminatable(const PropertyList& list) {
  const uint64_t* const value = list.Find(CL_CONTEXT_TERMINATE_KHR);
  return value != nullptr && *value == CL_TRUE;
}

// Sections 9.12.1 and 9.11.1: these properties "can be specified in the context properties only if
// all devices associated with the context support" them. "Otherwise, context creation fails with
// error code of CL_INVALID_PROPERTY."
cl_int CheckDevices(const PropertyList& list, const std::vector<Ref<Device>>& devices) {
  const bool initializes = list.Find(CL_CONTEXT_MEMORY_INITIALIZE_KHR) != nullptr;
  for (const Ref<Device>& device : devices) {
    if (IsTerminatable(list) && !device->can_terminate()) return CL_INVALID_PROPERTY;
    if (initializes && !device->HasExtension("cl_khr_initialize_memory"))
      return CL_INVALID_PROPERTY;
  }
  return CL_SUCCESS;
}

// Section 4.4: CL_INVALID_DEVICE for one that is none, or of another platform. Devices given twice
// count once.
cl_int ReadContextDevices(cl_uint count, const cl_device_id* handles, Platform** platform,
                          std::vector<Ref<Device>>* devices) {
  for (cl_uint i = 0; i < count; ++i) {
    Device* device = Device::From(handles[i]);
    if (device == nullptr) return CL_INVALID_DEVICE;
    if (*platform == nullptr) *platform = device->platform();
    if (device->platform() != *platform) return CL_INVALID_DEVICE;
    const bool known =
        std::any_of(devices->begin(), devices->end(),
                    [device](const Ref<Device>& one) { return one.get() == device; });
    if (!known) devices->push_back(Ref<Device>(device));
  }
  return CL_SUCCESS;
}

// Says if the context may be in a worker with those of other programs of this user: its driver's
// context is theirs as well, so that no property must be its own.
Endpoint::Sharing SharingOf(Endpoint& endpoint, const std::vector<Ref<Device>>& devices,
                            const PropertyList& properties) {
  for (size_t i = 0; i < properties.words.size(); i += 2) {
    if (properties.words[i] != CL_CONTEXT_PLATFORM) return Endpoint::Sharing::kNeedsWorker;
  }
  const bool any_processor = std::any_of(
      devices.begin(), devices.end(),
      [](const Ref<Device>& device) { return (device->type() & CL_DEVICE_TYPE_CPU) != 0; });
  return any_processor && !endpoint.pools_processors() ? Endpoint::Sharing::kNeedsWorker
                                                       : Endpoint::Sharing::kMay;
}

// The session of the sub-devices, if there are any; else one for the context alone, if it can be
// terminated, or the endpoint's.
cl_int ChooseSession(Platform* platform, const std::vector<Ref<Device>>& devices,
                     const PropertyList& properties, std::shared_ptr<Session>* session) {
  for (const Ref<Device>& device : devices) {
    if (device->is_root()) continue;
    if (*session != nullptr && *session != device->session()) return CL_INVALID_DEVICE;
    *session = device->session();
  }
  if (*session != nullptr) return (*session)->lost() ? (*session)->lost_code() : CL_SUCCESS;
  // A session that ends with the context must not be shared with others.
  Endpoint& endpoint = platform->endpoint();
  absl::StatusOr<std::shared_ptr<Session>> opened =
      IsTerminatable(properties) ? endpoint.OpenSeparateSession()
                                 : endpoint.GetSession(SharingOf(endpoint, devices, properties));
  if (!opened.ok()) {
    ClientLog(ClientLogLevel::kError, std::string(opened.status().message()));
    return ToClError(opened.status());
  }
  *session = *std::move(opened);
  return CL_SUCCESS;
}

// Has the worker make it. `spent`: another session may.
cl_int Place(Context* context, bool* spent) {
  ScopedCommand command;
  pb::CreateContext& body = *command->mutable_create_context();
  body.set_context_id(context->id());
  for (const Device* device : context->devices()) body.add_device_ids(device->id());
  const auto& words = context->properties().words;
  for (size_t i = 0; i < words.size(); i += 2) {
    // The worker's driver knows neither our platform nor the application's graphics API, and the
    // worker is what is terminated.
    if (words[i] == CL_CONTEXT_PLATFORM || words[i] == CL_CONTEXT_TERMINATE_KHR ||
        IsInteropProperty(words[i]))
      continue;
    body.add_properties(words[i]);
    body.add_properties(words[i + 1]);
  }
  pb::Answer answer;
  const cl_int status = context->Create(*command, {}, {.needs_answer = true}, &answer);
  *spent = answer.session_is_spent();
  CL_RETURN_IF_ERROR(OfKnownDevice(status));
  const bool is_local = context->session().transport().shares_memory();
  context->SetPlacement(answer.context(), is_local);
  if (is_local && !answer.context().buffers_in_heap()) context->stream().ExpectDevice();
  return CL_SUCCESS;
}

// The request that a clCreateContext makes, checked.
struct Request {
  Platform* platform;
  const std::vector<Ref<Device>>& devices;
  const PropertyList& properties;
  Context::Notify notify;
  void* user_data;
};

// `spent`: the session makes none any more, and nobody is given it again.
cl_int CreateInSession(const Request& request, Ref<Context>* out, bool* spent) {
  Endpoint& endpoint = request.platform->endpoint();
  std::shared_ptr<Session> session;
  CL_RETURN_IF_ERROR(
      ChooseSession(request.platform, request.devices, request.properties, &session));
  Ref<Context> context =
      Ref<Context>::Adopt(new Context(session, request.platform, request.devices,
                                      request.properties, request.notify, request.user_data));
  cl_int status = request.notify != nullptr ? session->callbacks().Ready() : CL_SUCCESS;
  if (status == CL_SUCCESS) status = Place(context.get(), spent);
  // Found lost by this call alone: a fault in an earlier context has ended it meanwhile.
  const bool had_objects = context->id() != kFirstClientId;
  if (status != CL_SUCCESS && had_objects && session->lost() && !session->terminated())
    *spent = true;
  if (status == CL_SUCCESS) {
    *out = std::move(context);
  } else if (*spent) {
    endpoint.DropSession(*session);
  } else if (context->is_terminatable() && !session->lost()) {
    endpoint.KeepSession(session);  // Opened for this one: the next one takes it.
  }
  return status;
}

cl_int Create(const PropertyList& properties, cl_uint num_devices, const cl_device_id* handles,
              Context::Notify notify, void* user_data, Ref<Context>* out) {
  Platform* platform = nullptr;
  CL_RETURN_IF_ERROR(CheckContextProperties(properties, CL_INVALID_PROPERTY, &platform));
  std::vector<Ref<Device>> devices;
  CL_RETURN_IF_ERROR(ReadContextDevices(num_devices, handles, &platform, &devices));
  CL_RETURN_IF_ERROR(CheckDevices(properties, devices));
  std::vector<Interop> interops;
  CL_RETURN_IF_ERROR(OpenInterops(properties, &interops));
  const Request request = {platform, devices, properties, notify, user_data};
  bool spent = false;
  Ref<Context> context;
  cl_int status = CreateInSession(request, &context, &spent);
  // A fault has brought the driver down in that worker: in the application's own process no context
  // could be made any more.
  if (spent) status = CreateInSession(request, &context, &spent);
  CL_RETURN_IF_ERROR(status);
  for (Interop& one : interops) context->AddInterop(one.api, std::move(one.kept));
  *out = std::move(context);
  return CL_SUCCESS;
}

}  // namespace

cl_int CheckContextProperties(const PropertyList& list, cl_int unknown_name, Platform** platform) {
  for (size_t i = 0; i < list.words.size(); i += 2) {
    const uint64_t value = list.words[i + 1];
    switch (list.words[i]) {
      case CL_CONTEXT_PLATFORM:
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the list carries the handle as a number.
        *platform = Platform::From(reinterpret_cast<cl_platform_id>(value));
        if (*platform == nullptr) return CL_INVALID_PLATFORM;
        break;
      case CL_CONTEXT_INTEROP_USER_SYNC:
        if (value != CL_TRUE && value != CL_FALSE) return CL_INVALID_PROPERTY;
        break;
      case CL_CONTEXT_TERMINATE_KHR:
        if (value != CL_TRUE && value != CL_FALSE) return CL_INVALID_PROPERTY;
        break;
      case CL_CONTEXT_MEMORY_INITIALIZE_KHR:
        if ((value & ~kMemoryInitializeBits) != 0) return CL_INVALID_PROPERTY;
        break;
      default:
        if (!IsInteropProperty(list.words[i])) return unknown_name;
        break;
    }
  }
  return list.HasDuplicates() ? CL_INVALID_PROPERTY : CL_SUCCESS;
}

Context::Context(std::shared_ptr<Session> session, Platform* platform,
                 std::vector<Ref<Device>> devices, PropertyList properties, Notify notify,
                 void* user_data)
    : ClObject(session->NextId()),
      session_(std::move(session)),
      platform_(platform),
      devices_(std::move(devices)),
      properties_(std::move(properties)),
      notify_(notify),
      user_data_(user_data) {
  for (const Ref<Device>& device : devices_) device_pointers_.push_back(device.get());
}

void Context::CollectEnded() {
  // While the process ends, a lock may be that of a thread that is no more.
  if (interops_.empty() || session_->forked() || os::OtherThreadsWereEnded()) return;
  stream().Poll();
  stream().AwaitHandled();
}

bool Context::ReleaseByApp() {
  const Ref<Context> keep(this);
  if (app_count() == 1) CollectEnded();
  if (!ReleaseForApp()) return false;
  if (app_count() == 0 && ClientLogs(ClientLogLevel::kInfo)) {
    const CommandStream::Waits waits = stream().waits();
    ClientLog(ClientLogLevel::kInfo,
              absl::StrCat("so far calls waited ", waits.answers, " times for answers and ",
                           waits.commands, " times for commands, ", waits.ns / 1000, " us in all"));
  }
  if (has_interop() && app_count() == 0 && !session_->forked() &&
      !ends_soon_.exchange(true, std::memory_order_relaxed)) {
    stream().AddEager();
  }
  return true;
}

Context::~Context() {
  if (ends_soon_.load(std::memory_order_relaxed) && !session_->forked()) stream().DropEager();
  if (!made_) return;
  session_->UnregisterObject(id());
  interops_.clear();  // Before anybody can be told that the context has gone.
  session_->ReleaseObject(id());
  if (is_terminatable() && !session_->lost()) platform_->endpoint().KeepSession(session_);
}

bool Context::is_terminatable() const { return IsTerminatable(properties_); }

void Context::SetPlacement(const pb::ContextPlacement& placement, bool is_local) {
  buffers_in_heap_ = is_local && placement.buffers_in_heap();
  overtakes_ = placement.overtakes();
  images_of_imports_ = placement.images_of_imports();
  creates_unasked_.store(placement.takes_unasked(), std::memory_order_relaxed);
  for (const pb::SupportedImageFormats& one : placement.image_formats())
    image_formats_[{one.flags(), one.image_type()}] = one.formats();
  made_ = true;
  session_->RegisterObject(this, &listener_);
}

bool Context::HasDevice(const Device* device) const {
  return std::find(device_pointers_.begin(), device_pointers_.end(), device) !=
         device_pointers_.end();
}

bool Context::supports_images() const {
  return std::any_of(device_pointers_.begin(), device_pointers_.end(),
                     [](const Device* device) { return device->image_support(); });
}

void Context::SetDefaultDeviceQueue(const Device* device, uint64_t queue_id) {
  absl::MutexLock lock(&mu_);
  default_queues_[device] = queue_id;
}

Ref<Queue> Context::DefaultDeviceQueue(const Device* device) {
  uint64_t queue_id;
  {
    absl::MutexLock lock(&mu_);
    const auto it = default_queues_.find(device);
    if (it == default_queues_.end()) return nullptr;
    queue_id = it->second;
  }
  Ref<Object> queue = session_->FindObject(queue_id, ObjectKind::kQueue);
  return Ref<Queue>::Adopt(static_cast<Queue*>(queue.Detach()));
}

bool Context::HasMade(const std::string& kind) const {
  absl::MutexLock lock(&mu_);
  return made_kinds_.contains(kind);
}

cl_int Context::Create(pb::Command& command, std::string_view payload, const Creation& creation,
                       pb::Answer* answer) {
  CreationLease& lease = session_->creation_lease();
  const bool known = creation.kind.empty() || HasMade(creation.kind);
  if (known && !creation.needs_answer && creates_unasked_.load(std::memory_order_relaxed) &&
      lease.Take(creation.memory_bytes)) {
    command.set_unasked_for(id());
    return stream().Post(command, payload) ? CL_SUCCESS : session_->lost_code();
  }
  pb::Answer own;
  if (answer == nullptr) answer = &own;
  const CreationLease::Amount taken = lease.Taken();
  CL_RETURN_IF_ERROR(stream().Call(command, payload, answer));
  if (answer->has_lease()) lease.Renew(taken, answer->lease());
  absl::MutexLock lock(&mu_);
  if (!creation.kind.empty()) made_kinds_.insert(creation.kind);
  return CL_SUCCESS;
}

const std::string* Context::ImageFormats(cl_mem_flags flags, cl_mem_object_type type) const {
  const auto it = image_formats_.find({flags, type});
  return it == image_formats_.end() ? nullptr : &it->second;
}

void Context::AddInterop(sharing::Api api, std::shared_ptr<void> interop) {
  interops_.emplace_back(api, std::move(interop));
}

void* Context::Interop(sharing::Api api) const {
  for (const auto& [one, interop] : interops_) {
    if (one == api) return interop.get();
  }
  return nullptr;
}

std::shared_ptr<ContextAttachment> Context::Attachment(
    std::shared_ptr<ContextAttachment> (*make)()) const {
  absl::MutexLock lock(&mu_);
  if (attachment_ == nullptr) attachment_ = make();
  return attachment_;
}

void Context::Listener::OnSessionLost(const std::string& message) {
  std::shared_ptr<ContextAttachment> attachment;
  {
    absl::MutexLock lock(&context_.mu_);
    attachment = context_.attachment_;
  }
  if (attachment != nullptr) attachment->OnSessionLost();
  context_.QueueNotify(message, {});
}

void Context::Listener::OnCreationFailed(const std::string& call, cl_int status) {
  context_.creates_unasked_.store(false, std::memory_order_relaxed);
  const std::string message =
      absl::StrCat("cl", call, " was refused with ", status,
                   " after it had returned: commands that use its object fail with that code");
  ClientLog(ClientLogLevel::kWarning, message);
  context_.QueueNotify(message, {});
}

void Context::QueueNotify(std::string message, std::string private_info) {
  if (notify_ == nullptr) return;
  session_->callbacks().Add([notify = notify_, user_data = user_data_, message = std::move(message),
                             info = std::move(private_info)] {
    notify(message.c_str(), info.empty() ? nullptr : info.data(), info.size(), user_data);
  });
}

namespace api {

cl_context CL_API_CALL clCreateContext(const cl_context_properties* properties, cl_uint num_devices,
                                       const cl_device_id* devices, Context::Notify pfn_notify,
                                       void* user_data, cl_int* errcode_ret) noexcept {
  if (devices == nullptr || num_devices == 0) return Fail(errcode_ret, CL_INVALID_VALUE);
  if (pfn_notify == nullptr && user_data != nullptr) return Fail(errcode_ret, CL_INVALID_VALUE);
  PropertyList list;
  if (!ReadProperties(properties, &list)) return Fail(errcode_ret, CL_INVALID_PROPERTY);
  Ref<Context> context;
  const cl_int status = Create(list, num_devices, devices, pfn_notify, user_data, &context);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return context.Detach()->handle();
}

cl_context CL_API_CALL clCreateContextFromType(const cl_context_properties* properties,
                                               cl_device_type device_type,
                                               Context::Notify pfn_notify, void* user_data,
                                               cl_int* errcode_ret) noexcept {
  if (pfn_notify == nullptr && user_data != nullptr) return Fail(errcode_ret, CL_INVALID_VALUE);
  PropertyList list;
  if (!ReadProperties(properties, &list)) return Fail(errcode_ret, CL_INVALID_PROPERTY);
  Platform* platform = nullptr;
  cl_int status = CheckContextProperties(list, CL_INVALID_PROPERTY, &platform);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  if (platform == nullptr) platform = DefaultPlatform();
  if (platform == nullptr) return Fail(errcode_ret, CL_INVALID_PLATFORM);
  cl_uint count = 0;
  status = api::clGetDeviceIDs(platform->handle(), device_type, 0, nullptr, &count);
  std::vector<cl_device_id> devices(count);
  if (status == CL_SUCCESS) {
    status = api::clGetDeviceIDs(platform->handle(), device_type, count, devices.data(), nullptr);
  }
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  return api::clCreateContext(properties, count, devices.data(), pfn_notify, user_data,
                              errcode_ret);
}

// cl_khr_terminate_context (section 9.12): CL_INVALID_OPERATION if context was not created with
// CL_CONTEXT_TERMINATE_KHR set to CL_TRUE; CL_CONTEXT_TERMINATED_KHR if it has already been
// terminated. Its commands have failed on return; its worker ends by itself at the end of the
// channel, and if it does not, by the daemon.
cl_int CL_API_CALL clTerminateContextKHR(cl_context handle) noexcept {
  Context* context = Context::From(handle);
  if (context == nullptr) return CL_INVALID_CONTEXT;
  if (!context->is_terminatable()) return CL_INVALID_OPERATION;
  if (!context->session().Terminate()) return CL_CONTEXT_TERMINATED_KHR;
  context->platform()->endpoint().CloseSession(context->session());
  return CL_SUCCESS;
}

cl_int CL_API_CALL clRetainContext(cl_context context) noexcept {
  return RetainHandle<Context>(context, CL_INVALID_CONTEXT);
}

cl_int CL_API_CALL clReleaseContext(cl_context handle) noexcept {
  Context* context = Context::From(handle);
  if (context == nullptr) return CL_INVALID_CONTEXT;
  const bool has_interop = context->has_interop();
  if (!context->ReleaseByApp()) return CL_INVALID_CONTEXT;
  if (has_interop) PendingReleases::Await();
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetContextInfo(cl_context handle, cl_context_info param_name,
                                    size_t param_value_size, void* param_value,
                                    size_t* param_value_size_ret) noexcept {
  Context* context = Context::From(handle);
  if (context == nullptr) return CL_INVALID_CONTEXT;
  const InfoSink sink(param_value_size, param_value, param_value_size_ret);
  switch (param_name) {
    case CL_CONTEXT_REFERENCE_COUNT:
      return sink.Value<cl_uint>(context->app_count());
    case CL_CONTEXT_NUM_DEVICES:
      return sink.Value<cl_uint>(static_cast<cl_uint>(context->devices().size()));
    case CL_CONTEXT_DEVICES: {
      std::vector<cl_device_id> handles;
      for (Device* device : context->devices()) handles.push_back(device->handle());
      return sink.Array(handles);
    }
    case CL_CONTEXT_PROPERTIES:
      return sink.Array(context->properties().WithTerminator());
    default:
      if (const std::optional<cl_int> answer = GetInteropInfo(param_name, sink)) return *answer;
      return WireInfo(context->session(), {pb::GetInfo::CONTEXT, context->id(), param_name}, sink);
  }
}

cl_int CL_API_CALL clSetContextDestructorCallback(cl_context handle,
                                                  void(CL_CALLBACK* pfn_notify)(cl_context context,
                                                                                void* user_data),
                                                  void* user_data) noexcept {
  Context* context = Context::From(handle);
  if (context == nullptr) return CL_INVALID_CONTEXT;
  if (pfn_notify == nullptr) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(context->session().callbacks().Ready());
  context->session().AddDestructorCallback(
      context->id(), [pfn_notify, handle, user_data] { pfn_notify(handle, user_data); });
  return CL_SUCCESS;
}

}  // namespace api
}  // namespace sluice::client
