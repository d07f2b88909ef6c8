// SPDX-License-Identifier: Apache-2.0
#include "platform_win/security/trusted_file.h"

#include <windows.h>
// After windows.h.
#include <aclapi.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/security/access_notation.h"
#include "platform_win/security/account.h"
#include "platform_win/wide_text.h"
#include "proto/status_macros.h"

namespace sluice::os {
namespace {

// 0x1200a9: FILE_GENERIC_READ and FILE_GENERIC_EXECUTE.
constexpr wchar_t kFolderList[] = L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)";
// Rights to change a file, to put one into a folder, or to get such rights.
constexpr DWORD kChange = FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | DELETE |
                          WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;

// Rights to rename a folder, to remove one that is in it, or to get such rights.
constexpr DWORD kMove = FILE_DELETE_CHILD | DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_ALL;

class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() { ::LocalFree(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  DWORD Read(const std::string& path) {
    return ::GetNamedSecurityInfoW(ToWide(path).c_str(), SE_FILE_OBJECT,
                                   OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner_,
                                   nullptr, &list_, nullptr, &descriptor_);
  }
  // Reads the folder itself, not the target of a link.
  DWORD ReadFolder(const std::wstring& path) {
    const OwnedHandle folder(::CreateFileW(
        path.c_str(), READ_CONTROL, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
        OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
    if (!folder.valid()) return ::GetLastError();
    return ::GetSecurityInfo(folder.get(), SE_FILE_OBJECT,
                             OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner_,
                             nullptr, &list_, nullptr, &descriptor_);
  }
  PSID owner() const { return owner_; }
  ACL* list() const { return list_; }

 private:
  PSECURITY_DESCRIPTOR descriptor_ = nullptr;
  PSID owner_ = nullptr;
  ACL* list_ = nullptr;
};

const std::string& OwnerOfWindows() {
  static const std::string* owner = [] {
    wchar_t folder[MAX_PATH] = {};
    ::GetSystemDirectoryW(folder, MAX_PATH);
    Descriptor descriptor;
    return new std::string(
        descriptor.Read(FromWide(folder)) == ERROR_SUCCESS ? TextOfSid(descriptor.owner()) : "");
  }();
  return *owner;
}

bool IsTrusted(PSID sid, bool or_own_user) {
  if (::IsWellKnownSid(sid, WinLocalSystemSid) ||
      ::IsWellKnownSid(sid, WinBuiltinAdministratorsSid))
    return true;
  const std::string text = TextOfSid(sid);
  return !text.empty() && (text == OwnerOfWindows() || (or_own_user && text == OwnSid()));
}

absl::Status CheckOwner(const std::string& path, PSID owner, bool or_own_user) {
  // A file system without owners (FAT) gives none.
  if (owner == nullptr || !::IsValidSid(owner))
    return absl::PermissionDeniedError(absl::StrCat(path, " has no owner: put it on an NTFS disk"));
  if (IsTrusted(owner, or_own_user)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, " belongs to ", NameOfSid(owner),
                   ", not to administrators or the system: look at what it says, then `icacls \"",
                   path, "\" /setowner *S-1-5-32-544` makes it theirs"));
}

// An account that is not trusted and has one of the rights; "" if there is none.
std::string OthersWith(DWORD rights, ACL* list, bool or_own_user) {
  std::string others = list == nullptr ? "everybody" : "";
  for (DWORD i = 0; list != nullptr && i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (!::GetAce(list, i, &entry)) continue;
    // All kinds of entries that allow something about a file have this layout.
    auto* const allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    const bool allows = allowed->Header.AceType == ACCESS_ALLOWED_ACE_TYPE ||
                        allowed->Header.AceType == ACCESS_ALLOWED_CALLBACK_ACE_TYPE;
    if (!allows || (allowed->Header.AceFlags & INHERIT_ONLY_ACE) != 0) continue;
    if ((allowed->Mask & rights) == 0 || IsTrusted(&allowed->SidStart, or_own_user)) continue;
    others = NameOfSid(&allowed->SidStart);
  }
  return others;
}

// Names of devices (nul, con, com1) name them in every folder.
bool IsDevice(const std::string& path) {
  const OwnedHandle opened(
      ::CreateFileW(ToWide(path).c_str(), 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  return opened.valid() && ::GetFileType(opened.get()) != FILE_TYPE_DISK;
}

}  // namespace

absl::Status CheckOnlyTrustedChange(const std::string& path, bool or_own_user) {
  if (IsDevice(path))
    return absl::InvalidArgumentError(absl::StrCat(path, " is a device, not a file"));
  Descriptor descriptor;
  if (const DWORD error = descriptor.Read(path); error != ERROR_SUCCESS) {
    return WindowsStatus(error, absl::StrCat("asking whose ", path, " is"));
  }
  return CheckOnlyTrustedChange(path, descriptor.owner(), descriptor.list(), or_own_user);
}

absl::Status CheckOnlyTrustedChange(const std::string& path, PSID owner, ACL* list,
                                    bool or_own_user) {
  RETURN_IF_ERROR(CheckOwner(path, owner, or_own_user));
  const std::string others = OthersWith(kChange, list, or_own_user);
  if (others.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      path, " may be changed by ", others,
      ", not only by administrators and the system: `icacls \"", path,
      "\" /inheritance:r /grant *S-1-5-18:R *S-1-5-32-544:F *S-1-5-32-545:R` mends that"));
}

absl::Status CheckOnlyTrustedMoveAbove(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(ToWide(path)).parent_path();
  while (folder.has_parent_path()) {
    const std::string name = FromWide(folder.wstring());
    Descriptor descriptor;
    if (const DWORD error = descriptor.ReadFolder(folder.wstring()); error != ERROR_SUCCESS) {
      return WindowsStatus(error, absl::StrCat("asking whose ", name, " is"));
    }
    const bool is_root = folder == folder.root_path();
    RETURN_IF_ERROR(CheckOnlyTrustedMove(name, descriptor.owner(), descriptor.list(), is_root));
    if (is_root) break;
    folder = folder.parent_path();
  }
  return absl::OkStatus();
}

absl::Status CheckOnlyTrustedMove(const std::string& folder, PSID owner, ACL* list, bool is_root) {
  RETURN_IF_ERROR(CheckOwner(folder, owner, /*or_own_user=*/false));
  const DWORD rights = is_root ? kMove & ~DWORD{DELETE} : kMove;
  const std::string others = OthersWith(rights, list, /*or_own_user=*/false);
  if (others.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(folder, " may be changed by ", others,
                   ", who can put another folder in place of one in it: choose a folder that only "
                   "administrators and the system change"));
}

namespace {

// An existing folder must belong to a trusted account, or to this process's user.
absl::Status CreateFolder(const std::string& path, const AccessNotation& access, bool or_own_user) {
  const std::wstring wide = ToWide(path);
  SECURITY_ATTRIBUTES attributes = {sizeof(attributes), access.get(), FALSE};
  if (::CreateDirectoryW(wide.c_str(), &attributes)) return absl::OkStatus();
  if (const DWORD error = ::GetLastError(); error != ERROR_ALREADY_EXISTS)
    return WindowsStatus(error, absl::StrCat("creating ", path));
  const DWORD kind = ::GetFileAttributesW(wide.c_str());
  if (kind == INVALID_FILE_ATTRIBUTES || (kind & FILE_ATTRIBUTE_DIRECTORY) == 0 ||
      (kind & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no folder; remove it"));
  }
  Descriptor descriptor;
  if (const DWORD error = descriptor.Read(path); error != ERROR_SUCCESS)
    return WindowsStatus(error, absl::StrCat("asking whose ", path, " is"));
  return CheckOwner(path, descriptor.owner(), or_own_user);
}

// `owner`: null leaves it.
absl::Status SetAccess(const std::string& path, const AccessNotation& access, PSID owner) {
  std::wstring wide = ToWide(path);
  SECURITY_INFORMATION what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
  if (owner != nullptr) what |= OWNER_SECURITY_INFORMATION;
  const DWORD error = ::SetNamedSecurityInfoW(wide.data(), SE_FILE_OBJECT, what, owner, nullptr,
                                              access.list(), nullptr);
  if (error == ERROR_SUCCESS) return absl::OkStatus();
  return WindowsStatus(error, absl::StrCat("securing ", path));
}

// By a handle: Wine's SetNamedSecurityInfo does not ask for the right that a label needs.
absl::Status SetLabel(const std::string& path, const AccessNotation& access) {
  const OwnedHandle folder(::CreateFileW(
      ToWide(path).c_str(), WRITE_OWNER, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
      nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  const DWORD error =
      folder.valid() ? ::SetSecurityInfo(folder.get(), SE_FILE_OBJECT, LABEL_SECURITY_INFORMATION,
                                         nullptr, nullptr, nullptr, access.label())
                     : ::GetLastError();
  if (error == ERROR_SUCCESS) return absl::OkStatus();
  return WindowsStatus(error, absl::StrCat("opening ", path, " to low integrity"));
}

}  // namespace

absl::Status SecureFolder(const std::string& path) {
  const AccessNotation access(kFolderList);
  if (access.get() == nullptr) return WindowsStatus(::GetLastError(), "writing an access list");
  RETURN_IF_ERROR(CreateFolder(path, access, /*or_own_user=*/false));
  alignas(SID) char administrators[SECURITY_MAX_SID_SIZE];
  DWORD length = sizeof(administrators);
  ::CreateWellKnownSid(WinBuiltinAdministratorsSid, nullptr, administrators, &length);
  return SetAccess(path, access, administrators);
}

absl::Status MakeFolderOf(const std::string& user, const std::string& path) {
  // 0x1201ff is all but changing owner and access list, and removing it. The own user gets all
  // ("FA"): the label needs it.
  const absl::string_view rights = user == OwnSid() ? "FA" : "0x1201ff";
  const AccessNotation access(
      ToWide(absl::StrCat("D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;;", rights, ";;;", user,
                          ")(A;OICIIO;0x1301ff;;;", user, ")")));
  const AccessNotation low(L"S:(ML;OICI;NW;;;LW)");
  if (access.get() == nullptr || low.get() == nullptr)
    return WindowsStatus(::GetLastError(), "writing an access list");
  RETURN_IF_ERROR(CreateFolder(path, access, /*or_own_user=*/true));
  RETURN_IF_ERROR(SetAccess(path, access, nullptr));
  return SetLabel(path, low);
}

}  // namespace sluice::os
