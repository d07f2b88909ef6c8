// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/enqueue.h"

#include <memory>
#include <utility>

#include "client_icd/base/copy_helpers.h"
#include "proto/frame.h"

namespace sluice::client {
namespace {

// Sections 5.2 to 5.8: CL_OUT_OF_RESOURCES if there is a failure to allocate resources required by
// the OpenCL implementation on the device.
cl_int TakeInFlight(Queue* queue) {
  InFlight& in_flight = queue->session().in_flight();
  if (in_flight.Take()) return CL_SUCCESS;
  queue->stream().Poll();  // Ends that nobody has looked at yet.
  return in_flight.Take() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

}  // namespace

EnqueueCall::EnqueueCall(Queue* queue, cl_uint num_events, const cl_event* wait_list,
                         cl_event* event_out, cl_command_type type, LinkedEvents linked)
    : queue_(queue),
      num_events_(num_events),
      wait_list_(wait_list),
      event_out_(event_out),
      type_(type),
      status_(ReadWaitList(num_events, wait_list, queue->context(), &wait_ids_, linked)) {
  if (status_ == CL_SUCCESS && queue->session().lost()) status_ = queue->session().lost_code();
  if (status_ == CL_SUCCESS) status_ = TakeInFlight(queue);
  counted_ = status_ == CL_SUCCESS;
}

EnqueueCall::EnqueueCall(Queue* queue, cl_command_type type)
    : queue_(queue),
      num_events_(0),
      wait_list_(nullptr),
      event_out_(nullptr),
      type_(type),
      status_(queue->session().lost() ? queue->session().lost_code() : CL_SUCCESS),
      counted_(status_ == CL_SUCCESS) {
  if (counted_) queue->session().in_flight().TakeAlways();
}

EnqueueCall::~EnqueueCall() {
  if (counted_) queue_->session().in_flight().Return(1);
}

Event* EnqueueCall::MakeEvent() {
  if (!event_) {
    event_ = Ref<Event>::Adopt(new Event(Ref<Queue>(queue_), type_));
    if (event_out_ != nullptr) event_->pending().SetGiven();
  }
  return event_.get();
}

void EnqueueCall::KeepUntilEnd(Ref<Object> object) { MakeEvent()->KeepUntilEnd(std::move(object)); }

void EnqueueCall::WhenEnded(Event::Hook hook) { MakeEvent()->WhenEnded(std::move(hook)); }

void EnqueueCall::SoonWhenEnded(Event::Hook hook) { MakeEvent()->SoonWhenEnded(std::move(hook)); }

cl_int EnqueueCall::Submit(pb::Enqueue* on) { return Post(on, {}, /*blocking=*/false); }

cl_int EnqueueCall::SubmitBlocking(pb::Enqueue* on) { return Post(on, {}, /*blocking=*/true); }

// The driver's own markers may wait for more than their list in a queue out of order.
cl_int EnqueueCall::SubmitNothing(bool blocking) {
  pb::EnqueueMarker& marker = *command_->mutable_enqueue_marker();
  marker.set_list_only(true);
  return Post(marker.mutable_on(), {}, blocking);
}

bool EnqueueCall::NameMirror(pb::Enqueue* on, const HostRegion& region) const {
  MirrorPlace place;
  const Mirrors& mirrors = queue_->session().mirrors();
  if (!region.contiguous() || !mirrors.Find(region.base(), region.packed_bytes(), &place))
    return false;
  on->set_mirror_mem_id(place.mem_id);
  on->set_mirror_offset(place.offset);
  return true;
}

cl_int EnqueueCall::SubmitWrite(pb::Enqueue* on, const HostRegion& source, bool blocking) {
  if (NameMirror(on, source)) return Post(on, {}, blocking);
  const uint64_t bytes = source.packed_bytes();
  // Bytes that a pending command will still write must not be copied before that. Nor what lies in
  // a mapping, where a command may still have to write.
  if (bytes > wire::kInlineTransferBytes ||
      queue_->session().pending_destinations().Overlap(source) ||
      queue_->session().transport().InHeap(source.base(), source.extent_bytes())) {
    MakeEvent()->SetTransfer(Event::Direction::kFromHost, source);
    return Post(on, {}, blocking);
  }
  const char* data = reinterpret_cast<const char*>(source.base());
  std::unique_ptr<uint8_t[]> gathered;
  if (!source.contiguous()) {
    gathered.reset(new uint8_t[bytes]);
    source.Gather(0, bytes, gathered.get());
    data = reinterpret_cast<const char*>(gathered.get());
  }
  return Post(on, {data, bytes}, blocking);
}

cl_int EnqueueCall::SubmitLateWrite(pb::Enqueue* on, const HostRegion& source) {
  MakeEvent()->SetTransfer(Event::Direction::kFromHost, source);
  return Post(on, {}, /*blocking=*/false);
}

cl_int EnqueueCall::SubmitRead(pb::Enqueue* on, const HostRegion& destination, bool blocking) {
  if (NameMirror(on, destination)) return Post(on, {}, blocking);
  MakeEvent()->SetTransfer(Event::Direction::kToHost, destination);
  // Into a mapping: what is enqueued later, the unmap first of all, finds the data there.
  if (queue_->session().transport().InHeap(destination.base(), destination.extent_bytes()))
    on->set_acknowledge_data(true);
  return Post(on, {}, blocking);
}

// Section 5.2.2 and others: a blocking call whose command failed since one of its wait list had
// failed answers CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST; otherwise the command's own error.
cl_int EnqueueCall::WaitForEnd(Event* event) {
  const cl_int status = queue_->stream().WaitFor(&event->pending());
  if (status >= 0) {
    const cl_int late = queue_->TakeLateError();
    returns_late_error_ = late != CL_SUCCESS;
    return late;
  }
  if (queue_->session().lost()) return queue_->session().lost_code();
  for (cl_uint i = 0; i < num_events_; ++i) {
    const Event* waited = Event::From(wait_list_[i]);
    if (waited != nullptr && waited->status() < 0)
      return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  return status;
}

// Section 5.12: without a list, a marker or barrier waits for all that was enqueued before.
bool EnqueueCall::EndsAfterAll() const {
  if (queue_->in_order()) return true;
  const bool marker = command_->has_enqueue_marker() && !command_->enqueue_marker().list_only();
  return (marker || command_->has_enqueue_barrier()) && num_events_ == 0 && also_.empty();
}

cl_int EnqueueCall::PostWithEvent(Event* event, pb::Enqueue* on, std::string_view payload) {
  CommandStream& stream = queue_->stream();
  on->set_event_id(event->id());
  // An event that neither the application gets nor we wait for is named by no later command: the
  // worker need not know it longer than the command takes.
  if (event_out_ != nullptr || named_) {
    event->SetPosted();
  } else {
    on->set_unnamed(true);
  }
  if (std::exchange(counted_, false))
    event->SetCovers(1 + (EndsAfterAll() ? queue_->TakeUncovered() : 0));
  if (!stream.Track(&event->pending())) {
    event->Abandon();
    return queue_->session().lost_code();
  }
  // If the loss of the session has ended the event already, hooks included, the command counts as
  // enqueued.
  if (!stream.Post(*command_, payload) && stream.Untrack(&event->pending())) {
    event->Abandon();
    return queue_->session().lost_code();
  }
  return CL_SUCCESS;
}

// Which user events of the application the command comes after.
void EnqueueCall::NoteGates() {
  Gates gates;
  for (cl_uint i = 0; i < num_events_; ++i) gates.Add(Event::From(wait_list_[i])->gates());
  for (const Event* event : also_) gates.Add(event->gates());
  const bool barrier = command_->has_enqueue_barrier();
  // Without a list, the driver's markers and barriers wait for all that was enqueued before; some
  // drivers' do so always.
  const bool marker = command_->has_enqueue_marker() && !command_->enqueue_marker().list_only();
  const bool all = barrier || marker;
  gates = queue_->PassGates(std::move(gates), all, barrier);
  if (event_) event_->SetGates(std::move(gates));
}

cl_int EnqueueCall::Post(pb::Enqueue* on, std::string_view payload, bool blocking) {
  CommandStream& stream = queue_->stream();
  on->set_queue_id(queue_->id());
  if (!wait_ids_.empty()) on->mutable_wait_event_ids()->Add(wait_ids_.begin(), wait_ids_.end());
  Event* event = event_out_ != nullptr || blocking ? MakeEvent() : event_.get();
  if (queue_->context().open_user_events() > 0) NoteGates();
  if (event == nullptr) {
    if (!stream.Post(*command_, payload)) return queue_->session().lost_code();
    counted_ = false;
    queue_->NoteEnqueue();
    queue_->NotePosted();
    return CL_SUCCESS;
  }
  if (blocking) event->SetAnswered();
  if (const cl_int posted = PostWithEvent(event, on, payload); posted != CL_SUCCESS) return posted;
  queue_->NoteEnqueue();
  if (event->direction() != Event::Direction::kNone)
    CopyHelpers::Get().Expect(event->region().packed_bytes());
  const cl_int status = blocking ? WaitForEnd(event) : CL_SUCCESS;
  // A command that has failed was enqueued all the same: the application gets its event.
  if (event_out_ != nullptr) *event_out_ = event_.Detach()->handle();
  return status;
}

}  // namespace sluice::client
