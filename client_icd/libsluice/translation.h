// SPDX-License-Identifier: Apache-2.0
//
// Between sluice.h's structures and the messages of proto/resources.proto. Reads no more of a
// structure than its `struct_size` says, and writes no more. Thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_icd/libsluice/resource_connection.h"
#include "client_icd/libsluice/sluice/sluice.h"
#include "proto/resources.pb.h"

namespace sluice::client {

absl::StatusOr<v1::CreateResourceRequest> ToCreateRequest(const sluice_create_info& info);
absl::StatusOr<v1::ImportResourceRequest> ToImportRequest(const sluice_create_info& info);
v1::ResourceAccess ToAccess(sluice_access access);

sluice_state FromState(const v1::ResourceState& message);
absl::Status FromDescription(const v1::ResourceDescription& message,
                             sluice_description* description);
// Makes `handle` one without descriptors; fails if it is too small to be one.
absl::Status ClearHandle(sluice_handle* handle);
// Moves the descriptors into `handle`, which was cleared.
void GiveHandle(ExportedHandle exported, sluice_handle* handle);

}  // namespace sluice::client
