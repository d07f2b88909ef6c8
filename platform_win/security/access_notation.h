// SPDX-License-Identifier: Apache-2.0
//
// Windows' own notation of access lists (SDDL), parsed. Immutable.
#pragma once

#include <windows.h>
// After windows.h.
#include <sddl.h>

#include <string>

namespace sluice::os {

class AccessNotation {
 public:
  explicit AccessNotation(const std::wstring& sddl) {
    if (!::ConvertStringSecurityDescriptorToSecurityDescriptorW(sddl.c_str(), SDDL_REVISION_1,
                                                                &descriptor_, nullptr))
      descriptor_ = nullptr;
  }
  ~AccessNotation() { ::LocalFree(descriptor_); }
  AccessNotation(const AccessNotation&) = delete;
  AccessNotation& operator=(const AccessNotation&) = delete;

  // Null if the text is no such notation; GetLastError then says why.
  PSECURITY_DESCRIPTOR get() const { return descriptor_; }
  // Null if the text has none.
  ACL* list() const { return Get(::GetSecurityDescriptorDacl); }
  ACL* label() const { return Get(::GetSecurityDescriptorSacl); }

 private:
  ACL* Get(decltype(::GetSecurityDescriptorDacl)* get) const {
    BOOL present = FALSE;
    BOOL defaulted = FALSE;
    ACL* found = nullptr;
    return get(descriptor_, &present, &found, &defaulted) && present ? found : nullptr;
  }

  PSECURITY_DESCRIPTOR descriptor_ = nullptr;
};

}  // namespace sluice::os
