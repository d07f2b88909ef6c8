// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/memory/whole_buffer.h"
#include "daemon/worker/memory/zero_fill.h"
#include "daemon/worker/queues/enqueuer.h"
#include "proto/codec.h"
#include "proto/heap_span.h"

namespace sluice::worker {
namespace {

// Of one memory object at a time, since they are counted nowhere else: far more than anybody has.
constexpr size_t kMaxMaps = 4096;

// A rect as the driver takes it. Volume and rows are checked against the buffer before anything is
// sized by them.
struct Rect {
  wire::Size3 origin;
  wire::Size3 region;
  size_t row_pitch = 0;
  size_t slice_pitch = 0;
  uint64_t bytes = 0;  // Packed.
};

bool DecodeRect(const pb::BufferRect& in, const MemoryObject& memory, Rect* out) {
  out->origin = wire::DecodeSize3(in.origin());
  out->region = wire::DecodeSize3(in.region());
  out->row_pitch = in.row_pitch();
  out->slice_pitch = in.slice_pitch();
  const size_t* const r = out->region.v;
  // The defaults of section 5.2.2, here because a driver that sees one chunk takes the chunk's.
  if (out->row_pitch == 0) out->row_pitch = r[0];
  if (out->slice_pitch == 0 && __builtin_mul_overflow(r[1], out->row_pitch, &out->slice_pitch)) {
    return false;
  }
  return r[0] != 0 && r[1] != 0 && r[2] != 0 && !__builtin_mul_overflow(r[0], r[1], &out->bytes) &&
         !__builtin_mul_overflow(out->bytes, r[2], &out->bytes) && out->bytes <= memory.size;
}

// In a buffer of which the rectangle's is a part. Columns, rows and slices are told anew: to a
// driver's test of overlaps an x beyond the pitch reaches into other rows.
void MoveOrigin(size_t by, Rect* rect) {
  size_t* const origin = rect->origin.v;
  if (by == 0) return;
  const size_t at = by + origin[0] + origin[1] * rect->row_pitch + origin[2] * rect->slice_pitch;
  origin[2] = at / rect->slice_pitch;
  origin[1] = at % rect->slice_pitch / rect->row_pitch;
  origin[0] = at % rect->slice_pitch % rect->row_pitch;
}

TransferPlan PlanOf(Session& session, uint64_t mem_id, bool is_write) {
  TransferPlan plan;
  plan.is_write = is_write;
  plan.memory = session.objects().Find<MemoryObject>(mem_id);
  return plan;
}

TransferPlan RectPlan(Session& session, uint64_t mem_id, bool is_write, const Rect& rect) {
  TransferPlan plan = PlanOf(session, mem_id, is_write);
  plan.kind = TransferPlan::Kind::kRect;
  plan.origin = rect.origin;
  plan.region = rect.region;
  plan.row_pitch = rect.row_pitch;
  plan.slice_pitch = rect.slice_pitch;
  plan.row_bytes = rect.region.v[0];
  plan.total_bytes = rect.bytes;
  return plan;
}

// Without one, mapping is slower, not wrong: nothing fails for the want of it.
void MakeMirror(Session& session, MemoryObject* memory) {
  const ContextObject& context = *memory->context;
  if (context.buffers_in_heap || !context.pins || !session.quota().ChargeMemory(memory->size))
    return;
  if (auto mirror = session.mirrors().Make(context, memory->size); mirror != nullptr) {
    memory->placement = WithMirror{std::move(mirror)};
    memory->charged_bytes += memory->size;
  } else {
    session.quota().ReturnMemory(memory->size);
  }
}

cl_int MakeBuffer(const pb::CreateBuffer& cmd, std::string_view contents, Session& session,
                  MemoryObject* memory) {
  cl_mem_flags flags = cmd.flags() & ~cl_mem_flags{CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR};
  void* host = nullptr;
  std::shared_ptr<const HeapSpan> held;
  // The mirror is the host memory that the application asks for; another would lie idle.
  if (memory->mirror() != nullptr) flags &= ~cl_mem_flags{CL_MEM_ALLOC_HOST_PTR};
  if (memory->context->buffers_in_heap) {
    auto span = session.heap().Allocate(cmd.size());
    if (!span.ok()) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    held = session.heap().Hold(*span);
    std::copy(contents.begin(), contents.end(), span->data);
    flags = (flags & ~cl_mem_flags{CL_MEM_ALLOC_HOST_PTR}) | CL_MEM_USE_HOST_PTR;
    host = span->data;
  } else if (!contents.empty()) {
    flags |= CL_MEM_COPY_HOST_PTR;
    host = const_cast<char*>(contents.data());
  }
  cl_int status = CL_SUCCESS;
  if (cmd.properties_size() > 0 && cl().clCreateBufferWithProperties != nullptr) {
    std::vector<cl_mem_properties> properties(cmd.properties().begin(), cmd.properties().end());
    properties.push_back(0);
    memory->handle.reset(cl().clCreateBufferWithProperties(
        memory->context->handle.get(), properties.data(), flags, cmd.size(), host, &status));
  } else {
    memory->handle.reset(
        cl().clCreateBuffer(memory->context->handle.get(), flags, cmd.size(), host, &status));
  }
  if (status != CL_SUCCESS) return status;
  if (held != nullptr) memory->PlaceIn(&session.heap(), std::move(held));
  return host != nullptr ? CL_SUCCESS : OweZeros(memory);
}

void PlaceAt(const HeapSpan& span, pb::MemoryPlacement* placement) {
  placement->set_segment(span.segment);
  placement->set_offset(span.offset);
}

// Of a span that it fits.
HeapSpan PartOf(const HeapSpan& whole, uint64_t origin, uint64_t size) {
  return {whole.segment, whole.offset + origin, size, whole.data + origin};
}

// clCreateBuffer with CL_MEM_USE_HOST_PTR over memory of clSVMAlloc, which is the buffer's storage.
HandlerResult CreateBufferInSvm(Session& session, const pb::CreateSubBuffer& cmd,
                                const SvmObject& svm, Call& call) {
  // Before a driver, which takes the pointer for good, sees it.
  if (cmd.size() == 0 || !wire::SpanFits(cmd.origin(), cmd.size(), svm.span->size))
    return CL_INVALID_BUFFER_SIZE;
  const HeapSpan part = PartOf(*svm.span, cmd.origin(), cmd.size());
  constexpr cl_mem_flags kClients = CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  auto memory = std::make_shared<MemoryObject>();
  memory->context = svm.context;
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreateBuffer(svm.context->handle.get(),
                                           (cmd.flags() & ~kClients) | CL_MEM_USE_HOST_PTR,
                                           cmd.size(), part.data, &status));
  if (status != CL_SUCCESS) return status;
  memory->PlaceIn(part, svm.span);
  memory->id = cmd.mem_id();
  memory->size = cmd.size();
  pb::MemoryPlacement& placement = *call.answer.mutable_memory();
  placement.set_in_heap(true);
  PlaceAt(part, &placement);
  return session.Add(cmd.mem_id(), std::move(memory));
}

}  // namespace

