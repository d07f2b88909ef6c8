// SPDX-License-Identifier: Apache-2.0
// cl_khr_egl_image: images of OpenCL made from EGLImages (OpenCL 2.2 Extension Specification,
// section 9.16).
#include <CL/cl_egl.h>
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include <cstdio>
#include <string_view>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

class EglImages : public WithGl {
 protected:
  void SetUp() override {
    WithGl::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto* vendor = reinterpret_cast<const char*>(gl().GetString(GL_VENDOR));
    if (std::string_view(vendor).starts_with("NVIDIA"))
      GTEST_SKIP() << "EGLImages are refused with NVIDIA's GL (client_icd/sharing/gl/gl_share.cc)";
    create_ = Extension<decltype(&clCreateFromEGLImageKHR)>("clCreateFromEGLImageKHR");
    acquire_ = Extension<decltype(&clEnqueueAcquireEGLObjectsKHR)>("clEnqueueAcquireEGLObjectsKHR");
    release_ = Extension<decltype(&clEnqueueReleaseEGLObjectsKHR)>("clEnqueueReleaseEGLObjectsKHR");
    ASSERT_NE(create_, nullptr);
    ASSERT_NE(acquire_, nullptr);
    ASSERT_NE(release_, nullptr);
    make_image_ =
        reinterpret_cast<PFNEGLCREATEIMAGEKHRPROC>(eglGetProcAddress("eglCreateImageKHR"));
    destroy_image_ =
        reinterpret_cast<PFNEGLDESTROYIMAGEKHRPROC>(eglGetProcAddress("eglDestroyImageKHR"));
  }

