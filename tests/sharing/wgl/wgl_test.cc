// SPDX-License-Identifier: Apache-2.0
// Cases that only WGL has: windows with one buffer, contexts that are current elsewhere; and an
// exit that ends all threads before libraries hear of it.
#include <d3d11.h>
#include <windows.h>
// After d3d11.h.
#include <CL/cl_d3d11.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/conformance/harness/child_process.h"
#include "tests/sharing/gl_fixture.h"
#include "tests/sharing/wgl/wgl_app.h"

namespace sluice::gltest {
namespace {

using WglExit = conformance::WithPlatform;

// Milliseconds since the machine was started: the same clock in both processes.
long long Now() { return static_cast<long long>(GetTickCount64()); }

// An application that exits while it shares, with an object acquired, and with the handles that it
// never gave back, ends well and at once: nothing waits for threads that Windows has ended (2 s).
TEST_F(WglExit, WithoutRelease) {
  const conformance::ChildResult result = conformance::RunInChild("ExitWhileSharing");
  const long long end = Now();
  ASSERT_FALSE(result.timed_out) << result.output;
  ASSERT_EQ(result.exit_code, 7) << result.output;
  const size_t at = result.output.find("exits at ");
  ASSERT_NE(at, std::string::npos) << result.output;
  EXPECT_LT(end - std::atoll(result.output.c_str() + at + 9), 1900);
}

CHILD_SCENE(ExitWhileSharing) {
  std::string why;
  GlApp* const app = GlApp::Make(Binding::kWgl, &why).release();
  if (app == nullptr) {
    std::puts(why.c_str());
    return 1;
  }
  cl_device_id device = nullptr;
  cl_int status =
      clGetDeviceIDs(conformance::TheHarness().platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
  std::vector<cl_context_properties> list = app->Properties();
  list.push_back(0);
  const cl_context context = clCreateContext(list.data(), 1, &device, nullptr, nullptr, &status);
  const cl_command_queue queue =
      context == nullptr ? nullptr
                         : clCreateCommandQueueWithProperties(context, device, nullptr, &status);
  GLuint buffer = 0;
  app->gl().GenBuffers(1, &buffer);
  app->gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  app->gl().BufferData(GL_ARRAY_BUFFER, 4096, nullptr, GL_DYNAMIC_DRAW);
  const cl_mem memory = queue == nullptr
                            ? nullptr
                            : clCreateFromGLBuffer(context, CL_MEM_READ_WRITE, buffer, &status);
  if (memory != nullptr) {
    status = clEnqueueAcquireGLObjects(queue, 1, &memory, 0, nullptr, nullptr);
  }
  if (status != CL_SUCCESS || clFinish(queue) != CL_SUCCESS) {
    std::printf("code %d\n", status);
    return 2;
  }
  std::printf("exits at %lld\n", Now());
  return 7;
}

class WglContexts : public WithGl {
 protected:
  // An OpenCL context for that one, and a renderbuffer that goes to OpenCL and back.
  void Share(GlApp& app) {
    Own<cl_context> context = NewGlContext(app);
    ASSERT_NE(context.get(), nullptr);
    cl_int status = CL_SUCCESS;
    Own<cl_command_queue> queue(
        clCreateCommandQueueWithProperties(context, device(), nullptr, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    const GlFunctions& gl = app.gl();
    GLuint renderbuffer = 0;
    gl.GenRenderbuffers(1, &renderbuffer);
    gl.BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
    gl.RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, 4, 4);
    GLuint framebuffer = 0;
    gl.GenFramebuffers(1, &framebuffer);
    gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl.FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer);
    gl.ClearColor(1, 0, 1, 0);
    gl.Clear(GL_COLOR_BUFFER_BIT);
    Own<cl_mem> image =
        MAKE("clCreateFromGLRenderbuffer.wgl",
             clCreateFromGLRenderbuffer(context, CL_MEM_READ_WRITE, renderbuffer, error));
    ASSERT_NE(image.get(), nullptr);
    const cl_mem handle = image;
    const size_t origin[3] = {0, 0, 0};
    const size_t region[3] = {4, 4, 1};
    std::vector<uint8_t> bytes(64);
    ASSERT_EQ(clEnqueueAcquireGLObjects(queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, bytes.data(), 0,
                                 nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(bytes[0], 255);
    EXPECT_EQ(bytes[1], 0);
    EXPECT_EQ(bytes[62], 255);
    bytes.assign(64, 77);
    ASSERT_EQ(clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, 0, 0, bytes.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueReleaseGLObjects(queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    std::vector<uint8_t> seen(64);
    gl.ReadPixels(0, 0, 4, 4, GL_RGBA, GL_UNSIGNED_BYTE, seen.data());
    EXPECT_EQ(seen, bytes);
  }
};

// A window with one buffer is as good as any.
TEST_P(WglContexts, SingleBuffered) {
  std::string why;
  std::unique_ptr<GlApp> single = MakeSingleBuffered(&why);
  ASSERT_NE(single, nullptr) << why;
  Share(*single);
  single.reset();
  app().MakeCurrent();
}

// OpenCL contexts are made for a context that is current here, nowhere, or on another thread (which
// a driver for Windows may refuse; Wine does not).
TEST_P(WglContexts, CurrentHereOrNot) {
  Share(app());
  app().ClearCurrent();
  Own<cl_context> nowhere = NewGlContext(app());
  EXPECT_NE(nowhere.get(), nullptr);
  app().MakeCurrent();
  std::thread([&] {
    Own<cl_context> elsewhere = NewGlContext(app());
    EXPECT_NE(elsewhere.get(), nullptr);
  }).join();
}

// A device context that no pixel format was set for, and a context of none, are refused.
TEST_P(WglContexts, WhatIsNoContext) {
  const HDC screen = GetDC(nullptr);
  const std::vector<cl_context_properties> good = app().Properties();
  for (const auto& [context, device_context] :
       {std::pair{good[1], reinterpret_cast<cl_context_properties>(screen)},
        std::pair{cl_context_properties{0x7770}, good[3]}}) {
    const cl_context_properties list[] = {CL_GL_CONTEXT_KHR,
                                          context,
                                          CL_WGL_HDC_KHR,
                                          device_context,
                                          CL_CONTEXT_PLATFORM,
                                          reinterpret_cast<cl_context_properties>(platform()),
                                          0};
    cl_device_id one = device();
    EXPECT_CREATE("clCreateContext.wgl_none", CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR,
                  clCreateContext(list, 1, &one, nullptr, nullptr, error));
  }
  ReleaseDC(nullptr, screen);
}

// Section 9.8.5: CL_INVALID_OPERATION if CL_CONTEXT_D3D11_DEVICE_KHR is set and "interoperability
// with another graphics API is also specified".
TEST_P(WglContexts, NoDirect3dBeside) {
  ID3D11Device* direct3d = nullptr;
  ASSERT_EQ(D3D11CreateDevice(nullptr, D3D_DRIVER_TYPE_HARDWARE, nullptr, 0, nullptr, 0,
                              D3D11_SDK_VERSION, &direct3d, nullptr, nullptr),
            S_OK);
  std::vector<cl_context_properties> list = Properties(app());
  list.back() = CL_CONTEXT_D3D11_DEVICE_KHR;
  list.insert(list.end(), {reinterpret_cast<cl_context_properties>(direct3d), 0});
  cl_device_id one = device();
  EXPECT_CREATE("clCreateContext.wgl_direct3d", CL_INVALID_OPERATION,
                clCreateContext(list.data(), 1, &one, nullptr, nullptr, error));
  EXPECT_EQ(direct3d->Release(), 0u) << "a reference has stayed";
}

INSTANTIATE_TEST_SUITE_P(All, WglContexts, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
