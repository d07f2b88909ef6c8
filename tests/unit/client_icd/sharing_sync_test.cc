// SPDX-License-Identifier: Apache-2.0
// The sharing core with native objects that tests make up, and a scripted worker: every state and
// code of every API, and what is asked of the native side when.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client_icd/api.h"
#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice::sharing {
namespace {

constexpr Api kApis[] = {Api::kGl,    Api::kEgl,      Api::kGralloc, Api::kD3d10,
                         Api::kD3d11, Api::kDx9Media, Api::kSluice};
constexpr size_t kBytes = 64;

// What the native side of all objects of a test was asked, and what it answers.
struct Native {
  std::mutex mu;
  // One letter per call: Fetch, Store, LetGo; before is <, after is >; a copy to a shadow is t,
  // from a shadow f, with a semaphore 2 and 4.
  std::string log;
  std::string contents = std::string(kBytes, 'n');
  cl_int fetch_status = CL_SUCCESS;
  cl_int copy_status = CL_SUCCESS;  // Of copies to and from shadows.
  bool can_shadow = false;
  bool can_signal = false;
  absl::Status semaphores;

  void Note(char letter) {
    const std::lock_guard<std::mutex> lock(mu);
    log += letter;
  }
  std::string Log() {
    const std::lock_guard<std::mutex> lock(mu);
    return log;
  }
};

class FakeObject : public NativeObject {
 public:
  FakeObject(std::shared_ptr<Native> native, std::shared_ptr<NativeThread> thread, uint64_t name)
      : native_(std::move(native)), thread_(std::move(thread)), name_(name) {}
  NativeKey key() const override { return {name_, 0, 0}; }
  NativeThread& thread() override { return *thread_; }
  cl_int Fetch(uint8_t* packed, absl::Time) override {
    native_->Note('F');
    if (native_->fetch_status == CL_SUCCESS)
      native_->contents.copy(reinterpret_cast<char*>(packed), kBytes);
    return native_->fetch_status;
  }
  cl_int Store(const uint8_t* packed, absl::Time) override {
    native_->Note('S');
    native_->contents.assign(reinterpret_cast<const char*>(packed), kBytes);
    return CL_SUCCESS;
  }
  cl_int LetGo(absl::Time) override {
    native_->Note('L');
    return CL_SUCCESS;
  }
  bool CanShadow() const override { return native_->can_shadow; }
  absl::Status AttachShadow(ShadowMemory memory) override {
    EXPECT_TRUE(memory.fd.valid());
    return absl::OkStatus();
  }
  bool CanSignal() const override { return native_->can_signal; }
  absl::Status AttachSemaphores(ShadowSemaphores semaphores, std::function<void()> stuck) override {
    EXPECT_TRUE(semaphores.to_opencl.valid() && semaphores.from_opencl.valid());
    stuck_ = std::move(stuck);
    return native_->semaphores;
  }
  cl_int CopyToShadow(ShadowSync sync, absl::Time) override {
    native_->Note(sync == ShadowSync::kSemaphore ? '2' : 't');
    return native_->copy_status;
  }
  cl_int CopyFromShadow(ShadowSync sync, absl::Time) override {
    native_->Note(sync == ShadowSync::kSemaphore ? '4' : 'f');
    return native_->copy_status;
  }
  void GetStuck() { stuck_(); }

 private:
  std::function<void()> stuck_;
  const std::shared_ptr<Native> native_;  // Jobs may outlive a test.
  const std::shared_ptr<NativeThread> thread_;
  const uint64_t name_;
};

class SharingSyncTest : public SharingTest {
 protected:
  void SetUp() override {
    SharingTest::SetUp();
    for (const Api api : kApis) context_->AddInterop(api, std::make_shared<int>(0));
  }
  void TearDown() override {
    ::unsetenv("SLUICE_SHARING");
    SharingTest::TearDown();
  }
  cl_int Create(Api api, Ref<MemObject>* out, uint64_t name = 0) {
    MemObject::Description about;
    about.flags = CL_MEM_READ_WRITE;
    about.bytes = kBytes;
    return CreateShared(context_.get(), std::move(about), api,
                        std::make_unique<FakeObject>(native_, context_->shared_registry()->thread(),
                                                     name != 0 ? name : ++next_name_),
                        out);
  }
  Ref<MemObject> Make(Api api) {
    Ref<MemObject> memory;
    EXPECT_EQ(Create(api, &memory), CL_SUCCESS);
    return memory;
  }
  cl_int Round(const Ref<MemObject>& memory, bool written);
  // An object of OpenGL's that goes by shadow.
  Ref<MemObject> MakeShadowed(bool worker_has_semaphores);

