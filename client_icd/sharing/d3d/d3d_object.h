// SPDX-License-Identifier: Apache-2.0
// A subresource of Direct3D 10 or 11 as the sharing core sees one.
//
// How its contents reach the worker (native_object.h):
//
//   import   the texture itself by its NT handle, if the application has made it to be shared so,
//            without a keyed mutex, and it is one image
//   shadow   a texture of ours (d3d_shadow.h) that the subresource is copied to and from
//   staging  a staging resource of ours, copied to and from, and mapped
//
// All in the order of the device's commands, whose end is waited for (d3d_work.h). The
// application's state is untouched: copies bind nothing, and its predicate, which would decide over
// them, is put aside meanwhile, with the device locked.
#pragma once

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/texture_sharing.h"
#include "client_icd/session/command_stream.h"
#include "client_icd/sharing/core/native_object.h"
#include "client_icd/sharing/d3d/d3d_format.h"
#include "client_icd/sharing/d3d/d3d_interop.h"
#include "client_icd/sharing/d3d/d3d_shadow.h"
#include "client_icd/sharing/d3d/d3d_traits.h"
#include "client_icd/sharing/d3d/d3d_work.h"
#include "proto/status_macros.h"

namespace sluice::client::sharing {

// The native object that an OpenCL memory object was made from.
template <typename T>
struct D3dSubresource {
  os::ComPtr<typename T::Resource> resource;
  void* given = nullptr;  // The application's own pointer to it.
  D3dShape shape;
  UINT index = 0;
  D3dExtent extent;
  size_t element_bytes = 1;
  bool same_adapter = false;  // As the context's one device.
};

template <typename T>
class D3dObject final : public NativeObject {
 public:
  D3dObject(std::shared_ptr<D3dThread> thread, os::ComPtr<typename T::Device> device,
            D3dSubresource<T> subresource)
      : thread_(std::move(thread)),
        device_(std::move(device)),
        subresource_(std::move(subresource)),
        key_{reinterpret_cast<uintptr_t>(
                 os::ComPtr<IUnknown>::Of(subresource_.resource.get()).get()),
             subresource_.index, 0},
        work_(std::make_shared<D3dWork<T>>(device_.get())) {}
  // To let go of what is ours on the device may wait for its lock, and a device of one thread
  // counts its references without one: not where replies are handled.
  ~D3dObject() override {
    if (thread_ == nullptr || !CommandStream::HandlesHere()) return;
    thread_->ReleaseElsewhere([device = std::move(device_),
                               resource = std::move(subresource_.resource),
                               shadow = std::move(shadow_), mutex = std::move(mutex_),
                               work = std::move(work_), staging = std::move(staging_)] {});
  }

  NativeKey key() const override { return key_; }
  NativeThread& thread() override { return *thread_; }
  void UseTurn(NativeWatch::Turn* turn) override { work_->UseTurn(turn); }

  cl_int Fetch(uint8_t* packed, absl::Time deadline) override {
    CL_RETURN_IF_ERROR(MakeStaging());
    CL_RETURN_IF_ERROR(
        GiveCopy(staging_.get(), 0, subresource_.resource.get(), subresource_.index));
    CL_RETURN_IF_ERROR(work_->Wait(deadline));
    D3dMapped mapped;
    CL_RETURN_IF_ERROR(Map(/*write=*/false, &mapped));
    CopyAll(Packed(packed), Region(mapped));
    return Unmap();
  }

  cl_int Store(const uint8_t* packed, absl::Time deadline) override {
    CL_RETURN_IF_ERROR(MakeStaging());
    // The copy of the store before this one: mapping would wait for it without a bound.
    CL_RETURN_IF_ERROR(work_->Wait(deadline));
    D3dMapped mapped;
    CL_RETURN_IF_ERROR(Map(/*write=*/true, &mapped));
    CopyAll(Region(mapped), Packed(const_cast<uint8_t*>(packed)));
    CL_RETURN_IF_ERROR(Unmap());
    CL_RETURN_IF_ERROR(
        GiveCopy(subresource_.resource.get(), subresource_.index, staging_.get(), 0));
    return work_->CheckDevice();
  }

  absl::StatusOr<ExportedMemory> Export() override {
    RETURN_IF_ERROR(CheckCanShare());
    const D3dShape& shape = subresource_.shape;
    if (shape.keyed_mutex) {
      return absl::FailedPreconditionError(
          "it carries the application's keyed mutex, whose key cannot be known");
    }
    if (!shape.nt_handle)
      return absl::FailedPreconditionError("it was not made to be shared by an NT handle");
    if (shape.levels != 1 || shape.layers != 1)
      return absl::UnimplementedError("one level or layer of several has no handle of its own");
    return ExportTexture(subresource_.resource.get(), /*keyed_mutex=*/false);
  }
  cl_int BeginImported(absl::Time deadline) override {
    CL_RETURN_IF_ERROR(work_->Prepare());
    {
      const D3dCommands<T> commands(device_.get(), work_->turn());
      if (!commands.in_time()) return CL_OUT_OF_RESOURCES;
      work_->Mark(commands);
    }
    return work_->Wait(deadline);
  }
  cl_int EndImported(bool, absl::Time) override { return work_->CheckDevice(); }

