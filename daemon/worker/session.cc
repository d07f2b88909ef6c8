// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/worker/device_list.h"
#include "daemon/worker/memory/change_of_hands.h"
#include "daemon/worker/pool/pool_parts.h"
#include "daemon/worker/queues/queue.h"
#include "proto/handle_messages.h"
#include "proto/status_macros.h"

namespace sluice::worker {

void MemoryObject::CountIn(std::atomic<uint64_t>* count) {
  counted_in = count;
  count->fetch_add(1, std::memory_order_relaxed);
}

void MemoryObject::CountOrderIn(std::atomic<uint64_t>* count) {
  if (order_counted_in != nullptr) return;
  order_counted_in = count;
  count->fetch_add(1, std::memory_order_relaxed);
}

MemoryObject::~MemoryObject() {
  // A driver may have the commands of all later contexts wait for ever once external memory is gone
  // that it was told to acquire and not to release.
  if (hands != nullptr) hands->TakeFromDriver(context->own_queue.get(), handle.get());
  if (owes_zeros) TakePlaceOfZeros(this);
  handle.reset();
  if (auto* const place = std::get_if<InHeap>(&placement);
      place != nullptr && place->heap != nullptr)
    place->heap->LeaveToDriver(std::move(place->held));
  if (order_counted_in != nullptr) order_counted_in->fetch_sub(1, std::memory_order_relaxed);
  if (counted_in != nullptr) counted_in->fetch_sub(1, std::memory_order_relaxed);
  if (session != nullptr) session->quota().ReturnMemory(charged_bytes);
  if (on_destroyed) on_destroyed();
}

namespace {

void CL_CALLBACK ReleaseSpan(cl_mem, void* held) {
  delete static_cast<std::shared_ptr<const HeapSpan>*>(held);
}

}  // namespace

void MemoryObject::PlaceIn(const HeapSpan& part, std::shared_ptr<const HeapSpan> held) {
  auto drivers = std::make_unique<std::shared_ptr<const HeapSpan>>(held);
  placement = InHeap{part, std::move(held)};
  if (cl().clSetMemObjectDestructorCallback(handle.get(), &ReleaseSpan, drivers.get()) ==
      CL_SUCCESS)
    (void)drivers.release();
}

void MemoryObject::PlaceIn(Heap* heap, std::shared_ptr<const HeapSpan> held) {
  const HeapSpan whole = *held;
  PlaceIn(whole, std::move(held));
  std::get<InHeap>(placement).heap = heap;
}

SessionMemory::SessionMemory(int handle_channel, const SessionOptions& options, Replies* replies,
                             Completions* completions)
    : heap(handle_channel, options.limits.memory_bytes),
      svm_heap(handle_channel, options.limits.memory_bytes, wire::kFirstSvmSegment,
               options.svm_address),
      imports(handle_channel),
      pinned_heap(handle_channel, options.limits.memory_bytes, wire::kFirstPinnedSegment, 0,
                  Heap::Freed::kKept, kPinnedSegmentBytes),
      pins(&pinned_heap),
      mirrors(handle_channel, options.limits.memory_bytes),
      transfers(replies, completions, &pinned_heap, &pins) {}

Session::Session(const SessionOptions& options, int handle_channel, uint8_t* reply_ring)
    : options_(options),
      handle_channel_(handle_channel),
      pooled_turns_(options.pool == nullptr ? nullptr : &options.pool->turns),
      quota_(options.limits),
      replies_(reply_ring),
      completions_(&replies_, &printf_),
      memory_(handle_channel, options, &replies_, &completions_),
      builds_(options.limits.build_ms),
      argument_records_(options.records_directory) {
  if (options.pool != nullptr) completions_.SetPooled(options.pool->on_failed);
}

absl::Status Session::AddDevices() {
  thread_.Assert();
  ASSIGN_OR_RETURN(const std::vector<RealPlatform> platforms,
                   ListRealDevices(options_.device_allow_list));
  for (const RealPlatform& platform : platforms) {
    for (const RealDevice& device : platform.devices) {
      auto object = std::make_shared<DeviceObject>();
      object->id = device.id;
      object->handle = device.handle;
      object->key = device.key;
      object->platform = platform.handle;
      object->is_cpu = device.is_cpu;
      object->quirks = device.quirks;
      state_.devices.push_back(object);
      state_.objects.Insert(device.id, std::move(object));
    }
  }
  return absl::OkStatus();
}

void Session::SetDevices(const absl::flat_hash_map<uint64_t, uint64_t>& ids_by_key) {
  thread_.Assert();
  for (const auto& device : state_.devices) state_.objects.Erase(std::exchange(device->id, 0));
  for (const auto& device : state_.devices) {
    const auto it = ids_by_key.find(device->key);
    if (it == ids_by_key.end() || state_.objects.Contains(it->second)) continue;
    device->id = it->second;
    state_.objects.Insert(device->id, device);
  }
}

cl_int Session::CheckNew(uint64_t id) {
  thread_.Assert();
  if (state_.objects.size() >= options_.limits.objects) return CL_OUT_OF_RESOURCES;
  if (id == 0 || state_.objects.Contains(id)) {
    state_.violation = absl::InvalidArgumentError(absl::StrCat("object id ", id, " is in use"));
    return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

bool Session::MayAccept() {
  thread_.Assert();
  if (quota_.TakesCommands()) return true;
  state_.violation = absl::ResourceExhaustedError(
      absl::StrCat(quota_.in_flight(), " commands in flight, of which the session may have ",
                   options_.limits.in_flight));
  return false;
}

cl_int Session::Add(uint64_t id, std::shared_ptr<Object> object) {
  thread_.Assert();
  if (const cl_int status = CheckNew(id); status != CL_SUCCESS) return status;
  state_.objects.Insert(id, std::move(object));
  counts.objects.store(state_.objects.size(), std::memory_order_relaxed);
  return CL_SUCCESS;
}

void Session::Touch(QueueObject* queue) {
  thread_.Assert();
  if (queue->touched) return;
  queue->touched = true;
  state_.touched.push_back(queue);
}

void Session::Forget(QueueObject* queue) {
  thread_.Assert();
  std::erase(state_.touched, queue);
}

void Session::FlushTouched() {
  thread_.Assert();
  if (state_.touched.size() > 1) {
    std::stable_sort(
        state_.touched.begin(), state_.touched.end(),
        [](QueueObject* a, QueueObject* b) { return a->hints.priority < b->hints.priority; });
  }
  for (QueueObject* const queue : state_.touched) {
    if (queue->HoldsUnmarked()) queue->Mark(*this);  // Nothing more may come.
    queue->touched = false;
    cl().clFlush(queue->handle.get());
  }
  state_.touched.clear();
}

void Session::ReportRefused(const Refusal& refusal, cl_int status) {
  thread_.Assert();
  const uint64_t event_id = refusal.event_id;
  // An event that it waits for has failed, and the call was not wrong: only its own event tells, as
  // that of a command whose list fails afterwards.
  if (status != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
    pb::Reply reply;
    pb::LateError& error = *reply.mutable_late_error();
    error.set_queue_id(refusal.queue_id);
    error.set_status(status);
    error.set_call(refusal.call);
    error.set_event_id(event_id);
    replies_.Send(reply, wire::Wake::kIfAwaited);
  }
  if (event_id == 0) return;
  if (!MayKeepFailed()) {
    state_.forgot_refused = state_.forgot_refused || refusal.named;
  } else if (refusal.named && !state_.objects.Contains(event_id)) {
    auto event = std::make_shared<EventObject>();
    event->failed = status;
    state_.objects.Insert(event_id, std::move(event));
    counts.objects.store(state_.objects.size(), std::memory_order_relaxed);
  }
  completions_.SendCompletion(event_id, status);
}

// Commands that name it later are to learn of the failure, but for the ids of what failed a session
// may hold no more than for what it has.
bool Session::MayKeepFailed() const {
  thread_.Assert();
  return state_.objects.size() / 2 < options_.limits.objects;
}

void Session::ReportFailedCreation(const char* call, uint64_t context_id, uint64_t id,
                                   cl_int status) {
  thread_.Assert();
  if (id != 0 && MayKeepFailed() && !state_.objects.Contains(id)) {
    state_.objects.Insert(id, std::make_shared<FailedObject>(status));
    counts.objects.store(state_.objects.size(), std::memory_order_relaxed);
  }
  pb::Reply reply;
  pb::CreationFailed& failed = *reply.mutable_creation_failed();
  failed.set_context_id(context_id);
  failed.set_status(status);
  failed.set_call(call);
  replies_.Send(reply, wire::Wake::kUrgent);
}

void Session::DescribeLease(pb::Lease* lease) {
  thread_.Assert();
  lease->set_memory_bytes(quota_.MemoryLeft());
  const uint64_t objects = options_.limits.objects;
  lease->set_objects(objects > state_.objects.size() ? objects - state_.objects.size() : 0);
}

}  // namespace sluice::worker
