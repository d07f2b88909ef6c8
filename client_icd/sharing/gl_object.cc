// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl_object.h"

#include <cstring>
#include <utility>

namespace sluice::sharing {

cl_int GlObject::Make(std::shared_ptr<GlShare> share, Hold hold, std::unique_ptr<GlObject>* out) {
  // Shared with the job, which may outlive this call.
  auto holding = std::make_shared<std::unique_ptr<GlHolding>>();
  const cl_int status = share->Run([hold = std::move(hold), holding](GlContexts& contexts) {
    return hold(contexts, holding.get());
  });
  if (status != CL_SUCCESS) return status;
  out->reset(new GlObject(std::move(share), std::move(*holding)));
  return CL_SUCCESS;
}

GlObject::~GlObject() {
  share_->Post([holding = std::shared_ptr<GlHolding>(std::move(holding_)),
                shadow = std::shared_ptr<GlShadow>(std::move(shadow_))](GlContexts& contexts) {
    holding->Drop(contexts);
    if (shadow != nullptr) shadow->Drop(contexts);
  });
}

// What must be narrowed on the way is narrowed by the CPU.
bool GlObject::CanShadow() const {
  return GlShadow::IsPossible(share_->caps()) && holding_->packs_exactly();
}

absl::Status GlObject::AttachShadow(ShadowMemory memory) {
  // Shared with the job, which may outlive this call.
  struct Attaching {
    ShadowMemory memory;
    absl::StatusOr<std::unique_ptr<GlShadow>> shadow =
        absl::UnavailableError("OpenGL does not answer in time");
  };
  auto attaching = std::make_shared<Attaching>();
  attaching->memory = std::move(memory);
  const cl_int status = share_->Run([attaching](GlContexts& contexts) {
    attaching->shadow = GlShadow::Import(contexts, std::move(attaching->memory));
    return CL_SUCCESS;
  });
  if (status != CL_SUCCESS) return absl::UnavailableError("OpenGL does not answer in time");
  if (!attaching->shadow.ok()) return attaching->shadow.status();
  shadow_ = *std::move(attaching->shadow);
  return absl::OkStatus();
}

cl_int GlObject::CopyToShadow(absl::Time deadline) {
  GlContexts& contexts = *share_->contexts();
  const cl_int status = holding_->Pack(contexts, shadow_->buffer());
  return status != CL_SUCCESS ? status : contexts.Finish(deadline);
}

cl_int GlObject::CopyFromShadow(absl::Time deadline) {
  GlContexts& contexts = *share_->contexts();
  const cl_int status = holding_->Unpack(contexts, shadow_->buffer());
  return status != CL_SUCCESS ? status : contexts.Finish(deadline);
}

NativeKey GlObject::key() const {
  return {about().name, static_cast<uint32_t>(about().level),
          static_cast<uint32_t>(about().target)};
}

cl_int GlObject::Fetch(uint8_t* packed, absl::Time deadline) {
  GlContexts& contexts = *share_->contexts();
  const GlFunctions& gl = contexts.gl();
  const size_t room = holding_->packed_room();
  const GLuint buffer = contexts.StagingBuffer(room);
  if (buffer == 0) return CL_OUT_OF_RESOURCES;
  cl_int status = holding_->Pack(contexts, buffer);
  if (status == CL_SUCCESS) status = contexts.Finish(deadline);
  if (status != CL_SUCCESS) return status;
  gl.BindBuffer(GL_COPY_READ_BUFFER, buffer);
  const void* mapped =
      gl.MapBufferRange(GL_COPY_READ_BUFFER, 0, static_cast<GLsizeiptr>(room), GL_MAP_READ_BIT);
  if (mapped != nullptr) {
    holding_->Narrow(static_cast<const uint8_t*>(mapped), packed);
    // False: the contents were lost in the meantime.
    if (gl.UnmapBuffer(GL_COPY_READ_BUFFER) != GL_TRUE) status = CL_OUT_OF_RESOURCES;
  } else {
    status = CL_OUT_OF_RESOURCES;
  }
  gl.BindBuffer(GL_COPY_READ_BUFFER, 0);
  const cl_int error = contexts.TakeError(CL_OUT_OF_RESOURCES);
  return status != CL_SUCCESS ? status : error;
}

cl_int GlObject::Store(const uint8_t* packed, absl::Time deadline) {
  GlContexts& contexts = *share_->contexts();
  const GlFunctions& gl = contexts.gl();
  const size_t bytes = about().bytes;
  const GLuint buffer = contexts.StagingBuffer(bytes);
  if (buffer == 0) return CL_OUT_OF_RESOURCES;
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  void* mapped = gl.MapBufferRange(GL_COPY_WRITE_BUFFER, 0, static_cast<GLsizeiptr>(bytes),
                                   GL_MAP_WRITE_BIT | GL_MAP_INVALIDATE_BUFFER_BIT);
  bool whole = mapped != nullptr;
  if (whole) {
    std::memcpy(mapped, packed, bytes);
    whole = gl.UnmapBuffer(GL_COPY_WRITE_BUFFER) == GL_TRUE;
  }
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
  const cl_int error = contexts.TakeError(CL_OUT_OF_RESOURCES);
  if (!whole || error != CL_SUCCESS) return CL_OUT_OF_RESOURCES;
  const cl_int status = holding_->Unpack(contexts, buffer);
  return status != CL_SUCCESS ? status : contexts.Finish(deadline);
}

}  // namespace sluice::sharing
