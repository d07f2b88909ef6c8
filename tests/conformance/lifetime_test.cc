// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/harness/child_process.h"
#include "tests/conformance/harness/fixtures.h"
#include "tests/conformance/harness/there_and_back.h"

extern char** environ;

namespace sluice::conformance {
namespace {

// Exit with everything still alive: objects, queued work behind a gate, a thread that waits for it.
CHILD_SCENE(ExitWithoutRelease) {
  cl_device_id device = TheHarness().device;
  if (ThereAndBack(device, 5) != 5) return 3;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_command_queue queue =
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
  const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 1 << 20, nullptr, nullptr);
  const cl_event gate = clCreateUserEvent(context, nullptr);
  static std::vector<char> host(1 << 20);
  if (clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, host.size(), host.data(), 1, &gate,
                           nullptr) != CL_SUCCESS) {
    return 3;
  }
  clFlush(queue);
  return 0;  // main returns it, so that static destructors and exit handlers run.
}

// Exit from another thread than main while main waits inside OpenCL.
CHILD_SCENE(ExitWhileWaiting) {
  cl_device_id device = TheHarness().device;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_event gate = clCreateUserEvent(context, nullptr);
  std::thread([] { _exit(7); }).detach();
  clWaitForEvents(1, &gate);
  return 3;
}

// A forked child makes its first call: with Sluice it has OpenCL of its own; a native driver may
// fail cleanly, but must not hang or crash. So has a child of the child. The parent goes on.
CHILD_SCENE(ForkAfterUse) {
  cl_device_id device = TheHarness().device;
  if (ThereAndBack(device, 5) != 5) return 3;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    cl_uint count = 0;
    clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof(count), &count, nullptr);
    const cl_int back = ThereAndBack(device, 6);
    clReleaseContext(context);
    if (back != 6) _exit(back == -1 && !TheHarness().IsSluice() ? 0 : 4);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(ThereAndBack(device, 7) == 7 ? 0 : 4);
    int status = 0;
    waitpid(grandchild, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 5;
  clReleaseContext(context);
  return ThereAndBack(device, 8) == 8 ? 0 : 6;
}

// A forked child that never calls OpenCL does not disturb its parent, also when it exits.
CHILD_SCENE(ForkWithoutUse) {
  cl_device_id device = TheHarness().device;
  if (ThereAndBack(device, 5) != 5) return 3;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    if (ThereAndBack(device, 10 + i) != 10 + i) return 4;
  }
  return 0;
}

// A forked child may touch what its parent had under way: nothing of it hangs, whatever the
// driver's own threads were doing at that moment.
CHILD_SCENE(ForkWhileEventsEnd) {
  cl_device_id device = TheHarness().device;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_command_queue queue =
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
  const auto ignore = [](cl_event, cl_int, void*) {};
  for (int round = 0; round < 300; ++round) {
    std::vector<cl_event> events(100);
    for (cl_event& event : events) {
      if (clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event) != CL_SUCCESS) return 3;
      clSetEventCallback(event, CL_COMPLETE, ignore, nullptr);
    }
    clFlush(queue);
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      for (const cl_event event : events) {
        cl_int state = 0;
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
        clSetEventCallback(event, CL_COMPLETE, ignore, nullptr);
        clWaitForEvents(1, &event);
        clReleaseEvent(event);
      }
      clFinish(queue);
      clReleaseCommandQueue(queue);
      clReleaseContext(context);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) return 4;
    if (clFinish(queue) != CL_SUCCESS) return 5;
    for (const cl_event event : events) clReleaseEvent(event);
  }
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}

// A child forked before the parent's first OpenCL call has OpenCL of its own.
CHILD_SCENE(LoaderForkBeforeUse) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const char* wanted = std::getenv("SLUICE_TEST_LIFETIME_PLATFORM");
    if (!SelectPlatform(wanted == nullptr ? "" : wanted).empty()) _exit(2);
    _exit(ThereAndBack(TheHarness().device, 6) == 6 ? 0 : 4);
  }
  const char* wanted = std::getenv("SLUICE_TEST_LIFETIME_PLATFORM");
  if (!SelectPlatform(wanted == nullptr ? "" : wanted).empty()) return 2;
  if (ThereAndBack(TheHarness().device, 5) != 5) return 3;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

