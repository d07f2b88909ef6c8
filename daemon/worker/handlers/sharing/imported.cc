// SPDX-License-Identifier: Apache-2.0
// Memory objects in memory of the client's. A device that works in the host's memory (a CPU) is
// given a mapping of it; any other refuses, and the client stages. Or in memory of the device's own
// or a texture, by its handle, which the driver imports.
//
// The client still holds the memory and may change its bytes at any time: they are data, never
// structure. It cannot take them away: only memory that cannot shrink is mapped. Of a handle for
// the driver no more can be checked than what is said here; a driver that believes it, and should
// not, is this client's own.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/foreign_memory.h"
#include "broker/os/graphics_handle.h"
#include "broker/os/shared_memory.h"
#include "broker/os/texture_sharing.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/memory/change_of_hands.h"
#include "daemon/worker/memory/external_memory_names.h"
#include "daemon/worker/memory/host_memory.h"
#include "daemon/worker/memory/opaque_memory.h"
#include "daemon/worker/session.h"
#include "proto/codec.h"
#include "proto/image_format.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

absl::StatusOr<os::AdapterId> AdapterOf(const DeviceObject& device) {
  os::AdapterId id;
  cl_bool valid = CL_FALSE;
  cl().clGetDeviceInfo(device.handle, CL_DEVICE_LUID_VALID_KHR, sizeof(valid), &valid, nullptr);
  if (valid != CL_TRUE || cl().clGetDeviceInfo(device.handle, CL_DEVICE_LUID_KHR, id.size(),
                                               id.data(), nullptr) != CL_SUCCESS)
    return absl::UnimplementedError("the driver gives its device no LUID (cl_khr_device_uuid)");
  return id;
}

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
absl::StatusOr<os::SharedMapping> MapImported(int fd, const pb::ImportedMemory& where,
                                              uint64_t bytes) {
  ASSIGN_OR_RETURN(const os::ForeignMemory memory, os::DescribeForeignMemory(fd));
  if (!memory.mappable()) {
    return absl::FailedPreconditionError(
        "the memory is not sealed: it could shrink under the device");
  }
  if (where.writable() && !memory.writable)
    return absl::FailedPreconditionError("the memory cannot be written");
  RETURN_IF_ERROR(
      os::CheckLayout({.offset = where.offset(), .row_bytes = bytes}, memory.size_bytes));
  return os::SharedMapping::Map(fd, where.offset() + bytes, where.writable());
}

void CL_CALLBACK Unmap(cl_mem, void* mapping) { delete static_cast<os::SharedMapping*>(mapping); }

