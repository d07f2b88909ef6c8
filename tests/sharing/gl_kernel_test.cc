// SPDX-License-Identifier: Apache-2.0
// Kernels that read and write shared objects of every target, at the base level and above it: what
// GL wrote is transformed, and GL reads the result.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

struct Size {
  size_t width, height, depth;
  size_t elements() const { return width * height * depth; }
};

// A target in GL and in a kernel.
struct Target {
  const char* name;
  GLenum target;
  const char* type;
  const char* at;  // The work item's element.
  Size size;       // Of the base level; level 1 has half of what is no count of layers.
  bool halves_height, halves_depth;
  bool in_es;
  bool has_levels = true;
};

constexpr const char* kX = "(int)get_global_id(0)";
constexpr const char* kXy = "(int2)(get_global_id(0), get_global_id(1))";
constexpr const char* kXyz = "(int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0)";

const Target kTargets[] = {
    {"1D", GL_TEXTURE_1D, "image1d_t", kX, {74, 1, 1}, false, false, false},
    {"1D array", GL_TEXTURE_1D_ARRAY, "image1d_array_t", kXy, {34, 5, 1}, false, false, false},
    {"2D", GL_TEXTURE_2D, "image2d_t", kXy, {22, 14, 1}, true, false, true},
    {"2D array", GL_TEXTURE_2D_ARRAY, "image2d_array_t", kXyz, {14, 6, 3}, true, false, true},
    {"3D", GL_TEXTURE_3D, "image3d_t", kXyz, {10, 6, 4}, true, true, true},
    {"cube face", GL_TEXTURE_CUBE_MAP_NEGATIVE_Y, "image2d_t", kXy, {12, 12, 1}, true, false, true},
    {"rectangle", GL_TEXTURE_RECTANGLE, "image2d_t", kXy, {31, 17, 1}, true, false, false, false},
};

bool IsFace(GLenum target) {
  return target >= GL_TEXTURE_CUBE_MAP_POSITIVE_X && target <= GL_TEXTURE_CUBE_MAP_NEGATIVE_Z;
}

Size LevelOf(const Target& target, GLint level) {
  Size size = target.size;
  if (level == 0) return size;
  size.width /= 2;
  if (target.halves_height) size.height /= 2;
  if (target.halves_depth) size.depth /= 2;
  return size;
}

std::vector<uint8_t> Inverse(std::vector<uint8_t> bytes) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(~byte);
  return bytes;
}

class GlKernels : public WithGl {
 protected:
  void Upload(GLenum target, GLint level, const Size& size, const void* data) {
    const auto width = static_cast<GLsizei>(size.width);
    const auto height = static_cast<GLsizei>(size.height);
    if (target == GL_TEXTURE_1D) {
      gl().TexImage1D(target, level, GL_RGBA8, width, 0, GL_RGBA, GL_UNSIGNED_BYTE, data);
    } else if (target == GL_TEXTURE_2D_ARRAY || target == GL_TEXTURE_3D) {
      gl().TexImage3D(target, level, GL_RGBA8, width, height, static_cast<GLsizei>(size.depth), 0,
                      GL_RGBA, GL_UNSIGNED_BYTE, data);
    } else {
      gl().TexImage2D(target, level, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, data);
    }
  }

  // Complete, each level with the pattern of its own number and `seed`. All faces of a cube map
  // have the same.
  GLuint Texture(const Target& about, uint32_t seed) {
    const bool face = IsFace(about.target);
    const GLenum binding = face ? GL_TEXTURE_CUBE_MAP : about.target;
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(binding, texture);
    for (GLint level = 0; level <= (about.has_levels ? 1 : 0); ++level) {
      const Size size = LevelOf(about, level);
      const std::vector<uint8_t> bytes = Bytes(about, level, seed);
      for (GLenum i = 0; i < (face ? 6u : 1u); ++i) {
        Upload(face ? GL_TEXTURE_CUBE_MAP_POSITIVE_X + i : about.target, level, size, bytes.data());
      }
    }
    if (about.has_levels) gl().TexParameteri(binding, GL_TEXTURE_MAX_LEVEL, 1);
    gl().BindTexture(binding, 0);
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    return texture;
  }
  static std::vector<uint8_t> Bytes(const Target& about, GLint level, uint32_t seed) {
    return Pattern(FormatOf(GL_RGBA8), LevelOf(about, level).elements(),
                   seed + static_cast<uint32_t>(level));
  }
  std::vector<uint8_t> Read(const Target& about, GLuint texture, GLint level) {
    const Size size = LevelOf(about, level);
    return ReadTexture(about.target, texture, level, FormatOf(GL_RGBA8), size.width, size.height,
                       size.depth);
  }

