// SPDX-License-Identifier: Apache-2.0
// What the driver does in a process that has come to a limit of its own (setrlimit).
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/conformance/child_process.h"
#include "tests/conformance/fixtures.h"
#include "tests/conformance/there_and_back.h"

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

class ProcessLimitsTest : public WithPlatform {
 protected:
  static void ExpectEnd(const char* scene) {
    const ChildResult child = RunInChild(scene);
    EXPECT_FALSE(child.timed_out) << scene << " hangs";
    EXPECT_EQ(child.signal, 0) << scene << " ended by a signal";
    EXPECT_EQ(child.exit_code, 0) << scene;
  }
};

// A process without descriptors goes on with the session that it has.
TEST_F(ProcessLimitsTest, SpendsItsDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer makes a pipe to look at an object";
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

}  // namespace
}  // namespace sluice::conformance
