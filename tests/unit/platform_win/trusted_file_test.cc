// SPDX-License-Identifier: Apache-2.0
#include "platform_win/security/trusted_file.h"

#include <gtest/gtest.h>
// After windows.h.
#include <aclapi.h>
#include <sddl.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "broker/os/this_process.h"
#include "platform_win/security/account.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

constexpr char kSomebody[] = "S-1-5-21-1-2-3-1001";

// A file's owner and access list, as Windows' own notation has them.
class Access {
 public:
  explicit Access(const std::string& sddl) {
    EXPECT_TRUE(::ConvertStringSecurityDescriptorToSecurityDescriptorW(
        ToWide(sddl).c_str(), SDDL_REVISION_1, &descriptor_, nullptr))
        << sddl;
    BOOL present = FALSE;
    BOOL defaulted = FALSE;
    ::GetSecurityDescriptorOwner(descriptor_, &owner_, &defaulted);
    ::GetSecurityDescriptorDacl(descriptor_, &present, &list_, &defaulted);
  }
  ~Access() { ::LocalFree(descriptor_); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  ACL* list() const { return list_; }
  absl::Status CheckMove(bool is_root = false) const {
    return CheckOnlyTrustedMove("the folder", owner_, list_, is_root);
  }
  absl::Status Check(bool or_own_user = false) const {
    return CheckOnlyTrustedChange("the file", owner_, list_, or_own_user);
  }

 private:
  PSECURITY_DESCRIPTOR descriptor_ = nullptr;
  PSID owner_ = nullptr;
  ACL* list_ = nullptr;
};

bool Says(const absl::Status& status, const std::string& text) {
  return absl::IsPermissionDenied(status) && status.message().find(text) != absl::string_view::npos;
}

// The system's and the administrators' own, which others only read.
TEST(TrustedFileTest, TrustedOnesAlone) {
  for (const char* owner : {"SY", "BA"}) {
    const absl::Status status =
        Access(absl::StrCat("O:", owner, "D:(A;;FA;;;SY)(A;;FA;;;BA)(A;;FRFX;;;WD)")).Check();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(Access("O:BAD:").Check().ok()) << "nobody may do anything";
}

// Whoever owns a file may change its access list: anybody else's is refused, with what to do.
TEST(TrustedFileTest, AnotherOwner) {
  const absl::Status status = Access(absl::StrCat("O:", kSomebody, "D:(A;;FA;;;SY)")).Check();
  EXPECT_TRUE(Says(status, absl::StrCat("the file belongs to ", kSomebody))) << status;
  EXPECT_TRUE(Says(status, "icacls \"the file\" /setowner *S-1-5-32-544")) << status;
  EXPECT_FALSE(Access("O:BUD:(A;;FA;;;SY)").Check().ok());
}

// Each right by which a file, or what is in a folder, changes, and each by which that can be had.
TEST(TrustedFileTest, EachRightToChange) {
  for (const char* right : {"0x2", "0x4", "0x40", "SD", "WD", "WO", "GW", "GA", "FW", "FA"}) {
    const absl::Status status =
        Access(absl::StrCat("O:BAD:(A;;FA;;;BA)(A;;", right, ";;;", kSomebody, ")")).Check();
    EXPECT_TRUE(Says(status, absl::StrCat("may be changed by ", kSomebody))) << right << status;
    EXPECT_TRUE(Says(status, "icacls \"the file\" /inheritance:r")) << right;
  }
  EXPECT_TRUE(Access("O:BAD:(A;;FRFXRC;;;WD)").Check().ok()) << "reading is none";
}

// Entries that forbid, or that are only for what is made in the folder, give nobody anything; an
// entry with a condition may.
TEST(TrustedFileTest, KindsOfEntries) {
  EXPECT_TRUE(Access("O:BAD:(D;;FA;;;WD)(A;OICIIO;FA;;;WD)").Check().ok());
  const Access conditional("O:BAD:(A;;FA;;;WD)");
  void* entry = nullptr;
  ASSERT_TRUE(::GetAce(conditional.list(), 0, &entry));
  static_cast<ACE_HEADER*>(entry)->AceType = ACCESS_ALLOWED_CALLBACK_ACE_TYPE;
  EXPECT_FALSE(conditional.Check().ok());
}

// Without a list, everybody may do anything.
TEST(TrustedFileTest, NoList) {
  EXPECT_TRUE(Says(Access("O:BA").Check(), "may be changed by everybody"));
}

// A console daemon believes its own user's file. (Under Wine that user owns Windows, too.)
TEST(TrustedFileTest, OwnUsers) {
  const Access own(absl::StrCat("O:", OwnSid(), "D:(A;;FA;;;", OwnSid(), ")"));
  EXPECT_TRUE(own.Check(/*or_own_user=*/true).ok());
}

// Of a folder above, whoever may rename it, remove what is in it, or become able to, is refused;
// who may only add to it is not, as on a disk's root, which nobody moves.
TEST(TrustedFileTest, FoldersAbove) {
  for (const char* right : {"0x40", "SD", "WD", "WO", "GA", "FA"}) {
    const absl::Status status =
        Access(absl::StrCat("O:BAD:(A;;FA;;;BA)(A;;", right, ";;;", kSomebody, ")")).CheckMove();
    EXPECT_TRUE(Says(status, absl::StrCat("the folder may be changed by ", kSomebody))) << right;
  }
  EXPECT_TRUE(Access("O:BAD:(A;;0x6;;;WD)(A;OICIIO;FA;;;WD)").CheckMove().ok());
  EXPECT_TRUE(Access("O:BAD:(A;;0x10006;;;WD)").CheckMove(/*is_root=*/true).ok());
  EXPECT_FALSE(Access("O:BAD:(A;;0x46;;;WD)").CheckMove(/*is_root=*/true).ok());
  EXPECT_TRUE(Says(Access(absl::StrCat("O:", kSomebody, "D:")).CheckMove(), "belongs to"));
}

// A file as it lies there: a new one is its user's; one that everybody may write is refused; what
// is not there is said.
TEST(TrustedFileTest, RealFiles) {
  const std::string path = testing::TempDir() + "sluice-trusted-\u00e9-\u9375.toml";
  std::wstring wide = ToWide(path);
  const HANDLE file =
      ::CreateFileW(wide.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS, 0, nullptr);
  ASSERT_NE(file, INVALID_HANDLE_VALUE) << path;
  ::CloseHandle(file);
  const auto set = [&wide](const char* sddl) {
    const Access access(sddl);
    return ::SetNamedSecurityInfoW(wide.data(), SE_FILE_OBJECT,
                                   DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION,
                                   nullptr, nullptr, access.list(), nullptr);
  };
  ASSERT_EQ(set("O:BAD:(A;;FA;;;SY)(A;;FA;;;BA)(A;;FR;;;WD)"), DWORD{ERROR_SUCCESS});
  absl::Status status = CheckOnlyTrustedChange(path, /*or_own_user=*/true);
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_EQ(set("O:BAD:(A;;FA;;;WD)"), DWORD{ERROR_SUCCESS});
  status = CheckOnlyTrustedChange(path, /*or_own_user=*/true);
  EXPECT_TRUE(Says(status, absl::StrCat(path, " may be changed by "))) << status;
  EXPECT_TRUE(absl::IsFailedPrecondition(SecureFolder(path))) << "it is no folder";
  ::DeleteFileW(wide.c_str());
  status = CheckOnlyTrustedChange(path, /*or_own_user=*/true);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace sluice::os
