// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_api.h"

namespace sluice::client::sharing {
absl::StatusOr<GlFunctions> LoadGlFunctions(const GlLookup& lookup) {
  GlFunctions gl;
#define SLUICE_GL_LOAD_REQUIRED(type, name)             \
  gl.name = reinterpret_cast<type>(lookup("gl" #name)); \
  if (gl.name == nullptr) return absl::NotFoundError("OpenGL here has no gl" #name);
#define SLUICE_GL_LOAD_OPTIONAL(type, name) gl.name = reinterpret_cast<type>(lookup("gl" #name));
  SLUICE_GL_REQUIRED(SLUICE_GL_LOAD_REQUIRED)
  SLUICE_GL_OPTIONAL(SLUICE_GL_LOAD_OPTIONAL)
#undef SLUICE_GL_LOAD_REQUIRED
#undef SLUICE_GL_LOAD_OPTIONAL
  return gl;
}

std::optional<GlComputeFunctions> LoadGlComputeFunctions(const GlLookup& lookup) {
  GlComputeFunctions gl;
#define SLUICE_GL_LOAD_COMPUTE(type, name)              \
  gl.name = reinterpret_cast<type>(lookup("gl" #name)); \
  if (gl.name == nullptr) return std::nullopt;
  SLUICE_GL_COMPUTE(SLUICE_GL_LOAD_COMPUTE)
#undef SLUICE_GL_LOAD_COMPUTE
  return gl;
}

GLuint GlComputeFunctions::MakeProgram(const std::string& source) const {
  const char* const text = source.c_str();
  const GLuint shader = CreateShader(GL_COMPUTE_SHADER);
  ShaderSource(shader, 1, &text, nullptr);
  CompileShader(shader);
  const GLuint program = CreateProgram();
  AttachShader(program, shader);
  LinkProgram(program);
  DeleteShader(shader);
  GLint linked = GL_FALSE;
  GetProgramiv(program, GL_LINK_STATUS, &linked);
  if (linked == GL_TRUE) return program;
  DeleteProgram(program);
  return 0;
}

bool HasWord(const char* list, std::string_view word) {
  std::string_view left = list == nullptr ? std::string_view() : std::string_view(list);
  while (!left.empty()) {
    const size_t end = left.find(' ');
    if (left.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    left.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace sluice::client::sharing
