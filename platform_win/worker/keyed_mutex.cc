// SPDX-License-Identifier: Apache-2.0
#include "platform_win/worker/keyed_mutex.h"

#include <d3d11_4.h>
#include <dxgi.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/graphics_handle.h"
#include "daemon/worker/memory/keyed_mutex.h"

namespace sluice::worker {
namespace {

using Device = os::ComPtr<ID3D11Device1>;

absl::Status Failed(const char* function, HRESULT result) {
  return absl::UnavailableError(
      absl::StrCat(function, " answers 0x", absl::Hex(static_cast<uint32_t>(result))));
}

template <typename Function>
absl::StatusOr<Function> FindFunction(const char* library, const char* name) {
  absl::StatusOr<os::DynamicLibrary> opened = os::DynamicLibrary::Open(library);
  if (!opened.ok()) return opened.status();
  opened->KeepForever();
  const auto function = reinterpret_cast<Function>(opened->Find(name));
  if (function == nullptr) return absl::NotFoundError(absl::StrCat(library, " has no ", name));
  return function;
}

absl::StatusOr<os::ComPtr<IDXGIAdapter>> FindAdapter(const os::AdapterId& id) {
  using Create = HRESULT(WINAPI*)(REFIID, void**);
  const absl::StatusOr<Create> create = FindFunction<Create>("dxgi.dll", "CreateDXGIFactory1");
  if (!create.ok()) return create.status();
  os::ComPtr<IDXGIFactory1> factory;
  const HRESULT result = (*create)(__uuidof(IDXGIFactory1), factory.out_void());
  if (FAILED(result)) return Failed("CreateDXGIFactory1", result);
  for (UINT i = 0;; ++i) {
    os::ComPtr<IDXGIAdapter> adapter;
    DXGI_ADAPTER_DESC desc;
    if (FAILED(factory->EnumAdapters(i, adapter.out()))) break;
    if (FAILED(adapter->GetDesc(&desc))) continue;
    static_assert(sizeof(desc.AdapterLuid) == sizeof(id));
    if (std::memcmp(&desc.AdapterLuid, id.data(), id.size()) == 0) return adapter;
  }
  return absl::NotFoundError("Direct3D has no adapter with the OpenCL device's LUID");
}

absl::StatusOr<Device> OpenDevice(const os::AdapterId& id) {
  absl::StatusOr<os::ComPtr<IDXGIAdapter>> adapter = FindAdapter(id);
  if (!adapter.ok()) return adapter.status();
  const absl::StatusOr<PFN_D3D11_CREATE_DEVICE> create =
      FindFunction<PFN_D3D11_CREATE_DEVICE>("d3d11.dll", "D3D11CreateDevice");
  if (!create.ok()) return create.status();
  os::ComPtr<ID3D11Device> device;
  HRESULT result = (*create)(adapter->get(), D3D_DRIVER_TYPE_UNKNOWN, nullptr, 0, nullptr, 0,
                             D3D11_SDK_VERSION, device.out(), nullptr, nullptr);
  if (FAILED(result)) return Failed("D3D11CreateDevice", result);
  Device newer;
  result = device->QueryInterface(__uuidof(ID3D11Device1), newer.out_void());
  if (FAILED(result)) return Failed("ID3D11Device1", result);
  // Textures are acquired and released on several threads.
  os::ComPtr<ID3D11DeviceContext> commands;
  device->GetImmediateContext(commands.out());
  os::ComPtr<ID3D11Multithread> multithread;
  result = commands->QueryInterface(__uuidof(ID3D11Multithread), multithread.out_void());
  if (FAILED(result)) return Failed("ID3D11Multithread", result);
  multithread->SetMultithreadProtected(TRUE);
  return newer;
}

// The texture in this process, which its mutex belongs to.
class OpenedMutex final : public os::KeyedMutex {
 public:
  OpenedMutex(os::ComPtr<ID3D11Texture2D> texture, std::shared_ptr<os::KeyedMutex> mutex)
      : texture_(std::move(texture)), mutex_(std::move(mutex)) {}
  absl::Status Acquire(uint64_t key, absl::Duration timeout) override {
    return mutex_->Acquire(key, timeout);
  }
  absl::Status Release(uint64_t key) override { return mutex_->Release(key); }

 private:
  const os::ComPtr<ID3D11Texture2D> texture_;
  const std::shared_ptr<os::KeyedMutex> mutex_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<os::KeyedMutex>> OpenKeyedMutexOn(ID3D11Device1* device, int fd) {
  const absl::StatusOr<uintptr_t> handle = os::GraphicsHandleOf(fd);
  if (!handle.ok()) return handle.status();
  os::ComPtr<ID3D11Texture2D> texture;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): descriptors know no HANDLE.
  const HRESULT result = device->OpenSharedResource1(reinterpret_cast<HANDLE>(*handle),
                                                     __uuidof(ID3D11Texture2D), texture.out_void());
  if (FAILED(result)) return Failed("ID3D11Device1::OpenSharedResource1", result);
  absl::StatusOr<std::shared_ptr<os::KeyedMutex>> mutex = os::KeyedMutexOf(texture.get());
  if (!mutex.ok()) return mutex.status();
  return std::make_shared<OpenedMutex>(std::move(texture), *std::move(mutex));
}

absl::StatusOr<std::shared_ptr<os::KeyedMutex>> OpenKeyedMutex(int fd,
                                                               const os::AdapterId& adapter) {
  // Devices are few, take long to make, and are never closed.
  struct Opened {
    std::mutex mutex;
    std::map<os::AdapterId, absl::StatusOr<Device>> devices;
  };
  static Opened& opened = *new Opened;
  const std::lock_guard<std::mutex> lock(opened.mutex);
  auto known = opened.devices.find(adapter);
  if (known == opened.devices.end())
    known = opened.devices.emplace(adapter, OpenDevice(adapter)).first;
  if (!known->second.ok()) return known->second.status();
  return OpenKeyedMutexOn(known->second->get(), fd);
}

}  // namespace sluice::worker
