// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/d3d/dx9_surface.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/client_log.h"
#include "client_icd/session/command_stream.h"

namespace sluice::client::sharing {
namespace {

#define D3D9_ROW(name, value, order, type) static_assert(D3DFMT_##name == value);
#include "client_icd/sharing/d3d/d3d9_formats.inc"

cl_int ToError(HRESULT result) { return SUCCEEDED(result) ? CL_SUCCESS : CL_OUT_OF_RESOURCES; }

// Direct3D locks a surface whole, and refuses to lock it once more. Its planes are several objects,
// which other threads may be about to lock, also those of other contexts: each waits for its turn,
// in which nothing of the application's is waited for. Thread-safe.
class SurfaceTurn {
 public:
  SurfaceTurn(uint64_t surface, absl::Time deadline) : surface_(surface) {
    Taken& taken = All();
    const auto is_free = [&taken, surface]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return std::find(taken.surfaces.begin(), taken.surfaces.end(), surface) ==
             taken.surfaces.end();
    };
    absl::MutexLock lock(&taken.mu);
    in_time_ = taken.mu.AwaitWithDeadline(absl::Condition(&is_free), deadline);
    if (in_time_) taken.surfaces.push_back(surface_);
  }
  ~SurfaceTurn() {
    if (!in_time_) return;
    Taken& taken = All();
    absl::MutexLock lock(&taken.mu);
    std::erase(taken.surfaces, surface_);
  }
  SurfaceTurn(const SurfaceTurn&) = delete;
  SurfaceTurn& operator=(const SurfaceTurn&) = delete;

  bool in_time() const { return in_time_; }

 private:
  struct Taken {
    absl::Mutex mu;
    std::vector<uint64_t> surfaces ABSL_GUARDED_BY(mu);
  };
  // Leaked: threads may still run while the process ends.
  static Taken& All() {
    static Taken* const all = new Taken;
    return *all;
  }

  const uint64_t surface_;
  bool in_time_ = false;
};

}  // namespace

// As D3dObject's.
Dx9Surface::~Dx9Surface() {
  if (!CommandStream::HandlesHere()) return;
  thread_->ReleaseElsewhere([device = std::move(device_), surface = std::move(surface_),
                             query = std::move(query_), system_memory = std::move(system_memory_),
                             render_target = std::move(render_target_)] {});
}

cl_int Dx9Surface::Make(std::shared_ptr<D3dThread> thread, IDirect3DDevice9* device,
                        const Source& source, std::unique_ptr<Dx9Surface>* out) {
  std::unique_ptr<Dx9Surface> made(new Dx9Surface(std::move(thread), device, source));
  CL_RETURN_IF_ERROR(made->Describe());
  CL_RETURN_IF_ERROR(made->ChooseAccess());
  *out = std::move(made);
  return CL_SUCCESS;
}

