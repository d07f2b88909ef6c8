// SPDX-License-Identifier: Apache-2.0
// Textures: every target, level and face of section 9.4.3.
#include <CL/cl_egl.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "client_icd/sharing/gl/gl_blit.h"
#include "client_icd/sharing/gl/gl_buffer.h"
#include "client_icd/sharing/gl/gl_copy.h"
#include "client_icd/sharing/gl/gl_read.h"
#include "client_icd/sharing/gl/gl_texel_read.h"

namespace sluice::client::sharing {
namespace {

// GL_TEXTURE_BORDER, which core profiles do not have.
constexpr GLenum kTextureBorder = 0x1005;

bool IsFace(GLenum target) {
  return target >= GL_TEXTURE_CUBE_MAP_POSITIVE_X && target <= GL_TEXTURE_CUBE_MAP_NEGATIVE_Z;
}

bool HasLayers(GLenum target) { return target == GL_TEXTURE_3D || target == GL_TEXTURE_2D_ARRAY; }

GLenum BindingTarget(GLenum target) { return IsFace(target) ? GL_TEXTURE_CUBE_MAP : target; }

cl_gl_object_type TypeOf(GLenum target) {
  switch (target) {
    case GL_TEXTURE_1D:
      return CL_GL_OBJECT_TEXTURE1D;
    case GL_TEXTURE_1D_ARRAY:
      return CL_GL_OBJECT_TEXTURE1D_ARRAY;
    case GL_TEXTURE_2D_ARRAY:
      return CL_GL_OBJECT_TEXTURE2D_ARRAY;
    case GL_TEXTURE_3D:
      return CL_GL_OBJECT_TEXTURE3D;
    case GL_TEXTURE_BUFFER:
      return CL_GL_OBJECT_TEXTURE_BUFFER;
    default:
      return CL_GL_OBJECT_TEXTURE2D;
  }
}

struct LevelShape {
  GLint width = 0, height = 0, depth = 0, internal_format = 0;
  friend bool operator==(const LevelShape&, const LevelShape&) = default;
};

// Questions about the texture that is bound to the active unit.
class BoundTexture {
 public:
  BoundTexture(const GlFunctions& gl, const GlCaps& caps, GLenum target)
      : gl_(gl), caps_(caps), target_(target) {}

  GLint Parameter(GLenum name) const {
    GLint value = 0;
    gl_.GetTexParameteriv(BindingTarget(target_), name, &value);
    return value;
  }
  GLint OfLevel(GLenum target, GLint level, GLenum name) const {
    GLint value = 0;
    gl_.GetTexLevelParameteriv(target, level, name, &value);
    return value;
  }
  GLint OfLevel(GLint level, GLenum name) const { return OfLevel(target_, level, name); }
  LevelShape Shape(GLenum target, GLint level) const {
    return {OfLevel(target, level, GL_TEXTURE_WIDTH), OfLevel(target, level, GL_TEXTURE_HEIGHT),
            OfLevel(target, level, GL_TEXTURE_DEPTH),
            OfLevel(target, level, GL_TEXTURE_INTERNAL_FORMAT)};
  }

  // level_base and q of section 9.4.3, from the texture's parameters and its base level.
  void Levels(GLint* base, GLint* last) const {
    *base = 0;
    *last = 0;
    if (target_ == GL_TEXTURE_RECTANGLE) return;
    GLint max = Parameter(GL_TEXTURE_MAX_LEVEL);
    *base = Parameter(GL_TEXTURE_BASE_LEVEL);
    if (caps_.version.es || caps_.version.number >= 43) {
      GLint immutable = Parameter(GL_TEXTURE_IMMUTABLE_LEVELS);
      // Section 8.18: a view has those of its original, and may show fewer. OpenGL ES has views by
      // an extension alone, without which it must not be asked.
      if (immutable > 0 && !caps_.version.es)
        immutable = std::min(immutable, std::max(Parameter(GL_TEXTURE_VIEW_NUM_LEVELS), 1));
      // OpenGL 4.6, section 8.17: both are clamped to the levels that there are.
      if (immutable > 0) {
        *base = std::min(*base, immutable - 1);
        max = std::clamp(max, *base, immutable - 1);
      }
    }
    const GLint limit = LastPossibleLevel();
    *base = std::clamp(*base, 0, limit);
    const LevelShape shape = Shape(target_, *base);
    unsigned size = static_cast<unsigned>(std::max(shape.width, 1));
    if (target_ != GL_TEXTURE_1D_ARRAY) size = std::max(size, static_cast<unsigned>(shape.height));
    if (target_ == GL_TEXTURE_3D) size = std::max(size, static_cast<unsigned>(shape.depth));
    *last = std::min(*base + static_cast<GLint>(std::bit_width(size)) - 1, std::max(max, *base));
    *last = std::min(*last, limit);
  }