// A command on objects that may be lost: it works, or says that the device is gone; an event that
// it gives is one.
bool EventIsWhole(cl_command_queue queue) {
  cl_event event = nullptr;
  const cl_int status = clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event);
  if (status != CL_SUCCESS) return status == CL_DEVICE_NOT_AVAILABLE && event == nullptr;
  const cl_int waited = clWaitForEvents(1, &event);
  cl_int state = CL_QUEUED;
  const cl_int asked =
      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  clReleaseEvent(event);
  if (asked != CL_SUCCESS) return false;
  if (waited == CL_SUCCESS) return state == CL_COMPLETE;
  return waited == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST && state == CL_DEVICE_NOT_AVAILABLE;
}

// Neither closed, nor hung up, nor written to.
bool AreWhole(const int (&pairs)[64][2]) {
  for (const auto& pair : pairs) {
    for (const int from : {0, 1}) {
      char byte = 'x';
      if (send(pair[from], &byte, 1, MSG_NOSIGNAL) != 1) return false;
      byte = 0;
      if (recv(pair[1 - from], &byte, 1, MSG_DONTWAIT) != 1 || byte != 'x') return false;
    }
  }
  return true;
}

// Until nothing has come or gone for a while on any connection: what gRPC has under way cannot be
// held back (client_icd/session/README.md).
void WaitUntilQuiet() {
  constexpr uint32_t kQuietMs = 100;
  for (int fd = 3; fd < 1024; ++fd) {
    tcp_info info = {};
    socklen_t size = sizeof(info);
    while (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED &&
           std::min(info.tcpi_last_data_sent, info.tcpi_last_data_recv) < kQuietMs) {
      std::this_thread::yield();
    }
  }
}

// Closes every descriptor that it has not opened itself, as programs that go into the background
// do, and opens others with the same numbers, which the driver must leave alone.
CHILD_SCENE(ClosesDescriptors) {
  cl_device_id device = TheHarness().device;
  if (ThereAndBack(device, 5) != 5) return 3;
  static std::promise<void> told;
  const auto notify = [](const char*, const void*, size_t, void*) { told.set_value(); };
  const cl_context context = clCreateContext(nullptr, 1, &device, notify, nullptr, nullptr);
  const cl_command_queue queue =
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
  if (clFinish(queue) != CL_SUCCESS) return 3;
  WaitUntilQuiet();
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  int mine[64][2];
  for (auto& pair : mine) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) return 3;
  }
  alarm(30);
  for (int i = 0; i < 5; ++i) {
    if (!EventIsWhole(queue)) return 4;
  }
  // At the latest when the daemon has noticed.
  if (told.get_future().wait_for(std::chrono::seconds(20)) != std::future_status::ready) return 5;
  if (clFinish(queue) != CL_DEVICE_NOT_AVAILABLE) return 5;
  if (ThereAndBack(device, 6) != 6) return 6;
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  if (ThereAndBack(device, 7) != 7) return 7;
  return AreWhole(mine) ? 0 : 8;
}

// Closes everything, begins anew, and does so again: over the network the second session is not of
// the same kind as the first. The program learns of the end of each though it calls nothing.
CHILD_SCENE(ClosesDescriptorsTwice) {
  cl_device_id device = TheHarness().device;
  static std::promise<void> told[3];
  const auto notify = [](const char*, const void*, size_t, void* promise) {
    static_cast<std::promise<void>*>(promise)->set_value();
  };
  alarm(60);
  for (std::promise<void>& end : told) {
    const cl_context context = clCreateContext(nullptr, 1, &device, notify, &end, nullptr);
    if (context == nullptr || ThereAndBack(device, 5) != 5) return 3;
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    if (end.get_future().wait_for(std::chrono::seconds(20)) != std::future_status::ready) return 4;
    clReleaseContext(context);
  }
  return 0;
}

