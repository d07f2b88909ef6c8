// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/d3d/d3d_shadow.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace sluice::client::sharing {
namespace {

void Warn(const absl::Status& status) {
  ClientLog(ClientLogLevel::kWarning, absl::StrCat("sharing: D3D shadow: ", status.message()));
}

}  // namespace

cl_int ShadowMutex::Take(absl::Time deadline, NativeWatch::Turn* turn) {
  if (lost_) return CL_OUT_OF_RESOURCES;
  NativeWait wait(turn);
  const absl::Status taken = mutex_->Acquire(os::kTextureMakersKey, deadline - absl::Now());
  const bool in_time = wait.End();
  if (taken.ok()) return in_time ? CL_SUCCESS : Give(false, CL_OUT_OF_RESOURCES, turn);
  lost_ = absl::IsDataLoss(taken);
  Warn(taken);
  return CL_OUT_OF_RESOURCES;
}

cl_int ShadowMutex::Give(bool to_worker, cl_int status, NativeWatch::Turn* turn) {
  const NativeWait wait(turn);
  const absl::Status given =
      mutex_->Release(to_worker ? os::kTextureUsersKey : os::kTextureMakersKey);
  if (given.ok()) return status;
  Warn(given);
  return CL_OUT_OF_RESOURCES;
}

void ShadowMutex::TakeBack(NativeWatch::Turn* turn) {
  if (lost_) return;
  NativeWait wait(turn);
  // Mostly the worker has given it back, so that nobody will give it to its key: no waiting.
  const absl::Status taken = mutex_->Acquire(os::kTextureUsersKey, absl::ZeroDuration());
  wait.End();
  lost_ = absl::IsDataLoss(taken);
  if (taken.ok()) Give(/*to_worker=*/false, CL_SUCCESS, turn);
}

absl::StatusOr<ExportedMemory> ExportTexture(IUnknown* texture, bool keyed_mutex) {
  ExportedMemory exported;
  exported.kind = ExportedMemory::Kind::kD3d11Texture;
  exported.keyed_mutex = keyed_mutex;
  ASSIGN_OR_RETURN(exported.fd, os::ShareTexture(texture));
  return exported;
}

}  // namespace sluice::client::sharing
