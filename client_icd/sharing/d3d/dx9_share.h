// SPDX-License-Identifier: Apache-2.0
// Kept by a context that was created for media adapters of Direct3D 9 (cl_khr_dx9_media_sharing,
// OpenCL 2.2 Extension Specification, section 9.7): a reference to each adapter that its properties
// name, at most one of each type. Thread-safe: constant.
#pragma once

#include <CL/cl_dx9_media_sharing.h>
#include <d3d9.h>

#include <optional>
#include <vector>

#include "client_icd/base/args.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/session/command_stream.h"
#include "client_icd/sharing/d3d/d3d_interop.h"

namespace sluice::client::sharing {

extern const InteropExtension kDx9Interop;

// IDirect3DDevice9, IDirect3DDevice9Ex or IDXVAHD_Device.
struct Dx9Adapter {
  cl_dx9_media_adapter_type_khr type = 0;
  // The Direct3D device itself, or that on which the DXVA device makes its surfaces.
  os::ComPtr<IDirect3DDevice9> device;
  os::ComPtr<IUnknown> dxva;

  // Nothing if the object is not of that type.
  static std::optional<Dx9Adapter> Of(cl_dx9_media_adapter_type_khr type, IUnknown* object);

  std::optional<AdapterLuid> luid() const;
  // True if several threads may use it.
  bool is_multithreaded() const;
};

class Dx9Share final : public D3dInterop {
 public:
  Dx9Share(std::vector<Dx9Adapter> adapters, bool user_sync, bool callers_only)
      : D3dInterop(user_sync, callers_only), adapters_(std::move(adapters)) {}
  ~Dx9Share() override {
    if (CommandStream::HandlesHere())
      thread()->ReleaseElsewhere([adapters = std::move(adapters_)] {});
  }

  static bool IsProperty(uint64_t name);
  // CL_INVALID_DX9_MEDIA_ADAPTER_KHR if one that the list names is none. Adds nothing if it names
  // none.
  static cl_int Open(const PropertyList& list, std::vector<Interop>* out);
  static const Dx9Share* Of(const Context& context) {
    return static_cast<const Dx9Share*>(FindInterop(context, Api::kDx9Media));
  }

  // Null if the context was not created for one of that type.
  const Dx9Adapter* Find(cl_dx9_media_adapter_type_khr type) const;

 private:
  std::vector<Dx9Adapter> adapters_;  // Constant until the end.
};

}  // namespace sluice::client::sharing
