// SPDX-License-Identifier: Apache-2.0
// The application's device at work for us: its commands locked out while ours are given, and the
// end of what it was given waited for, by a fence where the device has one, else by an event query.
// T is a traits class of d3d_traits.h. Native thread only (d3d_interop.h).
#pragma once

#include "client_icd/sharing/d3d/d3d_interop.h"
#include "client_icd/sharing/d3d/d3d_traits.h"

namespace sluice::sharing {

// The application's commands locked out, and no predicate set, as long as it lives. A device of one
// thread has nothing to lock.
template <typename T>
class D3dCommands {
 public:
  explicit D3dCommands(typename T::Device* device)
      : commands_(T::CommandsOf(device)),
        multithread_(ComPtr<typename T::Multithread>::Of(commands_.get())) {
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
  const ComPtr<typename T::Commands> commands_;
  const ComPtr<typename T::Multithread> multithread_;
  ComPtr<typename T::Predicate> predicate_;
  BOOL predicate_value_ = FALSE;
};

template <typename T>
class D3dWork {
 public:
  explicit D3dWork(typename T::Device* device) : device_(device) {}

  // Before the first Mark.
  cl_int Prepare() {
    if (fence_.made() || query_) return CL_SUCCESS;
    if (fence_.Make(device_, T::CommandsOf(device_).get())) return CL_SUCCESS;
    typename T::QueryDesc desc = {};
    desc.Query = T::kEventQuery;
    return SUCCEEDED(device_->CreateQuery(&desc, query_.out())) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  }
  // Behind all that the device was given, which it then begins.
  void Mark(const D3dCommands<T>& commands) {
    if (fence_.made()) {
      signalled_ = SUCCEEDED(fence_.Signal());
    } else {
      T::End(commands.get(), query_.get());
    }
    commands->Flush();
    pending_ = true;
  }
  // Until all before the last Mark has ended. CL_OUT_OF_RESOURCES at the deadline, or if the device
  // is lost.
  cl_int Wait(absl::Time deadline) {
    if (!pending_) return CL_SUCCESS;
    CL_RETURN_IF_ERROR(fence_.made() ? WaitForFence(deadline) : WaitForQuery(deadline));
    pending_ = false;
    return CheckDevice();
  }
  cl_int CheckDevice() {
    return device_->GetDeviceRemovedReason() == S_OK ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  }

 private:
  cl_int WaitForFence(absl::Time deadline) {
    return signalled_ ? fence_.Wait(deadline) : CL_OUT_OF_RESOURCES;
  }
  cl_int WaitForQuery(absl::Time deadline) {
    const ComPtr<typename T::Commands> commands = T::CommandsOf(device_);
    return WaitForNative([&] { return ProgressOf(T::IsDone(commands.get(), query_.get())); },
                         deadline);
  }

  typename T::Device* const device_;  // The owner's.
  typename T::Fence fence_;
  ComPtr<typename T::Query> query_;
  bool signalled_ = false;
  bool pending_ = false;  // Work of ours was given to the device and not waited for.
};

}  // namespace sluice::sharing