  // The base level must be there in every face, of one shape; if another level is asked for, so
  // must be every level. The filters, which an application may change or override by a sampler at
  // any time, are not looked at: other drivers' GL interoperation does as much.
  bool IsComplete(GLint base, GLint last) const {
    const LevelShape first = Shape(target_, base);
    if (first.width <= 0) return false;
    for (GLint level = base; level <= last; ++level) {
      const GLint by = level - base;
      LevelShape expected = first;
      expected.width = std::max(first.width >> by, 1);
      if (target_ != GL_TEXTURE_1D_ARRAY) expected.height = std::max(first.height >> by, 1);
      if (target_ == GL_TEXTURE_3D) expected.depth = std::max(first.depth >> by, 1);
      if (!IsFace(target_)) {
        if (Shape(target_, level) != expected) return false;
        continue;
      }
      for (GLenum face = 0; face < 6; ++face) {
        if (Shape(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, level) != expected) return false;
      }
    }
    return !IsFace(target_) || first.width == first.height;
  }

  const GlFormat* Format(GLint level) const {
    const GLenum internal = static_cast<GLenum>(OfLevel(level, GL_TEXTURE_INTERNAL_FORMAT));
    const GlFormat* format = FindGlFormat(internal);
    if (format != nullptr) return format;
    return FindUnsizedGlFormat(
        internal, {static_cast<GLenum>(OfLevel(level, GL_TEXTURE_RED_TYPE)),
                   OfLevel(level, GL_TEXTURE_RED_SIZE), OfLevel(level, GL_TEXTURE_GREEN_SIZE),
                   OfLevel(level, GL_TEXTURE_BLUE_SIZE), OfLevel(level, GL_TEXTURE_ALPHA_SIZE)});
  }

 private:
  // GL must not be asked about a higher one.
  GLint LastPossibleLevel() const {
    const GLenum limit = target_ == GL_TEXTURE_3D ? GL_MAX_3D_TEXTURE_SIZE
                         : IsFace(target_)        ? GL_MAX_CUBE_MAP_TEXTURE_SIZE
                                                  : GL_MAX_TEXTURE_SIZE;
    GLint size = 1;
    gl_.GetIntegerv(limit, &size);
    return static_cast<GLint>(std::bit_width(static_cast<unsigned>(std::max(size, 1)))) - 1;
  }

