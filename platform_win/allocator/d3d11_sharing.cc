// SPDX-License-Identifier: Apache-2.0
#include "platform_win/allocator/d3d11_sharing.h"

#include <CL/cl.h>
#include <d3d11_4.h>
#include <dxgi1_2.h>

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/os/com_ptr.h"
#include "broker/os/dynamic_library.h"
#include "proto/status_macros.h"

namespace sluice::allocator {
namespace {

constexpr DWORD kFirstWorkTimeoutMs = 5'000;

// A result of Direct3D's as a status.
absl::Status Answered(HRESULT result, const char* what) {
  const std::string text =
      absl::StrCat(what, ": 0x", absl::Hex(static_cast<uint32_t>(result), absl::kZeroPad8));
  if (result == E_OUTOFMEMORY) return absl::ResourceExhaustedError(text);
  if (result == E_INVALIDARG) return absl::InvalidArgumentError(text);
  return absl::UnimplementedError(text);
}

constexpr uint32_t ChannelsOf(uint32_t order) { return order == CL_R ? 1 : order == CL_RG ? 2 : 4; }

constexpr uint32_t ChannelBytesOf(uint32_t type) {
  switch (type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
      return 1;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
      return 2;
    default:
      return 4;
  }
}

// Bytes of one texel, in the first plane; 0: no format that DxgiFormatOf gives.
uint32_t TexelBytes(uint32_t dxgi_format) {
  switch (dxgi_format) {
#define DXGI_ROW(name, value, order, type) \
  case DXGI_FORMAT_##name:                 \
    return ChannelsOf(CL_##order) * ChannelBytesOf(CL_##type);
#include "proto/dxgi_formats.inc"
    case DXGI_FORMAT_B8G8R8X8_UNORM:
    case DXGI_FORMAT_R10G10B10A2_UNORM:
      return 4;
    case DXGI_FORMAT_NV12:
      return 1;
    case DXGI_FORMAT_P010:
      return 2;
    default:
      return 0;
  }
}

class RealSharing final : public D3d11Sharing {
 public:
  // Opens a device of the machine's; keeps a reference to its library.
  absl::Status Open() {
    ASSIGN_OR_RETURN(library_, os::DynamicLibrary::Open("d3d11.dll"));
    const auto create =
        reinterpret_cast<PFN_D3D11_CREATE_DEVICE>(library_.Find("D3D11CreateDevice"));
    if (create == nullptr) return absl::UnimplementedError("d3d11.dll makes no devices");
    os::ComPtr<ID3D11Device> device;
    HRESULT made = create(nullptr, D3D_DRIVER_TYPE_HARDWARE, nullptr, 0, nullptr, 0,
                          D3D11_SDK_VERSION, device.out(), nullptr, nullptr);
    if (FAILED(made)) {
      made = create(nullptr, D3D_DRIVER_TYPE_WARP, nullptr, 0, nullptr, 0, D3D11_SDK_VERSION,
                    device.out(), nullptr, nullptr);
    }
    if (FAILED(made)) return Answered(made, "D3D11CreateDevice");
    return OpenOn(device.get());
  }

  absl::Status OpenOn(ID3D11Device* device) {
    HRESULT has = os::ComPtr<ID3D11Device>::Share(device).As(&device_);
    if (FAILED(has)) return Answered(has, "no fences, ID3D11Device5");
    os::ComPtr<ID3D11DeviceContext> context;
    device->GetImmediateContext(context.out());
    has = context.As(&context_);
    if (FAILED(has)) return Answered(has, "no fences, ID3D11DeviceContext4");
    const auto dxgi = os::ComPtr<IDXGIDevice>::Of(device);
    os::ComPtr<IDXGIAdapter> adapter;
    DXGI_ADAPTER_DESC about = {};
    if (dxgi && SUCCEEDED(dxgi->GetAdapter(adapter.out())) && SUCCEEDED(adapter->GetDesc(&about))) {
      std::memcpy(luid_.data(), &about.AdapterLuid, luid_.size());
    }
    return absl::OkStatus();
  }

  // A removed device (its driver was updated or reset) fails for ever, and the resources that it
  // made may be gone.
  absl::StatusOr<D3d11Shared> Make(const D3d11Shape& shape) override {
    absl::StatusOr<D3d11Shared> made = MakeOnDevice(shape);
    const HRESULT removed = device_->GetDeviceRemovedReason();
    if (SUCCEEDED(removed)) return made;
    return absl::UnavailableError(
        absl::StrCat("the Direct3D device was removed: 0x",
                     absl::Hex(static_cast<uint32_t>(removed), absl::kZeroPad8),
                     "; the next request gets a new one"));
  }

 private:
  absl::StatusOr<D3d11Shared> MakeOnDevice(const D3d11Shape& shape) {
    D3d11Layer first = {0, shape.size_bytes};
    if (shape.dxgi_format != 0) {
      ASSIGN_OR_RETURN(first, LayerOf(shape));
    } else if (shape.size_bytes > UINT32_MAX) {
      return absl::InvalidArgumentError("a Direct3D buffer has less than 4 GiB");
    }
    // Memory from a driver may hold other programs' bytes.
    const std::unique_ptr<void, decltype(&std::free)> zeros(
        std::calloc(1, static_cast<size_t>(first.bytes)), &std::free);
    if (zeros == nullptr) return absl::ResourceExhaustedError("no memory to clear a resource with");
    os::ComPtr<IDXGIResource1> resource;
    RETURN_IF_ERROR(shape.dxgi_format == 0
                        ? MakeBuffer(shape, zeros.get(), &resource)
                        : MakeTexture(shape, zeros.get(), first.row_pitch, &resource));
    os::ComPtr<ID3D11Fence> fence;
    HRESULT result =
        device_->CreateFence(0, D3D11_FENCE_FLAG_SHARED, __uuidof(ID3D11Fence), fence.out_void());
    if (FAILED(result)) return Answered(result, "CreateFence");
    RETURN_IF_ERROR(AwaitOwnWork());
    D3d11Shared shared;
    shared.adapter_luid = luid_;
    HANDLE handle = nullptr;
    result = resource->CreateSharedHandle(
        nullptr, DXGI_SHARED_RESOURCE_READ | DXGI_SHARED_RESOURCE_WRITE, nullptr, &handle);
    if (FAILED(result)) return Answered(result, "IDXGIResource1::CreateSharedHandle");
    shared.resource = os::OwnedHandle(handle);
    handle = nullptr;
    result = fence->CreateSharedHandle(nullptr, GENERIC_ALL, nullptr, &handle);
    if (FAILED(result)) return Answered(result, "ID3D11Fence::CreateSharedHandle");
    shared.fence = os::OwnedHandle(handle);
    return shared;
  }

  absl::Status MakeBuffer(const D3d11Shape& shape, const void* zeros,
                          os::ComPtr<IDXGIResource1>* out) {
    D3D11_BUFFER_DESC about = {};
    about.ByteWidth = static_cast<UINT>(shape.size_bytes);
    about.BindFlags = D3D11_BIND_SHADER_RESOURCE | D3D11_BIND_UNORDERED_ACCESS;
    about.MiscFlags = kShared | D3D11_RESOURCE_MISC_BUFFER_ALLOW_RAW_VIEWS;
    const D3D11_SUBRESOURCE_DATA first = {zeros, 0, 0};
    os::ComPtr<ID3D11Buffer> buffer;
    HRESULT result = device_->CreateBuffer(&about, &first, buffer.out());
    if (SUCCEEDED(result)) result = buffer.As(out);
    return SUCCEEDED(result) ? absl::OkStatus() : Answered(result, "CreateBuffer, shared");
  }

  absl::Status MakeTexture(const D3d11Shape& shape, const void* zeros, UINT row_pitch,
                           os::ComPtr<IDXGIResource1>* out) {
    const auto format = static_cast<DXGI_FORMAT>(shape.dxgi_format);
    UINT support = 0;
    if (FAILED(device_->CheckFormatSupport(format, &support)) ||
        (support & D3D11_FORMAT_SUPPORT_TEXTURE2D) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("this device has no textures of DXGI format ", shape.dxgi_format));
    }
    D3D11_TEXTURE2D_DESC about = {};
    about.Width = shape.width;
    about.Height = shape.height;
    about.MipLevels = 1;
    about.ArraySize = shape.array_layers;
    about.Format = format;
    about.SampleDesc.Count = 1;
    if ((support & D3D11_FORMAT_SUPPORT_SHADER_SAMPLE) != 0 ||
        (support & D3D11_FORMAT_SUPPORT_SHADER_LOAD) != 0) {
      about.BindFlags |= D3D11_BIND_SHADER_RESOURCE;
    }
    if ((support & D3D11_FORMAT_SUPPORT_RENDER_TARGET) != 0) {
      about.BindFlags |= D3D11_BIND_RENDER_TARGET;
    }
    about.MiscFlags = kShared;
    const D3D11_SUBRESOURCE_DATA one = {zeros, row_pitch, 0};
    const std::vector<D3D11_SUBRESOURCE_DATA> first(shape.array_layers, one);
    os::ComPtr<ID3D11Texture2D> texture;
    HRESULT result = device_->CreateTexture2D(&about, first.data(), texture.out());
    if (SUCCEEDED(result)) result = texture.As(out);
    return SUCCEEDED(result) ? absl::OkStatus() : Answered(result, "CreateTexture2D, shared");
  }

  // Waits until this device has finished: another one may see only finished work.
  absl::Status AwaitOwnWork() {
    os::ComPtr<ID3D11Fence> done;
    const HRESULT made =
        device_->CreateFence(0, D3D11_FENCE_FLAG_NONE, __uuidof(ID3D11Fence), done.out_void());
    if (FAILED(made)) return Answered(made, "CreateFence");
    const os::OwnedHandle event(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
    context_->Signal(done.get(), 1);
    context_->Flush();
    if (FAILED(done->SetEventOnCompletion(1, event.get())) ||
        ::WaitForSingleObject(event.get(), kFirstWorkTimeoutMs) != WAIT_OBJECT_0) {
      return absl::UnavailableError("the device does not get done with clearing a resource");
    }
    return absl::OkStatus();
  }

  static constexpr UINT kShared = D3D11_RESOURCE_MISC_SHARED | D3D11_RESOURCE_MISC_SHARED_NTHANDLE;

  os::DynamicLibrary library_;  // Before the objects that it made: destroyed after them.
  os::ComPtr<ID3D11Device5> device_;
  os::ComPtr<ID3D11DeviceContext4> context_;
  std::array<uint8_t, 8> luid_ = {};
};

}  // namespace

absl::StatusOr<D3d11Layer> LayerOf(const D3d11Shape& shape) {
  const uint32_t texel = TexelBytes(shape.dxgi_format);
  if (texel == 0 || shape.width > D3D11_REQ_TEXTURE2D_U_OR_V_DIMENSION ||
      shape.height > D3D11_REQ_TEXTURE2D_U_OR_V_DIMENSION) {
    return absl::InvalidArgumentError(absl::StrCat("Direct3D has no texture of ", shape.width, "x",
                                                   shape.height, ", DXGI format ",
                                                   shape.dxgi_format));
  }
  // Both have a second plane of half the rows, as wide in bytes: pairs of samples, half as many.
  const bool planar =
      shape.dxgi_format == DXGI_FORMAT_NV12 || shape.dxgi_format == DXGI_FORMAT_P010;
  const uint32_t columns = planar ? shape.width + shape.width % 2 : shape.width;
  const uint64_t rows = shape.height + (planar ? (uint64_t{shape.height} + 1) / 2 : 0);
  return D3d11Layer{columns * texel, columns * texel * rows};  // 2^14 * 16 * 1.5 * 2^14 at most.
}

absl::StatusOr<std::unique_ptr<D3d11Sharing>> D3d11Sharing::Create() {
  auto sharing = std::make_unique<RealSharing>();
  RETURN_IF_ERROR(sharing->Open());
  return std::unique_ptr<D3d11Sharing>(std::move(sharing));
}

absl::StatusOr<std::unique_ptr<D3d11Sharing>> D3d11Sharing::CreateOn(ID3D11Device* device) {
  auto sharing = std::make_unique<RealSharing>();
  RETURN_IF_ERROR(sharing->OpenOn(device));
  return std::unique_ptr<D3d11Sharing>(std::move(sharing));
}

}  // namespace sluice::allocator
