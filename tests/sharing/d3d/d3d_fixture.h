// SPDX-License-Identifier: Apache-2.0
// The state that the Direct3D 10 and 11 tests start from: an application's device, an OpenCL
// context made for it, and the extension's functions, found by their names. Owner: each test has
// its own. Thread: the test's.
#pragma once

#include <string>
#include <vector>

#include "tests/sharing/d3d/d3d_app.h"

namespace sluice::d3dtest {

template <typename E>
class WithD3d : public WithSharing {
 protected:
  using GetDevicesFn = cl_int(CL_API_CALL*)(cl_platform_id, cl_uint, void*, cl_uint, cl_uint,
                                            cl_device_id*, cl_uint*);
  template <typename Resource>
  using CreateFn = cl_mem(CL_API_CALL*)(cl_context, cl_mem_flags, Resource*, UINT, cl_int*);
  using CreateBufferFn = cl_mem(CL_API_CALL*)(cl_context, cl_mem_flags, typename E::Buffer*,
                                              cl_int*);
  using SyncFn = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                      const cl_event*, cl_event*);

  void SetUp() override {
    ASSERT_TRUE(app_.ok());
    Find("clGetDeviceIDsFrom", "", &get_devices_);
    Find("clCreateFrom", "Buffer", &create_buffer_);
    Find("clCreateFrom", "Texture2D", &create_texture2d_);
    Find("clCreateFrom", "Texture3D", &create_texture3d_);
    Find("clEnqueueAcquire", "Objects", &acquire_);
    Find("clEnqueueRelease", "Objects", &release_);
    ASSERT_FALSE(HasFatalFailure());
    MakeContext(Properties(app_.device()));
  }

  D3dApp<E>& app() { return app_; }

  std::vector<cl_context_properties> Properties(void* device) const {
    return {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), E::kProperty,
            reinterpret_cast<cl_context_properties>(device), 0};
  }

  Own<cl_mem> FromBuffer(typename E::Buffer* buffer, cl_int expected = CL_SUCCESS,
                         cl_mem_flags flags = CL_MEM_READ_WRITE) {
    return Checked(expected,
                   [&](cl_int* error) { return create_buffer_(context(), flags, buffer, error); });
  }
  Own<cl_mem> FromTexture(typename E::Texture2d* texture, UINT subresource = 0,
                          cl_int expected = CL_SUCCESS, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    return Checked(expected, [&](cl_int* error) {
      return create_texture2d_(context(), flags, texture, subresource, error);
    });
  }
  Own<cl_mem> FromTexture(typename E::Texture3d* texture, UINT subresource = 0,
                          cl_int expected = CL_SUCCESS, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    return Checked(expected, [&](cl_int* error) {
      return create_texture3d_(context(), flags, texture, subresource, error);
    });
  }

  cl_int Acquire(cl_mem memory, cl_event* event = nullptr) {
    return acquire_(queue(), 1, &memory, 0, nullptr, event);
  }
  cl_int Release(cl_mem memory, cl_event* event = nullptr) {
    return release_(queue(), 1, &memory, 0, nullptr, event);
  }

  GetDevicesFn get_devices_ = nullptr;
  CreateBufferFn create_buffer_ = nullptr;
  CreateFn<typename E::Texture2d> create_texture2d_ = nullptr;
  CreateFn<typename E::Texture3d> create_texture3d_ = nullptr;
  SyncFn acquire_ = nullptr;
  SyncFn release_ = nullptr;

  template <typename Call>
  static Own<cl_mem> Checked(cl_int expected, Call call) {
    cl_int status = 0x7fffffff;
    Own<cl_mem> memory(call(&status));
    EXPECT_EQ(status, expected);
    EXPECT_EQ(memory.get() != nullptr, status == CL_SUCCESS);
    return memory;
  }

 private:
  template <typename Function>
  void Find(const char* verb, const char* object, Function* out) {
    const std::string name = std::string(verb) + E::kPrefix + object + E::kSuffix;
    *out = Extension<Function>(name.c_str());
    ASSERT_NE(*out, nullptr) << name;
  }

  D3dApp<E> app_;
};

}  // namespace sluice::d3dtest