  const GlFunctions& gl_;
  const GlCaps& caps_;
  const GLenum target_;
};

// Binds it to the active unit. Section 9.4.3: CL_INVALID_GL_OBJECT if texture is not a GL texture
// object whose type matches texture_target. Asked for first where the GL can tell; else a GL
// without errors leaves the target as it was, with a texture of no levels.
cl_int Bind(GlContexts& contexts, GLenum target, GLuint name) {
  const GlFunctions& gl = contexts.gl();
  if (gl.IsTexture(name) != GL_TRUE) return CL_INVALID_GL_OBJECT;
  // A driver may answer in core profiles only; so are our contexts without errors, of 4.5.
  if (contexts.caps().core_profile && contexts.caps().version.number >= 45 &&
      gl.GetTextureParameteriv != nullptr) {
    GLint own = 0;
    gl.GetTextureParameteriv(name, GL_TEXTURE_TARGET, &own);
    contexts.TakeError(CL_SUCCESS);
    // Section 8.11: there is no answer about a buffer texture.
    const bool may_be = own == 0 && target == GL_TEXTURE_BUFFER;
    if (static_cast<GLenum>(own) != target && !may_be) return CL_INVALID_GL_OBJECT;
  }
  gl.BindTexture(target, name);
  return contexts.TakeError(CL_INVALID_GL_OBJECT);
}

// Fills the shape and format of one level.
cl_int DescribeLevel(const BoundTexture& texture, const GlCaps& caps, GlDescription* about) {
  GLint base = 0;
  GLint last = 0;
  texture.Levels(&base, &last);
  // Section 9.4.3: CL_INVALID_MIP_LEVEL if miplevel is less than the value of level_base (for
  // OpenGL implementations) or zero (for OpenGL ES implementations); or greater than the value of
  // q.
  if (about->level < (caps.version.es ? 0 : base) || about->level > last) {
    return CL_INVALID_MIP_LEVEL;
  }
  // CL_INVALID_GL_OBJECT if the specified miplevel of texture is not defined, or if the width or
  // height of the specified miplevel is zero or if the GL texture object is incomplete.
  if (!texture.IsComplete(base, about->level > base ? last : base)) return CL_INVALID_GL_OBJECT;
  const LevelShape shape = texture.Shape(about->target, about->level);
  if (shape.width <= 0 || shape.height <= 0 || shape.depth <= 0) return CL_INVALID_GL_OBJECT;
  // CL_INVALID_OPERATION if texture is a GL texture object created with a border width value
  // greater than zero.
  if (!caps.version.es && !caps.core_profile && about->target != GL_TEXTURE_RECTANGLE &&
      texture.OfLevel(about->level, kTextureBorder) > 0) {
    return CL_INVALID_OPERATION;
  }
  about->width = static_cast<size_t>(shape.width);
  about->height = static_cast<size_t>(shape.height);
  about->depth = static_cast<size_t>(shape.depth);
  about->format = texture.Format(about->level);
  // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if the OpenGL texture internal format does not map to a
  // supported OpenCL image format.
  if (about->format == nullptr) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  about->bytes = about->elements() * about->format->element_bytes;
  return CL_SUCCESS;
}

class TextureHolding final : public GlHolding {
 public:
  TextureHolding(const GlDescription& about, const GlContexts::Unit& unit, const LevelShape& shape,
                 std::vector<GLuint> framebuffers, std::unique_ptr<GlTexelRead> texels,
                 const GlRead& read, GLuint own_texture)
      : unit_(unit),
        shape_(shape),
        framebuffers_(std::move(framebuffers)),
        texels_(std::move(texels)),
        read_(read),
        own_texture_(own_texture) {
    about_ = about;
  }

  size_t context() const override { return unit_.context; }
  size_t packed_room() const override { return about_.elements() * read_.element_bytes; }
  bool packs_exactly() const override { return read_.exact; }
  void Narrow(const uint8_t* packed_in_buffer, uint8_t* packed) override {
    if (about_.format->has_stencil()) {
      stencils_.resize(about_.elements());
      SplitDepthStencils(*about_.format, packed_in_buffer, about_.elements(), packed,
                         stencils_.data());
      return;
    }
    if (read_.exact) return GlHolding::Narrow(packed_in_buffer, packed);
    NarrowElements(*about_.format, read_, packed_in_buffer, about_.elements(), packed);
  }

  size_t unpack_room() const override {
    return about_.format->has_stencil() ? packed_room() : about_.bytes;
  }
  void Widen(const uint8_t* packed, uint8_t* in_buffer) const override {
    if (!about_.format->has_stencil()) return GlHolding::Widen(packed, in_buffer);
    JoinDepthStencils(*about_.format, packed, stencils_.data(), about_.elements(), in_buffer);
  }

