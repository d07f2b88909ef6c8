// SPDX-License-Identifier: Apache-2.0
// The state that the Direct3D 9 tests start from: an application's device, of Direct3D 9 or 9Ex, an
// OpenCL context made for it, and the functions of cl_khr_dx9_media_sharing.
// Owner: each test has its own. Thread: the test's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sharing/d3d/dx9_app.h"

namespace sluice::d3dtest {

constexpr cl_image_format kBgra8 = {CL_BGRA, CL_UNORM_INT8};

inline ULONG References(IUnknown* object) {
  object->AddRef();
  return object->Release();
}

class WithDx9 : public WithSharing,
                public testing::WithParamInterface<cl_dx9_media_adapter_type_khr> {
 protected:
  void SetUp() override {
    app_ = std::make_unique<Dx9App>(is_ex(), multithreaded());
    ASSERT_TRUE(app_->ok());
    Find("clGetDeviceIDsFromDX9MediaAdapterKHR", &get_devices_);
    Find("clCreateFromDX9MediaSurfaceKHR", &create_);
    Find("clEnqueueAcquireDX9MediaSurfacesKHR", &acquire_);
    Find("clEnqueueReleaseDX9MediaSurfacesKHR", &release_);
    ASSERT_FALSE(HasFatalFailure());
    MakeContext(Properties(app_->device()));
  }

  // The test's parameter, where there is a test.
  virtual cl_dx9_media_adapter_type_khr type() const { return GetParam(); }
  virtual bool multithreaded() const { return true; }
  bool is_ex() const { return type() == CL_ADAPTER_D3D9EX_KHR; }
  Dx9App& app() { return *app_; }
  cl_context_properties property() const {
    return is_ex() ? CL_CONTEXT_ADAPTER_D3D9EX_KHR : CL_CONTEXT_ADAPTER_D3D9_KHR;
  }
  std::vector<cl_context_properties> Properties(void* device) const {
    return {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), property(),
            reinterpret_cast<cl_context_properties>(device), 0};
  }

  Own<cl_mem> From(IDirect3DSurface9* surface, cl_uint plane = 0, cl_int expected = CL_SUCCESS,
                   cl_mem_flags flags = CL_MEM_READ_WRITE) {
    cl_dx9_surface_info_khr info = {surface, nullptr};
    return From(type(), &info, plane, expected, flags);
  }
  Own<cl_mem> From(cl_dx9_media_adapter_type_khr type, cl_dx9_surface_info_khr* info, cl_uint plane,
                   cl_int expected, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    cl_int status = 0x7fffffff;
    Own<cl_mem> memory(create_(context(), flags, type, info, plane, &status));
    EXPECT_EQ(status, expected);
    EXPECT_EQ(memory.get() != nullptr, status == CL_SUCCESS);
    return memory;
  }
  cl_int Acquire(cl_mem memory, cl_event* event = nullptr) {
    return acquire_(queue(), 1, &memory, 0, nullptr, event);
  }
  cl_int Release(cl_mem memory, cl_event* event = nullptr) {
    return release_(queue(), 1, &memory, 0, nullptr, event);
  }

  clGetDeviceIDsFromDX9MediaAdapterKHR_fn get_devices_ = nullptr;
  clCreateFromDX9MediaSurfaceKHR_fn create_ = nullptr;
  clEnqueueAcquireDX9MediaSurfacesKHR_fn acquire_ = nullptr;
  clEnqueueReleaseDX9MediaSurfacesKHR_fn release_ = nullptr;
  std::unique_ptr<Dx9App> app_;

 private:
  template <typename Function>
  void Find(const char* name, Function* out) {
    *out = Extension<Function>(name);
    ASSERT_NE(*out, nullptr) << name;
  }
};

// Of a test that is run for each adapter type.
inline std::string ApiName(const testing::TestParamInfo<cl_dx9_media_adapter_type_khr>& one) {
  return one.param == CL_ADAPTER_D3D9EX_KHR ? "D3D9Ex" : "D3D9";
}

}  // namespace sluice::d3dtest
