// SPDX-License-Identifier: Apache-2.0
// Threads that pthread_cancel is called for. No function of OpenCL's is a cancellation point, so
// what such a thread has begun is done whole, and it ends where the application has one.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/conformance/harness/child_process.h"
#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

constexpr char kSource[] =
    "#include \"cancelled.h\"\n"
    "kernel void add(global int* data) { data[get_global_id(0)] += ADDEND; }";

// Of each kind of call that may speak to the system, on the way of ordinary work. Returns what was
// not as it should be; 0: nothing.
int Work(const std::string& folder) {
  cl_device_id device = TheHarness().device;
  cl_int status = CL_SUCCESS;
  const Own<cl_context> context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status));
  if (status != CL_SUCCESS) return 10;
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(context, device, nullptr, &status));
  const char* source = kSource;
  const Own<cl_program> program(clCreateProgramWithSource(context, 1, &source, nullptr, &status));
  if (clBuildProgram(program, 1, &device, ("-I" + folder).c_str(), nullptr, nullptr) != CL_SUCCESS)
    return 11;
  const Own<cl_kernel> kernel(clCreateKernel(program, "add", &status));
  for (const size_t count : {size_t{4}, size_t{1} << 20}) {
    const std::vector<cl_int> host(count, 5);
    std::vector<cl_int> back(count);
    const size_t bytes = count * sizeof(cl_int);
    const Own<cl_mem> buffer(clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &status));
    const cl_mem handle = buffer;
    if (clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, bytes, host.data(), 0, nullptr, nullptr) !=
            CL_SUCCESS ||
        clSetKernelArg(kernel, 0, sizeof(handle), &handle) != CL_SUCCESS ||
        clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr) !=
            CL_SUCCESS) {
      return 12;
    }
    void* const mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, bytes, 0,
                                            nullptr, nullptr, &status);
    if (status != CL_SUCCESS || static_cast<cl_int*>(mapped)[count - 1] != 12) return 13;
    Own<cl_event> unmapped;
    if (clEnqueueUnmapMemObject(queue, buffer, mapped, 0, nullptr, unmapped.Out()) != CL_SUCCESS ||
        clWaitForEvents(1, unmapped.AsList()) != CL_SUCCESS ||
        clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, bytes, back.data(), 0, nullptr, nullptr) !=
            CL_SUCCESS ||
        clFinish(queue) != CL_SUCCESS || back[0] != 12) {
      return 14;
    }
  }
  return 0;
}

struct Cancelled {
  std::string folder;
  int result = 1;
};

void* Run(void* argument) {
  auto* const cancelled = static_cast<Cancelled*>(argument);
  pthread_cancel(pthread_self());
  cancelled->result = Work(cancelled->folder);
  pthread_testcancel();
  cancelled->result = 3;
  return nullptr;
}

int RunCancelled(const std::string& folder) {
  Cancelled cancelled{folder};
  pthread_t thread;
  void* end = nullptr;
  if (pthread_create(&thread, nullptr, &Run, &cancelled) != 0) return 2;
  if (pthread_join(thread, &end) != 0) return 2;
  return cancelled.result == 0 && end != PTHREAD_CANCELED ? 4 : cancelled.result;
}

// The first call of a process, in a child that must open a session of its own, and the later ones.
CHILD_SCENE(CancelledThreadWorks) {
  std::string folder = std::filesystem::temp_directory_path() / "cancelled-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 2;
  std::ofstream(folder + "/cancelled.h") << "#define ADDEND 7\n";
  int result = RunCancelled(folder);
  if (result == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(RunCancelled(folder));
    int status = 0;
    waitpid(child, &status, 0);
    result = WIFEXITED(status) ? WEXITSTATUS(status) : 5;
  }
  std::filesystem::remove_all(folder);
  return result;
}

TEST(CancellationTest, ThreadsEndWhereTheApplicationHasAPoint) {
  if (!TheHarness().IsSluice()) {
    GTEST_SKIP() << "native drivers end the thread in the middle of a call, with their locks held";
  }
  const ChildResult result = RunInChild("CancelledThreadWorks");
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 0);
}

}  // namespace
}  // namespace sluice::conformance
