// SPDX-License-Identifier: Apache-2.0
// Contexts that programs seldom make: too old ones, which are refused, and OpenGL ES by GLX.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/conformance/harness/child_process.h"
#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

// The parent's choice.
constexpr const char* kBinding = "SLUICE_TEST_OLD_BINDING";

// A context that Mesa says is old; 77 where GL has not been made so.
CHILD_SCENE(OldContext) {
  const auto binding = static_cast<Binding>(std::atoi(std::getenv(kBinding)));
  std::string why;
  const std::unique_ptr<GlApp> app = GlApp::Make(binding, &why);
  if (app == nullptr) {
    std::printf("%s\n", why.c_str());
    return 77;
  }
  const std::string version = reinterpret_cast<const char*>(app->gl().GetString(GL_VERSION));
  const bool old = app->es() ? version.starts_with("OpenGL ES 3.0") : version.starts_with("2.1");
  if (!old) {
    std::printf("the version cannot be chosen: this is %s\n", version.c_str());
    return 77;
  }
  const conformance::Harness& harness = conformance::TheHarness();
  std::vector<cl_context_properties> list = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(harness.platform)};
  for (const cl_context_properties one : app->Properties()) list.push_back(one);
  list.push_back(0);
  cl_int status = CL_SUCCESS;
  const cl_context context =
      clCreateContext(list.data(), 1, &harness.device, nullptr, nullptr, &status);
  const auto get_info = reinterpret_cast<decltype(&clGetGLContextInfoKHR)>(
      clGetExtensionFunctionAddressForPlatform(harness.platform, "clGetGLContextInfoKHR"));
  cl_device_id device = nullptr;
  const cl_int info =
      get_info(list.data(), CL_CURRENT_DEVICE_FOR_GL_CONTEXT_KHR, sizeof(device), &device, nullptr);
  std::printf("clCreateContext: %d, clGetGLContextInfoKHR: %d\n", status, info);
  return context == nullptr && status == CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR &&
                 info == CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR &&
                 app->gl().GetError() == GL_NO_ERROR
             ? 0
             : 1;
}

class GlVersions : public testing::TestWithParam<Binding> {};

// OpenGL before 3.2 and OpenGL ES before 3.1 lack something that sharing needs. No context of ours
// can be made beside them, and section 9.3.5's code says so, without a crash or an error of GL's.
TEST_P(GlVersions, OldOnesAreRefused) {
  setenv("MESA_GL_VERSION_OVERRIDE", "2.1", 1);
  setenv("MESA_GLES_VERSION_OVERRIDE", "3.0", 1);
  setenv(kBinding, std::to_string(static_cast<int>(GetParam())).c_str(), 1);
  const conformance::ChildResult child = conformance::RunInChild("OldContext");
  unsetenv("MESA_GL_VERSION_OVERRIDE");
  unsetenv("MESA_GLES_VERSION_OVERRIDE");
  if (child.exit_code == 77) GTEST_SKIP() << child.output;
  EXPECT_FALSE(child.timed_out);
  EXPECT_EQ(child.signal, 0);
  EXPECT_EQ(child.exit_code, 0) << child.output;
}

INSTANTIATE_TEST_SUITE_P(All, GlVersions,
                         testing::Values(Binding::kEglGl, Binding::kEglEs, Binding::kGlx),
                         BindingParamName);

class GlxEs : public WithGl {};

// An OpenGL ES context that GLX has made shares as EGL's do: buffers, textures, renderbuffers and
// fences.
TEST_P(GlxEs, Shares) {
  const auto* version = reinterpret_cast<const char*>(gl().GetString(GL_VERSION));
  ASSERT_EQ(std::string(version).rfind("OpenGL ES 3", 0), 0u) << version;
  constexpr size_t kSide = 16;
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> before = Pattern(format, kSide * kSide, 1);
  const std::vector<uint8_t> after = Pattern(format, kSide * kSide, 2);
  const GLuint buffer = Buffer(before.data(), before.size());
  const GLuint texture = Texture2D(format, kSide, kSide, before.data());
  GLuint renderbuffer = 0, framebuffer = 0;
  gl().GenRenderbuffers(1, &renderbuffer);
  gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, kSide, kSide);
  const Own<cl_mem> memory =
      MAKE("clCreateFromGLBuffer.glx_es", clCreateFromGLBuffer(context(), 0, buffer, error));
  const Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.glx_es",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  const Own<cl_mem> target =
      MAKE("clCreateFromGLRenderbuffer.glx_es",
           clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, renderbuffer, error));
  const auto from_gl =
      Extension<decltype(&clCreateEventFromGLsyncKHR)>("clCreateEventFromGLsyncKHR");
  const GLsync fence = gl().FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  gl().Flush();
  const Own<cl_event> event = MAKE("clCreateEventFromGLsyncKHR.glx_es",
                                   from_gl(context(), reinterpret_cast<cl_GLsync>(fence), error));
  const cl_mem all[3] = {memory, image, target};
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 3, all, 1, event.AsList(), nullptr), CL_SUCCESS);
  EXPECT_EQ(ReadImage(image, kSide, kSide, 1, 4), before);
  std::vector<uint8_t> seen(before.size());
  ASSERT_EQ(clEnqueueReadBuffer(queue(), memory, CL_TRUE, 0, seen.size(), seen.data(), 0, nullptr,
                                nullptr),
            CL_SUCCESS);
  EXPECT_EQ(seen, before);
  WriteImage(image, kSide, kSide, 1, after);
  WriteImage(target, kSide, kSide, 1, after);
  ASSERT_EQ(clEnqueueWriteBuffer(queue(), memory, CL_TRUE, 0, after.size(), after.data(), 0,
                                 nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 3, all, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ReadBuffer(buffer, after.size()), after);
  EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, texture, 0, format, kSide, kSide, 1), after);
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl().FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer);
  EXPECT_EQ(ReadFramebuffer(format, kSide, kSide), after);
  EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
}

INSTANTIATE_TEST_SUITE_P(All, GlxEs, testing::Values(Binding::kGlxEs), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
