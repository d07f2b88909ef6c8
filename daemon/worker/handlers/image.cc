// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/info_reader.h"
#include "daemon/worker/memory/host_memory.h"
#include "daemon/worker/memory/whole_buffer.h"
#include "daemon/worker/queues/enqueuer.h"
#include "proto/codec.h"
#include "proto/heap_span.h"
#include "proto/image_format.h"

namespace sluice::worker {
namespace {

// Host bytes of a box of an image, rows packed. False if it is no box of this image.
bool PlanImage(const pb::Size3& origin, const pb::Size3& region, TransferPlan* plan) {
  plan->kind = TransferPlan::Kind::kImage;
  plan->origin = wire::DecodeSize3(origin);
  plan->region = wire::DecodeSize3(region);
  const size_t* const r = plan->region.v;
  if (!IsInImage(*plan->memory, plan->origin, plan->region)) return false;
  return !__builtin_mul_overflow(r[0], plan->memory->element_size, &plan->row_bytes) &&
         !__builtin_mul_overflow(plan->row_bytes, r[1], &plan->total_bytes) &&
         !__builtin_mul_overflow(plan->total_bytes, r[2], &plan->total_bytes) &&
         plan->total_bytes != 0 && plan->total_bytes <= plan->memory->size;
}

template <typename T>
T ImageValue(cl_mem image, cl_image_info param) {
  T value{};
  cl().clGetImageInfo(image, param, sizeof(value), &value, nullptr);
  return value;
}

// Of the extents that the type has: an application may leave anything in the others.
uint64_t ImageBytes(const cl_image_desc& desc, size_t element_size) {
  uint64_t bytes = element_size;
  for (const size_t extent : wire::ExtentOf(desc).v) {
    if (__builtin_mul_overflow(bytes, std::max<uint64_t>(extent, 1), &bytes)) return UINT64_MAX;
  }
  return bytes;
}

cl_int ZeroImage(const MemoryObject& memory, const cl_image_desc& desc) {
  const cl_uint zeros[4] = {};
  const size_t origin[3] = {0, 0, 0};
  const cl_command_queue queue = memory.context->own_queue.get();
  memory.context->zeros.untold = true;  // The next command waits for it.
  return cl().clEnqueueFillImage(queue, memory.handle.get(), zeros, origin, wire::ExtentOf(desc).v,
                                 0, nullptr, nullptr);
}

cl_int WriteImage(const MemoryObject& memory, const cl_image_desc& desc,
                  std::string_view contents) {
  const size_t origin[3] = {0, 0, 0};
  const wire::ImageExtent extent = wire::ExtentOf(desc);
  const size_t row_bytes = extent.v[0] * memory.element_size;
  return cl().clEnqueueWriteImage(
      memory.context->own_queue.get(), memory.handle.get(), CL_TRUE, origin, extent.v, row_bytes,
      HostSlicePitch(memory, row_bytes, extent.v[1]), contents.data(), 0, nullptr, nullptr);
}

// The driver's image, in `host` memory if that is not null.
cl_int MakeHandle(const pb::CreateImage& cmd, const cl_image_format& format,
                  const cl_image_desc& desc, void* host, MemoryObject* memory) {
  constexpr cl_mem_flags kClients = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  cl_mem_flags flags = cmd.flags() & ~kClients;
  if (host != nullptr) flags = (flags & ~cl_mem_flags{CL_MEM_ALLOC_HOST_PTR}) | CL_MEM_USE_HOST_PTR;
  cl_int status = CL_SUCCESS;
  const cl_context context = memory->context->handle.get();
  if (cmd.properties_size() > 0 && cl().clCreateImageWithProperties != nullptr) {
    std::vector<cl_mem_properties> properties(cmd.properties().begin(), cmd.properties().end());
    properties.push_back(0);
    memory->handle.reset(cl().clCreateImageWithProperties(context, properties.data(), flags,
                                                          &format, &desc, host, &status));
  } else {
    memory->handle.reset(cl().clCreateImage(context, flags, &format, &desc, host, &status));
  }
  if (status != CL_SUCCESS) return status;
  memory->element_size = ImageValue<size_t>(memory->handle.get(), CL_IMAGE_ELEMENT_SIZE);
  return CL_SUCCESS;
}

// A new image of a CPU device in the heap. False if it is not there: the driver is asked again
// without, and gives its own answer.
bool MakeInHeap(Session& session, const pb::CreateImage& cmd, const cl_image_format& format,
                const cl_image_desc& desc, MemoryObject* memory) {
  wire::ImageLayout layout;
  if (!ImagesWorkInHostMemory(memory->context.get(), desc.image_type) ||
      !wire::LayOutImage(desc, wire::ElementBytes(format), 0, &layout)) {
    return false;
  }
  const auto span = session.heap().Allocate(layout.bytes);
  if (!span.ok()) return false;
  auto held = session.heap().Hold(*span);
  if (MakeHandle(cmd, format, desc, span->data, memory) != CL_SUCCESS ||
      memory->element_size != layout.element_bytes ||
      ImageValue<size_t>(memory->handle.get(), CL_IMAGE_ROW_PITCH) != layout.row_pitch) {
    memory->handle.reset();
    return false;
  }
  memory->layout = layout;
  memory->PlaceIn(&session.heap(), std::move(held));
  return true;
}

// An image made from a buffer that lies in the heap lies there too, if the driver says so.
void FindInParent(const cl_image_desc& desc, MemoryObject* memory) {
  const HeapSpan* const parents = memory->parent->span();
  wire::ImageLayout layout;
  if (parents == nullptr || memory->parent->is_image ||
      !ImagesWorkInHostMemory(memory->context.get(), CL_MEM_OBJECT_IMAGE2D) ||
      !wire::LayOutImage(desc, memory->element_size, desc.image_row_pitch, &layout) ||
      !wire::SpanFits(0, layout.bytes, parents->size) || layout.bytes == 0 ||
      !MapsTo(*memory, layout, parents->data)) {
    return;
  }
  memory->placement = InHeap{{parents->segment, parents->offset, layout.bytes, parents->data}};
  memory->layout = layout;
}

// With its contents, or zeros.
cl_int MakeImage(Session& session, const pb::CreateImage& cmd, const cl_image_format& format,
                 const cl_image_desc& desc, std::string_view contents, MemoryObject* memory) {
  const bool is_new = memory->parent == nullptr;
  if (!is_new || !MakeInHeap(session, cmd, format, desc, memory)) {
    const cl_int status = MakeHandle(cmd, format, desc, nullptr, memory);
    if (status != CL_SUCCESS) return status;
  }
  memory->size = ImageBytes(desc, memory->element_size);
  if (!is_new) {
    FindInParent(desc, memory);
    return CL_SUCCESS;
  }
  // The contents are used once their size has been judged by the image itself: never read by the
  // driver before.
  if (!contents.empty() && contents.size() != memory->size) return CL_SUCCESS;
  if (memory->span() != nullptr) {
    std::copy(contents.begin(), contents.end(), memory->span()->data);
    return CL_SUCCESS;
  }
  return contents.empty() ? ZeroImage(*memory, desc) : WriteImage(*memory, desc, contents);
}

void DescribePlacement(const MemoryObject& memory, pb::MemoryPlacement* placement) {
  const HeapSpan* const span = memory.span();
  const cl_mem image = memory.handle.get();
  placement->set_element_size(memory.element_size);
  placement->set_row_pitch(span != nullptr ? memory.layout.row_pitch
                                           : ImageValue<size_t>(image, CL_IMAGE_ROW_PITCH));
  placement->set_slice_pitch(span != nullptr ? memory.layout.slice_pitch
                                             : ImageValue<size_t>(image, CL_IMAGE_SLICE_PITCH));
  placement->set_in_heap(span != nullptr);
  if (span == nullptr) return;
  placement->set_segment(span->segment);
  placement->set_offset(span->offset);
}

// Copies the region between an image in the heap and packed bytes.
template <typename Copy>
void ForEachRow(const TransferPlan& plan, const Copy& copy) {
  const MemoryObject& memory = *plan.memory;
  size_t packed = 0;
  for (size_t z = 0; z < plan.region.v[2]; ++z) {
    for (size_t y = 0; y < plan.region.v[1]; ++y) {
      const size_t at[3] = {plan.origin.v[0], plan.origin.v[1] + y, plan.origin.v[2] + z};
      copy(memory.span()->data + memory.layout.OffsetOf(at), packed, plan.row_bytes);
      packed += plan.row_bytes;
    }
  }
}

// The host may touch the region now, without the driver: as with buffers (Enqueuer::IsIdle).
bool IsAtHand(Enqueuer* enqueue, const TransferPlan& plan) {
  return plan.memory->span() != nullptr && enqueue->IsIdle();
}

using FillColor = std::array<char, 16>;

// Some drivers do not return from the fill of a 3D image before all earlier commands of the queue
// or the wait list have ended. This thread would wait there for a user event that it is itself to
// set.
bool WaitsInFills(const MemoryObject& image, const QueueObject& queue) {
  return queue.device->quirks.waits_in_volume_fills && image.image_type == CL_MEM_OBJECT_IMAGE3D;
}

// In a queue of ours, in which nothing waits for the application.
HandlerResult FillWhenReady(Enqueuer* enqueue, std::shared_ptr<MemoryObject> image,
                            const pb::EnqueueFillImage& cmd, const FillColor& color) {
  const auto fill = [image = std::move(image), color, origin = wire::DecodeSize3(cmd.origin()),
                     region = wire::DecodeSize3(cmd.region())](cl_event* ended) {
    const cl_command_queue queue = image->context->own_queue.get();
    const cl_int status = cl().clEnqueueFillImage(queue, image->handle.get(), color.data(), origin,
                                                  region, 0, nullptr, ended);
    if (status == CL_SUCCESS) cl().clFlush(queue);
    return status;
  };
  return enqueue->RunWhenReady(fill, [](cl_int ended) { return ended; });
}

}  // namespace

HandlerResult HandleCreateImage(Session& session, const pb::CreateImage& cmd, Call& call) {
  auto memory = std::make_shared<MemoryObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  cl_image_desc desc = wire::DecodeImageDesc(cmd.desc());
  // They must be 0 (section 5.3.1.2): what they add would be neither charged nor set to zero.
  if (desc.num_mip_levels != 0 || desc.num_samples != 0) return CL_INVALID_IMAGE_DESCRIPTOR;
  const cl_image_format format = wire::DecodeImageFormat(cmd.format());
  if (cmd.desc().parent_id() != 0) {
    memory->parent = session.objects().Find<MemoryObject>(cmd.desc().parent_id());
    if (memory->parent == nullptr || memory->parent->context != memory->context)
      return CL_INVALID_IMAGE_DESCRIPTOR;
    desc.mem_object = memory->parent->handle.get();
  }
  if (cmd.properties_size() % 2 != 0) {
    return absl::InvalidArgumentError("image property without a value");
  }
  // Of a format that only the driver knows, the largest element there is.
  const size_t element_size = wire::ElementBytes(format) != 0 ? wire::ElementBytes(format) : 16;
  const uint64_t bytes = memory->parent == nullptr ? ImageBytes(desc, element_size) : 0;
  if (bytes == UINT64_MAX) return CL_INVALID_IMAGE_SIZE;
  if (!session.quota().ChargeMemory(bytes)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  memory->session = &session;
  memory->charged_bytes = bytes;
  memory->id = cmd.mem_id();
  memory->is_image = true;
  memory->image_type = desc.image_type;
  memory->layout.extent = wire::ExtentOf(desc);
  const std::string_view contents = call.frame.payload();
  if (const cl_int status = MakeImage(session, cmd, format, desc, contents, memory.get());
      status != CL_SUCCESS) {
    return status;
  }
  if (!contents.empty() && contents.size() != memory->size) {
    return absl::InvalidArgumentError(
        absl::StrCat("image of ", memory->size, " bytes with ", contents.size(), " of contents"));
  }
  if (cmd.staged()) memory->CountIn(&session.counts.staged);
  DescribePlacement(*memory, call.answer.mutable_memory());
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleGetSupportedImageFormats(Session& session,
                                             const pb::GetSupportedImageFormats& cmd, Call& call) {
  ContextObject* const context = session.objects().Peek<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  return ReadImageFormats(context->handle.get(), cmd.flags(), cmd.image_type(),
                          call.answer.mutable_data());
}

HandlerResult HandleEnqueueReadImage(Session& session, const pb::EnqueueReadImage& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  enqueue.SetFailsAsOurs();
  TransferPlan plan;
  plan.memory = session.objects().Find<MemoryObject>(cmd.mem_id());
  if (!PlanImage(cmd.origin(), cmd.region(), &plan)) return CL_INVALID_VALUE;
  if (plan.total_bytes > wire::kInlineTransferBytes || cmd.on().acknowledge_data() ||
      enqueue.names_mirror())
    return enqueue.RunTransfer(std::move(plan));
  auto carried = std::make_unique<Carried>();
  carried->read_data.resize(plan.total_bytes);
  char* const data = carried->read_data.data();
  if (IsAtHand(&enqueue, plan)) {
    ForEachRow(plan, [data](const uint8_t* there, size_t packed, size_t bytes) {
      std::memcpy(data + packed, there, bytes);
    });
    return enqueue.CompleteNow(carried->read_data);
  }
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueReadImage(
            queue, plan.memory->handle.get(), CL_FALSE, plan.origin, plan.region, plan.row_bytes,
            HostSlicePitch(*plan.memory, plan.row_bytes, plan.region.v[1]), data, waits, list,
            event);
      },
      std::move(carried));
}

HandlerResult HandleEnqueueWriteImage(Session& session, const pb::EnqueueWriteImage& cmd,
                                      Call& call) {
  Enqueuer enqueue(session, cmd.on());
  enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  enqueue.SetFailsAsOurs();
  TransferPlan plan;
  plan.is_write = true;
  plan.memory = session.objects().Find<MemoryObject>(cmd.mem_id());
  if (!PlanImage(cmd.origin(), cmd.region(), &plan)) return CL_INVALID_VALUE;
  const std::string_view payload = call.frame.payload();
  if (payload.empty()) return enqueue.RunTransfer(std::move(plan));
  if (payload.size() != plan.total_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("write of ", plan.total_bytes, " bytes with a payload of ", payload.size()));
  }
  if (IsAtHand(&enqueue, plan)) {
    ForEachRow(plan, [payload](uint8_t* there, size_t packed, size_t bytes) {
      std::memcpy(there, payload.data() + packed, bytes);
    });
    return enqueue.CompleteNow({});
  }
  auto carried = std::make_unique<Carried>();
  std::swap(carried->frame, call.frame);
  const char* const data = carried->frame.payload().data();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueWriteImage(
            queue, plan.memory->handle.get(), CL_FALSE, plan.origin, plan.region, plan.row_bytes,
            HostSlicePitch(*plan.memory, plan.row_bytes, plan.region.v[1]), data, waits, list,
            event);
      },
      std::move(carried));
}

