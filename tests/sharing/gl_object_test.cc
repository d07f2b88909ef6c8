// SPDX-License-Identifier: Apache-2.0
// Contents through cl_khr_gl_sharing: what GL wrote, OpenCL reads; what OpenCL wrote, GL reads; bit
// for bit, for every kind of object, target, level and format.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

bool IsSignedNormalised(const Format& format) {
  return format.cl.image_channel_data_type == CL_SNORM_INT8 ||
         format.cl.image_channel_data_type == CL_SNORM_INT16;
}

bool IsCpu(cl_device_id device) {
  return (conformance::DeviceValue<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) !=
         0;
}

class GlObjects : public WithGl {
 protected:
  // GL has `before` in it; OpenCL must see that, and GL afterwards what OpenCL wrote.
  void RoundTripImage(cl_mem image, size_t width, size_t height, size_t depth, const Format& format,
                      const std::vector<uint8_t>& before, const std::vector<uint8_t>& after) {
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    EXPECT_EQ(ReadImage(image, width, height, depth, format.bytes), before) << format.name;
    WriteImage(image, width, height, depth, after);
    ASSERT_EQ(Release(image), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  }
};

// A kernel adds one to every element of a vertex buffer.
TEST_P(GlObjects, BufferThroughKernel) {
  constexpr size_t kCount = 100000;
  std::vector<cl_uint> values(kCount);
  std::iota(values.begin(), values.end(), 7u);
  const GLuint buffer = Buffer(values.data(), kCount * 4);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.plain",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  size_t bytes = 0;
  ASSERT_EQ(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(bytes), &bytes, nullptr), CL_SUCCESS);
  EXPECT_EQ(bytes, kCount * 4);
  Own<cl_kernel> kernel =
      BuildKernel("kernel void add(global uint* v) { v[get_global_id(0)] += 1; }", "add");
  conformance::SetArg(kernel, 0, memory);
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), kernel, kCount), CL_SUCCESS);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  for (cl_uint& value : values) ++value;
  const std::vector<uint8_t> read = ReadBuffer(buffer, kCount * 4);
  EXPECT_EQ(std::memcmp(read.data(), values.data(), read.size()), 0);
}

// A buffer larger than any chunk or heap segment keeps its bytes both ways.
TEST_P(GlObjects, LargeBuffer) {
  constexpr size_t kBytes = 80u << 20;
  std::vector<uint8_t> bytes = Pattern(FormatOf(GL_R32UI), kBytes / 4, 5);
  const GLuint buffer = Buffer(bytes.data(), kBytes);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.large",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  Own<cl_kernel> kernel = BuildKernel(
      "kernel void flip(global uint* v) { v[get_global_id(0)] ^= 0xffffffff; }", "flip");
  conformance::SetArg(kernel, 0, memory);
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), kernel, kBytes / 4), CL_SUCCESS);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(~byte);
  EXPECT_TRUE(ReadBuffer(buffer, kBytes) == bytes);
}

