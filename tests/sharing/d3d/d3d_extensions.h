// SPDX-License-Identifier: Apache-2.0
// Direct3D 10 and 11 as types, and the OpenCL extensions that share with them: Khr10, Khr11 and
// Nv11, for typed tests. Thread-safe: no state.
#pragma once

#include <CL/cl_d3d10.h>
#include <CL/cl_d3d11.h>
#include <CL/cl_nv_d3d11_sharing.h>
#include <d3d10.h>
#include <d3d11_4.h>
#include <gtest/gtest.h>
#include <wrl/client.h>

namespace sluice::d3dtest {

template <typename T>
using Com = Microsoft::WRL::ComPtr<T>;

struct Mapped {
  const void* data = nullptr;
  UINT row_pitch = 0;
  UINT slice_pitch = 0;
};

struct Direct3d10 {
  using Device = ID3D10Device;
  using Commands = ID3D10Device;
  using Multithread = ID3D10Multithread;
  using Resource = ID3D10Resource;
  using Buffer = ID3D10Buffer;
  using BufferDesc = D3D10_BUFFER_DESC;
  using Texture2d = ID3D10Texture2D;
  using Texture2dDesc = D3D10_TEXTURE2D_DESC;
  using Texture3d = ID3D10Texture3D;
  using Texture3dDesc = D3D10_TEXTURE3D_DESC;
  using RenderTarget = ID3D10RenderTargetView;
  using InitialData = D3D10_SUBRESOURCE_DATA;
  using Predicate = ID3D10Predicate;
  using QueryDesc = D3D10_QUERY_DESC;
  static constexpr auto kOcclusion = D3D10_QUERY_OCCLUSION_PREDICATE;
  using Usage = D3D10_USAGE;
  static constexpr UINT kShaderResource = D3D10_BIND_SHADER_RESOURCE;
  static constexpr UINT kRenderTarget = D3D10_BIND_RENDER_TARGET;
  static constexpr UINT kVertexBuffer = D3D10_BIND_VERTEX_BUFFER;
  static constexpr UINT kCpuWrite = D3D10_CPU_ACCESS_WRITE;
  static constexpr UINT kCpuRead = D3D10_CPU_ACCESS_READ;
  static constexpr Usage kDefault = D3D10_USAGE_DEFAULT;
  static constexpr Usage kImmutable = D3D10_USAGE_IMMUTABLE;
  static constexpr Usage kDynamic = D3D10_USAGE_DYNAMIC;
  static constexpr Usage kStaging = D3D10_USAGE_STAGING;
  static constexpr UINT kSingleThreaded = D3D10_CREATE_DEVICE_SINGLETHREADED;
  static constexpr UINT kSharedKeyedMutex = D3D10_RESOURCE_MISC_SHARED_KEYEDMUTEX;

