// SPDX-License-Identifier: Apache-2.0
// A subresource of Direct3D 10 or 11 as the sharing core sees one.
//
// Contents are staged: the subresource is copied to a staging resource of ours on the application's
// device, in the order of its commands, waited for by an event query, and mapped; and the reverse.
// The application's state is untouched: copies bind nothing, and its predicate, which would decide
// over them, is put aside meanwhile, with the device locked.
#pragma once

#include <memory>
#include <utility>

#include "client_icd/sharing/d3d/d3d_interop.h"
#include "client_icd/sharing/d3d/d3d_traits.h"
#include "client_icd/sharing/d3d_format.h"
#include "client_icd/sharing/native_object.h"

namespace sluice::sharing {

// The application's commands locked out, and no predicate set, as long as it lives. A device of one
// thread has nothing to lock.
template <typename T>
class D3dCommands {
 public:
  explicit D3dCommands(typename T::Device* device)
      : commands_(T::CommandsOf(device)),
        multithread_(ComRef<typename T::Multithread>::Of(commands_.get())) {
    if (multithread_) multithread_->Enter();
    commands_->GetPredication(predicate_.out(), &predicate_value_);
    if (predicate_) commands_->SetPredication(nullptr, FALSE);
  }
  ~D3dCommands() {
    if (predicate_) commands_->SetPredication(predicate_.get(), predicate_value_);
    if (multithread_) multithread_->Leave();
  }
  D3dCommands(const D3dCommands&) = delete;
  D3dCommands& operator=(const D3dCommands&) = delete;

  typename T::Commands* operator->() const { return commands_.get(); }
  typename T::Commands* get() const { return commands_.get(); }

 private:
  const ComRef<typename T::Commands> commands_;
  const ComRef<typename T::Multithread> multithread_;
  ComRef<typename T::Predicate> predicate_;
  BOOL predicate_value_ = FALSE;
};

// What an OpenCL memory object was made from.
template <typename T>
struct D3dSubresource {
  ComRef<typename T::Resource> resource;
  void* given = nullptr;  // The application's own pointer to it.
  D3dShape shape;
  UINT index = 0;
  D3dExtent extent;
  size_t element_bytes = 1;
};

template <typename T>
class D3dObject final : public NativeObject {
 public:
  D3dObject(std::shared_ptr<NativeThread> thread, ComRef<typename T::Device> device,
            D3dSubresource<T> subresource)
      : thread_(std::move(thread)),
        device_(std::move(device)),
        subresource_(std::move(subresource)) {}

  NativeKey key() const override {
    const auto identity = ComRef<IUnknown>::Of(subresource_.resource.get());
    return {reinterpret_cast<uintptr_t>(identity.get()), subresource_.index, 0};
  }
  NativeThread& thread() override { return *thread_; }

  cl_int Fetch(uint8_t* packed, absl::Time deadline) override {
    CL_RETURN_IF_ERROR(MakeStaging());
    {
      const D3dCommands<T> commands(device_.get());
      commands->CopySubresourceRegion(staging_.get(), 0, 0, 0, 0, subresource_.resource.get(),
                                      subresource_.index, nullptr);
      EndWork(commands);
    }
    CL_RETURN_IF_ERROR(WaitForWork(deadline));
    D3dMapped mapped;
    CL_RETURN_IF_ERROR(Map(/*write=*/false, &mapped));
    CopyAll(Packed(packed), Region(mapped));
    Unmap();
    return CL_SUCCESS;
  }

  cl_int Store(const uint8_t* packed, absl::Time deadline) override {
    CL_RETURN_IF_ERROR(MakeStaging());
    // The copy of the store before this one: mapping would wait for it without a bound.
    CL_RETURN_IF_ERROR(WaitForWork(deadline));
    D3dMapped mapped;
    CL_RETURN_IF_ERROR(Map(/*write=*/true, &mapped));
    CopyAll(Region(mapped), Packed(const_cast<uint8_t*>(packed)));
    Unmap();
    const D3dCommands<T> commands(device_.get());
    commands->CopySubresourceRegion(subresource_.resource.get(), subresource_.index, 0, 0, 0,
                                    staging_.get(), 0, nullptr);
    EndWork(commands);
    return device_->GetDeviceRemovedReason() == S_OK ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  }

  cl_int GetMemInfo(cl_mem_info param_name, const InfoSink& sink) override {
    if (param_name != RulesOf(T::kTokens.api).mem_param) return CL_INVALID_VALUE;
    return sink.Value<void*>(subresource_.given);
  }
  cl_int GetImageInfo(cl_image_info, const InfoSink& sink) override {
    return sink.Value<UINT>(subresource_.index);
  }

 private:
  // Marks the end of what the device was given, and sends it off.
  void EndWork(const D3dCommands<T>& commands) {
    T::End(commands.get(), query_.get());
    commands->Flush();
    pending_ = true;
  }
  cl_int WaitForWork(absl::Time deadline) {
    if (!pending_) return CL_SUCCESS;
    const ComRef<typename T::Commands> commands = T::CommandsOf(device_.get());
    CL_RETURN_IF_ERROR(WaitForNative(
        [&] { return ProgressOf(T::IsDone(commands.get(), query_.get())); }, deadline));
    pending_ = false;
    return CL_SUCCESS;
  }

  cl_int MakeStaging() {
    if (staging_) return CL_SUCCESS;
    typename T::QueryDesc desc = {};
    desc.Query = T::kEventQuery;
    if (FAILED(device_->CreateQuery(&desc, query_.out()))) return CL_OUT_OF_RESOURCES;
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
    ComRef<typename T::Buffer> made;
    return Keep(device_->CreateBuffer(&desc, nullptr, made.out()), made);
  }
  cl_int MakeStagingTexture2d() {
    typename T::Texture2dDesc desc = {};
    desc.Width = static_cast<UINT>(subresource_.extent.width);
    desc.Height = static_cast<UINT>(subresource_.extent.height);
    desc.MipLevels = 1;
    desc.ArraySize = 1;
    desc.Format = static_cast<DXGI_FORMAT>(subresource_.shape.dxgi_format);
    desc.SampleDesc.Count = 1;
    desc.Usage = T::kStaging;
    desc.CPUAccessFlags = T::kCpuAccess;
    ComRef<typename T::Texture2d> made;
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
    ComRef<typename T::Texture3d> made;
    return Keep(device_->CreateTexture3D(&desc, nullptr, made.out()), made);
  }
  template <typename Typed>
  cl_int Keep(HRESULT result, const ComRef<Typed>& made) {
    if (FAILED(result)) return CL_OUT_OF_RESOURCES;
    staging_ = ComRef<typename T::Resource>::Share(made.get());
    return CL_SUCCESS;
  }

  cl_int Map(bool write, D3dMapped* mapped) {
    const ComRef<typename T::Commands> commands = T::CommandsOf(device_.get());
    const HRESULT result =
        T::Map(commands.get(), staging_.get(), subresource_.shape.kind, write, mapped);
    return SUCCEEDED(result) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  }
  void Unmap() {
    T::Unmap(T::CommandsOf(device_.get()).get(), staging_.get(), subresource_.shape.kind);
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

  const std::shared_ptr<NativeThread> thread_;
  const ComRef<typename T::Device> device_;
  const D3dSubresource<T> subresource_;
  // Native thread only. Made with the first acquire.
  ComRef<typename T::Query> query_;
  ComRef<typename T::Resource> staging_;
  bool pending_ = false;  // Work of ours was given to the device and not waited for.
};

}  // namespace sluice::sharing
