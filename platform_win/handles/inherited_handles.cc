// SPDX-License-Identifier: Apache-2.0
#include "platform_win/handles/inherited_handles.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform_win/handles/travel.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

constexpr int kMaxNumber = 64;

// "3=0:1a4,1b0": number, kind, handles in hexadecimal.
bool TakeEntry(absl::string_view text, InheritedHandle* out) {
  const std::vector<absl::string_view> sides = absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &out->number)) return false;
  if (out->number < 3 || out->number >= kMaxNumber) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(sides[1], absl::MaxSplits(':', 1));
  uint32_t kind = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &kind)) return false;
  std::vector<OwnedHandle> handles;
  for (const absl::string_view one : absl::StrSplit(parts[1], ',')) {
    uintptr_t value = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), value, 16);
    if (error != std::errc() || end != one.data() + one.size()) return false;
    auto handle = reinterpret_cast<HANDLE>(value);  // NOLINT(performance-no-int-to-ptr)
    ::SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0);
    handles.emplace_back(handle);
  }
  auto object = ObjectFrom(kind, std::move(handles), /*pulled=*/false);
  if (!object.ok()) return false;
  out->object = *std::move(object);
  return true;
}

}  // namespace

std::vector<InheritedHandle> TakeInheritedHandles() {
  std::vector<InheritedHandle> taken;
  wchar_t text[4096];
  const DWORD length = ::GetEnvironmentVariableW(kInheritedVariable, text, std::size(text));
  if (length == 0 || length >= std::size(text)) return taken;
  ::SetEnvironmentVariableW(kInheritedVariable, nullptr);
  const std::string entries = FromWide(std::wstring_view(text, length));
  for (const absl::string_view entry : absl::StrSplit(entries, ';', absl::SkipEmpty())) {
    InheritedHandle one;
    if (TakeEntry(entry, &one)) taken.push_back(std::move(one));
  }
  return taken;
}

absl::StatusOr<std::string> DescribeForChild(const HandleObject& object, int number,
                                             std::vector<OwnedHandle>* inheritable) {
  absl::StatusOr<TravelParts> parts = PartsOf(object, /*to_child=*/true);
  if (!parts.ok()) return parts.status();
  std::string text = absl::StrCat(number, "=", static_cast<uint32_t>(parts->kind), ":");
  bool first = true;
  for (HANDLE handle : parts->handles) {
    OwnedHandle duplicate = DuplicateHandleHere(handle, 0, /*inheritable=*/true);
    if (!duplicate.valid()) return WindowsStatus(::GetLastError(), "duplicating for a child");
    absl::StrAppend(&text, first ? "" : ",",
                    absl::Hex(reinterpret_cast<uintptr_t>(duplicate.get())));
    first = false;
    inheritable->push_back(std::move(duplicate));
  }
  return text;
}

}  // namespace sluice::os
