// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/d3d/d3d_fence.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace sluice::client::sharing {

D3d11Fence::~D3d11Fence() {
  if (event_ != nullptr) ::CloseHandle(event_);
}

bool D3d11Fence::Make(ID3D11Device* device, ID3D11DeviceContext* commands) {
  const auto newer = os::ComPtr<ID3D11Device5>::Of(device);
  commands_ = os::ComPtr<ID3D11DeviceContext4>::Of(commands);
  if (!newer || !commands_) return false;
  if (FAILED(
          newer->CreateFence(0, D3D11_FENCE_FLAG_NONE, __uuidof(ID3D11Fence), fence_.out_void())))
    return false;
  event_ = ::CreateEventW(nullptr, /*bManualReset=*/FALSE, FALSE, nullptr);
  return event_ != nullptr;
}

HRESULT D3d11Fence::Signal() { return commands_->Signal(fence_.get(), ++value_); }

cl_int D3d11Fence::Wait(absl::Time deadline) {
  if (fence_->GetCompletedValue() >= value_) return CL_SUCCESS;
  if (FAILED(fence_->SetEventOnCompletion(value_, event_))) return CL_OUT_OF_RESOURCES;
  while (fence_->GetCompletedValue() < value_) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0) return CL_OUT_OF_RESOURCES;
    // Late wake-ups of a wait that was given up set the event too: the value decides.
    ::WaitForSingleObject(event_, static_cast<DWORD>(std::min<int64_t>(left, INFINITE - 1)));
  }
  return CL_SUCCESS;
}

}  // namespace sluice::client::sharing