// The same by a program whose session was lost before: the driver still has to let go of it.
CHILD_SCENE(ClosesDescriptorsAfterLoss) {
  cl_device_id device = TheHarness().device;
  static std::promise<void> told;
  const auto notify = [](const char*, const void*, size_t, void*) { told.set_value(); };
  const cl_context context = clCreateContext(nullptr, 1, &device, notify, nullptr, nullptr);
  const cl_command_queue queue =
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
  if (clFinish(queue) != CL_SUCCESS) return 3;
  for (int fd = 3; fd < 1024; ++fd) shutdown(fd, SHUT_RDWR);  // The network fails.
  alarm(30);
  if (told.get_future().wait_for(std::chrono::seconds(20)) != std::future_status::ready) return 4;
  if (clFinish(queue) != CL_DEVICE_NOT_AVAILABLE) return 4;
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  int mine[64][2];
  for (auto& pair : mine) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) return 3;
  }
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  if (ThereAndBack(device, 5) != 5) return 5;
  return AreWhole(mine) ? 0 : 8;
}

bool StandardDescriptorsAreClosed() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) return false;
  }
  return true;
}

// A program that is started without standard descriptors gets none of the driver's under their
// numbers, which it would write to by its next line of output.
CHILD_SCENE(LoaderWithoutStandardDescriptors) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
  alarm(30);
  const char* wanted = std::getenv("SLUICE_TEST_LIFETIME_PLATFORM");
  if (!SelectPlatform(wanted == nullptr ? "" : wanted).empty()) return 2;
  if (ThereAndBack(TheHarness().device, 5) != 5) return 3;
  return StandardDescriptorsAreClosed() ? 0 : 8;
}

// So does one that closes them later, with all others.
CHILD_SCENE(ClosesStandardDescriptorsToo) {
  cl_device_id device = TheHarness().device;
  if (ThereAndBack(device, 5) != 5) return 3;
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  alarm(30);
  // One may find that its session is lost: the first that has to wake the worker up.
  for (cl_int number = 10; number < 60 && ThereAndBack(device, number) == number; ++number) {
  }
  if (ThereAndBack(device, 7) != 7) return 7;
  if (!StandardDescriptorsAreClosed()) return 8;
  // Nobody writes there, and what the program opens there is its own.
  int mine[64][2];
  for (auto& pair : mine) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) return 3;
  }
  if (ThereAndBack(device, 8) != 8) return 9;
  return AreWhole(mine) ? 0 : 10;
}

// A connection of the program's own to whom the driver talks to; -1: there is none.
int ConnectAsTheDriverDoes() {
  const std::string endpoint = std::getenv("SLUICE_ENDPOINT");
  sockaddr_storage address = {};
  socklen_t length = 0;
  if (endpoint.rfind("unix:", 0) == 0) {
    sockaddr_un& local = reinterpret_cast<sockaddr_un&>(address);
    local.sun_family = AF_UNIX;
    endpoint.copy(local.sun_path, sizeof(local.sun_path) - 1, 5);
    length = sizeof(local);
  } else {
    const size_t colon = endpoint.rfind(':');
    sockaddr_in& remote = reinterpret_cast<sockaddr_in&>(address);
    remote.sin_family = AF_INET;
    remote.sin_port = htons(static_cast<uint16_t>(std::atoi(endpoint.c_str() + colon + 1)));
    inet_pton(AF_INET, endpoint.substr(0, colon).c_str(), &remote.sin_addr);
    length = sizeof(remote);
  }
  const int type = address.ss_family == AF_UNIX ? SOCK_SEQPACKET : SOCK_STREAM;
  const int fd = socket(address.ss_family, type, 0);
  return connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 ? fd : -1;
}

