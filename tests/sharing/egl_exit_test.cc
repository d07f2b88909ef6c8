// SPDX-License-Identifier: Apache-2.0
// Exit while a fence of GL is awaited, and right after a session was lost. (On Windows a program's
// own handlers run before any library's: nothing there could tell.)
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/harness/child_process.h"
#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

// The event of the scene below. A handler that is registered before main runs after those of every
// library that comes in later.
std::atomic<cl_event> at_exit{nullptr};
[[maybe_unused]] const int kRegistered = std::atexit([] {
  const cl_event event = at_exit.load();
  if (event == nullptr) return;
  const cl_int status = conformance::StatusOf(event);
  std::printf("when the driver is about to be taken down the event's status is %d\n", status);
  std::fflush(stdout);
  std::_Exit(status > CL_COMPLETE ? 4 : 0);
});

cl_context MakeContext(const GlApp& app, std::vector<cl_context_properties> more = {}) {
  const conformance::Harness& harness = conformance::TheHarness();
  std::vector<cl_context_properties> list = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(harness.platform)};
  for (const cl_context_properties one : app.Properties()) list.push_back(one);
  list.insert(list.end(), more.begin(), more.end());
  list.push_back(0);
  return clCreateContext(list.data(), 1, &harness.device, nullptr, nullptr, nullptr);
}

// exit() while a thread of Sluice's waits in GL for a fence behind much to draw.
CHILD_SCENE(ExitWhileAFenceIsAwaited) {
  constexpr GLsizei kSide = 2048;
  std::string why;
  static GlApp* const app = GlApp::Make(Binding::kEglGl, &why).release();  // Its end is exit's.
  if (app == nullptr) {
    std::printf("%s\n", why.c_str());
    return 77;
  }
  const GlFunctions& gl = app->gl();
  const conformance::Harness& harness = conformance::TheHarness();
  cl_int status = CL_SUCCESS;
  const cl_context context = MakeContext(*app);
  const auto from_gl = reinterpret_cast<decltype(&clCreateEventFromGLsyncKHR)>(
      clGetExtensionFunctionAddressForPlatform(harness.platform, "clCreateEventFromGLsyncKHR"));
  if (context == nullptr || from_gl == nullptr) return 1;
  GLuint targets[2] = {}, framebuffers[2] = {};
  gl.GenRenderbuffers(2, targets);
  gl.GenFramebuffers(2, framebuffers);
  for (int i = 0; i < 2; ++i) {
    gl.BindRenderbuffer(GL_RENDERBUFFER, targets[i]);
    gl.RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, kSide, kSide);
    gl.BindFramebuffer(i == 0 ? GL_READ_FRAMEBUFFER : GL_DRAW_FRAMEBUFFER, framebuffers[i]);
    gl.FramebufferRenderbuffer(i == 0 ? GL_READ_FRAMEBUFFER : GL_DRAW_FRAMEBUFFER,
                               GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, targets[i]);
  }
  for (int copies = 1; copies < 1 << 16; copies *= 4) {
    for (int i = 0; i < copies; ++i) {
      gl.BlitFramebuffer(0, 0, kSide, kSide, kSide - 1, kSide - 1, i % 7, 0, GL_COLOR_BUFFER_BIT,
                         GL_LINEAR);
    }
    const GLsync fence = gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.Flush();
    const cl_event event = from_gl(context, reinterpret_cast<cl_GLsync>(fence), &status);
    if (event == nullptr) return 2;
    at_exit = event;
    if (conformance::StatusOf(event) != CL_COMPLETE) std::exit(0);
  }
  std::printf("nothing takes this GL long\n");
  return 3;
}

// A session is lost in the middle of the frames of a texture that goes by device shadow; the
// program releases what it has and ends.
CHILD_SCENE(ExitAfterALoss) {
  std::string why;
  static GlApp* const app = GlApp::Make(Binding::kEglGl, &why).release();
  if (app == nullptr) {
    std::printf("%s\n", why.c_str());
    return 77;
  }
  const conformance::Harness& harness = conformance::TheHarness();
  const auto terminate = reinterpret_cast<decltype(&clTerminateContextKHR)>(
      clGetExtensionFunctionAddressForPlatform(harness.platform, "clTerminateContextKHR"));
  const cl_context context = MakeContext(*app, {CL_CONTEXT_TERMINATE_KHR, CL_TRUE});
  if (context == nullptr || terminate == nullptr) return 1;
  const cl_command_queue queue =
      clCreateCommandQueueWithProperties(context, harness.device, nullptr, nullptr);
  const GlFunctions& gl = app->gl();
  GLuint target = 0;
  gl.GenRenderbuffers(1, &target);
  gl.BindRenderbuffer(GL_RENDERBUFFER, target);
  gl.RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, 256, 256);
  const cl_mem image = clCreateFromGLRenderbuffer(context, CL_MEM_READ_WRITE, target, nullptr);
  if (image == nullptr) return 2;
  constexpr int kFramesBefore = 20;
  std::thread thread;
  for (int frame = 0;; ++frame) {
    if (frame == kFramesBefore) {
      clRetainContext(context);
      thread = std::thread([=] {
        terminate(context);
        clReleaseContext(context);
      });
    }
    if (clEnqueueAcquireGLObjects(queue, 1, &image, 0, nullptr, nullptr) != CL_SUCCESS) break;
    if (clEnqueueReleaseGLObjects(queue, 1, &image, 0, nullptr, nullptr) != CL_SUCCESS) break;
    if (frame % 7 == 0 && clFinish(queue) != CL_SUCCESS) break;
  }
  if (!thread.joinable()) return 3;
  thread.detach();
  clReleaseMemObject(image);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}

// The exit waits for a thread of ours that is in GL, for a while: when the libraries' own handlers
// run, it has left.
TEST(GlExit, WaitsForFences) {
  const conformance::ChildResult child = conformance::RunInChild("ExitWhileAFenceIsAwaited");
  if (child.exit_code == 77) GTEST_SKIP() << child.output;
  EXPECT_FALSE(child.timed_out);
  EXPECT_EQ(child.signal, 0);
  EXPECT_EQ(child.exit_code, 0) << child.output;
}

// Whatever of the objects is still to be dropped. By a shadow where there can be one: a worker on
// another machine has none, nor one whose Vulkan is of another version than OpenGL here.
TEST(GlExit, AfterALoss) {
  const char* const before = std::getenv("SLUICE_SHARING");
  const std::string kept = before == nullptr ? "" : before;
  if (conformance::TheHarness().kind == conformance::Kind::kRing)
    setenv("SLUICE_SHARING", kept.empty() ? "shadow,staging" : (kept + ",shadow").c_str(), 1);
  std::string why;
  for (int round = 0; round < 12 && why.empty(); ++round) {
    const conformance::ChildResult child = conformance::RunInChild("ExitAfterALoss");
    EXPECT_FALSE(child.timed_out);
    EXPECT_EQ(child.signal, 0);
    if (child.exit_code == 77) {
      why = child.output;
    } else {
      EXPECT_EQ(child.exit_code, 0) << child.output;
    }
  }
  before == nullptr ? unsetenv("SLUICE_SHARING") : setenv("SLUICE_SHARING", kept.c_str(), 1);
  if (!why.empty()) GTEST_SKIP() << why;
}

}  // namespace
}  // namespace sluice::gltest
