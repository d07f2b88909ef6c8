// SPDX-License-Identifier: Apache-2.0
// The sharing core with native objects that tests make up, and a scripted worker: every state and
// code of every API, and what is asked of the native side when.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client_icd/base/api.h"
#include "tests/unit/client_icd/sharing_sync_fixture.h"

namespace sluice::client::sharing {
namespace {

// Every API: refused while released, acquired, again, released, again, with the codes of its row.
TEST_F(SharingSyncTest, EveryTransitionOfEveryApi) {
  for (const Api api : kApis) {
    const ApiRules& rules = RulesOf(api);
    SCOPED_TRACE(rules.name);
    const Ref<MemObject> memory = Make(api), plain = Make(api == Api::kGl ? Api::kEgl : Api::kGl);
    EXPECT_EQ(memory->Use(false), rules.use_not_acquired);
    EXPECT_EQ(Sync(false, api, {memory.get()}), rules.release_not_acquired);
    EXPECT_EQ(Sync(true, api, {plain.get()}), rules.invalid_object);
    cl_event event = nullptr;
    EXPECT_EQ(Sync(true, api, {memory.get()}, &event), CL_SUCCESS);
    EXPECT_EQ(Event::From(event)->type(), rules.acquire_command);
    EXPECT_EQ(End(event), CL_COMPLETE);
    EXPECT_EQ(memory->Use(false), CL_SUCCESS);
    EXPECT_EQ(Sync(true, api, {memory.get()}), rules.already_acquired);
    EXPECT_EQ(Sync(false, api, {memory.get()}, &event), CL_SUCCESS);
    EXPECT_EQ(Event::From(event)->type(), rules.release_command);
    EXPECT_EQ(End(event), CL_COMPLETE);
    EXPECT_EQ(memory->Use(false), rules.use_not_acquired);
    EXPECT_EQ(Sync(false, api, {memory.get()}), rules.release_not_acquired);
  }
}

// A call that is refused for one object leaves the states of the others as they were.
TEST_F(SharingSyncTest, RefusedCallChangesNothing) {
  const Ref<MemObject> a = Make(Api::kD3d11), b = Make(Api::kD3d11);
  ASSERT_EQ(Sync(true, Api::kD3d11, {b.get()}), CL_SUCCESS);
  EXPECT_EQ(Sync(true, Api::kD3d11, {a.get(), b.get()}), -1008);
  EXPECT_EQ(a->Use(false), -1009);
  EXPECT_EQ(Sync(true, Api::kD3d11, {a.get(), a.get()}), -1008) << "twice in one list";
  EXPECT_EQ(a->Use(false), -1009);
  EXPECT_EQ(Sync(false, Api::kD3d11, {b.get(), a.get()}), -1009);
  EXPECT_EQ(b->Use(false), CL_SUCCESS);
}

// Threads that come to the end of a job, and keep it until they are told.
class LateThread : public NativeThread {
 public:
  LateThread() : NativeThread("never started") {}
  bool Post(JobThread::Job job) override {
    threads_.emplace_back([this, job = std::move(job)] {
      job();
      told_.WaitForNotification();
    });
    return true;
  }
  void LetGo() {
    told_.Notify();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  absl::Notification told_;
  std::vector<std::thread> threads_;
};

// Objects that a context keeps, the application's device perhaps, go with the last release after a
// wait for the newest command: the thread that did the native work has let go of them by then.
TEST_F(SharingSyncTest, NothingOutlivesTheLastRelease) {
  const auto late = std::make_shared<LateThread>();
  auto device = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = device;
  context_->AddInterop(Api::kD3d11, std::move(device));
  MemObject::Description about;
  about.flags = CL_MEM_READ_WRITE;
  about.bytes = kFakeBytes;
  Ref<MemObject> memory;
  ASSERT_EQ(CreateShared(context_.get(), std::move(about), Api::kD3d11,
                         std::make_unique<FakeNativeObject>(native_, late, 1), &memory),
            CL_SUCCESS);
  for (const bool acquire : {true, false}) {
    cl_event event = nullptr;
    ASSERT_EQ(Sync(acquire, Api::kD3d11, {memory.get()}, &event), CL_SUCCESS);
    EXPECT_EQ(End(event), CL_COMPLETE);
  }
  session_->stream().AwaitHandled();
  memory = nullptr;
  queue_ = nullptr;
  context_ = nullptr;
  EXPECT_TRUE(watched.expired());
  late->LetGo();
}

// Where the API says so, a second memory object of one native object is refused until the first is
// gone, in another context too.
TEST_F(SharingSyncTest, CreatedTwice) {
  for (const Api api : kApis) {
    const ApiRules& rules = RulesOf(api);
    Ref<MemObject> first, second;
    ASSERT_EQ(Create(api, &first, 7), CL_SUCCESS);
    EXPECT_EQ(Create(api, &second, 7), rules.created_twice) << rules.name;
    const Ref<Context> one = std::exchange(context_, MakeContext());
    EXPECT_EQ(Create(api, &second, 7), rules.created_twice) << rules.name;
    context_ = one;
    first = nullptr;
    second = nullptr;
    EXPECT_EQ(Create(api, &first, 7), CL_SUCCESS) << rules.name;
  }
}

// The names of extensions that this system has not are unknown, of whatever object (section 5.5.5).
TEST_F(SharingSyncTest, NamesOfOtherSystems) {
  const Ref<MemObject> memory = Make(Api::kGl);
  char room[64];
  for (const cl_mem_info name : {0x4015, 0x401E, 0x2029}) {
    EXPECT_EQ(api::clGetMemObjectInfo(memory->handle(), name, sizeof(room), room, nullptr),
              CL_INVALID_VALUE)
        << name;
  }
}

// A user event counts as open until it has a status or nobody can give it one any more.
TEST_F(SharingSyncTest, OpenUserEvents) {
  const auto make = [this] { return api::clCreateUserEvent(context_->handle(), nullptr); };
  const cl_event set = make(), dropped = make();
  EXPECT_EQ(context_->open_user_events(), 2);
  EXPECT_EQ(api::clRetainEvent(dropped), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseEvent(dropped), CL_SUCCESS);
  EXPECT_EQ(context_->open_user_events(), 2);
  EXPECT_EQ(api::clReleaseEvent(dropped), CL_SUCCESS);
  EXPECT_EQ(context_->open_user_events(), 1);
  EXPECT_EQ(api::clSetUserEventStatus(set, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseEvent(set), CL_SUCCESS);
  EXPECT_EQ(context_->open_user_events(), 0);
}

// A command behind a user event without a status, through whatever commands, is known to be behind
// it; another is known not to be. With the status set, nothing is.
TEST_F(SharingSyncTest, GatesAreInherited) {
  const Ref<MemObject> free = Make(Api::kGl), gated = Make(Api::kGl), behind = Make(Api::kGl);
  const Ref<Queue> of_free = queue_, of_gated = MakeQueue(0);
  const Ref<Queue> of_behind = MakeQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const cl_event gate = api::clCreateUserEvent(context_->handle(), nullptr);
  std::vector<cl_event> events;
  const auto round = [&](const Ref<Queue>& queue, const Ref<MemObject>& memory,
                         const std::vector<cl_event>& waits) {
    queue_ = queue;
    cl_event acquired = nullptr, released = nullptr;
    EXPECT_EQ(Sync(true, Api::kGl, {memory.get()}, &acquired, waits), CL_SUCCESS);
    const cl_mem object = memory->handle();
    const bool behind_gate =
        ComesBehindUserEvent({queue->handle(), 1, &object, 0, nullptr, nullptr});
    EXPECT_EQ(Sync(false, Api::kGl, {memory.get()}, &released), CL_SUCCESS);
    events.insert(events.end(), {acquired, released});
    EXPECT_NE(Event::From(released)->gates().Open(), behind_gate) << "known before the call";
    return !behind_gate;
  };
  const auto marker = [&](const Ref<Queue>& queue, cl_event wait) {
    cl_event event = nullptr;
    EXPECT_EQ(api::clEnqueueMarkerWithWaitList(queue->handle(), 1, &wait, &event), CL_SUCCESS);
    events.push_back(event);
    return event;
  };
  EXPECT_TRUE(round(of_free, free, {}));
  // Out of order: only what waits, and what comes after a barrier.
  const cl_event after_gate = marker(of_behind, gate);
  EXPECT_TRUE(round(of_behind, behind, {}));
  EXPECT_FALSE(round(of_gated, gated, {after_gate})) << "through another command's event";
  EXPECT_FALSE(round(of_gated, gated, {})) << "by its place in the queue";
  EXPECT_EQ(api::clEnqueueBarrierWithWaitList(of_behind->handle(), 0, nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_FALSE(round(of_behind, behind, {})) << "after a barrier";
  EXPECT_TRUE(round(of_free, free, {}));
  ASSERT_EQ(api::clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  for (const cl_event event : events) {
    EXPECT_TRUE(Event::From(event)->gates().Open());
    EXPECT_EQ(End(event), CL_COMPLETE);
  }
  events.clear();
  EXPECT_TRUE(round(of_gated, gated, {}));
  for (const cl_event event : events) EXPECT_EQ(End(event), CL_COMPLETE);
  api::clReleaseEvent(gate);
}

// A mapping for reading that outlives its release can be given back. One for writing is refused as
// any use is, and loses nothing: the next acquire's release stores what was written through it.
TEST_F(SharingSyncTest, UnmapAfterRelease) {
  for (const cl_map_flags flags : {CL_MAP_READ, CL_MAP_WRITE}) {
    const Ref<MemObject> memory = Make(Api::kD3d11);
    ASSERT_EQ(Sync(true, Api::kD3d11, {memory.get()}), CL_SUCCESS);
    cl_int status = CL_SUCCESS;
    void* const mapped = api::clEnqueueMapBuffer(queue_->handle(), memory->handle(), CL_TRUE, flags,
                                                 0, kFakeBytes, 0, nullptr, nullptr, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    const auto release = [&] {
      cl_event released = nullptr;
      ASSERT_EQ(Sync(false, Api::kD3d11, {memory.get()}, &released), CL_SUCCESS);
      EXPECT_EQ(End(released), CL_COMPLETE);
    };
    const auto unmap = [&](cl_event* event) {
      return api::clEnqueueUnmapMemObject(queue_->handle(), memory->handle(), mapped, 0, nullptr,
                                          event);
    };
    release();
    const size_t writes = worker_->Count(pb::Command::kEnqueueWriteBuffer);
    if (flags == CL_MAP_WRITE) {
      std::memset(mapped, 'm', kFakeBytes);
      EXPECT_EQ(unmap(nullptr), RulesOf(Api::kD3d11).use_not_acquired);
      EXPECT_EQ(worker_->Count(pb::Command::kEnqueueWriteBuffer), writes);
      cl_event acquired = nullptr;
      ASSERT_EQ(Sync(true, Api::kD3d11, {memory.get()}, &acquired), CL_SUCCESS);
      EXPECT_EQ(End(acquired), CL_COMPLETE);
    }
    cl_event unmapped = nullptr;
    ASSERT_EQ(unmap(&unmapped), CL_SUCCESS);
    EXPECT_EQ(End(unmapped), CL_COMPLETE);
    EXPECT_EQ(unmap(nullptr), CL_INVALID_VALUE);
    if (flags == CL_MAP_READ) {
      EXPECT_EQ(worker_->Count(pb::Command::kEnqueueWriteBuffer), writes);
      continue;
    }
    release();
    EXPECT_EQ(native_->contents, std::string(kFakeBytes, 'm'));
  }
}

// A context that was not created for the API, an object of another context.
TEST_F(SharingSyncTest, Contexts) {
  const Ref<Context> with_apis = context_;
  const Ref<Queue> of_with_apis = queue_;
  context_ = MakeContext();
  const Ref<Queue> of_other = MakeQueue(0);
  for (const Api api : kApis) {
    const ApiRules& rules = RulesOf(api);
    const Ref<MemObject> memory = Make(api);
    queue_ = of_with_apis;
    EXPECT_EQ(Sync(true, api, {memory.get()}), rules.other_context) << rules.name;
    queue_ = of_other;
    EXPECT_EQ(Sync(true, api, {memory.get()}), rules.context_without_api) << rules.name;
  }
}

// Contents go to the worker with an acquire and come back with a release, if a command may have
// written; if none has, nothing is stored.
TEST_F(SharingSyncTest, ContentsTravel) {
  const Ref<MemObject> memory = Make(Api::kGralloc);
  cl_event event = nullptr;
  ASSERT_EQ(Sync(true, Api::kGralloc, {memory.get()}, &event), CL_SUCCESS);
  ASSERT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(worker_->Memory(memory->id()), std::string(kFakeBytes, 'n'));
  worker_->SetMemory(memory->id(), std::string(kFakeBytes, 'w'));
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGralloc, {memory.get()}, &event), CL_SUCCESS);
  ASSERT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(native_->contents, std::string(kFakeBytes, 'w'));
  EXPECT_EQ(native_->Log(), "FS");
  ASSERT_EQ(Sync(true, Api::kGralloc, {memory.get()}), CL_SUCCESS);
  ASSERT_EQ(memory->Use(false), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGralloc, {memory.get()}, &event), CL_SUCCESS);
  ASSERT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "FSFL");
  EXPECT_EQ(worker_->Count(pb::Command::kEnqueueReadBuffer), 1u);
}

// The calls return at once whatever they wait for; nothing is fetched before the wait list has
// ended, in queues of both kinds.
TEST_F(SharingSyncTest, NothingBlocksAndNothingIsEarly) {
  for (const cl_command_queue_properties flags :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    queue_ = MakeQueue(flags);
    native_->log.clear();
    const Ref<MemObject> memory = Make(Api::kGl);
    Ref<Event> gate;
    ASSERT_EQ(MakeUserEvent(context_.get(), &gate), CL_SUCCESS);
    cl_event acquired = nullptr, released = nullptr;
    ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &acquired, {gate->handle()}), CL_SUCCESS);
    ASSERT_EQ(memory->Use(true), CL_SUCCESS);
    ASSERT_EQ(Sync(false, Api::kGl, {memory.get()}, &released, {acquired}), CL_SUCCESS);
    EXPECT_EQ(native_->Log(), "");
    EXPECT_GT(Event::From(released)->status(), CL_COMPLETE);
    ASSERT_TRUE(gate->ClaimUserStatus());
    ASSERT_EQ(EndUserEvent(gate.get(), CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(End(released), CL_COMPLETE);
    EXPECT_EQ(End(acquired), CL_COMPLETE);
    EXPECT_EQ(native_->Log(), "FS");
  }
}

// A fetch that fails fails its acquire and the release after it, and stores nothing; so does a wait
// list that fails.
TEST_F(SharingSyncTest, FailedAcquireStoresNothing) {
  const Ref<MemObject> memory = Make(Api::kD3d10);
  native_->fetch_status = CL_OUT_OF_RESOURCES;
  cl_event acquired = nullptr, released = nullptr;
  ASSERT_EQ(Sync(true, Api::kD3d10, {memory.get()}, &acquired), CL_SUCCESS);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kD3d10, {memory.get()}, &released), CL_SUCCESS);
  EXPECT_EQ(End(acquired), CL_OUT_OF_RESOURCES) << "that of the late error, not the driver's";
  EXPECT_LT(End(released), 0);
  EXPECT_EQ(native_->Log(), "FL");
  EXPECT_EQ(queue_->TakeLateError(), CL_OUT_OF_RESOURCES);
  native_->fetch_status = CL_SUCCESS;
  Ref<Event> gate;
  ASSERT_EQ(MakeUserEvent(context_.get(), &gate), CL_SUCCESS);
  ASSERT_EQ(Sync(true, Api::kD3d10, {memory.get()}, &acquired, {gate->handle()}), CL_SUCCESS);
  ASSERT_TRUE(gate->ClaimUserStatus());
  EndUserEvent(gate.get(), -77);
  EXPECT_LT(End(acquired), 0);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kD3d10, {memory.get()}, &released), CL_SUCCESS);
  EXPECT_LT(End(released), 0);
  EXPECT_EQ(native_->Log(), "FLL");
  EXPECT_EQ(native_->contents, std::string(kFakeBytes, 'n'));
}