// The driver has made `memory` in the mapping: it goes when the driver has destroyed the object,
// which commands in flight postpone.
cl_int LeaveMappingToDriver(os::SharedMapping mapping, MemoryObject* memory) {
  auto drivers = std::make_unique<os::SharedMapping>(std::move(mapping));
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
cl_int MakeImage(const pb::CreateImportedImage& cmd, const wire::ImageLayout& layout, uint8_t* host,
                 MemoryObject* memory) {
  const cl_image_format format = wire::DecodeImageFormat(cmd.format());
  cl_image_desc desc = wire::DecodeImageDesc(cmd.desc());
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

// Makes `memory` of the client's texture, with what is done when it changes hands; or says why not.
absl::Status OpenTexture(Session& session, const pb::CreateImportedImage& cmd, int fd,
                         MemoryObject* memory) {
  if (cmd.memory().handle() != pb::IMPORTED_HANDLE_D3D11_TEXTURE)
    return absl::UnimplementedError("a handle of a kind that this worker does not know");
  if (cmd.desc().image_type() != CL_MEM_OBJECT_IMAGE2D || cmd.memory().offset() != 0 ||
      cmd.memory().row_pitch() != 0)
    return absl::InvalidArgumentError("only 2D images are made from textures, of all of them");
  if (memory->context->devices.size() != 1)
    return absl::UnimplementedError("the context has several devices");
  if (cl().clCreateImageWithProperties == nullptr)
    return absl::UnimplementedError("the system's OpenCL is older than 3.0");
  const DeviceObject& device = *memory->context->devices[0];
  ASSIGN_OR_RETURN(const auto hands,
                   FindChangeOfHands(device, CL_EXTERNAL_MEMORY_HANDLE_D3D11_TEXTURE_KHR,
                                     "cl_khr_external_memory_d3d11_texture"));
  ASSIGN_OR_RETURN(const uintptr_t handle, os::GraphicsHandleOf(fd));
  if (cmd.memory().keyed_mutex()) {
    ASSIGN_OR_RETURN(const os::AdapterId adapter, AdapterOf(device));
    ASSIGN_OR_RETURN(hands->mutex, session.options().open_keyed_mutex(fd, adapter));
  }
  // The driver keeps a reference of its own: "importing ... does not transfer ownership of the
  // handle" (NT handles, cl_khr_external_memory).
  const cl_mem_properties properties[] = {CL_EXTERNAL_MEMORY_HANDLE_D3D11_TEXTURE_KHR,
                                          static_cast<cl_mem_properties>(handle),
                                          CL_MEM_DEVICE_HANDLE_LIST_KHR,
                                          reinterpret_cast<cl_mem_properties>(device.handle),
                                          CL_MEM_DEVICE_HANDLE_LIST_END_KHR,
                                          0};
  const cl_image_format format = wire::DecodeImageFormat(cmd.format());
  const cl_image_desc desc = wire::DecodeImageDesc(cmd.desc());
  cl_int status = CL_SUCCESS;
  const cl_mem_flags flags =
      cmd.flags() & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
  memory->handle.reset(cl().clCreateImageWithProperties(memory->context->handle.get(), properties,
                                                        flags, &format, &desc, nullptr, &status));
  if (status != CL_SUCCESS)
    return absl::UnavailableError(absl::StrCat("the driver does not import the texture: ", status));
  memory->hands = hands;
  return absl::OkStatus();
}

HandlerResult ImportTexture(Session& session, const pb::CreateImportedImage& cmd, int fd,
                            std::shared_ptr<MemoryObject> memory, Call& call) {
  const cl_image_desc desc = wire::DecodeImageDesc(cmd.desc());
  const size_t element_bytes = wire::ElementBytes(wire::DecodeImageFormat(cmd.format()));
  wire::ImageLayout layout;
  if (!wire::LayOutImage(desc, element_bytes, 0, &layout))
    return Refuse(call, "no layout that the device could use");
  if (const cl_int status = session.CheckNew(cmd.mem_id()); status != CL_SUCCESS) return status;
  if (const cl_int status = Charge(session, layout.bytes, memory.get()); status != CL_SUCCESS)
    return status;
  if (const absl::Status opened = OpenTexture(session, cmd, fd, memory.get()); !opened.ok())
    return Refuse(call, opened.message());
  memory->is_image = true;
  memory->image_type = desc.image_type;
  memory->element_size = element_bytes;
  memory->layout.extent = layout.extent;
  // With a mutex it is the client's own texture, which it copies to and from.
  memory->CountIn(memory->hands->mutex != nullptr ? &session.counts.shadowed
                                                  : &session.counts.imported);
  if (memory->hands->mutex != nullptr) memory->CountOrderIn(&session.counts.mutexed);
  return session.Add(cmd.mem_id(), std::move(memory));
}

// True if the memory can be the context's device's at all.
absl::Status CheckOpaque(const OpaqueImporter& importer, const pb::CreateImportedBuffer& cmd,
                         int fd) {
  const pb::ImportedMemory& memory = cmd.memory();
  const auto check = [](absl::string_view whose, absl::string_view said,
                        const os::DeviceUuid& own) {
    os::DeviceUuid uuid = {};
    if (said.size() == uuid.size()) std::copy(said.begin(), said.end(), uuid.begin());
    if (said.size() == uuid.size() && uuid == own) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the memory's ", whose, " is ",
                                                      os::UuidText(uuid), ", the context's is ",
                                                      os::UuidText(own)));
  };
  RETURN_IF_ERROR(check("device", memory.device_uuid(), importer.device_uuid));
  if (importer.driver_uuid.has_value())
    RETURN_IF_ERROR(check("driver", memory.driver_uuid(), *importer.driver_uuid));
  if (cmd.size() == 0) return absl::InvalidArgumentError("a buffer of no bytes");
  if (memory.offset() != 0 && !memory.shadow())
    return absl::UnimplementedError("a buffer begins where the memory does");
  RETURN_IF_ERROR(os::CheckLayout({.offset = memory.offset(), .row_bytes = cmd.size()},
                                  memory.allocation_bytes()));
  return os::CheckDeviceMemory(fd);
}

