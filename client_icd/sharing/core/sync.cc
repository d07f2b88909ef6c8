// SPDX-License-Identifier: Apache-2.0
// Acquire and release: the states, the commands (drawn in core.h), and the work on native threads.
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_icd/base/client_log.h"
#include "client_icd/objects/enqueue.h"
#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/core/shadow.h"
#include "proto/codec.h"

namespace sluice::client::sharing {
namespace {

struct Item {
  Ref<MemObject> memory;
  SharedObject* shared = nullptr;        // The memory object's own.
  bool moves = false;                    // Staging: its bytes travel, by a write or a read.
  bool written = false;                  // A release: by a command since the acquire.
  ShadowSync sync = ShadowSync::kHost;   // Shadow.
  Ref<Event> acquired = {};              // A release: the end of the acquire before it.
  HostRegion region = {};                // Staging: where they lie in this process.
  std::shared_ptr<Shadow> staging = {};  // Null if they lie in the native object's own memory.
  uint8_t* heap = nullptr;  // Staging: the worker's own bytes, if this process has them too.

  // The bytes for Fetch and Store; null if the native object's own memory is what is copied.
  uint8_t* packed() const {
    if (staging != nullptr) return staging->data();
    return region.base() == nullptr ? heap : nullptr;
  }
};

// One acquire or release in flight. Made by the call, kept by the hooks and jobs that still have to
// run; ends `done`, the user event that the queue waits for.
class Pass : public std::enable_shared_from_this<Pass> {
 public:
  Pass(Queue* queue, const ApiRules& rules, bool acquire, std::vector<Item> items, SyncSteps steps)
      : rules_(rules),
        acquire_(acquire),
        queue_(queue),
        items_(std::move(items)),
        steps_(std::move(steps)) {}

  cl_int Post(const SyncArguments& arguments);

 private:
  ShadowSync TakeTurn(const Item& item) const;
  cl_int FindRegions();
  void NoteGates(const SyncArguments& arguments);
  cl_int PostPrerequisites(const SyncArguments& arguments);
  void NoteFailure(cl_int status);
  cl_int PostMarker(const SyncArguments& arguments);
  cl_int PostRead(const Item& item, const SyncArguments& arguments);
  cl_int PostWrite(const Item& item);
  cl_int PostGive(const Item& item, const SyncArguments& arguments);
  cl_int PostTake(const Item& item);
  cl_int PostLast(const SyncArguments& arguments);
  bool OrdersQueue() const { return rules_.orders_queue && !queue_->in_order(); }

  Event::Hook WhenPrerequisiteEnds();
  void PrerequisiteEnded(cl_int status);
  void RunOn(size_t first);
  void Run(size_t first);
  cl_int RunItem(const Item& item, absl::Time deadline);
  cl_int AcquireItem(NativeObject& native, const Item& item, absl::Time deadline);
  cl_int ReleaseItem(NativeObject& native, const Item& item, absl::Time deadline);
  void UndoAcquires(size_t count, cl_int status);
  void Finish(cl_int status);
  bool GivenUp() const { return turn_ != nullptr && turn_->given_up(); }
  static void GiveUp(std::shared_ptr<Pass> self);
  void Report(cl_int status, const char* reason = nullptr);

