// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/device.h"

#include <algorithm>
#include <utility>

#include "client_icd/base/api.h"
#include "client_icd/base/args.h"
#include "client_icd/objects/endpoint.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/objects/platform.h"
#include "client_icd/session/session.h"

namespace sluice::client {
namespace {

constexpr cl_device_type kKnownTypes = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU |
                                       CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR |
                                       CL_DEVICE_TYPE_CUSTOM;
// CL_DEVICE_TERMINATE_CAPABILITY_KHR as the OpenCL 1.2 extension's header had it: clinfo still
// asks.
constexpr cl_device_info kTerminateCapabilityOf12 = 0x200F;
// CL_DEVICE_TERMINATE_CAPABILITY_CONTEXT_KHR.
constexpr cl_bitfield kTerminateContext = 1;
// More properties than any partition scheme has.
constexpr size_t kMaxPartitionProperties = 4096;

std::vector<size_t> WorkItemSizes(const InfoTable& info) {
  const std::string* bytes = info.Find(CL_DEVICE_MAX_WORK_ITEM_SIZES);
  if (bytes == nullptr) return {};
  std::vector<size_t> sizes(bytes->size() / sizeof(size_t));
  bytes->copy(reinterpret_cast<char*>(sizes.data()), sizes.size() * sizeof(size_t));
  return sizes;
}

}  // namespace

InfoTable::InfoTable(const google::protobuf::RepeatedPtrField<pb::InfoValue>& values) {
  for (const pb::InfoValue& value : values)
    values_[value.param_name()] = {value.status(), value.value()};
}

cl_int InfoTable::Answer(cl_uint param_name, const InfoSink& sink) const {
  const auto it = values_.find(param_name);
  if (it == values_.end()) return CL_INVALID_VALUE;
  if (it->second.status != CL_SUCCESS) return it->second.status;
  return sink.Bytes(it->second.bytes.data(), it->second.bytes.size());
}

void InfoTable::Zero(cl_uint param_name) {
  const auto it = values_.find(param_name);
  if (it != values_.end()) std::fill(it->second.bytes.begin(), it->second.bytes.end(), '\0');
}

const std::string* InfoTable::Find(cl_uint param_name) const {
  const auto it = values_.find(param_name);
  return it == values_.end() || it->second.status != CL_SUCCESS ? nullptr : &it->second.bytes;
}

std::string_view InfoTable::Text(cl_uint param_name) const {
  const std::string* value = Find(param_name);
  if (value == nullptr) return {};
  const size_t end = value->find('\0');
  return std::string_view(*value).substr(0, end);
}

bool InfoTable::HasWord(cl_uint param_name, std::string_view word) const {
  return HasExtensionWord(Text(param_name), word);
}

Device::Device(Platform* platform, uint64_t id, uint64_t key, InfoTable info)
    : ClObject(id),
      platform_(platform),
      key_(key),
      info_(std::move(info)),
      type_(info_.Scalar<cl_device_type>(CL_DEVICE_TYPE, 0)),
      max_work_group_size_(info_.Scalar<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE, 1)),
      max_work_item_dimensions_(info_.Scalar<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 3)),
      max_work_item_sizes_(WorkItemSizes(info_)),
      image_support_(info_.Scalar<cl_bool>(CL_DEVICE_IMAGE_SUPPORT, CL_FALSE) != CL_FALSE) {}

Device::Device(Ref<Device> parent, std::shared_ptr<Session> session, uint64_t id, InfoTable info,
               std::vector<cl_device_partition_property> partition)
    : ClObject(id),
      platform_(parent->platform()),
      parent_(std::move(parent)),
      session_(std::move(session)),
      partition_(std::move(partition)),
      info_(std::move(info)),
      type_(info_.Scalar<cl_device_type>(CL_DEVICE_TYPE, 0)),
      max_work_group_size_(info_.Scalar<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE, 1)),
      max_work_item_dimensions_(info_.Scalar<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 3)),
      max_work_item_sizes_(WorkItemSizes(info_)),
      image_support_(info_.Scalar<cl_bool>(CL_DEVICE_IMAGE_SUPPORT, CL_FALSE) != CL_FALSE) {}

