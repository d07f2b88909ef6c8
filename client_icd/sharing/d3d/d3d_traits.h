// SPDX-License-Identifier: Apache-2.0
// Where Direct3D 10 and 11 differ, for d3d_share.h: types, tokens of the OpenCL extension, and the
// few calls that one has on the device, the other on a context, a query or a resource.
#pragma once

#include <CL/cl_d3d10.h>
#include <CL/cl_d3d11.h>
#include <d3d10.h>
#include <d3d11_4.h>

#include "broker/os/com_ptr.h"
#include "client_icd/sharing/core/api_rules.h"
#include "client_icd/sharing/d3d/d3d_fence.h"
#include "client_icd/sharing/d3d/d3d_format.h"

namespace sluice::client::sharing {

// Of an extension; the NV tokens of Direct3D 11 have the KHR ones' values.
struct D3dTokens {
  Api api;
  cl_uint device_source;
  cl_uint adapter_source;
  cl_uint preferred_devices;
  cl_uint all_devices;
  cl_context_properties device_property;
  cl_context_info prefer_shared;
  cl_int invalid_device;
  cl_int invalid_resource;
};

// Memory of a mapped resource.
struct D3dMapped {
  void* data = nullptr;
  UINT row_pitch = 0;    // Of a texture.
  UINT slice_pitch = 0;  // Of a 3D texture.
};

struct Direct3d10 {
  static constexpr D3dTokens kTokens = {
      .api = Api::kD3d10,
      .device_source = CL_D3D10_DEVICE_KHR,
      .adapter_source = CL_D3D10_DXGI_ADAPTER_KHR,
      .preferred_devices = CL_PREFERRED_DEVICES_FOR_D3D10_KHR,
      .all_devices = CL_ALL_DEVICES_FOR_D3D10_KHR,
      .device_property = CL_CONTEXT_D3D10_DEVICE_KHR,
      .prefer_shared = CL_CONTEXT_D3D10_PREFER_SHARED_RESOURCES_KHR,
      .invalid_device = CL_INVALID_D3D10_DEVICE_KHR,
      .invalid_resource = CL_INVALID_D3D10_RESOURCE_KHR};

  using Device = ID3D10Device;
  using Commands = ID3D10Device;
  using Multithread = ID3D10Multithread;
  using Predicate = ID3D10Predicate;
  using Resource = ID3D10Resource;
  using Buffer = ID3D10Buffer;
  using BufferDesc = D3D10_BUFFER_DESC;
  using Texture2d = ID3D10Texture2D;
  using Texture2dDesc = D3D10_TEXTURE2D_DESC;
  using Texture3d = ID3D10Texture3D;
  using Texture3dDesc = D3D10_TEXTURE3D_DESC;
  using Query = ID3D10Query;
  using QueryDesc = D3D10_QUERY_DESC;
  static constexpr auto kEventQuery = D3D10_QUERY_EVENT;
  static constexpr auto kImmutable = D3D10_USAGE_IMMUTABLE;
  static constexpr auto kStaging = D3D10_USAGE_STAGING;
  static constexpr UINT kCpuAccess = D3D10_CPU_ACCESS_READ | D3D10_CPU_ACCESS_WRITE;
  static constexpr UINT kSingleThreaded = D3D10_CREATE_DEVICE_SINGLETHREADED;
  static constexpr UINT kShaderResource = D3D10_BIND_SHADER_RESOURCE;
  static constexpr UINT kSharedKeyedMutex = D3D10_RESOURCE_MISC_SHARED_KEYEDMUTEX;
  static constexpr UINT kSharedNtHandle = 0;  // Direct3D 10 makes no textures with NT handles.
  using Fence = NoD3dFence;

  static os::ComPtr<Commands> CommandsOf(Device* device) {
    return os::ComPtr<Commands>::Share(device);
  }
  static void End(Commands*, Query* query) { query->End(); }
  static HRESULT IsDone(Commands*, Query* query) { return query->GetData(nullptr, 0, 0); }