HandlerResult HandleCreateBuffer(Session& session, const pb::CreateBuffer& cmd, Call& call) {
  auto memory = std::make_shared<MemoryObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  const std::string_view contents = call.frame.payload();
  if (!contents.empty() && contents.size() != cmd.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer of ", cmd.size(), " bytes with ", contents.size(), " of contents"));
  }
  if (cmd.properties_size() % 2 != 0) {
    return absl::InvalidArgumentError("buffer property without a value");
  }
  if (!session.quota().ChargeMemory(cmd.size())) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  memory->session = &session;
  memory->charged_bytes = cmd.size();
  memory->id = cmd.mem_id();
  memory->size = cmd.size();
  if (cmd.mirror()) MakeMirror(session, memory.get());
  if (const cl_int status = MakeBuffer(cmd, contents, session, memory.get()); status != CL_SUCCESS)
    return status;
  if (cmd.staged()) memory->CountIn(&session.counts.staged);
  pb::MemoryPlacement& placement = *call.answer.mutable_memory();
  const std::shared_ptr<const Mirror> mirror = memory->mirror();
  placement.set_in_heap(memory->span() != nullptr);
  placement.set_is_mirror(mirror != nullptr);
  if (mirror != nullptr) PlaceAt(mirror->span(), &placement);
  if (memory->span() != nullptr) PlaceAt(*memory->span(), &placement);
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleCreateSubBuffer(Session& session, const pb::CreateSubBuffer& cmd, Call& call) {
  if (const SvmObject* svm = session.objects().Peek<SvmObject>(cmd.parent_id()); svm != nullptr)
    return CreateBufferInSvm(session, cmd, *svm, call);
  auto parent = session.objects().Find<MemoryObject>(cmd.parent_id());
  if (parent == nullptr) return CL_INVALID_MEM_OBJECT;
  const cl_buffer_region region = {static_cast<size_t>(cmd.origin()),
                                   static_cast<size_t>(cmd.size())};
  cl_int status = CL_SUCCESS;
  auto memory = std::make_shared<MemoryObject>();
  memory->handle.reset(cl().clCreateSubBuffer(parent->handle.get(), cmd.flags(),
                                              CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  if (status != CL_SUCCESS) return status;
  if (!wire::SpanFits(cmd.origin(), cmd.size(), parent->size)) return CL_INVALID_VALUE;
  memory->id = cmd.mem_id();
  memory->context = parent->context;
  memory->size = cmd.size();
  if (const HeapSpan* const whole = parent->span(); whole != nullptr)
    memory->placement = InHeap{PartOf(*whole, cmd.origin(), cmd.size())};
  memory->parent = std::move(parent);
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleCreatePipe(Session& session, const pb::CreatePipe& cmd, Call&) {
  auto memory = std::make_shared<MemoryObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  if (cl().clCreatePipe == nullptr) return CL_INVALID_OPERATION;
  // Both have 32 bits: nothing overflows.
  const uint64_t bytes = uint64_t{cmd.packet_size()} * cmd.max_packets();
  if (!session.quota().ChargeMemory(bytes)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  memory->session = &session;
  memory->charged_bytes = bytes;
  cl_int status = CL_SUCCESS;
  memory->handle.reset(cl().clCreatePipe(memory->context->handle.get(), cmd.flags(),
                                         cmd.packet_size(), cmd.max_packets(), nullptr, &status));
  if (status != CL_SUCCESS) return status;
  memory->id = cmd.mem_id();
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleEnqueueReadBuffer(Session& session, const pb::EnqueueReadBuffer& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const memory = enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  enqueue.SetFailsAsOurs();
  enqueue.SetEndsAlone();
  Rect rect;
  const bool is_rect = cmd.has_rect();
  if (is_rect ? !DecodeRect(cmd.rect(), *memory, &rect)
              : !wire::SpanFits(cmd.offset(), cmd.size(), memory->size)) {
    return CL_INVALID_VALUE;
  }
  const uint64_t bytes = is_rect ? rect.bytes : cmd.size();
  if (bytes > wire::kInlineTransferBytes || cmd.on().acknowledge_data() || enqueue.names_mirror()) {
    if (is_rect) return enqueue.RunTransfer(RectPlan(session, cmd.mem_id(), false, rect));
    TransferPlan plan = PlanOf(session, cmd.mem_id(), false);
    plan.offset = cmd.offset();
    plan.total_bytes = cmd.size();
    return enqueue.RunTransfer(std::move(plan));
  }
  if (!is_rect && memory->span() != nullptr && enqueue.IsIdle()) {
    return enqueue.CompleteNow(
        {reinterpret_cast<const char*>(memory->span()->data) + cmd.offset(), bytes});
  }
  auto carried = std::make_unique<Carried>();
  carried->read_data.resize(bytes);
  char* const data = carried->read_data.data();
  if (!is_rect && session.quota().in_flight() == 0 && memory->context->pins &&
      enqueue.IsIdleOrTimed()) {
    // Nothing runs that a wait could hold up, and the driver is quicker if it may wait.
    const QueueObject& queue = enqueue.queue();
    UniqueCl<cl_event> ended;
    const cl_int status =
        cl().clEnqueueReadBuffer(queue.handle.get(), memory->handle.get(), CL_TRUE, cmd.offset(),
                                 bytes, data, 0, nullptr, queue.profiling ? ended.out() : nullptr);
    if (status != CL_SUCCESS) return status;
    EventTimes times;
    const bool timed = queue.profiling && ReadProfiling(ended.get(), &times);
    return enqueue.CompleteNow(carried->read_data, timed ? &times : nullptr);
  }
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        if (!is_rect) {
          return cl().clEnqueueReadBuffer(queue, memory->handle.get(), CL_FALSE, cmd.offset(),
                                          bytes, data, waits, list, event);
        }
        const size_t host_origin[3] = {0, 0, 0};
        return cl().clEnqueueReadBufferRect(
            queue, memory->handle.get(), CL_FALSE, rect.origin, host_origin, rect.region,
            rect.row_pitch, rect.slice_pitch, rect.region.v[0], rect.region.v[0] * rect.region.v[1],
            data, waits, list, event);
      },
      std::move(carried));
}

HandlerResult HandleEnqueueWriteBuffer(Session& session, const pb::EnqueueWriteBuffer& cmd,
                                       Call& call) {
  Enqueuer enqueue(session, cmd.on(), Enqueuer::Zeros::kOwed);
  MemoryObject* const memory = enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  enqueue.SetFailsAsOurs();
  enqueue.SetEndsAlone();
  Rect rect;
  const bool is_rect = cmd.has_rect();
  if (is_rect ? !DecodeRect(cmd.rect(), *memory, &rect)
              : !wire::SpanFits(cmd.offset(), cmd.size(), memory->size)) {
    return CL_INVALID_VALUE;
  }
  const uint64_t bytes = is_rect ? rect.bytes : cmd.size();
  const std::string_view payload = call.frame.payload();
  if (bytes == 0) return CL_INVALID_VALUE;  // As a transfer it would never end.
  const bool writes_all = !is_rect && bytes == memory->size && payload.size() == bytes;
  if (const cl_int paid = enqueue.PayOrReplaceZeros(writes_all ? memory : nullptr);
      paid != CL_SUCCESS) {
    return paid;
  }
  if (payload.empty()) {
    if (is_rect) return enqueue.RunTransfer(RectPlan(session, cmd.mem_id(), true, rect));
    TransferPlan plan = PlanOf(session, cmd.mem_id(), true);
    plan.offset = cmd.offset();
    plan.total_bytes = cmd.size();
    return enqueue.RunTransfer(std::move(plan));
  }
  if (payload.size() != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("write of ", bytes, " bytes with a payload of ", payload.size()));
  }
  if (!is_rect && memory->span() != nullptr && enqueue.IsIdle()) {
    std::copy(payload.begin(), payload.end(), memory->span()->data + cmd.offset());
    return enqueue.CompleteNow({});
  }
  auto carried = std::make_unique<Carried>();
  std::swap(carried->frame, call.frame);
  const char* const data = carried->frame.payload().data();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        if (!is_rect) {
          return cl().clEnqueueWriteBuffer(queue, memory->handle.get(), CL_FALSE, cmd.offset(),
                                           bytes, data, waits, list, event);
        }
        const size_t host_origin[3] = {0, 0, 0};
        return cl().clEnqueueWriteBufferRect(
            queue, memory->handle.get(), CL_FALSE, rect.origin, host_origin, rect.region,
            rect.row_pitch, rect.slice_pitch, rect.region.v[0], rect.region.v[0] * rect.region.v[1],
            data, waits, list, event);
      },
      std::move(carried));
}

HandlerResult HandleWriteInitialContents(Session& session, const pb::WriteInitialContents& cmd,
                                         Call&) {
  if (cmd.on().event_id() == 0) return absl::InvalidArgumentError("contents without an event");
  TransferPlan plan = PlanOf(session, cmd.mem_id(), true);
  if (plan.memory == nullptr || plan.memory->size == 0) return CL_INVALID_MEM_OBJECT;
  if (!session.MayAccept()) return CL_OUT_OF_RESOURCES;
  if (const cl_int paid = PayZeros(plan.memory->context.get()); paid != CL_SUCCESS) return paid;
  plan.event_id = cmd.on().event_id();
  plan.queue = plan.memory->context->own_queue.get();
  plan.total_bytes = plan.memory->size;
  if (plan.memory->is_image) {
    plan.kind = TransferPlan::Kind::kImage;
    std::copy_n(plan.memory->layout.extent.v, 3, plan.region.v);
    plan.row_bytes = plan.region.v[0] * plan.memory->element_size;
  }
  plan.share = std::make_shared<QueueInFlight>(&session.quota(), true)->Accept(/*after_all=*/false);
  std::shared_ptr<TransferEnd> end;
  if (const cl_int status = session.transfers().Begin(plan, &end); status != CL_SUCCESS) {
    plan.share.End(/*all_before=*/false);
    return status;
  }
  session.transfers().Ready(plan.event_id, CL_COMPLETE);
  return CL_SUCCESS;
}

HandlerResult HandleTransferChunk(Session& session, const pb::TransferChunk& cmd, Call&) {
  if (absl::Status status = session.transfers().OnChunk(cmd.event_id(), cmd.offset(), cmd.size());
      !status.ok())
    return status;
  return CL_SUCCESS;
}

HandlerResult HandleTransferAck(Session& session, const pb::TransferAck& cmd, Call&) {
  if (absl::Status status = session.transfers().OnAck(cmd.event_id(), cmd.offset(), cmd.size());
      !status.ok())
    return status;
  return CL_SUCCESS;
}

HandlerResult HandleEnqueueCopyBuffer(Session& session, const pb::EnqueueCopyBuffer& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const source = enqueue.Find<MemoryObject>(cmd.source_id());
  MemoryObject* const destination = enqueue.Find<MemoryObject>(cmd.destination_id());
  if (!enqueue.ok()) return enqueue.answer();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueCopyBuffer(queue, source->handle.get(), destination->handle.get(),
                                        cmd.source_offset(), cmd.destination_offset(), cmd.size(),
                                        waits, list, event);
      });
}