  bool MakesShadow() const override { return true; }
  absl::StatusOr<ExportedMemory> MakeShadow() override {
    RETURN_IF_ERROR(CheckCanShare());
    typename T::Texture2dDesc desc = PlainTexture2d();
    desc.BindFlags = T::kShaderResource;
    desc.MiscFlags = T::kSharedKeyedMutex | T::kSharedNtHandle;
    os::ComPtr<typename T::Texture2d> made;
    const HRESULT result = device_->CreateTexture2D(&desc, nullptr, made.out());
    if (FAILED(result)) {
      return absl::UnavailableError(
          absl::StrCat("a texture with a keyed mutex is not to be had: 0x",
                       absl::Hex(static_cast<uint32_t>(result))));
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<os::KeyedMutex> mutex, os::KeyedMutexOf(made.get()));
    ASSIGN_OR_RETURN(ExportedMemory exported, ExportTexture(made.get(), /*keyed_mutex=*/true));
    shadow_ = os::ComPtr<typename T::Resource>::Share(made.get());
    mutex_ = std::make_shared<ShadowMutex>(mutex);
    return exported;
  }
  void DropShadow() override {
    mutex_ = nullptr;
    shadow_ = {};
  }
  cl_int CopyToShadow(ShadowSync, absl::Time deadline) override {
    CL_RETURN_IF_ERROR(work_->Prepare());
    CL_RETURN_IF_ERROR(mutex_->Take(deadline, work_->turn()));
    cl_int status = GiveCopy(shadow_.get(), 0, subresource_.resource.get(), subresource_.index);
    // The worker's driver knows nothing of this device's commands: they must have ended.
    if (status == CL_SUCCESS) status = work_->Wait(deadline);
    return mutex_->Give(/*to_worker=*/status == CL_SUCCESS, status, work_->turn());
  }
  cl_int CopyFromShadow(ShadowSync, absl::Time deadline) override {
    CL_RETURN_IF_ERROR(mutex_->Take(deadline, work_->turn()));
    cl_int status = GiveCopy(subresource_.resource.get(), subresource_.index, shadow_.get(), 0);
    if (status == CL_SUCCESS) status = work_->CheckDevice();
    return mutex_->Give(/*to_worker=*/false, status, work_->turn());
  }
  cl_int ReleaseUnchanged(absl::Time) override {
    if (mutex_ != nullptr) mutex_->TakeBack(work_->turn());
    return CL_SUCCESS;
  }

  cl_int GetMemInfo(cl_mem_info param_name, const InfoSink& sink) override {
    if (param_name != RulesOf(T::kTokens.api).mem_param) return CL_INVALID_VALUE;
    return sink.Value<void*>(subresource_.given);
  }
  cl_int GetImageInfo(cl_image_info, const InfoSink& sink) override {
    return sink.Value<UINT>(subresource_.index);
  }

 private:
  // Gives the device a copy, which it begins, and marks its end.
  cl_int GiveCopy(typename T::Resource* to, UINT to_index, typename T::Resource* from,
                  UINT from_index) {
    const D3dCommands<T> commands(device_.get(), work_->turn());
    if (!commands.in_time()) return CL_OUT_OF_RESOURCES;
    commands->CopySubresourceRegion(to, to_index, 0, 0, 0, from, from_index, nullptr);
    work_->Mark(commands);
    return CL_SUCCESS;
  }

  // True if any texture on the device could be opened by the worker's driver.
  absl::Status CheckCanShare() const {
    switch (subresource_.shape.kind) {
      case D3dShape::Kind::kTexture2d:
        break;
      case D3dShape::Kind::kBuffer:
        return absl::UnimplementedError("cl_khr_external_memory has no handles of D3D buffers");
      case D3dShape::Kind::kTexture3d:
        return absl::UnimplementedError("Direct3D shares no volumes by handle");
    }
    if (T::kSharedNtHandle == 0) {
      return absl::UnimplementedError(
          "Direct3D 10 has no NT handles, and a global one any process may open");
    }
    if (!subresource_.same_adapter) {
      return absl::UnimplementedError(
          "the context is not of the one OpenCL device on the Direct3D device's adapter");
    }
    return absl::OkStatus();
  }

