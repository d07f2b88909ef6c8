// SPDX-License-Identifier: Apache-2.0
// cl_img_use_gralloc_ptr: buffers in memory of an Android gralloc allocation, given as the
// buffer_handle_t that every Android library passes about, a native_handle_t with descriptors and
// ints. The memory is that of its first descriptor, in which all gralloc implementations that have
// one buffer object put it (others that follow hold metadata). The meaning of the ints is each
// implementation's secret, and they are not looked at.
#include <CL/cl_ext.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/foreign_memory.h"
#include "broker/os/shared_memory.h"
#include "client_icd/base/api.h"
#include "client_icd/base/client_log.h"
#include "client_icd/base/uncancelled.h"
#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/memory/gralloc.h"

namespace sluice::client::sharing {
namespace {

// native_handle_t of Android's cutils/native_handle.h, whose layout never changes: it says its own
// size in `version`.
struct NativeHandle {
  int version;
  int num_fds;
  int num_ints;
};
static_assert(sizeof(NativeHandle) == 12);
constexpr int kMaxFds = 1024;   // NATIVE_HANDLE_MAX_FDS
constexpr int kMaxInts = 1024;  // NATIVE_HANDLE_MAX_INTS

// The descriptor of the allocation; -1 if the handle cannot be one.
int FirstDescriptor(const void* handle) {
  NativeHandle header;
  std::memcpy(&header, handle, sizeof(header));
  if (header.version != sizeof(NativeHandle)) return -1;
  if (header.num_fds < 1 || header.num_fds > kMaxFds) return -1;
  if (header.num_ints < 0 || header.num_ints > kMaxInts) return -1;
  int fd;
  std::memcpy(&fd, static_cast<const char*>(handle) + sizeof(header), sizeof(fd));
  return fd;
}

cl_int ToError(const absl::Status& status) {
  if (status.ok()) return CL_SUCCESS;
  ClientLog(ClientLogLevel::kWarning, absl::StrCat("sharing: gralloc: ", status.message()));
  return CL_OUT_OF_RESOURCES;
}

// Its own duplicate of the descriptor, so that the application may close the handle's.
class GrallocObject : public NativeObject {
 public:
  GrallocObject(os::UniqueFd fd, const os::ForeignMemory& memory, os::SharedMapping mapping,
                std::shared_ptr<NativeThread> thread)
      : fd_(std::move(fd)),
        memory_(memory),
        mapping_(std::move(mapping)),
        thread_(std::move(thread)) {}

  NativeKey key() const override { return {}; }  // Several buffers of one allocation are allowed.
  NativeThread& thread() override { return *thread_; }
  bool writable() const override { return memory_.writable; }

  HostRegion host_memory() override {
    return mapping_.data() == nullptr ? HostRegion() : HostRegion(mapping_.data(), mapping_.size());
  }

  cl_int Fetch(uint8_t* packed, absl::Time deadline) override {
    if (packed != nullptr) return ToError(os::ReadForeignMemory(fd_.get(), packed, bytes()));
    return Begin(deadline);
  }
  cl_int Store(const uint8_t* packed, absl::Time) override {
    if (packed != nullptr) return ToError(os::WriteForeignMemory(fd_.get(), packed, bytes()));
    return End();
  }
  cl_int ReleaseUnchanged(absl::Time) override { return End(); }

  absl::StatusOr<ExportedMemory> Export() override {
    if (!memory_.mappable()) {
      return absl::FailedPreconditionError(
          "the allocation is a memfd that is not sealed: it could shrink under the device");
    }
    ExportedMemory exported;
    exported.kind = memory_.kind == os::ForeignMemoryKind::kDmaBuf ? ExportedMemory::Kind::kDmaBuf
                                                                   : ExportedMemory::Kind::kMemfd;
    exported.fd = os::DuplicateFd(fd_.get());
    if (!exported.fd.valid()) return absl::ResourceExhaustedError("no descriptor to be had");
    return exported;
  }
  cl_int BeginImported(absl::Time deadline) override { return Begin(deadline); }
  cl_int EndImported(bool, absl::Time) override { return End(); }

 private:
  uint64_t bytes() const { return memory_.size_bytes; }

  // Accesses of the processor, ours or the worker's, are bracketed from acquire to release.
  cl_int Begin(absl::Time deadline) {
    cl_int status = ToError(os::WaitForDevices(fd_.get(), memory_, memory_.writable, deadline));
    if (status == CL_SUCCESS)
      status = ToError(os::BeginAccess(fd_.get(), memory_, memory_.writable));
    begun_ = begun_ || status == CL_SUCCESS;
    return status;
  }
  cl_int End() {
    if (!std::exchange(begun_, false)) return CL_SUCCESS;
    return ToError(os::EndAccess(fd_.get(), memory_, memory_.writable));
  }