// A buffer whose storage the CPU may not touch is copied by the GL.
TEST_P(GlObjects, ImmutableBuffer) {
  if (es() || gl().BufferStorage == nullptr) GTEST_SKIP() << "no glBufferStorage";
  const std::vector<uint8_t> before = Pattern(FormatOf(GL_R8UI), 4096, 1);
  GLuint buffer = 0;
  gl().GenBuffers(1, &buffer);
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferStorage(GL_ARRAY_BUFFER, 4096, before.data(), GL_MAP_READ_BIT);
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.immutable",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  std::vector<uint8_t> seen(4096);
  ASSERT_EQ(
      clEnqueueReadBuffer(queue(), memory, CL_TRUE, 0, 4096, seen.data(), 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(seen, before);
  const std::vector<uint8_t> after = Pattern(FormatOf(GL_R8UI), 4096, 2);
  ASSERT_EQ(
      clEnqueueWriteBuffer(queue(), memory, CL_TRUE, 0, 4096, after.data(), 0, nullptr, nullptr),
      CL_SUCCESS);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  EXPECT_EQ(ReadBuffer(buffer, 4096), after);
}

// Every row of table 9.4, of odd size: it is what the table says, and its bits survive both ways; a
// device without the image format refuses it with the code that says so. OpenGL ES cannot read
// every format without loss, and those are refused there.
TEST_P(GlObjects, EveryFormat) {
  constexpr size_t kWidth = 37;
  constexpr size_t kHeight = 19;
  int shared = 0;
  for (const Format& format : AllFormats()) {
    SCOPED_TRACE(format.name);
    // OpenGL ES has 16-bit normalised formats only by an extension.
    const std::vector<uint8_t> before = Pattern(format, kWidth * kHeight, 3);
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(GL_TEXTURE_2D, texture);
    gl().TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(format.internal), kWidth, kHeight, 0,
                    format.format, format.type, before.data());
    gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
    // Complete also if the format is one of integers, so that shaders may copy it.
    gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    gl().BindTexture(GL_TEXTURE_2D, 0);
    if (gl().GetError() != GL_NO_ERROR) {
      EXPECT_TRUE(es());
      continue;
    }
    if (!DeviceHas(format, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE) ||
        (es() && (!IsRenderable(texture) || IsSignedNormalised(format)))) {
      EXPECT_CREATE(
          "clCreateFromGLTexture.no_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
          clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
      continue;
    }
    if (es() && LacksForcedShadow(format)) continue;
    Own<cl_mem> image =
        MAKE("clCreateFromGLTexture.format",
             clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
    ASSERT_NE(image.get(), nullptr);
    cl_image_format seen = {};
    clGetImageInfo(image, CL_IMAGE_FORMAT, sizeof(seen), &seen, nullptr);
    EXPECT_EQ(seen.image_channel_order, format.cl.image_channel_order);
    EXPECT_EQ(seen.image_channel_data_type, format.cl.image_channel_data_type);
    const std::vector<uint8_t> after = Pattern(format, kWidth * kHeight, 4);
    RoundTripImage(image, kWidth, kHeight, 1, format, before, after);
    // OpenGL ES reads few formats as they are: the others are seen by a second acquire.
    gl().GetError();
    const std::vector<uint8_t> read =
        ReadTexture(GL_TEXTURE_2D, texture, 0, format, kWidth, kHeight, 1);
    if (gl().GetError() == GL_NO_ERROR) {
      EXPECT_EQ(read, after);
    }
    RoundTripImage(image, kWidth, kHeight, 1, format, after, before);
    ++shared;
  }
  std::printf("%d formats shared\n", shared);
  EXPECT_GE(shared, 10);
}

// A texture's parameters may change at any time, and make it incomplete, which image units read as
// zero, or its components others, which shaders see: its bytes stay what they are.
TEST_P(GlObjects, ParametersChangeNothing) {
  constexpr size_t kSide = 24;
  const std::pair<GLenum, GLint> changes[] = {
      {GL_TEXTURE_MAX_LEVEL, 0},           {GL_TEXTURE_MIN_FILTER, GL_LINEAR_MIPMAP_LINEAR},
      {GL_TEXTURE_MAX_LEVEL, 1000},        {GL_TEXTURE_MIN_FILTER, GL_LINEAR},
      {GL_TEXTURE_MAG_FILTER, GL_NEAREST}, {GL_TEXTURE_MIN_FILTER, GL_NEAREST},
      {GL_TEXTURE_SWIZZLE_R, GL_BLUE},     {GL_TEXTURE_BASE_LEVEL, 1},
      {GL_TEXTURE_BASE_LEVEL, 0},
  };
  for (const GLenum internal : {GL_RGBA8, GL_RGBA8UI, GL_RGBA32F}) {
    const Format& format = FormatOf(internal);
    SCOPED_TRACE(format.name);
    if (!DeviceHas(format, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE)) continue;
    std::vector<uint8_t> before = Pattern(format, kSide * kSide, 1);
    const GLuint texture = Texture2D(format, kSide, kSide, before.data());
    if (es() && !IsRenderable(texture)) continue;
    Own<cl_mem> image =
        MAKE("clCreateFromGLTexture.parameters",
             clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
    ASSERT_NE(image.get(), nullptr);
    for (const auto& [name, value] : changes) {
      SCOPED_TRACE(name);
      // OpenGL ES reads through a framebuffer, which takes no level below the base level.
      if (es() && name == GL_TEXTURE_BASE_LEVEL) continue;
      gl().BindTexture(GL_TEXTURE_2D, texture);
      gl().TexParameteri(GL_TEXTURE_2D, name, value);
      gl().BindTexture(GL_TEXTURE_2D, 0);
      std::vector<uint8_t> after = Pattern(format, kSide * kSide, static_cast<unsigned>(value));
      RoundTripImage(image, kSide, kSide, 1, format, before, after);
      before = std::move(after);
    }
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  }
}

// A kernel inverts a texture that GL rendered into, and GL reads the inverse.
TEST_P(GlObjects, RenderedTextureThroughKernel) {
  constexpr size_t kSize = 64;
  const Format& rgba = FormatOf(GL_RGBA8);
  const GLuint texture = Texture2D(rgba, kSize, kSize, nullptr);
  GLuint framebuffer = 0;
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl().FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
  gl().ClearColor(1.0f, 0.0f, 0.0f, 1.0f);
  gl().Clear(GL_COLOR_BUFFER_BIT);
  Own<cl_mem> in =
      MAKE("clCreateFromGLTexture.read_only",
           clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error));
  const GLuint target = Texture2D(rgba, kSize, kSize, nullptr);
  Own<cl_mem> out =
      MAKE("clCreateFromGLTexture.write_only",
           clCreateFromGLTexture(context(), CL_MEM_WRITE_ONLY, GL_TEXTURE_2D, 0, target, error));
  Own<cl_kernel> kernel = BuildKernel(
      "kernel void invert(read_only image2d_t in, write_only image2d_t out) {"
      "  const int2 at = (int2)(get_global_id(0), get_global_id(1));"
      "  const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_NEAREST;"
      "  float4 c = read_imagef(in, s, at);"
      "  write_imagef(out, at, (float4)(1.0f - c.xyz, c.w)); }",
      "invert");
  conformance::SetArg(kernel, 0, in);
  conformance::SetArg(kernel, 1, out);
  // Both in one call, with nothing between the clear and the acquire: implicit synchronisation.
  const cl_mem both[2] = {in, out};
  ASSERT_CL("clEnqueueAcquireGLObjects.two", CL_SUCCESS,
            clEnqueueAcquireGLObjects(queue(), 2, both, 0, nullptr, nullptr));
  const size_t global[2] = {kSize, kSize};
  ASSERT_EQ(
      clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr),
      CL_SUCCESS);
  ASSERT_CL("clEnqueueReleaseGLObjects.two", CL_SUCCESS,
            clEnqueueReleaseGLObjects(queue(), 2, both, 0, nullptr, nullptr));
  // No clFinish: the release has ended when GL reads.
  const std::vector<uint8_t> read = ReadTexture(GL_TEXTURE_2D, target, 0, rgba, kSize, kSize, 1);
  for (size_t i = 0; i < read.size(); i += 4) {
    ASSERT_EQ(read[i], 0);
    ASSERT_EQ(read[i + 1], 255);
    ASSERT_EQ(read[i + 2], 255);
    ASSERT_EQ(read[i + 3], 255);
  }
}

// Each level of a texture with a chain is an image of that level's size; others stay as they were.
TEST_P(GlObjects, Levels) {
  const Format& format = FormatOf(GL_RGBA8);
  GLuint texture = 0;
  gl().GenTextures(1, &texture);
  gl().BindTexture(GL_TEXTURE_2D, texture);
  std::vector<std::vector<uint8_t>> levels;
  for (int level = 0; level < 5; ++level) {
    const size_t side = 16u >> level;
    levels.push_back(Pattern(format, side * side, static_cast<uint32_t>(level)));
    gl().TexImage2D(GL_TEXTURE_2D, level, GL_RGBA8, static_cast<GLsizei>(side),
                    static_cast<GLsizei>(side), 0, format.format, format.type,
                    levels.back().data());
  }
  gl().BindTexture(GL_TEXTURE_2D, 0);
  for (int level = 0; level < 5; ++level) {
    SCOPED_TRACE(level);
    const size_t side = 16u >> level;
    Own<cl_mem> image = MAKE(
        "clCreateFromGLTexture.level",
        clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, level, texture, error));
    ASSERT_NE(image.get(), nullptr);
    cl_GLint said = -1;
    EXPECT_CL("clGetGLTextureInfo.level", CL_SUCCESS,
              clGetGLTextureInfo(image, CL_GL_MIPMAP_LEVEL, sizeof(said), &said, nullptr));
    EXPECT_EQ(said, level);
    const std::vector<uint8_t> after =
        Pattern(format, side * side, static_cast<uint32_t>(level) + 100);
    RoundTripImage(image, side, side, 1, format, levels[static_cast<size_t>(level)], after);
    levels[static_cast<size_t>(level)] = after;
  }
  for (int level = 0; level < 5; ++level) {
    const size_t side = 16u >> level;
    EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, texture, level, format, side, side, 1),
              levels[static_cast<size_t>(level)]);
  }
}

