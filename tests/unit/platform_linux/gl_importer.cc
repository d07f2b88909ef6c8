// SPDX-License-Identifier: Apache-2.0
// The other process of external_memory_test: opens memory that its parent exported (descriptor 3)
// in OpenGL, without a display, as the client's side of a device shadow does.
//
//   gl_importer ALLOCATION_BYTES SIZE_BYTES DEVICE_UUID DRIVER_UUID
//
// The memory must hold Pattern(0); it is overwritten, by a copy on the GL's side, with Pattern(1).
// Exit code 0: all of that was so. 77: there is no such OpenGL here; anything else says what
// failed.
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/platform_linux/pattern.h"

namespace {

template <typename F>
F Function(const char* name) {
  return reinterpret_cast<F>(eglGetProcAddress(name));
}

int Fail(int code, const std::string& what) {
  std::fprintf(stderr, "gl_importer: %s\n", what.c_str());
  return code;
}

bool MakeCurrent() {
  const auto get_display = Function<PFNEGLGETPLATFORMDISPLAYEXTPROC>("eglGetPlatformDisplayEXT");
  if (get_display == nullptr) return false;
  const EGLDisplay display =
      get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  if (display == EGL_NO_DISPLAY || eglInitialize(display, nullptr, nullptr) == EGL_FALSE ||
      eglBindAPI(EGL_OPENGL_API) == EGL_FALSE) {
    return false;
  }
  const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 5,
                               EGL_NONE};
  const EGLContext context =
      eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  return context != EGL_NO_CONTEXT &&
         eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) == EGL_TRUE;
}

std::string UuidOf(GLenum name, bool of_device) {
  GLubyte bytes[GL_UUID_SIZE_EXT] = {};
  if (of_device) {
    Function<PFNGLGETUNSIGNEDBYTEI_VEXTPROC>("glGetUnsignedBytei_vEXT")(name, 0, bytes);
  } else {
    Function<PFNGLGETUNSIGNEDBYTEVEXTPROC>("glGetUnsignedBytevEXT")(name, bytes);
  }
  std::string text;
  for (const GLubyte byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return Fail(2, "wrong arguments");
  const GLuint64 allocation_bytes = std::strtoull(argv[1], nullptr, 10);
  const auto size = static_cast<GLsizeiptr>(std::strtoull(argv[2], nullptr, 10));
  if (!MakeCurrent()) return Fail(77, "no OpenGL 4.5 on EGL's surfaceless platform");
  if (Function<PFNGLIMPORTMEMORYFDEXTPROC>("glImportMemoryFdEXT") == nullptr) {
    return Fail(77, "no GL_EXT_memory_object_fd");
  }
  if (UuidOf(GL_DEVICE_UUID_EXT, true) != argv[3]) return Fail(3, "another device's UUID");
  if (UuidOf(GL_DRIVER_UUID_EXT, false) != argv[4]) return Fail(4, "another driver's UUID");

  GLuint memory = 0;
  Function<PFNGLCREATEMEMORYOBJECTSEXTPROC>("glCreateMemoryObjectsEXT")(1, &memory);
  Function<PFNGLIMPORTMEMORYFDEXTPROC>("glImportMemoryFdEXT")(memory, allocation_bytes,
                                                              GL_HANDLE_TYPE_OPAQUE_FD_EXT, 3);
  GLuint buffers[2] = {};
  Function<PFNGLCREATEBUFFERSPROC>("glCreateBuffers")(2, buffers);
  Function<PFNGLNAMEDBUFFERSTORAGEMEMEXTPROC>("glNamedBufferStorageMemEXT")(buffers[0], size,
                                                                            memory, 0);
  if (glGetError() != GL_NO_ERROR) return Fail(5, "the memory was not taken");

  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  Function<PFNGLGETNAMEDBUFFERSUBDATAPROC>("glGetNamedBufferSubData")(buffers[0], 0, size,
                                                                      bytes.data());
  if (bytes != sluice::os::Pattern(0, bytes.size()))
    return Fail(6, "other bytes than the parent's");
  bytes = sluice::os::Pattern(1, bytes.size());
  Function<PFNGLNAMEDBUFFERSTORAGEPROC>("glNamedBufferStorage")(buffers[1], size, bytes.data(), 0);
  Function<PFNGLCOPYNAMEDBUFFERSUBDATAPROC>("glCopyNamedBufferSubData")(buffers[1], buffers[0], 0,
                                                                        0, size);
  glFinish();
  return glGetError() == GL_NO_ERROR ? 0 : Fail(7, "the copy failed");
}