HandlerResult HandleEnqueueCopyBufferRect(Session& session, const pb::EnqueueCopyBufferRect& cmd,
                                          Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const source = enqueue.Find<MemoryObject>(cmd.source_id());
  MemoryObject* const destination = enqueue.Find<MemoryObject>(cmd.destination_id());
  if (!enqueue.ok()) return enqueue.answer();
  Rect from;
  Rect to;
  if (!DecodeRect(cmd.source(), *source, &from) ||
      !DecodeRect(cmd.destination(), *destination, &to))
    return CL_INVALID_VALUE;
  const BufferPlace source_place = PlaceOf(*source, enqueue.queue());
  const BufferPlace destination_place = PlaceOf(*destination, enqueue.queue());
  MoveOrigin(source_place.offset, &from);
  MoveOrigin(destination_place.offset, &to);
  return enqueue.Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list,
                         cl_event* event) {
    return cl().clEnqueueCopyBufferRect(
        queue, source_place.handle, destination_place.handle, from.origin, to.origin, from.region,
        from.row_pitch, from.slice_pitch, to.row_pitch, to.slice_pitch, waits, list, event);
  });
}

HandlerResult HandleEnqueueFillBuffer(Session& session, const pb::EnqueueFillBuffer& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const memory = enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueFillBuffer(queue, memory->handle.get(), cmd.pattern().data(),
                                        cmd.pattern().size(), cmd.offset(), cmd.size(), waits, list,
                                        event);
      });
}