// A process gives memory that it can only read (a file that is mapped for reading, a table of
// constants) to be read.
CHILD_SCENE(MapsReadOnlyMemory) {
  constexpr size_t kMost = 8 << 20;
  cl_device_id device = TheHarness().device;
  void* const memory =
      mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 3;
  std::memset(memory, 5, kMost);
  if (mprotect(memory, kMost, PROT_READ) != 0) return 3;
  const Own<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(context, device, nullptr, nullptr));
  for (const size_t bytes : {size_t{64}, size_t{64} << 10, kMost}) {
    for (const cl_bool blocking : {CL_TRUE, CL_FALSE}) {
      const Own<cl_mem> buffer(
          clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR | CL_MEM_HOST_READ_ONLY,
                         bytes, memory, nullptr));
      void* const mapped = clEnqueueMapBuffer(queue, buffer, blocking, CL_MAP_READ, 0, bytes, 0,
                                              nullptr, nullptr, nullptr);
      if (mapped != memory || clFinish(queue) != CL_SUCCESS) return 4;
      if (static_cast<char*>(mapped)[bytes - 1] != 5) return 4;
      if (clEnqueueUnmapMemObject(queue, buffer, mapped, 0, nullptr, nullptr) != CL_SUCCESS ||
          clFinish(queue) != CL_SUCCESS) {
        return 5;
      }
    }
  }
  return 0;
}