Device::~Device() {
  if (session_ != nullptr) session_->ReleaseObject(id());
}

// Section 4.2: a device is available if it can be expected to execute commands. A sub-device goes
// with its session; any other is where a new session finds it, once one was lost.
cl_bool Device::IsAvailable() const {
  const cl_bool described = info_.Scalar<cl_bool>(CL_DEVICE_AVAILABLE, CL_TRUE);
  if (!is_root()) return session_->lost() ? CL_FALSE : described;
  if (!platform_->endpoint().ever_lost()) return described;
  const absl::StatusOr<std::shared_ptr<Session>> session =
      platform_->endpoint().GetSession(Endpoint::Sharing::kMay);
  cl_bool available = CL_FALSE;
  if (session.ok()) {
    const InfoSink sink(sizeof(available), &available, nullptr);
    WireInfo(**session, {pb::GetInfo::DEVICE, id(), CL_DEVICE_AVAILABLE}, sink);
  }
  return available;
}

std::vector<const char*> Device::OwnExtensions() const {
  const bool shares_resources = platform_ != nullptr && platform_->shares_resources();
  return OwnDeviceExtensions(shares_resources, info_.Text(CL_DEVICE_EXTENSIONS));
}

bool Device::HasExtension(std::string_view name) const {
  if (info_.HasWord(CL_DEVICE_EXTENSIONS, name)) return true;
  const std::vector<const char*> own = OwnExtensions();
  return std::find(own.begin(), own.end(), name) != own.end();
}

cl_int Device::GetInfo(cl_device_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_DEVICE_PLATFORM:
      return sink.Value<cl_platform_id>(platform_->handle());
    case CL_DEVICE_PARENT_DEVICE:
      return sink.Value<cl_device_id>(parent_ ? parent_->handle() : nullptr);
    case CL_DEVICE_REFERENCE_COUNT:
      return sink.Value<cl_uint>(is_root() ? 1 : app_count());
    case CL_DEVICE_TERMINATE_CAPABILITY_KHR:
    case kTerminateCapabilityOf12:
      if (!HasExtension("cl_khr_terminate_context")) break;
      return sink.Value<cl_bitfield>(can_terminate() ? kTerminateContext : 0);
    case CL_DEVICE_AVAILABLE:
      return sink.Value<cl_bool>(IsAvailable());
    case CL_DEVICE_PARTITION_TYPE:
      if (!is_root()) return sink.Array(partition_);
      break;
    case CL_DEVICE_EXTENSIONS:
      return sink.String(WithExtensions(OwnExtensions(), info_.Text(param_name)));
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
      // A device before OpenCL 3.0 has no such query.
      if (const std::string* bytes = info_.Find(param_name))
        return sink.Array(WithExtensionVersions(OwnExtensions(), *bytes));
      break;
    default:
      break;
  }
  const cl_int status = info_.Answer(param_name, sink);
  if (status != CL_INVALID_VALUE || is_root() || info_.Find(param_name) != nullptr) return status;
  return WireInfo(*session_, {pb::GetInfo::DEVICE, id(), param_name}, sink);
}

