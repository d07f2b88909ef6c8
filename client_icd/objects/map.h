// SPDX-License-Identifier: Apache-2.0
// A memory object's mappings: regions that the application may touch between clEnqueueMap* and
// clEnqueueUnmapMemObject. Four sorts of memory are handed out:
//
//   heap      buffers and images in the shared heap, of which SVM is a part: the very bytes,
//             nothing travels; the commands are EnqueueMapShared and EnqueueUnmapShared
//   host_ptr  CL_MEM_USE_HOST_PTR else: the application's memory; a read command, a write command
//   mirror    CL_MEM_ALLOC_HOST_PTR buffers of a GPU: memory of the worker's driver; a read command
//             and a write command that carry no bytes
//   shadow    everything else: memory of the client, laid out as the object is; the same commands
//
// One shadow belongs to one root object, so that overlapping mappings are coherent. It is there
// from the first map until the last mapping is gone and the commands of its bytes have ended: each
// of them holds a share. A mapping that was handed out stays until its unmap, also if its command
// fails later: the application has the pointer. It keeps its object, as with other drivers: what
// the application has released can still be touched and unmapped. Not so of a lost session, and not
// a shared object, for whose end others wait: those mappings go with it. An unmap that is enqueued
// before that command has ended waits for it, and fails with it: there is nothing yet that could go
// back. Mappings is owned by its MemObject. Thread-safe.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/map_shadow.h"
#include "client_icd/objects/event.h"

namespace sluice::client {

class EnqueueCall;
class Queue;
class HostRegion;
class MemObject;

struct Mapping {
  void* pointer = nullptr;
  uint64_t map_id = 0;  // Of this mapping; also on the wire if it is shared.
  bool in_heap = false;
  cl_map_flags flags = 0;
  size_t offset = 0;  // A buffer's region.
  size_t bytes = 0;
  size_t image_origin[3] = {0, 0, 0};  // An image's.
  size_t image_region[3] = {0, 0, 0};
  std::shared_ptr<Shadow> shadow;
  Ref<Object> kept;     // The object that is mapped.
  Ref<Event> pending;   // Its command's, until that has ended. None of a blocking map.
  bool failed = false;  // Its command has failed: the contents never came.

  bool for_writing() const {
    return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0;
  }
};

class Mappings {
 public:
  // The root object's shadow, made if there is none. Null if there is not enough memory.
  std::shared_ptr<Shadow> GetShadow(ShadowPool* pool, size_t bytes);

  void Add(Mapping mapping);
  // Takes out the newest mapping that was handed out at `pointer`; false if there is none.
  bool Take(const void* pointer, Mapping* mapping);
  // The call failed: the application has no such mapping.
  void Remove(uint64_t map_id);
  // Keeps the object no more. For one whose session is lost.
  void Release();
  // The command has ended, after the call had returned perhaps.
  void SetEnded(uint64_t map_id, cl_int status);
  cl_uint count() const;

 private:
  mutable absl::Mutex mu_;
  std::vector<Mapping> mappings_ ABSL_GUARDED_BY(mu_);
  std::weak_ptr<Shadow> shadow_ ABSL_GUARDED_BY(mu_);
};

// A large blocking transfer of memory that lies in the shared heap needs no copy of the worker's:
// the region is mapped, the application's thread runs `copy`, and it is unmapped. The map is the
// command that the application's event stands for. `region` has offset and bytes, or image_origin
// and image_region, and the flags.
// Not in a queue with profiling, whose times are those of the driver's own command (section 5.14).
bool GoesThroughHeap(const Queue& queue, const MemObject& memory, bool blocking, uint64_t bytes);
cl_int CopyThroughHeap(EnqueueCall* call, MemObject* memory, Mapping region,
                       absl::FunctionRef<void()> copy);

// The elements of an image in the heap as a region of memory.
HostRegion ImageRegionInHeap(const MemObject& image, const size_t* origin, const size_t* region);

}  // namespace sluice::client
