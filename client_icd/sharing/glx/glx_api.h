// SPDX-License-Identifier: Apache-2.0
// GLX and X11 as the application's process has them (gl_api.h). Thread-safe: constant once found.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "broker/os/dynamic_library.h"

namespace sluice::client::sharing {

// The beginning of xcb_setup_t, which is a server's answer to a connection byte for byte.
struct XcbSetup {
  uint8_t head[12];
  // "Each connection ... is assigned" a range of ids, for all that it creates.
  uint32_t resource_id_base;
  uint32_t resource_id_mask;
};

// X11's types are opaque here: a Display, a GLXContext, a GLXFBConfig are pointers, a
// drawable is a number.
struct GlxApi {
  using ErrorHandler = int (*)(void* display, void* error_event);
  void* (*GetProcAddressARB)(const unsigned char* name) = nullptr;
  int (*QueryContext)(void* display, void* context, int attribute, int* value) = nullptr;
  void** (*GetFBConfigs)(void* display, int screen, int* count) = nullptr;
  int (*GetFBConfigAttrib)(void* display, void* config, int attribute, int* value) = nullptr;
  void* (*CreateNewContext)(void* display, void* config, int render_type, void* share,
                            int direct) = nullptr;
  void (*DestroyContext)(void* display, void* context) = nullptr;
  unsigned long (*CreatePbuffer)(void* display, void* config, const int* attributes) = nullptr;
  void (*DestroyPbuffer)(void* display, unsigned long pbuffer) = nullptr;
  int (*MakeContextCurrent)(void* display, unsigned long draw, unsigned long read,
                            void* context) = nullptr;
  const char* (*QueryExtensionsString)(void* display, int screen) = nullptr;
  void* (*GetCurrentContext)() = nullptr;
  int* (*AddExtension)(void* display) = nullptr;  // XExtCodes: its number first.
  using CloseHook = int (*)(void* display, int* codes);
  CloseHook (*ESetCloseDisplay)(void* display, int extension, CloseHook hook) = nullptr;
  int (*QueryExtension)(void* display, const char* name, int* request, int* first_event,
                        int* first_error) = nullptr;
  ErrorHandler (*SetErrorHandler)(ErrorHandler handler) = nullptr;
  int (*Sync)(void* display, int discard) = nullptr;
  int (*Free)(void* memory) = nullptr;
  // Null in a process without libX11-xcb.
  void* (*GetXcbConnection)(void* display) = nullptr;
  const XcbSetup* (*GetXcbSetup)(void* connection) = nullptr;
  os::DynamicLibrary glx;
  os::DynamicLibrary x11;
  os::DynamicLibrary x11_xcb;
  os::DynamicLibrary xcb;

  // NotFoundError if the process has no GLX.
  static absl::StatusOr<GlxApi> Find();
};

}  // namespace sluice::client::sharing
