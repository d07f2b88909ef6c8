// SPDX-License-Identifier: Apache-2.0
//
// Between the messages of proto/resources.proto and the plain types behind them. Checks form only:
// what the numbers mean is judged by CompleteShape and the registry.
//
// Thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "broker/resources/hub.h"
#include "proto/resources.pb.h"

namespace sluice::broker {

CreateParameters ReadCreate(const v1::CreateResourceRequest& request);
CreateParameters ReadImport(const v1::ImportResourceRequest& request);
absl::StatusOr<ResourceAccess> ReadAccess(v1::ResourceAccess access);
absl::StatusOr<ResourceTurns::Contents> ReadContents(const v1::ReleaseResourceRequest& request);

void FillState(const ResourceStateView& state, v1::ResourceState* message);
void FillGrant(const ResourceGrant& grant, v1::AcquireResourceReply* reply);
void FillDescription(const ResourceView& view, const ResourceStateView& state,
                     v1::ResourceDescription* message);

}  // namespace sluice::broker
