// SPDX-License-Identifier: Apache-2.0
#include "tests/sharing/gl_fixture.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sluice::gltest {
namespace {

// A half with the value of a small whole number.
uint16_t Half(uint32_t value) {
  if (value == 0) return 0;
  const int exponent = 31 - __builtin_clz(value);
  const uint32_t fraction = (value << (10 - exponent)) & 0x3ff;
  return static_cast<uint16_t>(((exponent + 15) << 10) | fraction);
}

size_t ChannelBytes(const Format& format) {
  switch (format.type) {
    case GL_UNSIGNED_BYTE:
    case GL_BYTE:
      return 1;
    case GL_UNSIGNED_SHORT:
    case GL_SHORT:
    case GL_HALF_FLOAT:
      return 2;
    default:
      return 4;
  }
}

}  // namespace

const std::vector<Format>& AllFormats() {
#define ROW(internal, format, type, order, data, bytes) \
  { internal, format, type, {order, data}, bytes, #internal }
  static const auto* const formats = new std::vector<Format>{
      ROW(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, CL_RGBA, CL_UNORM_INT8, 4),
      ROW(GL_SRGB8_ALPHA8, GL_RGBA, GL_UNSIGNED_BYTE, CL_sRGBA, CL_UNORM_INT8, 4),
      ROW(GL_RGBA8I, GL_RGBA_INTEGER, GL_BYTE, CL_RGBA, CL_SIGNED_INT8, 4),
      ROW(GL_RGBA16I, GL_RGBA_INTEGER, GL_SHORT, CL_RGBA, CL_SIGNED_INT16, 8),
      ROW(GL_RGBA32I, GL_RGBA_INTEGER, GL_INT, CL_RGBA, CL_SIGNED_INT32, 16),
      ROW(GL_RGBA8UI, GL_RGBA_INTEGER, GL_UNSIGNED_BYTE, CL_RGBA, CL_UNSIGNED_INT8, 4),
      ROW(GL_RGBA16UI, GL_RGBA_INTEGER, GL_UNSIGNED_SHORT, CL_RGBA, CL_UNSIGNED_INT16, 8),
      ROW(GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT, CL_RGBA, CL_UNSIGNED_INT32, 16),
      ROW(GL_RGBA8_SNORM, GL_RGBA, GL_BYTE, CL_RGBA, CL_SNORM_INT8, 4),
      ROW(GL_RGBA16, GL_RGBA, GL_UNSIGNED_SHORT, CL_RGBA, CL_UNORM_INT16, 8),
      ROW(GL_RGBA16_SNORM, GL_RGBA, GL_SHORT, CL_RGBA, CL_SNORM_INT16, 8),
      ROW(GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, CL_RGBA, CL_HALF_FLOAT, 8),
      ROW(GL_RGBA32F, GL_RGBA, GL_FLOAT, CL_RGBA, CL_FLOAT, 16),
      ROW(GL_R8, GL_RED, GL_UNSIGNED_BYTE, CL_R, CL_UNORM_INT8, 1),
      ROW(GL_R8_SNORM, GL_RED, GL_BYTE, CL_R, CL_SNORM_INT8, 1),
      ROW(GL_R16, GL_RED, GL_UNSIGNED_SHORT, CL_R, CL_UNORM_INT16, 2),
      ROW(GL_R16_SNORM, GL_RED, GL_SHORT, CL_R, CL_SNORM_INT16, 2),
      ROW(GL_R16F, GL_RED, GL_HALF_FLOAT, CL_R, CL_HALF_FLOAT, 2),
      ROW(GL_R32F, GL_RED, GL_FLOAT, CL_R, CL_FLOAT, 4),
      ROW(GL_R8I, GL_RED_INTEGER, GL_BYTE, CL_R, CL_SIGNED_INT8, 1),
      ROW(GL_R16I, GL_RED_INTEGER, GL_SHORT, CL_R, CL_SIGNED_INT16, 2),
      ROW(GL_R32I, GL_RED_INTEGER, GL_INT, CL_R, CL_SIGNED_INT32, 4),
      ROW(GL_R8UI, GL_RED_INTEGER, GL_UNSIGNED_BYTE, CL_R, CL_UNSIGNED_INT8, 1),
      ROW(GL_R16UI, GL_RED_INTEGER, GL_UNSIGNED_SHORT, CL_R, CL_UNSIGNED_INT16, 2),
      ROW(GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, CL_R, CL_UNSIGNED_INT32, 4),
      ROW(GL_RG8, GL_RG, GL_UNSIGNED_BYTE, CL_RG, CL_UNORM_INT8, 2),
      ROW(GL_RG8_SNORM, GL_RG, GL_BYTE, CL_RG, CL_SNORM_INT8, 2),
      ROW(GL_RG16, GL_RG, GL_UNSIGNED_SHORT, CL_RG, CL_UNORM_INT16, 4),
      ROW(GL_RG16_SNORM, GL_RG, GL_SHORT, CL_RG, CL_SNORM_INT16, 4),
      ROW(GL_RG16F, GL_RG, GL_HALF_FLOAT, CL_RG, CL_HALF_FLOAT, 4),
      ROW(GL_RG32F, GL_RG, GL_FLOAT, CL_RG, CL_FLOAT, 8),
      ROW(GL_RG8I, GL_RG_INTEGER, GL_BYTE, CL_RG, CL_SIGNED_INT8, 2),
      ROW(GL_RG16I, GL_RG_INTEGER, GL_SHORT, CL_RG, CL_SIGNED_INT16, 4),
      ROW(GL_RG32I, GL_RG_INTEGER, GL_INT, CL_RG, CL_SIGNED_INT32, 8),
      ROW(GL_RG8UI, GL_RG_INTEGER, GL_UNSIGNED_BYTE, CL_RG, CL_UNSIGNED_INT8, 2),
      ROW(GL_RG16UI, GL_RG_INTEGER, GL_UNSIGNED_SHORT, CL_RG, CL_UNSIGNED_INT16, 4),
      ROW(GL_RG32UI, GL_RG_INTEGER, GL_UNSIGNED_INT, CL_RG, CL_UNSIGNED_INT32, 8),
  };
#undef ROW
  return *formats;
}

const Format& FormatOf(GLenum internal) {
  for (const Format& format : AllFormats()) {
    if (format.internal == internal) return format;
  }
  ADD_FAILURE() << "no format " << internal;
  return AllFormats().front();
}

std::vector<uint8_t> Pattern(const Format& format, size_t elements, uint32_t seed) {
  std::vector<uint8_t> bytes(elements * format.bytes);
  const size_t step = ChannelBytes(format);
  uint32_t state = seed * 2654435761u + 12345u;
  for (size_t at = 0; at < bytes.size(); at += step) {
    state = state * 1664525u + 1013904223u;
    const uint32_t random = state >> 8;
    if (format.type == GL_FLOAT) {
      const float value = static_cast<float>(random % 4096) / 16.0f;
      std::memcpy(&bytes[at], &value, 4);
    } else if (format.type == GL_HALF_FLOAT) {
      const uint16_t value = Half(random % 1024);
      std::memcpy(&bytes[at], &value, 2);
    } else {
      std::memcpy(&bytes[at], &random, step);
      // The lowest value of a signed normalised type means the same as the one above it.
      const bool lowest8 = format.type == GL_BYTE && bytes[at] == 0x80;
      const bool lowest16 = format.type == GL_SHORT && bytes[at] == 0 && bytes[at + 1] == 0x80;
      if (lowest8 || lowest16) bytes[at] += 1;
    }
  }
  return bytes;
}

Promise WithGl::promise() const {
  return std::getenv("SLUICE_TEST_GL_NO_ERROR") != nullptr ? Promise::kNoError : Promise::kNone;
}

bool WithGl::ShadowIsForced() {
  const char* const named = std::getenv("SLUICE_SHARING");
  const std::string_view ways = named == nullptr ? "" : named;
  return ways.starts_with("shadow") && ways.find("staging") == ways.npos;
}

bool WithGl::LacksForcedShadow(const Format& format) {
  return ShadowIsForced() && format.internal == GL_RG16;
}

void WithGl::SetUp() {
  WithPlatform::SetUp();
  if (!conformance::TheHarness().IsSluice() &&
      !conformance::HasDeviceExtension(device(), "cl_khr_gl_sharing")) {
    GTEST_SKIP() << "the native driver has no cl_khr_gl_sharing";
  }
  std::string why;
  app_ = GlApp::Make(GetParam(), &why, nullptr, promise());
  if (app_ == nullptr) GTEST_SKIP() << why;
  gl().PixelStorei(GL_PACK_ALIGNMENT, 1);
  gl().PixelStorei(GL_UNPACK_ALIGNMENT, 1);
  // A value below zero in a signed normalised format stays so when it is read.
  if (!es()) gl().ClampColor(GL_CLAMP_READ_COLOR, GL_FALSE);
  context_ = NewGlContext(*app_);
  ASSERT_NE(context_.get(), nullptr);
  MakeQueue();
}

void WithGl::MakeQueue() {
  cl_int status = CL_SUCCESS;
  queue_ = Own<cl_command_queue>(
      clCreateCommandQueueWithProperties(context_, device(), nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
}

void WithGl::GoOn() {
  const cl_int finished = clFinish(queue_);
  if (conformance::Differs("clEnqueueAcquireGLObjects.queue_goes_on")) return MakeQueue();
  EXPECT_EQ(finished, CL_SUCCESS);
}

void WithGl::TearDown() {
  if (app_ != nullptr && gl().GetError != nullptr && queue_.get() != nullptr) {
    EXPECT_EQ(clFinish(queue_), CL_SUCCESS);
  }
  programs_.clear();
  queue_.Reset();
  context_.Reset();
  app_.reset();
}

std::vector<cl_context_properties> WithGl::Properties(GlApp& app) const {
  std::vector<cl_context_properties> list = {CL_CONTEXT_PLATFORM,
                                             reinterpret_cast<cl_context_properties>(platform())};
  const std::vector<cl_context_properties> gl = app.Properties();
  list.insert(list.end(), gl.begin(), gl.end());
  list.push_back(0);
  return list;
}

Own<cl_context> WithGl::NewGlContext(GlApp& app) {
  const std::vector<cl_context_properties> list = Properties(app);
  cl_device_id one = device();
  return MAKE("clCreateContext.gl", clCreateContext(list.data(), 1, &one, nullptr, nullptr, error));
}

GLuint WithGl::Buffer(const void* data, size_t bytes) {
  GLuint buffer = 0;
  gl().GenBuffers(1, &buffer);
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferData(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(bytes), data, GL_DYNAMIC_DRAW);
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  return buffer;
}

std::vector<uint8_t> WithGl::ReadBuffer(GLuint buffer, size_t bytes) {
  std::vector<uint8_t> out(bytes);
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  const void* mapped =
      gl().MapBufferRange(GL_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(bytes), GL_MAP_READ_BIT);
  EXPECT_NE(mapped, nullptr);
  if (mapped != nullptr) {
    std::memcpy(out.data(), mapped, bytes);
    gl().UnmapBuffer(GL_ARRAY_BUFFER);
  }
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  return out;
}

GLuint WithGl::Texture2D(const Format& format, size_t width, size_t height, const void* data) {
  GLuint texture = 0;
  gl().GenTextures(1, &texture);
  gl().BindTexture(GL_TEXTURE_2D, texture);
  gl().TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(format.internal),
                  static_cast<GLsizei>(width), static_cast<GLsizei>(height), 0, format.format,
                  format.type, data);
  gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
  gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  gl().BindTexture(GL_TEXTURE_2D, 0);
  EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR)) << format.name;
  return texture;
}

