// SPDX-License-Identifier: Apache-2.0
#include "platform_win/handles/travel.h"

#include <winternl.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/process_object.h"
#include "platform_win/handles/section.h"
#include "platform_win/pipe.h"

namespace sluice::os {
namespace {

// The name that the system's object manager has for the handle's type, such as L"Section".
std::wstring TypeOf(HANDLE handle) {
  alignas(8) char buffer[1024];
  ULONG length = 0;
  if (::NtQueryObject(handle, ObjectTypeInformation, buffer, sizeof(buffer), &length) != 0) {
    return L"";
  }
  const auto* name = reinterpret_cast<const UNICODE_STRING*>(buffer);
  return std::wstring(name->Buffer, name->Length / sizeof(wchar_t));
}

absl::Status CheckTypes(HandleKind kind, const std::vector<OwnedHandle>& handles) {
  if (kind == HandleKind::kGraphics && handles.size() == 1) {
    // Texture or buffer, and fence, as the graphics kernel names them.
    const std::wstring type = TypeOf(handles[0].get());
    if (type == L"DxgkSharedResource" || type == L"DxgkSharedSyncObject") return absl::OkStatus();
  }
  if (kind != HandleKind::kSection) {
    return absl::InvalidArgumentError("a handle that is no shared memory");
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    const std::wstring_view wanted = i == 0 ? L"Section" : L"Event";
    if (TypeOf(handles[i].get()) != wanted) {
      return absl::InvalidArgumentError("a handle of another type than the message says");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TravelParts> PartsOf(const HandleObject& object, bool to_child) {
  TravelParts parts;
  parts.kind = object.kind();
  parts.handles.push_back(object.handle());
  switch (object.kind()) {
    case HandleKind::kListener:
      return absl::FailedPreconditionError("a listening pipe cannot be given away");
    case HandleKind::kSection:
      for (const OwnedHandle& bell : static_cast<const Section&>(object).bells()) {
        if (bell.valid()) parts.handles.push_back(bell.get());
      }
      break;
    case HandleKind::kPipe:
      if (to_child || static_cast<const PipeEnd&>(object).OtherEndStays()) break;
      // The receiver will duplicate for both ends, so it needs the other end's process.
      parts.owned = static_cast<const PipeEnd&>(object).OtherProcess();
      if (!parts.owned.valid()) {
        return absl::FailedPreconditionError("the other end of this pipe has no process yet");
      }
      parts.handles.push_back(parts.owned.get());
      break;
    default:
      break;
  }
  return parts;
}

absl::StatusOr<std::shared_ptr<HandleObject>> ObjectFrom(uint32_t kind_number,
                                                         std::vector<OwnedHandle> handles,
                                                         bool pulled) {
  const auto kind = static_cast<HandleKind>(kind_number);
  if (handles.empty() || kind_number > static_cast<uint32_t>(HandleKind::kGraphics)) {
    return absl::InvalidArgumentError(absl::StrCat("a handle of unknown kind ", kind_number));
  }
  if (pulled) {
    if (absl::Status checked = CheckTypes(kind, handles); !checked.ok()) return checked;
  }
  switch (kind) {
    case HandleKind::kSection: {
      Section::Bells bells;
      for (size_t i = 1; i < handles.size() && i <= bells.size(); ++i) {
        bells[i - 1] = std::move(handles[i]);
      }
      return std::make_shared<Section>(std::move(handles[0]), std::move(bells));
    }
    case HandleKind::kPipe: {
      if (handles.size() == 1) return std::make_shared<PipeEnd>(std::move(handles[0]));
      PipePeer peer;
      peer.process = std::move(handles[1]);
      return std::make_shared<PipeEnd>(std::move(handles[0]), std::move(peer));
    }
    case HandleKind::kProcess:
      return std::make_shared<ProcessObject>(std::move(handles[0]), OwnedHandle());
    case HandleKind::kEvent:
    case HandleKind::kFile:
    case HandleKind::kGraphics:
      return std::make_shared<HandleObject>(kind, std::move(handles[0]));
    case HandleKind::kListener:
      break;
  }
  return absl::InvalidArgumentError("a listening pipe cannot be received");
}

}  // namespace sluice::os
