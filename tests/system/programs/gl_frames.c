/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders frames with OpenGL ES and shares them through a daemon-owned resource:
 *
 *   gl_frames COUNT WIDTH HEIGHT [vulkan]
 *
 * COUNT is at most 1000000, WIDTH and HEIGHT are from 1 to 16384. Needs EGL's surfaceless platform,
 * and no OpenCL. Prints the capabilities for cl_frames, and waits for its word after each frame.
 * With `vulkan` the resource is Vulkan's memory, which OpenGL opens as a buffer
 * (GL_EXT_memory_object_fd) and copies to by itself: this program never maps it. Exit code 77:
 * OpenGL or the daemon's host has no such memory.
 */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl3.h>
/* After the core's. */
#include <GLES2/gl2ext.h>
#include <string.h>
#include <time.h>

#include "shared_frames.h"

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s failed (EGL 0x%x)\n", what, (unsigned)eglGetError());
  exit(1);
}

static void make_context(void) {
  PFNEGLGETPLATFORMDISPLAYEXTPROC get_display = (PFNEGLGETPLATFORMDISPLAYEXTPROC)(void (*)(
      void))eglGetProcAddress("eglGetPlatformDisplayEXT");
  need(get_display != NULL, "eglGetPlatformDisplayEXT");
  EGLDisplay display = get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
  need(eglInitialize(display, NULL, NULL), "eglInitialize");
  need(eglBindAPI(EGL_OPENGL_ES_API), "eglBindAPI");
  const EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE};
  EGLConfig config;
  EGLint count = 0;
  need(eglChooseConfig(display, wanted, &config, 1, &count) && count == 1, "eglChooseConfig");
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_NONE};
  EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
  need(context != EGL_NO_CONTEXT, "eglCreateContext");
  need(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context), "eglMakeCurrent");
}

static GLuint compile(GLenum type, const char* source) {
  GLuint shader = glCreateShader(type);
  glShaderSource(shader, 1, &source, NULL);
  glCompileShader(shader);
  GLint good = 0;
  glGetShaderiv(shader, GL_COMPILE_STATUS, &good);
  need(good, "compiling a shader");
  return shader;
}

/* A triangle over the whole target, coloured by position and frame; returns the uniform. */
static GLint make_program(void) {
  GLuint program = glCreateProgram();
  glAttachShader(program, compile(GL_VERTEX_SHADER,
                                  "#version 300 es\n"
                                  "void main() {\n"
                                  "  vec2 p = vec2(gl_VertexID & 1, gl_VertexID >> 1);\n"
                                  "  gl_Position = vec4(p * 4.0 - 1.0, 0.0, 1.0);\n"
                                  "}\n"));
  glAttachShader(program, compile(GL_FRAGMENT_SHADER,
                                  "#version 300 es\n"
                                  "precision highp float; precision highp int;\n"
                                  "uniform int frame;\n"
                                  "out vec4 color;\n"
                                  "void main() {\n"
                                  "  int x = int(gl_FragCoord.x), y = int(gl_FragCoord.y);\n"
                                  "  color = vec4(" PIXEL_RED ", " PIXEL_GREEN ", " PIXEL_BLUE
                                  ", 255) / 255.0;\n"
                                  "}\n"));
  glLinkProgram(program);
  GLint good = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &good);
  need(good, "linking the program");
  glUseProgram(program);
  return glGetUniformLocation(program, "frame");
}

static void make_target(GLsizei width, GLsizei height) {
  GLuint texture, target;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, width, height);
  glGenFramebuffers(1, &target);
  glBindFramebuffer(GL_FRAMEBUFFER, target);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
  need(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "the framebuffer");
  glViewport(0, 0, width, height);
}

/* The extension's functions; the exit code for a machine without them. */
static void (*find(const char* name))(void) {
  void (*function)(void) = eglGetProcAddress(name);
  if (function != NULL) return function;
  printf("no %s\n", name);
  exit(77);
}

static void need_same_uuid(GLenum name, GLint index, const void* wanted, const char* what) {
  GLubyte uuid[GL_UUID_SIZE_EXT];
  memset(uuid, 0, sizeof uuid);
  if (index >= 0) {
    ((PFNGLGETUNSIGNEDBYTEI_VEXTPROC)find("glGetUnsignedBytei_vEXT"))(name, (GLuint)index, uuid);
  } else {
    ((PFNGLGETUNSIGNEDBYTEVEXTPROC)find("glGetUnsignedBytevEXT"))(name, uuid);
  }
  need(memcmp(uuid, wanted, sizeof uuid) == 0, what);
}