  EGLImageKHR ImageOf(GLuint name, EGLenum target = EGL_GL_TEXTURE_2D_KHR, EGLint level = 0) {
    std::vector<EGLint> attributes = {EGL_IMAGE_PRESERVED_KHR, EGL_TRUE};
    if (target != EGL_GL_RENDERBUFFER_KHR)
      attributes.insert(attributes.end(), {EGL_GL_TEXTURE_LEVEL_KHR, level});
    attributes.push_back(EGL_NONE);
    const EGLImageKHR image = make_image_(
        app().egl_display(), app().egl_context(), target,
        reinterpret_cast<EGLClientBuffer>(static_cast<uintptr_t>(name)), attributes.data());
    EXPECT_NE(image, EGL_NO_IMAGE_KHR) << std::hex << eglGetError();
    return image;
  }
  // The code that its memory object is refused with; else it must have these bytes, and is given
  // the others.
  cl_int SharedOrRefused(EGLImageKHR image, size_t side, const std::vector<uint8_t>& bytes,
                         const std::vector<uint8_t>& after) {
    gl().Finish();
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> memory(
        create_(context(), app().egl_display(), image, CL_MEM_READ_WRITE, nullptr, &status));
    destroy_image_(app().egl_display(), image);
    if (status != CL_SUCCESS) return status;
    const cl_mem handle = memory;
    EXPECT_EQ(acquire_(queue(), 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(ReadImage(memory, side, side, 1, bytes.size() / (side * side)), bytes);
    const size_t origin[3] = {0, 0, 0};
    const size_t region[3] = {side, side, 1};
    EXPECT_EQ(clEnqueueWriteImage(queue(), memory, CL_TRUE, origin, region, 0, 0, after.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(release_(queue(), 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
    return CL_SUCCESS;
  }

  decltype(&clCreateFromEGLImageKHR) create_ = nullptr;
  decltype(&clEnqueueAcquireEGLObjectsKHR) acquire_ = nullptr;
  decltype(&clEnqueueReleaseEGLObjectsKHR) release_ = nullptr;
  PFNEGLCREATEIMAGEKHRPROC make_image_ = nullptr;
  PFNEGLDESTROYIMAGEKHRPROC destroy_image_ = nullptr;
};

// OpenCL reads what GL wrote into the image's texture, and the reverse; also from an OpenCL context
// that knows nothing of GL, and after the EGLImage itself has been destroyed.
TEST_P(EglImages, RoundTrip) {
  const Format& format = FormatOf(GL_RGBA8);
  constexpr size_t kWidth = 24;
  constexpr size_t kHeight = 10;
  for (const bool plain : {false, true}) {
    SCOPED_TRACE(plain);
    Own<cl_context> other = NewContext();
    const cl_context context = plain ? other.get() : this->context();
    cl_int status = CL_SUCCESS;
    Own<cl_command_queue> queue(
        clCreateCommandQueueWithProperties(context, device(), nullptr, &status));
    const std::vector<uint8_t> before = Pattern(format, kWidth * kHeight, 1);
    const GLuint texture = Texture2D(format, kWidth, kHeight, before.data());
    const EGLImageKHR image = ImageOf(texture);
    gl().Finish();
    Own<cl_mem> memory =
        MAKE("clCreateFromEGLImageKHR.plain",
             create_(context, app().egl_display(), image, CL_MEM_READ_WRITE, nullptr, error));
    ASSERT_NE(memory.get(), nullptr);
    destroy_image_(app().egl_display(), image);
    cl_mem_object_type type = 0;
    clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof(type), &type, nullptr);
    EXPECT_EQ(type, static_cast<cl_mem_object_type>(CL_MEM_OBJECT_IMAGE2D));
    EXPECT_EQ(clGetGLObjectInfo(memory, nullptr, nullptr), CL_INVALID_GL_OBJECT);
    const cl_mem handle = memory;
    cl_event event = nullptr;
    ASSERT_CL("clEnqueueAcquireEGLObjectsKHR.plain", CL_SUCCESS,
              acquire_(queue, 1, &handle, 0, nullptr, &event));
    Own<cl_event> acquired(event);
    cl_command_type command = 0;
    clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(command), &command, nullptr);
    EXPECT_EQ(command, static_cast<cl_command_type>(CL_COMMAND_ACQUIRE_EGL_OBJECTS_KHR));
    std::vector<uint8_t> seen(before.size());
    const size_t origin[3] = {0, 0, 0};
    const size_t region[3] = {kWidth, kHeight, 1};
    ASSERT_EQ(clEnqueueReadImage(queue, memory, CL_TRUE, origin, region, 0, 0, seen.data(), 0,
                                 nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(seen, before);
    const std::vector<uint8_t> after = Pattern(format, kWidth * kHeight, 2);
    ASSERT_EQ(clEnqueueWriteImage(queue, memory, CL_TRUE, origin, region, 0, 0, after.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_CL("clEnqueueReleaseEGLObjectsKHR.plain", CL_SUCCESS,
              release_(queue, 1, &handle, 0, nullptr, nullptr));
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, texture, 0, format, kWidth, kHeight, 1), after);
  }
}

// Levels and renderbuffers are shared. Of a cube's face the GL may make no two-dimensional texture:
// then it is refused with section 9.16.4's code for that, and never shared with other bytes.
TEST_P(EglImages, Sources) {
  const Format& format = FormatOf(GL_RGBA8);
  constexpr size_t kSide = 8;
  constexpr GLsizei kGlSide = kSide;
  const std::vector<uint8_t> texels = Pattern(format, kSide * kSide, 3);
  const std::vector<uint8_t> other_level = Pattern(format, 4 * kSide * kSide, 7);
  const std::vector<uint8_t> after = Pattern(format, kSide * kSide, 9);
  const auto upload = [&](GLenum face, GLint level, GLsizei side, const void* data) {
    gl().TexImage2D(face, level, GL_RGBA8, side, side, 0, format.format, format.type, data);
  };
  GLuint names[2] = {};
  gl().GenTextures(2, names);
  gl().BindTexture(GL_TEXTURE_2D, names[0]);
  for (GLint level = 0; level < 5; ++level)
    upload(GL_TEXTURE_2D, level, 16 >> level, level == 1 ? texels.data() : other_level.data());
  EXPECT_EQ(SharedOrRefused(ImageOf(names[0], EGL_GL_TEXTURE_2D_KHR, 1), kSide, texels, after),
            CL_SUCCESS);
  EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, names[0], 1, format, kSide, kSide, 1), after);
  EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, names[0], 0, format, 2 * kSide, 2 * kSide, 1), other_level);

  gl().BindTexture(GL_TEXTURE_CUBE_MAP, names[1]);
  gl().TexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_MAX_LEVEL, 0);
  for (GLenum face = 0; face < 6; ++face) {
    upload(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, 0, kGlSide,
           Pattern(format, kSide * kSide, face).data());
  }
  for (const EGLenum face : {0, 3, 5}) {
    const EGLenum target = EGL_GL_TEXTURE_CUBE_MAP_POSITIVE_X_KHR + face;
    const std::vector<uint8_t> before = Pattern(format, kSide * kSide, face);
    const cl_int status = SharedOrRefused(ImageOf(names[1], target), kSide, before, before);
    EXPECT_TRUE(status == CL_SUCCESS || status == CL_IMAGE_FORMAT_NOT_SUPPORTED) << status;
  }

  GLuint renderbuffer = 0, framebuffer = 0;
  gl().GenRenderbuffers(1, &renderbuffer);
  gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, kGlSide, kGlSide);
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl().FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer);
  gl().ClearColor(1, 0, 1, 1);
  gl().Clear(GL_COLOR_BUFFER_BIT);
  std::vector<uint8_t> magenta;
  for (size_t i = 0; i < kSide * kSide; ++i) magenta.insert(magenta.end(), {255, 0, 255, 255});
  EXPECT_EQ(SharedOrRefused(ImageOf(renderbuffer, EGL_GL_RENDERBUFFER_KHR), kSide, magenta, after),
            CL_SUCCESS);
  std::vector<uint8_t> seen(after.size());
  gl().ReadPixels(0, 0, kGlSide, kGlSide, format.format, format.type, seen.data());
  EXPECT_EQ(seen, after);
  gl().BindFramebuffer(GL_FRAMEBUFFER, 0);
  EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
}

