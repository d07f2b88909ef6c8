// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_depth_images (OpenCL 2.2 Extension Specification, section 9.9): depth is shared where
// the device has depth images, bit for bit, and refused elsewhere. Of depth with stencil a kernel
// sees the depth, and nothing changes the stencil. OpenGL ES cannot read depth, and refuses too.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

constexpr cl_int kNoSuchFormat = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
constexpr size_t kDepthWidth = 21;
constexpr size_t kDepthHeight = 13;

const Format kDepths[] = {
    {GL_DEPTH_COMPONENT32F,
     GL_DEPTH_COMPONENT,
     GL_FLOAT,
     {CL_DEPTH, CL_FLOAT},
     4,
     "GL_DEPTH_COMPONENT32F"},
    {GL_DEPTH_COMPONENT16,
     GL_DEPTH_COMPONENT,
     GL_UNSIGNED_SHORT,
     {CL_DEPTH, CL_UNORM_INT16},
     2,
     "GL_DEPTH_COMPONENT16"},
};
const Format kDepthStencils[] = {
    {GL_DEPTH24_STENCIL8,
     GL_DEPTH_STENCIL,
     GL_UNSIGNED_INT_24_8,
     {CL_DEPTH_STENCIL, CL_UNORM_INT24},
     4,
     "GL_DEPTH24_STENCIL8"},
    {GL_DEPTH32F_STENCIL8,
     GL_DEPTH_STENCIL,
     GL_FLOAT_32_UNSIGNED_INT_24_8_REV,
     {CL_DEPTH_STENCIL, CL_FLOAT},
     8,
     "GL_DEPTH32F_STENCIL8"},
};

struct DepthTarget {
  GLenum target;
  const char* image;  // In a kernel.
  const char* at;
  size_t width, height, depth;
};
constexpr const char* kPixel = "(int2)(get_global_id(0), get_global_id(1))";
constexpr const char* kTexel = "(int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0)";
const DepthTarget kDepthTargets[] = {
    {GL_TEXTURE_2D, "image2d_depth_t", kPixel, kDepthWidth, kDepthHeight, 1},
    {GL_TEXTURE_RECTANGLE, "image2d_depth_t", kPixel, kDepthWidth, kDepthHeight, 1},
    {GL_TEXTURE_CUBE_MAP_NEGATIVE_X, "image2d_depth_t", kPixel, kDepthHeight, kDepthHeight, 1},
    {GL_TEXTURE_2D_ARRAY, "image2d_array_depth_t", kTexel, kDepthWidth, kDepthHeight, 3},
};

// Depth lies between 0 and 1. Beside it stencils from 1 to 255, if the format has them.
std::vector<uint8_t> Depths(const Format& format, size_t elements, uint32_t seed) {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < elements; ++i) {
    const uint32_t n = (i * 40503u + seed * 977u) & 0xffffff;
    const uint32_t stencil = (i + seed) % 255 + 1;
    const float depth = static_cast<float>(n) / 16777216.0f;
    uint32_t words[2] = {0, stencil};
    size_t size = format.bytes;
    if (format.type == GL_UNSIGNED_SHORT) {
      words[0] = n & 0xffff;
    } else if (format.type == GL_UNSIGNED_INT_24_8) {
      words[0] = (n << 8) | stencil;
    } else {
      std::memcpy(words, &depth, 4);
    }
    const auto* from = reinterpret_cast<const uint8_t*>(words);
    bytes.insert(bytes.end(), from, from + size);
  }
  return bytes;
}

// The depth of elements as a kernel has it: exact, but for 16 bits, which drivers round
// differently.
std::vector<uint8_t> AsFloats(const Format& format, const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t> floats;
  for (size_t at = 0; at < bytes.size(); at += format.bytes) {
    uint32_t word = 0;
    std::memcpy(&word, &bytes[at], std::min<size_t>(format.bytes, 4));
    float depth = static_cast<float>((word >> 8) / 16777215.0);
    if (format.type != GL_UNSIGNED_INT_24_8) std::memcpy(&depth, &word, 4);
    const auto* from = reinterpret_cast<const uint8_t*>(&depth);
    floats.insert(floats.end(), from, from + sizeof(depth));
  }
  return floats;
}

// GL writes the one and keeps the other when depth alone is written.
std::vector<uint8_t> WithStencilsOf(const Format& format, std::vector<uint8_t> depths,
                                    const std::vector<uint8_t>& stencils) {
  const size_t at = format.type == GL_UNSIGNED_INT_24_8 ? 0 : 4;  // Little-endian.
  for (size_t i = at; i < depths.size(); i += format.bytes) depths[i] = stencils[i];
  return depths;
}