/* Binds the resource as the buffer that glReadPixels writes to. */
static void bind_vulkan_memory(sluice_handle* handle) {
  const char* extensions = (const char*)glGetString(GL_EXTENSIONS);
  if (strstr(extensions, "GL_EXT_memory_object_fd") == NULL) {
    printf("no GL_EXT_memory_object_fd\n");
    exit(77);
  }
  need_same_uuid(GL_DEVICE_UUID_EXT, 0, handle->device_uuid, "comparing the device's UUID");
  need_same_uuid(GL_DRIVER_UUID_EXT, -1, &handle->ints[4], "comparing the driver's UUID");
  GLuint memory = 0, buffer = 0;
  ((PFNGLCREATEMEMORYOBJECTSEXTPROC)find("glCreateMemoryObjectsEXT"))(1, &memory);
  ((PFNGLIMPORTMEMORYFDEXTPROC)find("glImportMemoryFdEXT"))(
      memory, handle->allocation_bytes, GL_HANDLE_TYPE_OPAQUE_FD_EXT, handle->fds[0]);
  handle->fds[0] = -1; /* GL's from here on */
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
  ((PFNGLBUFFERSTORAGEMEMEXTPROC)find("glBufferStorageMemEXT"))(
      GL_PIXEL_PACK_BUFFER, (GLsizeiptr)handle->size_bytes, memory, 0);
  need(glGetError() == GL_NO_ERROR, "importing the memory");
}

static void print_capability(const char* name, const sluice_capability* capability) {
  char text[SLUICE_CAPABILITY_TEXT_SIZE];
  sluice_capability_to_text(capability, text);
  printf("%s %s\n", name, text);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const int vulkan = argc == 5 && strcmp(argv[4], "vulkan") == 0;
  const int known = argc == 4 || vulkan;
  const int count = known ? number(argv[1], MOST_FRAMES) : 0;
  const int width = known ? number(argv[2], MOST_PIXELS) : 0;
  const int height = known ? number(argv[3], MOST_PIXELS) : 0;
  if (count == 0 || width == 0 || height == 0) {
    fprintf(stderr,
            "usage: gl_frames COUNT WIDTH HEIGHT [vulkan]: up to %d frames of up to %dx%d\n",
            MOST_FRAMES, MOST_PIXELS, MOST_PIXELS);
    return 2;
  }
  make_context();
  make_target(width, height);
  const GLint frame_uniform = make_program();
  fprintf(stderr, "renderer: %s\n", (const char*)glGetString(GL_RENDERER));

  sluice_connection* daemon = NULL;
  check(sluice_connect(NULL, &daemon), "connect");
  sluice_create_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.label = "rendered";
  info.shape.drm_fourcc = FOURCC_AB24;
  info.shape.width = (uint64_t)width;
  info.shape.height = (uint64_t)height;
  info.backing = vulkan ? SLUICE_BACKING_VULKAN : SLUICE_BACKING_MEMFD;
  info.flags = vulkan ? SLUICE_TRUST_READERS : 0;
  sluice_capability frames_read, frames_write, ack_read, ack_write;
  const sluice_status made = sluice_create(daemon, &info, &frames_read, &frames_write);
  if (vulkan && made == SLUICE_UNSUPPORTED) {
    printf("%s\n", sluice_error_text());
    return 77;
  }
  check(made, "create");
  sluice_handle handle;
  memset(&handle, 0, sizeof handle);
  handle.struct_size = sizeof handle;
  void* pixels = NULL;
  check(sluice_export(daemon, &frames_write, SLUICE_WRITE, &handle), "export");
  if (vulkan) {
    bind_vulkan_memory(&handle);
  } else {
    check(sluice_map(&handle, &pixels), "map");
  }
  info.backing = SLUICE_BACKING_MEMFD;
  info.flags = 0;
  memset(&info.shape, 0, sizeof info.shape);
  info.shape.size_bytes = 64;
  info.label = "acknowledgements";
  check(sluice_create(daemon, &info, &ack_read, &ack_write), "create");
  sluice_watch* watch = NULL;
  check(sluice_watch_open(daemon, &ack_read, &watch), "watch");
  print_capability("frames", &frames_read);
  print_capability("ack", &ack_write);

  uint64_t acknowledged = 0;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int frame = 1; frame <= count; ++frame) {
    sluice_hold hold;
    check(sluice_acquire(daemon, &frames_write, SLUICE_WRITE, TIMEOUT_MS, &hold), "acquire");
    glUniform1i(frame_uniform, frame);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    glFinish(); /* into a buffer, glReadPixels does not wait */
    need(glGetError() == GL_NO_ERROR, "rendering");
    check(sluice_release(daemon, &hold, 0), "release");
    await_write(watch, &acknowledged, "cl_frames");
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds =
      (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
  /* Not into a pipe that the consumer has left by now. */
  fprintf(stderr, "rendered %d frames of %dx%d, %.1f per second\n", count, width, height,
          count / seconds);
  sluice_watch_close(watch);
  sluice_disconnect(daemon);
  return 0;
}
