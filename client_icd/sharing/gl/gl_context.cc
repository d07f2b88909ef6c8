// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_context.h"

#include <CL/cl_gl.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "client_icd/base/api.h"
#include "client_icd/objects/context.h"
#include "client_icd/objects/device.h"
#include "client_icd/objects/endpoint.h"
#include "client_icd/objects/platform.h"
#include "client_icd/session/info.h"
#include "client_icd/sharing/gl/gl_image.h"

namespace sluice::client::sharing {
namespace {

// Of cl_khr_device_uuid.
constexpr cl_device_info kDeviceUuid = 0x106A;

uint64_t ValueOf(const PropertyList& list, uint64_t name) {
  const uint64_t* value = list.Find(name);
  return value == nullptr ? 0 : *value;
}

void* AsPointer(uint64_t value) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the list carries handles as numbers.
  return reinterpret_cast<void*>(value);
}

// Section 9.3.4. `kind` stays kNone if no GL context is named.
cl_int ReadContextRef(const PropertyList& list, GlContextRef* ref) {
  const uint64_t context = ValueOf(list, CL_GL_CONTEXT_KHR);
  const uint64_t egl = ValueOf(list, CL_EGL_DISPLAY_KHR);
  const uint64_t glx = ValueOf(list, CL_GLX_DISPLAY_KHR);
  const uint64_t wgl = ValueOf(list, CL_WGL_HDC_KHR);
  const uint64_t cgl = ValueOf(list, CL_CGL_SHAREGROUP_KHR);
  // CL_INVALID_OPERATION if more than one of the attributes CL_CGL_SHAREGROUP_KHR,
  // CL_EGL_DISPLAY_KHR, CL_GLX_DISPLAY_KHR, and CL_WGL_HDC_KHR is set to a non-default value ...
  const int bindings = (egl != 0) + (glx != 0) + (wgl != 0) + (cgl != 0);
  if (bindings > 1) return CL_INVALID_OPERATION;
  // ... if both of the attributes CL_CGL_SHAREGROUP_KHR and CL_GL_CONTEXT_KHR are, ...
  if (cgl != 0 && context != 0) return CL_INVALID_OPERATION;
  // ... or if a context or share group object was specified for one of CGL, EGL, GLX, or WGL and
  // the OpenGL implementation does not support that window-system binding API (GlShare::Open).
  if (cgl != 0) return CL_INVALID_OPERATION;
  // A display alone names no context.
  if (context == 0) return CL_SUCCESS;
  // CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR if the specified display and context attributes do not
  // identify a valid OpenGL or OpenGL ES context.
  if (bindings == 0) return CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR;
  // CL_INVALID_PROPERTY if CL_CONTEXT_INTEROP_USER_SYNC is specified: "OpenCL / OpenGL sharing does
  // not support" it.
  if (list.Find(CL_CONTEXT_INTEROP_USER_SYNC) != nullptr) return CL_INVALID_PROPERTY;
  using Kind = GlContextRef::Kind;
  ref->kind = egl != 0 ? Kind::kEgl : glx != 0 ? Kind::kGlx : Kind::kWgl;
  ref->display = AsPointer(egl + glx + wgl);  // All but one are 0.
  ref->context = AsPointer(context);
  return CL_SUCCESS;
}

// The platform's devices, the one that the GL context runs on first. Every device can share by
// staging, so that all of them "may be associated with" the context; the first is the current one:
// that of the same UUID, where both sides tell theirs.
cl_int DevicesOf(const Platform& platform, GlShare& share, std::vector<cl_device_id>* handles) {
  auto uuids = std::make_shared<std::vector<GlUuid>>();
  const cl_int status = share.Run([uuids](GlContexts& contexts) {
    *uuids = contexts.DeviceUuids();
    return CL_SUCCESS;
  });
  if (status != CL_SUCCESS) return status;
  for (Device* device : platform.devices()) {
    GlUuid uuid = {};
    const std::string* bytes = device->info().Find(kDeviceUuid);
    const bool known = bytes != nullptr && bytes->size() == uuid.size();
    if (known) std::memcpy(uuid.data(), bytes->data(), uuid.size());
    const bool same = known && std::find(uuids->begin(), uuids->end(), uuid) != uuids->end();
    handles->insert(same ? handles->begin() : handles->end(), device->handle());
  }
  return CL_SUCCESS;
}

// One of table 4.5's names that cl_khr_gl_sharing adds.
bool IsGlProperty(uint64_t name) {
  return name >= CL_GL_CONTEXT_KHR && name <= CL_CGL_SHAREGROUP_KHR;
}

cl_int OpenGlInterop(const PropertyList& list, std::vector<Interop>* out) {
  std::shared_ptr<GlShare> share;
  CL_RETURN_IF_ERROR(OpenGlShare(list, &share));
  if (share != nullptr) out->push_back({Api::kGl, std::move(share)});
  return CL_SUCCESS;
}

constexpr InteropExtension::Name kGlNames[] = {
    {"cl_khr_gl_sharing"},
    {"cl_khr_gl_event"},
    {"cl_khr_gl_depth_images", /*needs=*/"cl_khr_depth_images"},  // Section 9.9.
};

}  // namespace

cl_int OpenGlShare(const PropertyList& list, std::shared_ptr<GlShare>* out) {
  GlContextRef ref;
  CL_RETURN_IF_ERROR(ReadContextRef(list, &ref));
  if (ref.kind == GlContextRef::Kind::kNone) return CL_SUCCESS;
  return GlShare::Open(ref, out);
}

const InteropExtension kGlInterop = {
    .names = kGlNames,
    .has_context_property = IsGlProperty,
    .open = OpenGlInterop,
    .add_image_formats = AddGlFormats,
};

}  // namespace sluice::client::sharing

namespace sluice::client::api {

cl_int CL_API_CALL clGetGLContextInfoKHR(const cl_context_properties* properties,
                                         cl_gl_context_info param_name, size_t param_value_size,
                                         void* param_value, size_t* param_value_size_ret) noexcept {
  // Section 9.3.5: the list's "format and valid contents are identical" to those of
  // clCreateContext. But CL_INVALID_VALUE if an attribute name other than those specified in table
  // 4.5 is specified in properties, or if param_name is not one of the values listed.
  PropertyList list;
  if (!ReadProperties(properties, &list)) return CL_INVALID_VALUE;
  Platform* platform = nullptr;
  CL_RETURN_IF_ERROR(CheckContextProperties(list, CL_INVALID_VALUE, &platform));
  if (param_name != CL_CURRENT_DEVICE_FOR_GL_CONTEXT_KHR &&
      param_name != CL_DEVICES_FOR_GL_CONTEXT_KHR) {
    return CL_INVALID_VALUE;
  }
  if (platform == nullptr) platform = DefaultPlatform();
  if (platform == nullptr) return CL_INVALID_PLATFORM;
  std::shared_ptr<sharing::GlShare> share;
  CL_RETURN_IF_ERROR(sharing::OpenGlShare(list, &share));
  // "properties must identify a single valid GL context or GL share group object."
  if (share == nullptr) return CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR;
  std::vector<cl_device_id> devices;
  CL_RETURN_IF_ERROR(sharing::DevicesOf(*platform, *share, &devices));
  const InfoSink sink(param_value_size, param_value, param_value_size_ret);
  if (param_name == CL_DEVICES_FOR_GL_CONTEXT_KHR || devices.empty()) return sink.Array(devices);
  return sink.Value<cl_device_id>(devices.front());
}

}  // namespace sluice::client::api
