// SPDX-License-Identifier: Apache-2.0
// cl_sluice_shared_resource and the lives of processes: the application's child, the worker.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sharing/shared_resource_fixture.h"

namespace sluice::gltest {
namespace {

// A child of a process that shares resources, one of whose acquires waits for its turn, has
// contexts and shared resources of its own, and the parent's go on.
TEST_F(SharedResources, ForkedChildShares) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  const Made other = MakeBuffer();
  const Own<cl_mem> shared = Share(made);
  sluice_hold hold = {};
  ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 5000, &hold), SLUICE_OK);
  Own<cl_event> acquired;
  ASSERT_EQ(Acquire(shared, acquired.Out()), CL_SUCCESS);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // A hang is a failure.
    cl_int status = CL_SUCCESS;
    const cl_device_id its_device = device();
    const cl_context own = clCreateContext(nullptr, 1, &its_device, nullptr, nullptr, &status);
    if (status != CL_SUCCESS) ::_exit(1);
    const cl_command_queue its_queue =
        clCreateCommandQueueWithProperties(own, its_device, nullptr, &status);
    if (status != CL_SUCCESS) ::_exit(2);
    const cl_mem mine = create_(own, CL_MEM_READ_WRITE, other.write.bytes, 0, &status);
    if (status != CL_SUCCESS) ::_exit(3);
    if (acquire_(its_queue, 1, &mine, 0, nullptr, nullptr) != CL_SUCCESS) ::_exit(4);
    const cl_uint value = 77;
    if (clEnqueueFillBuffer(its_queue, mine, &value, 4, 0, kBytes, 0, nullptr, nullptr) !=
        CL_SUCCESS) {
      ::_exit(5);
    }
    if (release_(its_queue, 1, &mine, 0, nullptr, nullptr) != CL_SUCCESS) ::_exit(6);
    ::_exit(clFinish(its_queue) == CL_SUCCESS ? 0 : 7);
  }
  int code = -1;
  ASSERT_EQ(::waitpid(child, &code, 0), child);
  EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0) << code;
  ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_SUCCESS);
  ASSERT_EQ(Release(shared), CL_SUCCESS);
  Finish();
  EXPECT_EQ(Map(other)[kBytes / 4 - 1], 77u);
}

}  // namespace
}  // namespace sluice::gltest