// Every format of table 9.4 is shared with its bytes, both ways, or refused with section 9.16.4's
// code; depth with stencil "can only be created using the clCreateFromGLTexture API" (9.9.1).
TEST_P(EglImages, Formats) {
  constexpr size_t kSide = 12;
  std::vector<Format> formats = AllFormats();
  formats.push_back({GL_DEPTH24_STENCIL8,
                     GL_DEPTH_STENCIL,
                     GL_UNSIGNED_INT_24_8,
                     {CL_DEPTH_STENCIL, CL_UNORM_INT24},
                     4,
                     "GL_DEPTH24_STENCIL8"});
  int shared = 0, refused = 0, none = 0;
  for (const Format& format : formats) {
    SCOPED_TRACE(format.name);
    const std::vector<uint8_t> before = Pattern(format, kSide * kSide, 11);
    const std::vector<uint8_t> after = Pattern(format, kSide * kSide, 12);
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(GL_TEXTURE_2D, texture);
    gl().TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(format.internal), kSide, kSide, 0,
                    format.format, format.type, before.data());
    gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
    gl().BindTexture(GL_TEXTURE_2D, 0);
    const EGLImageKHR image =
        make_image_(app().egl_display(), app().egl_context(), EGL_GL_TEXTURE_2D_KHR,
                    reinterpret_cast<EGLClientBuffer>(static_cast<uintptr_t>(texture)), nullptr);
    eglGetError();
    if (gl().GetError() != GL_NO_ERROR || image == EGL_NO_IMAGE_KHR) {
      ++none;
      continue;
    }
    const cl_int status = SharedOrRefused(image, kSide, before, after);
    if (status != CL_SUCCESS) {
      EXPECT_TRUE(status == CL_IMAGE_FORMAT_NOT_SUPPORTED ||
                  (LacksForcedShadow(format) && status == CL_MEM_OBJECT_ALLOCATION_FAILURE))
          << status;
      ++refused;
      continue;
    }
    EXPECT_NE(format.format, static_cast<GLenum>(GL_DEPTH_STENCIL));
    EXPECT_TRUE(DeviceHas(format, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE));
    const std::vector<uint8_t> read =
        ReadTexture(GL_TEXTURE_2D, texture, 0, format, kSide, kSide, 1);
    // OpenGL ES reads few formats as they are.
    if (gl().GetError() == GL_NO_ERROR) {
      EXPECT_EQ(read, after);
    }
    ++shared;
  }
  std::printf("%d formats shared, %d refused, %d that EGL makes no image of\n", shared, refused,
              none);
  EXPECT_GE(shared, 4);
}

