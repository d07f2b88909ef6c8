// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/shadows.h"

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/worker/memory/change_of_hands.h"
#include "daemon/worker/memory/opaque_memory.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

// More than the largest vector type needs, and what drivers ask of memory that it works in.
constexpr uintptr_t kHostAlignment = 128;

// The devices that were opened, by the UUID that was asked for; none for the one on the CPU. A
// device that could not be opened is not tried again for every object that the client shares:
// drivers take long to say so, and do not change while the process lives.
absl::StatusOr<std::shared_ptr<os::ExternalMemoryDevice>> DeviceFor(
    const std::optional<os::DeviceUuid>& uuid) {
  struct Opened {
    absl::Mutex mu;
    std::map<std::optional<os::DeviceUuid>,
             absl::StatusOr<std::shared_ptr<os::ExternalMemoryDevice>>>
        devices ABSL_GUARDED_BY(mu);
  };
  static Opened& opened = *new Opened;  // Drivers are never closed.
  absl::MutexLock lock(&opened.mu);
  const auto known = opened.devices.find(uuid);
  if (known != opened.devices.end()) return known->second;
  return opened.devices.emplace(uuid, os::ExternalMemoryDevice::Open(uuid)).first->second;
}

// Commands in flight use the memory beyond the client's release: the driver says when it is done.
void CL_CALLBACK ReleaseAllocation(cl_mem, void* data) {
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

}  // namespace

absl::Status MakeShadowBuffer(cl_mem_flags flags, MemoryObject* memory) {
  const ContextObject& context = *memory->context;
  auto shadow = std::make_shared<ShadowBuffer>();
  if (context.buffers_in_heap) {
    ASSIGN_OR_RETURN(shadow->device, DeviceFor(std::nullopt));
    ASSIGN_OR_RETURN(shadow->memory,
                     shadow->device->AllocateBuffer(memory->size, os::ExternalHandle::kOpaqueFd));
    RETURN_IF_ERROR(MakeOnHostMemory(flags, memory, shadow.get()));
    memory->hands = std::make_shared<ChangeOfHands>();
  } else {
    ASSIGN_OR_RETURN(const OpaqueImporter importer, FindOpaqueImporter(context));
    ASSIGN_OR_RETURN(shadow->device, DeviceFor(importer.device_uuid));
    ASSIGN_OR_RETURN(shadow->memory,
                     shadow->device->AllocateBuffer(memory->size, os::ExternalHandle::kOpaqueFd));
    ASSIGN_OR_RETURN(os::UniqueFd fd, shadow->memory->Export());
    RETURN_IF_ERROR(ImportOpaque(importer, std::move(fd), flags, memory));
  }
  memory->placement = InShadow{shadow};
  auto kept = std::make_unique<std::shared_ptr<const ShadowBuffer>>(std::move(shadow));
  if (cl().clSetMemObjectDestructorCallback(memory->handle.get(), &ReleaseAllocation, kept.get()) ==
      CL_SUCCESS) {
    static_cast<void>(kept.release());
  }
  return absl::OkStatus();
}

}  // namespace sluice::worker
