// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/worker/device_list.h"
#include "daemon/worker/memory/change_of_hands.h"
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
  span = part;
  auto drivers = std::make_unique<std::shared_ptr<const HeapSpan>>(held);
  held_span = std::move(held);
  if (cl().clSetMemObjectDestructorCallback(handle.get(), &ReleaseSpan, drivers.get()) ==
      CL_SUCCESS)
    (void)drivers.release();
}

Session::Session(const SessionOptions& options, int handle_channel, uint8_t* reply_ring)
    : options_(options),
      handle_channel_(handle_channel),
      quota_(options.limits),
      replies_(reply_ring),
      completions_(&replies_, &printf_),
      heap_(handle_channel, options.limits.memory_bytes),
      svm_heap_(handle_channel, options.limits.memory_bytes, wire::kFirstSvmSegment,
                wire::kSvmBaseAddress),
      imports_(handle_channel),
      pinned_heap_(handle_channel, options.limits.memory_bytes, wire::kFirstPinnedSegment, 0,
                   Heap::Freed::kKept, kPinnedSegmentBytes),
      pins_(&pinned_heap_),
      mirrors_(handle_channel, options.limits.memory_bytes),
      transfers_(&replies_, &completions_, &pinned_heap_, &pins_),
      builds_(options.limits.build_ms),
      argument_records_(options.records_directory) {}

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
      devices_.push_back(object);
      objects_.Insert(device.id, std::move(object));
    }
  }
  return absl::OkStatus();
}

void Session::SetDevices(const absl::flat_hash_map<uint64_t, uint64_t>& ids_by_key) {
  thread_.Assert();
  for (const auto& device : devices_) objects_.Erase(std::exchange(device->id, 0));
  for (const auto& device : devices_) {
    const auto it = ids_by_key.find(device->key);
    if (it == ids_by_key.end() || objects_.Contains(it->second)) continue;
    device->id = it->second;
    objects_.Insert(device->id, device);
  }
}

cl_int Session::CheckNew(uint64_t id) {
  thread_.Assert();
  if (objects_.size() >= options_.limits.objects) return CL_OUT_OF_RESOURCES;
  if (id == 0 || objects_.Contains(id)) {
    violation_ = absl::InvalidArgumentError(absl::StrCat("object id ", id, " is in use"));
    return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

bool Session::MayAccept() {
  thread_.Assert();
  if (quota_.TakesCommands()) return true;
  violation_ = absl::ResourceExhaustedError(
      absl::StrCat(quota_.in_flight(), " commands in flight, of which the session may have ",
                   options_.limits.in_flight));
  return false;
}

cl_int Session::Add(uint64_t id, std::shared_ptr<Object> object) {
  thread_.Assert();
  if (const cl_int status = CheckNew(id); status != CL_SUCCESS) return status;
  objects_.Insert(id, std::move(object));
  object_count.store(objects_.size(), std::memory_order_relaxed);
  return CL_SUCCESS;
}

void Session::Touch(QueueObject* queue) {
  thread_.Assert();
  if (queue->touched) return;
  queue->touched = true;
  touched_.push_back(queue);
}

void Session::Forget(QueueObject* queue) {
  thread_.Assert();
  std::erase(touched_, queue);
}

void Session::FlushTouched() {
  thread_.Assert();
  if (touched_.size() > 1) {
    std::stable_sort(touched_.begin(), touched_.end(), [](QueueObject* a, QueueObject* b) {
      return a->hints.priority < b->hints.priority;
    });
  }
  for (QueueObject* const queue : touched_) {
    queue->touched = false;
    cl().clFlush(queue->handle.get());
  }
  touched_.clear();
}

void Session::ReportRefused(const Refusal& refusal, cl_int status) {
  thread_.Assert();
  const uint64_t event_id = refusal.event_id;
  // What it waits for has failed, which the call was not wrong about: only its event tells, as that
  // of a command whose list fails afterwards.
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
    forgot_refused_ = forgot_refused_ || refusal.named;
  } else if (refusal.named && !objects_.Contains(event_id)) {
    auto event = std::make_shared<EventObject>();
    event->failed = status;
    objects_.Insert(event_id, std::move(event));
    object_count.store(objects_.size(), std::memory_order_relaxed);
  }
  completions_.SendCompletion(event_id, status);
}

// Commands that name it later are to learn of the failure, but for the ids of what failed a session
// may hold no more than for what it has.
bool Session::MayKeepFailed() const {
  thread_.Assert();
  return objects_.size() / 2 < options_.limits.objects;
}

void Session::ReportFailedCreation(const char* call, uint64_t context_id, uint64_t id,
                                   cl_int status) {
  thread_.Assert();
  if (id != 0 && MayKeepFailed() && !objects_.Contains(id)) {
    objects_.Insert(id, std::make_shared<FailedObject>(status));
    object_count.store(objects_.size(), std::memory_order_relaxed);
  }
  pb::Reply reply;
  pb::CreationFailed& failed = *reply.mutable_creation_failed();
  failed.set_context_id(context_id);
  failed.set_status(status);
  failed.set_call(call);
  replies_.Send(reply, wire::Wake::kUrgent);
}

void Session::DescribeLease(pb::Lease* lease) const {
  thread_.Assert();
  const uint64_t bytes = quota_.memory_bytes();
  const uint64_t limit = options_.limits.memory_bytes;
  lease->set_memory_bytes(limit > bytes ? limit - bytes : 0);
  const uint64_t objects = options_.limits.objects;
  lease->set_objects(objects > objects_.size() ? objects - objects_.size() : 0);
}

}  // namespace sluice::worker
