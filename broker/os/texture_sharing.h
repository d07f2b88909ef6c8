// SPDX-License-Identifier: Apache-2.0
//
// Direct3D textures that two processes have: the NT handle of one, and its keyed mutex, by which
// the process that has worked on it says which is next. Wine lacks both (shared handles,
// IDXGIResource1, IDXGIKeyedMutex), and only this file knows: statuses say so, and callers go
// another way.
//
// Two ends: the process that made the texture (an application's, through the driver), and the one
// that was given its handle (a worker). Thread-safe but for one KeyedMutex, whose calls come one at
// a time, on any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/os/scoped_handle.h"

struct IUnknown;

namespace sluice::os {

// The keys of a texture's keyed mutex: each says who takes it next. A new texture's is free for its
// maker.
inline constexpr uint64_t kTextureMakersKey = 0;
inline constexpr uint64_t kTextureUsersKey = 1;

class KeyedMutex {
 public:
  virtual ~KeyedMutex() = default;
  // kDeadlineExceeded: nobody has released it with this key in time. kDataLoss: its holder has
  // ended without a release, and nobody knows what the texture holds: never use it again.
  virtual absl::Status Acquire(uint64_t key, absl::Duration timeout) = 0;
  virtual absl::Status Release(uint64_t key) = 0;
};

// The maker's end. Windows only.
//
// The texture's NT handle as a descriptor (graphics_handle.h). kUnimplemented: this system has no
// such handles; else what Direct3D said.
absl::StatusOr<UniqueFd> ShareTexture(IUnknown* texture);
// kUnimplemented: it has none.
absl::StatusOr<std::shared_ptr<KeyedMutex>> KeyedMutexOf(IUnknown* texture);

// The adapter on which the other end opens it (daemon/worker/memory/keyed_mutex.h).
using AdapterId = std::array<uint8_t, 8>;  // As CL_DEVICE_LUID_KHR.

}  // namespace sluice::os