HandlerResult HandleEnqueueCopyImage(Session& session, const pb::EnqueueCopyImage& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const source = enqueue.Find<MemoryObject>(cmd.source_id());
  MemoryObject* const destination = enqueue.Find<MemoryObject>(cmd.destination_id());
  if (!enqueue.ok()) return enqueue.answer();
  const wire::Size3 region = wire::DecodeSize3(cmd.region());
  if (!IsInImage(*source, wire::DecodeSize3(cmd.source_origin()), region) ||
      !IsInImage(*destination, wire::DecodeSize3(cmd.destination_origin()), region)) {
    return CL_INVALID_VALUE;
  }
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueCopyImage(queue, source->handle.get(), destination->handle.get(),
                                       wire::DecodeSize3(cmd.source_origin()),
                                       wire::DecodeSize3(cmd.destination_origin()),
                                       wire::DecodeSize3(cmd.region()), waits, list, event);
      });
}

HandlerResult HandleEnqueueCopyImageToBuffer(Session& session,
                                             const pb::EnqueueCopyImageToBuffer& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const image = enqueue.Find<MemoryObject>(cmd.image_id());
  MemoryObject* const buffer = enqueue.Find<MemoryObject>(cmd.buffer_id());
  if (!enqueue.ok()) return enqueue.answer();
  if (!IsInImage(*image, wire::DecodeSize3(cmd.origin()), wire::DecodeSize3(cmd.region())))
    return CL_INVALID_VALUE;
  const BufferPlace place = PlaceOf(*buffer, enqueue.queue());
  return enqueue.Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list,
                         cl_event* event) {
    return cl().clEnqueueCopyImageToBuffer(
        queue, image->handle.get(), place.handle, wire::DecodeSize3(cmd.origin()),
        wire::DecodeSize3(cmd.region()), place.offset + cmd.buffer_offset(), waits, list, event);
  });
}