namespace {

// A running session that knows the device.
cl_int SessionOf(const Device& device, std::shared_ptr<Session>* session) {
  if (!device.is_root()) {
    *session = device.session();
    return (*session)->lost() ? (*session)->lost_code() : CL_SUCCESS;
  }
  absl::StatusOr<std::shared_ptr<Session>> opened = device.platform()->endpoint().GetSession();
  if (!opened.ok()) return ToClError(opened.status());
  *session = *std::move(opened);
  return CL_SUCCESS;
}

bool ReadPartition(const cl_device_partition_property* properties,
                   std::vector<cl_device_partition_property>* out) {
  if (properties == nullptr || properties[0] == 0) return false;
  // By counts is a list within the list, which ends with a 0 of its own before the list's.
  const bool by_counts = properties[0] == CL_DEVICE_PARTITION_BY_COUNTS;
  for (size_t i = 0; i < kMaxPartitionProperties; ++i) {
    out->push_back(properties[i]);
    if (properties[i] != 0) continue;
    if (by_counts) out->push_back(0);
    return true;
  }
  return false;
}

// A query of timers that lacks a place for the time. Section 4.3: CL_INVALID_VALUE; but also
// CL_INVALID_OPERATION if the platform has no such timers, which drivers look at first.
cl_int RefuseTimer(const Device& device) {
  const InfoTable& info = device.platform()->info();
  const bool has_timer = info.Scalar<cl_ulong>(CL_PLATFORM_HOST_TIMER_RESOLUTION, 0) != 0;
  return has_timer ? CL_INVALID_VALUE : CL_INVALID_OPERATION;
}

cl_int CreateSubDevices(Device* parent, const cl_device_partition_property* properties,
                        cl_uint num_devices, cl_device_id* devices, cl_uint* num_devices_ret) {
  std::vector<cl_device_partition_property> partition;
  if (!ReadPartition(properties, &partition)) return CL_INVALID_VALUE;
  if (devices != nullptr && num_devices == 0) return CL_INVALID_VALUE;
  std::shared_ptr<Session> session;
  CL_RETURN_IF_ERROR(SessionOf(*parent, &session));
  const uint64_t room = devices == nullptr ? 0 : num_devices;
  const uint64_t first_id = session->NextIds(room);
  ScopedCommand command;
  pb::CreateSubDevices& body = *command->mutable_create_sub_devices();
  body.set_device_id(parent->id());
  for (const cl_device_partition_property property : partition)
    body.add_properties(static_cast<uint64_t>(property));
  body.set_first_id(first_id);
  body.set_max_devices(static_cast<uint32_t>(room));
  pb::Answer answer;
  CL_RETURN_IF_ERROR(OfKnownDevice(session->stream().Call(*command, {}, &answer)));
  if (num_devices_ret != nullptr) *num_devices_ret = static_cast<cl_uint>(answer.count());
  if (devices == nullptr) return CL_SUCCESS;
  if (static_cast<uint64_t>(answer.devices_size()) > room) {
    session->Lose("more sub-devices than were asked for");
    return CL_DEVICE_NOT_AVAILABLE;
  }
  for (int i = 0; i < answer.devices_size(); ++i) {
    InfoTable info(answer.devices(i).info());
    if (!session->transport().shares_memory()) info.Zero(CL_DEVICE_SVM_CAPABILITIES);
    devices[i] =
        (new Device(Ref<Device>(parent), session, first_id + i, std::move(info), partition))
            ->handle();
  }
  return CL_SUCCESS;
}

}  // namespace

cl_int ReadDevices(cl_uint count, const cl_device_id* list, std::span<Device* const> allowed,
                   Uint64List* ids) {
  if ((count == 0) != (list == nullptr)) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    const Device* device = Device::From(list[i]);
    if (device == nullptr) return CL_INVALID_DEVICE;
    bool found = false;
    for (const Device* one : allowed) found = found || one == device;
    if (!found) return CL_INVALID_DEVICE;
    ids->Add(device->id());
  }
  return CL_SUCCESS;
}