  cl_int Pack(GlContexts& contexts, GLuint buffer) override {
    if (!contexts.UseUnit(unit_)) return CL_OUT_OF_RESOURCES;
    if (!IsAsDescribed(contexts)) return CL_INVALID_GL_OBJECT;
    if (texels_ != nullptr) return PackTexels(contexts, buffer);
    const GlFunctions& gl = contexts.gl();
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
    bool read = true;
    if (framebuffers_.empty()) {
      gl.GetTexImage(about_.target, about_.level, read_.format, read_.type, nullptr);
    } else {
      read = ReadLayers(gl);
    }
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    const cl_int status = contexts.TakeError(CL_INVALID_GL_OBJECT);
    return read ? status : CL_INVALID_GL_OBJECT;
  }

  cl_int Unpack(GlContexts& contexts, GLuint buffer) override {
    if (!contexts.UseUnit(unit_)) return CL_OUT_OF_RESOURCES;
    if (!IsAsDescribed(contexts)) return CL_INVALID_GL_OBJECT;
    const GlFunctions& gl = contexts.gl();
    if (own_texture_ != 0) {
      blit_.Write(contexts, about_, buffer, framebuffers_.front());
      return contexts.TakeError(CL_INVALID_GL_OBJECT);
    }
    const GLsizei width = static_cast<GLsizei>(about_.width);
    const GLsizei height = static_cast<GLsizei>(about_.height);
    const GLenum format = about_.format->transfer_format;
    const GLenum type = about_.format->transfer_type;
    gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer);
    if (about_.target == GL_TEXTURE_1D) {
      gl.TexSubImage1D(about_.target, about_.level, 0, width, format, type, nullptr);
    } else if (HasLayers(about_.target)) {
      gl.TexSubImage3D(about_.target, about_.level, 0, 0, 0, width, height,
                       static_cast<GLsizei>(about_.depth), format, type, nullptr);
    } else {
      gl.TexSubImage2D(about_.target, about_.level, 0, 0, width, height, format, type, nullptr);
    }
    gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    return contexts.TakeError(CL_INVALID_GL_OBJECT);
  }

  bool PrepareShaders(GlContexts& contexts) override {
    const GLenum format = GlCopier::FormatOf(*about_.format);
    if (about_.target != GL_TEXTURE_2D || own_texture_ != 0 || format == 0) return false;
    if (!contexts.UseUnit(unit_) || contexts.copier() == nullptr) return false;
    // Section 8.26: by class, the elements of other formats could not be taken for words.
    if (BoundTexture(contexts.gl(), contexts.caps(), about_.target)
            .Parameter(GL_IMAGE_FORMAT_COMPATIBILITY_TYPE) !=
        GL_IMAGE_FORMAT_COMPATIBILITY_BY_SIZE) {
      return false;
    }
    image_unit_ = contexts.copier()->Hold(
        contexts, unit_.context,
        {.name = about_.name, .level = about_.level, .format = format, .bytes = about_.bytes});
    return image_unit_.has_value();
  }

  std::optional<cl_int> CopyByShader(GlContexts& contexts, GLuint buffer, bool pack) override {
    if (!image_unit_ || !contexts.UseUnit(unit_)) return std::nullopt;
    if (!IsAsImageUnitsSeeIt(BoundTexture(contexts.gl(), contexts.caps(), about_.target)))
      return std::nullopt;
    return contexts.copier()->Run(contexts, {.unit = *image_unit_,
                                             .format = GlCopier::FormatOf(*about_.format),
                                             .buffer = buffer,
                                             .width = about_.width,
                                             .height = about_.height,
                                             .bytes = about_.bytes,
                                             .pack = pack});
  }

  void Drop(GlContexts& contexts) override {
    if (image_unit_ && contexts.UseUnit(unit_))
      contexts.copier()->Release(contexts, unit_.context, *image_unit_);
    contexts.ReturnUnit(unit_);
    const GlFunctions& gl = contexts.gl();
    blit_.Drop(gl);
    if (texels_ != nullptr) texels_->Drop();
    if (!framebuffers_.empty()) {
      gl.DeleteFramebuffers(static_cast<GLsizei>(framebuffers_.size()), framebuffers_.data());
    }
    if (own_texture_ != 0) gl.DeleteTextures(1, &own_texture_);
  }

