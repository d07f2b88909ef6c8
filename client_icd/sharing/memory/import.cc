// SPDX-License-Identifier: Apache-2.0
// The import way: the native object's memory goes to the worker as a descriptor, and the memory
// object is made in it. Which memory may be used, the worker decides by looking at the descriptor.
#include "absl/strings/str_cat.h"
#include "client_icd/sharing/core/ways.h"
#include "proto/codec.h"
#include "proto/status_macros.h"

namespace sluice::client::sharing {
namespace {

using Kind = ExportedMemory::Kind;

void Describe(const ExportedMemory& exported, bool writable, bool shadow, pb::ImportedMemory* out) {
  out->set_offset(exported.offset);
  out->set_row_pitch(exported.row_pitch);
  out->set_writable(writable);
  if (exported.kind == Kind::kD3d11Texture) out->set_handle(pb::IMPORTED_HANDLE_D3D11_TEXTURE);
  out->set_keyed_mutex(exported.keyed_mutex);
  if (exported.kind != Kind::kOpaqueFd) return;
  out->set_handle(pb::IMPORTED_HANDLE_OPAQUE_FD);
  out->set_device_uuid(exported.device_uuid, sizeof(exported.device_uuid));
  out->set_driver_uuid(exported.driver_uuid, sizeof(exported.driver_uuid));
  out->set_allocation_bytes(exported.allocation_bytes);
  out->set_shadow(shadow);
}

// The tight slices that the worker will assume.
bool HasTightSlices(const MemObject& memory, const ExportedMemory& exported) {
  if (!memory.is_image() || exported.slice_pitch == 0 || memory.image().extent.v[2] == 1)
    return true;
  const ImageShape& shape = memory.image();
  const size_t row_pitch =
      exported.row_pitch != 0 ? exported.row_pitch : shape.extent.v[0] * shape.element_bytes;
  return exported.slice_pitch == row_pitch * shape.extent.v[1];
}

}  // namespace

absl::Status MakeImported(MemObject* memory, SharedObject* shared) {
  ASSIGN_OR_RETURN(const ExportedMemory exported, shared->native().Export());
  return ImportExported(memory, exported, shared);
}

absl::Status ImportExported(MemObject* memory, const ExportedMemory& exported,
                            SharedObject* shared) {
  const bool writable = shared->native().writable();
  const bool shadow = SharedOf(*memory) != shared;
  if (!HasTightSlices(*memory, exported))
    return absl::UnimplementedError("its slices do not follow each other");
  if (!memory->session().transport().SendHandle(memory->id(), exported.fd.get()))
    return absl::UnavailableError("this session hands no descriptors over");
  ScopedCommand command;
  if (memory->is_image()) {
    pb::CreateImportedImage& body = *command->mutable_create_imported_image();
    body.set_mem_id(memory->id());
    body.set_context_id(memory->context().id());
    body.set_flags(WireMemFlags(memory->flags()));
    wire::EncodeImageFormat(memory->image().format, body.mutable_format());
    wire::EncodeImageDesc(memory->image().desc, 0, body.mutable_desc());
    Describe(exported, writable, shadow, body.mutable_memory());
  } else {
    pb::CreateImportedBuffer& body = *command->mutable_create_imported_buffer();
    body.set_mem_id(memory->id());
    body.set_context_id(memory->context().id());
    body.set_flags(WireMemFlags(memory->flags()));
    body.set_size(memory->bytes());
    Describe(exported, writable, shadow, body.mutable_memory());
  }
  pb::Answer answer;
  const cl_int status = memory->stream().Call(*command, {}, &answer);
  if (status != CL_SUCCESS) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the worker answers ", status, answer.refusal().empty() ? "" : ": ", answer.refusal()));
  }
  memory->SetMade({});
  if (exported.kind == Kind::kD3d11Texture || exported.kind == Kind::kOpaqueFd)
    shared->SetChangesHands();
  return absl::OkStatus();
}

}  // namespace sluice::client::sharing
