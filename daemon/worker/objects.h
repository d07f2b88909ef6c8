// SPDX-License-Identifier: Apache-2.0
// The worker's record of each OpenCL object of its session. Objects are shared with whatever still
// works on them (a build, a transfer), so that a release never pulls one away. The session thread
// changes them; the fields that other threads read are constant after construction.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "daemon/worker/cl_handle.h"
#include "daemon/worker/driver_quirks.h"
#include "daemon/worker/guards.h"
#include "daemon/worker/memory/placement.h"
#include "daemon/worker/memory/zero_fill.h"
#include "proto/heap_span.h"
#include "proto/image_format.h"

namespace sluice::v1 {
class ProgramRecord;
}  // namespace sluice::v1

namespace sluice::worker {

enum class ObjectType {
  kDevice,
  kContext,
  kQueue,
  kMemory,
  kProgram,
  kKernel,
  kEvent,
  kSampler,
  kSvm,
  kFailed
};

struct Object {
  explicit Object(ObjectType object_type) : type(object_type) {}
  virtual ~Object() = default;
  const ObjectType type;
};

struct DeviceObject : Object {
  static constexpr ObjectType kType = ObjectType::kDevice;
  static constexpr cl_int kInvalid = CL_INVALID_DEVICE;
  DeviceObject() : Object(kType) {}
  uint64_t id = 0;
  uint64_t key = 0;  // Of one of the host's (device_list.h).
  cl_device_id handle = nullptr;
  cl_platform_id platform = nullptr;
  bool is_cpu = false;  // Shares memory with the host: buffers can live in the heap.
  DriverQuirks quirks;
  UniqueCl<cl_device_id> sub_device;  // Owned if this is one.
};

struct ContextObject : Object {
  static constexpr ObjectType kType = ObjectType::kContext;
  static constexpr cl_int kInvalid = CL_INVALID_CONTEXT;
  ContextObject() : Object(kType), number(NextNumber()) {}
  bool Has(const DeviceObject& device) const {
    return std::any_of(devices.begin(), devices.end(),
                       [&device](const auto& one) { return one.get() == &device; });
  }
  const uint64_t number;  // No other's, ever: ids may be used again.
  uint64_t id = 0;
  UniqueCl<cl_context> handle;
  // Applications' queues of that context of the driver's, in a pool those of its other sessions too.
  std::shared_ptr<std::atomic<int>> queues = std::make_shared<std::atomic<int>>(0);
  std::vector<std::shared_ptr<DeviceObject>> devices;
  bool buffers_in_heap = false;
  bool pins = false;  // Its driver moves memory that it has pinned faster (pins.h).
  // True for the types of images that can lie there too, of those that were asked for.
  absl::flat_hash_map<cl_mem_object_type, bool> images_in_heap;
  OwedZeros zeros;
  // For work of ours: initial contents, chunks of transfers. In order.
  UniqueCl<cl_command_queue> own_queue;
  // The same, of one device each and with profiling: for transfers whose times the application is
  // told. Made when there is one.
  absl::flat_hash_map<cl_device_id, UniqueCl<cl_command_queue>> timed_queues;
  // Tells the client, if it asked (WatchDestruction). Beside this, those hold it who tell of the
  // context's memory objects: section 4.4 has the context's callback last, and the driver may still
  // have an object that nothing of ours keeps the context for.
  struct End {
    ~End() {
      if (tell) tell();
    }
    std::function<void()> tell;
  };
  const std::shared_ptr<End> end = std::make_shared<End>();
  // Its memory objects whose driver tells nobody of their end.
  std::vector<std::weak_ptr<struct MemoryObject>> watched;

