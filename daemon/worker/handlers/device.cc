// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/info_reader.h"

namespace sluice::worker {
namespace {

uint64_t MostMemory(const Limits& limits) {
  const uint64_t of_account = limits.account_memory_bytes;
  return of_account == 0 ? limits.memory_bytes : std::min(limits.memory_bytes, of_account);
}

}  // namespace

HandlerResult HandleSetDevices(Session& session, const pb::SetDevices& cmd, Call&) {
  absl::flat_hash_map<uint64_t, uint64_t> ids_by_key;
  for (const pb::SetDevices::Entry& entry : cmd.devices()) {
    if (entry.id() == 0) return absl::InvalidArgumentError("device without an id");
    ids_by_key.emplace(entry.key(), entry.id());
  }
  session.SetDevices(ids_by_key);
  return CL_SUCCESS;
}

HandlerResult HandleCreateSubDevices(Session& session, const pb::CreateSubDevices& cmd,
                                     Call& call) {
  auto parent = session.objects().Find<DeviceObject>(cmd.device_id());
  if (parent == nullptr) return CL_INVALID_DEVICE;
  std::vector<cl_device_partition_property> properties(cmd.properties().begin(),
                                                       cmd.properties().end());
  // Enough terminators for whatever stands last: a list of counts has one of its own.
  properties.insert(properties.end(), 3, 0);
  cl_uint count = 0;
  cl_int status = cl().clCreateSubDevices(parent->handle, properties.data(), 0, nullptr, &count);
  if (status != CL_SUCCESS) return status;
  call.answer.set_count(count);
  if (cmd.max_devices() == 0) return CL_SUCCESS;
  // Section 4.3: fewer entries than sub-devices is CL_INVALID_VALUE.
  if (cmd.max_devices() < count) return CL_INVALID_VALUE;
  std::vector<cl_device_id> handles(count);
  status =
      cl().clCreateSubDevices(parent->handle, properties.data(), count, handles.data(), nullptr);
  if (status != CL_SUCCESS) return status;
  for (cl_uint i = 0; i < count; ++i) {
    auto device = std::make_shared<DeviceObject>();
    device->id = cmd.first_id() + i;
    device->handle = handles[i];
    device->sub_device.reset(handles[i]);
    device->platform = parent->platform;
    device->is_cpu = parent->is_cpu;
    device->quirks = parent->quirks;
    ReadDeviceInfo(handles[i], MostMemory(session.options().limits),
                   call.answer.add_devices()->mutable_info());
    if (const cl_int added = session.Add(device->id, device); added != CL_SUCCESS) return added;
  }
  return CL_SUCCESS;
}

HandlerResult HandleGetDeviceAndHostTimer(Session& session, const pb::GetDeviceAndHostTimer& cmd,
                                          Call& call) {
  DeviceObject* const device = session.objects().Peek<DeviceObject>(cmd.device_id());
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (cl().clGetDeviceAndHostTimer == nullptr) return CL_INVALID_OPERATION;
  cl_ulong times[2] = {};
  const cl_int status = cl().clGetDeviceAndHostTimer(device->handle, &times[0], &times[1]);
  if (status == CL_SUCCESS) call.answer.set_data(times, sizeof(times));
  return status;
}

HandlerResult HandleGetHostTimer(Session& session, const pb::GetHostTimer& cmd, Call& call) {
  DeviceObject* const device = session.objects().Peek<DeviceObject>(cmd.device_id());
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (cl().clGetHostTimer == nullptr) return CL_INVALID_OPERATION;
  cl_ulong time = 0;
  const cl_int status = cl().clGetHostTimer(device->handle, &time);
  if (status == CL_SUCCESS) call.answer.set_data(&time, sizeof(time));
  return status;
}

}  // namespace sluice::worker
