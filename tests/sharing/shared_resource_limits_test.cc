// SPDX-License-Identifier: Apache-2.0
// Shared resources in a process that has come to a limit of its own (setrlimit): what needs more
// says so, the process goes on, and nothing is written to stderr.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/conformance/harness/child_process.h"
#include "tests/sharing/shared_resource_fixture.h"

namespace sluice::gltest {
namespace {

using conformance::ChildResult;
using conformance::RunInChild;

constexpr char kCapability[] = "SLUICE_TEST_LIMITS_CAPABILITY";
constexpr char kDescriptors[] = "SLUICE_TEST_LIMITS_DESCRIPTORS";
constexpr int kHasTooFew = 17;
constexpr int kHasThreads = 18;
constexpr int kWrote = 19;

// While it lives, stderr is a file, which nobody should write.
class Stderr {
 public:
  Stderr() : file_(std::tmpfile()) { ::dup2(::fileno(file_), STDERR_FILENO); }
  // The code with which the scene ends instead of `code`, if somebody wrote to stderr.
  int Check(int code) {
    char text[512];
    std::rewind(file_);
    const size_t size = std::fread(text, 1, sizeof(text), file_);
    if (size == 0) return code;
    std::printf("stderr: %.*s", static_cast<int>(size), text);
    return kWrote;
  }

 private:
  std::FILE* file_;
};

// Leaves this process as many descriptors as the test says.
std::vector<int> SpendDescriptors() {
  rlimit limit;
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 256;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<int> spent;
  for (int fd = ::dup(STDIN_FILENO); fd >= 0; fd = ::dup(STDIN_FILENO)) spent.push_back(fd);
  for (int left = std::atoi(std::getenv(kDescriptors)); left > 0; --left) {
    ::close(spent.back());
    spent.pop_back();
  }
  return spent;
}

sluice_capability GivenCapability() {
  sluice_capability capability = {};
  sluice_capability_from_text(std::getenv(kCapability), &capability);
  return capability;
}

// An application that may open only a few files more makes a memory object of a resource, and
// another once it may open more.
CHILD_SCENE(SharesWithFewDescriptors) {
  Stderr nobodys;
  const cl_device_id device = TheHarness().device;
  cl_int code = CL_SUCCESS;
  const Own<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code));
  if (code != CL_SUCCESS) return 4;
  const auto create = reinterpret_cast<clCreateFromSharedResourceSLUICE_fn>(
      clGetExtensionFunctionAddressForPlatform(TheHarness().platform,
                                               "clCreateFromSharedResourceSLUICE"));
  const sluice_capability capability = GivenCapability();
  const std::vector<int> spent = SpendDescriptors();
  const Own<cl_mem> first(create(context, CL_MEM_READ_WRITE, capability.bytes, 0, &code));
  for (const int fd : spent) ::close(fd);
  const bool too_few = code == CL_OUT_OF_RESOURCES;
  if (code != CL_SUCCESS && !too_few) {
    std::printf("create: %d", code);
    return 5;
  }
  const Own<cl_mem> second(create(context, CL_MEM_READ_WRITE, capability.bytes, 0, &code));
  if (code != CL_SUCCESS) return 6;
  return nobodys.Check(too_few ? kHasTooFew : 0);
}

// So does a program without OpenCL, which takes a turn and watches as well.
CHILD_SCENE(ConnectsWithFewDescriptors) {
  Stderr nobodys;
  const sluice_capability capability = GivenCapability();
  const std::vector<int> spent = SpendDescriptors();
  sluice_connection* connection = nullptr;
  const sluice_status told = sluice_connect(nullptr, &connection);
  if (told != SLUICE_OK) std::printf("connect: %d %s", told, sluice_error_text());
  if (told != SLUICE_OK && told != SLUICE_LIMIT) return 5;
  if (told != SLUICE_OK) {
    for (const int fd : spent) ::close(fd);
    if (sluice_connect(nullptr, &connection) != SLUICE_OK) return 6;
  }
  sluice_hold hold = {};
  if (sluice_acquire(connection, &capability, SLUICE_WRITE, 5000, &hold) != SLUICE_OK) return 7;
  if (sluice_release(connection, &hold, 0) != SLUICE_OK) return 8;
  sluice_watch* watch = nullptr;
  if (sluice_watch_open(connection, &capability, &watch) != SLUICE_OK) return 9;
  sluice_watch_close(watch);
  sluice_disconnect(connection);
  return nobodys.Check(told == SLUICE_OK ? 0 : kHasTooFew);
}

