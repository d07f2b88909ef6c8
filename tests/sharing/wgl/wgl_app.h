// SPDX-License-Identifier: Apache-2.0
// The choices that only an application with WGL has. Thread-safe: no state.
#pragma once

#include "tests/sharing/gl_app.h"

namespace sluice::gltest {

// As GlApp::Make, with a window that has one buffer alone.
std::unique_ptr<GlApp> MakeSingleBuffered(std::string* why);

}  // namespace sluice::gltest
