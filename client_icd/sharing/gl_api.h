// SPDX-License-Identifier: Apache-2.0
// OpenGL, EGL, GLX and X11 as the application's process has them. Nothing is linked and nothing is
// loaded: a library that the application has not loaded cannot have made the context that it gives
// us, so each is looked up among those that are there, and kept there for as long as its table
// lives.
//
// A function pointer says nothing about support: the lookups of EGL and GLX give stubs for what a
// display or context lacks, and calling one may crash. Optional functions are called only behind
// what GlCaps or HasWord found in an extension string or version.
//
// Owned by whoever holds the table. Thread-safe once loaded (constant).
#pragma once

// Nothing of X11 in the declarations: its types are opaque here.
#ifndef EGL_NO_X11
#define EGL_NO_X11 1
#endif
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "broker/os/dynamic_library.h"

namespace sluice::sharing {

// Not in the headers of core OpenGL: glEGLImageTargetTexture2DOES of GL_OES_EGL_image, that of
// GL_EXT_EGL_image_storage, glGetUnsignedBytevEXT and glGetUnsignedBytei_vEXT of
// GL_EXT_memory_object.
using GlEglImageTargetTexture2D = void(APIENTRYP)(GLenum target, void* image);
using GlEglImageTargetTexStorage = void(APIENTRYP)(GLenum target, void* image, const GLint* list);
using GlGetUnsignedBytev = void(APIENTRYP)(GLenum name, GLubyte* data);
using GlGetUnsignedByteiv = void(APIENTRYP)(GLenum name, GLuint index, GLubyte* data);

// Every function of GL in use, with its type: those that OpenGL 3.2 and OpenGL ES 3.1 share.
#define SLUICE_GL_REQUIRED(X)                                        \
  X(PFNGLGETSTRINGPROC, GetString)                                   \
  X(PFNGLGETSTRINGIPROC, GetStringi)                                 \
  X(PFNGLGETINTEGERVPROC, GetIntegerv)                               \
  X(PFNGLGETERRORPROC, GetError)                                     \
  X(PFNGLPIXELSTOREIPROC, PixelStorei)                               \
  X(PFNGLFLUSHPROC, Flush)                                           \
  X(PFNGLFINISHPROC, Finish)                                         \
  X(PFNGLISTEXTUREPROC, IsTexture)                                   \
  X(PFNGLGENTEXTURESPROC, GenTextures)                               \
  X(PFNGLDELETETEXTURESPROC, DeleteTextures)                         \
  X(PFNGLBINDTEXTUREPROC, BindTexture)                               \
  X(PFNGLACTIVETEXTUREPROC, ActiveTexture)                           \
  X(PFNGLTEXIMAGE2DPROC, TexImage2D)                                 \
  X(PFNGLTEXPARAMETERIPROC, TexParameteri)                           \
  X(PFNGLTEXSUBIMAGE2DPROC, TexSubImage2D)                           \
  X(PFNGLTEXSUBIMAGE3DPROC, TexSubImage3D)                           \
  X(PFNGLGETTEXPARAMETERIVPROC, GetTexParameteriv)                   \
  X(PFNGLGETTEXLEVELPARAMETERIVPROC, GetTexLevelParameteriv)         \
  X(PFNGLISBUFFERPROC, IsBuffer)                                     \
  X(PFNGLGENBUFFERSPROC, GenBuffers)                                 \
  X(PFNGLDELETEBUFFERSPROC, DeleteBuffers)                           \
  X(PFNGLBINDBUFFERPROC, BindBuffer)                                 \
  X(PFNGLBUFFERDATAPROC, BufferData)                                 \
  X(PFNGLGETBUFFERPARAMETERI64VPROC, GetBufferParameteri64v)         \
  X(PFNGLCOPYBUFFERSUBDATAPROC, CopyBufferSubData)                   \
  X(PFNGLMAPBUFFERRANGEPROC, MapBufferRange)                         \
  X(PFNGLUNMAPBUFFERPROC, UnmapBuffer)                               \
  X(PFNGLGENVERTEXARRAYSPROC, GenVertexArrays)                       \
  X(PFNGLDELETEVERTEXARRAYSPROC, DeleteVertexArrays)                 \
  X(PFNGLBINDVERTEXARRAYPROC, BindVertexArray)                       \
  X(PFNGLISRENDERBUFFERPROC, IsRenderbuffer)                         \
  X(PFNGLBINDRENDERBUFFERPROC, BindRenderbuffer)                     \
  X(PFNGLGETRENDERBUFFERPARAMETERIVPROC, GetRenderbufferParameteriv) \
  X(PFNGLGENFRAMEBUFFERSPROC, GenFramebuffers)                       \
  X(PFNGLDELETEFRAMEBUFFERSPROC, DeleteFramebuffers)                 \
  X(PFNGLBINDFRAMEBUFFERPROC, BindFramebuffer)                       \
  X(PFNGLCHECKFRAMEBUFFERSTATUSPROC, CheckFramebufferStatus)         \
  X(PFNGLFRAMEBUFFERTEXTURE2DPROC, FramebufferTexture2D)             \
  X(PFNGLFRAMEBUFFERTEXTURELAYERPROC, FramebufferTextureLayer)       \
  X(PFNGLFRAMEBUFFERRENDERBUFFERPROC, FramebufferRenderbuffer)       \
  X(PFNGLBLITFRAMEBUFFERPROC, BlitFramebuffer)                       \
  X(PFNGLREADBUFFERPROC, ReadBuffer)                                 \
  X(PFNGLREADPIXELSPROC, ReadPixels)                                 \
  X(PFNGLISSYNCPROC, IsSync)                                         \
  X(PFNGLFENCESYNCPROC, FenceSync)                                   \
  X(PFNGLDELETESYNCPROC, DeleteSync)                                 \
  X(PFNGLWAITSYNCPROC, WaitSync)                                     \
  X(PFNGLCLIENTWAITSYNCPROC, ClientWaitSync)

// Those that only one of the two APIs has, or an extension.
#define SLUICE_GL_OPTIONAL(X)                                \
  X(PFNGLCLAMPCOLORPROC, ClampColor)                         \
  X(PFNGLGETTEXIMAGEPROC, GetTexImage)                       \
  X(PFNGLTEXSUBIMAGE1DPROC, TexSubImage1D)                   \
  X(PFNGLGETGRAPHICSRESETSTATUSPROC, GetGraphicsResetStatus) \
  X(GlEglImageTargetTexture2D, EGLImageTargetTexture2DOES)   \
  X(GlEglImageTargetTexStorage, EGLImageTargetTexStorageEXT) \
  X(GlGetUnsignedBytev, GetUnsignedBytevEXT)                 \
  X(GlGetUnsignedByteiv, GetUnsignedBytei_vEXT)

struct GlFunctions {
#define SLUICE_GL_MEMBER(type, name) type name = nullptr;
  SLUICE_GL_REQUIRED(SLUICE_GL_MEMBER)
  SLUICE_GL_OPTIONAL(SLUICE_GL_MEMBER)
#undef SLUICE_GL_MEMBER
};

using GlLookup = std::function<void*(const char* name)>;

// The functions as `lookup` finds them by name, else in the libraries that the process has loaded.
// NotFoundError names the first of the required ones that is nowhere.
absl::StatusOr<GlFunctions> LoadGlFunctions(const GlLookup& lookup);

#define SLUICE_EGL_REQUIRED(X)                            \
  X(PFNEGLGETPROCADDRESSPROC, GetProcAddress)             \
  X(PFNEGLQUERYSTRINGPROC, QueryString)                   \
  X(PFNEGLGETERRORPROC, GetError)                         \
  X(PFNEGLBINDAPIPROC, BindAPI)                           \
  X(PFNEGLQUERYCONTEXTPROC, QueryContext)                 \
  X(PFNEGLCHOOSECONFIGPROC, ChooseConfig)                 \
  X(PFNEGLGETCONFIGATTRIBPROC, GetConfigAttrib)           \
  X(PFNEGLCREATECONTEXTPROC, CreateContext)               \
  X(PFNEGLDESTROYCONTEXTPROC, DestroyContext)             \
  X(PFNEGLCREATEPBUFFERSURFACEPROC, CreatePbufferSurface) \
  X(PFNEGLDESTROYSURFACEPROC, DestroySurface)             \
  X(PFNEGLMAKECURRENTPROC, MakeCurrent)                   \
  X(PFNEGLRELEASETHREADPROC, ReleaseThread)               \
  X(PFNEGLGETCURRENTCONTEXTPROC, GetCurrentContext)       \
  X(PFNEGLGETCURRENTDISPLAYPROC, GetCurrentDisplay)

struct EglApi {
#define SLUICE_EGL_MEMBER(type, name) type name = nullptr;
  SLUICE_EGL_REQUIRED(SLUICE_EGL_MEMBER)
#undef SLUICE_EGL_MEMBER
  DynamicLibrary library;

