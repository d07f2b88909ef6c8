// SPDX-License-Identifier: Apache-2.0
// A memory object: buffer, sub-buffer, image or pipe, one class for the four as for the application
// (cl_mem). Everything it was made from is kept here, so that queries and checks need no traffic.
//
// The bytes lie in the session's shared heap (a CPU device of a local session), at heap(); else
// with the worker. CL_MEM_USE_HOST_PTR memory lies with the worker as well: the application's
// memory is filled and read by maps (map.h). But a buffer over shared virtual memory lies in that.
//
// Keeps its context and, if it is made from another memory object, that one. Held by the
// application and by commands whose end it must see. Thread-safe: constant once the handle is given
// out, but for the mappings, which have their own lock.
#pragma once

#include <CL/cl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "client_icd/base/args.h"
#include "client_icd/base/native_backing.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/map.h"
#include "client_icd/session/info.h"
#include "proto/image_format.h"

namespace sluice::client {

struct ImageShape {
  cl_image_format format = {};
  // The format that the application sees, if the worker's is another: a depth-stencil texture of
  // GL's (sharing/gl/gl_format.h).
  std::optional<cl_image_format> seen_as;
  cl_image_desc desc = {};  // As given, memory object aside.
  size_t element_bytes = 0;
  wire::ImageExtent extent = {};
  // Of the application's memory for USE_HOST_PTR, and what CL_IMAGE_ROW_PITCH reports: as given,
  // else tightly packed.
  size_t row_pitch = 0;
  size_t slice_pitch = 0;  // 0 where the type has no slices or layers.

  int dimensions() const { return wire::ImageDimensions(desc.image_type); }
};

struct PipeShape {
  cl_uint packet_size = 0;
  cl_uint max_packets = 0;
};

class MemObject : public ClObject<MemObject, cl_mem, ObjectKind::kMemory> {
 public:
  struct Description {
    cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    cl_mem_flags flags = 0;
    size_t bytes = 0;          // Of a buffer.
    void* host_ptr = nullptr;  // With USE_HOST_PTR.
    Ref<MemObject> parent;
    size_t origin = 0;  // In the parent, if that is a buffer.
    PropertyList properties;
    std::optional<ImageShape> image;
    std::optional<PipeShape> pipe;
    std::shared_ptr<NativeBacking> native;  // If it is made from a native object.
  };

  MemObject(Ref<Context> context, Description description);
  ~MemObject();

  // Null for a handle that is none, or is not of that sort.
  static MemObject* FromBuffer(cl_mem handle);
  static MemObject* FromImage(cl_mem handle);
  static MemObject* FromPipe(cl_mem handle);

  Context& context() const { return *context_; }
  Session& session() const { return context_->session(); }
  CommandStream& stream() const { return context_->stream(); }

  cl_mem_object_type type() const { return about_.type; }
  bool is_buffer() const { return about_.type == CL_MEM_OBJECT_BUFFER; }
  bool is_pipe() const { return about_.pipe.has_value(); }
  bool is_image() const { return about_.image.has_value(); }
  cl_mem_flags flags() const { return about_.flags; }
  bool uses_host_ptr() const { return (about_.flags & CL_MEM_USE_HOST_PTR) != 0; }
  size_t bytes() const { return about_.bytes; }
  uint8_t* host_ptr() const { return static_cast<uint8_t*>(about_.host_ptr); }
  MemObject* parent() const { return about_.parent.get(); }
  // As the application may see it: not a parent that was made for a native object's sake.
  cl_mem parent_handle() const {
    return about_.parent && about_.native == nullptr ? about_.parent->handle() : nullptr;
  }
  size_t origin() const { return about_.origin; }
  const ImageShape& image() const { return *about_.image; }
  // The buffer whose memory this one is a part of, or itself.
  MemObject& root() { return is_buffer() && about_.parent ? *about_.parent : *this; }

  // The worker has made it: from now on it is released on the wire too. Before the handle is given
  // out. CL_MEM_OBJECT_ALLOCATION_FAILURE: this process cannot map its memory in the heap, and it
  // is too large to do without.
  cl_int SetMade(const pb::MemoryPlacement& placement);
  // The buffer's or image's bytes in the shared heap; null if they are not there.
  uint8_t* heap() const { return heap_; }
  // Those bytes are what the application may see of it: its own CL_MEM_USE_HOST_PTR memory is
  // elsewhere, unless it is shared virtual memory, which is the buffer's storage.
  bool shows_heap() const { return heap_ != nullptr && (!uses_host_ptr() || uses_svm()); }
  bool uses_svm() const { return heap_ != nullptr && heap_ == host_ptr(); }
  // The memory that its mappings show, if the worker has made a mirror for it; else null.
  uint8_t* mirror() const { return mirror_; }
  // Of an image: how they lie there. Not always as the application sees its image: that has the
  // pitches of the application's memory.
  const wire::ImageLayout& heap_layout() const { return heap_layout_; }

  // clReleaseMemObject; false if the application had no reference. A shared object of which it was
  // the last goes as soon as its commands have ended, also if nobody waits for anything: the native
  // object, or another program's turn, waits for that.
  bool ReleaseByApp();

  Mappings& mappings() { return mappings_; }

