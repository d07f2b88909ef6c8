// SPDX-License-Identifier: Apache-2.0
// A memory object made from another API's object (OpenGL, EGL, gralloc, Direct3D, the daemon's own
// resources), as memory objects and kernel arguments see it. client_icd/sharing implements both;
// those who use them name no API.
#pragma once

#include <CL/cl.h>

#include <cstdint>
#include <memory>

namespace sluice::client {

class MemObject;
class Session;

// True while OpenCL may use the memory. Shared by the memory object, by what is made from it, and
// by kernel arguments, which keep no object alive. Thread-safe.
class UseGate {
 public:
  virtual ~UseGate() = default;

  // For every command that uses the memory: CL_SUCCESS, or the API's code while the object is not
  // acquired. `writes`: the command may change the bytes; CL_INVALID_OPERATION if it must not.
  virtual cl_int Use(bool writes) = 0;

  // From a memory object's constructor to its destructor.
  virtual void AddHolder(const MemObject* memory) = 0;
  virtual void RemoveHolder(const MemObject* memory) = 0;
};

// The native object of one memory object, which owns it. Thread-safe.
class NativeBacking {
 public:
  virtual ~NativeBacking() = default;

  virtual std::shared_ptr<UseGate> gate() const = 0;
  // Its bytes travel by staging.
  virtual bool is_staged() const = 0;
  // For the memory object's destructor, before it is released on the wire.
  virtual void ReleaseAfterUse(Session& session, uint64_t memory_id) = 0;
};

}  // namespace sluice::client