  // Every element of `out` becomes the inverse of that of `in`, by one kernel.
  void Invert(const char* type, const char* at, cl_mem in, cl_mem out, const Size& size) {
    const std::string source =
        std::string("#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable\n") +
        "kernel void invert(read_only " + type + " in, write_only " + type +
        " out) { write_imagef(out, " + at + ", 1.0f - read_imagef(in, " + at + ")); }";
    const Own<cl_kernel> kernel = BuildKernel(source.c_str(), "invert");
    conformance::SetArg(kernel, 0, in);
    conformance::SetArg(kernel, 1, out);
    const cl_mem both[2] = {in, out};
    ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
    const size_t global[3] = {size.width, size.height, size.depth};
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 3, nullptr, global, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  }
};

// A kernel reads one texture and writes another, of every target and of both levels; the other
// level, and what was only read, stay as they were.
TEST_P(GlKernels, EveryTargetAndLevel) {
  for (const Target& about : kTargets) {
    if (es() && !about.in_es) continue;
    for (GLint level = 0; level <= (about.has_levels ? 1 : 0); ++level) {
      SCOPED_TRACE(testing::Message() << about.name << ", level " << level);
      const GLuint source = Texture(about, 10), target = Texture(about, 20);
      cl_int status = CL_SUCCESS;
      const Own<cl_mem> in(
          clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, about.target, level, source, &status));
      if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE && ShadowIsForced()) {
        std::printf("left out: %s, which has no shadow here\n", about.name);
        continue;
      }
      ASSERT_EQ(status, CL_SUCCESS);
      const Own<cl_mem> out(clCreateFromGLTexture(context(), CL_MEM_WRITE_ONLY, about.target, level,
                                                  target, &status));
      ASSERT_EQ(status, CL_SUCCESS);
      const Size size = LevelOf(about, level);
      size_t width = 0;
      clGetImageInfo(out, CL_IMAGE_WIDTH, sizeof(width), &width, nullptr);
      EXPECT_EQ(width, size.width);
      cl_GLint said = -1;
      EXPECT_EQ(clGetGLTextureInfo(out, CL_GL_MIPMAP_LEVEL, sizeof(said), &said, nullptr),
                CL_SUCCESS);
      EXPECT_EQ(said, level);
      cl_GLenum said_target = 0;
      EXPECT_EQ(
          clGetGLTextureInfo(out, CL_GL_TEXTURE_TARGET, sizeof(said_target), &said_target, nullptr),
          CL_SUCCESS);
      EXPECT_EQ(said_target, about.target);
      Invert(about.type, about.at, in, out, size);
      EXPECT_EQ(Read(about, target, level), Inverse(Bytes(about, level, 10)));
      EXPECT_EQ(Read(about, source, level), Bytes(about, level, 10));
      if (about.has_levels) {
        EXPECT_EQ(Read(about, target, 1 - level), Bytes(about, 1 - level, 20));
      }
    }
  }
}

