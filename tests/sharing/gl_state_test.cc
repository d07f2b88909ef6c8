// SPDX-License-Identifier: Apache-2.0
// What sharing must leave alone, and what it must survive: the application's GL state, deleted
// objects, contexts that go early, commands that wait for the application.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client_icd/include/CL/cl_sluice.h"
#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

// What a call might disturb: bindings, pixel storage, framebuffers, enables.
using Snapshot = std::map<GLenum, std::array<GLint, 4>>;

class GlState : public WithGl {
 protected:
  Snapshot Take() {
    static constexpr GLenum kNames[] = {GL_ACTIVE_TEXTURE,
                                        GL_ARRAY_BUFFER_BINDING,
                                        GL_ELEMENT_ARRAY_BUFFER_BINDING,
                                        GL_PIXEL_PACK_BUFFER_BINDING,
                                        GL_PIXEL_UNPACK_BUFFER_BINDING,
                                        GL_COPY_READ_BUFFER_BINDING,
                                        GL_COPY_WRITE_BUFFER_BINDING,
                                        GL_UNIFORM_BUFFER_BINDING,
                                        GL_TEXTURE_BINDING_2D,
                                        GL_TEXTURE_BINDING_3D,
                                        GL_TEXTURE_BINDING_2D_ARRAY,
                                        GL_TEXTURE_BINDING_CUBE_MAP,
                                        GL_DRAW_FRAMEBUFFER_BINDING,
                                        GL_READ_FRAMEBUFFER_BINDING,
                                        GL_RENDERBUFFER_BINDING,
                                        GL_VERTEX_ARRAY_BINDING,
                                        GL_CURRENT_PROGRAM,
                                        GL_PACK_ALIGNMENT,
                                        GL_PACK_ROW_LENGTH,
                                        GL_PACK_SKIP_PIXELS,
                                        GL_PACK_SKIP_ROWS,
                                        GL_UNPACK_ALIGNMENT,
                                        GL_UNPACK_ROW_LENGTH,
                                        GL_UNPACK_IMAGE_HEIGHT,
                                        GL_UNPACK_SKIP_PIXELS,
                                        GL_UNPACK_SKIP_ROWS,
                                        GL_UNPACK_SKIP_IMAGES,
                                        GL_READ_BUFFER,
                                        GL_VIEWPORT,
                                        GL_SCISSOR_BOX,
                                        GL_COLOR_CLEAR_VALUE,
                                        GL_SAMPLER_BINDING,
                                        GL_TRANSFORM_FEEDBACK_BINDING};
    Snapshot snapshot;
    for (const GLenum name : kNames) {
      std::array<GLint, 4> values = {};
      gl().GetIntegerv(name, values.data());
      snapshot[name] = values;
    }
    for (const GLenum name : {GL_SCISSOR_TEST, GL_BLEND, GL_DEPTH_TEST, GL_CULL_FACE, GL_DITHER}) {
      snapshot[name][0] = gl().IsEnabled(name);
    }
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    return snapshot;
  }

  // Unusual values everywhere, and an error that the application has not fetched yet.
  void Disturb(GLuint texture, GLuint buffer) {
    gl().ActiveTexture(GL_TEXTURE3);
    gl().BindTexture(GL_TEXTURE_2D, texture);
    gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
    gl().BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
    gl().PixelStorei(GL_PACK_ALIGNMENT, 8);
    gl().PixelStorei(GL_UNPACK_ROW_LENGTH, 77);
    gl().PixelStorei(GL_UNPACK_SKIP_PIXELS, 5);
    GLuint framebuffer = 0;
    gl().GenFramebuffers(1, &framebuffer);
    gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    GLuint vertices = 0;
    gl().GenVertexArrays(1, &vertices);
    gl().BindVertexArray(vertices);
    gl().Viewport(1, 2, 3, 4);
  }
};

