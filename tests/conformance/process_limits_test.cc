// SPDX-License-Identifier: Apache-2.0
// The driver in a process that has come to a limit of its own (setrlimit), and what it takes of one
// that waits.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/harness/child_process.h"
#include "tests/conformance/harness/fixtures.h"
#include "tests/conformance/harness/there_and_back.h"

namespace sluice::conformance {
namespace {

// A process that has as many files open as it may makes buffers and uses them.
CHILD_SCENE(SpendsItsDescriptors) {
  constexpr size_t kBytes = 16 << 20;
  cl_device_id device = TheHarness().device;
  const Own<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr));
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 256;
  setrlimit(RLIMIT_NOFILE, &limit);
  while (dup(STDIN_FILENO) >= 0) {
  }
  for (char value = 1; value <= 8; ++value) {
    const std::vector<char> host(kBytes, value);
    std::vector<char> back(kBytes);
    const Own<cl_mem> buffer(clCreateBuffer(context, CL_MEM_READ_WRITE, kBytes, nullptr, nullptr));
    if (clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, kBytes, host.data(), 0, nullptr, nullptr) !=
            CL_SUCCESS ||
        clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, kBytes, back.data(), 0, nullptr, nullptr) !=
            CL_SUCCESS) {
      return 3;
    }
    if (back != host) return 4;
  }
  return 0;
}

constexpr int kHasTooFew = 17;

// A process that may open only a few files more looks for a device, and uses it if there is one.
CHILD_SCENE(LoaderWithFewDescriptors) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 256;
  setrlimit(RLIMIT_NOFILE, &limit);
  int last = 0;
  for (int fd = 0; fd >= 0; fd = dup(STDIN_FILENO)) last = fd;
  const int left = std::atoi(std::getenv("SLUICE_TEST_LIMITS_DESCRIPTORS"));
  for (int i = 0; i < left; ++i) close(last - i);
  if (!SelectPlatform(std::getenv("SLUICE_TEST_LIMITS_PLATFORM")).empty()) return kHasTooFew;
  const cl_int back = ThereAndBack(TheHarness().device, 5);
  return back == 5 ? 0 : (back == -1 ? kHasTooFew : 3);
}

// A process whose address space is full writes what needs room on the way. It is told so, or told
// of success, and goes on once there is room again.
CHILD_SCENE(FillsItsAddressSpace) {
  constexpr size_t kBytes = 32 << 20;
  cl_device_id device = TheHarness().device;
  if (ThereAndBack(device, 5) != 5) return 3;
  const std::vector<char> host(kBytes, 7);
  {
    const Own<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
    const Own<cl_command_queue> queue(
        clCreateCommandQueueWithProperties(context, device, nullptr, nullptr));
    const Own<cl_mem> buffer(clCreateBuffer(context, CL_MEM_READ_WRITE, kBytes, nullptr, nullptr));
    // The first use of the buffer is the driver's to pay for.
    if (clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 16, host.data(), 0, nullptr, nullptr) !=
        CL_SUCCESS) {
      return 3;
    }
    size_t pages = 0;
    FILE* const file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) return 3;
    std::fclose(file);
    rlimit before;
    getrlimit(RLIMIT_AS, &before);
    // Some pages for what is small.
    const rlimit full = {pages * static_cast<size_t>(getpagesize()) + (512 << 10), before.rlim_max};
    setrlimit(RLIMIT_AS, &full);
    const cl_int code =
        clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, kBytes, host.data(), 0, nullptr, nullptr);
    setrlimit(RLIMIT_AS, &before);
    if (code != CL_SUCCESS && code != CL_DEVICE_NOT_AVAILABLE && code != CL_OUT_OF_RESOURCES &&
        code != CL_OUT_OF_HOST_MEMORY && code != CL_MEM_OBJECT_ALLOCATION_FAILURE) {
      return 4;
    }
  }
  return ThereAndBack(device, 9) == 9 ? 0 : 5;
}

constexpr int kHasThreads = 18;

using Ran = std::counting_semaphore<8>;

void Tell(void* ran) { static_cast<Ran*>(ran)->release(); }

// Calls that the application may have made.
struct Objects {
  Own<cl_context> context;
  Own<cl_command_queue> queue;
  Own<cl_mem> buffer;
  Own<cl_event> gate, freed;  // A user event, and that of clEnqueueSVMFree.
  Own<cl_program> built, compiled, to_link, linked;