// A kernel reads one EGLImage and writes another: of colours, and of integers.
TEST_P(EglImages, ThroughKernel) {
  constexpr size_t kSide = 20;
  for (const GLenum internal : {GL_RGBA8, GL_RGBA8UI}) {
    const Format& format = FormatOf(internal);
    SCOPED_TRACE(format.name);
    const bool whole = internal == GL_RGBA8UI;
    const std::vector<uint8_t> before = Pattern(format, kSide * kSide, 13);
    const GLuint source = Texture2D(format, kSide, kSide, before.data());
    const GLuint target = Texture2D(format, kSide, kSide, nullptr);
    const EGLImageKHR images[2] = {ImageOf(source), ImageOf(target)};
    gl().Finish();
    const Own<cl_mem> in =
        MAKE("clCreateFromEGLImageKHR.kernel_in",
             create_(context(), app().egl_display(), images[0], CL_MEM_READ_ONLY, nullptr, error));
    const Own<cl_mem> out =
        MAKE("clCreateFromEGLImageKHR.kernel_out",
             create_(context(), app().egl_display(), images[1], CL_MEM_WRITE_ONLY, nullptr, error));
    ASSERT_NE(in.get(), nullptr);
    ASSERT_NE(out.get(), nullptr);
    const Own<cl_kernel> kernel =
        BuildKernel(whole ? "kernel void invert(read_only image2d_t in, write_only image2d_t out) {"
                            "  const int2 at = (int2)(get_global_id(0), get_global_id(1));"
                            "  write_imageui(out, at, 255 - read_imageui(in, at)); }"
                          : "kernel void invert(read_only image2d_t in, write_only image2d_t out) {"
                            "  const int2 at = (int2)(get_global_id(0), get_global_id(1));"
                            "  write_imagef(out, at, 1.0f - read_imagef(in, at)); }",
                    "invert");
    conformance::SetArg(kernel, 0, in);
    conformance::SetArg(kernel, 1, out);
    const cl_mem both[2] = {in, out};
    const size_t global[2] = {kSide, kSide};
    EXPECT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr),
        CL_EGL_RESOURCE_NOT_ACQUIRED_KHR);
    ASSERT_EQ(acquire_(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(release_(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
    std::vector<uint8_t> inverse = before;
    for (uint8_t& byte : inverse) byte = static_cast<uint8_t>(~byte);
    const std::vector<uint8_t> read =
        ReadTexture(GL_TEXTURE_2D, target, 0, format, kSide, kSide, 1);
    // OpenGL ES reads integers as it likes.
    if (gl().GetError() == GL_NO_ERROR) {
      EXPECT_EQ(read, inverse);
    }
    for (const EGLImageKHR image : images) destroy_image_(app().egl_display(), image);
  }
}

// Section 9.16.4's codes.
TEST_P(EglImages, Refusals) {
  const GLuint texture = Texture2D(FormatOf(GL_RGBA8), 4, 4, nullptr);
  const EGLImageKHR image = ImageOf(texture);
  const EGLDisplay display = app().egl_display();
  gl().Finish();
  EXPECT_CREATE("clCreateFromEGLImageKHR.null_context", CL_INVALID_CONTEXT,
                create_(nullptr, display, image, CL_MEM_READ_ONLY, nullptr, error));
  const cl_egl_image_properties_khr properties[] = {1, 2, 0};
  const cl_egl_image_properties_khr none[] = {0};
  EXPECT_CREATE("clCreateFromEGLImageKHR.properties", CL_INVALID_VALUE,
                create_(context(), display, image, CL_MEM_READ_ONLY, properties, error));
  EXPECT_CREATE("clCreateFromEGLImageKHR.no_display", CL_INVALID_VALUE,
                create_(context(), nullptr, image, CL_MEM_READ_ONLY, nullptr, error));
  EXPECT_CREATE("clCreateFromEGLImageKHR.bad_display", CL_INVALID_VALUE,
                create_(context(), reinterpret_cast<void*>(0x12340), image, CL_MEM_READ_ONLY,
                        nullptr, error));
  EXPECT_CREATE("clCreateFromEGLImageKHR.flags", CL_INVALID_VALUE,
                create_(context(), display, image, CL_MEM_COPY_HOST_PTR, nullptr, error));
  EXPECT_CREATE("clCreateFromEGLImageKHR.null_image", CL_INVALID_EGL_OBJECT_KHR,
                create_(context(), display, nullptr, CL_MEM_READ_ONLY, nullptr, error));
  EXPECT_CREATE("clCreateFromEGLImageKHR.bad_image", CL_INVALID_EGL_OBJECT_KHR,
                create_(context(), display, reinterpret_cast<void*>(0x12340), CL_MEM_READ_ONLY,
                        nullptr, error));
  Own<cl_mem> memory = MAKE(
      "clCreateFromEGLImageKHR.no_properties",
      create_(context(), display, image, CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS, none, error));
  ASSERT_NE(memory.get(), nullptr);
  Own<cl_mem> plain = MAKE("clCreateFromEGLImageKHR.again",
                           create_(context(), display, image, CL_MEM_READ_WRITE, nullptr, error));
  // Used while released.
  const cl_mem handle = plain;
  uint8_t pixel[4] = {};
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {1, 1, 1};
  EXPECT_EQ(clEnqueueReadImage(queue(), handle, CL_TRUE, origin, region, 0, 0, pixel, 0, nullptr,
                               nullptr),
            CL_EGL_RESOURCE_NOT_ACQUIRED_KHR);
  cl_int status = CL_SUCCESS;
  Own<cl_mem> ordinary(clCreateBuffer(context(), 0, 4, nullptr, &status));
  const cl_mem bad = ordinary;
  const cl_mem null = nullptr;
  using Call = decltype(&clEnqueueAcquireEGLObjectsKHR);
  for (const Call call : {acquire_, release_}) {
    EXPECT_CL("clEnqueueAcquireEGLObjectsKHR.nothing", CL_SUCCESS,
              call(queue(), 0, nullptr, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireEGLObjectsKHR.zero", CL_INVALID_VALUE,
              call(queue(), 0, &handle, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireEGLObjectsKHR.null_list", CL_INVALID_VALUE,
              call(queue(), 1, nullptr, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireEGLObjectsKHR.null_object", CL_INVALID_MEM_OBJECT,
              call(queue(), 1, &null, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireEGLObjectsKHR.ordinary", CL_INVALID_EGL_OBJECT_KHR,
              call(queue(), 1, &bad, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireEGLObjectsKHR.null_queue", CL_INVALID_COMMAND_QUEUE,
              call(nullptr, 1, &handle, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireEGLObjectsKHR.null_waits", CL_INVALID_EVENT_WAIT_LIST,
              call(queue(), 1, &handle, 1, nullptr, nullptr));
  }
  EXPECT_CL("clEnqueueReleaseEGLObjectsKHR.null_queue", CL_INVALID_COMMAND_QUEUE,
            release_(nullptr, 1, &handle, 0, nullptr, nullptr));
  // An EGL object is none of GL's.
  EXPECT_EQ(Acquire(handle), CL_INVALID_GL_OBJECT);
  destroy_image_(display, image);
}

INSTANTIATE_TEST_SUITE_P(All, EglImages, testing::Values(Binding::kEglGl, Binding::kEglEs),
                         BindingParamName);

}  // namespace
}  // namespace sluice::gltest