// A connection that is there goes on without any descriptor left, and watches for the first time.
CHILD_SCENE(GoesOnWithoutDescriptors) {
  Stderr nobodys;
  const sluice_capability capability = GivenCapability();
  sluice_connection* connection = nullptr;
  if (sluice_connect(nullptr, &connection) != SLUICE_OK) return 5;
  SpendDescriptors();
  sluice_watch* watch = nullptr;
  if (sluice_watch_open(connection, &capability, &watch) != SLUICE_OK) return 6;
  sluice_hold hold = {};
  if (sluice_acquire(connection, &capability, SLUICE_WRITE, 5000, &hold) != SLUICE_OK) return 7;
  if (sluice_release(connection, &hold, 0) != SLUICE_OK) return 8;
  sluice_watch_close(watch);
  sluice_connection* other = nullptr;
  if (sluice_connect(nullptr, &other) != SLUICE_LIMIT) return 9;
  sluice_disconnect(connection);
  return nobodys.Check(0);
}

// A program that may have no more threads is refused a watch, or a connection, and goes on.
CHILD_SCENE(WatchesWithoutThreads) {
  Stderr nobodys;
  const sluice_capability capability = GivenCapability();
  sluice_connection* before = nullptr;
  if (sluice_connect(nullptr, &before) != SLUICE_OK) return 5;
  if (!conformance::AllowThreads(false)) return kHasThreads;
  sluice_watch* watch = nullptr;
  if (sluice_watch_open(before, &capability, &watch) != SLUICE_LIMIT) return 6;
  sluice_hold hold = {};
  if (sluice_acquire(before, &capability, SLUICE_WRITE, 5000, &hold) != SLUICE_OK) return 7;
  if (sluice_release(before, &hold, 0) != SLUICE_OK) return 8;
  if (!conformance::AllowThreads(true)) return kHasThreads;
  if (sluice_watch_open(before, &capability, &watch) != SLUICE_OK) return 9;
  sluice_watch_close(watch);
  sluice_disconnect(before);
  return nobodys.Check(0);
}

// gRPC would wait for ever for threads that it does not get.
CHILD_SCENE(ConnectsWithoutThreads) {
  Stderr nobodys;
  if (!conformance::AllowThreads(false)) return kHasThreads;
  sluice_connection* connection = nullptr;
  const sluice_status told = sluice_connect(nullptr, &connection);
  if (told != SLUICE_LIMIT) std::printf("connect: %d %s", told, sluice_error_text());
  if (told != SLUICE_LIMIT) return 5;
  if (!conformance::AllowThreads(true)) return kHasThreads;
  if (sluice_connect(nullptr, &connection) != SLUICE_OK) return 6;
  sluice_disconnect(connection);
  return nobodys.Check(0);
}

class SharedResourceLimits : public SharedResources {
 protected:
  void SetUp() override {
    SharedResources::SetUp();
    if (IsSkipped()) return;
    SKIP_OVER_NETWORK();
    char text[SLUICE_CAPABILITY_TEXT_SIZE];
    const Made made = MakeBuffer();
    sluice_capability_to_text(&made.write, text);
    ::setenv(kCapability, text, 1);
  }

  static void RunWithFewDescriptors(const char* scene) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "UndefinedBehaviorSanitizer makes a pipe to look at an object";
#endif
    constexpr int kEnough = 16;
    for (int left = 0; left <= kEnough; ++left) {
      ::setenv(kDescriptors, std::to_string(left).c_str(), 1);
      SCOPED_TRACE(left);
      const ChildResult child = RunInChild(scene);
      EXPECT_FALSE(child.timed_out);
      EXPECT_EQ(child.signal, 0) << "ended by a signal";
      EXPECT_TRUE(child.exit_code == 0 || (child.exit_code == kHasTooFew && left < kEnough))
          << child.exit_code << " " << child.output;
    }
  }

  static void RunWithoutThreads(const char* scene) {
    const ChildResult child = RunInChild(scene);
    if (child.exit_code == kHasThreads) GTEST_SKIP() << "no limit holds here";
    EXPECT_FALSE(child.timed_out);
    EXPECT_EQ(child.signal, 0) << "ended by a signal";
    EXPECT_EQ(child.exit_code, 0) << child.output;
  }
};

TEST_F(SharedResourceLimits, SharesWithFewDescriptors) {
  RunWithFewDescriptors("SharesWithFewDescriptors");
}

TEST_F(SharedResourceLimits, ConnectsWithFewDescriptors) {
  RunWithFewDescriptors("ConnectsWithFewDescriptors");
}

TEST_F(SharedResourceLimits, GoesOnWithoutDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer makes a pipe to look at an object";
#endif
  ::setenv(kDescriptors, "0", 1);
  const ChildResult child = RunInChild("GoesOnWithoutDescriptors");
  EXPECT_FALSE(child.timed_out);
  EXPECT_EQ(child.signal, 0) << "ended by a signal";
  EXPECT_EQ(child.exit_code, 0) << child.output;
}

TEST_F(SharedResourceLimits, ConnectsWithoutThreads) {
  RunWithoutThreads("ConnectsWithoutThreads");
}

TEST_F(SharedResourceLimits, WatchesWithoutThreads) { RunWithoutThreads("WatchesWithoutThreads"); }

}  // namespace
}  // namespace sluice::gltest