 private:
  static uint64_t NextNumber() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
};

struct MemoryObject : Object {
  static constexpr ObjectType kType = ObjectType::kMemory;
  static constexpr cl_int kInvalid = CL_INVALID_MEM_OBJECT;
  MemoryObject() : Object(kType) {}
  ~MemoryObject() override;
  // Counts it there as long as it lives: one of the session's counts of shared objects.
  void CountIn(std::atomic<uint64_t>* count);
  // The same, beside it: how the two sides of a shadow wait for each other. Once.
  void CountOrderIn(std::atomic<uint64_t>* count);
  // It lies in `part`, which is all or a part of `held`. The driver holds that as well, until it has
  // destroyed the handle: commands in flight keep it beyond the client's release.
  void PlaceIn(const HeapSpan& part, std::shared_ptr<const HeapSpan> held);
  // The same, with a span of `heap` that is this object's alone.
  void PlaceIn(Heap* heap, std::shared_ptr<const HeapSpan> held);
  // Its place in the heap; null if it does not lie there.
  const HeapSpan* span() const {
    const auto* const place = std::get_if<InHeap>(&placement);
    return place == nullptr ? nullptr : &place->span;
  }
  const InShadow* shadow() const { return std::get_if<InShadow>(&placement); }
  // Null if it has none.
  std::shared_ptr<const Mirror> mirror() const {
    const auto* const place = std::get_if<WithMirror>(&placement);
    return place == nullptr ? nullptr : place->mirror;
  }
  uint64_t id = 0;
  UniqueCl<cl_mem> handle;
  std::shared_ptr<ContextObject> context;
  std::shared_ptr<MemoryObject>
      parent;  // Of a sub-buffer, or of an image made from another object.
  bool is_image = false;
  uint64_t size = 0;        // Bytes; buffers.
  size_t element_size = 0;  // Images.
  cl_mem_object_type image_type = 0;
  Placement placement;
  wire::ImageLayout layout;   // Of an image in the heap; of others the extent.
  uint64_t image_offset = 0;  // Of a buffer that is an image's shadow: where its bytes begin.
  // Of an object that the client's API uses as well, in turn (change_of_hands.h).
  std::shared_ptr<const struct ChangeOfHands> hands;
  // EnqueueMapShared: map id -> the driver's pointer; null: it was not asked.
  absl::flat_hash_map<uint64_t, void*> maps;
  // Tells the client, if it asked (WatchDestruction) and the driver tells nobody.
  std::function<void()> on_destroyed;
  // It is among its context's OwedZeros. False once another thread can hold the object.
  bool owes_zeros = false;
  uint64_t charged_bytes = 0;  // To the session's quota.
  std::atomic<uint64_t>* counted_in = nullptr;
  std::atomic<uint64_t>* order_counted_in = nullptr;
  class Session* session = nullptr;
};

// How an application asked for argument information (-cl-kernel-arg-info, which our builds always
// have): drivers differ in what they tell of kernels that were built with no options at all
// and with others. Of what is linked, the strongest counts: kYes is the least.
enum class ArgInfoAsked : uint8_t { kYes, kWithoutOptions, kNo };

struct ProgramObject : Object {
  static constexpr ObjectType kType = ObjectType::kProgram;
  static constexpr cl_int kInvalid = CL_INVALID_PROGRAM;
  ProgramObject() : Object(kType) {}
  uint64_t id = 0;
  PublishedCl<cl_program> handle;  // Null until a link has ended: set by the build thread.
  std::shared_ptr<ContextObject> context;
  std::vector<std::shared_ptr<DeviceObject>> devices;
  // Of the binary that it was made of; null: nothing is known but what the driver says.
  std::shared_ptr<const v1::ProgramRecord> record;
  ArgInfoAsked arg_info_asked = ArgInfoAsked::kYes;  // Of its last build.
  bool may_print = false;                            // Its kernels, as far as a text search tells.
};

struct KernelObject : Object {
  static constexpr ObjectType kType = ObjectType::kKernel;
  static constexpr cl_int kInvalid = CL_INVALID_KERNEL;
  KernelObject() : Object(kType) {}
  uint64_t id = 0;
  UniqueCl<cl_kernel> handle;
  std::shared_ptr<ProgramObject> program;
  std::vector<int> arg_kinds;  // pb::KernelArgDescription::Kind of each.
  // Arguments that could not be set, with the codes of that: no launch takes the ones before them.
  std::map<uint32_t, cl_int> refused_args;
};

struct EventObject : Object {
  static constexpr ObjectType kType = ObjectType::kEvent;
  static constexpr cl_int kInvalid = CL_INVALID_EVENT;
  EventObject() : Object(kType) {}
  UniqueCl<cl_event> handle;    // Null if the driver never saw the command:
  cl_int failed = CL_SUCCESS;   // it was refused, with this code, or is complete.
  uint64_t context_number = 0;  // Of the handle's ContextObject.
  // The lane of a command that ends with a later one of its queue (CompletionOrder); else null.
  std::shared_ptr<class CompletionLane> ends_with_later_of;
  bool is_complete() const { return handle.get() == nullptr && failed == CL_SUCCESS; }
  bool is_user = false;
  bool can_run = false;          // As CompletionOrder::can_run of its command.
  std::shared_ptr<Guard> guard;  // A user event's own, once something waits for it.
  Guards guards;                 // Of what a command may fail by.
};

struct SamplerObject : Object {
  static constexpr ObjectType kType = ObjectType::kSampler;
  static constexpr cl_int kInvalid = CL_INVALID_SAMPLER;
  SamplerObject() : Object(kType) {}
  std::shared_ptr<ContextObject> context;
  UniqueCl<cl_sampler> handle;
};

struct SvmObject : Object {
  static constexpr ObjectType kType = ObjectType::kSvm;
  static constexpr cl_int kInvalid = CL_INVALID_VALUE;
  SvmObject() : Object(kType) {}
  std::shared_ptr<ContextObject> context;
  std::shared_ptr<const HeapSpan> span;  // Buffers over it hold it as well.
};

// Left behind by a creation that failed and that nobody waited for (Command.unasked_for).
struct FailedObject : Object {
  static constexpr ObjectType kType = ObjectType::kFailed;
  explicit FailedObject(cl_int status) : Object(kType), code(status) {}
  ~FailedObject() override {
    if (on_released) on_released();
  }
  const cl_int code;
  std::function<void()> on_released;  // Tells the client, if it asked (WatchDestruction).
};

}  // namespace sluice::worker
