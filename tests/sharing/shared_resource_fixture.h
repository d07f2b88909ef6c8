// SPDX-License-Identifier: Apache-2.0
// For tests of cl_sluice_shared_resource: the extension's functions, a connection of libsluice's to
// the same daemon, resources, and memory objects of them.
#pragma once

#include <sluice/sluice.h>

#include <cstdlib>
#include <list>
#include <string>

#include "client_icd/include/CL/cl_sluice.h"
#include "tests/conformance/harness/fixtures.h"

namespace sluice::gltest {

using conformance::Kind;
using conformance::Own;
using conformance::TheHarness;

constexpr uint64_t kBytes = 4096;
constexpr uint32_t kNv12 = 0x3231564e;  // DRM_FORMAT_NV12.

class SharedResources : public conformance::WithQueue {
 protected:
  void SetUp() override {
    if (!TheHarness().IsSluice()) GTEST_SKIP() << "Sluice's own extension";
    WithQueue::SetUp();
    Find("clCreateFromSharedResourceSLUICE", &create_);
    Find("clEnqueueAcquireSharedResourcesSLUICE", &acquire_);
    Find("clEnqueueReleaseSharedResourcesSLUICE", &release_);
    ASSERT_TRUE(create_ != nullptr && acquire_ != nullptr && release_ != nullptr);
    ASSERT_EQ(sluice_connect(Endpoint().c_str(), &daemon_), SLUICE_OK) << sluice_error_text();
    const char* ways = std::getenv("SLUICE_SHARING");
    if (ways != nullptr) saved_ways_ = ways;
    AllowWays("");
  }
  void TearDown() override {
    sluice_disconnect(daemon_);
    AllowWays(saved_ways_);
  }

  // A platform of the network offers none; programs may have them from another.
  template <typename Function>
  void Find(const char* name, Function* out) {
    *out = TheHarness().kind == Kind::kNetwork
               ? reinterpret_cast<Function>(clGetExtensionFunctionAddress(name))
               : Extension<Function>(name);
  }

  // Also where OpenCL goes over the network: the daemon serves both. Empty: SLUICE_ENDPOINT's.
  static std::string Endpoint() {
    const char* directory = std::getenv("SLUICE_TEST_SOCKET_DIR");
    return directory == nullptr ? "" : std::string("unix:") + directory + "/broker.sock";
  }

  // All of them if it is empty. Every system has putenv; some keep the very string.
  static void AllowWays(const std::string& ways) {
    static std::list<std::string> kept;
    kept.push_back("SLUICE_SHARING=" + ways);
    ::putenv(kept.back().data());
  }

  struct Made {
    sluice_capability read = {};
    sluice_capability write = {};
  };
  Made Make(sluice_create_info info, uint32_t flags = SLUICE_TRUST_READERS) {
    info.struct_size = sizeof(info);
    info.flags = flags;
    Made made;
    EXPECT_EQ(sluice_create(daemon_, &info, &made.read, &made.write), SLUICE_OK)
        << sluice_error_text();
    return made;
  }
  Made MakeBuffer(uint64_t bytes = kBytes, sluice_backing backing = SLUICE_BACKING_ANY) {
    sluice_create_info info = {};
    info.shape.size_bytes = bytes;
    info.backing = backing;
    return Make(info);
  }
  Made MakeImage(uint32_t fourcc, uint64_t side, sluice_backing backing = SLUICE_BACKING_ANY) {
    sluice_create_info info = {};
    info.backing = backing;
    info.shape.drm_fourcc = fourcc;
    info.shape.width = side;
    info.shape.height = side;
    return Make(info);
  }
  Own<cl_mem> Share(const Made& made, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    const sluice_capability& capability = flags == CL_MEM_READ_ONLY ? made.read : made.write;
    return MAKE("clCreateFromSharedResourceSLUICE.plain",
                create_(context(), flags, capability.bytes, 0, error));
  }
  cl_int Acquire(cl_mem memory, cl_event* event = nullptr) {
    return acquire_(queue(), 1, &memory, 0, nullptr, event);
  }
  cl_int Release(cl_mem memory, cl_event* event = nullptr) {
    return release_(queue(), 1, &memory, 0, nullptr, event);
  }
  // After a command that failed, whose error has been told: its queue goes on, or if the driver's
  // queues then fail for good, another one.
  void GoOn() {
    const cl_int finished = clFinish(queue());
    if (conformance::Differs("clSetUserEventStatus.queue_goes_on")) return MakeQueue();
    EXPECT_EQ(finished, CL_SUCCESS);
  }
  bool IsIndeterminate(cl_mem memory) {
    cl_bool indeterminate = 7;
    EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_SHARED_RESOURCE_INDETERMINATE_SLUICE,
                                 sizeof(indeterminate), &indeterminate, nullptr),
              CL_SUCCESS);
    return indeterminate == CL_TRUE;
  }
  cl_int Fill(cl_mem memory, cl_uint value) {
    return clEnqueueFillBuffer(queue(), memory, &value, sizeof(value), 0, kBytes, 0, nullptr,
                               nullptr);
  }
  void CheckEachWay(sluice_backing backing);

  // The resource's memory in this process, as a program without OpenCL has it.
  uint32_t* Map(const Made& made) {
    sluice_handle handle = {};
    handle.struct_size = sizeof(handle);
    EXPECT_EQ(sluice_export(daemon_, &made.write, SLUICE_WRITE, &handle), SLUICE_OK);
    void* mapped = nullptr;
    EXPECT_EQ(sluice_map(&handle, &mapped), SLUICE_OK);
    sluice_handle_close(&handle);
    return static_cast<uint32_t*>(mapped);
  }

  clCreateFromSharedResourceSLUICE_fn create_ = nullptr;
  clEnqueueAcquireSharedResourcesSLUICE_fn acquire_ = nullptr;
  clEnqueueReleaseSharedResourcesSLUICE_fn release_ = nullptr;
  sluice_connection* daemon_ = nullptr;

 private:
  std::string saved_ways_;
};

#define SKIP_OVER_NETWORK()                                                   \
  if (TheHarness().kind == Kind::kNetwork) {                                  \
    GTEST_SKIP() << "no resource is shared with a daemon on another machine"; \
  }

}  // namespace sluice::gltest
