// SPDX-License-Identifier: Apache-2.0
// cl_khr_d3d10_sharing, cl_khr_d3d11_sharing and cl_nv_d3d11_sharing: one adapter for the three
// (OpenCL 2.2 Extension Specification, sections 9.6 and 9.8), with a traits class of d3d_traits.h
// as T. Here: contexts and devices. Resources are in d3d_object.h, memory objects made from them in
// d3d_memory.h, the entry points in d3d10.cc and d3d11.cc.
//
// References, which applications count: a context has one of its device, a memory object one of its
// resource, each given back with the last of the OpenCL object. A memory object that was acquired,
// or has a shadow, also has a texture or staging resource of ours and a query or fence, which count
// as the device's children until it goes.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client_icd/objects/extensions.h"
#include "client_icd/session/command_stream.h"
#include "client_icd/sharing/d3d/d3d_interop.h"
#include "client_icd/sharing/d3d/d3d_traits.h"

namespace sluice::client::sharing {

extern const InteropExtension kD3d10Interop;
extern const InteropExtension kD3d11Interop;

// Of a context. Thread-safe: constant.
template <typename T>
class D3dShare final : public D3dInterop {
 public:
  D3dShare(os::ComPtr<typename T::Device> device, bool user_sync, bool callers_only)
      : D3dInterop(user_sync, callers_only), device_(std::move(device)) {}
  ~D3dShare() override {
    if (CommandStream::HandlesHere()) thread()->ReleaseElsewhere([device = std::move(device_)] {});
  }

  static bool IsProperty(uint64_t name) {
    return name == static_cast<uint64_t>(T::kTokens.device_property);
  }
  // The device that the list names. CL_INVALID_D3D1x_DEVICE_KHR if it is none.
  static cl_int Open(const PropertyList& list, std::vector<Interop>* out) {
    const uint64_t* value = list.Find(static_cast<uint64_t>(T::kTokens.device_property));
    if (value == nullptr || *value == 0) return CL_SUCCESS;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the list carries pointers as numbers.
    auto device = os::ComPtr<typename T::Device>::Of(reinterpret_cast<IUnknown*>(*value));
    if (!device) return T::kTokens.invalid_device;
    const bool protects = Protect(device.get());
    out->push_back(
        {T::kTokens.api, std::shared_ptr<D3dInterop>(std::make_shared<D3dShare>(
                             std::move(device), HasUserSync(list), /*callers_only=*/!protects))});
    return CL_SUCCESS;
  }
  // The query is about D3D1x_RESOURCE_MISC_SHARED alone, which gives a resource a global handle
  // only; that is not imported: such a resource goes as any other.
  static std::optional<cl_int> ContextInfo(cl_context_info param_name, const InfoSink& sink) {
    if (param_name != T::kTokens.prefer_shared) return std::nullopt;
    return sink.Value<cl_bool>(CL_FALSE);
  }
  static D3dShare* Of(const Context& context) {
    return static_cast<D3dShare*>(FindInterop(context, T::kTokens.api));
  }

  typename T::Device* device() const { return device_.get(); }

 private:
  // Makes the device one that several threads may use; false if it cannot be.
  static bool Protect(typename T::Device* device) {
    if ((device->GetCreationFlags() & T::kSingleThreaded) != 0) return false;
    const auto multithread = os::ComPtr<typename T::Multithread>::Of(T::CommandsOf(device).get());
    if (!multithread) return false;
    multithread->SetMultithreadProtected(TRUE);
    return true;
  }

  os::ComPtr<typename T::Device> device_;  // Constant until the end.
};

// clGetDeviceIDsFromD3D1xKHR.
template <typename T>
cl_int GetD3dDevices(cl_platform_id platform_handle, cl_uint source, void* object, cl_uint set,
                     cl_uint num_entries, cl_device_id* devices, cl_uint* num_devices) {
  constexpr D3dTokens kTokens = T::kTokens;
  const Platform* platform = Platform::From(platform_handle);
  if (platform == nullptr) return CL_INVALID_PLATFORM;
  // CL_INVALID_VALUE if d3d_device_source or d3d_device_set is not a valid value.
  if (source != kTokens.device_source && source != kTokens.adapter_source) return CL_INVALID_VALUE;
  if (set != kTokens.preferred_devices && set != kTokens.all_devices) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(CheckDeviceList(num_entries, devices, num_devices));
  // A pointer that is no Direct3D object of that kind has no devices.
  const auto unknown = static_cast<IUnknown*>(object);
  const bool is_device = source == kTokens.device_source;
  const std::optional<AdapterLuid> luid =
      is_device ? LuidOfDxgiDevice(unknown) : LuidOfDxgiAdapter(unknown);
  const bool is_object = is_device ? bool(os::ComPtr<typename T::Device>::Of(unknown)) : bool(luid);
  if (!is_object) return CL_DEVICE_NOT_FOUND;
  return GiveDevices(*platform, luid, set == kTokens.all_devices, num_entries, devices,
                     num_devices);
}

}  // namespace sluice::client::sharing
