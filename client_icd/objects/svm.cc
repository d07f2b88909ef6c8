// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/svm.h"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client_icd/base/api.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/enqueue.h"

namespace sluice::client {
namespace {

constexpr cl_uint kMostAlignment = 4096;  // The alignment of all that lies in the heap.

struct Allocation {
  uint64_t svm_id;
  uint64_t context_id;
  std::weak_ptr<Session> session;
  size_t bytes;
};

class SvmTable {
 public:
  // Never destroyed: threads may outlive static destruction.
  static SvmTable& Get() {
    static SvmTable* const table = new SvmTable();
    return *table;
  }

  void Add(uintptr_t address, Allocation allocation) {
    absl::MutexLock lock(&mu_);
    // The allocation that lay here before belonged to a session that is gone.
    auto it = allocations_.lower_bound(address);
    if (it != allocations_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > address)
      --it;
    while (it != allocations_.end() && it->first < address + allocation.bytes)
      it = allocations_.erase(it);
    allocations_.emplace(address, std::move(allocation));
  }

  // Takes out the allocation that begins at the address.
  bool Take(const Context& context, uintptr_t address, Allocation* allocation) {
    absl::MutexLock lock(&mu_);
    const auto it = allocations_.find(address);
    if (it == allocations_.end() || !IsOf(context, it->second)) return false;
    *allocation = std::move(it->second);
    allocations_.erase(it);
    return true;
  }

  // Nothing if the address lies in no allocation of the context.
  std::optional<SvmPlace> Find(const Context& context, uintptr_t address) {
    absl::MutexLock lock(&mu_);
    auto it = allocations_.upper_bound(address);
    if (it == allocations_.begin()) return std::nullopt;
    --it;
    const Allocation& allocation = it->second;
    const size_t offset = address - it->first;
    if (!IsOf(context, allocation) || offset >= allocation.bytes) return std::nullopt;
    return SvmPlace{allocation.svm_id, offset, allocation.bytes - offset};
  }

 private:
  static bool IsOf(const Context& context, const Allocation& allocation) {
    return allocation.context_id == context.id() &&
           allocation.session.lock() == context.session_ptr();
  }

