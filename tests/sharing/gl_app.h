// SPDX-License-Identifier: Apache-2.0
// An application's OpenGL: a context by one of the window-system bindings, with the functions that
// the tests call, and what OpenCL is told about it. Owner: the test. Thread: the context is current
// on the thread that made it or called MakeCurrent.
#pragma once

#include <CL/cl.h>
#include <CL/cl_gl.h>
#include <GL/glcorearb.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::gltest {

// Of compatibility contexts, which glcorearb.h does not have.
using PFNGLBEGINPROC = void(APIENTRYP)(GLenum mode);
using PFNGLENDPROC = void(APIENTRYP)();

#define SLUICE_TEST_GL(X)                                                    \
  X(PFNGLBEGINPROC, Begin)                                                   \
  X(PFNGLENDPROC, End)                                                       \
  X(PFNGLGETERRORPROC, GetError)                                             \
  X(PFNGLGETSTRINGPROC, GetString)                                           \
  X(PFNGLGETINTEGERVPROC, GetIntegerv)                                       \
  X(PFNGLISENABLEDPROC, IsEnabled)                                           \
  X(PFNGLPIXELSTOREIPROC, PixelStorei)                                       \
  X(PFNGLFINISHPROC, Finish)                                                 \
  X(PFNGLFLUSHPROC, Flush)                                                   \
  X(PFNGLCLAMPCOLORPROC, ClampColor)                                         \
  X(PFNGLCLEARPROC, Clear)                                                   \
  X(PFNGLCLEARCOLORPROC, ClearColor)                                         \
  X(PFNGLVIEWPORTPROC, Viewport)                                             \
  X(PFNGLGENTEXTURESPROC, GenTextures)                                       \
  X(PFNGLDELETETEXTURESPROC, DeleteTextures)                                 \
  X(PFNGLBINDTEXTUREPROC, BindTexture)                                       \
  X(PFNGLACTIVETEXTUREPROC, ActiveTexture)                                   \
  X(PFNGLTEXPARAMETERIPROC, TexParameteri)                                   \
  X(PFNGLTEXIMAGE1DPROC, TexImage1D)                                         \
  X(PFNGLTEXIMAGE2DPROC, TexImage2D)                                         \
  X(PFNGLTEXIMAGE3DPROC, TexImage3D)                                         \
  X(PFNGLTEXIMAGE2DMULTISAMPLEPROC, TexImage2DMultisample)                   \
  X(PFNGLTEXSUBIMAGE2DPROC, TexSubImage2D)                                   \
  X(PFNGLTEXSTORAGE2DPROC, TexStorage2D)                                     \
  X(PFNGLTEXTUREVIEWPROC, TextureView)                                       \
  X(PFNGLTEXBUFFERPROC, TexBuffer)                                           \
  X(PFNGLTEXBUFFERRANGEPROC, TexBufferRange)                                 \
  X(PFNGLGETTEXLEVELPARAMETERIVPROC, GetTexLevelParameteriv)                 \
  X(PFNGLGETTEXIMAGEPROC, GetTexImage)                                       \
  X(PFNGLGENBUFFERSPROC, GenBuffers)                                         \
  X(PFNGLDELETEBUFFERSPROC, DeleteBuffers)                                   \
  X(PFNGLBINDBUFFERPROC, BindBuffer)                                         \
  X(PFNGLBUFFERDATAPROC, BufferData)                                         \
  X(PFNGLBUFFERSTORAGEPROC, BufferStorage)                                   \
  X(PFNGLBUFFERSUBDATAPROC, BufferSubData)                                   \
  X(PFNGLMAPBUFFERRANGEPROC, MapBufferRange)                                 \
  X(PFNGLUNMAPBUFFERPROC, UnmapBuffer)                                       \
  X(PFNGLGENVERTEXARRAYSPROC, GenVertexArrays)                               \
  X(PFNGLBINDVERTEXARRAYPROC, BindVertexArray)                               \
  X(PFNGLGENRENDERBUFFERSPROC, GenRenderbuffers)                             \
  X(PFNGLDELETERENDERBUFFERSPROC, DeleteRenderbuffers)                       \
  X(PFNGLBINDRENDERBUFFERPROC, BindRenderbuffer)                             \
  X(PFNGLRENDERBUFFERSTORAGEPROC, RenderbufferStorage)                       \
  X(PFNGLRENDERBUFFERSTORAGEMULTISAMPLEPROC, RenderbufferStorageMultisample) \
  X(PFNGLGENFRAMEBUFFERSPROC, GenFramebuffers)                               \
  X(PFNGLDELETEFRAMEBUFFERSPROC, DeleteFramebuffers)                         \
  X(PFNGLBINDFRAMEBUFFERPROC, BindFramebuffer)                               \
  X(PFNGLFRAMEBUFFERTEXTURE2DPROC, FramebufferTexture2D)                     \
  X(PFNGLFRAMEBUFFERTEXTURELAYERPROC, FramebufferTextureLayer)               \
  X(PFNGLFRAMEBUFFERRENDERBUFFERPROC, FramebufferRenderbuffer)               \
  X(PFNGLCHECKFRAMEBUFFERSTATUSPROC, CheckFramebufferStatus)                 \
  X(PFNGLBLITFRAMEBUFFERPROC, BlitFramebuffer)                               \
  X(PFNGLREADPIXELSPROC, ReadPixels)                                         \
  X(PFNGLCREATESHADERPROC, CreateShader)                                     \
  X(PFNGLSHADERSOURCEPROC, ShaderSource)                                     \
  X(PFNGLCOMPILESHADERPROC, CompileShader)                                   \
  X(PFNGLCREATEPROGRAMPROC, CreateProgram)                                   \
  X(PFNGLATTACHSHADERPROC, AttachShader)                                     \
  X(PFNGLLINKPROGRAMPROC, LinkProgram)                                       \
  X(PFNGLUSEPROGRAMPROC, UseProgram)                                         \
  X(PFNGLGETUNIFORMLOCATIONPROC, GetUniformLocation)                         \
  X(PFNGLUNIFORM1IPROC, Uniform1i)                                           \
  X(PFNGLDRAWARRAYSPROC, DrawArrays)                                         \
  X(PFNGLFENCESYNCPROC, FenceSync)                                           \
  X(PFNGLDELETESYNCPROC, DeleteSync)                                         \
  X(PFNGLISTEXTUREPROC, IsTexture)                                           \
  X(PFNGLISBUFFERPROC, IsBuffer)                                             \
  X(PFNGLISSHADERPROC, IsShader)                                             \
  X(PFNGLISPROGRAMPROC, IsProgram)