// Each face of a cube map is a two-dimensional image of its own.
TEST_P(GlObjects, CubeFaces) {
  const Format& format = FormatOf(GL_RGBA8);
  constexpr size_t kSide = 9;
  GLuint texture = 0;
  gl().GenTextures(1, &texture);
  gl().BindTexture(GL_TEXTURE_CUBE_MAP, texture);
  std::vector<std::vector<uint8_t>> faces;
  for (GLenum face = 0; face < 6; ++face) {
    faces.push_back(Pattern(format, kSide * kSide, face));
    gl().TexImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, 0, GL_RGBA8, kSide, kSide, 0,
                    format.format, format.type, faces.back().data());
  }
  gl().TexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_MAX_LEVEL, 0);
  gl().BindTexture(GL_TEXTURE_CUBE_MAP, 0);
  for (GLenum face = 0; face < 6; ++face) {
    SCOPED_TRACE(face);
    const GLenum target = GL_TEXTURE_CUBE_MAP_POSITIVE_X + face;
    Own<cl_mem> image =
        MAKE("clCreateFromGLTexture2D.face",
             clCreateFromGLTexture2D(context(), CL_MEM_READ_WRITE, target, 0, texture, error));
    ASSERT_NE(image.get(), nullptr);
    cl_gl_object_type type = 0;
    cl_GLuint name = 0;
    EXPECT_CL("clGetGLObjectInfo.face", CL_SUCCESS, clGetGLObjectInfo(image, &type, &name));
    EXPECT_EQ(type, static_cast<cl_gl_object_type>(CL_GL_OBJECT_TEXTURE2D));
    EXPECT_EQ(name, texture);
    const std::vector<uint8_t> after = Pattern(format, kSide * kSide, face + 50);
    RoundTripImage(image, kSide, kSide, 1, format, faces[face], after);
    EXPECT_EQ(ReadTexture(target, texture, 0, format, kSide, kSide, 1), after);
  }
}

