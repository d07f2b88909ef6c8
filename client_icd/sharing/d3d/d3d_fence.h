// SPDX-License-Identifier: Apache-2.0
// Direct3D 11.4's fence on the application's immediate context: by it the end of what the device
// was given is slept for, with a bound, and not asked for. Native thread only (d3d_interop.h).
#pragma once

#include <CL/cl.h>
#include <d3d11_4.h>

#include <utility>

#include "absl/time/time.h"
#include "broker/os/com_ptr.h"

namespace sluice::client::sharing {

class D3d11Fence {
 public:
  ~D3d11Fence();
  D3d11Fence() = default;
  D3d11Fence(const D3d11Fence&) = delete;
  D3d11Fence& operator=(const D3d11Fence&) = delete;

  // False if the device has none: it is older than Direct3D 11.4.
  bool Make(ID3D11Device* device, ID3D11DeviceContext* commands);
  bool made() const { return event_ != nullptr; }

  // Behind all that the context was given. The context is locked.
  HRESULT Signal();
  // Until the last signal. CL_OUT_OF_RESOURCES at the deadline. A removed device's fence is
  // signalled too: whoever waits asks the device.
  cl_int Wait(absl::Time deadline);

 private:
  os::ComPtr<ID3D11DeviceContext4> commands_;
  os::ComPtr<ID3D11Fence> fence_;
  HANDLE event_ = nullptr;
  UINT64 value_ = 0;
};

// For Direct3D 10.
class NoD3dFence {
 public:
  template <typename Device, typename Commands>
  bool Make(Device*, Commands*) {
    return false;
  }
  bool made() const { return false; }
  HRESULT Signal() { return E_NOTIMPL; }
  cl_int Wait(absl::Time) { return CL_INVALID_OPERATION; }
};

}  // namespace sluice::client::sharing