HandlerResult ImportDeviceMemory(Session& session, const pb::CreateImportedBuffer& cmd,
                                 os::UniqueFd fd, std::shared_ptr<MemoryObject> memory,
                                 Call& call) {
  const absl::StatusOr<OpaqueImporter> importer = FindOpaqueImporter(*memory->context);
  if (!importer.ok()) return Refuse(call, importer.status().message());
  if (const absl::Status good = CheckOpaque(*importer, cmd, fd.get()); !good.ok())
    return Refuse(call, good.message());
  if (const cl_int status = session.CheckNew(cmd.mem_id()); status != CL_SUCCESS) return status;
  const uint64_t bytes = cmd.memory().offset() + cmd.size();
  if (const cl_int status = Charge(session, bytes, memory.get()); status != CL_SUCCESS)
    return status;
  memory->image_offset = cmd.memory().offset();
  const cl_mem_flags flags =
      cmd.flags() & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
  const absl::Status imported = ImportOpaque(*importer, std::move(fd), flags, memory.get());
  if (!imported.ok()) return Refuse(call, imported.message());
  memory->CountIn(cmd.memory().shadow() ? &session.counts.shadowed : &session.counts.imported);
  return session.Add(cmd.mem_id(), std::move(memory));
}

}  // namespace

HandlerResult HandleCreateImportedBuffer(Session& session, const pb::CreateImportedBuffer& cmd,
                                         Call& call) {
  absl::StatusOr<os::UniqueFd> fd = session.imports().Take(cmd.mem_id());
  if (!fd.ok()) return fd.status();
  auto memory = std::make_shared<MemoryObject>();
  memory->id = cmd.mem_id();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  if (cmd.memory().handle() == pb::IMPORTED_HANDLE_OPAQUE_FD)
    return ImportDeviceMemory(session, cmd, *std::move(fd), std::move(memory), call);
  if (cmd.memory().handle() != pb::IMPORTED_HANDLE_MEMORY)
    return Refuse(call, "buffers are imported from memory only");
  if (!memory->context->buffers_in_heap)
    return Refuse(call, "the device does not work in the host's memory");
  if (!IsAligned(*memory->context, cmd.memory().offset()))
    return Refuse(call, "the offset does not suit the device");
  absl::StatusOr<os::SharedMapping> mapping = MapImported(fd->get(), cmd.memory(), cmd.size());
  if (!mapping.ok()) return Refuse(call, mapping.status().message());
  if (const cl_int status = Charge(session, cmd.size(), memory.get()); status != CL_SUCCESS)
    return status;
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreateBuffer(memory->context->handle.get(), HostFlags(cmd.flags()),
                                           cmd.size(), mapping->data() + cmd.memory().offset(),
                                           &status));
  if (status == CL_SUCCESS) status = LeaveMappingToDriver(*std::move(mapping), memory.get());
  if (status != CL_SUCCESS) return status;
  memory->CountIn(&session.counts.imported);
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleCreateImportedImage(Session& session, const pb::CreateImportedImage& cmd,
                                        Call& call) {
  absl::StatusOr<os::UniqueFd> fd = session.imports().Take(cmd.mem_id());
  if (!fd.ok()) return fd.status();
  auto memory = std::make_shared<MemoryObject>();
  memory->id = cmd.mem_id();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  // Section 5.3.1.2, as of other images: num_mip_levels and num_samples must be 0.
  if (cmd.desc().parent_id() != 0 || cmd.desc().num_mip_levels() != 0 ||
      cmd.desc().num_samples() != 0)
    return CL_INVALID_IMAGE_DESCRIPTOR;
  if (cmd.memory().handle() != pb::IMPORTED_HANDLE_MEMORY)
    return ImportTexture(session, cmd, fd->get(), std::move(memory), call);
  const cl_image_desc desc = wire::DecodeImageDesc(cmd.desc());
  wire::ImageLayout layout;
  if (!wire::LayOutImage(desc, wire::ElementBytes(wire::DecodeImageFormat(cmd.format())),
                         cmd.memory().row_pitch(), &layout)) {
    return Refuse(call, "no layout that the device could use");
  }
  if (!ImagesWorkInHostMemory(memory->context.get(), desc.image_type))
    return Refuse(call, "the device does not work in the host's memory");
  if (!IsAligned(*memory->context, cmd.memory().offset()))
    return Refuse(call, "the offset does not suit the device");
  absl::StatusOr<os::SharedMapping> mapping = MapImported(fd->get(), cmd.memory(), layout.bytes);
  if (!mapping.ok()) return Refuse(call, mapping.status().message());
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
  memory->CountIn(&session.counts.imported);
  return session.Add(cmd.mem_id(), std::move(memory));
}

}  // namespace sluice::worker