class GlDepths : public WithGl {
 protected:
  void SetUp() override {
    WithGl::SetUp();
    if (IsSkipped()) return;
    has_ = conformance::HasDeviceExtension(device(), "cl_khr_gl_depth_images");
    EXPECT_EQ(has_, conformance::HasDeviceExtension(device(), "cl_khr_depth_images"));
    EXPECT_EQ(has_, conformance::HasPlatformExtension(platform(), "cl_khr_gl_depth_images"));
    if (!has_) std::puts("the device has no depth images: all are refused");
  }
  bool shares() const { return has_ && !es(); }

  GLuint Texture(const DepthTarget& about, const Format& format,
                 const std::vector<uint8_t>& bytes) {
    const bool face = about.target == GL_TEXTURE_CUBE_MAP_NEGATIVE_X;
    const GLenum binding = face ? GL_TEXTURE_CUBE_MAP : about.target;
    const auto width = static_cast<GLsizei>(about.width);
    const auto height = static_cast<GLsizei>(about.height);
    const auto internal = static_cast<GLint>(format.internal);
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(binding, texture);
    if (about.depth > 1) {
      gl().TexImage3D(binding, 0, internal, width, height, static_cast<GLsizei>(about.depth), 0,
                      format.format, format.type, bytes.data());
    } else {
      for (GLenum i = 0; i < (face ? 6u : 1u); ++i) {
        gl().TexImage2D(face ? GL_TEXTURE_CUBE_MAP_POSITIVE_X + i : binding, 0, internal, width,
                        height, 0, format.format, format.type, bytes.data());
      }
    }
    gl().TexParameteri(binding, GL_TEXTURE_MAX_LEVEL, 0);
    gl().BindTexture(binding, 0);
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR)) << format.name;
    return texture;
  }
  std::vector<uint8_t> Read(const DepthTarget& about, GLuint texture, const Format& format) {
    return ReadTexture(about.target, texture, 0, format, about.width, about.height, about.depth);
  }

  // Kernels move the depth between an image that is acquired and a buffer of floats.
  void Move(const DepthTarget& about, const char* access, const std::string& statement,
            cl_mem image, cl_mem buffer) {
    const std::string source =
        std::string("#pragma OPENCL EXTENSION cl_khr_depth_images : enable\n") +
        "kernel void move(" + access + " " + about.image +
        " image, global float* f) {"
        "  const size_t i = (get_global_id(2) * get_global_size(1) + get_global_id(1)) *"
        "                   get_global_size(0) + get_global_id(0);" +
        statement + " }";
    const Own<cl_kernel> kernel = BuildKernel(source.c_str(), "move");
    conformance::SetArg(kernel, 0, image);
    conformance::SetArg(kernel, 1, buffer);
    const size_t global[3] = {about.width, about.height, about.depth};
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 3, nullptr, global, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
  }
  std::vector<uint8_t> ThroughKernel(const DepthTarget& about, cl_mem image) {
    std::vector<uint8_t> floats(about.width * about.height * about.depth * sizeof(cl_float));
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> buffer(
        clCreateBuffer(context(), CL_MEM_WRITE_ONLY, floats.size(), nullptr, &status));
    Move(about, "read_only", std::string("f[i] = read_imagef(image, ") + about.at + ");", image,
         buffer);
    EXPECT_EQ(clEnqueueReadBuffer(queue(), buffer, CL_TRUE, 0, floats.size(), floats.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    return floats;
  }
  void ByKernel(const DepthTarget& about, cl_mem image, std::vector<uint8_t> floats) {
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> buffer(clCreateBuffer(context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                            floats.size(), floats.data(), &status));
    Move(about, "write_only", std::string("write_imagef(image, ") + about.at + ", f[i]);", image,
         buffer);
  }

  // Section 9.9.1: CL_INVALID_OPERATION from every command of the host's.
  void ExpectNoHostCommands(cl_mem image) {
    const size_t origin[3] = {0, 0, 0}, other[3] = {2, 0, 0}, region[3] = {1, 1, 1};
    cl_float color[4] = {};
    size_t pitch = 0;
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> buffer(clCreateBuffer(context(), 0, 64, nullptr, &status));
    EXPECT_CL("clEnqueueReadImage.depth_stencil", CL_INVALID_OPERATION,
              clEnqueueReadImage(queue(), image, CL_TRUE, origin, region, 0, 0, color, 0, nullptr,
                                 nullptr));
    EXPECT_CL("clEnqueueWriteImage.depth_stencil", CL_INVALID_OPERATION,
              clEnqueueWriteImage(queue(), image, CL_TRUE, origin, region, 0, 0, color, 0, nullptr,
                                  nullptr));
    EXPECT_CL(
        "clEnqueueCopyImage.depth_stencil", CL_INVALID_OPERATION,
        clEnqueueCopyImage(queue(), image, image, origin, other, region, 0, nullptr, nullptr));
    EXPECT_CL(
        "clEnqueueCopyImageToBuffer.depth_stencil", CL_INVALID_OPERATION,
        clEnqueueCopyImageToBuffer(queue(), image, buffer, origin, region, 0, 0, nullptr, nullptr));
    EXPECT_CL(
        "clEnqueueCopyBufferToImage.depth_stencil", CL_INVALID_OPERATION,
        clEnqueueCopyBufferToImage(queue(), buffer, image, 0, origin, region, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueFillImage.depth_stencil", CL_INVALID_OPERATION,
              clEnqueueFillImage(queue(), image, color, origin, region, 0, nullptr, nullptr));
    EXPECT_EQ(clEnqueueMapImage(queue(), image, CL_TRUE, CL_MAP_READ, origin, region, &pitch,
                                nullptr, 0, nullptr, nullptr, &status),
              nullptr);
    EXPECT_EQ(status, CL_INVALID_OPERATION);
  }

 private:
  bool has_ = false;
};

// Textures of depth alone, of every target that can have it: the host reads what GL wrote, a kernel
// sees it too, and GL reads what the host wrote.
TEST_P(GlDepths, Textures) {
  int shared = 0;
  for (const DepthTarget& about : kDepthTargets) {
    for (const Format& format : kDepths) {
      SCOPED_TRACE(testing::Message() << about.target << " " << format.name);
      if (es() && about.target == GL_TEXTURE_RECTANGLE) continue;
      const size_t elements = about.width * about.height * about.depth;
      const std::vector<uint8_t> before = Depths(format, elements, 5);
      const std::vector<uint8_t> after = Depths(format, elements, 6);
      const GLuint texture = Texture(about, format, before);
      const cl_mem_object_type type =
          about.depth > 1 ? CL_MEM_OBJECT_IMAGE2D_ARRAY : CL_MEM_OBJECT_IMAGE2D;
      if (es() || !DeviceHas(format, type, CL_MEM_READ_WRITE)) {
        EXPECT_CREATE(
            "clCreateFromGLTexture.no_depth", kNoSuchFormat,
            clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, about.target, 0, texture, error));
        continue;
      }
      EXPECT_TRUE(shares());
      const Own<cl_mem> image = MAKE(
          "clCreateFromGLTexture.depth",
          clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, about.target, 0, texture, error));
      ASSERT_NE(image.get(), nullptr);
      ASSERT_EQ(Acquire(image), CL_SUCCESS);
      EXPECT_EQ(ReadImage(image, about.width, about.height, about.depth, format.bytes), before);
      if (format.type == GL_FLOAT) {
        EXPECT_EQ(ThroughKernel(about, image), AsFloats(format, before));
      }
      WriteImage(image, about.width, about.height, about.depth, after);
      ASSERT_EQ(Release(image), CL_SUCCESS);
      EXPECT_EQ(Read(about, texture, format), after);
      ++shared;
    }
  }
  std::printf("%d kinds of depth textures shared\n", shared);
  if (shares()) {
    EXPECT_GE(shared, 1);
  }
}