// Every entry point leaves the application's GL as it was, an error that it has not fetched
// included.
TEST_P(GlState, Untouched) {
  if (promise() == Promise::kNoError) GTEST_SKIP() << "it leaves an error behind";
  const Format& rgba = FormatOf(GL_RGBA8);
  const GLuint texture = Texture2D(rgba, 8, 8, Pattern(rgba, 64, 1).data());
  const GLuint buffer = Buffer("12345678", 8);
  GLuint renderbuffer = 0;
  gl().GenRenderbuffers(1, &renderbuffer);
  gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, 4, 4);
  Disturb(texture, buffer);
  const Snapshot before = Take();
  Own<cl_mem> memories[3];
  const auto check = [&](const char* call, const std::function<void()>& body) {
    SCOPED_TRACE(call);
    gl().BindTexture(0xBAD, 0);  // GL_INVALID_ENUM, which only the application may fetch.
    body();
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_INVALID_ENUM));
    EXPECT_TRUE(Take() == before);
  };
  Own<cl_context> another;
  check("clCreateContext", [&] { another = NewGlContext(app()); });
  check("clReleaseContext", [&] { another.Reset(); });
  check("clGetGLContextInfoKHR", [&] {
    const auto query = Extension<decltype(&clGetGLContextInfoKHR)>("clGetGLContextInfoKHR");
    const std::vector<cl_context_properties> list = Properties(app());
    cl_device_id found = nullptr;
    EXPECT_EQ(
        query(list.data(), CL_CURRENT_DEVICE_FOR_GL_CONTEXT_KHR, sizeof(found), &found, nullptr),
        CL_SUCCESS);
  });
  check("clCreateFromGLBuffer", [&] {
    memories[0] =
        MAKE("clCreateFromGLBuffer.state", clCreateFromGLBuffer(context(), 0, buffer, error));
  });
  check("clCreateFromGLTexture", [&] {
    memories[1] =
        MAKE("clCreateFromGLTexture.state",
             clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  });
  check("clCreateFromGLRenderbuffer", [&] {
    memories[2] =
        MAKE("clCreateFromGLRenderbuffer.state",
             clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, renderbuffer, error));
  });
  check("refused", [&] {
    EXPECT_CREATE("clCreateFromGLTexture.state_refused", CL_INVALID_GL_OBJECT,
                  clCreateFromGLTexture(context(), 0, GL_TEXTURE_3D, 0, texture, error));
  });
  const cl_mem all[3] = {memories[0], memories[1], memories[2]};
  const cl_uint value = 0x01020304;
  check("clEnqueueAcquireGLObjects", [&] {
    ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 3, all, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  });
  ASSERT_EQ(clEnqueueFillBuffer(queue(), all[0], &value, 4, 0, 8, 0, nullptr, nullptr), CL_SUCCESS);
  WriteImage(all[1], 8, 8, 1, Pattern(rgba, 64, 2));
  WriteImage(all[2], 4, 4, 1, Pattern(rgba, 16, 3));
  check("clEnqueueReleaseGLObjects", [&] {
    ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 3, all, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  });
  check("clReleaseMemObject", [&] {
    for (Own<cl_mem>& memory : memories) memory.Reset();
  });
}