// A kernel copies a texture of every format of table 9.4 that the device has, by the functions of
// its kind: GL reads what it makes of images of OpenCL's own with the same bits. Those are the same
// bits, but for a format that the driver copies otherwise (PoCL 3.1 one of single halves: zeros).
// (Values written to an sRGB image are converted, where it can be written at all.)
TEST_P(GlKernels, EveryFormat) {
  constexpr Size kSize = {19, 11, 1};
  int copied = 0;
  for (const Format& format : AllFormats()) {
    SCOPED_TRACE(format.name);
    if (format.internal == GL_SRGB8_ALPHA8) continue;
    if (!DeviceHas(format, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE)) continue;
    const std::vector<uint8_t> before = Pattern(format, kSize.elements(), 21);
    GLuint textures[2] = {};
    gl().GenTextures(2, textures);
    for (const GLuint texture : textures) {
      gl().BindTexture(GL_TEXTURE_2D, texture);
      gl().TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(format.internal), kSize.width,
                      kSize.height, 0, format.format, format.type,
                      texture == textures[0] ? before.data() : nullptr);
      gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
      gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
      gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    }
    gl().BindTexture(GL_TEXTURE_2D, 0);
    // OpenGL ES has some by extensions alone, and cannot read what it cannot draw to.
    if (gl().GetError() != GL_NO_ERROR || (es() && !IsRenderable(textures[0]))) continue;
    if (es() && LacksForcedShadow(format)) continue;
    const auto create = [&](cl_mem_flags flags, GLuint texture, cl_int* error) {
      return clCreateFromGLTexture(context(), flags, GL_TEXTURE_2D, 0, texture, error);
    };
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> in(create(CL_MEM_READ_ONLY, textures[0], &status));
    if (es() && status == CL_INVALID_IMAGE_FORMAT_DESCRIPTOR) continue;  // Below zero.
    ASSERT_EQ(status, CL_SUCCESS);
    const Own<cl_mem> out(create(CL_MEM_WRITE_ONLY, textures[1], &status));
    ASSERT_EQ(status, CL_SUCCESS);
    const cl_channel_type type = format.cl.image_channel_data_type;
    const char* const kind =
        type >= CL_SIGNED_INT8 && type <= CL_SIGNED_INT32
            ? "i"
            : (type >= CL_UNSIGNED_INT8 && type <= CL_UNSIGNED_INT32 ? "ui" : "f");
    const std::string source = std::string(
                                   "kernel void copy(read_only image2d_t in,"
                                   " write_only image2d_t out) { write_image") +
                               kind + "(out, " + kXy + ", read_image" + kind + "(in, " + kXy +
                               ")); }";
    const Own<cl_kernel> kernel = BuildKernel(source.c_str(), "copy");
    conformance::SetArg(kernel, 0, in);
    conformance::SetArg(kernel, 1, out);
    const cl_mem both[2] = {in, out};
    ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
    const size_t global[2] = {kSize.width, kSize.height};
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = kSize.width;
    desc.image_height = kSize.height;
    const Own<cl_mem> own_in(clCreateImage(context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                           &format.cl, &desc, const_cast<uint8_t*>(before.data()),
                                           &status));
    const Own<cl_mem> own_out(
        clCreateImage(context(), CL_MEM_WRITE_ONLY, &format.cl, &desc, nullptr, &status));
    conformance::SetArg(kernel, 0, own_in);
    conformance::SetArg(kernel, 1, own_out);
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    const std::vector<uint8_t> expected =
        ReadImage(own_out, kSize.width, kSize.height, 1, format.bytes);
    if (expected != before) std::printf("%s: the driver copies other bits\n", format.name);
    const std::vector<uint8_t> read =
        ReadTexture(GL_TEXTURE_2D, textures[1], 0, format, kSize.width, kSize.height, 1);
    // OpenGL ES reads few formats as they are.
    if (gl().GetError() == GL_NO_ERROR) {
      EXPECT_EQ(read, expected);
      copied += read == before ? 1 : 0;
    }
  }
  std::printf("%d formats copied by a kernel, bit for bit\n", copied);
  EXPECT_GE(copied, es() ? 2 : 10);
}