 private:
  // The application may have given the level another image.
  bool IsAsDescribed(GlContexts& contexts) const {
    return BoundTexture(contexts.gl(), contexts.caps(), about_.target)
               .Shape(about_.target, about_.level) == shape_;
  }

  // OpenGL 4.6, section 8.26: an image unit's reads of a texture that is not complete (section
  // 8.17) give zero, and its writes are lost, without an error. The same holds of a level that the
  // parameters leave out. They, the filters among them, and the levels are the application's to
  // change: this is asked before each copy.
  bool IsAsImageUnitsSeeIt(const BoundTexture& texture) const {
    GLint base = 0;
    GLint last = 0;
    texture.Levels(&base, &last);
    if (about_.level < base || about_.level > last) return false;
    const LevelShape shape = texture.Shape(about_.target, about_.level);
    if (shape.width != static_cast<GLint>(about_.width) ||
        shape.height != static_cast<GLint>(about_.height) ||
        static_cast<GLenum>(shape.internal_format) != about_.format->internal_format) {
      return false;
    }
    const GLint min = texture.Parameter(GL_TEXTURE_MIN_FILTER);
    const GLint mag = texture.Parameter(GL_TEXTURE_MAG_FILTER);
    // Section 8.17: integers are not interpolated.
    if (about_.format->is_integer() &&
        (mag != GL_NEAREST || (min != GL_NEAREST && min != GL_NEAREST_MIPMAP_NEAREST))) {
      return false;
    }
    const bool one_level = min == GL_NEAREST || min == GL_LINEAR;
    return texture.IsComplete(base, one_level && about_.level == base ? base : last);
  }

  cl_int PackTexels(GlContexts& contexts, GLuint buffer) {
    const BoundTexture texture(contexts.gl(), contexts.caps(), about_.target);
    GLint base = 0;
    GLint last = 0;
    texture.Levels(&base, &last);
    const bool seen = about_.level >= base && about_.level <= last &&
                      texture.IsComplete(base, about_.level > base ? last : base);
    if (!seen) return CL_INVALID_GL_OBJECT;
    return texels_->Run(contexts, about_, unit_.unit, base, buffer);
  }

  // False if a layer cannot be read, as of a level that the parameters leave out now.
  bool ReadLayers(const GlFunctions& gl) {
    const size_t layer_bytes = about_.width * about_.height * read_.element_bytes;
    size_t offset = 0;
    bool complete = true;
    for (const GLuint framebuffer : framebuffers_) {
      gl.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
      complete = gl.CheckFramebufferStatus(GL_READ_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
      if (!complete) break;
      // An offset into the pack buffer, which the type of the parameter dates from before.
      gl.ReadPixels(0, 0, static_cast<GLsizei>(about_.width), static_cast<GLsizei>(about_.height),
                    read_.format, read_.type, reinterpret_cast<void*>(offset));
      offset += layer_bytes;
    }
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, 0);
    return complete;
  }

