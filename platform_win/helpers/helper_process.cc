// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/helper_process.h"

#include <windows.h>

#include <cstdlib>

#include "platform_win/handles/handle_table.h"
#include "platform_win/hidden_child.h"
#include "platform_win/security/access_notation.h"

namespace sluice {
namespace {

// The system may do all. Anybody else may see that it is there and wait for its end, the owner too,
// who could else change the list: 0x101000 is PROCESS_QUERY_LIMITED_INFORMATION and SYNCHRONIZE,
// 0x100800 a thread's of the same names. Handles that were given (CreateProcess, DuplicateHandle)
// stay what they are.
constexpr wchar_t kProcessList[] = L"D:P(A;;GA;;;SY)(A;;0x101000;;;WD)(A;;0x101000;;;S-1-3-4)";
constexpr wchar_t kThreadList[] = L"D:P(A;;GA;;;SY)(A;;0x100800;;;WD)(A;;0x100800;;;S-1-3-4)";

}  // namespace

SECURITY_ATTRIBUTES* HiddenProcess() {
  static const AccessNotation* descriptor = new AccessNotation(kProcessList);
  static SECURITY_ATTRIBUTES attributes = {sizeof(attributes), descriptor->get(), FALSE};
  return descriptor->get() == nullptr ? nullptr : &attributes;
}

// The process had its list from its start; its first thread gets one only now, since a list at the
// start could narrow what a thread may do with itself.
void HideFromOthers() {
  const AccessNotation process(kProcessList);
  const AccessNotation thread(kThreadList);
  ::SetKernelObjectSecurity(::GetCurrentProcess(), DACL_SECURITY_INFORMATION, process.get());
  ::SetKernelObjectSecurity(::GetCurrentThread(), DACL_SECURITY_INFORMATION, thread.get());
}

// By the token: what has no list of its own gets this one.
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

}  // namespace sluice
