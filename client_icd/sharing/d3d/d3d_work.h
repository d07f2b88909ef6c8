// SPDX-License-Identifier: Apache-2.0
// The application's device at work for us. Its commands are locked out while ours are given, and
// the end of ours is waited for, by a fence where the device has one, else by an event query. T is
// a traits class of d3d_traits.h. Native thread only (d3d_interop.h).
//
// The lock is the device's, which the application may have entered: the wait for it has no bound,
// and whoever waits for the command gives it up at the deadline (native_watch.h). Every call that
// takes the lock is made within it, so that nothing else waits so. Once it is had, and the command
// was given up, nothing is done any more (CL_OUT_OF_RESOURCES).
#pragma once

#include "client_icd/sharing/d3d/d3d_interop.h"
#include "client_icd/sharing/d3d/d3d_traits.h"

namespace sluice::client::sharing {

// The device's lock, as long as it lives. A device of one thread has nothing to lock.
template <typename T>
class D3dLock {
 public:
  // `turn` may be null.
  D3dLock(typename T::Device* device, NativeWatch::Turn* turn)
      : commands_(T::CommandsOf(device)),
        multithread_(os::ComPtr<typename T::Multithread>::Of(commands_.get())) {
    if (!multithread_) return;
    NativeWait wait(turn);
    multithread_->Enter();
    in_time_ = wait.End();
  }
  ~D3dLock() {
    if (multithread_) multithread_->Leave();
  }
  D3dLock(const D3dLock&) = delete;
  D3dLock& operator=(const D3dLock&) = delete;

  // False: the command was given up meanwhile. The lock is held all the same.
  bool in_time() const { return in_time_; }
  typename T::Commands* commands() const { return commands_.get(); }

 private:
  const os::ComPtr<typename T::Commands> commands_;
  const os::ComPtr<typename T::Multithread> multithread_;
  bool in_time_ = true;
};

// The application's commands locked out, and no predicate set, as long as it lives.
template <typename T>
class D3dCommands {
 public:
  D3dCommands(typename T::Device* device, NativeWatch::Turn* turn) : lock_(device, turn) {
    if (!lock_.in_time()) return;
    get()->GetPredication(predicate_.out(), &predicate_value_);
    if (predicate_) get()->SetPredication(nullptr, FALSE);
  }
  ~D3dCommands() {
    if (predicate_) get()->SetPredication(predicate_.get(), predicate_value_);
  }
  D3dCommands(const D3dCommands&) = delete;
  D3dCommands& operator=(const D3dCommands&) = delete;

  // As the lock's; if false, nothing may be done with them.
  bool in_time() const { return lock_.in_time(); }
  typename T::Commands* operator->() const { return get(); }
  typename T::Commands* get() const { return lock_.commands(); }

 private:
  const D3dLock<T> lock_;
  os::ComPtr<typename T::Predicate> predicate_;
  BOOL predicate_value_ = FALSE;
};

template <typename T>
class D3dWork {
 public:
  explicit D3dWork(typename T::Device* device) : device_(device) {}

  // Of the command that is worked for from now on (native_object.h).
  void UseTurn(NativeWatch::Turn* turn) { turn_ = turn; }
  NativeWatch::Turn* turn() const { return turn_; }

  // Before the first Mark.
  cl_int Prepare() {
    if (fence_.made() || query_) return CL_SUCCESS;
    const D3dLock<T> lock(device_, turn_);
    if (!lock.in_time()) return CL_OUT_OF_RESOURCES;
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
    const D3dLock<T> lock(device_, turn_);
    if (!lock.in_time()) return CL_OUT_OF_RESOURCES;
    return device_->GetDeviceRemovedReason() == S_OK ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  }

 private:
  cl_int WaitForFence(absl::Time deadline) {
    return signalled_ ? fence_.Wait(deadline) : CL_OUT_OF_RESOURCES;
  }
  cl_int WaitForQuery(absl::Time deadline) {
    const auto ask = [this] {
      const D3dLock<T> lock(device_, turn_);
      if (!lock.in_time()) return NativeProgress::kFailed;
      return ProgressOf(T::IsDone(lock.commands(), query_.get()));
    };
    return WaitForNative(ask, deadline);
  }

  typename T::Device* const device_;  // The owner's.
  NativeWatch::Turn* turn_ = nullptr;
  typename T::Fence fence_;
  os::ComPtr<typename T::Query> query_;
  bool signalled_ = false;
  bool pending_ = false;  // Work of ours was given to the device and not waited for.
};

}  // namespace sluice::client::sharing