  absl::Mutex mu_;
  std::map<uintptr_t, Allocation> allocations_ ABSL_GUARDED_BY(mu_);
};

bool HasSvm(const Device& device) {
  return device.info().Scalar<cl_device_svm_capabilities>(CL_DEVICE_SVM_CAPABILITIES, 0) != 0;
}

// True if [pointer, pointer + bytes) lies in one allocation of the context.
bool Contains(const Context& context, const void* pointer, size_t bytes) {
  const std::optional<SvmPlace> place = FindSvm(context, pointer);
  return place.has_value() && bytes <= place->bytes;
}

// The queue of an SVM command (section 5.6.1): CL_INVALID_OPERATION if its device does not support
// SVM.
cl_int FindQueue(cl_command_queue handle, Queue** queue) {
  *queue = Queue::FromHost(handle);
  if (*queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  const bool has_svm =
      HasSvm((*queue)->device()) && (*queue)->session().transport().shares_memory();
  return has_svm ? CL_SUCCESS : CL_INVALID_OPERATION;
}

// As long as it lives, what is written from there is not taken early (PendingDestinations).
class PendingDestination {
 public:
  PendingDestination(Queue* queue, const HostRegion& region) : queue_(queue), region_(region) {
    queue_->session().pending_destinations().Add(region_);
  }
  ~PendingDestination() { queue_->session().pending_destinations().Remove(region_); }
  PendingDestination(const PendingDestination&) = delete;
  PendingDestination& operator=(const PendingDestination&) = delete;

 private:
  const Ref<Queue> queue_;
  const HostRegion region_;
};

void FreeNow(const Context& context, void* pointer) {
  Allocation allocation;
  if (pointer == nullptr ||
      !SvmTable::Get().Take(context, reinterpret_cast<uintptr_t>(pointer), &allocation))
    return;
  ScopedCommand command;
  command->mutable_svm_free()->set_svm_id(allocation.svm_id);
  context.stream().Post(*command);
}

// A copy of which one side, or both, is ordinary memory of the application. The bytes are copied
// here, between two commands: the first ends when they may be, a user event that the copy sets lets
// the second go on, whose event is the application's. They map and unmap the SVM side; without one
// they are markers. Both have the wait list, so that the second fails with it too.
struct HostCopy {
  void* destination;
  const void* source;
  size_t bytes;
  bool to_svm;
  bool from_svm;

  bool any_svm() const { return to_svm || from_svm; }
  uint64_t svm() const { return reinterpret_cast<uintptr_t>(to_svm ? destination : source); }
};

cl_int SubmitBeforeCopy(EnqueueCall* call, const HostCopy& copy) {
  if (!copy.any_svm()) return call->SubmitNothing();
  pb::EnqueueSvmMap& body = *call->command().mutable_enqueue_svm_map();
  body.set_map_flags(copy.to_svm ? CL_MAP_WRITE : CL_MAP_READ);
  body.set_pointer(copy.svm());
  body.set_size(copy.bytes);
  return call->Submit(body.mutable_on());
}

cl_int SubmitAfterCopy(EnqueueCall* call, const HostCopy& copy, uint64_t gate_id, bool blocking) {
  if (!copy.any_svm()) {
    call->command().mutable_enqueue_marker()->mutable_on()->add_wait_event_ids(gate_id);
    return call->SubmitNothing(blocking);
  }
  pb::EnqueueSvmUnmap& body = *call->command().mutable_enqueue_svm_unmap();
  body.set_pointer(copy.svm());
  body.mutable_on()->add_wait_event_ids(gate_id);
  return blocking ? call->SubmitBlocking(body.mutable_on()) : call->Submit(body.mutable_on());
}

cl_int SubmitHostCopy(Queue* queue, const HostCopy& copy, bool blocking, cl_uint num_events,
                      const cl_event* wait_list, cl_event* event) {
  const uint64_t gate_id = queue->session().NextId();
  EnqueueCall before(queue, num_events, wait_list, nullptr, CL_COMMAND_SVM_MAP);
  CL_RETURN_IF_ERROR(before.status());
  EnqueueCall after(queue, num_events, wait_list, event, CL_COMMAND_SVM_MEMCPY);
  CL_RETURN_IF_ERROR(after.status());
  {
    ScopedCommand gate;
    gate->mutable_create_user_event()->set_event_id(gate_id);
    gate->mutable_create_user_event()->set_context_id(queue->context().id());
    if (!queue->stream().Post(*gate)) return queue->session().lost_code();
  }
  std::shared_ptr<PendingDestination> pending;
  if (!copy.to_svm)
    pending = std::make_shared<PendingDestination>(queue, HostRegion(copy.destination, copy.bytes));
  before.SoonWhenEnded([copy, gate_id, pending, kept = Ref<Queue>(queue)](cl_int status) {
    if (status == CL_COMPLETE) std::memcpy(copy.destination, copy.source, copy.bytes);
    ScopedCommand open;
    open->mutable_set_user_event_status()->set_event_id(gate_id);
    open->mutable_set_user_event_status()->set_status(status == CL_COMPLETE ? CL_COMPLETE : status);
    kept->stream().Post(*open);
  });
  pending = nullptr;
  // Not before: the first may have ended by the time that the second, which names the gate, is
  // posted.
  after.WhenEnded(
      [gate_id, kept = Ref<Queue>(queue)](cl_int) { kept->session().ReleaseEvent(gate_id); });
  CL_RETURN_IF_ERROR(SubmitBeforeCopy(&before, copy));
  return SubmitAfterCopy(&after, copy, gate_id, blocking);
}

cl_int SubmitUnmap(Queue* queue, void* pointer, cl_uint num_events, const cl_event* wait_list,
                   cl_event* event) {
  EnqueueCall call(queue, num_events, wait_list, event, CL_COMMAND_SVM_UNMAP);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueSvmUnmap& body = *call.command().mutable_enqueue_svm_unmap();
  body.set_pointer(reinterpret_cast<uintptr_t>(pointer));
  return call.Submit(body.mutable_on());
}

bool Overlap(uintptr_t a, uintptr_t b, size_t bytes) { return a < b + bytes && b < a + bytes; }

}  // namespace

bool SupportsSvm(const Context& context) {
  if (!context.session().transport().shares_memory()) return false;
  for (const Device* device : context.devices()) {
    if (HasSvm(*device)) return true;
  }
  return false;
}

std::optional<SvmPlace> FindSvm(const Context& context, const void* pointer) {
  return SvmTable::Get().Find(context, reinterpret_cast<uintptr_t>(pointer));
}

bool IsSvmPointer(const Context& context, const void* pointer) {
  return FindSvm(context, pointer).has_value();
}

namespace api {

void* CL_API_CALL clSVMAlloc(cl_context context_handle, cl_svm_mem_flags flags, size_t size,
                             cl_uint alignment) noexcept {
  Context* context = Context::From(context_handle);
  // Section 5.6.1: clSVMAlloc fails, returning NULL, if context is not valid, no device supports
  // SVM, or flags contain CL_MEM_SVM_ATOMICS without CL_MEM_SVM_FINE_GRAIN_BUFFER. Also if values
  // are not supported, size is 0 or too large for a device, or alignment is not a power of two.
  if (context == nullptr || !SupportsSvm(*context)) return nullptr;
  constexpr cl_svm_mem_flags kAccess = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
  constexpr cl_svm_mem_flags kKnown = kAccess | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
  if ((flags & ~kKnown) != 0 || __builtin_popcountll(flags & kAccess) > 1) return nullptr;
  if ((flags & CL_MEM_SVM_ATOMICS) != 0 && (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) == 0)
    return nullptr;
  if (size == 0 || (alignment & (alignment - 1)) != 0 || alignment > kMostAlignment) return nullptr;
  cl_device_svm_capabilities capabilities = 0;
  for (const Device* device : context->devices()) {
    capabilities |=
        device->info().Scalar<cl_device_svm_capabilities>(CL_DEVICE_SVM_CAPABILITIES, 0);
    if (size > device->info().Scalar<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE, ~cl_ulong{0}))
      return nullptr;
  }
  const bool fine = (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) != 0;
  if (fine && (capabilities & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) == 0) return nullptr;
  if ((flags & CL_MEM_SVM_ATOMICS) != 0 && (capabilities & CL_DEVICE_SVM_ATOMICS) == 0)
    return nullptr;