// Renderbuffers of depth go both ways; those with stencil are no images, since such a one is made
// of a texture alone.
TEST_P(GlDepths, Renderbuffers) {
  for (const Format* format : {&kDepths[0], &kDepths[1], &kDepthStencils[0], &kDepthStencils[1]}) {
    SCOPED_TRACE(format->name);
    const bool has_stencil = format->format == GL_DEPTH_STENCIL;
    const std::vector<uint8_t> before = Depths(*format, kDepthWidth * kDepthHeight, 7);
    const GLuint source = Texture2D(*format, kDepthWidth, kDepthHeight, before.data());
    GLuint renderbuffer = 0;
    GLuint framebuffers[2] = {};
    gl().GenRenderbuffers(1, &renderbuffer);
    gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
    gl().RenderbufferStorage(GL_RENDERBUFFER, format->internal, kDepthWidth, kDepthHeight);
    gl().BindRenderbuffer(GL_RENDERBUFFER, 0);
    if (es() || has_stencil || !DeviceHas(*format, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE)) {
      EXPECT_CREATE("clCreateFromGLRenderbuffer.no_depth", kNoSuchFormat,
                    clCreateFromGLRenderbuffer(context(), CL_MEM_READ_ONLY, renderbuffer, error));
      continue;
    }
    gl().GenFramebuffers(2, framebuffers);
    gl().BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffers[0]);
    gl().FramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, source, 0);
    gl().BindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffers[1]);
    gl().FramebufferRenderbuffer(GL_DRAW_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_RENDERBUFFER,
                                 renderbuffer);
    gl().BlitFramebuffer(0, 0, kDepthWidth, kDepthHeight, 0, 0, kDepthWidth, kDepthHeight,
                         GL_DEPTH_BUFFER_BIT, GL_NEAREST);
    ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    const Own<cl_mem> image =
        MAKE("clCreateFromGLRenderbuffer.depth",
             clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, renderbuffer, error));
    ASSERT_NE(image.get(), nullptr);
    const std::vector<uint8_t> after = Depths(*format, kDepthWidth * kDepthHeight, 8);
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    EXPECT_EQ(ReadImage(image, kDepthWidth, kDepthHeight, 1, format->bytes), before);
    WriteImage(image, kDepthWidth, kDepthHeight, 1, after);
    ASSERT_EQ(Release(image), CL_SUCCESS);
    gl().BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffers[1]);
    EXPECT_EQ(ReadFramebuffer(*format, kDepthWidth, kDepthHeight), after);
    gl().BindFramebuffer(GL_FRAMEBUFFER, 0);
  }
}

