// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_shadow.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace sluice::client::sharing {
namespace {

// GL_EXT_memory_object and GL_EXT_memory_object_fd, which the core headers lack.
constexpr GLenum kDriverUuid = 0x9598;
constexpr GLenum kHandleTypeOpaqueFd = 0x9586;

std::string Hex(const uint8_t (&uuid)[16]) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(uuid), sizeof(uuid)));
}

class Finder {
 public:
  explicit Finder(const GlContexts& contexts) : binding_(contexts.binding()) {}
  template <typename Function>
  void operator()(Function* function, const char* name) const {
    *function = reinterpret_cast<Function>(binding_.Lookup(name));
  }

 private:
  const GlBinding& binding_;
};

}  // namespace

struct GlShadow::Functions {
  void(APIENTRYP CreateMemoryObjectsEXT)(GLsizei count, GLuint* objects) = nullptr;
  void(APIENTRYP DeleteMemoryObjectsEXT)(GLsizei count, const GLuint* objects) = nullptr;
  void(APIENTRYP ImportMemoryFdEXT)(GLuint object, GLuint64 size, GLenum type, GLint fd) = nullptr;
  void(APIENTRYP BufferStorageMemEXT)(GLenum target, GLsizeiptr size, GLuint object,
                                      GLuint64 offset) = nullptr;

  // The extension strings have been looked at before: the names are good.
  explicit Functions(const GlContexts& contexts) {
    const Finder find(contexts);
    find(&CreateMemoryObjectsEXT, "glCreateMemoryObjectsEXT");
    find(&DeleteMemoryObjectsEXT, "glDeleteMemoryObjectsEXT");
    find(&ImportMemoryFdEXT, "glImportMemoryFdEXT");
    find(&BufferStorageMemEXT, "glBufferStorageMemEXT");
  }
  bool complete() const {
    return CreateMemoryObjectsEXT != nullptr && DeleteMemoryObjectsEXT != nullptr &&
           ImportMemoryFdEXT != nullptr && BufferStorageMemEXT != nullptr;
  }
};

// GL_EXT_semaphore and GL_EXT_semaphore_fd.
struct GlShadow::SemaphoreFunctions {
  void(APIENTRYP GenSemaphoresEXT)(GLsizei count, GLuint* semaphores) = nullptr;
  void(APIENTRYP DeleteSemaphoresEXT)(GLsizei count, const GLuint* semaphores) = nullptr;
  void(APIENTRYP ImportSemaphoreFdEXT)(GLuint semaphore, GLenum type, GLint fd) = nullptr;
  void(APIENTRYP SignalSemaphoreEXT)(GLuint semaphore, GLuint buffer_count, const GLuint* buffers,
                                     GLuint texture_count, const GLuint* textures,
                                     const GLenum* layouts) = nullptr;
  void(APIENTRYP WaitSemaphoreEXT)(GLuint semaphore, GLuint buffer_count, const GLuint* buffers,
                                   GLuint texture_count, const GLuint* textures,
                                   const GLenum* layouts) = nullptr;

  explicit SemaphoreFunctions(const GlContexts& contexts) {
    const Finder find(contexts);
    find(&GenSemaphoresEXT, "glGenSemaphoresEXT");
    find(&DeleteSemaphoresEXT, "glDeleteSemaphoresEXT");
    find(&ImportSemaphoreFdEXT, "glImportSemaphoreFdEXT");
    find(&SignalSemaphoreEXT, "glSignalSemaphoreEXT");
    find(&WaitSemaphoreEXT, "glWaitSemaphoreEXT");
  }
  bool complete() const {
    return GenSemaphoresEXT != nullptr && DeleteSemaphoresEXT != nullptr &&
           ImportSemaphoreFdEXT != nullptr && SignalSemaphoreEXT != nullptr &&
           WaitSemaphoreEXT != nullptr;
  }
};

GlShadow::GlShadow() = default;
GlShadow::~GlShadow() = default;

bool GlShadow::IsPossible(const GlCaps& caps) { return caps.memory_object_fd; }