// Arrays, volumes, one-dimensional and rectangle textures have the image types of section 9.4.3.
TEST_P(GlObjects, OtherTargets) {
  struct Case {
    GLenum target;
    cl_mem_object_type type;
    cl_gl_object_type gl_type;
    size_t width, height, depth;
    bool in_es;
  };
  const Case cases[] = {
      {GL_TEXTURE_1D, CL_MEM_OBJECT_IMAGE1D, CL_GL_OBJECT_TEXTURE1D, 77, 1, 1, false},
      {GL_TEXTURE_1D_ARRAY, CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_GL_OBJECT_TEXTURE1D_ARRAY, 33, 5, 1,
       false},
      {GL_TEXTURE_RECTANGLE, CL_MEM_OBJECT_IMAGE2D, CL_GL_OBJECT_TEXTURE2D, 31, 17, 1, false},
      {GL_TEXTURE_2D_ARRAY, CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_GL_OBJECT_TEXTURE2D_ARRAY, 13, 7, 4,
       true},
      {GL_TEXTURE_3D, CL_MEM_OBJECT_IMAGE3D, CL_GL_OBJECT_TEXTURE3D, 11, 6, 5, true},
  };
  const Format& format = FormatOf(GL_RGBA8);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.target);
    if (es() && !one.in_es) continue;
    const size_t elements = one.width * one.height * one.depth;
    const std::vector<uint8_t> before = Pattern(format, elements, 9);
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(one.target, texture);
    const GLsizei width = static_cast<GLsizei>(one.width);
    const GLsizei height = static_cast<GLsizei>(one.height);
    if (one.target == GL_TEXTURE_1D) {
      gl().TexImage1D(one.target, 0, GL_RGBA8, width, 0, format.format, format.type, before.data());
    } else if (one.depth == 1) {
      gl().TexImage2D(one.target, 0, GL_RGBA8, width, height, 0, format.format, format.type,
                      before.data());
    } else {
      gl().TexImage3D(one.target, 0, GL_RGBA8, width, height, static_cast<GLsizei>(one.depth), 0,
                      format.format, format.type, before.data());
    }
    gl().TexParameteri(one.target, GL_TEXTURE_MAX_LEVEL, 0);
    gl().BindTexture(one.target, 0);
    ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    cl_int status = CL_SUCCESS;
    Own<cl_mem> image(
        clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, one.target, 0, texture, &status));
    if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE && one.target == GL_TEXTURE_1D_ARRAY &&
        ShadowIsForced() && !IsCpu(device())) {
      std::puts("left out: a 1D array, which has no shadow outside the host's memory");
      continue;
    }
    ASSERT_EQ(status, CL_SUCCESS);
    cl_mem_object_type type = 0;
    clGetMemObjectInfo(image, CL_MEM_TYPE, sizeof(type), &type, nullptr);
    EXPECT_EQ(type, one.type);
    cl_gl_object_type gl_type = 0;
    clGetGLObjectInfo(image, &gl_type, nullptr);
    EXPECT_EQ(gl_type, one.gl_type);
    const std::vector<uint8_t> after = Pattern(format, elements, 10);
    RoundTripImage(image, one.width, one.height, one.depth, format, before, after);
    EXPECT_EQ(ReadTexture(one.target, texture, 0, format, one.width, one.height, one.depth), after);
  }
}

