// SPDX-License-Identifier: Apache-2.0
// A plane of a Direct3D 9 surface as the sharing core sees one. How its contents move depends on
// what the surface is:
//
//   offscreen plain surface, level of a dynamic texture   locked, both ways; all planar formats are
//   render target                                          GetRenderTargetData; UpdateSurface
//   level of another texture                               StretchRect to a render target of ours
//                                                          and then as that; UpdateSurface
//
// Native thread only (d3d_interop.h), but for what native_object.h says otherwise.
#pragma once

#include <CL/cl_dx9_media_sharing.h>
#include <d3d9.h>

#include <memory>

#include "broker/os/com_ptr.h"
#include "client_icd/sharing/core/native_object.h"
#include "client_icd/sharing/d3d/d3d_format.h"
#include "client_icd/sharing/d3d/d3d_interop.h"
#include "proto/image_format.h"

namespace sluice::client::sharing {

class Dx9Surface final : public NativeObject {
 public:
  // How an application names a surface, and what of it.
  struct Source {
    cl_dx9_media_adapter_type_khr adapter_type;
    cl_dx9_surface_info_khr info;
    cl_uint plane;
  };
  // The device is the surface's own. CL_INVALID_DX9_MEDIA_SURFACE_KHR if it is not a surface of the
  // default pool, is multisampled, or is one that Direct3D neither locks nor copies.
  // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR. CL_INVALID_VALUE for a plane that it has not, or has no
  // whole one of.
  static cl_int Make(std::shared_ptr<D3dThread> thread, IDirect3DDevice9* device,
                     const Source& source, std::unique_ptr<Dx9Surface>* out);
  ~Dx9Surface() override;

  // Any thread; constant.
  const cl_image_format& format() const { return plane_.format; }
  size_t width() const { return desc_.Width / plane_.divisor; }
  size_t height() const { return desc_.Height / plane_.divisor; }
  size_t bytes() const { return row_bytes() * height(); }

  NativeKey key() const override { return key_; }
  NativeThread& thread() override { return *thread_; }
  cl_int Fetch(uint8_t* packed, absl::Time deadline) override;
  cl_int Store(const uint8_t* packed, absl::Time deadline) override;
  // Also of a 9Ex surface with a shared handle of the application's: that is a global one, which
  // cannot be handed to one process alone.
  absl::StatusOr<ExportedMemory> Export() override {
    return absl::UnimplementedError("Direct3D 9 has no NT handles, only global ones");
  }
  cl_int GetMemInfo(cl_mem_info param_name, const InfoSink& sink) override;
  cl_int GetImageInfo(cl_image_info param_name, const InfoSink& sink) override;

 private:
  enum class Access { kLock, kRenderTarget, kTexture };

  Dx9Surface(std::shared_ptr<D3dThread> thread, IDirect3DDevice9* device, const Source& source)
      : thread_(std::move(thread)),
        device_(os::ComPtr<IDirect3DDevice9>::Share(device)),
        surface_(os::ComPtr<IDirect3DSurface9>::Share(source.info.resource)),
        source_(source),
        key_{reinterpret_cast<uintptr_t>(os::ComPtr<IUnknown>::Of(surface_.get()).get()), 0,
             source.plane} {}

  cl_int Describe();
  cl_int ChooseAccess();
  bool CanCopyFrom();
  size_t row_bytes() const { return width() * wire::ElementBytes(plane_.format); }

  // Waits for all that the device was given.
  cl_int WaitForDevice(absl::Time deadline);
  cl_int CheckDevice();
  cl_int MakeSystemMemory();
  cl_int CopyToSystemMemory();
  // Between the packed bytes and a surface that can be locked.
  cl_int LockAndCopy(IDirect3DSurface9* surface, uint8_t* packed, bool write, absl::Time deadline);

  const std::shared_ptr<D3dThread> thread_;
  // Constant until the end.
  os::ComPtr<IDirect3DDevice9> device_;
  os::ComPtr<IDirect3DSurface9> surface_;
  const Source source_;
  const NativeKey key_;
  D3DSURFACE_DESC desc_ = {};
  D3d9Plane plane_;
  Access access_ = Access::kLock;
  // Made with the first use.
  os::ComPtr<IDirect3DQuery9> query_;
  os::ComPtr<IDirect3DSurface9> system_memory_;
  os::ComPtr<IDirect3DSurface9> render_target_;  // Access::kTexture.
};

}  // namespace sluice::client::sharing
