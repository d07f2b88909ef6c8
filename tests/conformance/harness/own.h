// SPDX-License-Identifier: Apache-2.0
//
// Ownership of OpenCL handles in tests: one reference, released at the end of the scope.
// Owner: the test. Thread: any, one at a time. Trust: none needed.
#pragma once

#include <CL/cl.h>

#include <utility>

namespace sluice::conformance {

inline void ReleaseHandle(cl_context handle) { clReleaseContext(handle); }
inline void ReleaseHandle(cl_command_queue handle) { clReleaseCommandQueue(handle); }
inline void ReleaseHandle(cl_mem handle) { clReleaseMemObject(handle); }
inline void ReleaseHandle(cl_sampler handle) { clReleaseSampler(handle); }
inline void ReleaseHandle(cl_program handle) { clReleaseProgram(handle); }
inline void ReleaseHandle(cl_kernel handle) { clReleaseKernel(handle); }
inline void ReleaseHandle(cl_event handle) { clReleaseEvent(handle); }
inline void ReleaseHandle(cl_device_id handle) { clReleaseDevice(handle); }
inline void ReleaseHandle(void*) {}  // A mapped pointer is unmapped, not released.

template <typename T>
class Own {
 public:
  Own() = default;
  explicit Own(T handle) : handle_(handle) {}
  Own(Own&& other) noexcept : handle_(other.Give()) {}
  Own& operator=(Own&& other) noexcept {
    if (this != &other) {
      Reset();
      handle_ = other.Give();
    }
    return *this;
  }
  ~Own() { Reset(); }

  T get() const { return handle_; }
  operator T() const {
    return handle_;
  }  // NOLINT(google-explicit-constructor): passed to OpenCL calls as is.
  T Give() { return std::exchange(handle_, nullptr); }
  void Reset() {
    if (handle_ != nullptr) ReleaseHandle(Give());
  }
  // For calls that return a handle through a pointer; what was held is released first.
  T* Out() {
    Reset();
    return &handle_;
  }
  // For wait lists of one.
  const T* AsList() const { return &handle_; }

 private:
  T handle_ = nullptr;
};

}  // namespace sluice::conformance
