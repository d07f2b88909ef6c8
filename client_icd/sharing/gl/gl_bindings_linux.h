// SPDX-License-Identifier: Apache-2.0
// The bindings of Linux behind gl_binding.h, and what both need. Thread-safe: no state.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client_icd/sharing/gl/gl_binding.h"

namespace sluice::client::sharing {

absl::StatusOr<std::unique_ptr<GlBinding>> MakeEglBinding(const GlContextRef& ref);
absl::StatusOr<std::unique_ptr<GlBinding>> MakeGlxBinding(const GlContextRef& ref);

// GL's own functions, for an EGL or GLX whose lookup gives only those of extensions; null if no
// library of the process has it.
void* FindInGlLibraries(const char* function);

}  // namespace sluice::client::sharing
