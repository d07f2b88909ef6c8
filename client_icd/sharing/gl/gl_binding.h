// SPDX-License-Identifier: Apache-2.0
// Contexts of our own in the share group of the application's, by the window-system binding that
// the application names: EGL, GLX or WGL. They are made with the application's configuration and
// API, with whatever reset notification it has (sharing demands the same), without errors if it is
// (gl_holding.h), and have no surface, or one of a single pixel.
//
// Owned by a GlShare; everything here runs on its thread but MakeGlBinding and IsCurrentHere, so
// that neither the application's current context nor its thread's EGL error is touched. The
// application's handles are asked about, not trusted, as far as its binding can say. A Display of X
// is a pointer, and a wrong one crashes as it does in any other call of X.
//
// GLX: our contexts are made on the application's Display, since drivers keep a screen per
// connection and objects of one screen are nothing in another. Our requests to Xlib there are made
// while the application waits in a call of ours (making and destroying contexts). The exception is
// binding another of our contexts, which without a drawable asks the server for nothing. So
// XInitThreads is needed only by programs that use their Display in several threads anyway. X
// errors of ours, which would end the process, are caught (glx_binding.cc). A program may close its
// Display before it releases OpenCL's objects: our contexts go while it waits in XCloseDisplay, and
// from then on nothing of GL or GLX is called for them.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"

namespace sluice::client::sharing {

// The GL context that the application named in its context properties.
struct GlContextRef {
  enum class Kind { kNone, kEgl, kGlx, kWgl };
  Kind kind = Kind::kNone;
  // A device context (HDC) for WGL. With Kind::kEgl, a context of null stands for one that shares
  // with nobody.
  void* display = nullptr;
  void* context = nullptr;
};

// OpenGL 3.2 is {.es = false, .number = 32}.
struct GlVersion {
  bool es = false;
  int number = 0;

  // Of the text that glGetString(GL_VERSION) gives; 0 for what is none.
  static GlVersion Parse(const char* text);
  // Fences, vertex array objects, level queries: the least that we work with.
  bool enough() const { return number >= (es ? 31 : 32); }
};

class GlNativeContext {
 public:
  virtual ~GlNativeContext() = default;
  virtual bool MakeCurrent() = 0;
};

class GlBinding {
 public:
  virtual ~GlBinding() = default;

  // First. InvalidArgumentError: display and context identify no context. UnavailableError: no
  // context can be made in its share group.
  virtual absl::Status Init() = 0;
  // Another context in the application's share group, current on this thread.
  virtual absl::StatusOr<std::unique_ptr<GlNativeContext>> CreateContext() = 0;
  // Any thread, once there is a context: names it, for others in its share group. It is ours, and
  // is there for as long as this is.
  virtual GlContextRef Sibling() const = 0;
  // True if its GL's memory objects are imported by descriptor, as the worker's are exported.
  virtual bool ImportsDescriptors() const = 0;
  // False if this is an EGL whose display says that the image is none of its own.
  virtual bool IsImage(void* image) const = 0;
  // A function of GL; null if it is nowhere. A context of ours is current.
  virtual void* Lookup(const char* function) const = 0;
  // Any thread: a context of this binding (and, for EGL, display) is current on it.
  virtual bool IsCurrentHere() const = 0;
  // The one that is current has the handle of the one that was named.
  virtual bool HasNamedHandle() const = 0;
  // Before the thread ends: what it held by itself is given back.
  virtual void LeaveThread() = 0;
  // At most once. `close` is called on the thread that closes the application's display, if one
  // does: it has our contexts destroyed on their own thread, and does not wait. That thread then
  // waits until they are gone, but not long.
  virtual void WhenDisplayCloses(std::function<void()> /*close*/) {}
  // Any thread: the display was closed. Contexts that are still there are left alone.
  virtual bool DisplayIsGone() const { return false; }
};

// On the application's thread: what can be done nowhere else while its context is current there
// (see wgl/wgl_binding.cc) is done here; no GL state changes. NotFoundError: the process has no
// such binding. Of the system that the build is for: gl_bindings_linux.cc or wgl/wgl_binding.cc.
absl::StatusOr<std::unique_ptr<GlBinding>> MakeGlBinding(const GlContextRef& ref);

// glGetString(GL_VERSION) of the context that is current on this thread.
GlVersion CurrentVersion(const std::function<void*(const char*)>& lookup);

}  // namespace sluice::client::sharing
