// SPDX-License-Identifier: Apache-2.0
// cl_sluice_shared_resource (client_icd/cl_sluice_shared_resource.txt): memory objects made from
// resources that the daemon owns. An acquire takes the resource's turn among all the programs that
// share it, a release gives it up.
#include <CL/cl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/native_handle.h"
#include "broker/os/scoped_handle.h"
#include "client_icd/base/api.h"
#include "client_icd/base/client_log.h"
#include "client_icd/connect/sluice_library.h"
#include "client_icd/include/CL/cl_sluice.h"
#include "client_icd/objects/endpoint.h"
#include "client_icd/objects/memory.h"
#include "client_icd/objects/platform.h"
#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/core/shadow.h"
#include "proto/resource_messages.h"

namespace sluice::client::sharing {
namespace {

cl_int ToError(const SluiceConnection& connection, sluice_status status, const char* what) {
  if (status == SLUICE_OK) return CL_SUCCESS;
  ClientLog(ClientLogLevel::kWarning,
            absl::StrCat("shared resource: ", what, ": ", connection.functions.error_text()));
  switch (status) {
    case SLUICE_PERMISSION_DENIED:
    case SLUICE_DESTROYED:
    case SLUICE_UNSUPPORTED:
    case SLUICE_INVALID_ARGUMENT:
      return CL_INVALID_SHARED_RESOURCE_SLUICE;
    case SLUICE_LOST:
    case SLUICE_NO_DAEMON:
      return CL_DEVICE_NOT_AVAILABLE;
    default:
      return CL_OUT_OF_RESOURCES;
  }
}

// Where the bytes of the memory object lie in the resource, and what they are.
struct Part {
  uint64_t offset = 0;
  size_t row_bytes = 0;
  size_t rows = 1;
  size_t slices = 1;
  uint64_t row_pitch = 0;
  uint64_t slice_pitch = 0;
};

// The turn of one memory object: taken and given up on its own thread, since it may be a long wait,
// in which others must go on. Outlives the object while a job needs it.
class Turn : public EndListener, public std::enable_shared_from_this<Turn> {
 public:
  Turn(std::shared_ptr<SluiceConnection> connection, const sluice_capability& capability,
       sluice_access access)
      : connection_(std::move(connection)), capability_(capability), access_(access) {}

  // Any thread.
  NativeThread& thread() { return thread_; }
  bool indeterminate() const { return indeterminate_.load(); }
  void OnMemoryGone() override { Abandon(); }
  // The worker that was writing is gone, or will not be told of a release.
  void OnSessionLost() override {
    lost_ = true;
    Abandon();
  }