// A forked child keeps the program's own connections, also those to the daemon.
CHILD_SCENE(ForkKeepsOwnSockets) {
  cl_device_id device = TheHarness().device;
  const int before = ConnectAsTheDriverDoes();
  if (before < 0 || ThereAndBack(device, 5) != 5) return 3;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const int after = ConnectAsTheDriverDoes();
  if (after < 0 || context == nullptr) return 3;
  const pid_t child = fork();
  if (child == 0) {
    const bool both = fcntl(before, F_GETFD) >= 0 && fcntl(after, F_GETFD) >= 0;
    _exit(both ? 0 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  clReleaseContext(context);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

class LifetimeTest : public WithPlatform {
 protected:
  static void ExpectEnd(const char* scene, int exit_code) {
    const ChildResult child = RunInChild(scene);
    EXPECT_FALSE(child.timed_out) << scene << " hangs";
    EXPECT_EQ(child.signal, 0) << scene << " ended by a signal";
    EXPECT_EQ(child.exit_code, exit_code) << scene;
  }
};

// A process may exit without releasing anything, with work still held back.
TEST_F(LifetimeTest, ExitWithoutRelease) {
  if (!MayRun("clEnqueueWriteBuffer.exit_with_gated_work"))
    GTEST_SKIP() << "see the table of differences";
  ExpectEnd("ExitWithoutRelease", 0);
}

// A process may exit while one of its threads waits.
TEST_F(LifetimeTest, ExitWhileWaiting) { ExpectEnd("ExitWhileWaiting", 7); }

// fork after use: the child's calls fail cleanly or work, and the parent's keep working.
TEST_F(LifetimeTest, ForkAfterUse) {
  if (!MayRun("clCreateContext.after_fork")) GTEST_SKIP() << "see the table of differences";
  ExpectEnd("ForkAfterUse", 0);
}

// gRPC's threads abort if they are on their way into epoll_wait when its descriptor is closed,
// which takes them long under a sanitizer. And a lock of the sanitizer's allocator that one of them
// holds stays held in the child of a fork.
bool IsUnsoundBesideGrpc() {
#ifdef __SANITIZE_ADDRESS__
  return TheHarness().kind == Kind::kNetwork;
#else
  return false;
#endif
}

// fork while replies come: the child hangs nowhere.
TEST_F(LifetimeTest, ForkWhileEventsEnd) {
  if (IsUnsoundBesideGrpc()) GTEST_SKIP() << "a sanitizer, and gRPC's threads";
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "a native driver's locks are its own affair";
  ExpectEnd("ForkWhileEventsEnd", 0);
}

// fork of a child that leaves OpenCL alone.
TEST_F(LifetimeTest, ForkWithoutUse) { ExpectEnd("ForkWithoutUse", 0); }

// fork before use: both processes work.
TEST_F(LifetimeTest, ForkBeforeUse) {
  setenv("SLUICE_TEST_LIFETIME_PLATFORM", TheHarness().platform_name.c_str(), 1);
  ExpectEnd("LoaderForkBeforeUse", 0);
}

// A program may close all descriptors: what it has of OpenCL is lost, and it may begin anew.
TEST_F(LifetimeTest, ClosesDescriptors) {
  if (IsUnsoundBesideGrpc()) GTEST_SKIP() << "a sanitizer, and gRPC's threads";
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "what a native driver has open is its own affair";
  ExpectEnd("ClosesDescriptors", 0);
}

// Also more than once.
TEST_F(LifetimeTest, ClosesDescriptorsTwice) {
  if (IsUnsoundBesideGrpc()) GTEST_SKIP() << "a sanitizer, and gRPC's threads";
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "what a native driver has open is its own affair";
  ExpectEnd("ClosesDescriptorsTwice", 0);
}

// So may one whose session was lost before, whatever numbers its own descriptors then have.
TEST_F(LifetimeTest, ClosesDescriptorsAfterLoss) {
  if (IsUnsoundBesideGrpc()) GTEST_SKIP() << "a sanitizer, and gRPC's threads";
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "what a native driver has open is its own affair";
  ExpectEnd("ClosesDescriptorsAfterLoss", 0);
}

// A program need not have standard descriptors.
TEST_F(LifetimeTest, WithoutStandardDescriptors) {
  if (IsUnsoundBesideGrpc()) GTEST_SKIP() << "a sanitizer, and gRPC's threads";
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "what a native driver has open is its own affair";
  setenv("SLUICE_TEST_LIFETIME_PLATFORM", TheHarness().platform_name.c_str(), 1);
  ExpectEnd("LoaderWithoutStandardDescriptors", 0);
  ExpectEnd("ClosesStandardDescriptorsToo", 0);
}

// A forked child may lose something of the driver's; that is not the program's.
TEST_F(LifetimeTest, ForkKeepsOwnSockets) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "a native driver talks to nobody";
  ExpectEnd("ForkKeepsOwnSockets", 0);
}

TEST_F(LifetimeTest, MapsReadOnlyMemory) {
  if (!TheHarness().IsSluice() &&
      DeviceValue<cl_device_type>(device(), CL_DEVICE_TYPE) != CL_DEVICE_TYPE_CPU) {
    GTEST_SKIP() << "a driver may want to pin it for writing";
  }
  ExpectEnd("MapsReadOnlyMemory", 0);
}

// A program may load the loader, use it, unload it and load it again.
TEST_F(LifetimeTest, LoaderComesAndGoes) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  ASSERT_GT(length, 0);
  std::string program = std::string(self, static_cast<size_t>(length)) + "_dlopen";
  ASSERT_EQ(access(program.c_str(), X_OK), 0) << program << " is built beside this program";
  std::string library = "libOpenCL.so.1", rounds = "3", platform = TheHarness().platform_name;
  char* argv[] = {program.data(), library.data(), rounds.data(), platform.data(), nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv, environ), 0);
  int status = 0;
  waitpid(pid, &status, 0);  // The watchdog bounds it.
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Contexts come and go many times without the process growing by a descriptor each time.
TEST_F(LifetimeTest, ContextsLeaveNoDescriptors) {
  const auto descriptors = [] {
    int open = 0;
    for (int fd = 0; fd < 1024; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return open;
  };
  ASSERT_EQ(ThereAndBack(device(), 1), 1);
  const int before = descriptors();
  for (cl_int i = 0; i < 20; ++i) ASSERT_EQ(ThereAndBack(device(), i), i);
  EXPECT_LE(descriptors(), before + 2) << "20 contexts made and released";
}

}  // namespace
}  // namespace sluice::conformance
