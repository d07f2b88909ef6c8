// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_texel_read.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice::client::sharing {
namespace {

// Of a work-group, each way.
constexpr GLuint kReadTile = 16;
// Places of the uniforms in the shader.
constexpr GLint kReadSize = 0;
constexpr GLint kTexels = 1;

// The words of a texel `t`, comma separated; null for formats that are not of floats, or whose
// texels share a word.
const char* WordsOf(const GlFormat& format) {
  switch (format.internal_format) {
    case GL_R32F:
      return "floatBitsToUint(t.x)";
    case GL_RG32F:
      return "floatBitsToUint(t.x), floatBitsToUint(t.y)";
    case GL_RGBA32F:
      return "floatBitsToUint(t.x), floatBitsToUint(t.y), floatBitsToUint(t.z), "
             "floatBitsToUint(t.w)";
    case GL_RG16F:
      return "packHalf2x16(t.xy)";
    case GL_RGBA16F:
      return "packHalf2x16(t.xy), packHalf2x16(t.zw)";
    default:
      return nullptr;
  }
}

const char* SamplerOf(GLenum target) {
  switch (target) {
    case GL_TEXTURE_2D:
      return "sampler2D";
    case GL_TEXTURE_2D_ARRAY:
      return "sampler2DArray";
    case GL_TEXTURE_3D:
      return "sampler3D";
    default:
      return nullptr;
  }
}

// Size: of the level, and its number from the base on.
std::string SourceOf(const GlDescription& about) {
  const size_t words = about.format->element_bytes / sizeof(uint32_t);
  const char* const at = about.target == GL_TEXTURE_2D ? "at.xy" : "at";
  return absl::StrCat(
      "#version 310 es\n", "layout(local_size_x = ", kReadTile, ", local_size_y = ", kReadTile,
      ") in;\n", "layout(location = ", kTexels, ") uniform highp ", SamplerOf(about.target),
      " texels;\n", "layout(location = ", kReadSize, ") uniform highp ivec4 size;\n",
      "layout(std430, binding = 0) writeonly buffer Words { highp uint words[]; };\n",
      "void main() {\n", "  highp ivec3 at = ivec3(gl_GlobalInvocationID);\n",
      "  if (any(greaterThanEqual(at, size.xyz))) return;\n",
      "  highp vec4 t = texelFetch(texels, ", at, ", size.w);\n", "  highp uint texel[", words,
      "] = uint[", words, "](", WordsOf(*about.format), ");\n",
      "  int to = ((at.z * size.y + at.y) * size.x + at.x) * ", words, ";\n",
      "  for (int i = 0; i < ", words, "; ++i) words[to + i] = texel[i];\n", "}\n");
}

}  // namespace

std::unique_ptr<GlTexelRead> GlTexelRead::Make(GlContexts& contexts, const GlDescription& about) {
  if (!contexts.caps().version.es || SamplerOf(about.target) == nullptr ||
      WordsOf(*about.format) == nullptr) {
    return nullptr;
  }
  GLint max_block_bytes = 0;
  contexts.gl().GetIntegerv(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &max_block_bytes);
  if (about.bytes > static_cast<size_t>(std::max(max_block_bytes, 0))) return nullptr;
  const auto functions = LoadGlComputeFunctions(
      [&contexts](const char* name) { return contexts.binding().Lookup(name); });
  if (!functions.has_value()) return nullptr;
  std::unique_ptr<GlTexelRead> read(new GlTexelRead(*functions));
  functions->GenSamplers(1, &read->sampler_);
  read->program_ = functions->MakeProgram(SourceOf(about));
  if (contexts.TakeError(CL_INVALID_OPERATION) == CL_SUCCESS && read->program_ != 0) return read;
  read->Drop();
  return nullptr;
}

cl_int GlTexelRead::Run(GlContexts& contexts, const GlDescription& about, GLuint unit, GLint base,
                        GLuint buffer) {
  // The application's filters may want levels that the texture has not, or be such as floats do not
  // have: then every texel would be zero (OpenGL ES 3.1, section 8.16).
  const GLint filter = about.level == base ? GL_NEAREST : GL_NEAREST_MIPMAP_NEAREST;
  functions_.SamplerParameteri(sampler_, GL_TEXTURE_MIN_FILTER, filter);
  functions_.SamplerParameteri(sampler_, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  functions_.BindSampler(unit, sampler_);
  functions_.UseProgram(program_);
  functions_.Uniform1i(kTexels, static_cast<GLint>(unit));
  functions_.Uniform4i(kReadSize, static_cast<GLint>(about.width), static_cast<GLint>(about.height),
                       static_cast<GLint>(about.depth), about.level - base);
  functions_.BindBufferRange(GL_SHADER_STORAGE_BUFFER, 0, buffer, 0,
                             static_cast<GLsizeiptr>(about.bytes));
  functions_.MemoryBarrier(GL_ALL_BARRIER_BITS);
  functions_.DispatchCompute(static_cast<GLuint>((about.width + kReadTile - 1) / kReadTile),
                             static_cast<GLuint>((about.height + kReadTile - 1) / kReadTile),
                             static_cast<GLuint>(about.depth));
  functions_.MemoryBarrier(GL_ALL_BARRIER_BITS);
  functions_.BindBufferRange(GL_SHADER_STORAGE_BUFFER, 0, 0, 0, 0);
  functions_.UseProgram(0);
  functions_.BindSampler(unit, 0);
  return contexts.TakeError(CL_INVALID_GL_OBJECT);
}

void GlTexelRead::Drop() {
  functions_.DeleteProgram(program_);  // 0: nothing.
  functions_.DeleteSamplers(1, &sampler_);
}

}  // namespace sluice::client::sharing
