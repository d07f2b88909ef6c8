// SPDX-License-Identifier: Apache-2.0
// Memory objects in memory of the client's. A device that works in the host's memory (a CPU) is
// given a mapping of it; any other refuses, and the client stages.
//
// The client still holds the memory and may change its bytes at any time: they are data, never
// structure. It cannot take them away: only memory that cannot shrink is mapped.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/foreign_memory.h"
#include "broker/os/shared_memory.h"
#include "daemon/handlers/handlers.h"
#include "daemon/host_memory.h"
#include "daemon/session.h"
#include "proto/codec.h"
#include "proto/image_format.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

HandlerResult Refuse(Call& call, absl::string_view reason) {
  call.answer.set_refusal(std::string(reason));
  return CL_INVALID_OPERATION;
}

// Drivers want buffers aligned as sub-buffers are.
bool IsAligned(const ContextObject& context, uint64_t offset) {
  for (const auto& device : context.devices) {
    cl_uint bits = 0;
    cl().clGetDeviceInfo(device->handle, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits,
                         nullptr);
    if (bits >= 8 && offset % (bits / 8) != 0) return false;
  }
  return true;
}

// All of the memory up to the object's end, verified and mapped. The descriptor is not needed after
// that.
absl::StatusOr<SharedMapping> MapImported(int fd, const pb::ImportedMemory& where, uint64_t bytes) {
  ASSIGN_OR_RETURN(const ForeignMemory memory, DescribeForeignMemory(fd));
  if (!memory.mappable()) {
    return absl::FailedPreconditionError(
        "the memory is not sealed: it could shrink under the device");
  }
  if (where.writable() && !memory.writable)
    return absl::FailedPreconditionError("the memory cannot be written");
  RETURN_IF_ERROR(CheckLayout({.offset = where.offset(), .row_bytes = bytes}, memory.size_bytes));
  return SharedMapping::Map(fd, where.offset() + bytes, where.writable());
}

void CL_CALLBACK Unmap(cl_mem, void* mapping) { delete static_cast<SharedMapping*>(mapping); }

// The driver has made `memory` in the mapping: it goes when the driver has destroyed the object,
// which commands in flight postpone.
cl_int LeaveMappingToDriver(SharedMapping mapping, MemoryObject* memory) {
  auto drivers = std::make_unique<SharedMapping>(std::move(mapping));
  const cl_int status =
      cl().clSetMemObjectDestructorCallback(memory->handle.get(), &Unmap, drivers.get());
  if (status != CL_SUCCESS) {
    memory->handle.reset();
    return status;
  }
  (void)drivers.release();
  return CL_SUCCESS;
}

cl_mem_flags HostFlags(uint64_t flags) {
  constexpr cl_mem_flags kOthers = CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  return (flags & ~kOthers) | CL_MEM_USE_HOST_PTR;
}

cl_int Charge(Session& session, uint64_t bytes, MemoryObject* memory) {
  if (!session.quota().ChargeMemory(bytes)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  memory->session = &session;
  memory->charged_bytes = bytes;
  memory->size = bytes;
  return CL_SUCCESS;
}

// The driver's image in the mapping, if it lies there as the client says.
cl_int MakeImage(const pb::CreateImportedImage& cmd, const ImageLayout& layout, uint8_t* host,
                 MemoryObject* memory) {
  const cl_image_format format = DecodeImageFormat(cmd.format());
  cl_image_desc desc = DecodeImageDesc(cmd.desc());
  desc.image_row_pitch = layout.row_pitch;
  desc.image_slice_pitch = 0;
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreateImage(memory->context->handle.get(), HostFlags(cmd.flags()),
                                          &format, &desc, host, &status));
  if (status != CL_SUCCESS) return status;
  size_t row_pitch = 0;
  cl().clGetImageInfo(memory->handle.get(), CL_IMAGE_ROW_PITCH, sizeof(row_pitch), &row_pitch,
                      nullptr);
  cl().clGetImageInfo(memory->handle.get(), CL_IMAGE_ELEMENT_SIZE, sizeof(memory->element_size),
                      &memory->element_size, nullptr);
  if (row_pitch == layout.row_pitch && memory->element_size == layout.element_bytes)
    return CL_SUCCESS;
  memory->handle.reset();
  return CL_INVALID_OPERATION;
}

}  // namespace

