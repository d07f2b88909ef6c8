// SPDX-License-Identifier: Apache-2.0
//
// sluice_d3d11.h: what texture_turns.h asks of Direct3D, and its entry points. Only the
// application's objects are called; no Direct3D library is linked or loaded.
#include <d3d11_4.h>

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/os/com_ptr.h"
#include "client_icd/libsluice/entry.h"
#include "client_icd/libsluice/texture_turns.h"
#include "proto/status_macros.h"
#include "sluice/sluice_d3d11.h"

namespace sluice::client {
namespace {

absl::Status Lacks(HRESULT result, const char* what) {
  return absl::UnimplementedError(
      absl::StrCat(what, ": 0x", absl::Hex(static_cast<uint32_t>(result), absl::kZeroPad8),
                   "; a section can be had instead: SLUICE_BACKING_MEMFD"));
}

class DeviceFence final : public TextureFence {
 public:
  absl::Status Open(ID3D11Device* device, HANDLE shared) {
    HRESULT result = device->QueryInterface(__uuidof(ID3D11Device5), device_.out_void());
    if (FAILED(result)) return Lacks(result, "the device has no fences, ID3D11Device5");
    os::ComPtr<ID3D11DeviceContext> context;
    device->GetImmediateContext(context.out());
    result = context.As(&context_);
    if (FAILED(result)) return Lacks(result, "the device has no fences, ID3D11DeviceContext4");
    result = device_->OpenSharedFence(shared, __uuidof(ID3D11Fence), fence_.out_void());
    if (FAILED(result)) return Lacks(result, "ID3D11Device5::OpenSharedFence");
    result = device_->CreateFence(0, D3D11_FENCE_FLAG_NONE, __uuidof(ID3D11Fence), own_.out_void());
    if (FAILED(result)) return Lacks(result, "ID3D11Device5::CreateFence");
    event_.reset(::CreateEventW(nullptr, FALSE, FALSE, nullptr));
    return event_ != nullptr ? absl::OkStatus() : absl::ResourceExhaustedError("no more events");
  }

  absl::Status SignalBehindWork(uint64_t generation) override {
    return Signal(fence_.get(), generation);
  }
  absl::Status WaitFor(uint64_t generation, absl::Duration at_most) override {
    return Wait(fence_.get(), generation, at_most);
  }
  absl::Status WaitForOwnWork(absl::Duration at_most) override {
    RETURN_IF_ERROR(Signal(own_.get(), ++own_value_));
    return Wait(own_.get(), own_value_, at_most);
  }

 private:
  struct Close {
    void operator()(HANDLE handle) const { ::CloseHandle(handle); }
  };

  absl::Status Signal(ID3D11Fence* fence, uint64_t value) {
    const HRESULT result = context_->Signal(fence, value);
    context_->Flush();
    if (FAILED(result)) return Lacks(result, "ID3D11DeviceContext4::Signal");
    return CheckDevice();
  }

  absl::Status Wait(ID3D11Fence* fence, uint64_t value, absl::Duration at_most) {
    const absl::Time deadline = absl::Now() + at_most;
    if (fence->GetCompletedValue() < value) {
      const HRESULT result = fence->SetEventOnCompletion(value, event_.get());
      if (FAILED(result)) return Lacks(result, "ID3D11Fence::SetEventOnCompletion");
    }
    // The value, not the event, which an earlier wait that was given up may set.
    while (fence->GetCompletedValue() < value) {
      const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
      if (left <= 0) return absl::DeadlineExceededError("the device did not get done in time");
      ::WaitForSingleObject(event_.get(), static_cast<DWORD>(left));
    }
    return CheckDevice();
  }

  // The fences of a device that was removed have all values at once, and it does nothing more.
  absl::Status CheckDevice() {
    const HRESULT removed = device_->GetDeviceRemovedReason();
    return SUCCEEDED(removed) ? absl::OkStatus() : Lacks(removed, "the device was removed");
  }

  os::ComPtr<ID3D11Device5> device_;
  os::ComPtr<ID3D11DeviceContext4> context_;
  os::ComPtr<ID3D11Fence> fence_;
  os::ComPtr<ID3D11Fence> own_;
  uint64_t own_value_ = 0;
  std::unique_ptr<void, Close> event_;
};

}  // namespace
}  // namespace sluice::client

struct sluice_d3d11 {
  sluice_connection* connection;
  sluice_capability capability;
  sluice_access access;
  sluice::os::ComPtr<ID3D11Resource> resource;
  sluice::client::DeviceFence fence;
};

namespace {

struct HandleGuard {
  ~HandleGuard() { sluice_handle_close(&handle); }
  sluice_handle handle = {};
};

}  // namespace

sluice_status sluice_d3d11_open(sluice_connection* connection, const sluice_capability* capability,
                                sluice_access access, ID3D11Device* device, sluice_d3d11** opened) {
  if (connection == nullptr || capability == nullptr || device == nullptr || opened == nullptr) {
    return sluice::client::NullArgument();
  }
  HandleGuard guard;
  guard.handle.struct_size = sizeof(guard.handle);
  const sluice_status exported = sluice_export(connection, capability, access, &guard.handle);
  if (exported != SLUICE_OK) return exported;
  if (guard.handle.backing != SLUICE_BACKING_D3D11 || guard.handle.fd_count != 2) {
    return sluice::client::Fail(SLUICE_INVALID_ARGUMENT,
                                "this resource is none of Direct3D's: sluice_map gives its memory");
  }
  sluice::os::ComPtr<ID3D11Device1> sharing;
  HRESULT result = device->QueryInterface(__uuidof(ID3D11Device1), sharing.out_void());
  if (FAILED(result))
    return sluice::client::Told(sluice::client::Lacks(result, "no ID3D11Device1"));
  auto made = std::make_unique<sluice_d3d11>();
  made->connection = connection;
  made->capability = *capability;
  made->access = access;
  result = sharing->OpenSharedResource1(guard.handle.fds[0], __uuidof(ID3D11Resource),
                                        made->resource.out_void());
  if (FAILED(result)) {
    return sluice::client::Told(
        sluice::client::Lacks(result, "ID3D11Device1::OpenSharedResource1"));
  }
  if (const absl::Status fence = made->fence.Open(device, guard.handle.fds[1]); !fence.ok()) {
    return sluice::client::Told(fence);
  }
  *opened = made.release();
  return SLUICE_OK;
}

ID3D11Resource* sluice_d3d11_resource(const sluice_d3d11* opened) {
  return opened == nullptr ? nullptr : opened->resource.get();
}

sluice_status sluice_d3d11_acquire(sluice_d3d11* opened, uint32_t timeout_ms, sluice_hold* hold) {
  if (opened == nullptr || hold == nullptr) return sluice::client::NullArgument();
  const sluice_status taken =
      sluice_acquire(opened->connection, &opened->capability, opened->access, timeout_ms, hold);
  if (taken == SLUICE_OK) sluice::client::BeginTextureTurn(&opened->fence, hold);
  return taken;
}

sluice_status sluice_d3d11_release(sluice_d3d11* opened, const sluice_hold* hold, uint32_t flags) {
  if (opened == nullptr || hold == nullptr) return sluice::client::NullArgument();
  return sluice_release(
      opened->connection, hold,
      sluice::client::EndTextureTurn(&opened->fence, opened->access, *hold, flags));
}

void sluice_d3d11_close(sluice_d3d11* opened) { delete opened; }