  const std::shared_ptr<Native> native_ = std::make_shared<Native>();
  static inline uint64_t next_name_ = 100;  // Objects may outlive a test by a moment.
};

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

// What a context keeps, the application's device perhaps, goes with the last release after a wait
// for the newest command: the thread that did the native work has let go of it by then.
TEST_F(SharingSyncTest, NothingOutlivesTheLastRelease) {
  const auto late = std::make_shared<LateThread>();
  auto device = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = device;
  context_->AddInterop(Api::kD3d11, std::move(device));
  MemObject::Description about;
  about.flags = CL_MEM_READ_WRITE;
  about.bytes = kBytes;
  Ref<MemObject> memory;
  ASSERT_EQ(CreateShared(context_.get(), std::move(about), Api::kD3d11,
                         std::make_unique<FakeObject>(native_, late, 1), &memory),
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

// What comes behind a user event without a status, through whatever commands, is known to; what
// does not, is not. With the status set, nothing is.
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
                                                 0, kBytes, 0, nullptr, nullptr, &status);
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
      std::memset(mapped, 'm', kBytes);
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
    EXPECT_EQ(native_->contents, std::string(kBytes, 'm'));
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
  EXPECT_EQ(worker_->Memory(memory->id()), std::string(kBytes, 'n'));
  worker_->SetMemory(memory->id(), std::string(kBytes, 'w'));
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGralloc, {memory.get()}, &event), CL_SUCCESS);
  ASSERT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(native_->contents, std::string(kBytes, 'w'));
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
  EXPECT_EQ(native_->contents, std::string(kBytes, 'n'));
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

// An acquire and a release of an object that a command has written, to their ends.
cl_int SharingSyncTest::Round(const Ref<MemObject>& memory, bool written) {
  cl_event acquired = nullptr, released = nullptr;
  EXPECT_EQ(Sync(true, Api::kGl, {memory.get()}, &acquired), CL_SUCCESS);
  const cl_int status = End(acquired);
  EXPECT_EQ(memory->Use(written), CL_SUCCESS);
  EXPECT_EQ(Sync(false, Api::kGl, {memory.get()}, &released), CL_SUCCESS);
  const cl_int end = End(released);
  return status < 0 ? status : end;
}

Ref<MemObject> SharingSyncTest::MakeShadowed(bool worker_has_semaphores) {
  // Buffers ask for semaphores only if they must.
  ::setenv("SLUICE_SHARING", "shadow,semaphores", 1);
  worker_->MakeShadows(worker_has_semaphores);
  native_->can_shadow = true;
  Ref<MemObject> memory = Make(Api::kGl);
  EXPECT_EQ(memory->own_shared()->way(), Way::kShadow);
  return memory;
}

// Semaphores are used round after round where both sides have them, for a release only if there is
// something to copy.
TEST_F(SharingSyncTest, SemaphoresOrderTheCopies) {
  native_->can_signal = true;
  const Ref<MemObject> memory = MakeShadowed(true);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(Round(memory, true), CL_COMPLETE);
  EXPECT_EQ(Round(memory, false), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "2424242L");
  EXPECT_EQ(worker_->ShadowLog(), "ARARARAr");
}

// Without them on either side, or if the native API does not take them, all waits on the host.
TEST_F(SharingSyncTest, WithoutSemaphoresTheHostWaits) {
  for (const bool worker_has : {false, true}) {
    for (const bool native_has : {false, true}) {
      native_->can_signal = native_has;
      native_->semaphores = absl::UnavailableError("not taken");
      EXPECT_EQ(Round(MakeShadowed(worker_has && native_has), true), CL_COMPLETE);
    }
  }
  EXPECT_EQ(native_->Log(), "tftftftf");
  EXPECT_EQ(worker_->ShadowLog(), "arararar");
}

// NVIDIA's driver gets a buffer of its own beside the shadow, since kernels fail on an image over
// an imported one: what the native API wrote is there after an acquire, and what a command wrote is
// in the shadow before the native API copies; what nobody wrote is not copied back.
TEST_F(SharingSyncTest, NvidiaHasABufferBesideTheShadow) {
  google::protobuf::RepeatedPtrField<pb::InfoValue> values;
  const cl_uint vendor = 0x10de;
  values.Add()->set_param_name(CL_DEVICE_VENDOR_ID);
  values.rbegin()->set_value(&vendor, sizeof(vendor));
  device_ = Ref<Device>::Adopt(new Device(nullptr, 1, /*key=*/0, InfoTable(values)));
  context_ = MakeContext();
  context_->AddInterop(Api::kGl, std::make_shared<int>(0));
  queue_ = MakeQueue(0);
  const Ref<MemObject> memory = MakeShadowed(false);
  const Ref<MemObject> shadow = memory->own_shared()->shadow();
  ASSERT_NE(shadow.get(), nullptr);
  EXPECT_EQ(worker_->Count(pb::Command::kCreateBuffer), 1u);
  worker_->SetMemory(shadow->id(), "from GL");
  cl_event event = nullptr;
  ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &event), CL_SUCCESS);
  EXPECT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(worker_->Memory(memory->id()), "from GL");
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  worker_->SetMemory(memory->id(), "from CL");
  ASSERT_EQ(Sync(false, Api::kGl, {memory.get()}, &event), CL_SUCCESS);
  EXPECT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(worker_->Memory(shadow->id()), "from CL");
  EXPECT_EQ(worker_->ShadowLog(), "accr");
  EXPECT_EQ(Round(memory, false), CL_COMPLETE);
  EXPECT_EQ(worker_->ShadowLog(), "accracr");
  EXPECT_EQ(native_->Log(), "tftL");
}