  const GlContexts::Unit unit_;
  const LevelShape shape_;
  const std::vector<GLuint> framebuffers_;     // One per layer, in OpenGL ES.
  const std::unique_ptr<GlTexelRead> texels_;  // There, of what no framebuffer takes.
  const GlRead read_;
  const GLuint own_texture_;  // Of an EGLImage; else 0.
  GlBlit blit_;               // To that.
  std::optional<GLuint> image_unit_;
  // As the last acquire found them: what a release writes beside the depth. A copy by GL of depth
  // alone would not do (gl_read.h).
  std::vector<uint8_t> stencils_;
};

// One framebuffer per layer of the level, in the current context, and how they can be read.
// CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if they cannot.
cl_int AttachLayers(GlContexts& contexts, const GlDescription& about,
                    std::vector<GLuint>* framebuffers, GlRead* read) {
  const GlFunctions& gl = contexts.gl();
  framebuffers->resize(about.depth);
  gl.GenFramebuffers(static_cast<GLsizei>(about.depth), framebuffers->data());
  std::optional<GlRead> chosen;
  for (size_t layer = 0; layer < about.depth; ++layer) {
    gl.BindFramebuffer(GL_FRAMEBUFFER, (*framebuffers)[layer]);
    if (HasLayers(about.target)) {
      gl.FramebufferTextureLayer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, about.name, about.level,
                                 static_cast<GLint>(layer));
    } else {
      gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, about.target, about.name,
                              about.level);
    }
    if (layer > 0) continue;
    if (gl.CheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) break;
    chosen = ChooseGlRead(contexts, *about.format);
  }
  gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
  cl_int status = contexts.TakeError(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  if (status == CL_SUCCESS && !chosen) status = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  if (status != CL_SUCCESS) {
    gl.DeleteFramebuffers(static_cast<GLsizei>(about.depth), framebuffers->data());
    return status;
  }
  *read = *chosen;
  return CL_SUCCESS;
}

// The texture is bound to the unit. Takes the unit over on success.
cl_int HoldBound(GlContexts& contexts, const GlContexts::Unit& unit, GlDescription about,
                 GLuint own_texture, std::unique_ptr<GlHolding>* out) {
  const BoundTexture texture(contexts.gl(), contexts.caps(), about.target);
  cl_int status = DescribeLevel(texture, contexts.caps(), &about);
  if (status != CL_SUCCESS) return status;
  // Section 9.9.1: with stencil images "can only be created using the clCreateFromGLTexture API",
  // not of EGLImages.
  if (own_texture != 0 && about.format->has_stencil()) return CL_IMAGE_FORMAT_NOT_SUPPORTED;
  std::vector<GLuint> framebuffers;
  std::unique_ptr<GlTexelRead> texels;
  GlRead read = DirectGlRead(*about.format);
  if (contexts.caps().version.es) {
    status = AttachLayers(contexts, about, &framebuffers, &read);
    // An EGLImage is written through its framebuffer as well.
    if (status == CL_INVALID_IMAGE_FORMAT_DESCRIPTOR && own_texture == 0) {
      framebuffers.clear();
      texels = GlTexelRead::Make(contexts, about);
      if (texels != nullptr) status = CL_SUCCESS;
    }
    if (status != CL_SUCCESS) return status;
  }
  // For queries the application's name: an EGLImage has none.
  if (own_texture != 0) about.name = 0;
  *out = std::make_unique<TextureHolding>(about, unit, texture.Shape(about.target, about.level),
                                          std::move(framebuffers), std::move(texels), read,
                                          own_texture);
  return CL_SUCCESS;
}

// A buffer texture's bytes are its buffer's.
cl_int HoldBufferTexture(GlContexts& contexts, GlDescription about,
                         std::unique_ptr<GlHolding>* out) {
  if (!contexts.caps().texture_buffer) return CL_INVALID_GL_OBJECT;
  // "If texture_target is GL_TEXTURE_BUFFER, miplevel must be 0."
  if (about.level != 0) return CL_INVALID_MIP_LEVEL;
  const GlFunctions& gl = contexts.gl();
  if (!contexts.Use(0)) return CL_OUT_OF_RESOURCES;
  contexts.UseScratchUnit();
  cl_int status = Bind(contexts, GL_TEXTURE_BUFFER, about.name);
  if (status != CL_SUCCESS) return status;
  const BoundTexture texture(gl, contexts.caps(), GL_TEXTURE_BUFFER);
  about.width = static_cast<size_t>(std::max(texture.OfLevel(0, GL_TEXTURE_WIDTH), 0));
  about.format = texture.Format(0);
  const GLint buffer = texture.OfLevel(0, GL_TEXTURE_BUFFER_DATA_STORE_BINDING);
  const GLint offset =
      contexts.caps().texture_buffer_range ? texture.OfLevel(0, GL_TEXTURE_BUFFER_OFFSET) : 0;
  gl.BindTexture(GL_TEXTURE_BUFFER, 0);
  status = contexts.TakeError(CL_INVALID_GL_OBJECT);
  if (status != CL_SUCCESS) return status;
  if (buffer == 0 || about.width == 0) return CL_INVALID_GL_OBJECT;
  if (about.format == nullptr) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  about.bytes = about.width * about.format->element_bytes;
  return HoldGlBufferOfTexture(contexts, static_cast<GLuint>(buffer), offset, about, out);
}

}  // namespace

