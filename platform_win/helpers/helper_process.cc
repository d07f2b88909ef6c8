// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/helper_process.h"

#include <windows.h>

#include <cstdlib>

#include "platform_win/handles/handle_table.h"
#include "platform_win/hidden_child.h"
#include "platform_win/security/access_notation.h"

namespace sluice::os {
namespace {

// As kHiddenProcessList: a thread's rights of the same names.
constexpr wchar_t kThreadList[] = L"D:P(A;;GA;;;SY)(A;;0x100800;;;WD)(A;;0x100800;;;S-1-3-4)";

}  // namespace

// The process had its access list from its start. Its first thread gets one only now: a list at the
// start could limit what the thread may do with itself.
void HideFromOthers() {
  const AccessNotation process(kHiddenProcessList);
  const AccessNotation thread(kThreadList);
  ::SetKernelObjectSecurity(::GetCurrentProcess(), DACL_SECURITY_INFORMATION, process.get());
  ::SetKernelObjectSecurity(::GetCurrentThread(), DACL_SECURITY_INFORMATION, thread.get());
}

// Sets the token's default list, which new threads get.
void HideThreadsFromOthers() {
  HANDLE opened = nullptr;
  if (!::OpenProcessToken(::GetCurrentProcess(), TOKEN_ADJUST_DEFAULT, &opened)) return;
  const OwnedHandle token(opened);
  const AccessNotation thread(kThreadList);
  TOKEN_DEFAULT_DACL list = {thread.list()};
  ::SetTokenInformation(token.get(), TokenDefaultDacl, &list, sizeof(list));
}

void EndProcessNow(int code) {
  ::TerminateProcess(::GetCurrentProcess(), static_cast<UINT>(code));
  std::abort();  // Never: that call does not return.
}

}  // namespace sluice::os