struct GlFunctions {
#define SLUICE_TEST_MEMBER(type, name) type name = nullptr;
  SLUICE_TEST_GL(SLUICE_TEST_MEMBER)
#undef SLUICE_TEST_MEMBER
};

// kGlxVisual: a context made from a visual, for a window (glXCreateContext), as SDL and GLUT do.
// kGlxEs: OpenGL ES by GLX_EXT_create_context_es2_profile.
enum class Binding { kEglGl, kEglEs, kGlx, kGlxVisual, kGlxEs, kWgl };
// Those of this system: gl_app_linux.cc, wgl/wgl_app.cc.
const std::vector<Binding>& Bindings();
const char* BindingName(Binding binding);
std::string BindingParamName(const testing::TestParamInfo<Binding>& info);

// Attributes that all contexts of a share group must have in common: that it is lost on reset, or
// that it is given no wrong call (KHR_no_error). Or that it does without what OpenGL 3.3's core
// profile has not.
enum class Promise { kNone, kRobust, kNoError, kCore };

class GlApp {
 public:
  // With a context that is current on this thread; null, with the reason in `why`, if the system
  // has none of that kind. `share`: in that one's share group.
  static std::unique_ptr<GlApp> Make(Binding binding, std::string* why, GlApp* share = nullptr,
                                     Promise promise = Promise::kNone);
  virtual ~GlApp() = default;

  bool es() const { return binding_ == Binding::kEglEs || binding_ == Binding::kGlxEs; }
  Binding binding() const { return binding_; }
  const GlFunctions& gl() const { return gl_; }

  // CL_GL_CONTEXT_KHR and the display, without a terminator.
  virtual std::vector<cl_context_properties> Properties() const = 0;
  virtual void MakeCurrent() = 0;
  virtual void ClearCurrent() = 0;
  virtual void DestroyContext() = 0;
  // The calling thread's current state: a context, its display and surfaces.
  virtual std::vector<const void*> Current() const = 0;
  // EGL's, null for the others.
  virtual void* egl_display() const { return nullptr; }
  virtual void* egl_context() const { return nullptr; }

 protected:
  explicit GlApp(Binding binding) : binding_(binding) {}
  void Load(void* (*lookup)(const char* name));

 private:
  const Binding binding_;
  GlFunctions gl_;
};

// Objects of the system's that this process has open: descriptors, or handles.
size_t OpenDescriptors();
// Resident bytes of this process and of each worker of the daemon that it runs against, by process;
// empty where that is not known.
std::map<int, size_t> ResidentBytes();
// Sets a variable of this process's environment, as the driver sees it; "" for none.
void SetVariable(const char* name, const char* value);

}  // namespace sluice::gltest
