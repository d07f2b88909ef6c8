// SPDX-License-Identifier: Apache-2.0
#include "platform_win/broker/programs.h"

#include <windows.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/security/trusted_file.h"
#include "platform_win/wide_text.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

constexpr size_t kHeaderBytes = 64 << 10;  // More than any linker's.

// The structure that lies at `offset`; false if the bytes end before it does.
template <typename T>
bool Take(const std::string& bytes, size_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

// The file's problem, in words that follow its path; "" if there is none.
std::string Problem(const std::string& bytes, uint64_t size, bool library) {
  constexpr char kNone[] = "is no program of Windows'";
  if (size == 0) return "is empty";
  IMAGE_DOS_HEADER dos;
  if (!Take(bytes, 0, &dos) || dos.e_magic != IMAGE_DOS_SIGNATURE || dos.e_lfanew < 0) return kNone;
  const auto start = static_cast<size_t>(dos.e_lfanew);
  IMAGE_NT_HEADERS64 nt;
  if (!Take(bytes, start, &nt) || nt.Signature != IMAGE_NT_SIGNATURE) return kNone;
  constexpr WORD kOurs = IMAGE_FILE_MACHINE_AMD64;
  if (nt.FileHeader.Machine != kOurs || nt.OptionalHeader.Magic != IMAGE_NT_OPTIONAL_HDR64_MAGIC)
    return "is for another processor than this sluicectl";
  if (((nt.FileHeader.Characteristics & IMAGE_FILE_DLL) != 0) != library)
    return library ? "is no library" : "is a library, not a program";
  const size_t sections =
      start + offsetof(IMAGE_NT_HEADERS64, OptionalHeader) + nt.FileHeader.SizeOfOptionalHeader;
  for (size_t i = 0; i < nt.FileHeader.NumberOfSections; ++i) {
    IMAGE_SECTION_HEADER section;
    if (!Take(bytes, sections + i * sizeof(section), &section)) return "is cut short";
    // A section without a place in the file has no bytes there, whatever its size.
    if (section.PointerToRawData != 0 &&
        uint64_t{section.PointerToRawData} + section.SizeOfRawData > size) {
      return "is cut short";
    }
  }
  return nt.FileHeader.NumberOfSections == 0 ? kNone : "";
}

// OK if it is a whole program or library, as far as its headers tell. Otherwise only the first user
// would notice an incomplete copy, or a web page that was saved under the name.
absl::Status CheckWhole(const std::string& path) {
  const os::OwnedHandle file(::CreateFileW(os::ToWide(path).c_str(), GENERIC_READ,
                                           FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                           nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
  LARGE_INTEGER size = {};
  if (!file.valid() || !::GetFileSizeEx(file.get(), &size))
    return os::WindowsStatus(::GetLastError(), absl::StrCat("reading ", path));
  std::string bytes(std::min<uint64_t>(size.QuadPart, kHeaderBytes), '\0');
  DWORD got = 0;
  if (!bytes.empty() &&
      !::ReadFile(file.get(), bytes.data(), static_cast<DWORD>(bytes.size()), &got, nullptr)) {
    return os::WindowsStatus(::GetLastError(), absl::StrCat("reading ", path));
  }
  bytes.resize(got);
  const std::string problem =
      Problem(bytes, static_cast<uint64_t>(size.QuadPart), absl::EndsWithIgnoreCase(path, ".dll"));
  return problem.empty() ? absl::OkStatus()
                         : absl::InvalidArgumentError(absl::StrCat(path, " ", problem));
}

// OpenCL's loader and the service manager pass the path to the system, which takes up to this
// length. Longer paths are only for programs that declare that they know them, which those two need
// not.
absl::Status CheckLength(const std::string& path) {
  constexpr size_t kLongest = MAX_PATH - 1;
  const size_t length = os::ToWide(path).size();
  if (length <= kLongest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", length,
                   " characters, and Windows starts programs and loads drivers from paths "
                   "of ",
                   kLongest,
                   " at most: unpack Sluice into a folder with a shorter path, such as "
                   "C:\\Program Files\\Sluice, and install it from there"));
}

}  // namespace

absl::Status CheckPrograms(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> paths = {folder};
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    std::error_code error;
    std::string path = absl::StrCat(folder, "\\", name);
    RETURN_IF_ERROR(CheckLength(path));
    if (!std::filesystem::exists(os::ToWide(path), error)) missing.push_back(name);
    paths.push_back(std::move(path));
  }
  if (!missing.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, " lacks ", absl::StrJoin(missing, ", "),
                     ": unpack all of Sluice there; sluicectl registers what lies beside itself"));
  }
  std::vector<absl::Status> checks;
  for (const std::string& path : paths) {
    checks.push_back(os::CheckOnlyTrustedChange(path, /*or_own_user=*/false));
  }
  checks.push_back(os::CheckOnlyTrustedMoveAbove(folder));
  for (const absl::Status& status : checks) {
    if (status.ok()) continue;
    // The advice in that message is about configuration files, not programs.
    const absl::string_view why = status.message().substr(0, status.message().find(": "));
    return absl::Status(
        status.code(), absl::StrCat(why,
                                    ": as an administrator, unpack Sluice into a folder that only "
                                    "administrators change, such as C:\\Program Files\\Sluice, and "
                                    "install it from there"));
  }
  for (size_t i = 1; i < paths.size(); ++i) {
    const absl::Status whole = CheckWhole(paths[i]);
    if (whole.ok()) continue;
    return absl::Status(whole.code(), absl::StrCat(whole.message(),
                                                   ": unpack Sluice there again, and install it "
                                                   "then; nothing was changed"));
  }
  return absl::OkStatus();
}

std::string MissingLoader() {
  std::wstring folder(MAX_PATH, L'\0');
  folder.resize(::GetSystemDirectoryW(folder.data(), MAX_PATH));
  std::error_code error;
  if (folder.empty() || std::filesystem::exists(folder + L"\\OpenCL.dll", error)) return "";
  return "this machine has no loader for OpenCL, OpenCL.dll, which comes with the drivers of "
         "graphics adapters: programs that bring none of their own see no device until there is "
         "one. Khronos' is in the releases of github.com/KhronosGroup/OpenCL-SDK";
}

}  // namespace sluice::broker
