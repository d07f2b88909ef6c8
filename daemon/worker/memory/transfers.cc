// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/transfers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/memory/pins.h"
#include "daemon/worker/queues/completions.h"
#include "daemon/worker/replies.h"
#include "proto/heap_span.h"

namespace sluice::worker {
namespace {

// Several chunks are under way, so that the client copies one while the driver moves another.
constexpr size_t kChunksInFlight = 8;
constexpr uint64_t kSmallestChunk = 1 << 20;
constexpr uint64_t kLargestChunk = 4 << 20;
// A session has to move so much before pinning staging memory, once, is worth its milliseconds.
constexpr uint64_t kPinAfterBytes = 4 << 20;
constexpr uint64_t kStagingBytes = 128 << 20;

uint64_t ChunkBytes(const TransferPlan& plan) {
  const uint64_t share = plan.total_bytes / kChunksInFlight & ~uint64_t{4095};
  return std::clamp(share, kSmallestChunk, kLargestChunk);
}

bool IsDirect(const TransferPlan& plan) {
  return plan.kind == TransferPlan::Kind::kLinear && plan.memory->span() != nullptr &&
         !plan.profiling;
}

}  // namespace

size_t HostSlicePitch(const MemoryObject& image, size_t row_bytes, size_t rows) {
  switch (image.image_type) {
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      return row_bytes;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
    case CL_MEM_OBJECT_IMAGE3D:
      return row_bytes * rows;
    default:
      return 0;
  }
}

bool IsInImage(const MemoryObject& image, const wire::Size3& origin, const wire::Size3& region) {
  for (int i = 0; i < 3; ++i) {
    if (region.v[i] == 0 || !wire::SpanFits(origin.v[i], region.v[i], image.layout.extent.v[i]))
      return false;
  }
  return image.is_image;
}

cl_int Transfers::Begin(const TransferPlan& plan, std::shared_ptr<TransferEnd>* end) {
  cl_int status = CL_SUCCESS;
  auto transfer = std::make_shared<Transfer>();
  transfer->plan = plan;
  transfer->end = std::make_shared<TransferEnd>();
  transfer->end->done.reset(cl().clCreateUserEvent(plan.memory->context->handle.get(), &status));
  if (status != CL_SUCCESS) return status;
  *end = transfer->end;
  // Without it, the command was queued when it began.
  if (plan.profiling)
    cl().clEnqueueMarkerWithWaitList(plan.queue, 0, nullptr, transfer->queued.out());
  absl::MutexLock lock(&mu_);
  // Only a client that uses an id twice meets one that is still there.
  const bool is_new = transfers_.try_emplace(plan.event_id, std::move(transfer)).second;
  return is_new ? CL_SUCCESS : CL_INVALID_EVENT;
}

Transfers::TransferRef Transfers::Find(uint64_t event_id) {
  const auto it = transfers_.find(event_id);
  return it == transfers_.end() ? nullptr : it->second;
}

void Transfers::Ready(uint64_t event_id, cl_int status) {
  {
    absl::MutexLock lock(&mu_);
    const TransferRef transfer = Find(event_id);
    if (transfer == nullptr || transfer->ended) return;
    if (status < 0) {
      End(transfer, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    } else {
      Pump(transfer);
    }
  }
  RunDeferred();
}

Transfers::Chunk Transfers::NextChunk(const Transfer& transfer) const {
  const TransferPlan& plan = transfer.plan;
  Chunk chunk;
  chunk.offset = transfer.next_offset;
  if (IsDirect(plan)) {
    chunk.size = plan.total_bytes;
    chunk.span = *plan.memory->span();
    chunk.span.offset += plan.offset;
    chunk.span.data += plan.offset;
    chunk.span.size = plan.total_bytes;
    return chunk;
  }
  const uint64_t most = ChunkBytes(plan);
  if (plan.kind == TransferPlan::Kind::kLinear) {
    chunk.size = std::min(most, plan.total_bytes - chunk.offset);
    return chunk;
  }
  // Whole slices if one fits, else rows of one slice, at least one.
  const uint64_t slice_bytes = plan.row_bytes * plan.region.v[1];
  chunk.z = chunk.offset / slice_bytes;
  chunk.y = chunk.offset % slice_bytes / plan.row_bytes;
  chunk.slices = 1;
  if (chunk.y == 0 && slice_bytes <= most) {
    chunk.rows = plan.region.v[1];
    chunk.slices = std::min<uint64_t>(most / slice_bytes, plan.region.v[2] - chunk.z);
  } else {
    chunk.rows = std::clamp<uint64_t>(most / plan.row_bytes, 1, plan.region.v[1] - chunk.y);
  }
  chunk.size = plan.row_bytes * chunk.rows * chunk.slices;
  return chunk;
}

void Transfers::Pump(const TransferRef& transfer) {
  while (!transfer->ended && transfer->next_offset < transfer->plan.total_bytes &&
         transfer->chunks.size() < kChunksInFlight) {
    Chunk chunk = NextChunk(*transfer);
    if (chunk.span.segment == 0) {
      if (staging_bytes_ != 0 && staging_bytes_ + chunk.size > kStagingBytes) {
        if (transfer->chunks.empty()) starving_.push_back(transfer);
        return;
      }
      auto span = heap_->Allocate(chunk.size);
      if (!span.ok()) {
        if (!transfer->chunks.empty()) return;  // Goes on when a chunk of its own has ended.
        if (staging_bytes_ == 0) {
          End(transfer, CL_OUT_OF_RESOURCES);  // Nothing will become free.
        } else {
          starving_.push_back(transfer);
        }
        return;
      }
      chunk.span = *span;
      chunk.staged = true;
      staging_bytes_ += chunk.size;
    }
    transfer->next_offset += chunk.size;
    StartChunk(transfer, chunk);
  }
}

void Transfers::StartChunk(const TransferRef& transfer, Chunk chunk) {
  const uint64_t offset = chunk.offset;
  transfer->chunks[offset] = chunk;
  if (transfer->plan.is_write) {
    pb::Reply reply;
    reply.mutable_grant()->set_event_id(transfer->plan.event_id);
    reply.mutable_grant()->set_offset(chunk.offset);
    reply.mutable_grant()->set_size(chunk.size);
    replies_->Send(reply, wire::Wake::kUrgent, {}, wire::kFrameGrant,
                   {chunk.span.segment, chunk.span.offset, chunk.size});
    return;
  }
  if (!chunk.staged) {
    SendReadData(transfer, chunk);
    return;
  }
  MoveChunk(transfer, chunk);
}

void Transfers::SendReadData(const TransferRef& transfer, const Chunk& chunk) {
  if (transfer->ended) return EndChunk(transfer, chunk.offset);
  transfer->chunks[chunk.offset].sent = true;
  pb::Reply reply;
  reply.mutable_read_data()->set_event_id(transfer->plan.event_id);
  reply.mutable_read_data()->set_offset(chunk.offset);
  reply.mutable_read_data()->set_size(chunk.size);
  replies_->Send(reply, wire::Wake::kUrgent, {}, wire::kFrameReadData,
                 {chunk.span.segment, chunk.span.offset, chunk.size});
  transfer->read_bytes += chunk.size;
  if (transfer->read_bytes < transfer->plan.total_bytes) return;
  // The client takes the bytes before it sees this: no need to wait for its acknowledgement.
  transfer->plan.share.End(/*all_before=*/true);
  SendComplete(*transfer);
}

// As of one command: from the first of its chunks to begin to the last to end.
void Transfers::NoteTimes(const EventTimes& times, uint64_t bytes, Transfer* transfer) {
  EventTimes& all = transfer->times;
  const bool is_first = transfer->timed_bytes == 0;
  all.queued = is_first ? times.queued : std::min(all.queued, times.queued);
  all.submit = is_first ? times.submit : std::min(all.submit, times.submit);
  all.start = is_first ? times.start : std::min(all.start, times.start);
  all.end = std::max(all.end, times.end);
  all.complete = std::max(all.complete, times.complete);
  transfer->timed_bytes += bytes;
}

void Transfers::SendComplete(const Transfer& transfer) {
  const bool has_times = transfer.timed_bytes == transfer.plan.total_bytes;
  completions_->SendCompletion(transfer.plan.event_id, CL_COMPLETE,
                               has_times ? &transfer.times : nullptr);
}

absl::Status Transfers::OnChunk(uint64_t event_id, uint64_t offset, uint64_t size) {
  {
    absl::MutexLock lock(&mu_);
    const TransferRef transfer = Find(event_id);
    if (transfer == nullptr || !transfer->plan.is_write) return absl::OkStatus();
    auto it = transfer->chunks.upper_bound(offset);
    if (it == transfer->chunks.begin() ||
        (--it, !wire::SpanFits(offset - it->second.offset, size, it->second.size))) {
      return absl::InvalidArgumentError(absl::StrCat("transfer chunk ", offset, "+", size,
                                                     " of event ", event_id, " was never granted"));
    }
    Chunk& chunk = it->second;
    chunk.arrived += size;
    if (chunk.moving || chunk.arrived > chunk.size) {
      return absl::InvalidArgumentError(absl::StrCat("transfer chunk ", offset, "+", size,
                                                     " of event ", event_id, " comes twice"));
    }
    if (chunk.arrived < chunk.size) return absl::OkStatus();
    chunk.moving = true;
    if (chunk.staged && !transfer->ended) {
      MoveChunk(transfer, chunk);
    } else {
      EndChunk(transfer, chunk.offset);
    }
  }
  RunDeferred();
  return absl::OkStatus();
}

void Transfers::MoveChunk(const TransferRef& transfer, const Chunk& chunk) {
  deferred_.push_back([this, transfer, chunk] {
    const auto event = std::make_shared<UniqueCl<cl_event>>();
    const auto then = [this, transfer, chunk, event](cl_int ended) {
      EventTimes times;
      const bool timed =
          transfer->plan.profiling && ended == CL_COMPLETE && ReadProfiling(event->get(), &times);
      // The queue is in order: the marker has ended too.
      if (EventTimes marker; timed && chunk.offset == 0 && transfer->queued &&
                             ReadProfiling(transfer->queued.get(), &marker)) {
        times.queued = marker.queued;
      }
      {
        absl::MutexLock lock(&mu_);
        if (timed) NoteTimes(times, chunk.size, transfer.get());
        if (ended < 0) {
          End(transfer, ended);
          EndChunk(transfer, chunk.offset);
        } else if (transfer->plan.is_write) {
          EndChunk(transfer, chunk.offset);
        } else {
          SendReadData(transfer, chunk);
        }
      }
      RunDeferred();
    };
    const ContextObject& context = *transfer->plan.memory->context;
    if (context.pins && staged_bytes_.fetch_add(chunk.size) >= kPinAfterBytes)
      pins_->Pin(context, chunk.span);
    const cl_command_queue queue = transfer->plan.queue;
    const cl_int status = EnqueueChunk(queue, transfer->plan, chunk, 0, nullptr, event->out());
    if (status != CL_SUCCESS) return then(status);
    completions_->Then(event->get(), then);
    cl().clFlush(queue);
  });
}

cl_int Transfers::EnqueueChunk(cl_command_queue queue, const TransferPlan& plan, const Chunk& chunk,
                               cl_uint wait_count, const cl_event* waits, cl_event* event) {
  const cl_mem memory = plan.memory->handle.get();
  void* const host = chunk.span.data;
  if (plan.kind == TransferPlan::Kind::kLinear) {
    const uint64_t at = plan.offset + chunk.offset;
    return plan.is_write ? cl().clEnqueueWriteBuffer(queue, memory, CL_FALSE, at, chunk.size, host,
                                                     wait_count, waits, event)
                         : cl().clEnqueueReadBuffer(queue, memory, CL_FALSE, at, chunk.size, host,
                                                    wait_count, waits, event);
  }
  const size_t origin[3] = {plan.origin.v[0], plan.origin.v[1] + chunk.y,
                            plan.origin.v[2] + chunk.z};
  const size_t region[3] = {plan.region.v[0], chunk.rows, chunk.slices};
  const size_t host_origin[3] = {0, 0, 0};
  if (plan.kind == TransferPlan::Kind::kImage) {
    const size_t slice_pitch = HostSlicePitch(*plan.memory, plan.row_bytes, chunk.rows);
    return plan.is_write
               ? cl().clEnqueueWriteImage(queue, memory, CL_FALSE, origin, region, plan.row_bytes,
                                          slice_pitch, host, wait_count, waits, event)
               : cl().clEnqueueReadImage(queue, memory, CL_FALSE, origin, region, plan.row_bytes,
                                         slice_pitch, host, wait_count, waits, event);
  }
  const size_t slice_pitch = plan.row_bytes * chunk.rows;
  return plan.is_write
             ? cl().clEnqueueWriteBufferRect(queue, memory, CL_FALSE, origin, host_origin, region,
                                             plan.row_pitch, plan.slice_pitch, plan.row_bytes,
                                             slice_pitch, host, wait_count, waits, event)
             : cl().clEnqueueReadBufferRect(queue, memory, CL_FALSE, origin, host_origin, region,
                                            plan.row_pitch, plan.slice_pitch, plan.row_bytes,
                                            slice_pitch, host, wait_count, waits, event);
}

cl_int Transfers::EnqueueWhole(cl_command_queue queue, const TransferPlan& plan, uint8_t* host,
                               cl_uint wait_count, const cl_event* waits, cl_event* event) {
  Chunk whole;
  whole.size = plan.total_bytes;
  whole.rows = plan.region.v[1];
  whole.slices = plan.region.v[2];
  whole.span.data = host;
  return EnqueueChunk(queue, plan, whole, wait_count, waits, event);
}

absl::Status Transfers::OnAck(uint64_t event_id, uint64_t offset, uint64_t size) {
  {
    absl::MutexLock lock(&mu_);
    const TransferRef transfer = Find(event_id);
    if (transfer == nullptr || transfer->plan.is_write) return absl::OkStatus();
    auto it = transfer->chunks.upper_bound(offset);
    if (it == transfer->chunks.begin() ||
        (--it, !wire::SpanFits(offset - it->second.offset, size, it->second.size)) ||
        !it->second.sent) {
      return absl::InvalidArgumentError(absl::StrCat("acknowledgement of ", offset, "+", size,
                                                     " of event ", event_id,
                                                     " for data never sent"));
    }
    it->second.arrived += size;
    if (it->second.arrived >= it->second.size) EndChunk(transfer, it->second.offset);
  }
  RunDeferred();
  return absl::OkStatus();
}

void Transfers::FailAll() {
  {
    absl::MutexLock lock(&mu_);
    std::vector<TransferRef> all;
    for (const auto& entry : transfers_) all.push_back(entry.second);
    starving_.clear();
    for (const TransferRef& transfer : all) End(transfer, CL_INVALID_OPERATION);
    deferred_.push_back([all] {});  // The last references: not under the lock.
  }
  RunDeferred();
}

void Transfers::Clear() {
  absl::flat_hash_map<uint64_t, TransferRef> dropped_after_unlock;
  absl::MutexLock lock(&mu_);
  dropped_after_unlock.swap(transfers_);
}

void Transfers::FreeSpan(const Transfer& transfer, const Chunk& chunk) {
  if (!chunk.staged) return;
  heap_->Free(chunk.span);
  if (transfer.ended) return;  // No longer counted.
  staging_bytes_ -= chunk.size;
  Feed();
}

// Lets those go on that starve, until one finds no memory again.
void Transfers::Feed() {
  for (size_t left = starving_.size(); left > 0; --left) {
    const TransferRef next = std::move(starving_.front());
    starving_.pop_front();
    const size_t others = starving_.size();
    Pump(next);
    if (starving_.size() > others) return;
  }
}

void Transfers::EndChunk(const TransferRef& transfer, uint64_t chunk_offset) {
  const auto it = transfer->chunks.find(chunk_offset);
  if (it == transfer->chunks.end()) return;
  const Chunk chunk = it->second;
  transfer->chunks.erase(it);
  transfer->moved_bytes += chunk.size;
  FreeSpan(*transfer, chunk);
  if (transfer->ended) {
    if (transfer->chunks.empty()) transfers_.erase(transfer->plan.event_id);
    deferred_.push_back([transfer] {});  // The last reference releases handles: not under the lock.
    return;
  }
  if (transfer->moved_bytes == transfer->plan.total_bytes) {
    End(transfer, CL_COMPLETE);
  } else {
    Pump(transfer);
  }
}

void Transfers::End(const TransferRef& transfer, cl_int status) {
  if (transfer->ended) return;
  transfer->ended = true;
  transfer->plan.share.End(/*all_before=*/status == CL_COMPLETE);
  // Before the client is told: what it enqueues next need not wait.
  transfer->end->ended.store(true, std::memory_order_release);
  const TransferPlan& plan = transfer->plan;
  // The spans of a failed transfer are still in use by the driver, or by the client, which may
  // never say that it is done. They are freed when they can be, and nobody waits for them.
  for (const auto& [offset, chunk] : transfer->chunks) {
    if (chunk.staged) staging_bytes_ -= chunk.size;
  }
  if (transfer->chunks.empty()) transfers_.erase(plan.event_id);
  if (plan.is_write && status == CL_COMPLETE) SendComplete(*transfer);
  deferred_.push_back([this, transfer, status] {
    cl().clSetUserEventStatus(transfer->end->done.get(), status);
    if (status == CL_COMPLETE) return;
    // Told only now: what the client enqueues next must find the queue behind the failure.
    completions_->SendCompletion(transfer->plan.event_id, status);
    completions_->SweepFailed();
  });
  if (status < 0) Feed();
}

void Transfers::RunDeferred() {
  while (true) {
    std::vector<std::function<void()>> work;
    {
      absl::MutexLock lock(&mu_);
      work.swap(deferred_);
    }
    if (work.empty()) return;
    for (const auto& call : work) call();
  }
}

}  // namespace sluice::worker
