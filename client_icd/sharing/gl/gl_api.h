// SPDX-License-Identifier: Apache-2.0
// OpenGL as the application's process has it; egl_api.h, glx_api.h and wgl/wgl_api.h are what
// belongs to a window system. Nothing is linked and nothing is loaded. A library that the
// application has not loaded cannot have made the context that it gives us. So each is looked up
// among those that are there, and kept there for as long as its table lives.
//
// A function pointer says nothing about support: the lookups of EGL, GLX and WGL give stubs for
// what a display or context lacks, and calling one may crash. Optional functions are called only
// behind what GlCaps or HasWord found in an extension string or version.
//
// Owned by whoever holds the table. Thread-safe once loaded (constant).
#pragma once

#include <GL/glcorearb.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace sluice::client::sharing {

// Not in the headers of core OpenGL: glEGLImageTargetTexture2DOES of GL_OES_EGL_image, that of
// GL_EXT_EGL_image_storage, glGetUnsignedBytevEXT and glGetUnsignedBytei_vEXT of
// GL_EXT_memory_object.
using GlEglImageTargetTexture2D = void(APIENTRYP)(GLenum target, void* image);
using GlEglImageTargetTexStorage = void(APIENTRYP)(GLenum target, void* image, const GLint* list);
using GlGetUnsignedBytev = void(APIENTRYP)(GLenum name, GLubyte* data);
using GlGetUnsignedByteiv = void(APIENTRYP)(GLenum name, GLuint index, GLubyte* data);

// Every function of GL in use, with its type: those that OpenGL 3.2 and OpenGL ES 3.1 share.
#define SLUICE_GL_REQUIRED(X)                                                          \
  X(PFNGLGETSTRINGPROC, GetString)                                                     \
  X(PFNGLGETSTRINGIPROC, GetStringi)                                                   \
  X(PFNGLGETINTEGERVPROC, GetIntegerv)                                                 \
  X(PFNGLGETERRORPROC, GetError)                                                       \
  X(PFNGLPIXELSTOREIPROC, PixelStorei)                                                 \
  X(PFNGLFLUSHPROC, Flush)                                                             \
  X(PFNGLFINISHPROC, Finish)                                                           \
  X(PFNGLISTEXTUREPROC, IsTexture)                                                     \
  X(PFNGLGENTEXTURESPROC, GenTextures)                                                 \
  X(PFNGLDELETETEXTURESPROC, DeleteTextures)                                           \
  X(PFNGLBINDTEXTUREPROC, BindTexture)                                                 \
  X(PFNGLACTIVETEXTUREPROC, ActiveTexture)                                             \
  X(PFNGLTEXIMAGE2DPROC, TexImage2D)                                                   \
  X(PFNGLTEXPARAMETERIPROC, TexParameteri)                                             \
  X(PFNGLTEXSUBIMAGE2DPROC, TexSubImage2D)                                             \
  X(PFNGLTEXSUBIMAGE3DPROC, TexSubImage3D)                                             \
  X(PFNGLGETTEXPARAMETERIVPROC, GetTexParameteriv)                                     \
  X(PFNGLGETTEXLEVELPARAMETERIVPROC, GetTexLevelParameteriv)                           \
  X(PFNGLISBUFFERPROC, IsBuffer)                                                       \
  X(PFNGLGENBUFFERSPROC, GenBuffers)                                                   \
  X(PFNGLDELETEBUFFERSPROC, DeleteBuffers)                                             \
  X(PFNGLBINDBUFFERPROC, BindBuffer)                                                   \
  X(PFNGLBUFFERDATAPROC, BufferData)                                                   \
  X(PFNGLGETBUFFERPARAMETERIVPROC, GetBufferParameteriv)                               \
  X(PFNGLGETBUFFERPARAMETERI64VPROC, GetBufferParameteri64v)                           \
  X(PFNGLCOPYBUFFERSUBDATAPROC, CopyBufferSubData)                                     \
  X(PFNGLMAPBUFFERRANGEPROC, MapBufferRange)                                           \
  X(PFNGLUNMAPBUFFERPROC, UnmapBuffer)                                                 \
  X(PFNGLGENVERTEXARRAYSPROC, GenVertexArrays)                                         \
  X(PFNGLDELETEVERTEXARRAYSPROC, DeleteVertexArrays)                                   \
  X(PFNGLBINDVERTEXARRAYPROC, BindVertexArray)                                         \
  X(PFNGLISRENDERBUFFERPROC, IsRenderbuffer)                                           \
  X(PFNGLBINDRENDERBUFFERPROC, BindRenderbuffer)                                       \
  X(PFNGLGETRENDERBUFFERPARAMETERIVPROC, GetRenderbufferParameteriv)                   \
  X(PFNGLGENFRAMEBUFFERSPROC, GenFramebuffers)                                         \
  X(PFNGLDELETEFRAMEBUFFERSPROC, DeleteFramebuffers)                                   \
  X(PFNGLBINDFRAMEBUFFERPROC, BindFramebuffer)                                         \
  X(PFNGLCHECKFRAMEBUFFERSTATUSPROC, CheckFramebufferStatus)                           \
  X(PFNGLFRAMEBUFFERTEXTURE2DPROC, FramebufferTexture2D)                               \
  X(PFNGLFRAMEBUFFERTEXTURELAYERPROC, FramebufferTextureLayer)                         \
  X(PFNGLFRAMEBUFFERRENDERBUFFERPROC, FramebufferRenderbuffer)                         \
  X(PFNGLGETFRAMEBUFFERATTACHMENTPARAMETERIVPROC, GetFramebufferAttachmentParameteriv) \
  X(PFNGLBLITFRAMEBUFFERPROC, BlitFramebuffer)                                         \
  X(PFNGLREADBUFFERPROC, ReadBuffer)                                                   \
  X(PFNGLREADPIXELSPROC, ReadPixels)                                                   \
  X(PFNGLISSYNCPROC, IsSync)                                                           \
  X(PFNGLFENCESYNCPROC, FenceSync)                                                     \
  X(PFNGLDELETESYNCPROC, DeleteSync)                                                   \
  X(PFNGLGETSYNCIVPROC, GetSynciv)                                                     \
  X(PFNGLWAITSYNCPROC, WaitSync)                                                       \
  X(PFNGLCLIENTWAITSYNCPROC, ClientWaitSync)