// A deleted texture's contents stay OpenCL's, and a new texture of the same name is another.
TEST_P(GlState, DeletedAndNameUsedAgain) {
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> old_bytes = Pattern(format, 256, 1);
  const GLuint texture = Texture2D(format, 16, 16, old_bytes.data());
  Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.deleted",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  ASSERT_NE(image.get(), nullptr);
  const GLuint buffer = Buffer(old_bytes.data(), 1024);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.deleted",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  gl().DeleteTextures(1, &texture);
  gl().DeleteBuffers(1, &buffer);
  const std::vector<uint8_t> new_bytes = Pattern(format, 256, 2);
  // Compatible contexts and OpenGL ES take any free name: that of the deleted objects.
  gl().BindTexture(GL_TEXTURE_2D, texture);
  gl().TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 16, 16, 0, format.format, format.type,
                  new_bytes.data());
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferData(GL_ARRAY_BUFFER, 1024, new_bytes.data(), GL_STATIC_DRAW);
  ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  const cl_mem both[2] = {image, memory};
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ReadImage(image, 16, 16, 1, 4), old_bytes);
  std::vector<uint8_t> seen(1024);
  ASSERT_EQ(
      clEnqueueReadBuffer(queue(), memory, CL_TRUE, 0, 1024, seen.data(), 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(seen, old_bytes);
  WriteImage(image, 16, 16, 1, Pattern(format, 256, 3));
  ASSERT_EQ(clEnqueueWriteBuffer(queue(), memory, CL_TRUE, 0, 1024, Pattern(format, 256, 4).data(),
                                 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, texture, 0, format, 16, 16, 1), new_bytes);
  EXPECT_EQ(ReadBuffer(buffer, 1024), new_bytes);
}

// The application's context may go first: ours keeps the share group, and releases work.
TEST_P(GlState, ContextDestroyedEarly) {
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> bytes = Pattern(format, 64, 1);
  const GLuint texture = Texture2D(format, 8, 8, bytes.data());
  Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.orphan",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  ASSERT_NE(image.get(), nullptr);
  gl().Finish();
  app().DestroyContext();
  ASSERT_EQ(Acquire(image), CL_SUCCESS);
  EXPECT_EQ(ReadImage(image, 8, 8, 1, 4), bytes);
  ASSERT_EQ(Release(image), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
}

// An acquire that waits for a user event fetches what GL wrote before the event was set, and blocks
// nobody; neither does a release.
TEST_P(GlState, UserEventsGate) {
  const std::vector<cl_uint> first(64, 1);
  const GLuint buffer = Buffer(first.data(), 256);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.gate",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  const cl_mem handle = memory;
  cl_event event = nullptr;
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 1, &handle, 1, gate.AsList(), &event), CL_SUCCESS);
  Own<cl_event> acquired(event);
  Own<cl_kernel> kernel =
      BuildKernel("kernel void add(global uint* v) { v[get_global_id(0)] += 1; }", "add");
  conformance::SetArg(kernel, 0, memory);
  ASSERT_EQ(conformance::Launch(queue(), kernel, 64), CL_SUCCESS);
  ASSERT_EQ(Release(memory, &event), CL_SUCCESS);
  Own<cl_event> released(event);
  EXPECT_GT(conformance::StatusOf(acquired), CL_COMPLETE);
  EXPECT_GT(conformance::StatusOf(released), CL_COMPLETE);
  const std::vector<cl_uint> second(64, 5);
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferSubData(GL_ARRAY_BUFFER, 0, 256, second.data());
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  gl().Finish();
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  const std::vector<uint8_t> bytes = ReadBuffer(buffer, 256);
  cl_uint seen = 0;
  std::memcpy(&seen, bytes.data(), 4);
  EXPECT_EQ(seen, 6u);
}

// A gate that fails fails the acquire and all behind it; GL keeps its contents.
TEST_P(GlState, FailedGate) {
  const std::vector<cl_uint> values(64, 1);
  const GLuint buffer = Buffer(values.data(), 256);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.failed_gate",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  cl_int status = CL_SUCCESS;
  Own<cl_command_queue> own_queue(
      clCreateCommandQueueWithProperties(context(), device(), nullptr, &status));
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  const cl_mem handle = memory;
  cl_event event = nullptr;
  ASSERT_EQ(clEnqueueAcquireGLObjects(own_queue, 1, &handle, 1, gate.AsList(), &event), CL_SUCCESS);
  Own<cl_event> acquired(event);
  const cl_uint two = 2;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(
        clEnqueueFillBuffer(own_queue, memory, &two, sizeof(two), 0, 256, 0, nullptr, nullptr),
        CL_SUCCESS);
  }
  ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
  EXPECT_LT(clWaitForEvents(1, acquired.AsList()), 0);
  EXPECT_LT(conformance::StatusOf(acquired), 0);
  clEnqueueReleaseGLObjects(own_queue, 1, &handle, 0, nullptr, nullptr);
  clFinish(own_queue);
  const std::vector<uint8_t> bytes = ReadBuffer(buffer, 256);
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), 256), 0);
}

