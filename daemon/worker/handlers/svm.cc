// SPDX-License-Identifier: Apache-2.0
// Shared virtual memory lies in heap segments that client and worker map at one address. The
// addresses in these commands come from the client: each is looked up in the session's SVM objects
// before a driver sees it.
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/queues/enqueuer.h"

namespace sluice::worker {
namespace {

// Charged to the session until nothing holds it any more, a buffer over it neither.
std::shared_ptr<const HeapSpan> Charge(Session& session, std::shared_ptr<const HeapSpan> span) {
  const HeapSpan* const memory = span.get();
  return {memory, [quota = &session.quota(), bytes = memory->size,
                   span = std::move(span)](const HeapSpan*) mutable {
            span = nullptr;
            quota->ReturnMemory(bytes);
          }};
}

// The fill of a buffer over the memory, which the driver keeps until the command has ended.
HandlerResult FillAsBuffer(Enqueuer& enqueue, void* destination, const pb::EnqueueSvmMemFill& cmd) {
  cl_int status = CL_SUCCESS;
  const UniqueCl<cl_mem> buffer(cl().clCreateBuffer(enqueue.queue().context->handle.get(),
                                                    CL_MEM_USE_HOST_PTR, cmd.size(), destination,
                                                    &status));
  if (status != CL_SUCCESS) return status;
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueFillBuffer(queue, buffer.get(), cmd.pattern().data(),
                                        cmd.pattern().size(), 0, cmd.size(), waits, list, event);
      });
}

}  // namespace

HandlerResult HandleSvmAlloc(Session& session, const pb::SvmAlloc& cmd, Call& call) {
  auto memory = std::make_shared<SvmObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  if (!memory->context->buffers_in_heap) return CL_INVALID_OPERATION;
  if (!session.quota().ChargeMemory(cmd.size())) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  auto span = session.svm_heap().Allocate(cmd.size());
  if (!span.ok()) {
    session.quota().ReturnMemory(cmd.size());
    return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  }
  memory->span = Charge(session, session.svm_heap().Hold(*span));
  pb::MemoryPlacement& placement = *call.answer.mutable_memory();
  placement.set_in_heap(true);
  placement.set_segment(span->segment);
  placement.set_offset(span->offset);
  return session.Add(cmd.svm_id(), std::move(memory));
}

HandlerResult HandleSvmFree(Session& session, const pb::SvmFree& cmd, Call&) {
  if (session.objects().Peek<SvmObject>(cmd.svm_id()) == nullptr) return CL_INVALID_VALUE;
  session.objects().Erase(cmd.svm_id());
  return CL_SUCCESS;
}

HandlerResult HandleEnqueueSvmMemcpy(Session& session, const pb::EnqueueSvmMemcpy& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  if (!enqueue.ok()) return enqueue.answer();
  void* const destination = session.objects().SvmPointer(cmd.destination(), cmd.size());
  const void* const source = session.objects().SvmPointer(cmd.source(), cmd.size());
  if (destination == nullptr || source == nullptr || cl().clEnqueueSVMMemcpy == nullptr)
    return CL_INVALID_VALUE;
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueSVMMemcpy(queue, CL_FALSE, destination, source, cmd.size(), waits,
                                       list, event);
      });
}

HandlerResult HandleEnqueueSvmMemFill(Session& session, const pb::EnqueueSvmMemFill& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  if (!enqueue.ok()) return enqueue.answer();
  void* const destination = session.objects().SvmPointer(cmd.destination(), cmd.size());
  if (destination == nullptr || cl().clEnqueueSVMMemFill == nullptr) return CL_INVALID_VALUE;
  if (enqueue.queue().device->quirks.knows_own_svm_only)
    return FillAsBuffer(enqueue, destination, cmd);
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueSVMMemFill(queue, destination, cmd.pattern().data(),
                                        cmd.pattern().size(), cmd.size(), waits, list, event);
      });
}

HandlerResult HandleEnqueueSvmMap(Session& session, const pb::EnqueueSvmMap& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  if (!enqueue.ok()) return enqueue.answer();
  void* const pointer = session.objects().SvmPointer(cmd.pointer(), cmd.size());
  if (pointer == nullptr || cl().clEnqueueSVMMap == nullptr) return CL_INVALID_VALUE;
  if (enqueue.queue().device->quirks.knows_own_svm_only) return enqueue.RunWithoutWork();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueSVMMap(queue, CL_FALSE, cmd.map_flags(), pointer, cmd.size(), waits,
                                    list, event);
      });
}

HandlerResult HandleEnqueueSvmUnmap(Session& session, const pb::EnqueueSvmUnmap& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  if (!enqueue.ok()) return enqueue.answer();
  void* const pointer = session.objects().SvmPointer(cmd.pointer(), 1);
  if (pointer == nullptr || cl().clEnqueueSVMUnmap == nullptr) return CL_INVALID_VALUE;
  if (enqueue.queue().device->quirks.knows_own_svm_only) return enqueue.RunWithoutWork();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueSVMUnmap(queue, pointer, waits, list, event);
      });
}

HandlerResult HandleEnqueueSvmMigrateMem(Session& session, const pb::EnqueueSvmMigrateMem& cmd,
                                         Call&) {
  Enqueuer enqueue(session, cmd.on());
  if (!enqueue.ok()) return enqueue.answer();
  if (cmd.sizes_size() != cmd.pointers_size())
    return absl::InvalidArgumentError("migration of ranges without sizes");
  struct Ranges {
    std::vector<const void*> pointers;
    std::vector<size_t> sizes;
  };
  const auto ranges = std::make_shared<Ranges>();  // Kept, as the list of a memory migration is.
  for (int i = 0; i < cmd.pointers_size(); ++i) {
    ranges->pointers.push_back(session.objects().SvmPointer(cmd.pointers(i), cmd.sizes(i)));
    ranges->sizes.push_back(cmd.sizes(i));
    if (ranges->pointers.back() == nullptr) return CL_INVALID_VALUE;
  }
  if (cl().clEnqueueSVMMigrateMem == nullptr) return CL_INVALID_OPERATION;
  if (enqueue.queue().device->quirks.knows_own_svm_only) return enqueue.RunWithoutWork();
  auto carried = std::make_unique<Carried>();
  carried->keep = ranges;
  const HandlerResult migrated = enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueSVMMigrateMem(queue, static_cast<cl_uint>(ranges->pointers.size()),
                                           ranges->pointers.data(), ranges->sizes.data(),
                                           cmd.flags(), waits, list, event);
      },
      std::move(carried));
  if (migrated.is_violation() || migrated.status() != CL_INVALID_VALUE) return migrated;
  // The driver knows the memory of its own clSVMAlloc alone (driver_quirks.h): a hint it has no
  // use for. The command still waits for what it waits for.
  return enqueue.RunWithoutWork();
}

}  // namespace sluice::worker
