// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/d3d/dx9_share.h"

#include <dxvahd.h>

#include <algorithm>
#include <utility>

namespace sluice::client::sharing {
namespace {

struct AdapterProperty {
  uint64_t name;
  cl_dx9_media_adapter_type_khr type;
};
constexpr AdapterProperty kProperties[] = {
    {CL_CONTEXT_ADAPTER_D3D9_KHR, CL_ADAPTER_D3D9_KHR},
    {CL_CONTEXT_ADAPTER_D3D9EX_KHR, CL_ADAPTER_D3D9EX_KHR},
    {CL_CONTEXT_ADAPTER_DXVA_KHR, CL_ADAPTER_DXVA_KHR},
};

// A DXVA device does not tell its Direct3D device, but its surfaces do.
os::ComPtr<IDirect3DDevice9> DeviceOfDxva(IUnknown* object) {
  os::ComPtr<IDirect3DDevice9> device;
  const auto dxva = os::ComPtr<IDXVAHD_Device>::Of(object);
  os::ComPtr<IDirect3DSurface9> surface;
  constexpr UINT kSize = 16;
  if (dxva && SUCCEEDED(dxva->CreateVideoSurface(
                  kSize, kSize, static_cast<D3DFORMAT>(MAKEFOURCC('N', 'V', '1', '2')),
                  D3DPOOL_DEFAULT, 0, DXVAHD_SURFACE_TYPE_VIDEO_INPUT, 1, surface.out(), nullptr)))
    surface->GetDevice(device.out());
  return device;
}

os::ComPtr<IDirect3DDevice9> DeviceOf(cl_dx9_media_adapter_type_khr type, IUnknown* object) {
  switch (type) {
    case CL_ADAPTER_D3D9_KHR:
      return os::ComPtr<IDirect3DDevice9>::Of(object);
    case CL_ADAPTER_D3D9EX_KHR: {
      const auto device = os::ComPtr<IDirect3DDevice9Ex>::Of(object);
      return os::ComPtr<IDirect3DDevice9>::Share(device.get());
    }
    case CL_ADAPTER_DXVA_KHR:
      return DeviceOfDxva(object);
    default:
      return {};
  }
}

}  // namespace

std::optional<Dx9Adapter> Dx9Adapter::Of(cl_dx9_media_adapter_type_khr type, IUnknown* object) {
  os::ComPtr<IDirect3DDevice9> device = DeviceOf(type, object);
  if (!device) return std::nullopt;
  return Dx9Adapter{type, std::move(device),
                    os::ComPtr<IUnknown>::Share(type == CL_ADAPTER_DXVA_KHR ? object : nullptr)};
}

std::optional<AdapterLuid> Dx9Adapter::luid() const {
  os::ComPtr<IDirect3D9> direct3d;
  D3DDEVICE_CREATION_PARAMETERS parameters;
  if (FAILED(device->GetDirect3D(direct3d.out())) ||
      FAILED(device->GetCreationParameters(&parameters)))
    return std::nullopt;
  // Direct3D 9 tells LUIDs in its Ex form only.
  const auto ex = os::ComPtr<IDirect3D9Ex>::Of(direct3d.get());
  LUID luid;
  if (!ex || FAILED(ex->GetAdapterLUID(parameters.AdapterOrdinal, &luid))) return std::nullopt;
  return ToAdapterLuid(luid);
}

bool Dx9Adapter::is_multithreaded() const {
  D3DDEVICE_CREATION_PARAMETERS parameters;
  return SUCCEEDED(device->GetCreationParameters(&parameters)) &&
         (parameters.BehaviorFlags & D3DCREATE_MULTITHREADED) != 0;
}

bool Dx9Share::IsProperty(uint64_t name) {
  return std::any_of(std::begin(kProperties), std::end(kProperties),
                     [name](const AdapterProperty& one) { return one.name == name; });
}

cl_int Dx9Share::Open(const PropertyList& list, std::vector<Interop>* out) {
  std::vector<Dx9Adapter> adapters;
  bool callers_only = false;
  for (const AdapterProperty& property : kProperties) {
    const uint64_t* value = list.Find(property.name);
    if (value == nullptr || *value == 0) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the list carries pointers as numbers.
    std::optional<Dx9Adapter> adapter =
        Dx9Adapter::Of(property.type, reinterpret_cast<IUnknown*>(*value));
    if (!adapter) return CL_INVALID_DX9_MEDIA_ADAPTER_KHR;
    callers_only = callers_only || !adapter->is_multithreaded();
    adapters.push_back(*std::move(adapter));
  }
  if (adapters.empty()) return CL_SUCCESS;
  out->push_back({Api::kDx9Media, std::shared_ptr<D3dInterop>(std::make_shared<Dx9Share>(
                                      std::move(adapters), HasUserSync(list), callers_only))});
  return CL_SUCCESS;
}

const Dx9Adapter* Dx9Share::Find(cl_dx9_media_adapter_type_khr type) const {
  const auto it = std::find_if(adapters_.begin(), adapters_.end(),
                               [type](const Dx9Adapter& one) { return one.type == type; });
  return it == adapters_.end() ? nullptr : &*it;
}

namespace {
constexpr InteropExtension::Name kDx9Names[] = {{"cl_khr_dx9_media_sharing"}};
}  // namespace

const InteropExtension kDx9Interop = {
    .names = kDx9Names,
    .has_context_property = Dx9Share::IsProperty,
    .open = Dx9Share::Open,
};

}  // namespace sluice::client::sharing