  static Com<Device> NewDevice(UINT flags);
  static Com<Commands> CommandsOf(Device* device) { return device; }
  static void Issue(Commands*, Predicate* predicate) {
    predicate->Begin();
    predicate->End();
  }
  static Mapped Map(Commands* commands, Buffer* staging);
  static Mapped Map(Commands* commands, Texture2d* staging);
  static Mapped Map(Commands* commands, Texture3d* staging);
  static void Unmap(Commands*, Buffer* staging) { staging->Unmap(); }
  static void Unmap(Commands*, Texture2d* staging) { staging->Unmap(0); }
  static void Unmap(Commands*, Texture3d* staging) { staging->Unmap(0); }
};

struct Direct3d11 {
  using Device = ID3D11Device;
  using Commands = ID3D11DeviceContext;
  using Multithread = ID3D11Multithread;
  using Resource = ID3D11Resource;
  using Buffer = ID3D11Buffer;
  using BufferDesc = D3D11_BUFFER_DESC;
  using Texture2d = ID3D11Texture2D;
  using Texture2dDesc = D3D11_TEXTURE2D_DESC;
  using Texture3d = ID3D11Texture3D;
  using Texture3dDesc = D3D11_TEXTURE3D_DESC;
  using RenderTarget = ID3D11RenderTargetView;
  using InitialData = D3D11_SUBRESOURCE_DATA;
  using Predicate = ID3D11Predicate;
  using QueryDesc = D3D11_QUERY_DESC;
  static constexpr auto kOcclusion = D3D11_QUERY_OCCLUSION_PREDICATE;
  using Usage = D3D11_USAGE;
  static constexpr UINT kShaderResource = D3D11_BIND_SHADER_RESOURCE;
  static constexpr UINT kRenderTarget = D3D11_BIND_RENDER_TARGET;
  static constexpr UINT kVertexBuffer = D3D11_BIND_VERTEX_BUFFER;
  static constexpr UINT kCpuWrite = D3D11_CPU_ACCESS_WRITE;
  static constexpr UINT kCpuRead = D3D11_CPU_ACCESS_READ;
  static constexpr Usage kDefault = D3D11_USAGE_DEFAULT;
  static constexpr Usage kImmutable = D3D11_USAGE_IMMUTABLE;
  static constexpr Usage kDynamic = D3D11_USAGE_DYNAMIC;
  static constexpr Usage kStaging = D3D11_USAGE_STAGING;
  static constexpr UINT kSingleThreaded = D3D11_CREATE_DEVICE_SINGLETHREADED;
  static constexpr UINT kSharedKeyedMutex = D3D11_RESOURCE_MISC_SHARED_KEYEDMUTEX;