// What one queue acquired another uses, ordered by events across queues.
TEST_P(GlState, WaitListsAcrossQueues) {
  const std::vector<cl_uint> values(1024, 10);
  const GLuint buffer = Buffer(values.data(), 4096);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.queues",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  cl_int status = CL_SUCCESS;
  Own<cl_command_queue> second(
      clCreateCommandQueueWithProperties(context(), device(), nullptr, &status));
  Own<cl_kernel> kernel =
      BuildKernel("kernel void twice(global uint* v) { v[get_global_id(0)] *= 2; }", "twice");
  conformance::SetArg(kernel, 0, memory);
  cl_event event = nullptr;
  ASSERT_EQ(Acquire(memory, &event), CL_SUCCESS);
  Own<cl_event> acquired(event);
  const size_t global = 1024;
  ASSERT_EQ(clEnqueueNDRangeKernel(second, kernel, 1, nullptr, &global, nullptr, 1,
                                   acquired.AsList(), &event),
            CL_SUCCESS);
  Own<cl_event> computed(event);
  const cl_mem handle = memory;
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 1, &handle, 1, computed.AsList(), &event),
            CL_SUCCESS);
  Own<cl_event> released(event);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  const std::vector<uint8_t> bytes = ReadBuffer(buffer, 4096);
  cl_uint seen[1024];
  std::memcpy(seen, bytes.data(), sizeof(seen));
  for (const cl_uint one : seen) ASSERT_EQ(one, 20u);
}