// An adapter's steps run around the objects, and their failure is the command's.
TEST_F(SharingSyncTest, StepsRunAroundTheObjects) {
  const Ref<MemObject> a = Make(Api::kGl), b = Make(Api::kGl);
  const auto step = [this](char letter, cl_int status) {
    return [this, letter, status](absl::Time) {
      native_->Note(letter);
      return status;
    };
  };
  cl_event event = nullptr;
  ASSERT_EQ(Sync(true, Api::kGl, {a.get(), b.get()}, &event, {},
                 {step('<', CL_SUCCESS), step('>', CL_SUCCESS)}),
            CL_SUCCESS);
  EXPECT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "<FF>");
  ASSERT_EQ(a->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGl, {a.get(), b.get()}, &event, {},
                 {step('<', CL_OUT_OF_RESOURCES), step('>', CL_SUCCESS)}),
            CL_SUCCESS);
  EXPECT_LT(End(event), 0);
  EXPECT_EQ(native_->Log(), "<FF><LL") << "let go of, but not stored";
}

// No other thread finds the event of an acquire, and waits for it by a release, before the worker
// has been sent the command whose event it is. It would name an event that the worker does not
// know.
TEST_F(SharingSyncTest, AcquireIsToldOnceItIsSent) {
  for (const Api api : {Api::kGl, Api::kD3d11}) {
    const Ref<MemObject> memory = Make(api);
    std::set<uint64_t> sent;
    worker_->BeforeSend([&, here = std::this_thread::get_id()](const pb::Command& command) {
      if (std::this_thread::get_id() != here) return;  // The native thread ends its part.
      const Ref<Object> told = SharedOf(*memory)->AcquireEvent();
      EXPECT_TRUE(!told || sent.contains(told->id()));
      if (command.has_enqueue_marker()) sent.insert(command.enqueue_marker().on().event_id());
    });
    cl_event acquired = nullptr, released = nullptr;
    ASSERT_EQ(Sync(true, api, {memory.get()}, &acquired), CL_SUCCESS);
    const Ref<Object> told = SharedOf(*memory)->AcquireEvent();
    ASSERT_NE(told.get(), nullptr);
    EXPECT_TRUE(sent.contains(told->id()));
    EXPECT_EQ(End(acquired), CL_COMPLETE);
    worker_->BeforeSend(nullptr);
    ASSERT_EQ(Sync(false, api, {memory.get()}, &released), CL_SUCCESS);
    EXPECT_EQ(End(released), CL_COMPLETE);
  }
}

