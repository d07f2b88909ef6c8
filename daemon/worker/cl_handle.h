// SPDX-License-Identifier: Apache-2.0
// Owners of driver handles: released through the driver's table, in one place per type.
// Thread-compatible.
#pragma once

#include <atomic>
#include <utility>

#include "daemon/worker/driver.h"

namespace sluice::worker {

inline void ReleaseHandle(cl_context handle) { cl().clReleaseContext(handle); }
inline void ReleaseHandle(cl_command_queue handle) { cl().clReleaseCommandQueue(handle); }
inline void ReleaseHandle(cl_mem handle) { cl().clReleaseMemObject(handle); }
inline void ReleaseHandle(cl_program handle) { cl().clReleaseProgram(handle); }
inline void ReleaseHandle(cl_kernel handle) { cl().clReleaseKernel(handle); }
inline void ReleaseHandle(cl_event handle) { cl().clReleaseEvent(handle); }
inline void ReleaseHandle(cl_sampler handle) { cl().clReleaseSampler(handle); }
inline void ReleaseHandle(cl_device_id handle) { cl().clReleaseDevice(handle); }

template <typename T>
class UniqueCl {
 public:
  UniqueCl() = default;
  explicit UniqueCl(T handle) : handle_(handle) {}
  UniqueCl(UniqueCl&& other) noexcept : handle_(other.release()) {}
  UniqueCl& operator=(UniqueCl&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueCl() { reset(); }

  T get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }
  T release() { return std::exchange(handle_, nullptr); }
  void reset(T handle = nullptr) {
    if (handle_ != nullptr) ReleaseHandle(handle_);
    handle_ = handle;
  }
  // For functions that return a handle through a pointer; whatever was owned is released first.
  T* out() {
    reset();
    return &handle_;
  }

 private:
  T handle_ = nullptr;
};

// A handle that one thread sets, once, while others may look whether it is there yet.
template <typename T>
class PublishedCl {
 public:
  PublishedCl() = default;
  PublishedCl(const PublishedCl&) = delete;
  PublishedCl& operator=(const PublishedCl&) = delete;
  PublishedCl& operator=(UniqueCl<T> handle) {
    handle_.store(handle.release(), std::memory_order_release);  // Pairs with the acquire in get.
    return *this;
  }
  ~PublishedCl() {
    if (get() != nullptr) ReleaseHandle(get());
  }

  T get() const { return handle_.load(std::memory_order_acquire); }
  explicit operator bool() const { return get() != nullptr; }

 private:
  std::atomic<T> handle_ = nullptr;
};

inline UniqueCl<cl_event> Share(cl_event event) {
  cl().clRetainEvent(event);
  return UniqueCl<cl_event>(event);
}

}  // namespace sluice::worker
