// SPDX-License-Identifier: Apache-2.0
#include "daemon/shadows.h"

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/change_of_hands.h"
#include "daemon/zero_fill.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

// More than the largest vector type needs, and what PoCL asks of memory that it works in.
constexpr uintptr_t kHostAlignment = 128;

// The devices that were opened, by the UUID that was asked for; none for the one on the CPU. What
// could not be opened is not tried again for every object that the client shares: drivers take
// long to say so, and do not change while the process lives.
absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>> DeviceFor(
    const std::optional<DeviceUuid>& uuid) {
  struct Opened {
    absl::Mutex mu;
    std::map<std::optional<DeviceUuid>, absl::StatusOr<std::shared_ptr<ExternalMemoryDevice>>>
        devices ABSL_GUARDED_BY(mu);
  };
  static Opened& opened = *new Opened;  // Drivers are never closed.
  absl::MutexLock lock(&opened.mu);
  const auto known = opened.devices.find(uuid);
  if (known != opened.devices.end()) return known->second;
  return opened.devices.emplace(uuid, ExternalMemoryDevice::Open(uuid)).first->second;
}

absl::StatusOr<DeviceUuid> UuidOf(const DeviceObject& device) {
  DeviceUuid uuid;
  size_t size = 0;
  const cl_int status =
      cl().clGetDeviceInfo(device.handle, CL_DEVICE_UUID_KHR, uuid.size(), uuid.data(), &size);
  if (status != CL_SUCCESS || size != uuid.size()) {
    return absl::UnimplementedError("the driver gives its device no UUID (cl_khr_device_uuid)");
  }
  return uuid;
}

// Commands in flight use the memory beyond the client's release: the driver says when it is done.
void CL_CALLBACK LetGo(cl_mem, void* data) {
  delete static_cast<std::shared_ptr<const ShadowBuffer>*>(data);
}

absl::Status MakeOnHostMemory(cl_mem_flags flags, MemoryObject* memory, ShadowBuffer* shadow) {
  uint8_t* const host = shadow->memory->host();
  if (host == nullptr || reinterpret_cast<uintptr_t>(host) % kHostAlignment != 0) {
    return absl::UnimplementedError(
        absl::StrCat(shadow->device->name(), " does not map its memory as OpenCL needs it"));
  }
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreateBuffer(
      memory->context->handle.get(), flags | CL_MEM_USE_HOST_PTR, memory->size, host, &status));
  if (status == CL_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("clCreateBuffer on the memory: ", status));
}

// Another tenant's bytes may be in the memory: nobody gets it before it is zero.
cl_int ZeroImported(const MemoryObject& memory, const ChangeOfHands& hands) {
  const cl_command_queue queue = memory.context->own_queue.get();
  const cl_mem handle = memory.handle.get();
  cl_int status = hands.acquire(queue, 1, &handle, 0, nullptr, nullptr);
  if (status != CL_SUCCESS) return status;
  status = EnqueueZeros(queue, handle, memory.size);
  const cl_int released = hands.release(queue, 1, &handle, 0, nullptr, nullptr);
  const cl_int finished = cl().clFinish(queue);
  return status != CL_SUCCESS ? status : released != CL_SUCCESS ? released : finished;
}

absl::Status MakeByImport(cl_mem_flags flags, const ChangeOfHands& hands, MemoryObject* memory,
                          ShadowBuffer* shadow) {
  const DeviceObject& device = *memory->context->devices[0];
  ASSIGN_OR_RETURN(UniqueFd fd, shadow->memory->Export());
  const cl_mem_properties properties[] = {CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
                                          static_cast<cl_mem_properties>(fd.get()),
                                          CL_DEVICE_HANDLE_LIST_KHR,
                                          reinterpret_cast<cl_mem_properties>(device.handle),
                                          CL_DEVICE_HANDLE_LIST_END_KHR,
                                          0};
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreateBufferWithProperties(memory->context->handle.get(), properties,
                                                         flags, memory->size, nullptr, &status));
  if (status != CL_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("the driver does not import the memory: ", status));
  }
  // The import has taken the descriptor (cl_khr_external_memory_opaque_fd).
  static_cast<void>(fd.release());
  if (status = ZeroImported(*memory, hands); status != CL_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("the imported memory cannot be filled: ", status));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeShadowBuffer(cl_mem_flags flags, MemoryObject* memory) {
  const ContextObject& context = *memory->context;
  auto shadow = std::make_shared<ShadowBuffer>();
  std::shared_ptr<ChangeOfHands> hands = std::make_shared<ChangeOfHands>();
  std::optional<DeviceUuid> uuid;
  if (!context.buffers_in_heap) {
    if (context.devices.size() != 1) {
      return absl::UnimplementedError("the context has several devices");
    }
    if (cl().clCreateBufferWithProperties == nullptr)
      return absl::UnimplementedError("the system's OpenCL is older than 3.0");
    ASSIGN_OR_RETURN(hands,
                     FindChangeOfHands(*context.devices[0], CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
                                       "cl_khr_external_memory_opaque_fd"));
    ASSIGN_OR_RETURN(uuid, UuidOf(*context.devices[0]));
  }
  ASSIGN_OR_RETURN(shadow->device, DeviceFor(uuid));
  ASSIGN_OR_RETURN(shadow->memory,
                   shadow->device->AllocateBuffer(memory->size, ExternalHandle::kOpaqueFd));
  RETURN_IF_ERROR(context.buffers_in_heap ? MakeOnHostMemory(flags, memory, shadow.get())
                                          : MakeByImport(flags, *hands, memory, shadow.get()));
  memory->shadow = shadow;
  memory->hands = std::move(hands);
  auto kept = std::make_unique<std::shared_ptr<const ShadowBuffer>>(std::move(shadow));
  if (cl().clSetMemObjectDestructorCallback(memory->handle.get(), &LetGo, kept.get()) ==
      CL_SUCCESS) {
    static_cast<void>(kept.release());
  }
  return absl::OkStatus();
}

}  // namespace sluice