// clCreateFromGLTexture3D is clCreateFromGLTexture for volumes. Every device has such images.
TEST_P(GlObjects, OldVolumeCall) {
  const Format& format = FormatOf(GL_RGBA32F);
  const std::vector<uint8_t> before = Pattern(format, 60, 1);
  GLuint texture = 0;
  gl().GenTextures(1, &texture);
  gl().BindTexture(GL_TEXTURE_3D, texture);
  gl().TexImage3D(GL_TEXTURE_3D, 0, GL_RGBA32F, 5, 4, 3, 0, GL_RGBA, GL_FLOAT, before.data());
  gl().TexParameteri(GL_TEXTURE_3D, GL_TEXTURE_MAX_LEVEL, 0);
  gl().BindTexture(GL_TEXTURE_3D, 0);
  Own<cl_mem> image =
      MAKE("clCreateFromGLTexture3D.plain",
           clCreateFromGLTexture3D(context(), CL_MEM_READ_WRITE, GL_TEXTURE_3D, 0, texture, error));
  ASSERT_NE(image.get(), nullptr);
  RoundTripImage(image, 5, 4, 3, format, before, Pattern(format, 60, 2));
}

// A buffer texture is a one-dimensional image over its buffer, from its offset on.
TEST_P(GlObjects, BufferTexture) {
  if (gl().TexBuffer == nullptr || gl().TexBufferRange == nullptr) GTEST_SKIP();
  if (ShadowIsForced()) GTEST_SKIP() << "has no device shadow";
  const Format& format = FormatOf(GL_RGBA32UI);
  const std::vector<uint8_t> before = Pattern(format, 64, 6);
  const GLuint buffer = Buffer(before.data(), before.size());
  GLuint texture = 0;
  gl().GenTextures(1, &texture);
  gl().BindTexture(GL_TEXTURE_BUFFER, texture);
  gl().TexBufferRange(GL_TEXTURE_BUFFER, GL_RGBA32UI, buffer, 256, 512);
  gl().BindTexture(GL_TEXTURE_BUFFER, 0);
  if (gl().GetError() != GL_NO_ERROR) GTEST_SKIP() << "no ranges of buffer textures";
  Own<cl_mem> image = MAKE(
      "clCreateFromGLTexture.buffer",
      clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_BUFFER, 0, texture, error));
  ASSERT_NE(image.get(), nullptr);
  size_t width = 0;
  clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof(width), &width, nullptr);
  EXPECT_EQ(width, 32u);
  // It was made of no memory object of the application's.
  cl_mem of = image.get();
  EXPECT_EQ(clGetMemObjectInfo(image, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(of), &of, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(of, nullptr);
  of = image.get();
  EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_BUFFER, sizeof(of), &of, nullptr), CL_SUCCESS);
  EXPECT_EQ(of, nullptr);
  const std::vector<uint8_t> after = Pattern(format, 32, 7);
  const std::vector<uint8_t> middle(before.begin() + 256, before.begin() + 768);
  RoundTripImage(image, 32, 1, 1, format, middle, after);
  std::vector<uint8_t> whole = before;
  std::copy(after.begin(), after.end(), whole.begin() + 256);
  EXPECT_EQ(ReadBuffer(buffer, whole.size()), whole);
}

