// SPDX-License-Identifier: Apache-2.0
// The real OpenCL, as a table of function pointers: the only way from the worker to a driver, and
// the seam where tests put a fake one. Loaded once at the worker's start, before any other thread,
// from the system's ICD loader with Sluice's own ICD kept out of the loader's sight: a worker that
// forwarded to itself would recurse for ever. Immutable after Load().
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>

#include "absl/status/status.h"

namespace sluice::worker {

struct Driver {
#define DRIVER_FUNCTION(name) decltype(&::name) name = nullptr;
#include "daemon/worker/driver_functions.inc"

  // Functions of a newer OpenCL than the loader has stay null: handlers that need one answer
  // CL_INVALID_OPERATION.
  static absl::Status Load();
  static const Driver& Get();
  static void InstallForTesting(const Driver& driver);
};

// Shorthand for handlers.
inline const Driver& cl() { return Driver::Get(); }

// True if the name is that of a platform which Sluice's own ICD makes.
bool IsOwnPlatform(const std::string& platform_name);

}  // namespace sluice::worker