// A kernel writes a renderbuffer, which another reads then.
TEST_P(GlKernels, Renderbuffers) {
  constexpr Size kSize = {21, 13, 1};
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> bytes = Pattern(format, kSize.elements(), 1);
  const GLuint texture = Texture2D(format, kSize.width, kSize.height, bytes.data());
  const GLuint result = Texture2D(format, kSize.width, kSize.height, nullptr);
  GLuint renderbuffer = 0, framebuffer = 0;
  gl().GenRenderbuffers(1, &renderbuffer);
  gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, kSize.width, kSize.height);
  const Own<cl_mem> from =
      MAKE("clCreateFromGLTexture.to_renderbuffer",
           clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error));
  const Own<cl_mem> middle =
      MAKE("clCreateFromGLRenderbuffer.kernel",
           clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, renderbuffer, error));
  const Own<cl_mem> to =
      MAKE("clCreateFromGLTexture.from_renderbuffer",
           clCreateFromGLTexture(context(), CL_MEM_WRITE_ONLY, GL_TEXTURE_2D, 0, result, error));
  Invert("image2d_t", kXy, from, middle, kSize);
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
  gl().FramebufferRenderbuffer(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER,
                               renderbuffer);
  EXPECT_EQ(ReadFramebuffer(format, kSize.width, kSize.height), Inverse(bytes));
  gl().BindFramebuffer(GL_READ_FRAMEBUFFER, 0);
  Invert("image2d_t", kXy, middle, to, kSize);
  EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, result, 0, format, kSize.width, kSize.height, 1), bytes);
  // Section 9.4.5: CL_INVALID_GL_OBJECT if there is no GL texture object associated with memobj.
  cl_GLint level = 0;
  EXPECT_CL("clGetGLTextureInfo.renderbuffer", CL_INVALID_GL_OBJECT,
            clGetGLTextureInfo(middle, CL_GL_MIPMAP_LEVEL, sizeof(level), &level, nullptr));
}

// Kernels see a buffer by a buffer texture of its range, and by a 1D image buffer that the
// application makes from the shared buffer (section 9.4.2).
TEST_P(GlKernels, ImagesOfBuffers) {
  constexpr Size kSize = {64, 1, 1};
  const Format& format = FormatOf(GL_RGBA8);
  if (!DeviceHas(format, CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_READ_WRITE))
    GTEST_SKIP() << "the device has no such image buffers";
  if (ShadowIsForced()) GTEST_SKIP() << "a buffer texture has no device shadow";
  const std::vector<uint8_t> before = Pattern(format, kSize.elements(), 1);
  const GLuint source = Buffer(before.data(), before.size());
  const GLuint target = Buffer(nullptr, before.size());
  const Own<cl_mem> buffer =
      MAKE("clCreateFromGLBuffer.image_of", clCreateFromGLBuffer(context(), 0, target, error));
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  desc.image_width = kSize.width;
  desc.buffer = buffer;
  cl_int status = CL_SUCCESS;
  const Own<cl_mem> out(
      clCreateImage(context(), CL_MEM_READ_WRITE, &format.cl, &desc, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const Own<cl_mem> plain(clCreateBuffer(context(), CL_MEM_COPY_HOST_PTR, before.size(),
                                         const_cast<uint8_t*>(before.data()), &status));
  desc.buffer = plain;
  Own<cl_mem> in(clCreateImage(context(), CL_MEM_READ_WRITE, &format.cl, &desc, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const std::string at = kX;
  const Own<cl_kernel> kernel = BuildKernel(
      ("kernel void invert(read_only image1d_buffer_t in, write_only image1d_buffer_t out) {"
       "  write_imagef(out, " +
       at + ", 1.0f - read_imagef(in, " + at + ")); }")
          .c_str(),
      "invert");
  conformance::SetArg(kernel, 0, in);
  conformance::SetArg(kernel, 1, out);
  // Its state is the buffer's.
  EXPECT_EQ(conformance::Launch(queue(), kernel, kSize.width), CL_INVALID_GL_OBJECT);
  ASSERT_EQ(Acquire(buffer), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), kernel, kSize.width), CL_SUCCESS);
  ASSERT_EQ(Release(buffer), CL_SUCCESS);
  EXPECT_EQ(ReadBuffer(target, before.size()), Inverse(before));
  EXPECT_EQ(conformance::Launch(queue(), kernel, kSize.width), CL_INVALID_GL_OBJECT);

  if (gl().TexBuffer == nullptr) return;
  GLuint texture = 0;
  gl().GenTextures(1, &texture);
  gl().BindTexture(GL_TEXTURE_BUFFER, texture);
  gl().TexBuffer(GL_TEXTURE_BUFFER, GL_RGBA8, source);
  gl().BindTexture(GL_TEXTURE_BUFFER, 0);
  if (gl().GetError() != GL_NO_ERROR) GTEST_SKIP() << "no buffer textures";
  in = MAKE(
      "clCreateFromGLTexture.buffer_kernel",
      clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_BUFFER, 0, texture, error));
  ASSERT_NE(in.get(), nullptr);
  cl_gl_object_type type = 0;
  cl_GLuint name = 0;
  EXPECT_EQ(clGetGLObjectInfo(in, &type, &name), CL_SUCCESS);
  EXPECT_EQ(type, static_cast<cl_gl_object_type>(CL_GL_OBJECT_TEXTURE_BUFFER));
  EXPECT_EQ(name, texture);
  // GL's writes since are seen, and the inverse of what is there already is written again.
  const std::vector<uint8_t> after = Pattern(format, kSize.elements(), 2);
  gl().BindBuffer(GL_ARRAY_BUFFER, source);
  gl().BufferSubData(GL_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(after.size()), after.data());
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  conformance::SetArg(kernel, 0, in);
  const cl_mem both[2] = {in, buffer};
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), kernel, kSize.width), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ReadBuffer(target, after.size()), Inverse(after));
}