  // NotFoundError if the process has no EGL.
  static absl::StatusOr<EglApi> Find();
};

// GLX and X11, whose types are opaque here: a Display, a GLXContext, a GLXFBConfig are pointers, a
// drawable is a number.
struct GlxApi {
  using ErrorHandler = int (*)(void* display, void* error_event);
  void* (*GetProcAddressARB)(const unsigned char* name) = nullptr;
  int (*QueryContext)(void* display, void* context, int attribute, int* value) = nullptr;
  void** (*GetFBConfigs)(void* display, int screen, int* count) = nullptr;
  int (*GetFBConfigAttrib)(void* display, void* config, int attribute, int* value) = nullptr;
  void* (*CreateNewContext)(void* display, void* config, int render_type, void* share,
                            int direct) = nullptr;
  void (*DestroyContext)(void* display, void* context) = nullptr;
  unsigned long (*CreatePbuffer)(void* display, void* config, const int* attributes) = nullptr;
  void (*DestroyPbuffer)(void* display, unsigned long pbuffer) = nullptr;
  int (*MakeContextCurrent)(void* display, unsigned long draw, unsigned long read,
                            void* context) = nullptr;
  const char* (*QueryExtensionsString)(void* display, int screen) = nullptr;
  void* (*GetCurrentContext)() = nullptr;
  int* (*AddExtension)(void* display) = nullptr;  // XExtCodes: its number first.
  using CloseHook = int (*)(void* display, int* codes);
  CloseHook (*ESetCloseDisplay)(void* display, int extension, CloseHook hook) = nullptr;
  int (*QueryExtension)(void* display, const char* name, int* request, int* first_event,
                        int* first_error) = nullptr;
  ErrorHandler (*SetErrorHandler)(ErrorHandler handler) = nullptr;
  int (*Sync)(void* display, int discard) = nullptr;
  int (*Free)(void* memory) = nullptr;
  DynamicLibrary glx;
  DynamicLibrary x11;

  // NotFoundError if the process has no GLX.
  static absl::StatusOr<GlxApi> Find();
};

// True if `word` is one of `list`, which has blanks between and may be null.
bool HasWord(const char* list, std::string_view word);

}  // namespace sluice::sharing