cl_int Dx9Surface::Describe() {
  if (FAILED(surface_->GetDesc(&desc_)) || desc_.Pool != D3DPOOL_DEFAULT ||
      desc_.MultiSampleType != D3DMULTISAMPLE_NONE)
    return CL_INVALID_DX9_MEDIA_SURFACE_KHR;
  const uint32_t planes = D3d9Planes(desc_.Format);
  if (planes == 0) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  if (source_.plane >= planes) return CL_INVALID_VALUE;
  plane_ = FindD3d9Plane(desc_.Format, source_.plane);
  // Section 9.7.7.2: "if plane is not a valid plane of resource". Half of an odd size is none, and
  // nobody says where Direct3D lays it.
  const bool whole = desc_.Width % plane_.divisor == 0 && desc_.Height % plane_.divisor == 0;
  return whole ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int Dx9Surface::ChooseAccess() {
  os::ComPtr<IDirect3DBaseTexture9> texture;
  const bool of_texture =
      SUCCEEDED(surface_->GetContainer(__uuidof(IDirect3DBaseTexture9), texture.out_void()));
  const bool dynamic = (desc_.Usage & D3DUSAGE_DYNAMIC) != 0;
  if ((desc_.Usage & D3DUSAGE_RENDERTARGET) != 0) {
    access_ = Access::kRenderTarget;
  } else if (!of_texture || dynamic) {
    access_ = Access::kLock;
  } else {
    access_ = Access::kTexture;
  }
  const bool planar = D3d9Planes(desc_.Format) > 1;
  const bool possible =
      (desc_.Usage & D3DUSAGE_DEPTHSTENCIL) == 0 &&
      (access_ == Access::kLock || (!planar && (access_ != Access::kTexture || CanCopyFrom())));
  if (possible) return CL_SUCCESS;
  ClientLog(ClientLogLevel::kInfo,
            "sharing: DX9 media: Direct3D can neither lock the surface nor "
            "copy from it");
  return CL_INVALID_DX9_MEDIA_SURFACE_KHR;
}

// The only way to read a texture's level that cannot be locked is through a render target.
bool Dx9Surface::CanCopyFrom() {
  os::ComPtr<IDirect3D9> direct3d;
  D3DDEVICE_CREATION_PARAMETERS parameters;
  D3DDISPLAYMODE mode;
  return SUCCEEDED(device_->GetDirect3D(direct3d.out())) &&
         SUCCEEDED(device_->GetCreationParameters(&parameters)) &&
         SUCCEEDED(device_->GetDisplayMode(0, &mode)) &&
         SUCCEEDED(direct3d->CheckDeviceFormat(parameters.AdapterOrdinal, parameters.DeviceType,
                                               mode.Format, D3DUSAGE_RENDERTARGET, D3DRTYPE_SURFACE,
                                               desc_.Format));
}

cl_int Dx9Surface::Fetch(uint8_t* packed, absl::Time deadline) {
  if (access_ == Access::kLock) {
    CL_RETURN_IF_ERROR(WaitForDevice(deadline));
    CL_RETURN_IF_ERROR(LockAndCopy(surface_.get(), packed, /*write=*/false, deadline));
    return CheckDevice();
  }
  CL_RETURN_IF_ERROR(MakeSystemMemory());
  CL_RETURN_IF_ERROR(WaitForDevice(deadline));
  CL_RETURN_IF_ERROR(CopyToSystemMemory());
  CL_RETURN_IF_ERROR(LockAndCopy(system_memory_.get(), packed, /*write=*/false, deadline));
  return CheckDevice();
}

cl_int Dx9Surface::Store(const uint8_t* packed, absl::Time deadline) {
  CL_RETURN_IF_ERROR(WaitForDevice(deadline));
  uint8_t* const bytes = const_cast<uint8_t*>(packed);  // Only read.
  if (access_ == Access::kLock) {
    CL_RETURN_IF_ERROR(LockAndCopy(surface_.get(), bytes, /*write=*/true, deadline));
    return CheckDevice();
  }
  CL_RETURN_IF_ERROR(MakeSystemMemory());
  CL_RETURN_IF_ERROR(LockAndCopy(system_memory_.get(), bytes, /*write=*/true, deadline));
  CL_RETURN_IF_ERROR(
      ToError(device_->UpdateSurface(system_memory_.get(), nullptr, surface_.get(), nullptr)));
  return CheckDevice();
}

// A lost device's surfaces can still be locked and copied, with success, and have no contents
// ("Lost Devices" in Direct3D 9's documentation). Any other answer says nothing: plain Direct3D 9
// refuses the question on a thread that is not the device's.
cl_int Dx9Surface::CheckDevice() {
  const auto ex = os::ComPtr<IDirect3DDevice9Ex>::Of(device_.get());
  switch (ex ? ex->CheckDeviceState(nullptr) : device_->TestCooperativeLevel()) {
    case D3DERR_DEVICELOST:
    case D3DERR_DEVICENOTRESET:
    case D3DERR_DEVICEHUNG:
    case D3DERR_DEVICEREMOVED:
    case D3DERR_DRIVERINTERNALERROR:
      ClientLog(ClientLogLevel::kWarning, "sharing: DX9 media: the Direct3D device is lost");
      return CL_OUT_OF_RESOURCES;
    default:
      return CL_SUCCESS;
  }
}

cl_int Dx9Surface::WaitForDevice(absl::Time deadline) {
  if (!query_) CL_RETURN_IF_ERROR(ToError(device_->CreateQuery(D3DQUERYTYPE_EVENT, query_.out())));
  CL_RETURN_IF_ERROR(ToError(query_->Issue(D3DISSUE_END)));
  return WaitForNative([this] { return ProgressOf(query_->GetData(nullptr, 0, D3DGETDATA_FLUSH)); },
                       deadline);
}

cl_int Dx9Surface::MakeSystemMemory() {
  if (access_ == Access::kTexture && !render_target_) {
    CL_RETURN_IF_ERROR(ToError(device_->CreateRenderTarget(desc_.Width, desc_.Height, desc_.Format,
                                                           D3DMULTISAMPLE_NONE, 0, FALSE,
                                                           render_target_.out(), nullptr)));
  }
  if (system_memory_) return CL_SUCCESS;
  return ToError(device_->CreateOffscreenPlainSurface(
      desc_.Width, desc_.Height, desc_.Format, D3DPOOL_SYSTEMMEM, system_memory_.out(), nullptr));
}

cl_int Dx9Surface::CopyToSystemMemory() {
  IDirect3DSurface9* from = surface_.get();
  if (access_ == Access::kTexture) {
    CL_RETURN_IF_ERROR(
        ToError(device_->StretchRect(from, nullptr, render_target_.get(), nullptr, D3DTEXF_NONE)));
    from = render_target_.get();
  }
  return ToError(device_->GetRenderTargetData(from, system_memory_.get()));
}

cl_int Dx9Surface::LockAndCopy(IDirect3DSurface9* surface, uint8_t* packed, bool write,
                               absl::Time deadline) {
  const SurfaceTurn turn(key_.object, deadline);
  if (!turn.in_time()) return CL_OUT_OF_RESOURCES;
  D3DLOCKED_RECT locked;
  CL_RETURN_IF_ERROR(ToError(surface->LockRect(&locked, nullptr, write ? 0 : D3DLOCK_READONLY)));
  const size_t pitch = static_cast<size_t>(locked.Pitch);
  const size_t before = pitch * desc_.Height * plane_.quarters_before / 4;
  const Pitched native = {static_cast<uint8_t*>(locked.pBits) + before,
                          pitch / plane_.pitch_divisor, 0};
  const Pitched ours = {packed, row_bytes(), 0};
  CopyRows(write ? native : ours, write ? ours : native, row_bytes(), height(), 1);
  return ToError(surface->UnlockRect());
}

cl_int Dx9Surface::GetMemInfo(cl_mem_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_MEM_DX9_MEDIA_ADAPTER_TYPE_KHR:
      return sink.Value<cl_dx9_media_adapter_type_khr>(source_.adapter_type);
    case CL_MEM_DX9_MEDIA_SURFACE_INFO_KHR:
      return sink.Value<cl_dx9_surface_info_khr>(source_.info);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int Dx9Surface::GetImageInfo(cl_image_info, const InfoSink& sink) {
  return sink.Value<cl_uint>(source_.plane);
}

}  // namespace sluice::client::sharing
