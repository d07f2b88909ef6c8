// SPDX-License-Identifier: Apache-2.0
// The state that the sharing tests start from: a GL context, current on the test's thread, and an
// OpenCL context and queue made for it.
// Owner: each test has its own. Thread: the test's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/harness/fixtures.h"
#include "tests/sharing/gl_app.h"

namespace sluice::gltest {

using conformance::Own;

// How GL is told to take and give elements of an internal format, and what OpenCL calls it.
struct Format {
  GLenum internal;
  GLenum format;
  GLenum type;
  cl_image_format cl;
  size_t bytes;
  const char* name;
};
// Table 9.4.
const std::vector<Format>& AllFormats();
const Format& FormatOf(GLenum internal);

// Elements that every API keeps bit for bit: no odd floats, no value of a signed normalised type
// that has two encodings. `seed` makes different ones.
std::vector<uint8_t> Pattern(const Format& format, size_t elements, uint32_t seed);

class WithGl : public conformance::WithPlatform, public testing::WithParamInterface<Binding> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The attributes of the test's contexts. SLUICE_TEST_GL_NO_ERROR: every test's promise that.
  virtual Promise promise() const;

  GlApp& app() { return *app_; }
  // SLUICE_SHARING, by who runs this, leaves no way but a device shadow.
  static bool ShadowIsForced();
  // Then, of a format that OpenGL ES reads wider than it is (GL_RG16 of Mesa 25.0, which Mesa 22 does
  // not have there): a shadow takes exact copies only.
  static bool LacksForcedShadow(const Format& format);

  // The application's context and, of GLX, its display.
  void CloseApp() { app_.reset(); }
  const GlFunctions& gl() { return app_->gl(); }
  bool es() const { return app_->es(); }
  cl_context context() const { return context_; }
  cl_command_queue queue() const { return queue_; }
  void MakeQueue();  // A new one.
  // After a command that failed, whose error has been told: its queue goes on, or if the driver's
  // queues then fail for good, another one.
  void GoOn();

  Own<cl_context> NewGlContext(GlApp& app);
  std::vector<cl_context_properties> Properties(GlApp& app) const;

  // GL side. Objects live as long as the test's context.
  GLuint Buffer(const void* data, size_t bytes);
  std::vector<uint8_t> ReadBuffer(GLuint buffer, size_t bytes);
  // With one level, which its parameters say.
  GLuint Texture2D(const Format& format, size_t width, size_t height, const void* data);
  // A level of a texture whose faces and layers are two-dimensional, or of any in desktop OpenGL.
  std::vector<uint8_t> ReadTexture(GLenum target, GLuint texture, GLint level, const Format& format,
                                   size_t width, size_t height, size_t depth);
  std::vector<uint8_t> ReadFramebuffer(const Format& format, size_t width, size_t height);
  bool IsRenderable(GLuint texture);

  // OpenCL side.
  bool DeviceHas(const Format& format, cl_mem_object_type type, cl_mem_flags flags);
  cl_int Acquire(cl_mem memory, cl_event* event = nullptr);
  cl_int Release(cl_mem memory, cl_event* event = nullptr);
  std::vector<uint8_t> ReadImage(cl_mem image, size_t width, size_t height, size_t depth,
                                 size_t element_bytes);
  void WriteImage(cl_mem image, size_t width, size_t height, size_t depth,
                  const std::vector<uint8_t>& bytes);
  Own<cl_kernel> BuildKernel(const char* source, const char* name);

 private:
  std::unique_ptr<GlApp> app_;
  Own<cl_context> context_;
  Own<cl_command_queue> queue_;
  std::vector<Own<cl_program>> programs_;
};

}  // namespace sluice::gltest
