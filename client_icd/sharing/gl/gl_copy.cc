// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_copy.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice::client::sharing {
namespace {

// Of a work-group, each way.
constexpr GLuint kTile = 16;
constexpr GLint kMaxImageUnits = 64;
// Places of the uniforms in the shaders.
constexpr GLint kSize = 0;
constexpr GLint kImage = 1;

// How one format's elements are written in a shader.
struct Element {
  GLenum format;
  const char* layout;
  const char* type;
  const char* from_texel;  // Of imageLoad's four components.
  const char* to_texel;    // The components behind an element for imageStore.
};
constexpr Element kElements[] = {
    {GL_R32UI, "r32ui", "uint", ".x", ", 0u, 0u, 0u"},
    {GL_RG32UI, "rg32ui", "uvec2", ".xy", ", 0u, 0u"},
    {GL_RGBA32UI, "rgba32ui", "uvec4", "", ""},
};

std::string SourceOf(const Element& element, bool pack) {
  return absl::StrCat(
      "#version 430\n", "layout(local_size_x = ", kTile, ", local_size_y = ", kTile, ") in;\n",
      "layout(", element.layout, ", location = ", kImage, ") uniform ",
      pack ? "readonly" : "writeonly", " uimage2D texels;\n", "layout(std430, binding = 0) ",
      pack ? "writeonly" : "readonly", " buffer Elements { ", element.type, " elements[]; };\n",
      "layout(location = ", kSize, ") uniform ivec2 size;\n", "void main() {\n",
      "  const ivec2 at = ivec2(gl_GlobalInvocationID.xy);\n",
      "  if (any(greaterThanEqual(at, size))) return;\n", "  const int i = at.y * size.x + at.x;\n",
      pack ? absl::StrCat("  elements[i] = imageLoad(texels, at)", element.from_texel, ";\n")
           : absl::StrCat("  imageStore(texels, at, uvec4(elements[i]", element.to_texel, "));\n"),
      "}\n");
}

}  // namespace

std::unique_ptr<GlCopier> GlCopier::Make(GlContexts& contexts) {
  if (contexts.caps().version.es || contexts.caps().version.number < 43) return nullptr;
  const auto functions = LoadGlComputeFunctions(
      [&contexts](const char* name) { return contexts.binding().Lookup(name); });
  if (!functions.has_value()) return nullptr;
  std::unique_ptr<GlCopier> copier(new GlCopier(*functions));
  GLint units = 0;
  contexts.gl().GetIntegerv(GL_MAX_IMAGE_UNITS, &units);
  contexts.gl().GetIntegerv(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &copier->max_block_bytes_);
  copier->units_ = static_cast<size_t>(std::clamp(units, 0, kMaxImageUnits));
  if (contexts.TakeError(CL_INVALID_OPERATION) != CL_SUCCESS) return nullptr;
  return copier;
}

GLenum GlCopier::FormatOf(const GlFormat& format) {
  // Image units take neither depth nor sRGB (section 8.26, table 8.26); the table's only order that
  // is not memory's is of OpenGL ES.
  if (format.is_depth() || format.cl.image_channel_order == CL_sRGBA ||
      format.cl.image_channel_order == CL_BGRA) {
    return 0;
  }
  switch (format.element_bytes) {
    case 4:
      return GL_R32UI;
    case 8:
      return GL_RG32UI;
    case 16:
      return GL_RGBA32UI;
    default:
      return 0;  // Several elements would share a word of the buffer.
  }
}

std::optional<GLuint> GlCopier::Hold(GlContexts& contexts, size_t context, const Texture& texture) {
  if (texture.bytes > static_cast<size_t>(std::max(max_block_bytes_, 0))) return std::nullopt;
  if (Program(texture.format, true) == 0 || Program(texture.format, false) == 0) {
    contexts.TakeError(CL_SUCCESS);
    return std::nullopt;
  }
  if (taken_.size() <= context) taken_.resize(context + 1, std::vector<bool>(units_, false));
  std::vector<bool>& taken = taken_[context];
  const auto free = std::find(taken.begin(), taken.end(), false);
  if (free == taken.end()) return std::nullopt;
  const auto unit = static_cast<GLuint>(free - taken.begin());
  functions_.BindImageTexture(unit, texture.name, texture.level, GL_FALSE, 0, GL_READ_WRITE,
                              texture.format);
  if (contexts.TakeError(CL_INVALID_OPERATION) != CL_SUCCESS) return std::nullopt;
  *free = true;
  return unit;
}

void GlCopier::Release(GlContexts& contexts, size_t context, GLuint unit) {
  functions_.BindImageTexture(unit, 0, 0, GL_FALSE, 0, GL_READ_ONLY, GL_R32UI);
  contexts.TakeError(CL_SUCCESS);
  taken_[context][unit] = false;
}

cl_int GlCopier::Run(GlContexts& contexts, const Copy& copy) {
  const GLuint program = Program(copy.format, copy.pack);
  if (program == 0) return CL_OUT_OF_RESOURCES;
  functions_.UseProgram(program);
  functions_.Uniform2i(kSize, static_cast<GLint>(copy.width), static_cast<GLint>(copy.height));
  functions_.Uniform1i(kImage, static_cast<GLint>(copy.unit));
  functions_.BindBufferRange(GL_SHADER_STORAGE_BUFFER, 0, copy.buffer, 0,
                             static_cast<GLsizeiptr>(copy.bytes));
  functions_.MemoryBarrier(GL_ALL_BARRIER_BITS);
  functions_.DispatchCompute(static_cast<GLuint>((copy.width + kTile - 1) / kTile),
                             static_cast<GLuint>((copy.height + kTile - 1) / kTile), 1);
  functions_.MemoryBarrier(GL_ALL_BARRIER_BITS);
  // Here, not only in the context where it is deleted: the worker's memory would stay.
  functions_.BindBufferRange(GL_SHADER_STORAGE_BUFFER, 0, 0, 0, 0);
  functions_.UseProgram(0);
  return contexts.TakeError(CL_INVALID_GL_OBJECT);
}

GLuint GlCopier::Program(GLenum format, bool pack) {
  const auto [entry, is_new] = programs_.try_emplace({format, pack}, 0);
  if (!is_new) return entry->second;
  const Element& element =
      *std::find_if(std::begin(kElements), std::end(kElements),
                    [format](const Element& one) { return one.format == format; });
  entry->second = functions_.MakeProgram(SourceOf(element, pack));
  return entry->second;
}

void GlCopier::DeletePrograms() {
  for (const auto& [which, program] : programs_) functions_.DeleteProgram(program);  // 0: nothing.
  programs_.clear();
}

}  // namespace sluice::client::sharing