  // The native thread only.
  cl_int Acquire(absl::Time deadline) {
    used_ = true;
    if (lost_.load()) return CL_DEVICE_NOT_AVAILABLE;
    const int64_t left_ms =
        std::clamp<int64_t>(absl::ToInt64Milliseconds(deadline - absl::Now()), 0, int64_t{600'000});
    const sluice_status taken = connection_->functions.acquire(
        connection_->raw, &capability_, access_, static_cast<uint32_t>(left_ms), &hold_);
    held_ = taken == SLUICE_OK;
    if (held_) indeterminate_ = hold_.indeterminate != 0;
    if (taken == SLUICE_LOST) ForgetSluiceConnection(connection_);
    if (!held_ || !lost_.load()) return ToError(*connection_, taken, "acquire");
    Release(SLUICE_CONTENTS_UNTOUCHED);  // Nobody has got to write.
    return CL_DEVICE_NOT_AVAILABLE;
  }
  cl_int Release(uint32_t flags) {
    if (!std::exchange(held_, false)) return CL_SUCCESS;
    const sluice_status given = connection_->functions.release(connection_->raw, &hold_, flags);
    if (given == SLUICE_LOST) ForgetSluiceConnection(connection_);
    return ToError(*connection_, given, "release");
  }

 private:
  // A resource that an application forgot to release is released; nobody is told that its contents
  // are good.
  void Abandon() {
    if (!used_.load()) return;
    thread_.Post([self = shared_from_this()] { self->Release(SLUICE_CONTENTS_INDETERMINATE); });
  }

  const std::shared_ptr<SluiceConnection> connection_;
  const sluice_capability capability_;
  const sluice_access access_;
  std::atomic<bool> used_{false};
  std::atomic<bool> lost_{false};
  std::atomic<bool> indeterminate_{false};
  // The native thread only.
  sluice_hold hold_ = {};
  bool held_ = false;
  NativeThread thread_{"sluice-resource"};
};

class SharedResourceObject : public NativeObject {
 public:
  SharedResourceObject(std::shared_ptr<SluiceConnection> connection,
                       const sluice_capability& capability, sluice_access access,
                       const sluice_description& about, const Part& part, bool copies)
      : connection_(std::move(connection)),
        capability_(capability),
        access_(access),
        turn_(std::make_shared<Turn>(connection_, capability, access)),
        resource_id_(about.resource_id),
        size_bytes_(about.shape.size_bytes),
        copies_(copies),
        part_(part) {}

  ~SharedResourceObject() override {
    if (mapped_ != nullptr) connection_->functions.unmap(mapped_, size_bytes_);
  }

  // While the memory object is made. Memory of a device's own is not mapped: its driver opens it.
  cl_int Open() {
    const SluiceFunctions& sluice = connection_->functions;
    sluice_handle handle = {};
    handle.struct_size = sizeof(handle);
    cl_int status = ToError(*connection_, ExportTo(&handle), "export");
    if (status != CL_SUCCESS) return status;
    memory_.fd = os::FromNative(handle.fds[0]);
    const auto vulkan = wire::ReadVulkanInts(handle.ints, handle.int_count);
    if (handle.backing == SLUICE_BACKING_VULKAN && vulkan.has_value() && vulkan->mappable == 0) {
      memory_.kind = ExportedMemory::Kind::kOpaqueFd;
      memory_.allocation_bytes = handle.allocation_bytes;
      std::memcpy(memory_.device_uuid, handle.device_uuid, sizeof(memory_.device_uuid));
      std::memcpy(memory_.driver_uuid, vulkan->driver_uuid, sizeof(memory_.driver_uuid));
    } else {
      status = ToError(*connection_, sluice.map(&handle, &mapped_), "map");
    }
    memory_.offset = part_.offset;
    if (handle.backing == SLUICE_BACKING_VULKAN)
      memory_.offset += wire::VulkanMapOffset(handle.ints, handle.int_count).value_or(0);
    sluice.handle_close(&handle);
    return status;
  }

  NativeKey key() const override { return {resource_id_, 0, 0}; }
  NativeThread& thread() override { return turn_->thread(); }
  std::shared_ptr<EndListener> end_listener() override { return turn_; }
  // A reader's mapping cannot be written, not by the host's commands either.
  bool writable() const override { return access_ == SLUICE_WRITE; }

  HostRegion host_memory() override { return mapped_ == nullptr ? HostRegion() : Region(); }
  absl::Status CanStage() const override {
    if (mapped_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the memory is a device's own (SLUICE_BACKING_VULKAN), which only OpenCL on that device "
        "opens; make the resource with SLUICE_BACKING_MEMFD for others");
  }
  cl_int Fetch(uint8_t* packed, absl::Time deadline) override {
    const cl_int status = turn_->Acquire(deadline);
    if (status == CL_SUCCESS && packed != nullptr) {
      const HostRegion from = Region();
      from.Gather(0, from.packed_bytes(), packed);
    }
    return status;
  }
  cl_int Store(const uint8_t* packed, absl::Time) override {
    if (packed != nullptr) {
      const HostRegion to = Region();
      to.Scatter(0, to.packed_bytes(), packed);
    }
    return turn_->Release(0);
  }
  cl_int ReleaseUnchanged(absl::Time) override { return turn_->Release(SLUICE_CONTENTS_UNTOUCHED); }
  void UndoAcquire() override { turn_->Release(SLUICE_CONTENTS_UNTOUCHED); }

  absl::StatusOr<ExportedMemory> Export() override {
    if (MakesShadow())
      return absl::UnimplementedError("what is in a device's memory is copied for this driver");
    if (!memory_.fd.valid()) return absl::ResourceExhaustedError("no descriptor to be had");
    memory_.row_pitch = part_.rows > 1 ? part_.row_pitch : 0;
    memory_.slice_pitch = part_.slices > 1 ? part_.slice_pitch : 0;
    return std::move(memory_);
  }
  cl_int BeginImported(absl::Time deadline) override { return turn_->Acquire(deadline); }
  cl_int EndImported(bool written, absl::Time) override {
    return turn_->Release(written ? 0 : SLUICE_CONTENTS_UNTOUCHED);
  }

  // The driver opens a device's memory as a buffer, beside the memory object.
  bool MakesShadow() const override { return copies_ && mapped_ == nullptr; }
  absl::StatusOr<ExportedMemory> MakeShadow() override {
    if (!memory_.fd.valid()) return absl::ResourceExhaustedError("no descriptor to be had");
    const bool tight = (part_.rows == 1 || part_.row_pitch == part_.row_bytes) &&
                       (part_.slices == 1 || part_.slice_pitch == part_.row_pitch * part_.rows);
    if (tight) return std::move(memory_);
    return absl::UnimplementedError(
        "its rows have gaps, which copies on a device do not know; make it with tight planes");
  }
  cl_int CopyToShadow(ShadowSync, absl::Time deadline) override { return turn_->Acquire(deadline); }
  cl_int CopyFromShadow(ShadowSync, absl::Time) override { return turn_->Release(0); }

  cl_int BreakOff(bool written, absl::Time) override {
    return turn_->Release(written ? SLUICE_CONTENTS_INDETERMINATE : SLUICE_CONTENTS_UNTOUCHED);
  }

  cl_int GetMemInfo(cl_mem_info param, const InfoSink& sink) override {
    if (param != CL_MEM_SHARED_RESOURCE_INDETERMINATE_SLUICE) return CL_INVALID_VALUE;
    return sink.Value<cl_bool>(turn_->indeterminate() ? CL_TRUE : CL_FALSE);
  }

 private:
  // A reader with a writer's capability has a writer's handle, used for reading: a reader's may
  // cost the memory all writers that come later (sluice.h, SLUICE_TRUST_READERS), for nothing.
  sluice_status ExportTo(sluice_handle* handle) const {
    const auto& export_handle = connection_->functions.export_handle;
    if (access_ == SLUICE_READ &&
        export_handle(connection_->raw, &capability_, SLUICE_WRITE, handle) == SLUICE_OK) {
      handle->writable = 0;
      return SLUICE_OK;
    }
    return export_handle(connection_->raw, &capability_, access_, handle);
  }

  HostRegion Region() const {
    return HostRegion(static_cast<uint8_t*>(mapped_) + part_.offset, part_.row_bytes, part_.rows,
                      part_.slices, part_.row_pitch, part_.slice_pitch);
  }

  const std::shared_ptr<SluiceConnection> connection_;
  const sluice_capability capability_;
  const sluice_access access_;
  const std::shared_ptr<Turn> turn_;
  const uint64_t resource_id_;
  const uint64_t size_bytes_;
  const bool copies_;  // Of a device's own memory OpenCL uses a copy.
  const Part part_;
  void* mapped_ = nullptr;  // Constant after Open. Null: a device's own memory.
  ExportedMemory memory_;   // From Open to Export or MakeShadow, which takes it.
};

// OpenCL's format for a plane of a format that OpenCL has no name for. Fourccs as in drm_fourcc.h.
struct PlaneFormat {
  uint32_t fourcc;
  cl_image_format planes[3];
};
constexpr PlaneFormat kPlanar[] = {
    {0x3231564e /* NV12 */, {{CL_R, CL_UNORM_INT8}, {CL_RG, CL_UNORM_INT8}}},
    {0x3132564e /* NV21 */, {{CL_R, CL_UNORM_INT8}, {CL_RG, CL_UNORM_INT8}}},
    {0x30313050 /* P010 */, {{CL_R, CL_UNORM_INT16}, {CL_RG, CL_UNORM_INT16}}},
    {0x32315559 /* YU12 */, {{CL_R, CL_UNORM_INT8}, {CL_R, CL_UNORM_INT8}, {CL_R, CL_UNORM_INT8}}},
    {0x32315659 /* YV12 */, {{CL_R, CL_UNORM_INT8}, {CL_R, CL_UNORM_INT8}, {CL_R, CL_UNORM_INT8}}},
};

// CL_INVALID_SHARED_RESOURCE_SLUICE: OpenCL has no such image.
cl_int FormatOf(const sluice_shape& shape, cl_uint plane, cl_image_format* format) {
  if (shape.channel_order != 0) {
    *format = {shape.channel_order, shape.channel_type};
    return CL_SUCCESS;
  }
  for (const PlaneFormat& row : kPlanar) {
    if (row.fourcc != shape.drm_fourcc) continue;
    *format = row.planes[plane];
    return CL_SUCCESS;
  }
  return CL_INVALID_SHARED_RESOURCE_SLUICE;
}

// The image that a plane is.
cl_int DescribePlane(const sluice_shape& shape, cl_uint plane, MemObject::Description* about,
                     Part* part) {
  cl_image_format format;
  const cl_int status = FormatOf(shape, plane, &format);
  if (status != CL_SUCCESS) return status;
  cl_image_desc desc = {};
  desc.image_type = shape.depth > 1          ? CL_MEM_OBJECT_IMAGE3D
                    : shape.array_layers > 1 ? CL_MEM_OBJECT_IMAGE2D_ARRAY
                                             : CL_MEM_OBJECT_IMAGE2D;
  const size_t divisor = plane > 0 ? 2 : 1;  // Every format of several planes halves its chroma.
  desc.image_width = (shape.width + divisor - 1) / divisor;
  desc.image_height = (shape.height + divisor - 1) / divisor;
  if (shape.depth > 1) desc.image_depth = shape.depth;
  if (shape.array_layers > 1) desc.image_array_size = shape.array_layers;
  about->type = desc.image_type;
  about->image = MakeImageShape(format, desc);
  part->offset = shape.planes[plane].offset;
  part->row_bytes = desc.image_width * about->image->element_bytes;
  part->rows = desc.image_height;
  part->slices = std::max<uint64_t>(shape.depth, shape.array_layers);
  part->row_pitch = shape.planes[plane].row_pitch;
  part->slice_pitch = shape.planes[plane].slice_pitch;
  return CL_SUCCESS;
}

cl_int CheckResourceFlags(cl_mem_flags flags) {
  // "CL_INVALID_VALUE if <flags> holds anything but one of CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY,
  // CL_MEM_READ_WRITE": the memory is the resource's.
  if (flags == CL_MEM_READ_ONLY || flags == CL_MEM_WRITE_ONLY || flags == CL_MEM_READ_WRITE) {
    return CL_SUCCESS;
  }
  return CL_INVALID_VALUE;
}

cl_int Create(Context* context, cl_mem_flags flags, const void* capability, cl_uint plane,
              Ref<MemObject>* out) {
  CL_RETURN_IF_ERROR(CheckResourceFlags(flags));
  if (capability == nullptr) return CL_INVALID_VALUE;
  const EndpointAddress& address = context->platform()->endpoint().address();
  // "CL_INVALID_OPERATION if the daemon of <context> is not on this machine."
  if (address.kind != EndpointAddress::Kind::kLocal) return CL_INVALID_OPERATION;
  sluice_capability shown;
  std::memcpy(shown.bytes, capability, sizeof(shown.bytes));
  absl::StatusOr<std::shared_ptr<SluiceConnection>> connection;
  sluice_description found = {};
  sluice_status described = SLUICE_LOST;
  // Twice: a connection that is kept by other objects may be one to a daemon before this one.
  for (int attempt = 0; attempt < 2 && described == SLUICE_LOST; ++attempt) {
    connection = ConnectSluice(address.target);
    if (!connection.ok()) {
      ClientLog(ClientLogLevel::kError,
                absl::StrCat("shared resource: ", connection.status().message()));
      return absl::IsResourceExhausted(connection.status()) ? CL_OUT_OF_RESOURCES
                                                            : CL_INVALID_OPERATION;
    }
    found = {};
    found.struct_size = sizeof(found);
    described = (*connection)->functions.describe((*connection)->raw, &shown, &found);
    if (described == SLUICE_LOST) ForgetSluiceConnection(*connection);
  }
  CL_RETURN_IF_ERROR(ToError(**connection, described, "describe"));
  // "CL_INVALID_VALUE if <plane> is not a plane of the resource; a buffer has the plane 0."
  if (plane >= std::max(found.shape.plane_count, 1u)) return CL_INVALID_VALUE;

  MemObject::Description about = {};
  about.flags = flags;
  Part part;
  if (found.shape.plane_count > 0) {
    CL_RETURN_IF_ERROR(DescribePlane(found.shape, plane, &about, &part));
    CL_RETURN_IF_ERROR(CheckFormat(context, flags, about.type, about.image->format,
                                   CL_IMAGE_FORMAT_NOT_SUPPORTED));
    about.bytes = part.row_bytes * part.rows * part.slices;
  } else {
    about.bytes = found.shape.size_bytes;
    part.row_bytes = part.row_pitch = part.slice_pitch = about.bytes;
  }
  const sluice_access access = flags == CL_MEM_READ_ONLY ? SLUICE_READ : SLUICE_WRITE;
  const bool copies = found.shape.plane_count > 0 || !context->makes_usable_images();
  auto object = std::make_unique<SharedResourceObject>(*std::move(connection), shown, access, found,
                                                       part, copies);
  CL_RETURN_IF_ERROR(object->Open());
  return CreateShared(context, std::move(about), Api::kSluice, std::move(object), out);
}

}  // namespace
}  // namespace sluice::client::sharing

namespace sluice::client::api {

cl_mem CL_API_CALL clCreateFromSharedResourceSLUICE(cl_context context_handle, cl_mem_flags flags,
                                                    const void* capability, cl_uint plane,
                                                    cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  Ref<MemObject> memory;
  const cl_int status = sharing::Create(context, flags, capability, plane, &memory);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

cl_int CL_API_CALL clEnqueueAcquireSharedResourcesSLUICE(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event) noexcept {
  return sharing::EnqueueAcquire(
      sharing::Api::kSluice,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

cl_int CL_API_CALL clEnqueueReleaseSharedResourcesSLUICE(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event) noexcept {
  return sharing::EnqueueRelease(
      sharing::Api::kSluice,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

}  // namespace sluice::client::api