class GlCore : public GlKernels {
  Promise promise() const override { return Promise::kCore; }
};

// A context of the core profile, as new programs make them, shares all kinds of objects.
TEST_P(GlCore, Shares) {
  GLint profile = 0;
  gl().GetIntegerv(GL_CONTEXT_PROFILE_MASK, &profile);
  ASSERT_EQ(profile & GL_CONTEXT_CORE_PROFILE_BIT, GL_CONTEXT_CORE_PROFILE_BIT);
  for (const GLenum target : {GL_TEXTURE_2D, GL_TEXTURE_2D_ARRAY, GL_TEXTURE_3D}) {
    SCOPED_TRACE(target);
    const Target& about = *std::find_if(
        std::begin(kTargets), std::end(kTargets),
        [target](const Target& one) { return one.target == static_cast<GLenum>(target); });
    const GLuint source = Texture(about, 10), result = Texture(about, 20);
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> in(
        clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, target, 1, source, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    const Own<cl_mem> out(
        clCreateFromGLTexture(context(), CL_MEM_WRITE_ONLY, target, 1, result, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    Invert(about.type, about.at, in, out, LevelOf(about, 1));
    EXPECT_EQ(Read(about, result, 1), Inverse(Bytes(about, 1, 10)));
  }
  GLuint renderbuffer = 0;
  gl().GenRenderbuffers(1, &renderbuffer);
  gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, 8, 8);
  const GLuint buffer = Buffer("12345678", 8);
  const Own<cl_mem> memory =
      MAKE("clCreateFromGLBuffer.core", clCreateFromGLBuffer(context(), 0, buffer, error));
  const Own<cl_mem> image =
      MAKE("clCreateFromGLRenderbuffer.core",
           clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, renderbuffer, error));
  const cl_mem both[2] = {memory, image};
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  const std::vector<uint8_t> bytes = Pattern(FormatOf(GL_RGBA8), 64, 3);
  WriteImage(image, 8, 8, 1, bytes);
  ASSERT_EQ(clEnqueueWriteBuffer(queue(), memory, CL_TRUE, 0, 8, bytes.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ReadBuffer(buffer, 8), std::vector<uint8_t>(bytes.begin(), bytes.begin() + 8));
  GLuint framebuffer = 0;
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl().FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer);
  EXPECT_EQ(ReadFramebuffer(FormatOf(GL_RGBA8), 8, 8), bytes);
  EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
}

INSTANTIATE_TEST_SUITE_P(All, GlCore, testing::ValuesIn(Bindings()), BindingParamName);
INSTANTIATE_TEST_SUITE_P(All, GlKernels, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