std::vector<uint8_t> WithGl::ReadFramebuffer(const Format& format, size_t width, size_t height) {
  std::vector<uint8_t> out(width * height * format.bytes);
  gl().ReadPixels(0, 0, static_cast<GLsizei>(width), static_cast<GLsizei>(height), format.format,
                  format.type, out.data());
  return out;
}

bool WithGl::IsRenderable(GLuint texture) {
  GLuint framebuffer = 0;
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl().FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
  const bool complete = gl().CheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
  gl().BindFramebuffer(GL_FRAMEBUFFER, 0);
  gl().DeleteFramebuffers(1, &framebuffer);
  return complete;
}

std::vector<uint8_t> WithGl::ReadTexture(GLenum target, GLuint texture, GLint level,
                                         const Format& format, size_t width, size_t height,
                                         size_t depth) {
  const bool face =
      target >= GL_TEXTURE_CUBE_MAP_POSITIVE_X && target <= GL_TEXTURE_CUBE_MAP_NEGATIVE_Z;
  std::vector<uint8_t> out(width * height * depth * format.bytes);
  if (!es()) {
    const GLenum binding = face ? GL_TEXTURE_CUBE_MAP : target;
    gl().BindTexture(binding, texture);
    gl().GetTexImage(target, level, format.format, format.type, out.data());
    gl().BindTexture(binding, 0);
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR)) << format.name;
    return out;
  }
  GLuint framebuffer = 0;
  gl().GenFramebuffers(1, &framebuffer);
  gl().BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  for (size_t layer = 0; layer < depth; ++layer) {
    if (target == GL_TEXTURE_2D || face) {
      gl().FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, target, texture, level);
    } else {
      gl().FramebufferTextureLayer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, texture, level,
                                   static_cast<GLint>(layer));
    }
    const std::vector<uint8_t> one = ReadFramebuffer(format, width, height);
    std::copy(one.begin(), one.end(), out.begin() + layer * one.size());
  }
  gl().BindFramebuffer(GL_FRAMEBUFFER, 0);
  gl().DeleteFramebuffers(1, &framebuffer);
  return out;
}