// Renderbuffers go both ways, normalised and integer ones.
TEST_P(GlObjects, Renderbuffers) {
  constexpr size_t kWidth = 21;
  constexpr size_t kHeight = 13;
  for (const GLenum internal : {GL_RGBA8, GL_RGBA8UI, GL_RGBA32I, GL_R32UI, GL_RGBA32F, GL_RG16I}) {
    const Format& format = FormatOf(static_cast<GLenum>(internal));
    SCOPED_TRACE(format.name);
    if (!DeviceHas(format, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE)) continue;
    const std::vector<uint8_t> before = Pattern(format, kWidth * kHeight, 11);
    const GLuint source = Texture2D(format, kWidth, kHeight, before.data());
    GLuint renderbuffer = 0;
    GLuint framebuffers[2] = {};
    gl().GenRenderbuffers(1, &renderbuffer);
    gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
    gl().RenderbufferStorage(GL_RENDERBUFFER, format.internal, kWidth, kHeight);
    gl().GenFramebuffers(2, framebuffers);
    gl().BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffers[0]);
    gl().FramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, source, 0);
    gl().BindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffers[1]);
    gl().FramebufferRenderbuffer(GL_DRAW_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER,
                                 renderbuffer);
    gl().BlitFramebuffer(0, 0, kWidth, kHeight, 0, 0, kWidth, kHeight, GL_COLOR_BUFFER_BIT,
                         GL_NEAREST);
    ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    Own<cl_mem> image =
        MAKE("clCreateFromGLRenderbuffer.plain",
             clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, renderbuffer, error));
    ASSERT_NE(image.get(), nullptr);
    cl_gl_object_type type = 0;
    clGetGLObjectInfo(image, &type, nullptr);
    EXPECT_EQ(type, static_cast<cl_gl_object_type>(CL_GL_OBJECT_RENDERBUFFER));
    const std::vector<uint8_t> after = Pattern(format, kWidth * kHeight, 12);
    RoundTripImage(image, kWidth, kHeight, 1, format, before, after);
    gl().BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffers[1]);
    const std::vector<uint8_t> read = ReadFramebuffer(format, kWidth, kHeight);
    if (gl().GetError() == GL_NO_ERROR) {
      EXPECT_EQ(read, after);
    }
    RoundTripImage(image, kWidth, kHeight, 1, format, after, before);
    gl().BindFramebuffer(GL_FRAMEBUFFER, 0);
  }
}

// More textures than a context has units are all held at once. Every device has such images.
TEST_P(GlObjects, ManyTextures) {
  constexpr size_t kCount = 400;
  const Format& format = FormatOf(GL_RGBA32UI);
  std::vector<Own<cl_mem>> images;
  for (size_t i = 0; i < kCount; ++i) {
    const cl_uint value[4] = {static_cast<cl_uint>(i)};
    const GLuint texture = Texture2D(format, 1, 1, value);
    images.push_back(
        MAKE("clCreateFromGLTexture.many",
             clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error)));
    ASSERT_NE(images.back().get(), nullptr);
  }
  std::vector<cl_mem> handles(images.begin(), images.end());
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), kCount, handles.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  for (size_t i = 0; i < kCount; i += 57) {
    const std::vector<uint8_t> seen = ReadImage(images[i], 1, 1, 1, format.bytes);
    cl_uint value = 0;
    std::memcpy(&value, seen.data(), 4);
    EXPECT_EQ(value, i);
  }
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), kCount, handles.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(All, GlObjects, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
