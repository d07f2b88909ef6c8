// SPDX-License-Identifier: Apache-2.0
// cl_sluice_shared_resource and processes: whose user they are of, the application's child, the
// worker.
#include <CL/cl_ext.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/sharing/shared_resource_fixture.h"

namespace sluice::gltest {
namespace {

// The worker of this process's session, as sluicectl, beside this program, lists it; 0 if it does
// not.
pid_t FindWorker() {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  FILE* const list = ::popen((self + "/sluicectl sessions --json").c_str(), "r");
  std::string text;
  char part[4096];
  while (list != nullptr && std::fgets(part, sizeof(part), list) != nullptr) text += part;
  if (list != nullptr) ::pclose(list);
  const size_t own = text.find("\"client_pid\": " + std::to_string(::getpid()));
  const std::string key = "\"worker_pid\": ";
  const size_t found = own == text.npos ? text.npos : text.find(key, own);
  return found == text.npos ? 0 : std::atoi(text.c_str() + found + key.size());
}

// A reader who could open the memory for writing again, as this process can, which is of the
// daemon's user, has it sealed against new writers. The memory objects that are there go on.
TEST_F(SharedResources, ReadersOfTheDaemonsUserSealOutNewWriters) {
  SKIP_OVER_NETWORK();
  sluice_create_info info = {};
  info.shape.size_bytes = kBytes;
  for (const uint32_t flags : {0u, SLUICE_TRUST_READERS}) {
    SCOPED_TRACE(flags);
    const Made made = Make(info, flags);
    const Own<cl_mem> writer = Share(made);
    const Own<cl_mem> reader = Share(made, CL_MEM_READ_ONLY);
    EXPECT_CREATE("clCreateFromSharedResourceSLUICE.sealed",
                  flags == 0 ? CL_INVALID_SHARED_RESOURCE_SLUICE : CL_SUCCESS,
                  create_(context(), CL_MEM_READ_WRITE, made.write.bytes, 0, error));
    EXPECT_CREATE("clCreateFromSharedResourceSLUICE.sealed_reader", CL_SUCCESS,
                  create_(context(), CL_MEM_READ_ONLY, made.write.bytes, 0, error));
    ASSERT_EQ(Acquire(writer), CL_SUCCESS);
    ASSERT_EQ(Fill(writer, 5), CL_SUCCESS);
    ASSERT_EQ(Release(writer), CL_SUCCESS);
    ASSERT_EQ(Acquire(reader), CL_SUCCESS);
    EXPECT_EQ(Read<cl_uint>(reader, 1)[0], 5u);
    ASSERT_EQ(Release(reader), CL_SUCCESS);
    Finish();
  }
}

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

// The death of the worker gives the turns of its memory objects up, without a release; the contents
// are indeterminate.
TEST_F(SharedResources, WorkersDeathGivesTurnsUp) {
  SKIP_OVER_NETWORK();
  const bool is_cpu = (conformance::DeviceValue<cl_device_type>(device(), CL_DEVICE_TYPE) &
                       CL_DEVICE_TYPE_CPU) != 0;
  for (const char* way : {"import", "staging"}) {
    SCOPED_TRACE(way);
    if (!is_cpu && std::strcmp(way, "import") == 0) {
      std::puts("left out: import, since a GPU does not open the host's memory");
      continue;
    }
    const Own<cl_context> context = NewContext();
    cl_int status = CL_SUCCESS;
    const Own<cl_command_queue> queue(
        clCreateCommandQueueWithProperties(context, device(), nullptr, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    const Made made = MakeBuffer();
    AllowWays(way);
    const Own<cl_mem> shared(create_(context, CL_MEM_READ_WRITE, made.write.bytes, 0, &status));
    AllowWays("");
    ASSERT_EQ(status, CL_SUCCESS);
    const cl_mem memory = shared;
    ASSERT_EQ(acquire_(queue, 1, &memory, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    sluice_hold hold = {};
    ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 0, &hold), SLUICE_TIMED_OUT);
    const pid_t worker = FindWorker();
    ASSERT_GT(worker, 1);
    ASSERT_EQ(::kill(worker, SIGKILL), 0);
    ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 8000, &hold), SLUICE_OK);
    EXPECT_EQ(hold.indeterminate, 1u);
    EXPECT_EQ(release_(queue, 1, &memory, 0, nullptr, nullptr), CL_DEVICE_NOT_AVAILABLE);
    // DRM_FORMAT_ABGR8888; not that nothing has such images.
    const Made image = MakeImage(0x34324241, 16);
    EXPECT_CREATE("clCreateFromSharedResourceSLUICE.lost", CL_DEVICE_NOT_AVAILABLE,
                  create_(context, CL_MEM_READ_WRITE, image.write.bytes, 0, error));
    ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
  }
}

// So does the end of a context that is terminated.
TEST_F(SharedResources, TerminationGivesTurnsUp) {
  SKIP_OVER_NETWORK();
  const auto terminate = Extension<clTerminateContextKHR_fn>("clTerminateContextKHR");
  ASSERT_NE(terminate, nullptr);
  const cl_device_id its_device = device();
  const cl_context_properties properties[] = {CL_CONTEXT_TERMINATE_KHR, CL_TRUE, 0};
  cl_int status = CL_SUCCESS;
  const Own<cl_context> context(
      clCreateContext(properties, 1, &its_device, nullptr, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(context, its_device, nullptr, &status));
  const Made made = MakeBuffer();
  const Own<cl_mem> shared(create_(context, CL_MEM_READ_WRITE, made.write.bytes, 0, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem memory = shared;
  ASSERT_EQ(acquire_(queue, 1, &memory, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue), CL_SUCCESS);
  ASSERT_EQ(terminate(context), CL_SUCCESS);
  sluice_hold hold = {};
  ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 8000, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 1u);
  ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
}

}  // namespace
}  // namespace sluice::gltest