HandlerResult HandleEnqueueMapShared(Session& session, const pb::EnqueueMapShared& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const memory = enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  enqueue.SetFailsAsOurs();
  if (memory->span() == nullptr) return CL_INVALID_OPERATION;
  const wire::Size3 origin = wire::DecodeSize3(cmd.origin());
  const wire::Size3 region = wire::DecodeSize3(cmd.region());
  if (memory->is_image
          ? !IsInImage(*memory, origin, region)
          : cmd.size() == 0 || !wire::SpanFits(cmd.offset(), cmd.size(), memory->size)) {
    return CL_INVALID_VALUE;
  }
  // Section 5.2.4: no resources are left on the host.
  if (memory->maps.size() >= kMaxMaps) return CL_OUT_OF_HOST_MEMORY;
  // Two commands of the driver fewer for each large copy.
  if (enqueue.IsIdle()) {
    memory->maps[cmd.map_id()] = nullptr;
    return enqueue.CompleteNow({});
  }
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        const cl_mem handle = memory->handle.get();
        cl_int status = CL_SUCCESS;
        size_t pitches[2];  // The client has them from the placement.
        void* const pointer =
            memory->is_image
                ? cl().clEnqueueMapImage(queue, handle, CL_FALSE, cmd.map_flags(), origin, region,
                                         &pitches[0], &pitches[1], waits, list, event, &status)
                : cl().clEnqueueMapBuffer(queue, handle, CL_FALSE, cmd.map_flags(), cmd.offset(),
                                          cmd.size(), waits, list, event, &status);
        if (status == CL_SUCCESS) memory->maps[cmd.map_id()] = pointer;
        return status;
      });
}

