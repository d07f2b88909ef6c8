// SPDX-License-Identifier: Apache-2.0
// Native calls that wait for the application without a bound: which turns are given up, and what
// becomes of the commands that they belong to, and of what those work on.
#include "client_icd/sharing/core/native_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice::client::sharing {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(5);
constexpr absl::Duration kLong = absl::Minutes(5);
constexpr char kReason[] = "timed out waiting for the lock of this test";

absl::Time Now() { return absl::Now(); }
absl::Time Later() { return absl::Now() + kLong; }

// Its end as somebody sees it who waits for it.
struct Owner {
  absl::Notification given_up;
  std::function<void()> Hook() {
    return [this] { given_up.Notify(); };
  }
};

class NativeWatchTest : public ::testing::Test {
 protected:
  NativeWatch watch_{"sluice-test", kReason, kShort};
};

// A call that does not return in time ends its command, and its thread hears of it.
TEST_F(NativeWatchTest, WaitIsGivenUpAtItsDeadline) {
  Owner owner;
  const auto turn = watch_.AddTurn(kLong, owner.Hook());
  ASSERT_TRUE(turn->Start(Now()));
  NativeWait wait(turn.get());
  owner.given_up.WaitForNotification();
  EXPECT_TRUE(turn->given_up());
  EXPECT_FALSE(wait.End());
  EXPECT_FALSE(turn->Start(Later()));
  EXPECT_FALSE(turn->End());
}

// One that does return, and one that is done, never are; what works may take its time.
TEST_F(NativeWatchTest, NothingElseIsGivenUp) {
  Owner works, returns, ended, last;
  const auto working = watch_.AddTurn(kLong, works.Hook());
  const auto returned = watch_.AddTurn(kLong, returns.Hook());
  const auto done = watch_.AddTurn(kLong, ended.Hook());
  ASSERT_TRUE(working->Start(Now()));
  ASSERT_TRUE(returned->Start(Later()));
  EXPECT_TRUE(NativeWait(returned.get()).End());
  ASSERT_TRUE(done->Start(Now()));
  EXPECT_TRUE(done->BeginWait() && done->End());
  const auto late = watch_.AddTurn(kLong, last.Hook());
  ASSERT_TRUE(late->Start(Now() + kShort));
  NativeWait wait(late.get());
  last.given_up.WaitForNotification();
  EXPECT_TRUE(working->End());
  EXPECT_TRUE(returned->End());
  EXPECT_FALSE(works.given_up.HasBeenNotified() || returns.given_up.HasBeenNotified() ||
               ended.given_up.HasBeenNotified());
}

// A call in line behind one that was given up is given up too, and so is one that stands there
// while nothing moves at all.
TEST_F(NativeWatchTest, LineBehindIsGivenUp) {
  Owner first, second, third;
  const auto stuck = watch_.AddTurn(kLong, first.Hook());
  const auto behind = watch_.AddTurn(kShort, second.Hook());
  ASSERT_TRUE(stuck->Start(Now()));
  {
    const NativeWait wait(stuck.get());
    first.given_up.WaitForNotification();
    second.given_up.WaitForNotification();
    EXPECT_FALSE(behind->Start(Later()));
  }
  const auto alone = watch_.AddTurn(kShort, third.Hook());
  third.given_up.WaitForNotification();
}

// A thread with a watch, and a lock that somebody has entered.
class WatchedThread final : public NativeThread {
 public:
  WatchedThread() : NativeThread("sluice-test") {}
  NativeWatch* watch() override { return &watch_; }

 private:
  NativeWatch watch_{"sluice-watch", kReason, kShort};
};

struct Lock {
  absl::Mutex mu;
  bool entered = true;
  const std::thread::id caller = std::this_thread::get_id();
  absl::Duration in_line = kShort;  // The bound of a turn there.
  std::atomic<int> touched{0};
  std::atomic<int> living{0};

  void SetEntered(bool value) {
    absl::MutexLock held(&mu);
    entered = value;
  }
  bool IsEntered() {
    absl::MutexLock held(&mu);
    return entered;
  }
  void Await() {
    absl::MutexLock held(&mu);
    mu.Await(absl::Condition(
        +[](Lock* lock) { return !lock->entered; }, this));
  }
};

// Takes the lock for each call.
class LockedObject final : public NativeObject {
 public:
  LockedObject(std::shared_ptr<Lock> lock, std::shared_ptr<NativeThread> thread, uint64_t name)
      : lock_(std::move(lock)), thread_(std::move(thread)), name_(name) {
    ++lock_->living;
  }
  ~LockedObject() override { --lock_->living; }
  NativeKey key() const override { return {name_, 0, 0}; }
  NativeThread& thread() override { return *thread_; }
  absl::Duration timeout() const override {
    if (!lock_->IsEntered()) return kLong;
    return std::this_thread::get_id() == lock_->caller ? lock_->in_line : kShort;
  }
  void UseTurn(NativeWatch::Turn* turn) override { turn_ = turn; }
  cl_int Fetch(uint8_t* packed, absl::Time) override {
    if (!Enter()) return CL_OUT_OF_RESOURCES;
    ++lock_->touched;
    packed[0] = 'n';
    return CL_SUCCESS;
  }
  cl_int Store(const uint8_t*, absl::Time) override {
    if (!Enter()) return CL_OUT_OF_RESOURCES;
    ++lock_->touched;
    return CL_SUCCESS;
  }

