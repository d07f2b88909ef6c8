// SPDX-License-Identifier: Apache-2.0
#include "broker/os/threads.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <array>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace sluice::os {
namespace {

constexpr DWORD kLongMs = 20'000;

class Event {
 public:
  Event() : handle_(CreateEventW(nullptr, TRUE, FALSE, nullptr)) {}
  ~Event() { CloseHandle(handle_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void Set() { SetEvent(handle_); }
  bool Wait() { return WaitForSingleObject(handle_, kLongMs) == WAIT_OBJECT_0; }

 private:
  HANDLE handle_;
};

// Says when it is destroyed, and with what in it.
struct Object {
  ~Object() {
    if (destroyed != nullptr) destroyed(values);
  }
  std::array<uint64_t, 8> values = {1, 2, 3, 4, 5, 6, 7, 8};
  std::function<void(const std::array<uint64_t, 8>&)> destroyed;
};
thread_local int number = 0;  // Older than the object.
thread_local Object object;

// A thread's objects are destroyed while their memory is theirs, whoever made the thread.
TEST(ThreadsTest, ObjectsHaveTheirMemoryWhenDestroyed) {
  const std::array<uint64_t, 8> expected = Object().values;
  const auto check = [&](const char* name, const std::function<void(void (*)(void*), void*)>& run) {
    struct Scene {
      Event ended;
      std::array<uint64_t, 8> seen = {};
    } scene;
    run(
        [](void* argument) {
          auto* const scene = static_cast<Scene*>(argument);
          ++number;
          object.destroyed = [scene](const std::array<uint64_t, 8>& values) {
            scene->seen = values;
            scene->ended.Set();
          };
        },
        &scene);
    ASSERT_TRUE(scene.ended.Wait()) << name;
    EXPECT_EQ(scene.seen, expected) << name;
  };
  check("std::thread", [](void (*body)(void*), void* scene) { std::thread(body, scene).join(); });
  check("StartThread", [](void (*body)(void*), void* scene) {
    EXPECT_TRUE(StartThread("objects", [=] { body(scene); }));
  });
  check("CreateThread", [](void (*body)(void*), void* scene) {
    std::pair<void (*)(void*), void*> call = {body, scene};
    const HANDLE thread = CreateThread(
        nullptr, 0,
        [](void* argument) -> DWORD {
          const auto& call = *static_cast<std::pair<void (*)(void*), void*>*>(argument);
          call.first(call.second);
          return 0;
        },
        &call, 0, nullptr);
    EXPECT_EQ(WaitForSingleObject(thread, kLongMs), WAIT_OBJECT_0);
    CloseHandle(thread);
  });
}

// A thread that destroys its objects needs nothing of who has the loader's lock, as each thread
// has that ends: else it would keep others from making threads, and from ending.
TEST(ThreadsTest, ObjectsAreDestroyedWithoutTheLoadersLock) {
  using Lock = LONG(NTAPI*)(ULONG, ULONG*, ULONG_PTR*);
  using Unlock = LONG(NTAPI*)(ULONG, ULONG_PTR);
  const HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
  const auto lock =
      reinterpret_cast<Lock>(reinterpret_cast<void*>(GetProcAddress(ntdll, "LdrLockLoaderLock")));
  const auto unlock = reinterpret_cast<Unlock>(
      reinterpret_cast<void*>(GetProcAddress(ntdll, "LdrUnlockLoaderLock")));
  ASSERT_TRUE(lock != nullptr && unlock != nullptr);

  Event ends_started, end, ending, makes_started, make, made;
  std::thread ends([&] {
    object.destroyed = [&](const auto&) { ending.Set(); };
    ends_started.Set();
    EXPECT_TRUE(end.Wait());
  });
  std::thread makes([&] {
    makes_started.Set();
    EXPECT_TRUE(make.Wait());
    std::thread another([] {});
    made.Set();
    another.join();
  });
  EXPECT_TRUE(ends_started.Wait() && makes_started.Wait());  // Threads begin with that lock.
  ULONG_PTR cookie = 0;
  ASSERT_EQ(lock(0, nullptr, &cookie), 0);
  end.Set();
  const bool begun = ending.Wait();
  make.Set();
  const bool others_go_on = made.Wait();
  EXPECT_EQ(unlock(0, cookie), 0);
  ends.join();
  makes.join();
  EXPECT_TRUE(begun);
  EXPECT_TRUE(others_go_on);
}

}  // namespace
}  // namespace sluice::os
