// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/enqueuer.h"
#include "daemon/handlers/handlers.h"
#include "proto/codec.h"

namespace sluice {
namespace {

// Host bytes of a box of an image, rows packed. False if it is empty or cannot be of this image.
bool PlanImage(const pb::Size3& origin, const pb::Size3& region, TransferPlan* plan) {
  plan->kind = TransferPlan::Kind::kImage;
  plan->origin = DecodeSize3(origin);
  plan->region = DecodeSize3(region);
  const size_t* const r = plan->region.v;
  if (r[0] == 0 || r[1] == 0 || r[2] == 0) return false;
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

// The whole image as a region, section 5.3.2.
Size3 WholeRegion(const cl_image_desc& desc) {
  Size3 region{{desc.image_width, 1, 1}};
  switch (desc.image_type) {
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      region.v[1] = desc.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      region.v[1] = desc.image_height;
      region.v[2] = desc.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE2D:
      region.v[1] = desc.image_height;
      break;
    case CL_MEM_OBJECT_IMAGE3D:
      region.v[1] = desc.image_height;
      region.v[2] = desc.image_depth;
      break;
    default:
      break;
  }
  return region;
}

// Of the extents that the type has: an application may leave anything in the others.
uint64_t ImageBytes(const cl_image_desc& desc, size_t element_size) {
  uint64_t bytes = element_size;
  for (const size_t extent : WholeRegion(desc).v) {
    if (__builtin_mul_overflow(bytes, std::max<uint64_t>(extent, 1), &bytes)) return UINT64_MAX;
  }
  return bytes;
}

cl_int ZeroImage(const MemoryObject& memory, const cl_image_desc& desc) {
  const cl_uint zeros[4] = {};
  const cl_command_queue queue = memory.context->own_queue.get();
  const cl_int status = cl().clEnqueueFillImage(queue, memory.handle.get(), zeros, Size3(),
                                                WholeRegion(desc), 0, nullptr, nullptr);
  return status == CL_SUCCESS ? cl().clFinish(queue) : status;
}

cl_int WriteImage(const std::shared_ptr<MemoryObject>& memory, const cl_image_desc& desc,
                  std::string_view contents) {
  TransferPlan plan;
  plan.memory = memory;
  plan.region = WholeRegion(desc);
  plan.row_bytes = plan.region.v[0] * memory->element_size;
  return cl().clEnqueueWriteImage(memory->context->own_queue.get(), memory->handle.get(), CL_TRUE,
                                  plan.origin, plan.region, plan.row_bytes,
                                  HostSlicePitch(*plan.memory, plan.row_bytes, plan.region.v[1]),
                                  contents.data(), 0, nullptr, nullptr);
}

}  // namespace

HandlerResult HandleCreateImage(Session& session, const pb::CreateImage& cmd, Call& call) {
  auto memory = std::make_shared<MemoryObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  cl_image_desc desc = DecodeImageDesc(cmd.desc());
  const cl_image_format format = DecodeImageFormat(cmd.format());
  if (cmd.desc().parent_id() != 0) {
    memory->parent = session.objects().Find<MemoryObject>(cmd.desc().parent_id());
    if (memory->parent == nullptr) return CL_INVALID_IMAGE_DESCRIPTOR;
    desc.mem_object = memory->parent->handle.get();
  }
  if (cmd.properties_size() % 2 != 0) {
    return absl::InvalidArgumentError("image property without a value");
  }
  // 16 bytes are the largest element: enough to judge the quota before the driver tells.
  const uint64_t most_bytes = memory->parent == nullptr ? ImageBytes(desc, 16) : 0;
  if (most_bytes == UINT64_MAX) return CL_INVALID_IMAGE_SIZE;
  const std::string_view contents = call.frame.payload();
  const cl_mem_flags flags =
      cmd.flags() & ~cl_mem_flags{CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR};
  if (!session.quota().ChargeMemory(most_bytes / 4)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  memory->session = &session;
  memory->charged_bytes = most_bytes / 4;
  cl_int status = CL_SUCCESS;
  const cl_context context = memory->context->handle.get();
  if (cmd.properties_size() > 0 && cl().clCreateImageWithProperties != nullptr) {
    std::vector<cl_mem_properties> properties(cmd.properties().begin(), cmd.properties().end());
    properties.push_back(0);
    memory->handle.reset(cl().clCreateImageWithProperties(context, properties.data(), flags,
                                                          &format, &desc, nullptr, &status));
  } else {
    memory->handle.reset(cl().clCreateImage(context, flags, &format, &desc, nullptr, &status));
  }
  if (status != CL_SUCCESS) return status;
  memory->id = cmd.mem_id();
  memory->is_image = true;
  memory->image_type = desc.image_type;
  memory->element_size = ImageValue<size_t>(memory->handle.get(), CL_IMAGE_ELEMENT_SIZE);
  memory->size = ImageBytes(desc, memory->element_size);
  if (!contents.empty() && contents.size() != memory->size) {
    return absl::InvalidArgumentError(
        absl::StrCat("image of ", memory->size, " bytes with ", contents.size(), " of contents"));
  }
  // The contents are written once their size has been judged by the image itself: never read by the
  // driver before.
  if (memory->parent == nullptr) {
    status = contents.empty() ? ZeroImage(*memory, desc) : WriteImage(memory, desc, contents);
    if (status != CL_SUCCESS) return status;
  }
  pb::MemoryPlacement& placement = *call.answer.mutable_memory();
  placement.set_element_size(memory->element_size);
  placement.set_row_pitch(ImageValue<size_t>(memory->handle.get(), CL_IMAGE_ROW_PITCH));
  placement.set_slice_pitch(ImageValue<size_t>(memory->handle.get(), CL_IMAGE_SLICE_PITCH));
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleGetSupportedImageFormats(Session& session,
                                             const pb::GetSupportedImageFormats& cmd, Call& call) {
  ContextObject* const context = session.objects().Peek<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  cl_uint count = 0;
  cl_int status = cl().clGetSupportedImageFormats(context->handle.get(), cmd.flags(),
                                                  cmd.image_type(), 0, nullptr, &count);
  if (status != CL_SUCCESS) return status;
  std::string& data = *call.answer.mutable_data();
  data.resize(count * sizeof(cl_image_format));
  if (count == 0) return CL_SUCCESS;
  return cl().clGetSupportedImageFormats(context->handle.get(), cmd.flags(), cmd.image_type(),
                                         count, reinterpret_cast<cl_image_format*>(data.data()),
                                         nullptr);
}

HandlerResult HandleEnqueueReadImage(Session& session, const pb::EnqueueReadImage& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  TransferPlan plan;
  plan.memory = session.objects().Find<MemoryObject>(cmd.mem_id());
  if (!PlanImage(cmd.origin(), cmd.region(), &plan)) return CL_INVALID_VALUE;
  if (plan.total_bytes > kInlineTransferBytes || cmd.on().acknowledge_data())
    return enqueue.RunTransfer(std::move(plan));
  auto carried = std::make_unique<Carried>();
  carried->read_data.resize(plan.total_bytes);
  char* const data = carried->read_data.data();
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
  return enqueue.Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list,
                         cl_event* event) {
    return cl().clEnqueueCopyImage(
        queue, source->handle.get(), destination->handle.get(), DecodeSize3(cmd.source_origin()),
        DecodeSize3(cmd.destination_origin()), DecodeSize3(cmd.region()), waits, list, event);
  });
}

HandlerResult HandleEnqueueCopyImageToBuffer(Session& session,
                                             const pb::EnqueueCopyImageToBuffer& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const image = enqueue.Find<MemoryObject>(cmd.image_id());
  MemoryObject* const buffer = enqueue.Find<MemoryObject>(cmd.buffer_id());
  if (!enqueue.ok()) return enqueue.answer();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueCopyImageToBuffer(queue, image->handle.get(), buffer->handle.get(),
                                               DecodeSize3(cmd.origin()), DecodeSize3(cmd.region()),
                                               cmd.buffer_offset(), waits, list, event);
      });
}