  cl_int MakeStaging() {
    if (staging_) return CL_SUCCESS;
    CL_RETURN_IF_ERROR(work_->Prepare());
    const D3dLock<T> lock(device_.get(), work_->turn());
    if (!lock.in_time()) return CL_OUT_OF_RESOURCES;
    switch (subresource_.shape.kind) {
      case D3dShape::Kind::kBuffer:
        return MakeStagingBuffer();
      case D3dShape::Kind::kTexture2d:
        return MakeStagingTexture2d();
      case D3dShape::Kind::kTexture3d:
        return MakeStagingTexture3d();
    }
    return CL_OUT_OF_RESOURCES;
  }
  cl_int MakeStagingBuffer() {
    typename T::BufferDesc desc = {};
    desc.ByteWidth = subresource_.shape.width;
    desc.Usage = T::kStaging;
    desc.CPUAccessFlags = T::kCpuAccess;
    os::ComPtr<typename T::Buffer> made;
    return Keep(device_->CreateBuffer(&desc, nullptr, made.out()), made);
  }
  // Of the subresource's size, for the device's own use.
  typename T::Texture2dDesc PlainTexture2d() const {
    typename T::Texture2dDesc desc = {};
    desc.Width = static_cast<UINT>(subresource_.extent.width);
    desc.Height = static_cast<UINT>(subresource_.extent.height);
    desc.MipLevels = 1;
    desc.ArraySize = 1;
    desc.Format = static_cast<DXGI_FORMAT>(subresource_.shape.dxgi_format);
    desc.SampleDesc.Count = 1;
    return desc;
  }
  cl_int MakeStagingTexture2d() {
    typename T::Texture2dDesc desc = PlainTexture2d();
    desc.Usage = T::kStaging;
    desc.CPUAccessFlags = T::kCpuAccess;
    os::ComPtr<typename T::Texture2d> made;
    return Keep(device_->CreateTexture2D(&desc, nullptr, made.out()), made);
  }
  cl_int MakeStagingTexture3d() {
    typename T::Texture3dDesc desc = {};
    desc.Width = static_cast<UINT>(subresource_.extent.width);
    desc.Height = static_cast<UINT>(subresource_.extent.height);
    desc.Depth = static_cast<UINT>(subresource_.extent.depth);
    desc.MipLevels = 1;
    desc.Format = static_cast<DXGI_FORMAT>(subresource_.shape.dxgi_format);
    desc.Usage = T::kStaging;
    desc.CPUAccessFlags = T::kCpuAccess;
    os::ComPtr<typename T::Texture3d> made;
    return Keep(device_->CreateTexture3D(&desc, nullptr, made.out()), made);
  }
  template <typename Typed>
  cl_int Keep(HRESULT result, const os::ComPtr<Typed>& made) {
    if (FAILED(result)) return CL_OUT_OF_RESOURCES;
    staging_ = os::ComPtr<typename T::Resource>::Share(made.get());
    return CL_SUCCESS;
  }

  cl_int Map(bool write, D3dMapped* mapped) {
    const D3dLock<T> lock(device_.get(), work_->turn());
    if (!lock.in_time()) return CL_OUT_OF_RESOURCES;
    const HRESULT result =
        T::Map(lock.commands(), staging_.get(), subresource_.shape.kind, write, mapped);
    return SUCCEEDED(result) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  }
  // In any case.
  cl_int Unmap() {
    const D3dLock<T> lock(device_.get(), work_->turn());
    T::Unmap(lock.commands(), staging_.get(), subresource_.shape.kind);
    return lock.in_time() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  }

  size_t row_bytes() const { return subresource_.extent.width * subresource_.element_bytes; }
  Pitched Packed(uint8_t* packed) const {
    return {packed, row_bytes(), row_bytes() * subresource_.extent.height};
  }
  static Pitched Region(const D3dMapped& mapped) {
    return {static_cast<uint8_t*>(mapped.data), mapped.row_pitch, mapped.slice_pitch};
  }
  void CopyAll(const Pitched& to, const Pitched& from) const {
    CopyRows(to, from, row_bytes(), subresource_.extent.height, subresource_.extent.depth);
  }

  const std::shared_ptr<D3dThread> thread_;
  // Constant until the end.
  os::ComPtr<typename T::Device> device_;
  D3dSubresource<T> subresource_;
  const NativeKey key_;
  // Made with the memory object, if it goes by a shadow.
  os::ComPtr<typename T::Resource> shadow_;
  std::shared_ptr<ShadowMutex> mutex_;
  // Native thread only. Made with the first acquire.
  std::shared_ptr<D3dWork<T>> work_;
  os::ComPtr<typename T::Resource> staging_;
};

}  // namespace sluice::client::sharing
