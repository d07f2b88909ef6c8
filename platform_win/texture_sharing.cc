// SPDX-License-Identifier: Apache-2.0
#include "broker/os/texture_sharing.h"

#include <dxgi1_2.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/com_ptr.h"
#include "broker/os/graphics_handle.h"

namespace sluice::os {
namespace {

// The status of a function's failure; kUnimplemented for the results that mean a texture that
// cannot be shared.
absl::Status Failed(const char* function, HRESULT result) {
  const std::string text =
      absl::StrCat(function, " answers 0x", absl::Hex(static_cast<uint32_t>(result)));
  return result == E_NOTIMPL || result == E_NOINTERFACE ? absl::UnimplementedError(text)
                                                        : absl::FailedPreconditionError(text);
}

class DxgiKeyedMutex final : public KeyedMutex {
 public:
  explicit DxgiKeyedMutex(ComPtr<IDXGIKeyedMutex> mutex) : mutex_(std::move(mutex)) {}

  // S_OK alone is success: a timeout and an abandoned mutex are successes to SUCCEEDED().
  absl::Status Acquire(uint64_t key, absl::Duration timeout) override {
    const int64_t left = std::max<int64_t>(absl::ToInt64Milliseconds(timeout), 0);
    // INFINITE is one more than the longest finite timeout.
    const DWORD bound = static_cast<DWORD>(std::min<int64_t>(left, INFINITE - 1));
    const HRESULT result = mutex_->AcquireSync(key, bound);
    switch (result) {
      case S_OK:
        return absl::OkStatus();
      case static_cast<HRESULT>(WAIT_TIMEOUT):
        return absl::DeadlineExceededError(absl::StrCat(
            "timed out waiting for the texture's keyed mutex: it was not free with key ", key,
            " in ", absl::FormatDuration(timeout)));
      case static_cast<HRESULT>(WAIT_ABANDONED):
        return absl::DataLossError("the texture's keyed mutex was abandoned by who held it");
      default:
        return Failed("IDXGIKeyedMutex::AcquireSync", result);
    }
  }
  absl::Status Release(uint64_t key) override {
    const HRESULT result = mutex_->ReleaseSync(key);
    return result == S_OK ? absl::OkStatus() : Failed("IDXGIKeyedMutex::ReleaseSync", result);
  }

 private:
  const ComPtr<IDXGIKeyedMutex> mutex_;
};

}  // namespace

absl::StatusOr<UniqueFd> ShareTexture(IUnknown* texture) {
  ComPtr<IDXGIResource1> resource;
  HRESULT result = texture->QueryInterface(__uuidof(IDXGIResource1), resource.out_void());
  if (FAILED(result)) return Failed("IDXGIResource1", result);
  HANDLE handle = nullptr;
  result = resource->CreateSharedHandle(
      nullptr, DXGI_SHARED_RESOURCE_READ | DXGI_SHARED_RESOURCE_WRITE, nullptr, &handle);
  if (FAILED(result)) return Failed("IDXGIResource1::CreateSharedHandle", result);
  // Wine returns success without a handle.
  if (handle == nullptr) return absl::UnimplementedError("Direct3D gives no handle");
  return AdoptGraphicsHandle(reinterpret_cast<uintptr_t>(handle));
}

absl::StatusOr<std::shared_ptr<KeyedMutex>> KeyedMutexOf(IUnknown* texture) {
  ComPtr<IDXGIKeyedMutex> mutex;
  const HRESULT result = texture->QueryInterface(__uuidof(IDXGIKeyedMutex), mutex.out_void());
  if (FAILED(result)) return Failed("IDXGIKeyedMutex", result);
  return std::make_shared<DxgiKeyedMutex>(std::move(mutex));
}

}  // namespace sluice::os