HandlerResult HandleEnqueueUnmapShared(Session& session, const pb::EnqueueUnmapShared& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const memory = enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  enqueue.SetFailsAsOurs();
  const auto map = memory->maps.find(cmd.map_id());
  if (map == memory->maps.end()) return CL_INVALID_VALUE;
  void* const pointer = map->second;
  memory->maps.erase(map);
  // A mapping that the driver does not know ends in its turn.
  if (pointer == nullptr) return enqueue.RunWithoutWork();
  return enqueue.Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list,
                         cl_event* event) {
    return cl().clEnqueueUnmapMemObject(queue, memory->handle.get(), pointer, waits, list, event);
  });
}

HandlerResult HandleEnqueueMigrateMemObjects(Session& session,
                                             const pb::EnqueueMigrateMemObjects& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  // A driver may read the list when the command runs, not when it is called.
  const auto handles = std::make_shared<std::vector<cl_mem>>();
  for (const uint64_t id : cmd.mem_ids()) {
    if (MemoryObject* const memory = enqueue.Find<MemoryObject>(id); memory != nullptr)
      handles->push_back(memory->handle.get());
  }
  if (!enqueue.ok()) return enqueue.answer();
  auto carried = std::make_unique<Carried>();
  carried->keep = handles;
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueMigrateMemObjects(queue, static_cast<cl_uint>(handles->size()),
                                               handles->data(), cmd.flags(), waits, list, event);
      },
      std::move(carried));
}

}  // namespace sluice::worker