// Those that only one of the two APIs has, or an extension.
#define SLUICE_GL_OPTIONAL(X)                                \
  X(PFNGLCLAMPCOLORPROC, ClampColor)                         \
  X(PFNGLGETTEXIMAGEPROC, GetTexImage)                       \
  X(PFNGLGETTEXTUREPARAMETERIVPROC, GetTextureParameteriv)   \
  X(PFNGLTEXSUBIMAGE1DPROC, TexSubImage1D)                   \
  X(PFNGLGETGRAPHICSRESETSTATUSPROC, GetGraphicsResetStatus) \
  X(GlEglImageTargetTexture2D, EGLImageTargetTexture2DOES)   \
  X(GlEglImageTargetTexStorage, EGLImageTargetTexStorageEXT) \
  X(GlGetUnsignedBytev, GetUnsignedBytevEXT)                 \
  X(GlGetUnsignedByteiv, GetUnsignedBytei_vEXT)

// Those of compute shaders: OpenGL 4.3 and OpenGL ES 3.1.
#define SLUICE_GL_COMPUTE(X)                       \
  X(PFNGLCREATESHADERPROC, CreateShader)           \
  X(PFNGLSHADERSOURCEPROC, ShaderSource)           \
  X(PFNGLCOMPILESHADERPROC, CompileShader)         \
  X(PFNGLDELETESHADERPROC, DeleteShader)           \
  X(PFNGLCREATEPROGRAMPROC, CreateProgram)         \
  X(PFNGLDELETEPROGRAMPROC, DeleteProgram)         \
  X(PFNGLATTACHSHADERPROC, AttachShader)           \
  X(PFNGLLINKPROGRAMPROC, LinkProgram)             \
  X(PFNGLGETPROGRAMIVPROC, GetProgramiv)           \
  X(PFNGLUSEPROGRAMPROC, UseProgram)               \
  X(PFNGLUNIFORM1IPROC, Uniform1i)                 \
  X(PFNGLUNIFORM2IPROC, Uniform2i)                 \
  X(PFNGLUNIFORM4IPROC, Uniform4i)                 \
  X(PFNGLBINDIMAGETEXTUREPROC, BindImageTexture)   \
  X(PFNGLBINDBUFFERRANGEPROC, BindBufferRange)     \
  X(PFNGLDISPATCHCOMPUTEPROC, DispatchCompute)     \
  X(PFNGLMEMORYBARRIERPROC, MemoryBarrier)         \
  X(PFNGLGENSAMPLERSPROC, GenSamplers)             \
  X(PFNGLDELETESAMPLERSPROC, DeleteSamplers)       \
  X(PFNGLSAMPLERPARAMETERIPROC, SamplerParameteri) \
  X(PFNGLBINDSAMPLERPROC, BindSampler)

struct GlFunctions {
#define SLUICE_GL_MEMBER(type, name) type name = nullptr;
  SLUICE_GL_REQUIRED(SLUICE_GL_MEMBER)
  SLUICE_GL_OPTIONAL(SLUICE_GL_MEMBER)
};

struct GlComputeFunctions {
  SLUICE_GL_COMPUTE(SLUICE_GL_MEMBER)
#undef SLUICE_GL_MEMBER

  // A program of this compute shader; 0 if the GL does not take it.
  GLuint MakeProgram(const std::string& source) const;
};

using GlLookup = std::function<void*(const char* name)>;

// The functions as `lookup` finds them by name. NotFoundError names the first of the required ones
// that is nowhere.
absl::StatusOr<GlFunctions> LoadGlFunctions(const GlLookup& lookup);
// Nothing if one of them is nowhere.
std::optional<GlComputeFunctions> LoadGlComputeFunctions(const GlLookup& lookup);

// True if `word` is one of `list`, which has blanks between and may be null.
bool HasWord(const char* list, std::string_view word);

}  // namespace sluice::client::sharing