  explicit Objects(std::nullptr_t) {}
  Objects() {
    cl_device_id device = TheHarness().device;
    context = Own<cl_context>(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
    queue = Own<cl_command_queue>(
        clCreateCommandQueueWithProperties(context, device, nullptr, nullptr));
    buffer = Own<cl_mem>(clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, nullptr));
    gate = Own<cl_event>(clCreateUserEvent(context, nullptr));
    for (Own<cl_program>* program : {&built, &compiled, &to_link}) {
      const char* source = "kernel void nothing() {}";
      *program = Own<cl_program>(clCreateProgramWithSource(context, 1, &source, nullptr, nullptr));
    }
    clCompileProgram(to_link, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr);
  }
};

void CL_CALLBACK OfError(const char*, const void*, size_t, void* ran) { Tell(ran); }
void CL_CALLBACK OfEvent(cl_event, cl_int, void* ran) { Tell(ran); }
void CL_CALLBACK OfMemory(cl_mem, void* ran) { Tell(ran); }
void CL_CALLBACK OfContext(cl_context, void* ran) { Tell(ran); }
void CL_CALLBACK OfProgram(cl_program, void* ran) { Tell(ran); }
void CL_CALLBACK OfFree(cl_command_queue, cl_uint, void**, void* ran) { Tell(ran); }

struct Registration {
  const char* name;
  std::function<cl_int(Ran* ran)> call;
  cl_int code = CL_SUCCESS;
  Ran ran{0};
};

// Asks to be called for each of its objects, lets all of them end, and waits for the calls that it
// was promised. Says what went wrong.
class Asker {
 public:
  bool AskAndEnd(bool may_be_refused) {
    for (Registration& one : all_) {
      one.code = one.call(&one.ran);
      if (one.code == CL_SUCCESS || (may_be_refused && one.code == CL_OUT_OF_HOST_MEMORY)) continue;
      std::printf("%s: %d", one.name, one.code);
      return false;
    }
    EndAll();
    for (Registration& one : all_) {
      if (one.code != CL_SUCCESS || one.ran.try_acquire_for(std::chrono::seconds(20))) continue;
      std::printf("%s: answered CL_SUCCESS, and never called", one.name);
      return false;
    }
    return true;
  }

  // Beyond what it was promised.
  bool WasCalledAgain() {
    for (Registration& one : all_) {
      if (!one.ran.try_acquire()) continue;
      std::printf("%s: answered %d, and called once too often", one.name, one.code);
      return true;
    }
    return false;
  }

 private:
  void EndAll() {
    clSetUserEventStatus(its_.gate, CL_COMPLETE);
    clFinish(its_.queue);
    its_ = Objects(nullptr);
  }

  cl_int Link(Ran* ran) {
    cl_int code = CL_SUCCESS;
    cl_program input = its_.to_link;
    its_.linked = Own<cl_program>(
        clLinkProgram(its_.context, 0, nullptr, "", 1, &input, &OfProgram, ran, &code));
    return code;
  }

  cl_int Free(Ran* ran) {
    if (DeviceValue<cl_device_svm_capabilities>(TheHarness().device, CL_DEVICE_SVM_CAPABILITIES) !=
        0)
      return clEnqueueSVMFree(its_.queue, 0, nullptr, &OfFree, ran, 0, nullptr, its_.freed.Out());
    Tell(ran);
    return CL_SUCCESS;
  }

  // Nothing calls this one.
  cl_int Create(Ran* ran) {
    cl_int code = CL_SUCCESS;
    cl_device_id device = TheHarness().device;
    const Own<cl_context> context(clCreateContext(nullptr, 1, &device, &OfError, ran, &code));
    if (code == CL_SUCCESS) Tell(ran);
    return code;
  }

  Objects its_;
  Registration all_[8] = {
      {"clSetEventCallback",
       [this](Ran* ran) { return clSetEventCallback(its_.gate, CL_COMPLETE, &OfEvent, ran); }},
      {"clSetMemObjectDestructorCallback",
       [this](Ran* ran) { return clSetMemObjectDestructorCallback(its_.buffer, &OfMemory, ran); }},
      {"clBuildProgram",
       [this](Ran* ran) { return clBuildProgram(its_.built, 0, nullptr, "", &OfProgram, ran); }},
      {"clCompileProgram",
       [this](Ran* ran) {
         return clCompileProgram(its_.compiled, 0, nullptr, "", 0, nullptr, nullptr, &OfProgram,
                                 ran);
       }},
      {"clLinkProgram", [this](Ran* ran) { return Link(ran); }},
      {"clEnqueueSVMFree", [this](Ran* ran) { return Free(ran); }},
      {"clSetContextDestructorCallback",
       [this](Ran* ran) { return clSetContextDestructorCallback(its_.context, &OfContext, ran); }},
      {"clCreateContext", [this](Ran* ran) { return Create(ran); }},
  };
};