  const ApiRules& rules_;
  const bool acquire_;
  // Constant once Post has made the event and found the regions; gone at the end.
  Ref<Queue> queue_;
  std::vector<Item> items_;
  SyncSteps steps_;
  Ref<Event> done_;
  Ref<Event> last_;                 // The command's, if there is anybody to ask it.
  std::vector<Ref<Event>> writes_;  // Only in Post.
  // Prerequisites that have not ended, and one for Post itself: the native work begins at 0.
  std::atomic<int> prerequisites_{1};
  std::atomic<cl_int> failed_{CL_SUCCESS};  // The first failure of a prerequisite.
  std::atomic<bool> finished_{false};
  // From the first post to a thread that has a watch. Once given up it is GiveUp that ends `done_`.
  std::shared_ptr<NativeWatch::Turn> turn_;
};

// The object's bytes in the shared heap (a CPU device of a local session), if they are packed
// there.
uint8_t* PackedHeap(const MemObject& memory, uint64_t bytes) {
  if (memory.is_image() && memory.heap_layout().bytes != bytes) return nullptr;
  return memory.heap();
}

// The semaphore of this direction, if the shadow has one that nothing else is under way with.
ShadowSync Pass::TakeTurn(const Item& item) const {
  const std::shared_ptr<SemaphoreTurns>& turns = item.shared->shadow_abilities().semaphores;
  const bool copies = acquire_ || item.written;
  const auto direction = acquire_ ? SemaphoreTurns::kToOpenCl : SemaphoreTurns::kFromOpenCl;
  return turns != nullptr && copies && turns->Take(direction) ? ShadowSync::kSemaphore
                                                              : ShadowSync::kHost;
}

cl_int Pass::FindRegions() {
  for (Item& item : items_) {
    item.sync = TakeTurn(item);
    if (item.shared->way() != Way::kStaging) continue;
    const uint64_t bytes = PackedBytes(*item.memory);
    item.region = item.shared->native().host_memory();
    // Nothing of the queue touches them between the marker and the end: no command need move them.
    item.heap = PackedHeap(*item.memory, bytes);
    if (item.heap != nullptr) continue;
    item.moves = acquire_ || item.written;
    if (item.region.base() != nullptr) continue;
    item.staging = item.shared->StagingMemory(bytes);
    if (item.staging == nullptr) return CL_OUT_OF_HOST_MEMORY;
    item.region = HostRegion(item.staging->data(), bytes);
  }
  return CL_SUCCESS;
}

// Behind all that the queue was given. It covers that (in_flight.h), so that nothing is left to be
// waited for when the application lets go of the queue.
cl_int PostBarrier(Queue* queue) {
  EnqueueCall call(queue, 0, nullptr, nullptr, CL_COMMAND_BARRIER);
  CL_RETURN_IF_ERROR(call.status());
  call.WhenEnded([](cl_int) {});
  return call.Submit(call.command().mutable_enqueue_barrier()->mutable_on());
}

cl_int Pass::Post(const SyncArguments& arguments) {
  CL_RETURN_IF_ERROR(FindRegions());
  CL_RETURN_IF_ERROR(MakeUserEvent(&queue_->context(), &done_));
  if (queue_->context().open_user_events() > 0) NoteGates(arguments);
  cl_int status = !acquire_ && OrdersQueue() ? PostBarrier(queue_.get()) : CL_SUCCESS;
  if (status == CL_SUCCESS) status = PostPrerequisites(arguments);
  if (acquire_) {
    for (const Item& item : items_) {
      if (status == CL_SUCCESS && item.moves) status = PostWrite(item);
      if (status == CL_SUCCESS && item.shared->changes_hands()) status = PostTake(item);
    }
  }
  if (status == CL_SUCCESS) status = PostLast(arguments);
  PrerequisiteEnded(status);
  writes_.clear();
  return status;
}

// `done_` is ours to end, but not before what it waits for.
void Pass::NoteGates(const SyncArguments& arguments) {
  Gates gates;
  for (cl_uint i = 0; i < arguments.num_events; ++i)
    gates.Add(Event::From(arguments.wait_list[i])->gates());
  for (const Item& item : items_) {
    if (item.acquired) gates.Add(item.acquired->gates());
  }
  done_->SetGates(queue_->PassGates(std::move(gates), /*all=*/false, /*barrier=*/false));
}

// The events that the native work must wait for: the wait list, in an in-order queue all before,
// and in a release the end of the acquire. Reads wait for the same. A marker without a list would
// wait for everything in a queue that is out of order, so that there is none there.
cl_int Pass::PostPrerequisites(const SyncArguments& arguments) {
  bool all_read = true;
  bool acquiring = false;
  for (const Item& item : items_) {
    const bool pending = item.acquired && !item.acquired->ended();
    if (item.acquired && !pending && item.acquired->status() < 0)
      NoteFailure(item.acquired->status());
    acquiring = acquiring || pending;
    // An object that has changed hands goes back, though another object's acquire may have failed.
    const bool failed = failed_.load(std::memory_order_relaxed) != CL_SUCCESS;
    if (acquire_ || !(item.shared->changes_hands() || (item.moves && !failed))) {
      all_read = false;
      continue;
    }
    CL_RETURN_IF_ERROR(item.moves ? PostRead(item, arguments) : PostGive(item, arguments));
  }
  const bool in_order = (queue_->flags() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  const bool after_others = in_order && !queue_->idle();
  const bool nothing_before = arguments.num_events == 0 && !after_others && !acquiring;
  if (items_.empty() || nothing_before || (all_read && !acquire_)) return CL_SUCCESS;
  return PostMarker(arguments);
}

void Pass::NoteFailure(cl_int status) {
  cl_int none = CL_SUCCESS;
  failed_.compare_exchange_strong(none, status, std::memory_order_relaxed);
}

Event::Hook Pass::WhenPrerequisiteEnds() {
  prerequisites_.fetch_add(1, std::memory_order_relaxed);
  return [self = shared_from_this()](cl_int status) { self->PrerequisiteEnded(status); };
}

cl_int Pass::PostMarker(const SyncArguments& arguments) {
  EnqueueCall call(queue_.get(), arguments.num_events, arguments.wait_list, nullptr,
                   CL_COMMAND_MARKER, LinkedEvents::kAllow);
  CL_RETURN_IF_ERROR(call.status());
  for (const Item& item : items_) {
    if (item.acquired) call.WaitAlso(*item.acquired);
  }
  call.SoonWhenEnded(WhenPrerequisiteEnds());
  const cl_int status = call.SubmitNothing();
  if (status != CL_SUCCESS) PrerequisiteEnded(status);  // Its hook does not run.
  return status;
}

// A read's or write's body, for all of the object's bytes.
template <typename Body>
pb::Enqueue* NameWholeImage(const MemObject& memory, Body* body) {
  const size_t origin[3] = {0, 0, 0};
  body->set_mem_id(memory.id());
  wire::EncodeSize3(origin, body->mutable_origin());
  wire::EncodeSize3(memory.image().extent.v, body->mutable_region());
  return body->mutable_on();
}
template <typename Body>
pb::Enqueue* NameWholeBuffer(const MemObject& memory, Body* body) {
  body->set_mem_id(memory.id());
  body->set_size(memory.bytes());
  return body->mutable_on();
}

cl_int Pass::PostRead(const Item& item, const SyncArguments& arguments) {
  EnqueueCall call(queue_.get(), arguments.num_events, arguments.wait_list, nullptr,
                   item.memory->is_image() ? CL_COMMAND_READ_IMAGE : CL_COMMAND_READ_BUFFER);
  CL_RETURN_IF_ERROR(call.status());
  // Nothing is read, into the native object's own memory perhaps, after an acquire that failed.
  if (item.acquired) call.WaitAlso(*item.acquired);
  call.SoonWhenEnded(WhenPrerequisiteEnds());
  pb::Enqueue* const on =
      item.memory->is_image()
          ? NameWholeImage(*item.memory, call.command().mutable_enqueue_read_image())
          : NameWholeBuffer(*item.memory, call.command().mutable_enqueue_read_buffer());
  const cl_int status = call.SubmitRead(on, item.region, /*blocking=*/false);
  if (status != CL_SUCCESS) PrerequisiteEnded(status);
  return status;
}

cl_int Pass::PostGive(const Item& item, const SyncArguments& arguments) {
  const GiveShadow give = {.written = item.written,
                           .sync = item.sync,
                           .acquired = item.acquired.get(),
                           .num_events = arguments.num_events,
                           .wait_list = arguments.wait_list};
  const cl_int status = PostGiveShadow(queue_.get(), item.memory, give, WhenPrerequisiteEnds());
  if (status != CL_SUCCESS) PrerequisiteEnded(status);
  return status;
}

cl_int Pass::PostTake(const Item& item) {
  Ref<Event> last;
  CL_RETURN_IF_ERROR(PostTakeShadow(queue_.get(), item.memory, *done_, item.sync, &last));
  writes_.push_back(std::move(last));
  return CL_SUCCESS;
}

cl_int Pass::PostWrite(const Item& item) {
  EnqueueCall call(queue_.get(), 0, nullptr, nullptr,
                   item.memory->is_image() ? CL_COMMAND_WRITE_IMAGE : CL_COMMAND_WRITE_BUFFER);
  CL_RETURN_IF_ERROR(call.status());
  call.WaitAlso(*done_);
  // Keeps the bytes too.
  call.WhenEnded([memory = item.memory, staging = item.staging](cl_int) {});
  writes_.push_back(call.GetEvent());
  pb::Enqueue* const on =
      item.memory->is_image()
          ? NameWholeImage(*item.memory, call.command().mutable_enqueue_write_image())
          : NameWholeBuffer(*item.memory, call.command().mutable_enqueue_write_buffer());
  return call.SubmitLateWrite(on, item.region);
}

cl_int Pass::PostLast(const SyncArguments& arguments) {
  // With no object to work on, the command still waits for its list.
  const bool only_waits = items_.empty();
  EnqueueCall call(queue_.get(), only_waits ? arguments.num_events : 0,
                   only_waits ? arguments.wait_list : nullptr, arguments.event,
                   acquire_ ? rules_.acquire_command : rules_.release_command,
                   LinkedEvents::kAllow);
  CL_RETURN_IF_ERROR(call.status());
  call.WaitAlso(*done_);
  for (const Ref<Event>& write : writes_) call.WaitAlso(*write);
  for (const Item& item : items_) call.KeepUntilEnd(item.memory);
  if (acquire_ || arguments.event != nullptr) last_ = call.GetEvent();
  const cl_int status = acquire_ && OrdersQueue()
                            ? call.Submit(call.command().mutable_enqueue_barrier()->mutable_on())
                            : call.SubmitNothing();
  if (!acquire_ || status != CL_SUCCESS) return status;
  // Once the worker is to hear of it, before anything by which another thread waits for it.
  for (const Item& item : items_) item.shared->SetAcquireEvent(last_);
  return CL_SUCCESS;
}

// Any thread, the one that drains replies among them: must not wait.
void Pass::PrerequisiteEnded(cl_int status) {
  if (status < 0) NoteFailure(status);
  if (prerequisites_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const cl_int failed = failed_.load(std::memory_order_relaxed);
  if (failed != CL_SUCCESS && acquire_) return Finish(failed);
  if (items_.empty()) return Finish(CL_SUCCESS);
  RunOn(0);
}

// Goes on with the items from `first` on, on the native thread of the first of them.
void Pass::RunOn(size_t first) {
  NativeObject& native = items_[first].shared->native();
  NativeThread& thread = native.thread();
  if (turn_ != nullptr) {
    turn_->Requeue();
  } else if (NativeWatch* const watch = thread.watch()) {
    turn_ = watch->AddTurn(native.timeout(), [weak = weak_from_this()] {
      if (std::shared_ptr<Pass> self = weak.lock()) GiveUp(std::move(self));
    });
  }
  if (thread.Post([self = shared_from_this(), first] { self->Run(first); })) return;
  Report(CL_OUT_OF_RESOURCES);
  UndoAcquires(first, CL_OUT_OF_RESOURCES);
}

void Pass::Run(size_t first) {
  // There was no thread for it in time. A call that was given up has its objects still.
  if (finished_.load(std::memory_order_acquire) && !GivenUp()) return;
  NativeThread* const here = &items_[first].shared->native().thread();
  absl::Time deadline = absl::Now() + items_[first].shared->native().timeout();
  if (turn_ != nullptr && !turn_->Start(deadline)) NoteFailure(CL_OUT_OF_RESOURCES);
  const cl_int before = failed_.load(std::memory_order_relaxed);
  cl_int status = before;
  if (first == 0 && status == CL_SUCCESS && steps_.before != nullptr)
    status = steps_.before(deadline);
  if (status != CL_SUCCESS) NoteFailure(status);  // A release then stores nothing.
  size_t i = first;
  bool timed_out = false;
  size_t well = first;  // Of an acquire: how many objects have been acquired.
  // A release lets go of every object, whatever became of the others.
  for (; i < items_.size() && (status == CL_SUCCESS || !acquire_); ++i) {
    NativeObject& native = items_[i].shared->native();
    if (&native.thread() != here) break;
    deadline = absl::Now() + native.timeout();
    const cl_int one = RunItem(items_[i], deadline);
    timed_out = timed_out || (one != CL_SUCCESS && absl::Now() >= deadline);
    if (one == CL_SUCCESS) ++well;
    if (status == CL_SUCCESS) status = one;
  }
  const bool more = i < items_.size() && (status == CL_SUCCESS || !acquire_);
  if (!more && status == CL_SUCCESS && steps_.after != nullptr) status = steps_.after(deadline);
  if (status != before && !GivenUp()) {
    NoteFailure(status);
    Report(status, timed_out ? "timed out" : nullptr);
  }
  return more ? RunOn(i) : status != CL_SUCCESS ? UndoAcquires(well, status) : Finish(status);
}

// The end of a pass that failed. The objects that an acquire has taken so far, the first `count`,
// go back from the last to the first, each on its own thread, before anybody hears of the failure.
void Pass::UndoAcquires(size_t count, cl_int status) {
  if (!acquire_ || count == 0) return Finish(status);
  const auto undo = [self = shared_from_this(), count, status] {
    if (self->finished_.load(std::memory_order_acquire) && !self->GivenUp()) return;
    NativeObject& native = self->items_[count - 1].shared->native();
    if (self->turn_ != nullptr) self->turn_->Start(absl::Now() + native.timeout());
    native.UndoAcquire();
    self->UndoAcquires(count - 1, status);
  };
  if (turn_ != nullptr) turn_->Requeue();
  if (!items_[count - 1].shared->native().thread().Post(undo)) Finish(status);
}

cl_int Pass::RunItem(const Item& item, absl::Time deadline) {
  NativeObject& native = item.shared->native();
  if (turn_ == nullptr)
    return acquire_ ? AcquireItem(native, item, deadline) : ReleaseItem(native, item, deadline);
  if (!item.shared->TakeNative()) return CL_OUT_OF_RESOURCES;
  turn_->Start(deadline);
  native.UseTurn(turn_.get());
  const cl_int status =
      acquire_ ? AcquireItem(native, item, deadline) : ReleaseItem(native, item, deadline);
  native.UseTurn(nullptr);
  item.shared->ReturnNative();
  return status == CL_SUCCESS && turn_->given_up() ? CL_OUT_OF_RESOURCES : status;
}

cl_int Pass::AcquireItem(NativeObject& native, const Item& item, absl::Time deadline) {
  cl_int status = CL_SUCCESS;
  switch (item.shared->way()) {
    case Way::kImport:
      status = native.BeginImported(deadline);
      break;
    case Way::kShadow:
      status = native.CopyToShadow(item.sync, deadline);
      break;
    case Way::kStaging:
      status = native.Fetch(item.packed(), deadline);
      if (status == CL_SUCCESS && item.heap != nullptr && item.region.base() != nullptr)
        item.region.Gather(0, item.region.packed_bytes(), item.heap);
      break;
  }
  return status;
}

cl_int Pass::ReleaseItem(NativeObject& native, const Item& item, absl::Time deadline) {
  const bool failed = failed_.load(std::memory_order_relaxed) != CL_SUCCESS;
  // Bytes that were not acquired well, or not read well, are not stored: they are not the object's.
  if (failed && item.shared->way() == Way::kStaging) return native.ReleaseUnchanged(deadline);
  if (failed) return native.BreakOff(item.written, deadline);
  if (item.shared->way() == Way::kImport) return native.EndImported(item.written, deadline);
  if (!item.written) return native.ReleaseUnchanged(deadline);
  if (item.shared->way() == Way::kShadow) {
    const cl_int status = native.CopyFromShadow(item.sync, deadline);
    if (status == CL_SUCCESS && item.sync == ShadowSync::kSemaphore)
      item.shared->shadow_abilities().semaphores->Return(SemaphoreTurns::kFromOpenCl);
    return status;
  }
  if (item.heap != nullptr && item.region.base() != nullptr)
    item.region.Scatter(0, item.region.packed_bytes(), item.heap);
  return native.Store(item.packed(), deadline);
}

// A late error as any other (../../objects/README.md): the event has its code, whatever the driver
// makes of commands that wait for one that failed.
void Pass::Report(cl_int status, const char* reason) {
  std::string message =
      absl::StrCat("sharing: ", acquire_ ? "acquiring" : "releasing", " ", items_.size(), " ",
                   rules_.name, " object(s) failed with ", status);
  if (reason != nullptr) absl::StrAppend(&message, ": ", reason);
  ClientLog(ClientLogLevel::kWarning, message);
  queue_->SetLateError(status, last_ && last_->pending().given() ? last_->id() : 0);
  if (last_) last_->SetCause(status);
  queue_->context().QueueNotify(message, {});
}

void Pass::Finish(cl_int status) {
  if (turn_ != nullptr && !turn_->End()) return;
  if (finished_.exchange(true, std::memory_order_acq_rel)) return;
  // A job that was posted keeps the objects and the queue until its own end. From then on the
  // application's last release must be the last, since it counts the native object's references and
  // the context's.
  items_.clear();
  steps_ = {};
  queue_ = nullptr;
  last_ = nullptr;
  // An event's error is negative; an extension's codes need not be.
  EndOwnEvent(std::move(done_), status > 0 ? CL_OUT_OF_RESOURCES : status);
}

// The native thread is in a call that does not return, or stands behind one. Nobody waits for it
// any longer; what it works on stays until it comes back, and goes there: to let go of a native
// object may be such a call too.
void Pass::GiveUp(std::shared_ptr<Pass> self) {
  self->finished_.store(true, std::memory_order_release);
  self->NoteFailure(CL_OUT_OF_RESOURCES);
  NativeThread& thread = self->items_.front().shared->native().thread();
  self->Report(CL_OUT_OF_RESOURCES, thread.watch()->reason());
  self->steps_ = {};
  Ref<Event> done = std::move(self->done_);
  thread.Post([self = std::move(self)] {});
  EndOwnEvent(std::move(done), CL_OUT_OF_RESOURCES);
}

// The objects of the call, checked in the order of the extensions' lists.
cl_int ReadObjects(const ApiRules& rules, const Context& context, const SyncArguments& arguments,
                   std::vector<Item>* items) {
  for (cl_uint i = 0; i < arguments.num_objects; ++i) {
    MemObject* memory = MemObject::From(arguments.objects[i]);
    if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
    if (&memory->context() != &context) return rules.other_context;
    SharedObject* shared = FindShared(*memory, rules.api);
    if (shared == nullptr) return rules.invalid_object;
    items->push_back({.memory = Ref<MemObject>(memory), .shared = shared});
  }
  return CL_SUCCESS;
}

void Undo(std::vector<Item>* changed, bool acquire) {
  for (Item& item : *changed) {
    SharedState& state = *item.shared->state();
    state.SetAcquired(!acquire);
    if (item.written) state.Use(/*writes=*/true);
    if (!acquire) item.shared->SetAcquireEvent(item.acquired);
  }
}

// Changes the states of all objects, or of none. Leaves in `items` those that have changed: an
// object that the API ignores, or that is there twice, is dropped.
cl_int ChangeStates(const ApiRules& rules, Context& context, bool acquire,
                    std::vector<Item>* items) {
  std::vector<Item> changed;
  const std::shared_ptr<SharedRegistry> registry = SharedRegistry::Of(context);
  absl::MutexLock lock(&registry->mu());
  for (Item& item : *items) {
    SharedState& state = *item.shared->state();
    if (state.acquired() == acquire) {
      const cl_int refused = acquire ? rules.already_acquired : rules.release_not_acquired;
      if (refused == CL_SUCCESS) continue;
      Undo(&changed, acquire);
      return refused;
    }
    item.written = state.TakeWritten() && !acquire;
    state.SetAcquired(acquire);
    if (!acquire) {
      // An event: nothing else is ever set.
      item.acquired =
          Ref<Event>::Adopt(static_cast<Event*>(item.shared->TakeAcquireEvent().Detach()));
    }
    changed.push_back(std::move(item));
  }
  *items = std::move(changed);
  return CL_SUCCESS;
}

cl_int EnqueueSync(Api api, const SyncArguments& arguments, SyncSteps steps, bool acquire) {
  Queue* queue = Queue::FromHost(arguments.queue);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  // CL_INVALID_VALUE if num_objects is zero and mem_objects is not a NULL value or if num_objects >
  // 0 and mem_objects is NULL; zero and NULL: does nothing and returns CL_SUCCESS.
  if ((arguments.num_objects == 0) != (arguments.objects == nullptr)) return CL_INVALID_VALUE;
  const ApiRules& rules = RulesOf(api);
  Context& context = queue->context();
  std::vector<Item> items;
  if (arguments.num_objects != 0) {
    if (rules.context_without_api != CL_SUCCESS && context.Interop(api) == nullptr)
      return rules.context_without_api;
    CL_RETURN_IF_ERROR(ReadObjects(rules, context, arguments, &items));
  }
  WaitIds ignored;
  // Only an acquire may wait for a fence of another API.
  CL_RETURN_IF_ERROR(ReadWaitList(arguments.num_events, arguments.wait_list, context, &ignored,
                                  acquire ? LinkedEvents::kAllow : LinkedEvents::kRefuse));
  if (context.session().lost()) return context.session().lost_code();
  CL_RETURN_IF_ERROR(ChangeStates(rules, context, acquire, &items));
  // Nothing to do or to wait for, and nobody who would ask when it is done.
  if (items.empty() && arguments.event == nullptr && arguments.num_events == 0) return CL_SUCCESS;
  std::vector<Item> changed = items;
  const auto pass =
      std::make_shared<Pass>(queue, rules, acquire, std::move(items), std::move(steps));
  const cl_int status = pass->Post(arguments);
  if (status != CL_SUCCESS) {
    const std::shared_ptr<SharedRegistry> registry = SharedRegistry::Of(context);
    absl::MutexLock lock(&registry->mu());
    Undo(&changed, acquire);
  }
  return status;
}

cl_int AnswerOf(Queue& queue, Event* released) {
  const cl_int status = queue.stream().WaitFor(&released->pending());
  if (status < 0 && queue.session().lost()) return queue.session().lost_code();
  // Of a release that failed by itself, the cause.
  if (const cl_int late = queue.TakeLateError(); late != CL_SUCCESS) return late;
  return CL_SUCCESS;
}

}  // namespace

cl_int WaitForRelease(Queue& queue, Event* released, cl_event* event) {
  const cl_int answer = AnswerOf(queue, released);
  if (answer != CL_SUCCESS && event != nullptr) {
    *event = nullptr;
    released->ReleaseForApp();
  }
  return answer;
}

bool ComesBehindUserEvent(const SyncArguments& arguments, bool behind_all) {
  Queue* queue = Queue::FromHost(arguments.queue);
  if (queue == nullptr || queue->context().open_user_events() == 0) return false;
  Gates gates = queue->GatesBefore(behind_all);
  for (cl_uint i = 0; arguments.wait_list != nullptr && i < arguments.num_events; ++i) {
    if (const Event* event = Event::From(arguments.wait_list[i])) gates.Add(event->gates());
  }
  for (cl_uint i = 0; arguments.objects != nullptr && i < arguments.num_objects; ++i) {
    const MemObject* memory = MemObject::From(arguments.objects[i]);
    SharedObject* shared = memory == nullptr ? nullptr : SharedOf(*memory);
    if (shared == nullptr) continue;
    const Ref<Object> acquired = shared->AcquireEvent();
    if (acquired) gates.Add(static_cast<Event*>(acquired.get())->gates());
  }
  return !gates.Open();
}

cl_int EnqueueAcquire(Api api, const SyncArguments& arguments, SyncSteps steps) {
  return EnqueueSync(api, arguments, std::move(steps), /*acquire=*/true);
}

cl_int EnqueueRelease(Api api, const SyncArguments& arguments, SyncSteps steps) {
  return EnqueueSync(api, arguments, std::move(steps), /*acquire=*/false);
}

}  // namespace sluice::client::sharing