HandlerResult HandleCreateImportedBuffer(Session& session, const pb::CreateImportedBuffer& cmd,
                                         Call& call) {
  absl::StatusOr<UniqueFd> fd = session.imports().Take(cmd.mem_id());
  if (!fd.ok()) return fd.status();
  auto memory = std::make_shared<MemoryObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  if (!memory->context->buffers_in_heap)
    return Refuse(call, "the device does not work in the host's memory");
  if (!IsAligned(*memory->context, cmd.memory().offset()))
    return Refuse(call, "the offset does not suit the device");
  absl::StatusOr<SharedMapping> mapping = MapImported(fd->get(), cmd.memory(), cmd.size());
  if (!mapping.ok()) return Refuse(call, mapping.status().message());
  memory->id = cmd.mem_id();
  if (const cl_int status = Charge(session, cmd.size(), memory.get()); status != CL_SUCCESS)
    return status;
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreateBuffer(memory->context->handle.get(), HostFlags(cmd.flags()),
                                           cmd.size(), mapping->data() + cmd.memory().offset(),
                                           &status));
  if (status == CL_SUCCESS) status = LeaveMappingToDriver(*std::move(mapping), memory.get());
  if (status != CL_SUCCESS) return status;
  memory->CountIn(&session.imported_count);
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleCreateImportedImage(Session& session, const pb::CreateImportedImage& cmd,
                                        Call& call) {
  absl::StatusOr<UniqueFd> fd = session.imports().Take(cmd.mem_id());
  if (!fd.ok()) return fd.status();
  auto memory = std::make_shared<MemoryObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  if (cmd.desc().parent_id() != 0) return CL_INVALID_IMAGE_DESCRIPTOR;
  const cl_image_desc desc = DecodeImageDesc(cmd.desc());
  ImageLayout layout;
  if (!LayOutImage(desc, ElementBytes(DecodeImageFormat(cmd.format())), cmd.memory().row_pitch(),
                   &layout)) {
    return Refuse(call, "no layout that the device could use");
  }
  if (!ImagesWorkInHostMemory(memory->context.get(), desc.image_type))
    return Refuse(call, "the device does not work in the host's memory");
  if (!IsAligned(*memory->context, cmd.memory().offset()))
    return Refuse(call, "the offset does not suit the device");
  absl::StatusOr<SharedMapping> mapping = MapImported(fd->get(), cmd.memory(), layout.bytes);
  if (!mapping.ok()) return Refuse(call, mapping.status().message());
  memory->id = cmd.mem_id();
  memory->is_image = true;
  memory->image_type = desc.image_type;
  if (const cl_int status = Charge(session, layout.bytes, memory.get()); status != CL_SUCCESS)
    return status;
  memory->size = layout.element_bytes * layout.extent.v[0] * layout.extent.v[1] *
                 layout.extent.v[2];  // Packed: no more than layout.bytes.
  memory->layout.extent = layout.extent;
  cl_int status = MakeImage(cmd, layout, mapping->data() + cmd.memory().offset(), memory.get());
  if (status == CL_INVALID_OPERATION) return Refuse(call, "the driver lays images out otherwise");
  if (status == CL_SUCCESS) status = LeaveMappingToDriver(*std::move(mapping), memory.get());
  if (status != CL_SUCCESS) return status;
  memory->CountIn(&session.imported_count);
  return session.Add(cmd.mem_id(), std::move(memory));
}

}  // namespace sluice