  const uint64_t svm_id = context->session().NextId();
  ScopedCommand command;
  pb::SvmAlloc& body = *command->mutable_svm_alloc();
  body.set_svm_id(svm_id);
  body.set_context_id(context->id());
  body.set_flags(flags);
  body.set_size(size);
  body.set_alignment(alignment);
  pb::Answer answer;
  if (context->stream().Call(*command, {}, &answer) != CL_SUCCESS) return nullptr;
  const pb::MemoryPlacement& placement = answer.memory();
  uint8_t* memory = nullptr;
  if (placement.in_heap())
    memory = context->session().transport().Map({placement.segment(), placement.offset(), size});
  if (memory == nullptr) {
    ScopedCommand release;
    release->mutable_svm_free()->set_svm_id(svm_id);
    context->stream().Post(*release);
    return nullptr;
  }
  SvmTable::Get().Add(reinterpret_cast<uintptr_t>(memory),
                      {svm_id, context->id(), context->session_ptr(), size});
  return memory;
}

void CL_API_CALL clSVMFree(cl_context context_handle, void* svm_pointer) noexcept {
  Context* context = Context::From(context_handle);
  if (context != nullptr) FreeNow(*context, svm_pointer);
}

cl_int CL_API_CALL
clEnqueueSVMFree(cl_command_queue command_queue, cl_uint num_svm_pointers, void* svm_pointers[],
                 void(CL_CALLBACK* pfn_free_func)(cl_command_queue queue, cl_uint num_svm_pointers,
                                                  void* svm_pointers[], void* user_data),
                 void* user_data, cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                 cl_event* event) noexcept {
  Queue* queue = nullptr;
  CL_RETURN_IF_ERROR(FindQueue(command_queue, &queue));
  // Section 5.6.1: CL_INVALID_VALUE if num_svm_pointers is 0 and svm_pointers is non-NULL, or if
  // svm_pointers is NULL and num_svm_pointers is not 0.
  if ((num_svm_pointers == 0) != (svm_pointers == nullptr)) return CL_INVALID_VALUE;
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event, CL_COMMAND_SVM_FREE);
  CL_RETURN_IF_ERROR(call.status());
  if (pfn_free_func != nullptr) CL_RETURN_IF_ERROR(queue->session().callbacks().Ready());
  std::vector<void*> pointers(svm_pointers, svm_pointers + num_svm_pointers);
  call.SoonWhenEnded([=, kept = Ref<Queue>(queue)](cl_int status) {
    if (status != CL_COMPLETE) return;
    if (pfn_free_func == nullptr) {
      for (void* pointer : pointers) FreeNow(kept->context(), pointer);
      return;
    }
    kept->session().callbacks().Add([=, pointers = std::vector<void*>(pointers)]() mutable {
      pfn_free_func(kept->handle(), static_cast<cl_uint>(pointers.size()), pointers.data(),
                    user_data);
    });
  });
  return call.SubmitNothing();
}

cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue command_queue, cl_bool blocking_copy,
                                      void* dst_ptr, const void* src_ptr, size_t size,
                                      cl_uint num_events_in_wait_list,
                                      const cl_event* event_wait_list, cl_event* event) noexcept {
  Queue* queue = nullptr;
  CL_RETURN_IF_ERROR(FindQueue(command_queue, &queue));
  // Section 5.6.1: CL_INVALID_VALUE if dst_ptr or src_ptr is NULL.
  if (dst_ptr == nullptr || src_ptr == nullptr) return CL_INVALID_VALUE;
  // CL_MEM_COPY_OVERLAP if the values specified for dst_ptr, src_ptr and size result in an
  // overlapping copy.
  const uintptr_t destination = reinterpret_cast<uintptr_t>(dst_ptr);
  const uintptr_t source = reinterpret_cast<uintptr_t>(src_ptr);
  if (size != 0 && Overlap(destination, source, size)) return CL_MEM_COPY_OVERLAP;
  const Context& context = queue->context();
  const bool to_svm = Contains(context, dst_ptr, size);
  const bool from_svm = Contains(context, src_ptr, size);
  const bool blocking = blocking_copy != CL_FALSE;
  // Neither shared memory nor the application's own: it begins in the one and ends elsewhere.
  if (size != 0 && ((!to_svm && IsSvmPointer(context, dst_ptr)) ||
                    (!from_svm && IsSvmPointer(context, src_ptr))))
    return CL_INVALID_VALUE;
  if (size != 0 && !(to_svm && from_svm)) {
    return SubmitHostCopy(queue, {dst_ptr, src_ptr, size, to_svm, from_svm}, blocking,
                          num_events_in_wait_list, event_wait_list, event);
  }
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event, CL_COMMAND_SVM_MEMCPY);
  CL_RETURN_IF_ERROR(call.status());
  if (size == 0) return call.SubmitNothing(blocking);
  pb::EnqueueSvmMemcpy& body = *call.command().mutable_enqueue_svm_memcpy();
  body.set_destination(destination);
  body.set_source(source);
  body.set_size(size);
  return blocking ? call.SubmitBlocking(body.mutable_on()) : call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueSVMMemFill(cl_command_queue command_queue, void* svm_ptr,
                                       const void* pattern, size_t pattern_size, size_t size,
                                       cl_uint num_events_in_wait_list,
                                       const cl_event* event_wait_list, cl_event* event) noexcept {
  Queue* queue = nullptr;
  CL_RETURN_IF_ERROR(FindQueue(command_queue, &queue));
  // Section 5.6.1: CL_INVALID_VALUE if svm_ptr is NULL or not aligned to pattern_size bytes. Also
  // if pattern is NULL or pattern_size is 0 or not one of {1, 2, 4, ..., 128}, or if size is not a
  // multiple of pattern_size.
  if (svm_ptr == nullptr || pattern == nullptr || pattern_size == 0 || pattern_size > 128)
    return CL_INVALID_VALUE;
  if ((pattern_size & (pattern_size - 1)) != 0 || size % pattern_size != 0) return CL_INVALID_VALUE;
  if (reinterpret_cast<uintptr_t>(svm_ptr) % pattern_size != 0) return CL_INVALID_VALUE;
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event, CL_COMMAND_SVM_MEMFILL);
  CL_RETURN_IF_ERROR(call.status());
  if (size == 0) return call.SubmitNothing();
  if (!Contains(queue->context(), svm_ptr, size)) return CL_INVALID_VALUE;
  pb::EnqueueSvmMemFill& body = *call.command().mutable_enqueue_svm_mem_fill();
  body.set_destination(reinterpret_cast<uintptr_t>(svm_ptr));
  body.set_pattern(pattern, pattern_size);
  body.set_size(size);
  return call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueSVMMap(cl_command_queue command_queue, cl_bool blocking_map,
                                   cl_map_flags flags, void* svm_ptr, size_t size,
                                   cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                   cl_event* event) noexcept {
  Queue* queue = nullptr;
  CL_RETURN_IF_ERROR(FindQueue(command_queue, &queue));
  // Section 5.6.1: CL_INVALID_VALUE if svm_ptr is NULL, if size is 0, or if values specified in
  // map_flags are not valid.
  constexpr cl_map_flags kReadWrite = CL_MAP_READ | CL_MAP_WRITE;
  if (svm_ptr == nullptr || size == 0 || !Contains(queue->context(), svm_ptr, size))
    return CL_INVALID_VALUE;
  if ((flags & ~(kReadWrite | CL_MAP_WRITE_INVALIDATE_REGION)) != 0) return CL_INVALID_VALUE;
  if ((flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 && (flags & kReadWrite) != 0)
    return CL_INVALID_VALUE;
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event, CL_COMMAND_SVM_MAP);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueSvmMap& body = *call.command().mutable_enqueue_svm_map();
  body.set_map_flags(flags);
  body.set_pointer(reinterpret_cast<uintptr_t>(svm_ptr));
  body.set_size(size);
  if (blocking_map == CL_FALSE) return call.Submit(body.mutable_on());
  const cl_int status = call.SubmitBlocking(body.mutable_on());
  // The application takes it for not mapped.
  if (call.ReturnsLateError()) SubmitUnmap(queue, svm_ptr, 0, nullptr, nullptr);
  return status;
}