// What is ours in the application's share group is gone with the OpenCL context: programs that copy
// (a shadow by shaders, where the GL has them) and buffers for bytes under way.
TEST_P(GlState, NothingStaysInTheShareGroup) {
  using Names = std::vector<std::array<bool, 4>>;
  const auto take = [&] {
    Names names(1024);
    for (GLuint name = 1; name < names.size(); ++name) {
      names[name] = {gl().IsProgram(name) == GL_TRUE, gl().IsShader(name) == GL_TRUE,
                     gl().IsBuffer(name) == GL_TRUE, gl().IsTexture(name) == GL_TRUE};
    }
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    return names;
  };
  const auto count_programs = [](const Names& names) {
    return std::count_if(names.begin(), names.end(), [](const auto& is) { return is[0]; });
  };
  const Format& format = FormatOf(GL_RGBA8);
  const GLuint texture = Texture2D(format, 16, 16, Pattern(format, 256, 1).data());
  const Names before = take();
  const char* const ways = std::getenv("SLUICE_SHARING");
  const std::string saved = ways == nullptr ? "" : ways;
  SetVariable("SLUICE_SHARING", "shadow,staging,shader");
  Own<cl_context> another = NewGlContext(app());
  cl_int status = CL_SUCCESS;
  Own<cl_command_queue> own_queue(
      clCreateCommandQueueWithProperties(another, device(), nullptr, &status));
  Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.stays",
           clCreateFromGLTexture(another, CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  SetVariable("SLUICE_SHARING", saved.c_str());
  ASSERT_NE(image.get(), nullptr);
  cl_uint way = 0;
  ASSERT_EQ(clGetMemObjectInfo(image, CL_MEM_SHARING_WAY_SLUICE, sizeof(way), &way, nullptr),
            CL_SUCCESS);
  const cl_mem handle = image;
  ASSERT_EQ(clEnqueueAcquireGLObjects(own_queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(own_queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(own_queue), CL_SUCCESS);
  if (way == CL_SHARING_WAY_SHADOW_SLUICE && !es()) {
    EXPECT_GT(count_programs(take()), count_programs(before)) << "nothing to see here";
  }
  image.Reset();
  own_queue.Reset();
  another.Reset();
  // The end of the last command may keep the context a little longer than the application does.
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool gone = take() == before;
  while (!gone && std::chrono::steady_clock::now() < enough) {
    std::this_thread::yield();
    gone = take() == before;
  }
  EXPECT_TRUE(gone);
}

// Hundreds of frames, and dozens of lives of every object, leave no descriptor behind.
TEST_P(GlState, ManyFrames) {
  const Format& format = FormatOf(GL_RGBA8UI);
  const GLuint texture = Texture2D(format, 64, 64, nullptr);
  Own<cl_kernel> kernel = BuildKernel(
      "kernel void put(write_only image2d_t out, uint frame) {"
      "  write_imageui(out, (int2)(get_global_id(0), get_global_id(1)), (uint4)(frame & 255)); }",
      "put");
  size_t before = 0;
  for (cl_uint life = 0; life < 24; ++life) {
    Own<cl_context> temporary = NewGlContext(app());
    temporary.Reset();
    Own<cl_mem> image =
        MAKE("clCreateFromGLTexture.frames",
             clCreateFromGLTexture(context(), CL_MEM_WRITE_ONLY, GL_TEXTURE_2D, 0, texture, error));
    conformance::SetArg(kernel, 0, image);
    for (cl_uint frame = 0; frame < 10; ++frame) {
      conformance::SetArg(kernel, 1, life * 10 + frame);
      ASSERT_EQ(Acquire(image), CL_SUCCESS);
      const size_t global[2] = {64, 64};
      ASSERT_EQ(
          clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr),
          CL_SUCCESS);
      ASSERT_EQ(Release(image), CL_SUCCESS);
    }
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
    if (life == 8) before = OpenDescriptors();
  }
  // The contexts' threads end on their own: what they hold may go a moment later, never grow.
  EXPECT_LE(OpenDescriptors(), before + 8);
}

// A context that loses its share group on a reset can be shared with as any other.
TEST_P(GlState, RobustContext) {
  if (GetParam() == Binding::kGlx) GTEST_SKIP() << "made by EGL";
  std::string why;
  std::unique_ptr<GlApp> robust = GlApp::Make(GetParam(), &why, nullptr, Promise::kRobust);
  if (robust == nullptr) GTEST_SKIP() << why;
  Own<cl_context> made = NewGlContext(*robust);
  EXPECT_NE(made.get(), nullptr);
  made.Reset();
  robust.reset();
  app().MakeCurrent();
}

// Objects of any context of the share group can be shared, with none current on the calling thread.
TEST_P(GlState, OtherContextOfTheGroup) {
  std::string why;
  std::unique_ptr<GlApp> second = GlApp::Make(GetParam(), &why, &app(), promise());
  if (second == nullptr) GTEST_SKIP() << why;
  if (GetParam() != Binding::kGlx) {
    const Format& format = FormatOf(GL_RGBA8);
    const std::vector<uint8_t> bytes = Pattern(format, 16, 1);
    GLuint texture = 0;
    second->gl().GenTextures(1, &texture);
    second->gl().BindTexture(GL_TEXTURE_2D, texture);
    second->gl().TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 4, 4, 0, GL_RGBA, GL_UNSIGNED_BYTE,
                            bytes.data());
    second->gl().Finish();
    second->ClearCurrent();
    Own<cl_mem> image =
        MAKE("clCreateFromGLTexture.other_context",
             clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error));
    ASSERT_NE(image.get(), nullptr);
    std::thread([&] {
      ASSERT_EQ(Acquire(image), CL_SUCCESS);
      EXPECT_EQ(ReadImage(image, 4, 4, 1, 4), bytes);
      ASSERT_EQ(Release(image), CL_SUCCESS);
    }).join();
  }
  second.reset();
  app().MakeCurrent();
}

INSTANTIATE_TEST_SUITE_P(All, GlState, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
