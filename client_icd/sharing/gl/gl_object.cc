// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_object.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_icd/base/client_log.h"
#include "client_icd/sharing/core/ways.h"

namespace sluice::client::sharing {
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
                shadow = std::move(shadow_)](GlContexts& contexts) {
    holding->Drop(contexts);
    if (shadow != nullptr) shadow->Drop(contexts);
  });
}

// Elements that must be narrowed on the way are narrowed by the CPU.
bool GlObject::CanShadow() const {
  return GlShadow::IsPossible(share_->caps()) && holding_->packs_exactly();
}

absl::Status GlObject::AttachShadow(ShadowMemory memory) {
  // Shared with the job, which may outlive this call.
  struct Attaching {
    ShadowMemory memory;
    absl::StatusOr<std::shared_ptr<GlShadow>> shadow =
        absl::UnavailableError("OpenGL does not answer in time");
    bool by_shader = false;
  };
  auto attaching = std::make_shared<Attaching>();
  attaching->memory = std::move(memory);
  // The object outlives its jobs, which run in order: what it leaves behind is dropped by the last.
  const cl_int status = share_->Run([attaching, holding = holding_.get()](GlContexts& contexts) {
    const bool suits = !attaching->memory.on_cpu && contexts.caps().texels_as_named;
    const bool shaders = SharingNames("shader") || (suits && !SharingNames("no-shader"));
    attaching->shadow = GlShadow::Import(contexts, std::move(attaching->memory));
    if (attaching->shadow.ok() && shaders) attaching->by_shader = holding->PrepareShaders(contexts);
    return CL_SUCCESS;
  });
  if (status != CL_SUCCESS) return absl::UnavailableError("OpenGL does not answer in time");
  if (!attaching->shadow.ok()) return attaching->shadow.status();
  shadow_ = *std::move(attaching->shadow);
  if (ClientLogs(ClientLogLevel::kInfo)) {
    ClientLog(ClientLogLevel::kInfo,
              absl::StrCat("sharing: the GL object's shadow is copied by ",
                           attaching->by_shader ? "shaders" : "OpenGL's transfers"));
  }
  return absl::OkStatus();
}

cl_int GlObject::Copy(GlContexts& contexts, bool pack) {
  const std::optional<cl_int> copied = holding_->CopyByShader(contexts, shadow_->buffer(), pack);
  if (copied) return *copied;
  return pack ? holding_->Pack(contexts, shadow_->buffer())
              : holding_->Unpack(contexts, shadow_->buffer());
}

bool GlObject::CanSignal() const { return GlShadow::CanSignal(share_->caps()); }

absl::Status GlObject::AttachSemaphores(ShadowSemaphores semaphores, std::function<void()> stuck) {
  struct Attaching {
    ShadowSemaphores semaphores;
    absl::Status status = absl::UnavailableError("OpenGL does not answer in time");
  };
  auto attaching = std::make_shared<Attaching>();
  attaching->semaphores = std::move(semaphores);
  stuck_ = std::move(stuck);
  const cl_int status = share_->Run([attaching, shadow = shadow_.get()](GlContexts& contexts) {
    attaching->status = shadow->ImportSemaphores(contexts, std::move(attaching->semaphores));
    return CL_SUCCESS;
  });
  return status == CL_SUCCESS ? attaching->status
                              : absl::UnavailableError("OpenGL does not answer in time");
}

// Looks whether the enqueued work ends, and with it the signal that somebody waits for. This is
// done later, since nobody waits for the look.
void GlObject::Watch(GLsync fence) {
  share_->Post([fence, stuck = stuck_](GlContexts& contexts) {
    const cl_int status = contexts.Wait(fence, absl::Now() + kGlPatience);
    contexts.gl().DeleteSync(fence);
    if (status != CL_SUCCESS) stuck();
  });
}

cl_int GlObject::CopyToShadow(ShadowSync sync, absl::Time deadline) {
  GlContexts& contexts = *share_->contexts();
  if (contexts.closed()) return CL_INVALID_GL_OBJECT;
  cl_int status = Copy(contexts, /*pack=*/true);
  if (status != CL_SUCCESS) return status;
  if (sync == ShadowSync::kHost) return contexts.Finish(deadline);
  const GlFunctions& gl = contexts.gl();
  status = shadow_->Signal(contexts);
  const GLsync fence =
      status == CL_SUCCESS ? gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0) : nullptr;
  gl.Flush();
  if (fence == nullptr) return status != CL_SUCCESS ? status : CL_OUT_OF_RESOURCES;
  Watch(fence);
  return CL_SUCCESS;
}

cl_int GlObject::CopyFromShadow(ShadowSync sync, absl::Time deadline) {
  GlContexts& contexts = *share_->contexts();
  if (contexts.closed()) return CL_INVALID_GL_OBJECT;
  cl_int status = CL_SUCCESS;
  if (sync == ShadowSync::kSemaphore) {
    // In the context that copies: what another waits for does not hold this one up.
    if (!contexts.Use(holding_->context())) return CL_OUT_OF_RESOURCES;
    status = shadow_->Wait(contexts);
  }
  if (status == CL_SUCCESS) status = Copy(contexts, /*pack=*/false);
  const cl_int finished = contexts.Finish(deadline);
  // The worker has died before its signal, perhaps: the context must not be left waiting.
  if (finished != CL_SUCCESS && sync == ShadowSync::kSemaphore) shadow_->Unblock(contexts);
  return status != CL_SUCCESS ? status : finished;
}

NativeKey GlObject::key() const {
  return {about().name, static_cast<uint32_t>(about().level),
          static_cast<uint32_t>(about().target)};
}

cl_int GlObject::Fetch(uint8_t* packed, absl::Time deadline) {
  GlContexts& contexts = *share_->contexts();
  if (contexts.closed()) return CL_INVALID_GL_OBJECT;
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
  if (contexts.closed()) return CL_INVALID_GL_OBJECT;
  const GlFunctions& gl = contexts.gl();
  const size_t bytes = holding_->unpack_room();
  const GLuint buffer = contexts.StagingBuffer(bytes);
  if (buffer == 0) return CL_OUT_OF_RESOURCES;
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  void* mapped = gl.MapBufferRange(GL_COPY_WRITE_BUFFER, 0, static_cast<GLsizeiptr>(bytes),
                                   GL_MAP_WRITE_BIT | GL_MAP_INVALIDATE_BUFFER_BIT);
  bool whole = mapped != nullptr;
  if (whole) {
    holding_->Widen(packed, static_cast<uint8_t*>(mapped));
    whole = gl.UnmapBuffer(GL_COPY_WRITE_BUFFER) == GL_TRUE;
  }
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
  const cl_int error = contexts.TakeError(CL_OUT_OF_RESOURCES);
  if (!whole || error != CL_SUCCESS) return CL_OUT_OF_RESOURCES;
  const cl_int status = holding_->Unpack(contexts, buffer);
  return status != CL_SUCCESS ? status : contexts.Finish(deadline);
}

}  // namespace sluice::client::sharing