  static HRESULT Map(Commands*, Resource* resource, D3dShape::Kind kind, bool write,
                     D3dMapped* out) {
    const D3D10_MAP how = write ? D3D10_MAP_WRITE : D3D10_MAP_READ;
    switch (kind) {
      case D3dShape::Kind::kBuffer:
        return static_cast<Buffer*>(resource)->Map(how, 0, &out->data);
      case D3dShape::Kind::kTexture2d: {
        D3D10_MAPPED_TEXTURE2D mapped = {};
        const HRESULT result = static_cast<Texture2d*>(resource)->Map(0, how, 0, &mapped);
        *out = {mapped.pData, mapped.RowPitch, 0};
        return result;
      }
      case D3dShape::Kind::kTexture3d: {
        D3D10_MAPPED_TEXTURE3D mapped = {};
        const HRESULT result = static_cast<Texture3d*>(resource)->Map(0, how, 0, &mapped);
        *out = {mapped.pData, mapped.RowPitch, mapped.DepthPitch};
        return result;
      }
    }
    return E_INVALIDARG;
  }
  static void Unmap(Commands*, Resource* resource, D3dShape::Kind kind) {
    switch (kind) {
      case D3dShape::Kind::kBuffer:
        return static_cast<Buffer*>(resource)->Unmap();
      case D3dShape::Kind::kTexture2d:
        return static_cast<Texture2d*>(resource)->Unmap(0);
      case D3dShape::Kind::kTexture3d:
        return static_cast<Texture3d*>(resource)->Unmap(0);
    }
  }
};

struct Direct3d11 {
  static constexpr D3dTokens kTokens = {
      .api = Api::kD3d11,
      .device_source = CL_D3D11_DEVICE_KHR,
      .adapter_source = CL_D3D11_DXGI_ADAPTER_KHR,
      .preferred_devices = CL_PREFERRED_DEVICES_FOR_D3D11_KHR,
      .all_devices = CL_ALL_DEVICES_FOR_D3D11_KHR,
      .device_property = CL_CONTEXT_D3D11_DEVICE_KHR,
      .prefer_shared = CL_CONTEXT_D3D11_PREFER_SHARED_RESOURCES_KHR,
      .invalid_device = CL_INVALID_D3D11_DEVICE_KHR,
      .invalid_resource = CL_INVALID_D3D11_RESOURCE_KHR};

  using Device = ID3D11Device;
  using Commands = ID3D11DeviceContext;
  using Multithread = ID3D11Multithread;
  using Predicate = ID3D11Predicate;
  using Resource = ID3D11Resource;
  using Buffer = ID3D11Buffer;
  using BufferDesc = D3D11_BUFFER_DESC;
  using Texture2d = ID3D11Texture2D;
  using Texture2dDesc = D3D11_TEXTURE2D_DESC;
  using Texture3d = ID3D11Texture3D;
  using Texture3dDesc = D3D11_TEXTURE3D_DESC;
  using Query = ID3D11Query;
  using QueryDesc = D3D11_QUERY_DESC;
  static constexpr auto kEventQuery = D3D11_QUERY_EVENT;
  static constexpr auto kImmutable = D3D11_USAGE_IMMUTABLE;
  static constexpr auto kStaging = D3D11_USAGE_STAGING;
  static constexpr UINT kCpuAccess = D3D11_CPU_ACCESS_READ | D3D11_CPU_ACCESS_WRITE;
  static constexpr UINT kSingleThreaded = D3D11_CREATE_DEVICE_SINGLETHREADED;
  static constexpr UINT kShaderResource = D3D11_BIND_SHADER_RESOURCE;
  static constexpr UINT kSharedKeyedMutex = D3D11_RESOURCE_MISC_SHARED_KEYEDMUTEX;
  static constexpr UINT kSharedNtHandle = D3D11_RESOURCE_MISC_SHARED_NTHANDLE;
  using Fence = D3d11Fence;

  static os::ComPtr<Commands> CommandsOf(Device* device) {
    os::ComPtr<Commands> commands;
    device->GetImmediateContext(commands.out());
    return commands;
  }
  static void End(Commands* commands, Query* query) { commands->End(query); }
  static HRESULT IsDone(Commands* commands, Query* query) {
    return commands->GetData(query, nullptr, 0, 0);
  }

  static HRESULT Map(Commands* commands, Resource* resource, D3dShape::Kind, bool write,
                     D3dMapped* out) {
    D3D11_MAPPED_SUBRESOURCE mapped = {};
    const HRESULT result =
        commands->Map(resource, 0, write ? D3D11_MAP_WRITE : D3D11_MAP_READ, 0, &mapped);
    *out = {mapped.pData, mapped.RowPitch, mapped.DepthPitch};
    return result;
  }
  static void Unmap(Commands* commands, Resource* resource, D3dShape::Kind) {
    commands->Unmap(resource, 0);
  }
};

}  // namespace sluice::client::sharing