// The loss of the session ends everything; later calls say so, and no state changes any more.
TEST_F(SharingSyncTest, LostSessionEndsEverything) {
  const Ref<MemObject> memory = Make(Api::kGl);
  Ref<Event> gate;
  ASSERT_EQ(MakeUserEvent(context_.get(), &gate), CL_SUCCESS);
  cl_event event = nullptr;
  ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &event, {gate->handle()}), CL_SUCCESS);
  session_->Lose("gone");
  EXPECT_EQ(End(event), CL_DEVICE_NOT_AVAILABLE);
  EXPECT_EQ(Sync(false, Api::kGl, {memory.get()}), CL_DEVICE_NOT_AVAILABLE);
  EXPECT_EQ(memory->Use(false), CL_SUCCESS);
  EXPECT_EQ(native_->Log(), "");
}

// A lost session is what an application is told, whatever else would be wrong.
TEST_F(SharingSyncTest, LostSessionComesFirst) {
  const Ref<MemObject> memory = Make(Api::kGl);
  ::setenv("SLUICE_SHARING", "shadow", 1);
  session_->Lose("gone");
  EXPECT_EQ(memory->Use(false), CL_DEVICE_NOT_AVAILABLE);
  Ref<MemObject> none;
  EXPECT_EQ(Create(Api::kGl, &none), CL_DEVICE_NOT_AVAILABLE);
}

}  // namespace
}  // namespace sluice::client::sharing