// A process that can have no more threads asks to be called: it is refused, and never called, or
// is called. Once it may have threads, it is not refused.
CHILD_SCENE(AsksToBeCalledWithoutThreads) {
  Asker without, with;
  if (!AllowThreads(false)) return kHasThreads;
  if (!without.AskAndEnd(/*may_be_refused=*/true)) return 3;
  if (!AllowThreads(true)) return kHasThreads;
  if (!with.AskAndEnd(/*may_be_refused=*/false)) return 4;
  return without.WasCalledAgain() || with.WasCalledAgain() ? 5 : 0;
}

class ProcessLimitsTest : public WithPlatform {
 protected:
  static void ExpectEnd(const char* scene) { ExpectEnd(scene, RunInChild(scene)); }

  static void ExpectEnd(const char* scene, const ChildResult& child) {
    EXPECT_FALSE(child.timed_out) << scene << " hangs";
    EXPECT_EQ(child.signal, 0) << scene << " ended by a signal";
    EXPECT_EQ(child.exit_code, 0) << scene << ": " << child.output;
  }
};

// A process without descriptors goes on with the session that it has.
TEST_F(ProcessLimitsTest, SpendsItsDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer makes a pipe to look at an object";
#endif
#ifdef __SANITIZE_THREAD__
  if (TheHarness().kind == Kind::kNetwork)
    GTEST_SKIP() << "without descriptors the sanitizer cannot name what it is told to suppress";
#endif
  ExpectEnd("SpendsItsDescriptors");
}

// However few descriptors a process has left, it finds a platform or none, and is not ended.
TEST_F(ProcessLimitsTest, FindsPlatformsWithFewDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer makes a pipe to look at an object";
#endif
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "what a native driver has open is its own affair";
  setenv("SLUICE_TEST_LIMITS_PLATFORM", TheHarness().platform_name.c_str(), 1);
  constexpr int kEnough = 12;
  for (int left = 0; left <= kEnough; ++left) {
    setenv("SLUICE_TEST_LIMITS_DESCRIPTORS", std::to_string(left).c_str(), 1);
    SCOPED_TRACE(left);
    const ChildResult child = RunInChild("LoaderWithFewDescriptors");
    EXPECT_FALSE(child.timed_out);
    EXPECT_EQ(child.signal, 0) << "ended by a signal";
    EXPECT_TRUE(child.exit_code == 0 || (child.exit_code == kHasTooFew && left < kEnough))
        << child.exit_code;
  }
}

// A full address space ends no process.
TEST_F(ProcessLimitsTest, FillsItsAddressSpace) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs address space of its own";
#endif
  ExpectEnd("FillsItsAddressSpace");
}

// No callback is lost because its thread cannot be started.
TEST_F(ProcessLimitsTest, AsksToBeCalledWithoutThreads) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "which threads a native driver has is its affair";
  const char* const scene = "AsksToBeCalledWithoutThreads";
  const ChildResult child = RunInChild(scene, std::chrono::seconds(50));  // It builds programs.
  if (child.exit_code == kHasThreads) GTEST_SKIP() << "no limit holds here";
  ExpectEnd(scene, child);
}

// How often the threads that the driver has named as its own have gone to sleep.
long SleepsOfTheDriver() {
  long sleeps = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line;
    bool is_drivers = false;
    while (std::getline(status, line)) {
      if (line.rfind("Name:\tsluice-", 0) == 0) is_drivers = true;
      if (is_drivers && line.rfind("voluntary_ctxt_switches:", 0) == 0)
        sleeps += std::stol(line.substr(line.find(':') + 1));
    }
  }
  return sleeps;
}

// While a call waits, for as long as it does, the driver's own threads sleep.
TEST_F(ProcessLimitsTest, ItsThreadsSleepWhileACallWaits) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "what a native driver's threads do is its affair";
  const Own<cl_context> context = NewContext();
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(context, device(), nullptr, nullptr));
  const Own<cl_event> gate(clCreateUserEvent(context, nullptr));
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 1, gate.AsList(), nullptr), CL_SUCCESS);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // How long the wait takes.
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  });
  const long before = SleepsOfTheDriver();
  EXPECT_EQ(clFinish(queue), CL_SUCCESS);
  EXPECT_LT(SleepsOfTheDriver() - before, 50);
  other.join();
}

}  // namespace
}  // namespace sluice::conformance
