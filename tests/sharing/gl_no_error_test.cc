// SPDX-License-Identifier: Apache-2.0
// Contexts that are promised no wrong call (KHR_no_error, as games and GLFW_CONTEXT_NO_ERROR make
// them). They share only with their like, whose GL reports no fault of an object and may do
// anything with it. The codes are the same all the same.
#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

class GlNoError : public WithGl {
 protected:
  Promise promise() const override { return Promise::kNoError; }

  // The status of the acquire, or else of the release, with a write of OpenCL's between them.
  cl_int WriteThrough(cl_mem memory, const std::vector<uint8_t>& bytes) {
    cl_event event = nullptr;
    EXPECT_EQ(Acquire(memory, &event), CL_SUCCESS);
    const Own<cl_event> acquired(event);
    EXPECT_EQ(clEnqueueWriteBuffer(queue(), memory, CL_FALSE, 0, bytes.size(), bytes.data(), 0,
                                   nullptr, nullptr),
              CL_SUCCESS);
    const cl_int answer = Release(memory, &event);
    const Own<cl_event> released(event);
    clFinish(queue());
    const cl_int status = StatusOf(acquired);
    if (status != CL_COMPLETE) return status;
    EXPECT_EQ(answer == CL_SUCCESS, StatusOf(released) == CL_COMPLETE) << answer;
    return StatusOf(released);
  }
  static cl_int StatusOf(cl_event event) {
    cl_int status = 1;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
    return status;
  }
  // The status of the acquire, which reads the contents.
  cl_int ReadThrough(cl_mem image) {
    cl_event event = nullptr;
    EXPECT_EQ(Acquire(image, &event), CL_SUCCESS);
    const Own<cl_event> acquired(event);
    clFinish(queue());
    const cl_int status = StatusOf(acquired);
    EXPECT_EQ(Release(image, &event), CL_SUCCESS);
    const Own<cl_event> released(event);
    EXPECT_EQ(StatusOf(released) == CL_COMPLETE, status == CL_COMPLETE);
    clFinish(queue());
    return status;
  }
  GLuint Renderbuffer(GLenum format, GLsizei side) {
    GLuint name = 0;
    gl().GenRenderbuffers(1, &name);
    gl().BindRenderbuffer(GL_RENDERBUFFER, name);
    gl().RenderbufferStorage(GL_RENDERBUFFER, format, side, side);
    gl().Flush();
    return name;
  }
};

TEST_P(GlNoError, Shares) {
  GLint flags = 0;
  gl().GetIntegerv(GL_CONTEXT_FLAGS, &flags);
  ASSERT_NE(flags & GL_CONTEXT_FLAG_NO_ERROR_BIT, 0) << "the test's own context";
  const std::vector<uint8_t> bytes = {1, 2, 3, 4};
  const GLuint buffer = Buffer(nullptr, 4);
  const Own<cl_mem> memory =
      MAKE("clCreateFromGLBuffer.no_error", clCreateFromGLBuffer(context(), 0, buffer, error));
  EXPECT_EQ(WriteThrough(memory, bytes), CL_COMPLETE);
  EXPECT_EQ(ReadBuffer(buffer, 4), bytes);
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> texels = Pattern(format, 32, 1);
  const GLuint texture = Texture2D(format, 8, 4, nullptr);
  const Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.no_error",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  ASSERT_EQ(Acquire(image), CL_SUCCESS);
  WriteImage(image, 8, 4, 1, texels);
  ASSERT_EQ(Release(image), CL_SUCCESS);
  EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
  EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, texture, 0, format, 8, 4, 1), texels);
  const Own<cl_mem> renderbuffer = MAKE(
      "clCreateFromGLRenderbuffer.no_error",
      clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, Renderbuffer(GL_RGBA8, 8), error));
  EXPECT_EQ(ReadThrough(renderbuffer), CL_COMPLETE);
}

TEST_P(GlNoError, BufferTexture) {
  if (gl().TexBuffer == nullptr) GTEST_SKIP() << "no buffer textures";
  if (ShadowIsForced()) GTEST_SKIP() << "a texture buffer has no shadow";
  const GLuint buffer = Buffer(nullptr, 512);
  GLuint texture = 0;
  gl().GenTextures(1, &texture);
  gl().BindTexture(GL_TEXTURE_BUFFER, texture);
  gl().TexBuffer(GL_TEXTURE_BUFFER, GL_RGBA32UI, buffer);
  gl().Flush();
  const Own<cl_mem> image = MAKE(
      "clCreateFromGLTexture.no_error_buffer",
      clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_BUFFER, 0, texture, error));
  ASSERT_NE(image.get(), nullptr);
  EXPECT_EQ(ReadThrough(image), CL_COMPLETE);
  cl_int status = CL_SUCCESS;
  EXPECT_EQ(clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, &status),
            nullptr);
  EXPECT_EQ(status, CL_INVALID_GL_OBJECT);
}

