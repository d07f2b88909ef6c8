// SPDX-License-Identifier: Apache-2.0
// The interface that an adapter (gl.cc, egl.cc, gralloc.cc, ...) implements for the core: one
// native object, or one level, subresource or plane of it, whose bytes an OpenCL memory object
// stands for.
//
// Owned by the SharedObject of a memory object. Unless a method says otherwise it runs on thread(),
// one call at a time per thread, with no lock of the driver held. So does the work that another
// thread's calls had to leave to it. The destructor runs on any thread and must not wait: it posts
// to thread() what has to be let go there. Nothing may wait beyond the deadline it is given: what
// is late is an error (CL_OUT_OF_RESOURCES), never success.
//
// Packed bytes are the memory object's, tightly: rows of slices, as clEnqueueReadImage with pitches
// of 0 gives them; a buffer is one row.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/os/scoped_handle.h"
#include "client_icd/base/host_region.h"
#include "client_icd/session/info.h"
#include "client_icd/sharing/core/native_thread.h"
#include "client_icd/sharing/core/native_watch.h"

namespace sluice::client::sharing {

// How the bytes travel, best first (../README.md, "Ways"). Values as in CL/cl_sluice.h.
enum class Way : cl_uint { kImport = 1, kShadow = 2, kStaging = 3 };
const char* WayName(Way way);

// Which native object this is, for APIs that refuse a second memory object of one.
struct NativeKey {
  uint64_t object = 0;  // A pointer or name, which the NativeObject keeps from being used again.
  uint32_t subresource = 0;
  uint32_t plane = 0;
  friend bool operator==(const NativeKey&, const NativeKey&) = default;
};

// The native object's memory as descriptors that another process can map or import.
struct ExportedMemory {
  enum class Kind { kMemfd, kDmaBuf, kD3d11Texture, kOpaqueFd };
  Kind kind = Kind::kMemfd;
  os::UniqueFd fd;
  // Of a texture: the worker takes and gives back its keyed mutex (broker/os/texture_sharing.h).
  bool keyed_mutex = false;
  // The place of the object's bytes in it. Pitches are of an image, 0 for a buffer.
  uint64_t offset = 0;
  uint64_t row_pitch = 0;
  uint64_t slice_pitch = 0;
  // Of an opaque descriptor, which only that device's driver opens: whose it is, and all of it.
  uint8_t device_uuid[16] = {};
  uint8_t driver_uuid[16] = {};
  uint64_t allocation_bytes = 0;
};

// Device memory of the worker that both sides can open: the adapter keeps it as a native object of
// its own and copies on the device.
struct ShadowMemory {
  os::UniqueFd fd;                // VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD.
  uint64_t allocation_bytes = 0;  // Of all of the memory: what an importer must say.
  uint64_t bytes = 0;             // Packed bytes of the object, from offset 0.
  uint8_t device_uuid[16] = {};
  uint8_t driver_uuid[16] = {};
  bool on_cpu = false;  // The worker's device works in the host's memory.
};

// Binary semaphores of the worker, opened as the memory is: the one that the native API signals for
// OpenCL, the one that it waits for.
struct ShadowSemaphores {
  os::UniqueFd to_opencl;
  os::UniqueFd from_opencl;
};

// How one copy to or from a shadow is ordered with what OpenCL does.
enum class ShadowSync {
  kHost,       // It begins after, and has ended before, what happens on the host.
  kSemaphore,  // By the semaphore of its direction.
};

// Is told of ends, each once at most, on any thread that found out; must not wait.
class EndListener {
 public:
  virtual ~EndListener() = default;
  // The worker is gone, or the context was terminated.
  virtual void OnSessionLost() = 0;
  // The memory object has gone, and no command of the worker's uses the native object's memory any
  // more. Perhaps long after the native object.
  virtual void OnMemoryGone() = 0;
};

class NativeObject {
 public:
  virtual ~NativeObject() = default;

  // Any thread; constant. Listens for the ends; null: nobody does.
  virtual std::shared_ptr<EndListener> end_listener() { return nullptr; }