  const os::UniqueFd fd_;
  const os::ForeignMemory memory_;
  const os::SharedMapping mapping_;  // Only of memory that cannot shrink.
  const std::shared_ptr<NativeThread> thread_;
  bool begun_ = false;  // Native thread only.
};

cl_int CheckGrallocFlags(cl_mem_flags flags) {
  // Section 5.2.1 as for any buffer; the memory is the allocation's, so that no other *_HOST_PTR
  // flag goes with it.
  constexpr cl_mem_flags kOthers =
      CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  if ((flags & (kOthers | CL_MEM_KERNEL_READ_AND_WRITE)) != 0) return CL_INVALID_VALUE;
  return CheckMemFlags(flags & ~cl_mem_flags{CL_MEM_USE_GRALLOC_PTR_IMG});
}

cl_int MakeObject(const Context& context, cl_mem_flags flags, const void* handle,
                  std::unique_ptr<NativeObject>* object, uint64_t* bytes) {
  os::UniqueFd fd = os::DuplicateFd(FirstDescriptor(handle));
  if (!fd.valid() && errno == EMFILE) return CL_OUT_OF_HOST_MEMORY;
  if (!fd.valid()) return CL_INVALID_GRALLOC_OBJECT_IMG;
  const absl::StatusOr<os::ForeignMemory> memory = os::DescribeForeignMemory(fd.get());
  const bool writes = (flags & CL_MEM_READ_ONLY) == 0;
  if (!memory.ok() || (writes && !memory->writable)) {
    ClientLog(ClientLogLevel::kInfo,
              absl::StrCat("sharing: gralloc: ", memory.ok() ? "the allocation cannot be written"
                                                             : memory.status().message()));
    return CL_INVALID_GRALLOC_OBJECT_IMG;
  }
  // CL_INVALID_BUFFER_SIZE as for any buffer: 0, or more than any device of the context takes.
  if (memory->size_bytes == 0 || memory->size_bytes > MaxAllocation(context))
    return CL_INVALID_BUFFER_SIZE;
  os::SharedMapping mapping;
  if (memory->mappable()) {
    absl::StatusOr<os::SharedMapping> mapped =
        os::SharedMapping::Map(fd.get(), memory->size_bytes, memory->writable);
    if (!mapped.ok()) return ToError(mapped.status());
    mapping = *std::move(mapped);
  }
  *bytes = memory->size_bytes;
  *object = std::make_unique<GrallocObject>(std::move(fd), *memory, std::move(mapping),
                                            SharedRegistry::Of(context)->thread());
  return CL_SUCCESS;
}

cl_mem CreateGrallocBuffer(Context* context, const PropertyList& properties, cl_mem_flags flags,
                           size_t size, void* host_ptr, cl_int* errcode_ret) {
  cl_int status = CheckGrallocFlags(flags);
  // CL_INVALID_BUFFER_SIZE if size is non-zero and flags contains CL_MEM_USE_GRALLOC_PTR_IMG.
  if (status == CL_SUCCESS && size != 0) status = CL_INVALID_BUFFER_SIZE;
  // CL_INVALID_HOST_PTR if host_ptr is NULL and CL_MEM_USE_GRALLOC_PTR_IMG is set in flags.
  if (status == CL_SUCCESS && host_ptr == nullptr) status = CL_INVALID_HOST_PTR;
  std::unique_ptr<NativeObject> object;
  uint64_t bytes = 0;
  if (status == CL_SUCCESS) status = MakeObject(*context, flags, host_ptr, &object, &bytes);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  MemObject::Description about;
  about.flags = flags;
  about.bytes = bytes;
  about.properties = properties;
  Ref<MemObject> memory;
  status = CreateShared(context, std::move(about), Api::kGralloc, std::move(object), &memory);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

void* FindGrallocFunction(const char* name) {
  if (std::strcmp(name, "clEnqueueAcquireGrallocObjectsIMG") == 0)
    return UncancelledAddress<&api::clEnqueueAcquireGrallocObjectsIMG>();
  if (std::strcmp(name, "clEnqueueReleaseGrallocObjectsIMG") == 0)
    return UncancelledAddress<&api::clEnqueueReleaseGrallocObjectsIMG>();
  return nullptr;
}

constexpr InteropExtension::Name kGrallocNames[] = {{"cl_img_use_gralloc_ptr"}};

}  // namespace

const InteropExtension kGrallocInterop = {
    .names = kGrallocNames,
    .buffer_flags = CL_MEM_USE_GRALLOC_PTR_IMG,
    .create_buffer = CreateGrallocBuffer,
    .find_function = FindGrallocFunction,
};

}  // namespace sluice::client::sharing

namespace sluice::client::api {

cl_int CL_API_CALL clEnqueueAcquireGrallocObjectsIMG(cl_command_queue command_queue,
                                                     cl_uint num_objects, const cl_mem* mem_objects,
                                                     cl_uint num_events_in_wait_list,
                                                     const cl_event* event_wait_list,
                                                     cl_event* event) noexcept {
  return sharing::EnqueueAcquire(
      sharing::Api::kGralloc,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

cl_int CL_API_CALL clEnqueueReleaseGrallocObjectsIMG(cl_command_queue command_queue,
                                                     cl_uint num_objects, const cl_mem* mem_objects,
                                                     cl_uint num_events_in_wait_list,
                                                     const cl_event* event_wait_list,
                                                     cl_event* event) noexcept {
  return sharing::EnqueueRelease(
      sharing::Api::kGralloc,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

}  // namespace sluice::client::api