bool WithGl::DeviceHas(const Format& format, cl_mem_object_type type, cl_mem_flags flags) {
  cl_uint count = 0;
  clGetSupportedImageFormats(context_, flags, type, 0, nullptr, &count);
  std::vector<cl_image_format> formats(count);
  clGetSupportedImageFormats(context_, flags, type, count, formats.data(), nullptr);
  return std::any_of(formats.begin(), formats.end(), [&format](const cl_image_format& one) {
    return one.image_channel_order == format.cl.image_channel_order &&
           one.image_channel_data_type == format.cl.image_channel_data_type;
  });
}

cl_int WithGl::Acquire(cl_mem memory, cl_event* event) {
  return clEnqueueAcquireGLObjects(queue_, 1, &memory, 0, nullptr, event);
}

cl_int WithGl::Release(cl_mem memory, cl_event* event) {
  return clEnqueueReleaseGLObjects(queue_, 1, &memory, 0, nullptr, event);
}

std::vector<uint8_t> WithGl::ReadImage(cl_mem image, size_t width, size_t height, size_t depth,
                                       size_t element_bytes) {
  std::vector<uint8_t> out(width * height * depth * element_bytes);
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {width, height, depth};
  EXPECT_EQ(clEnqueueReadImage(queue_, image, CL_TRUE, origin, region, 0, 0, out.data(), 0, nullptr,
                               nullptr),
            CL_SUCCESS);
  return out;
}

void WithGl::WriteImage(cl_mem image, size_t width, size_t height, size_t depth,
                        const std::vector<uint8_t>& bytes) {
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {width, height, depth};
  EXPECT_EQ(clEnqueueWriteImage(queue_, image, CL_TRUE, origin, region, 0, 0, bytes.data(), 0,
                                nullptr, nullptr),
            CL_SUCCESS);
}

Own<cl_kernel> WithGl::BuildKernel(const char* source, const char* name) {
  cl_int status = CL_SUCCESS;
  Own<cl_program> program(clCreateProgramWithSource(context_, 1, &source, nullptr, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
  Own<cl_kernel> kernel(clCreateKernel(program, name, &status));
  EXPECT_EQ(status, CL_SUCCESS);
  programs_.push_back(std::move(program));
  return kernel;
}

}  // namespace sluice::gltest