 private:
  bool Enter() {
    EXPECT_NE(turn_, nullptr);
    NativeWait wait(turn_);
    lock_->Await();
    EXPECT_GT(lock_->living.load(), 0) << "freed under the call";
    return wait.End();
  }

  const std::shared_ptr<Lock> lock_;
  const std::shared_ptr<NativeThread> thread_;
  const uint64_t name_;
  NativeWatch::Turn* turn_ = nullptr;
};

class GivenUpTest : public SharingTest {
 protected:
  void SetUp() override {
    SharingTest::SetUp();
    context_->AddInterop(Api::kD3d11, std::make_shared<int>(0));
  }
  Ref<MemObject> Make() {
    MemObject::Description about;
    about.flags = CL_MEM_READ_WRITE;
    about.bytes = 64;
    Ref<MemObject> memory;
    EXPECT_EQ(CreateShared(context_.get(), std::move(about), Api::kD3d11,
                           std::make_unique<LockedObject>(lock_, thread_, ++next_name_), &memory),
              CL_SUCCESS);
    return memory;
  }
  cl_int Acquire(const Ref<MemObject>& memory) { return Round(true, memory); }
  cl_int Release(const Ref<MemObject>& memory) { return Round(false, memory); }
  // All that the thread was given before has ended.
  void AwaitThread() {
    absl::Notification ended;
    thread_->Post([&ended] { ended.Notify(); });
    ended.WaitForNotification();
  }

  const std::shared_ptr<Lock> lock_ = std::make_shared<Lock>();
  const std::shared_ptr<WatchedThread> thread_ = std::make_shared<WatchedThread>();

 private:
  static inline uint64_t next_name_ = 1000;  // Objects may outlive a test by a moment.

  cl_int Round(bool acquire, const Ref<MemObject>& memory) {
    cl_event event = nullptr;
    EXPECT_EQ(Sync(acquire, Api::kD3d11, {memory.get()}, &event), CL_SUCCESS);
    return End(event);
  }
};

// Acquires end though their thread stands in the lock, the one that does and those behind it, with
// the code of a wait that timed out; the releases after them, too. Once the lock is left, nothing
// is done for any of them, and the next round is as any other.
TEST_F(GivenUpTest, CommandsEndAndTheNextAreAsBefore) {
  const Ref<MemObject> memory = Make(), other = Make();
  EXPECT_EQ(Acquire(memory), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(queue_->TakeLateError(), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(Acquire(other), CL_OUT_OF_RESOURCES);
  EXPECT_LT(Release(memory), 0);
  EXPECT_EQ(Acquire(memory), CL_OUT_OF_RESOURCES) << "of an object whose call has not returned";
  EXPECT_LT(Release(memory), 0);
  EXPECT_LT(Release(other), 0);
  lock_->SetEntered(false);
  AwaitThread();
  EXPECT_EQ(lock_->touched.load(), 0);
  for (const Ref<MemObject>& one : {memory, other}) {
    EXPECT_EQ(Acquire(one), CL_COMPLETE);
    ASSERT_EQ(one->Use(true), CL_SUCCESS);
    EXPECT_EQ(Release(one), CL_COMPLETE);
  }
  EXPECT_EQ(lock_->touched.load(), 4);
}

// A release that is given up has released its object, and stores nothing later.
TEST_F(GivenUpTest, ReleaseIsGivenUp) {
  const Ref<MemObject> memory = Make();
  lock_->SetEntered(false);
  ASSERT_EQ(Acquire(memory), CL_COMPLETE);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  lock_->SetEntered(true);
  EXPECT_EQ(Release(memory), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(memory->Use(false), RulesOf(Api::kD3d11).use_not_acquired);
  lock_->SetEntered(false);
  AwaitThread();
  EXPECT_EQ(lock_->touched.load(), 1);
  EXPECT_EQ(Acquire(memory), CL_COMPLETE);
  EXPECT_EQ(Release(memory), CL_COMPLETE);
}

// Objects that a call works on live until it has returned, though the application has let go of it
// all.
TEST_F(GivenUpTest, NothingIsFreedUnderTheCall) {
  Ref<MemObject> memory = Make();
  lock_->in_line = kLong;
  EXPECT_EQ(Acquire(memory), CL_OUT_OF_RESOURCES);
  session_->stream().AwaitHandled();
  memory = nullptr;
  queue_ = nullptr;
  context_ = nullptr;
  EXPECT_EQ(lock_->living.load(), 1);
  lock_->SetEntered(false);
  AwaitThread();
  EXPECT_EQ(lock_->living.load(), 0);
}

}  // namespace
}  // namespace sluice::client::sharing