namespace api {

// CL_DEVICE_TYPE_ALL is every device but custom ones; CL_DEVICE_TYPE_DEFAULT is the first where no
// driver names one.
cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id handle, cl_device_type device_type,
                                  cl_uint num_entries, cl_device_id* devices,
                                  cl_uint* num_devices) noexcept {
  const Platform* platform = Platform::From(handle);
  if (platform == nullptr) return CL_INVALID_PLATFORM;
  if (device_type != CL_DEVICE_TYPE_ALL &&
      (device_type == 0 || (device_type & ~kKnownTypes) != 0)) {
    return CL_INVALID_DEVICE_TYPE;
  }
  if ((num_entries == 0 && devices != nullptr) || (devices == nullptr && num_devices == nullptr)) {
    return CL_INVALID_VALUE;
  }
  std::vector<Device*> found;
  for (Device* device : platform->devices()) {
    const bool wanted = device_type == CL_DEVICE_TYPE_ALL
                            ? (device->type() & CL_DEVICE_TYPE_CUSTOM) == 0
                            : (device->type() & device_type) != 0;
    if (wanted) found.push_back(device);
    if (wanted && device_type == CL_DEVICE_TYPE_DEFAULT) break;
  }
  if (found.empty() && (device_type & CL_DEVICE_TYPE_DEFAULT) != 0 &&
      !platform->devices().empty()) {
    found.push_back(platform->devices().front());
  }
  if (num_devices != nullptr) *num_devices = static_cast<cl_uint>(found.size());
  if (found.empty()) return CL_DEVICE_NOT_FOUND;
  for (size_t i = 0; devices != nullptr && i < found.size() && i < num_entries; ++i)
    devices[i] = found[i]->handle();
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetDeviceInfo(cl_device_id handle, cl_device_info param_name,
                                   size_t param_value_size, void* param_value,
                                   size_t* param_value_size_ret) noexcept {
  Device* device = Device::From(handle);
  if (device == nullptr) return CL_INVALID_DEVICE;
  return device->GetInfo(param_name, InfoSink(param_value_size, param_value, param_value_size_ret));
}

// Root devices are not counted (section 4.3).
cl_int CL_API_CALL clRetainDevice(cl_device_id handle) noexcept {
  Device* device = Device::From(handle);
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (!device->is_root()) device->RetainForApp();
  return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseDevice(cl_device_id handle) noexcept {
  Device* device = Device::From(handle);
  if (device == nullptr) return CL_INVALID_DEVICE;
  return device->is_root() || device->ReleaseForApp() ? CL_SUCCESS : CL_INVALID_DEVICE;
}

cl_int CL_API_CALL clCreateSubDevices(cl_device_id handle,
                                      const cl_device_partition_property* properties,
                                      cl_uint num_devices, cl_device_id* devices,
                                      cl_uint* num_devices_ret) noexcept {
  Device* parent = Device::From(handle);
  if (parent == nullptr) return CL_INVALID_DEVICE;
  return CreateSubDevices(parent, properties, num_devices, devices, num_devices_ret);
}

cl_int CL_API_CALL clGetDeviceAndHostTimer(cl_device_id handle, cl_ulong* device_timestamp,
                                           cl_ulong* host_timestamp) noexcept {
  const Device* device = Device::From(handle);
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (device_timestamp == nullptr || host_timestamp == nullptr) return RefuseTimer(*device);
  std::shared_ptr<Session> session;
  CL_RETURN_IF_ERROR(SessionOf(*device, &session));
  ScopedCommand command;
  command->mutable_get_device_and_host_timer()->set_device_id(device->id());
  pb::Answer answer;
  CL_RETURN_IF_ERROR(OfKnownDevice(session->stream().Call(*command, {}, &answer)));
  cl_ulong times[2];
  if (answer.data().size() != sizeof(times)) return CL_OUT_OF_RESOURCES;
  answer.data().copy(reinterpret_cast<char*>(times), sizeof(times));
  *device_timestamp = times[0];
  *host_timestamp = times[1];
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetHostTimer(cl_device_id handle, cl_ulong* host_timestamp) noexcept {
  const Device* device = Device::From(handle);
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (host_timestamp == nullptr) return RefuseTimer(*device);
  std::shared_ptr<Session> session;
  CL_RETURN_IF_ERROR(SessionOf(*device, &session));
  ScopedCommand command;
  command->mutable_get_host_timer()->set_device_id(device->id());
  pb::Answer answer;
  CL_RETURN_IF_ERROR(OfKnownDevice(session->stream().Call(*command, {}, &answer)));
  if (answer.data().size() != sizeof(*host_timestamp)) return CL_OUT_OF_RESOURCES;
  answer.data().copy(reinterpret_cast<char*>(host_timestamp), sizeof(*host_timestamp));
  return CL_SUCCESS;
}

}  // namespace api
}  // namespace sluice::client