HandlerResult HandleEnqueueCopyBufferToImage(Session& session,
                                             const pb::EnqueueCopyBufferToImage& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const buffer = enqueue.Find<MemoryObject>(cmd.buffer_id());
  MemoryObject* const image = enqueue.Find<MemoryObject>(cmd.image_id());
  if (!enqueue.ok()) return enqueue.answer();
  if (!IsInImage(*image, wire::DecodeSize3(cmd.origin()), wire::DecodeSize3(cmd.region())))
    return CL_INVALID_VALUE;
  const BufferPlace place = PlaceOf(*buffer, enqueue.queue());
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueCopyBufferToImage(
            queue, place.handle, image->handle.get(), place.offset + cmd.buffer_offset(),
            wire::DecodeSize3(cmd.origin()), wire::DecodeSize3(cmd.region()), waits, list, event);
      });
}

HandlerResult HandleEnqueueFillImage(Session& session, const pb::EnqueueFillImage& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const memory = enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  if (!IsInImage(*memory, wire::DecodeSize3(cmd.origin()), wire::DecodeSize3(cmd.region())))
    return CL_INVALID_VALUE;
  FillColor color = {};
  std::copy_n(cmd.color().begin(), std::min(cmd.color().size(), sizeof(color)), color.data());
  if (WaitsInFills(*memory, enqueue.queue()) && !enqueue.IsIdle())
    return FillWhenReady(&enqueue, session.objects().Find<MemoryObject>(cmd.mem_id()), cmd, color);
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueFillImage(queue, memory->handle.get(), color.data(),
                                       wire::DecodeSize3(cmd.origin()),
                                       wire::DecodeSize3(cmd.region()), waits, list, event);
      });
}

}  // namespace sluice::worker