  // Its own, or that of the object it is made from; null for what is not shared.
  const std::shared_ptr<UseGate>& use_gate() const { return gate_; }
  // The native object that this very memory object was made from; null if it was not.
  NativeBacking* native() const { return about_.native.get(); }
  // Its bytes travel by staging.
  bool is_staged() const { return about_.native != nullptr && about_.native->is_staged(); }
  // Extension specification, section 9.9.1: images of the channel order CL_DEPTH_STENCIL "cannot be
  // used as arguments to" the commands that read, write, copy, fill or map images "and will return
  // a CL_INVALID_OPERATION error".
  cl_int CheckCommands() const {
    return is_image() && image().seen_as ? CL_INVALID_OPERATION : CL_SUCCESS;
  }
  // For every command that uses it, before anything is sent: the API's code for a shared object
  // that is not acquired, unless the session is lost. `writes`: the command may change the bytes.
  cl_int Use(bool writes) const {
    const cl_int status = gate_ == nullptr ? CL_SUCCESS : gate_->Use(writes);
    return status != CL_SUCCESS && session().lost() ? session().lost_code() : status;
  }

  // CL_INVALID_OPERATION if the flags forbid the host to read or write (section 5.2.1,
  // CL_MEM_HOST_*).
  cl_int CheckHostRead() const;
  cl_int CheckHostWrite() const;
  // CL_MISALIGNED_SUB_BUFFER_OFFSET if this is a sub-buffer whose origin does not suit the device.
  cl_int CheckAlignment(const Device& device) const;

  cl_int GetInfo(cl_mem_info param_name, const InfoSink& sink);
  cl_int GetImageInfo(cl_image_info param_name, const InfoSink& sink);
  // Names that only shared objects, or those of one API, answer; nothing for others.
  std::optional<cl_int> GetSharedInfo(cl_mem_info param_name, const InfoSink& sink);
  std::optional<cl_int> GetSharedImageInfo(cl_image_info param_name, const InfoSink& sink);
  cl_int GetPipeInfo(cl_pipe_info param_name, const InfoSink& sink);

 private:
  cl_int FindImage(const pb::MemoryPlacement& placement);
  cl_int MapHeap(const wire::BulkSpan& span);

  const Ref<Context> context_;
  Description about_;                    // Constant until the destructor.
  const std::shared_ptr<UseGate> gate_;  // Null in most.
  bool made_ = false;
  std::atomic<bool> ends_soon_{false};  // The stream is eager for the destructor's sake.
  uint8_t* heap_ = nullptr;
  uint8_t* mirror_ = nullptr;
  wire::ImageLayout heap_layout_;
  Mappings mappings_;
};

// How an image lies in the heap. False if the placement is not the one that the contract prescribes
// for an image of that shape: its elements travel by commands then.
bool LayOutInHeap(const ImageShape& shape, bool of_buffer, const pb::MemoryPlacement& placement,
                  wire::ImageLayout* out);

// Largest CL_DEVICE_MAX_MEM_ALLOC_SIZE of the context's devices.
cl_ulong MaxAllocation(const Context& context);
// Flags of a new buffer, image or pipe (section 5.2.1): CL_INVALID_VALUE for unknown or
// contradicting ones, CL_INVALID_HOST_PTR for a pointer that does not go with them.
cl_int CheckMemFlags(cl_mem_flags flags);
cl_int CheckHostPtr(cl_mem_flags flags, const void* host_ptr);
// A sub-buffer's or buffer-made image's flags, completed from the parent's (sections 5.2.1
// and 5.3.1); CL_INVALID_VALUE if they contradict.
cl_int InheritMemFlags(cl_mem_flags parent, cl_mem_flags* flags);
// Makes the worker's buffer that is a part of another, or of shared virtual memory.
cl_int MakePart(MemObject* memory, uint64_t parent_id, uint64_t origin);
// Makes the worker's buffer for `memory`, with its contents if they are not null.
cl_int MakeBuffer(MemObject* memory, const void* contents);
// The same for an image; contents tightly packed, or none.
cl_int MakeImage(MemObject* memory, std::string_view contents);
// True if contents of so many bytes follow the creation, by FillNew, instead of going with it.
bool FillsLater(const Context& context, uint64_t bytes);
// Writes the contents of memory that has just been made, whose handle nobody has yet: into the heap
// if it lies there, else chunk by chunk. Waits for the end of that.
cl_int FillNew(MemObject* memory, const HostRegion& contents);
// True if a device of the context has images as large as that.
bool HoldsImages(const Context& context, const cl_image_desc& desc);
// An image's shape by what it is created from, pitches completed.
ImageShape MakeImageShape(const cl_image_format& format, const cl_image_desc& desc);
// Those of the flags that the worker's driver sees. Not what the host may do with the bytes
// (CL_MEM_HOST_*): that is checked here. A map for writing reads them, a creation from a host
// pointer writes them, by commands that a driver would refuse.
cl_mem_flags WireMemFlags(cl_mem_flags flags);

// True if the origin suits the device's CL_DEVICE_MEM_BASE_ADDR_ALIGN.
bool IsAligned(uint64_t origin, const Device& device);

}  // namespace sluice::client