// A buffer's copies are faster without.
TEST_F(SharingSyncTest, BuffersGoWithoutSemaphores) {
  native_->can_signal = true;
  const Ref<MemObject> with = MakeShadowed(true);
  ::unsetenv("SLUICE_SHARING");
  const Ref<MemObject> without = Make(Api::kGl);
  EXPECT_NE(with->own_shared()->shadow_abilities().semaphores, nullptr);
  EXPECT_EQ(without->own_shared()->shadow_abilities().semaphores, nullptr);
}

// A use of a semaphore that fails, or may have, is its last: nobody knows whether it is signalled.
// The other direction goes on.
TEST_F(SharingSyncTest, FailureIsASemaphoresLastUse) {
  native_->can_signal = true;
  const Ref<MemObject> one = MakeShadowed(true);
  worker_->FailNextAcquire(CL_OUT_OF_RESOURCES);  // Signalled, and not waited for.
  EXPECT_LT(Round(one, true), 0);
  EXPECT_EQ(Round(one, true), CL_COMPLETE);
  // The release behind the failure has taken its turn and not come to its copy.
  EXPECT_EQ(native_->Log(), "2Ltf");
  EXPECT_EQ(worker_->ShadowLog(), "Aar");
  native_->log.clear();
  const Ref<MemObject> other = MakeShadowed(true);
  EXPECT_EQ(Round(other, true), CL_COMPLETE);
  cl_event event = nullptr;
  ASSERT_EQ(Sync(true, Api::kGl, {other.get()}, &event), CL_SUCCESS);
  ASSERT_EQ(End(event), CL_COMPLETE);
  native_->copy_status = CL_OUT_OF_RESOURCES;  // Signalled, and perhaps not waited for.
  ASSERT_EQ(other->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGl, {other.get()}, &event), CL_SUCCESS);
  EXPECT_LT(End(event), 0);
  native_->copy_status = CL_SUCCESS;
  EXPECT_EQ(Round(other, true), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "24242f");
}

// Nobody signals a second time while it is not known that the first signal was waited for.
TEST_F(SharingSyncTest, NoSecondSignalBeforeTheWait) {
  native_->can_signal = true;
  const Ref<MemObject> memory = MakeShadowed(true);
  Ref<Event> gate;
  ASSERT_EQ(MakeUserEvent(context_.get(), &gate), CL_SUCCESS);
  cl_event events[4] = {};
  ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &events[0], {gate->handle()}), CL_SUCCESS);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGl, {memory.get()}, &events[1]), CL_SUCCESS);
  ASSERT_EQ(Sync(true, Api::kGl, {memory.get()}, &events[2]), CL_SUCCESS);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kGl, {memory.get()}, &events[3]), CL_SUCCESS);
  ASSERT_TRUE(gate->ClaimUserStatus());
  ASSERT_EQ(EndUserEvent(gate.get(), CL_COMPLETE), CL_SUCCESS);
  for (const cl_event event : events) EXPECT_EQ(End(event), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "24tf");
  EXPECT_EQ(worker_->ShadowLog(), "ARar");
  EXPECT_EQ(Round(memory, true), CL_COMPLETE);
  EXPECT_EQ(native_->Log(), "24tf24") << "known by now";
}

// A signal that the native API promised and does not give ends the session: nothing waits for ever.
TEST_F(SharingSyncTest, StuckSignalLosesTheSession) {
  native_->can_signal = true;
  const Ref<MemObject> memory = MakeShadowed(true);
  static_cast<FakeObject&>(memory->own_shared()->native()).GetStuck();
  EXPECT_TRUE(session_->lost());
  EXPECT_EQ(Sync(true, Api::kGl, {memory.get()}), CL_DEVICE_NOT_AVAILABLE);
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
}  // namespace sluice::sharing