  // Any thread; constant.
  virtual NativeKey key() const = 0;
  virtual NativeThread& thread() = 0;
  // True if the native object can be written at all: commands that would are refused if not.
  virtual bool writable() const { return true; }
  // Of one acquire or release of this object, from the moment thread() takes it up.
  virtual absl::Duration timeout() const { return absl::Seconds(10); }
  // If thread() has a watch: the turn by which the calls up to the next UseTurn say when they wait
  // for the application. After a call that was given up no other is made until it has returned.
  // Null: they belong to no command.
  virtual void UseTurn(NativeWatch::Turn*) {}

  // -- staging: there for almost all --

  // Any thread; constant. Why the bytes cannot go through this process, and what could be done.
  virtual absl::Status CanStage() const { return absl::OkStatus(); }

  // Any thread; constant. The object's bytes, if this process can address them: then nothing is
  // copied twice, and Fetch and Store, given null, only make the bytes ready for reading and tell
  // that they were written. An empty region: there is no such memory.
  virtual HostRegion host_memory() { return {}; }
  // Native contents to packed bytes. Nothing of it may be left to happen after the return.
  virtual cl_int Fetch(uint8_t* packed, absl::Time deadline) = 0;
  // The end of an acquire that has ended well: packed bytes to the native object, visible to its
  // API on return.
  virtual cl_int Store(const uint8_t* packed, absl::Time deadline) = 0;
  // In place of Store if no command wrote the object, or its acquire failed: nothing is to be
  // stored. Also in place of CopyFromShadow.
  virtual cl_int ReleaseUnchanged(absl::Time) { return CL_SUCCESS; }

  // After an acquire of this object that went well, when the command failed at another one: what
  // the acquire took is given back. A release may follow all the same.
  virtual void UndoAcquire() {}

  // -- import: the device uses the native memory itself --

  // Any thread, while the memory object is made. An error says why not, for the log; the core falls
  // back.
  virtual absl::StatusOr<ExportedMemory> Export() {
    return absl::UnimplementedError("the object cannot be exported");
  }
  // In place of Fetch and Store: pending native work is waited for; what OpenCL wrote is made
  // visible. No bytes move.
  virtual cl_int BeginImported(absl::Time) { return CL_SUCCESS; }
  virtual cl_int EndImported(bool /*written*/, absl::Time) { return CL_SUCCESS; }

  // -- device shadow: the worker's memory, or a native object of this side's --

  // Any thread, while the memory object is made: whether AttachShadow is worth asking for.
  virtual bool CanShadow() const { return false; }
  virtual absl::Status AttachShadow(ShadowMemory) {
    return absl::UnimplementedError("the API imports no memory");
  }
  // The same of semaphores, after AttachShadow. `stuck` is called, on any thread, if a signal that
  // CopyToShadow has promised will not come: what waits for it in the worker would wait for ever.
  virtual bool CanSignal() const { return false; }
  virtual absl::Status AttachSemaphores(ShadowSemaphores, std::function<void()> /*stuck*/) {
    return absl::UnimplementedError("the API imports no semaphore of another process");
  }
  // Any thread, while the memory object is made: whether it is this side that makes it. An opaque
  // descriptor becomes a buffer; the memory object is another beside it.
  virtual bool MakesShadow() const { return false; }
  virtual absl::StatusOr<ExportedMemory> MakeShadow() {
    return absl::UnimplementedError("the API makes no memory for another process");
  }
  // The worker could not open it.
  virtual void DropShadow() {}
  // With a semaphore it returns when the copy and the signal behind it have been given to the
  // device. A failure may have signalled, or not.
  virtual cl_int CopyToShadow(ShadowSync, absl::Time) { return CL_INVALID_OPERATION; }
  // Has waited for the semaphore if it succeeds; that signal has been given to the device.
  virtual cl_int CopyFromShadow(ShadowSync, absl::Time) { return CL_INVALID_OPERATION; }

  // In place of EndImported and CopyFromShadow after commands that failed: memory that the device
  // uses itself may be half-written.
  virtual cl_int BreakOff(bool /*written*/, absl::Time deadline) {
    return ReleaseUnchanged(deadline);
  }

  // -- queries: any thread --

  // The API's own names of clGetMemObjectInfo and clGetImageInfo (ApiRules::mem_param and others).
  virtual cl_int GetMemInfo(cl_mem_info, const InfoSink&) { return CL_INVALID_VALUE; }
  virtual cl_int GetImageInfo(cl_image_info, const InfoSink&) { return CL_INVALID_VALUE; }
};

}  // namespace sluice::client::sharing