  static Com<Device> NewDevice(UINT flags);
  static Com<Commands> CommandsOf(Device* device);
  static void Issue(Commands* commands, Predicate* predicate) {
    commands->Begin(predicate);
    commands->End(predicate);
  }
  static Mapped Map(Commands* commands, Resource* staging);
  static void Unmap(Commands* commands, Resource* staging) { commands->Unmap(staging, 0); }
};

// The extensions: their tokens, and the names of their functions.
struct Khr10 : Direct3d10 {
  static constexpr const char* kExtension = "cl_khr_d3d10_sharing";
  static constexpr const char* kPrefix = "D3D10";
  static constexpr const char* kSuffix = "KHR";
  static constexpr cl_uint kDeviceSource = CL_D3D10_DEVICE_KHR;
  static constexpr cl_uint kAdapterSource = CL_D3D10_DXGI_ADAPTER_KHR;
  static constexpr cl_uint kPreferred = CL_PREFERRED_DEVICES_FOR_D3D10_KHR;
  static constexpr cl_uint kAll = CL_ALL_DEVICES_FOR_D3D10_KHR;
  static constexpr cl_context_properties kProperty = CL_CONTEXT_D3D10_DEVICE_KHR;
  static constexpr cl_context_info kPreferShared = CL_CONTEXT_D3D10_PREFER_SHARED_RESOURCES_KHR;
  static constexpr cl_mem_info kResource = CL_MEM_D3D10_RESOURCE_KHR;
  static constexpr cl_image_info kSubresource = CL_IMAGE_D3D10_SUBRESOURCE_KHR;
  static constexpr cl_command_type kAcquire = CL_COMMAND_ACQUIRE_D3D10_OBJECTS_KHR;
  static constexpr cl_command_type kRelease = CL_COMMAND_RELEASE_D3D10_OBJECTS_KHR;
  static constexpr cl_int kInvalidDevice = CL_INVALID_D3D10_DEVICE_KHR;
  static constexpr cl_int kInvalidResource = CL_INVALID_D3D10_RESOURCE_KHR;
  static constexpr cl_int kAlreadyAcquired = CL_D3D10_RESOURCE_ALREADY_ACQUIRED_KHR;
  static constexpr cl_int kNotAcquired = CL_D3D10_RESOURCE_NOT_ACQUIRED_KHR;
};

struct Khr11 : Direct3d11 {
  static constexpr const char* kExtension = "cl_khr_d3d11_sharing";
  static constexpr const char* kPrefix = "D3D11";
  static constexpr const char* kSuffix = "KHR";
  static constexpr cl_uint kDeviceSource = CL_D3D11_DEVICE_KHR;
  static constexpr cl_uint kAdapterSource = CL_D3D11_DXGI_ADAPTER_KHR;
  static constexpr cl_uint kPreferred = CL_PREFERRED_DEVICES_FOR_D3D11_KHR;
  static constexpr cl_uint kAll = CL_ALL_DEVICES_FOR_D3D11_KHR;
  static constexpr cl_context_properties kProperty = CL_CONTEXT_D3D11_DEVICE_KHR;
  static constexpr cl_context_info kPreferShared = CL_CONTEXT_D3D11_PREFER_SHARED_RESOURCES_KHR;
  static constexpr cl_mem_info kResource = CL_MEM_D3D11_RESOURCE_KHR;
  static constexpr cl_image_info kSubresource = CL_IMAGE_D3D11_SUBRESOURCE_KHR;
  static constexpr cl_command_type kAcquire = CL_COMMAND_ACQUIRE_D3D11_OBJECTS_KHR;
  static constexpr cl_command_type kRelease = CL_COMMAND_RELEASE_D3D11_OBJECTS_KHR;
  static constexpr cl_int kInvalidDevice = CL_INVALID_D3D11_DEVICE_KHR;
  static constexpr cl_int kInvalidResource = CL_INVALID_D3D11_RESOURCE_KHR;
  static constexpr cl_int kAlreadyAcquired = CL_D3D11_RESOURCE_ALREADY_ACQUIRED_KHR;
  static constexpr cl_int kNotAcquired = CL_D3D11_RESOURCE_NOT_ACQUIRED_KHR;
};

struct Nv11 : Direct3d11 {
  static constexpr const char* kExtension = "cl_nv_d3d11_sharing";
  static constexpr const char* kPrefix = "D3D11";
  static constexpr const char* kSuffix = "NV";
  static constexpr cl_uint kDeviceSource = CL_D3D11_DEVICE_NV;
  static constexpr cl_uint kAdapterSource = CL_D3D11_DXGI_ADAPTER_NV;
  static constexpr cl_uint kPreferred = CL_PREFERRED_DEVICES_FOR_D3D11_NV;
  static constexpr cl_uint kAll = CL_ALL_DEVICES_FOR_D3D11_NV;
  static constexpr cl_context_properties kProperty = CL_CONTEXT_D3D11_DEVICE_NV;
  static constexpr cl_context_info kPreferShared = CL_CONTEXT_D3D11_PREFER_SHARED_RESOURCES_KHR;
  static constexpr cl_mem_info kResource = CL_MEM_D3D11_RESOURCE_NV;
  static constexpr cl_image_info kSubresource = CL_IMAGE_D3D11_SUBRESOURCE_NV;
  static constexpr cl_command_type kAcquire = CL_COMMAND_ACQUIRE_D3D11_OBJECTS_NV;
  static constexpr cl_command_type kRelease = CL_COMMAND_RELEASE_D3D11_OBJECTS_NV;
  static constexpr cl_int kInvalidDevice = CL_INVALID_D3D11_DEVICE_NV;
  static constexpr cl_int kInvalidResource = CL_INVALID_D3D11_RESOURCE_NV;
  static constexpr cl_int kAlreadyAcquired = CL_D3D11_RESOURCE_ALREADY_ACQUIRED_NV;
  static constexpr cl_int kNotAcquired = CL_D3D11_RESOURCE_NOT_ACQUIRED_NV;
};

using Extensions = testing::Types<Khr10, Khr11, Nv11>;

}  // namespace sluice::d3dtest