cl_int HoldGlTexture(GlContexts& contexts, GLenum target, GLint level, GLuint name,
                     std::unique_ptr<GlHolding>* out) {
  GlDescription about;
  about.type = TypeOf(target);
  about.name = name;
  about.target = target;
  about.level = level;
  if (target == GL_TEXTURE_BUFFER) return HoldBufferTexture(contexts, about, out);
  const std::optional<GlContexts::Unit> unit = contexts.TakeUnit(BindingTarget(target));
  if (!unit) return CL_OUT_OF_RESOURCES;
  cl_int status = Bind(contexts, unit->target, name);
  if (status == CL_SUCCESS) status = HoldBound(contexts, *unit, about, 0, out);
  if (status != CL_SUCCESS) contexts.ReturnUnit(*unit);
  contexts.TakeError(CL_SUCCESS);  // The error that a refused texture left behind.
  return status;
}

cl_int HoldEglImage(GlContexts& contexts, void* image, std::unique_ptr<GlHolding>* out) {
  const GlFunctions& gl = contexts.gl();
  // Section 9.16.4: CL_IMAGE_FORMAT_NOT_SUPPORTED if the OpenCL implementation is not able to
  // create a cl_mem compatible with the provided image for an implementation-dependent reason.
  if (!contexts.caps().egl_image) return CL_IMAGE_FORMAT_NOT_SUPPORTED;
  if (!contexts.binding().IsImage(image)) return CL_INVALID_EGL_OBJECT_KHR;
  const std::optional<GlContexts::Unit> unit = contexts.TakeUnit(GL_TEXTURE_2D);
  if (!unit) return CL_OUT_OF_RESOURCES;
  GlDescription about;
  about.type = CL_GL_OBJECT_TEXTURE2D;
  about.target = GL_TEXTURE_2D;
  gl.GenTextures(1, &about.name);
  GLuint texture = about.name;
  gl.BindTexture(GL_TEXTURE_2D, texture);
  // As storage where the GL has that: such a texture cannot lose the image by being given others.
  if (contexts.caps().egl_image_storage) {
    gl.EGLImageTargetTexStorageEXT(GL_TEXTURE_2D, image, nullptr);
  } else {
    gl.EGLImageTargetTexture2DOES(GL_TEXTURE_2D, image);
  }
  // GL_OES_EGL_image: INVALID_VALUE if image is no EGLImage, INVALID_OPERATION if the GL cannot
  // make a texture of it.
  const GLenum error = gl.GetError();
  cl_int status = CL_SUCCESS;
  if (error == GL_INVALID_VALUE) {
    status = CL_INVALID_EGL_OBJECT_KHR;
  } else if (error != GL_NO_ERROR) {
    status = CL_IMAGE_FORMAT_NOT_SUPPORTED;
  } else {
    status = HoldBound(contexts, *unit, about, texture, out);
    if (status != CL_SUCCESS && status != CL_OUT_OF_RESOURCES) {
      status = CL_IMAGE_FORMAT_NOT_SUPPORTED;
    }
  }
  if (status == CL_SUCCESS) return CL_SUCCESS;
  contexts.ReturnUnit(*unit);
  gl.DeleteTextures(1, &texture);
  contexts.TakeError(CL_SUCCESS);
  return status;
}

}  // namespace sluice::client::sharing