absl::StatusOr<std::shared_ptr<GlShadow>> GlShadow::Import(GlContexts& contexts,
                                                           ShadowMemory memory) {
  if (!contexts.Use(0)) return absl::UnavailableError("the GL context is gone");
  const GlFunctions& gl = contexts.gl();
  const Functions functions(contexts);
  if (!functions.complete() || gl.GetUnsignedBytevEXT == nullptr) {
    return absl::UnimplementedError("OpenGL lacks functions of GL_EXT_memory_object_fd");
  }
  // Elsewhere the same descriptor may be taken, and be other bytes.
  const std::vector<GlUuid> devices = contexts.DeviceUuids();
  const bool same_device = std::any_of(devices.begin(), devices.end(), [&](const GlUuid& uuid) {
    return std::equal(uuid.begin(), uuid.end(), std::begin(memory.device_uuid));
  });
  if (!same_device) {
    return absl::UnavailableError(
        absl::StrCat("OpenGL runs on another device than the worker's ", Hex(memory.device_uuid)));
  }
  GLubyte driver[16] = {};
  gl.GetUnsignedBytevEXT(kDriverUuid, driver);
  if (!std::equal(std::begin(driver), std::end(driver), std::begin(memory.driver_uuid))) {
    return absl::UnavailableError(absl::StrCat("OpenGL's driver is ", Hex(driver),
                                               ", the worker's ", Hex(memory.driver_uuid)));
  }
  const std::shared_ptr<GlShadow> shadow(new GlShadow);
  contexts.shadows().emplace(shadow.get(), shadow);
  functions.CreateMemoryObjectsEXT(1, &shadow->memory_);
  functions.ImportMemoryFdEXT(shadow->memory_, memory.allocation_bytes, kHandleTypeOpaqueFd,
                              memory.fd.get());
  // An import that succeeds has taken the descriptor; one that fails has not.
  if (contexts.TakeError(CL_INVALID_OPERATION) != CL_SUCCESS) {
    shadow->Drop(contexts);
    return absl::UnavailableError("OpenGL does not import the memory");
  }
  static_cast<void>(memory.fd.release());
  gl.GenBuffers(1, &shadow->buffer_);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, shadow->buffer_);
  functions.BufferStorageMemEXT(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(memory.bytes),
                                shadow->memory_, 0);
  GLint64 bytes = 0;  // A GL without errors says nothing else of a refusal.
  gl.GetBufferParameteri64v(GL_COPY_WRITE_BUFFER, GL_BUFFER_SIZE, &bytes);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
  if (contexts.TakeError(CL_INVALID_OPERATION) != CL_SUCCESS ||
      bytes < static_cast<GLint64>(memory.bytes)) {
    shadow->Drop(contexts);
    return absl::UnavailableError("OpenGL makes no buffer of the imported memory");
  }
  return shadow;
}

bool GlShadow::CanSignal(const GlCaps& caps) { return caps.semaphore_fd; }

absl::Status GlShadow::ImportSemaphores(GlContexts& contexts, ShadowSemaphores semaphores) {
  if (!contexts.Use(0)) return absl::UnavailableError("the GL context is gone");
  auto functions = std::make_unique<const SemaphoreFunctions>(contexts);
  if (!functions->complete())
    return absl::UnimplementedError("OpenGL lacks functions of GL_EXT_semaphore_fd");
  semaphore_functions_ = std::move(functions);
  const auto import = [&](os::UniqueFd fd, GLuint* semaphore) {
    semaphore_functions_->GenSemaphoresEXT(1, semaphore);
    semaphore_functions_->ImportSemaphoreFdEXT(*semaphore, kHandleTypeOpaqueFd, fd.get());
    if (contexts.TakeError(CL_INVALID_OPERATION) != CL_SUCCESS) return false;
    static_cast<void>(fd.release());  // Taken, as by an import of memory.
    return true;
  };
  if (import(std::move(semaphores.to_opencl), &to_opencl_) &&
      import(std::move(semaphores.from_opencl), &from_opencl_)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError("OpenGL does not import the semaphores");
}

cl_int GlShadow::Signal(GlContexts& contexts) {
  semaphore_functions_->SignalSemaphoreEXT(to_opencl_, 1, &buffer_, 0, nullptr, nullptr);
  return contexts.TakeError(CL_OUT_OF_RESOURCES);
}

cl_int GlShadow::Wait(GlContexts& contexts) {
  semaphore_functions_->WaitSemaphoreEXT(from_opencl_, 1, &buffer_, 0, nullptr, nullptr);
  return contexts.TakeError(CL_OUT_OF_RESOURCES);
}

void GlShadow::Unblock(GlContexts& contexts) {
  if (!contexts.UseAnother()) return;
  semaphore_functions_->SignalSemaphoreEXT(from_opencl_, 0, nullptr, 0, nullptr, nullptr);
  contexts.gl().Flush();
  contexts.TakeError(CL_SUCCESS);
}

void GlShadow::Drop(GlContexts& contexts) {
  const auto held = contexts.shadows().extract(this);
  if (held.empty() || !contexts.Use(0)) return;
  if (semaphore_functions_ != nullptr) {
    const GLuint semaphores[] = {to_opencl_, from_opencl_};
    semaphore_functions_->DeleteSemaphoresEXT(2, semaphores);
  }
  contexts.gl().DeleteBuffers(1, &buffer_);
  Functions(contexts).DeleteMemoryObjectsEXT(1, &memory_);
}

}  // namespace sluice::client::sharing