TEST_P(GlNoError, WrongObjects) {
  const cl_mem_flags flags = CL_MEM_READ_WRITE;
  const GLuint texture = Texture2D(FormatOf(GL_RGBA8), 8, 4, nullptr);
  const auto create = [&](GLenum target, GLint level, GLuint name) {
    cl_int status = 1;
    Own<cl_mem> made(clCreateFromGLTexture(context(), flags, target, level, name, &status));
    return status;
  };
  EXPECT_EQ(create(GL_TEXTURE_2D, 0, 99999), CL_INVALID_GL_OBJECT);
  EXPECT_EQ(create(GL_TEXTURE_2D, 1000, texture), CL_INVALID_MIP_LEVEL);
  for (const GLenum target :
       {GL_TEXTURE_3D, GL_TEXTURE_2D_ARRAY, GL_TEXTURE_CUBE_MAP_POSITIVE_X, GL_TEXTURE_BUFFER}) {
    EXPECT_EQ(create(target, 0, texture), CL_INVALID_GL_OBJECT) << target;
  }
  // A base level that no texture has.
  const GLuint based = Texture2D(FormatOf(GL_RGBA8), 8, 4, nullptr);
  gl().BindTexture(GL_TEXTURE_2D, based);
  gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 1000);
  gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_BASE_LEVEL, 900);
  gl().Flush();
  EXPECT_NE(create(GL_TEXTURE_2D, 900, based), CL_SUCCESS);
  EXPECT_NE(create(GL_TEXTURE_2D, 31, based), CL_SUCCESS);
  EXPECT_CREATE("clCreateFromGLBuffer.unknown", CL_INVALID_GL_OBJECT,
                clCreateFromGLBuffer(context(), flags, 99999, error));
  EXPECT_CREATE("clCreateFromGLRenderbuffer.unknown", CL_INVALID_GL_OBJECT,
                clCreateFromGLRenderbuffer(context(), flags, 99999, error));
  // The texture is bound nowhere that it does not belong to: it can be shared as what it is.
  EXPECT_EQ(create(GL_TEXTURE_2D, 0, texture), CL_SUCCESS);
}

// Section 9.4.6 leaves open what becomes of objects that change meanwhile. Here copies would run
// past their ends.
TEST_P(GlNoError, ChangedObjects) {
  constexpr size_t kBytes = 1 << 20;
  const std::vector<uint8_t> bytes(kBytes, 5);
  const GLuint buffer = Buffer(nullptr, kBytes);
  const Own<cl_mem> memory =
      MAKE("clCreateFromGLBuffer.smaller", clCreateFromGLBuffer(context(), 0, buffer, error));
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().MapBufferRange(GL_ARRAY_BUFFER, 0, 16, GL_MAP_WRITE_BIT);
  EXPECT_LT(WriteThrough(memory, bytes), 0) << "mapped";
  GoOn();
  gl().UnmapBuffer(GL_ARRAY_BUFFER);
  EXPECT_EQ(WriteThrough(memory, bytes), CL_COMPLETE);
  gl().BufferData(GL_ARRAY_BUFFER, 16, nullptr, GL_DYNAMIC_DRAW);
  EXPECT_LT(WriteThrough(memory, bytes), 0) << "smaller";
  GoOn();

  const GLuint texture = Texture2D(FormatOf(GL_RGBA8), 512, 512, nullptr);
  const Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.smaller",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  EXPECT_EQ(ReadThrough(image), CL_COMPLETE);
  gl().BindTexture(GL_TEXTURE_2D, texture);
  for (const GLsizei side : {4, 2048}) {
    gl().TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, side, side, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
    gl().Flush();
    EXPECT_LT(ReadThrough(image), 0) << side;
    GoOn();
  }

  const GLuint name = Renderbuffer(GL_RGBA8, 512);
  const Own<cl_mem> renderbuffer =
      MAKE("clCreateFromGLRenderbuffer.changed",
           clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, name, error));
  EXPECT_EQ(ReadThrough(renderbuffer), CL_COMPLETE);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA32UI, 512, 512);
  gl().Flush();
  EXPECT_LT(ReadThrough(renderbuffer), 0) << "of integers";
  GoOn();
  gl().RenderbufferStorageMultisample(GL_RENDERBUFFER, 4, GL_RGBA8, 512, 512);
  gl().Flush();
  EXPECT_LT(ReadThrough(renderbuffer), 0) << "of several samples";
  GoOn();
}

INSTANTIATE_TEST_SUITE_P(All, GlNoError, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