// Of textures with stencil a kernel reads the depth that GL wrote, and GL finds the depth that a
// kernel wrote beside the stencil that it had. An image that was made for reading stays as it is.
TEST_P(GlDepths, Stencils) {
  for (const DepthTarget& about : kDepthTargets) {
    for (const Format& format : kDepthStencils) {
      SCOPED_TRACE(testing::Message() << about.target << " " << format.name);
      if (es() && about.target == GL_TEXTURE_RECTANGLE) continue;
      const size_t elements = about.width * about.height * about.depth;
      const std::vector<uint8_t> before = Depths(format, elements, 9);
      const std::vector<uint8_t> after = Depths(format, elements, 10);
      const GLuint texture = Texture(about, format, before);
      const cl_mem_object_type type =
          about.depth > 1 ? CL_MEM_OBJECT_IMAGE2D_ARRAY : CL_MEM_OBJECT_IMAGE2D;
      EXPECT_EQ(DeviceHas(format, type, CL_MEM_READ_ONLY), shares());
      if (!shares()) {
        EXPECT_CREATE(
            "clCreateFromGLTexture.no_stencil", kNoSuchFormat,
            clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, about.target, 0, texture, error));
        continue;
      }
      const Own<cl_mem> read =
          MAKE("clCreateFromGLTexture.read_stencil",
               clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, about.target, 0, texture, error));
      ASSERT_NE(read.get(), nullptr);
      ASSERT_EQ(Acquire(read), CL_SUCCESS);
      EXPECT_EQ(ThroughKernel(about, read), AsFloats(format, before));
      ASSERT_EQ(Release(read), CL_SUCCESS);
      EXPECT_EQ(Read(about, texture, format), before);
      if (!DeviceHas(format, type, CL_MEM_READ_WRITE)) continue;
      const Own<cl_mem> written = MAKE(
          "clCreateFromGLTexture.write_stencil",
          clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, about.target, 0, texture, error));
      ASSERT_NE(written.get(), nullptr);
      ASSERT_EQ(Acquire(written), CL_SUCCESS);
      ByKernel(about, written, AsFloats(format, after));
      ASSERT_EQ(Release(written), CL_SUCCESS);
      EXPECT_EQ(Read(about, texture, format), WithStencilsOf(format, after, before));
    }
  }
}

// Section 9.9.1 on images with stencil: their format, who makes them, and the commands that must
// not take them.
TEST_P(GlDepths, StencilsAreForKernels) {
  for (const Format& format : kDepthStencils) {
    SCOPED_TRACE(format.name);
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = kDepthWidth;
    desc.image_height = kDepthHeight;
    EXPECT_CREATE("clCreateImage.depth_stencil", kNoSuchFormat,
                  clCreateImage(context(), 0, &format.cl, &desc, nullptr, error));
    if (!shares()) continue;
    const GLuint texture = Texture2D(format, kDepthWidth, kDepthHeight, nullptr);
    const Own<cl_mem> image =
        MAKE("clCreateFromGLTexture.depth_stencil",
             clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error));
    ASSERT_NE(image.get(), nullptr);
    cl_image_format seen = {};
    size_t bytes = 0, pitch = 0;
    EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_FORMAT, sizeof(seen), &seen, nullptr), CL_SUCCESS);
    EXPECT_EQ(seen.image_channel_order, format.cl.image_channel_order);
    EXPECT_EQ(seen.image_channel_data_type, format.cl.image_channel_data_type);
    EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(bytes), &bytes, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(bytes, format.bytes);
    EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(pitch), &pitch, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(pitch, kDepthWidth * format.bytes);
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    ExpectNoHostCommands(image);
    ASSERT_EQ(Release(image), CL_SUCCESS);
    desc.mem_object = image;
    for (const cl_image_format& wanted :
         {cl_image_format{CL_DEPTH, CL_FLOAT}, cl_image_format{CL_R, CL_FLOAT}}) {
      EXPECT_CREATE("clCreateImage.of_depth_stencil", kNoSuchFormat,
                    clCreateImage(context(), 0, &wanted, &desc, nullptr, error));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GlDepths, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
