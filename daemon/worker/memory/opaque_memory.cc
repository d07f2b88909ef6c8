// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/opaque_memory.h"

#include "absl/strings/str_cat.h"
#include "daemon/worker/memory/external_memory_names.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

absl::StatusOr<os::DeviceUuid> UuidOf(cl_device_id device, cl_device_info which) {
  os::DeviceUuid uuid;
  size_t size = 0;
  const cl_int status = cl().clGetDeviceInfo(device, which, uuid.size(), uuid.data(), &size);
  if (status == CL_SUCCESS && size == uuid.size()) return uuid;
  return absl::UnimplementedError("the driver gives its device no UUID (cl_khr_device_uuid)");
}

}  // namespace

absl::StatusOr<OpaqueImporter> FindOpaqueImporter(const ContextObject& context) {
  if (context.devices.size() != 1)
    return absl::UnimplementedError("the context has several devices");
  if (cl().clCreateBufferWithProperties == nullptr)
    return absl::UnimplementedError("the system's OpenCL is older than 3.0");
  OpaqueImporter importer;
  importer.device = context.devices[0]->handle;
  ASSIGN_OR_RETURN(importer.hands,
                   FindChangeOfHands(*context.devices[0], CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
                                     "cl_khr_external_memory_opaque_fd"));
  ASSIGN_OR_RETURN(importer.device_uuid, UuidOf(importer.device, CL_DEVICE_UUID_KHR));
  // One kernel driver may serve the device to two libraries, each with a UUID of its own.
  if (!context.devices[0]->quirks.has_uuid_of_its_own) {
    ASSIGN_OR_RETURN(importer.driver_uuid, UuidOf(importer.device, CL_DRIVER_UUID_KHR));
  }
  return importer;
}

absl::Status ImportOpaque(const OpaqueImporter& importer, os::UniqueFd fd, cl_mem_flags flags,
                          MemoryObject* memory) {
  const cl_mem_properties properties[] = {
      CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, static_cast<cl_mem_properties>(fd.get()),
      CL_MEM_DEVICE_HANDLE_LIST_KHR,           reinterpret_cast<cl_mem_properties>(importer.device),
      CL_MEM_DEVICE_HANDLE_LIST_END_KHR,       0};
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreateBufferWithProperties(memory->context->handle.get(), properties,
                                                         flags, memory->size, nullptr, &status));
  if (status != CL_SUCCESS)
    return absl::UnavailableError(absl::StrCat("the driver does not import the memory: ", status));
  // The import has taken the descriptor (cl_khr_external_memory_opaque_fd).
  static_cast<void>(fd.release());
  memory->hands = importer.hands;
  return absl::OkStatus();
}

}  // namespace sluice::worker