cl_int CL_API_CALL clEnqueueSVMUnmap(cl_command_queue command_queue, void* svm_ptr,
                                     cl_uint num_events_in_wait_list,
                                     const cl_event* event_wait_list, cl_event* event) noexcept {
  Queue* queue = nullptr;
  CL_RETURN_IF_ERROR(FindQueue(command_queue, &queue));
  // Section 5.6.1: CL_INVALID_VALUE if svm_ptr is NULL.
  if (svm_ptr == nullptr || !IsSvmPointer(queue->context(), svm_ptr)) return CL_INVALID_VALUE;
  return SubmitUnmap(queue, svm_ptr, num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL clEnqueueSVMMigrateMem(cl_command_queue command_queue, cl_uint num_svm_pointers,
                                          const void** svm_pointers, const size_t* sizes,
                                          cl_mem_migration_flags flags,
                                          cl_uint num_events_in_wait_list,
                                          const cl_event* event_wait_list,
                                          cl_event* event) noexcept {
  Queue* queue = nullptr;
  CL_RETURN_IF_ERROR(FindQueue(command_queue, &queue));
  // Section 5.6.1: CL_INVALID_VALUE if num_svm_pointers is zero or svm_pointers is NULL, or if
  // sizes[i] is non-zero and the range is not within an existing clSVMAlloc allocation.
  if (num_svm_pointers == 0 || svm_pointers == nullptr) return CL_INVALID_VALUE;
  if ((flags & ~(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED)) != 0)
    return CL_INVALID_VALUE;
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_SVM_MIGRATE_MEM);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueSvmMigrateMem& body = *call.command().mutable_enqueue_svm_migrate_mem();
  for (cl_uint i = 0; i < num_svm_pointers; ++i) {
    const size_t size = sizes != nullptr ? sizes[i] : 0;
    if (!Contains(queue->context(), svm_pointers[i], size != 0 ? size : 1)) return CL_INVALID_VALUE;
    body.add_pointers(reinterpret_cast<uintptr_t>(svm_pointers[i]));
    body.add_sizes(size);
  }
  body.set_flags(flags);
  return call.Submit(body.mutable_on());
}

}  // namespace api
}  // namespace sluice::client