HandlerResult HandleEnqueueCopyBufferToImage(Session& session,
                                             const pb::EnqueueCopyBufferToImage& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const buffer = enqueue.Find<MemoryObject>(cmd.buffer_id());
  MemoryObject* const image = enqueue.Find<MemoryObject>(cmd.image_id());
  if (!enqueue.ok()) return enqueue.answer();
  return enqueue.Run(
      [&](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueCopyBufferToImage(queue, buffer->handle.get(), image->handle.get(),
                                               cmd.buffer_offset(), DecodeSize3(cmd.origin()),
                                               DecodeSize3(cmd.region()), waits, list, event);
      });
}

HandlerResult HandleEnqueueFillImage(Session& session, const pb::EnqueueFillImage& cmd, Call&) {
  Enqueuer enqueue(session, cmd.on());
  MemoryObject* const memory = enqueue.Find<MemoryObject>(cmd.mem_id());
  if (!enqueue.ok()) return enqueue.answer();
  char color[16] = {};
  std::copy_n(cmd.color().begin(), std::min<size_t>(cmd.color().size(), sizeof(color)), color);
  return enqueue.Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list,
                         cl_event* event) {
    return cl().clEnqueueFillImage(queue, memory->handle.get(), color, DecodeSize3(cmd.origin()),
                                   DecodeSize3(cmd.region()), waits, list, event);
  });
}

}  // namespace sluice
