// SPDX-License-Identifier: Apache-2.0
// cl_khr_semaphore: binary semaphores imported from eventfds.
#include <CL/cl_ext.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "tests/fake_cl/fake_objects.h"

_cl_semaphore_khr::~_cl_semaphore_khr() {
  if (fd >= 0) close(fd);
}

namespace sluice::fake {
namespace {

constexpr int kTimeoutMs = 10'000;

bool IsSignalled(int fd, int timeout_ms) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, timeout_ms) == 1;
}

void NoteMisuse() {
  const std::lock_guard lock(g_runtime->mu);
  ++g_runtime->misused_semaphores;
}

void Drop(cl_semaphore_khr object) {
  if (--object->references == 0) delete object;
}

// Takes the descriptor over, as the specification has it.
cl_semaphore_khr CL_API_CALL Create(cl_context, const cl_semaphore_properties_khr* properties,
                                    cl_int* status) {
  int fd = -1;
  bool binary = false;
  for (; *properties != 0; properties += 2) {
    if (properties[0] == CL_SEMAPHORE_TYPE_KHR)
      binary = properties[1] == CL_SEMAPHORE_TYPE_BINARY_KHR;
    if (properties[0] == CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR) fd = static_cast<int>(properties[1]);
  }
  *status = TakeFailure("clCreateSemaphoreWithPropertiesKHR");
  if (*status != CL_SUCCESS) return nullptr;
  const std::lock_guard lock(g_runtime->mu);
  if (!binary || fd < 0 || !g_runtime->gpu_semaphores) {
    *status = CL_INVALID_PROPERTY;
    return nullptr;
  }
  *status = CL_SUCCESS;
  auto* const made = new _cl_semaphore_khr;
  made->fd = fd;
  return made;
}

cl_int CL_API_CALL ReleaseSemaphore(cl_semaphore_khr semaphore) {
  const std::lock_guard lock(g_runtime->mu);
  Drop(semaphore);
  return CL_SUCCESS;
}

// A command keeps this until it has run.
class Kept {
 public:
  explicit Kept(cl_semaphore_khr semaphore) : semaphore_(semaphore) {
    const std::lock_guard lock(g_runtime->mu);
    ++semaphore_->references;
  }
  Kept(const Kept& other) : Kept(other.semaphore_) {}
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    const std::lock_guard lock(g_runtime->mu);
    Drop(semaphore_);
  }
  int fd() const { return semaphore_->fd; }

 private:
  const cl_semaphore_khr semaphore_;
};

cl_int CL_API_CALL Wait(cl_command_queue queue, cl_uint, const cl_semaphore_khr* semaphores,
                        const cl_semaphore_payload_khr*, cl_uint waits, const cl_event* list,
                        cl_event* event) {
  const cl_int failure = TakeFailure("clEnqueueWaitSemaphoresKHR");
  if (failure != CL_SUCCESS) return failure;
  return Submit(
      queue, CL_COMMAND_SEMAPHORE_WAIT_KHR, waits, list, event, [kept = Kept(semaphores[0])] {
        uint64_t payload = 0;
        const bool signalled =
            IsSignalled(kept.fd(), kTimeoutMs) && read(kept.fd(), &payload, sizeof(payload)) > 0;
        if (!signalled || payload != 1) NoteMisuse();
        return signalled ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
      });
}

cl_int CL_API_CALL Signal(cl_command_queue queue, cl_uint, const cl_semaphore_khr* semaphores,
                          const cl_semaphore_payload_khr*, cl_uint waits, const cl_event* list,
                          cl_event* event) {
  const cl_int failure = TakeFailure("clEnqueueSignalSemaphoresKHR");
  if (failure != CL_SUCCESS) return failure;
  return Submit(queue, CL_COMMAND_SEMAPHORE_SIGNAL_KHR, waits, list, event,
                [kept = Kept(semaphores[0])] {
                  if (IsSignalled(kept.fd(), 0)) NoteMisuse();
                  const uint64_t one = 1;
                  const bool written = write(kept.fd(), &one, sizeof(one)) > 0;
                  return written ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
                });
}

}  // namespace

void* FindSemaphoreFunction(const char* name) {
  const auto is = [name](const char* one) { return std::strcmp(name, one) == 0; };
  if (is("clCreateSemaphoreWithPropertiesKHR")) return reinterpret_cast<void*>(&Create);
  if (is("clReleaseSemaphoreKHR")) return reinterpret_cast<void*>(&ReleaseSemaphore);
  if (is("clEnqueueWaitSemaphoresKHR")) return reinterpret_cast<void*>(&Wait);
  if (is("clEnqueueSignalSemaphoresKHR")) return reinterpret_cast<void*>(&Signal);
  return nullptr;
}

}  // namespace sluice::fake
