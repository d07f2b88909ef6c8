// SPDX-License-Identifier: Apache-2.0
//
// The accounts that a pipe's access list lets in, as the system's own AccessCheck says, which Wine
// has as well; Wine does not ask it when a pipe is opened. And what is made of a pipe's client.
#include "platform_win/security/pipe_access.h"

#include <gtest/gtest.h>
// After windows.h.
#include <sddl.h>

#include <string>

#include "broker/os/local_socket.h"
#include "broker/os/process.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/security/account.h"
#include "platform_win/wide_text.h"
#include "tests/unit/platform_win/child.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::os {
namespace {

constexpr char kSomebodyElse[] = "S-1-5-21-1-2-3-1001";

OwnedHandle OwnToken() {
  HANDLE token = nullptr;
  EXPECT_TRUE(::OpenProcessToken(::GetCurrentProcess(), TOKEN_ALL_ACCESS, &token));
  return OwnedHandle(token);
}

// This user without the administrators' rights, as a program that is not elevated has them.
OwnedHandle UnelevatedToken() {
  alignas(SID) BYTE administrators[SECURITY_MAX_SID_SIZE];
  DWORD size = sizeof(administrators);
  EXPECT_TRUE(::CreateWellKnownSid(WinBuiltinAdministratorsSid, nullptr, administrators, &size));
  SID_AND_ATTRIBUTES disabled = {administrators, 0};
  HANDLE token = nullptr;
  EXPECT_TRUE(::CreateRestrictedToken(OwnToken().get(), DISABLE_MAX_PRIVILEGE, 1, &disabled, 0,
                                      nullptr, 0, nullptr, &token));
  return OwnedHandle(token);
}

bool Allows(const std::wstring& list, const OwnedHandle& token, DWORD access) {
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  EXPECT_TRUE(::ConvertStringSecurityDescriptorToSecurityDescriptorW(
      (L"O:SYG:SY" + list).c_str(), SDDL_REVISION_1, &descriptor, nullptr));
  HANDLE asking = nullptr;
  EXPECT_TRUE(::DuplicateTokenEx(token.get(), TOKEN_QUERY | TOKEN_IMPERSONATE, nullptr,
                                 SecurityIdentification, TokenImpersonation, &asking));
  const OwnedHandle owned(asking);
  GENERIC_MAPPING mapping = {FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_GENERIC_EXECUTE,
                             FILE_ALL_ACCESS};
  PRIVILEGE_SET privileges = {};
  DWORD size = sizeof(privileges);
  DWORD granted = 0;
  BOOL allowed = FALSE;
  EXPECT_TRUE(
      ::AccessCheck(descriptor, asking, access, &mapping, &privileges, &size, &granted, &allowed))
      << ::GetLastError();
  ::LocalFree(descriptor);
  return allowed != FALSE;
}

// A pipe that is not open to others, as the operators' always is. Its owner and administrators may
// use it. Another user who is not elevated may do nothing with it, not even ask what it is.
TEST(PipeAccessTest, OthersAreRefused) {
  const std::wstring mine = PipeAccessList(OwnSid(), PipeOthers::kNobody);
  const std::wstring theirs = PipeAccessList(kSomebodyElse, PipeOthers::kNobody);
  EXPECT_TRUE(Allows(mine, UnelevatedToken(), kPipeClientAccess));
  EXPECT_TRUE(Allows(theirs, OwnToken(), kPipeClientAccess)) << "an administrator";
  EXPECT_FALSE(Allows(theirs, UnelevatedToken(), kPipeClientAccess));
  for (const DWORD one : {DWORD{READ_CONTROL}, DWORD{FILE_READ_DATA}, DWORD{FILE_WRITE_DATA},
                          DWORD{FILE_CREATE_PIPE_INSTANCE}, DWORD{WRITE_DAC}}) {
    EXPECT_FALSE(Allows(theirs, UnelevatedToken(), one)) << one;
  }
}

// One that is open to others lets another user talk, and nothing more: neither make instances of
// the pipe, which would be to stand in for the daemon, nor change who may use it.
TEST(PipeAccessTest, OthersMayOnlyTalk) {
  const std::wstring list = PipeAccessList(kSomebodyElse, PipeOthers::kEverybody);
  EXPECT_TRUE(Allows(list, UnelevatedToken(), kPipeClientAccess));
  for (const DWORD one : {DWORD{FILE_CREATE_PIPE_INSTANCE}, DWORD{WRITE_DAC}, DWORD{WRITE_OWNER},
                          DWORD{DELETE}, DWORD{FILE_GENERIC_WRITE}}) {
    EXPECT_FALSE(Allows(list, UnelevatedToken(), one)) << one;
  }
  EXPECT_TRUE(Allows(PipeAccessList(OwnSid(), PipeOthers::kEverybody), UnelevatedToken(),
                     FILE_CREATE_PIPE_INSTANCE));
}

// The monitors' pipe is open to a group of the machine's besides, and to nobody else.
TEST(PipeAccessTest, MonitorsAreAGroup) {
  const std::wstring list = PipeAccessList(kSomebodyElse, PipeOthers::kMonitors);
  EXPECT_NE(list.find(L"S-1-5-32-558"), std::wstring::npos);
  EXPECT_FALSE(Allows(list, UnelevatedToken(), kPipeClientAccess));
  EXPECT_TRUE(Allows(list, OwnToken(), kPipeClientAccess)) << "an administrator";
}

// The form that lists share with the system's own writing of them.
std::wstring AsTheSystemWritesIt(PSECURITY_DESCRIPTOR descriptor) {
  wchar_t* text = nullptr;
  if (!::ConvertSecurityDescriptorToStringSecurityDescriptorW(
          descriptor, SDDL_REVISION_1, DACL_SECURITY_INFORMATION, &text, nullptr))
    return L"";
  const std::wstring list = text;
  ::LocalFree(text);
  return list;
}

// A pipe that is listened at has its list, each instance of it.
TEST(PipeAccessTest, ListeningPipesHaveTheirList) {
  for (const mode_t mode : {0600, 0660, 0666}) {
    PSECURITY_DESCRIPTOR expected = nullptr;
    ASSERT_TRUE(::ConvertStringSecurityDescriptorToSecurityDescriptorW(
        PipeAccessList(OwnSid(), PipeOthersOfMode(mode)).c_str(), SDDL_REVISION_1, &expected,
        nullptr));
    const std::string name = FreshPipeName();
    const auto listener = ListenLocal(name, mode, 4);
    ASSERT_TRUE(listener.ok()) << listener.status();
    for (int instance = 0; instance < 2; ++instance) {
      const OwnedHandle client(::CreateFileA(name.c_str(), GENERIC_READ | FILE_WRITE_DATA, 0,
                                             nullptr, OPEN_EXISTING, 0, nullptr));
      ASSERT_TRUE(client.valid()) << ::GetLastError();
      alignas(SECURITY_DESCRIPTOR) char room[1024];
      DWORD length = 0;
      ASSERT_TRUE(::GetKernelObjectSecurity(client.get(), DACL_SECURITY_INFORMATION, room,
                                            sizeof(room), &length))
          << ::GetLastError();
      EXPECT_EQ(FromWide(AsTheSystemWritesIt(room)), FromWide(AsTheSystemWritesIt(expected)))
          << mode;
    }
    ::LocalFree(expected);
  }
}

// The process that a pipe names is the client's only if user and logon are those of the client's
// token.
TEST(PipeAccessTest, ClientAndProcessAreOnePersonsLogon) {
  EXPECT_TRUE(IsSameLogon({"S-1-5-21-1", 5}, {"S-1-5-21-1", 5}));
  EXPECT_FALSE(IsSameLogon({"S-1-5-21-1", 5}, {"S-1-5-21-2", 5}));
  EXPECT_FALSE(IsSameLogon({"S-1-5-21-1", 5}, {"S-1-5-21-1", 6}));
  EXPECT_FALSE(IsSameLogon({"", 5}, {"", 5}));
  const auto own = LogonOf(OwnToken().get());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->sid, OwnSid());
  EXPECT_FALSE(LogonOf(nullptr).ok());
}

// A pipe's server may name handles in its clients. Only the system, administrators and the own user
// may serve one, and the own user only with as much integrity. A process that it has started with
// less (a worker, a browser's page) might have taken the name of a daemon that does not run.
TEST(PipeAccessTest, WhoMayServe) {
  constexpr DWORD kLow = SECURITY_MANDATORY_LOW_RID;
  constexpr DWORD kMedium = SECURITY_MANDATORY_MEDIUM_RID;
  constexpr DWORD kHigh = SECURITY_MANDATORY_HIGH_RID;
  const PipeUser own = {OwnSid(), kMedium};
  EXPECT_TRUE(MayServe({"S-1-5-18", 0}, own));
  EXPECT_TRUE(MayServe({"S-1-5-32-544", 0}, own));
  EXPECT_TRUE(MayServe({OwnSid(), kMedium}, own));
  EXPECT_TRUE(MayServe({OwnSid(), kHigh}, own));
  EXPECT_FALSE(MayServe({OwnSid(), kLow}, own));
  EXPECT_FALSE(MayServe({OwnSid(), kMedium}, {OwnSid(), kHigh}));
  EXPECT_FALSE(MayServe({kSomebodyElse, kHigh}, own));
  EXPECT_FALSE(MayServe({"S-1-5-19", kHigh}, own));
  EXPECT_FALSE(MayServe({"", kHigh}, {"", kHigh}));
}

// A pipe that belongs to `owner`, with room for so many bytes each way.
OwnedHandle PipeOf(const std::string& owner, const std::string& name, DWORD bytes) {
  SECURITY_ATTRIBUTES attributes = {sizeof(attributes), nullptr, FALSE};
  EXPECT_TRUE(::ConvertStringSecurityDescriptorToSecurityDescriptorA(
      ("O:" + owner + "D:(A;;GA;;;WD)").c_str(), SDDL_REVISION_1, &attributes.lpSecurityDescriptor,
      nullptr));
  OwnedHandle pipe(::CreateNamedPipeA(name.c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED,
                                      PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE, 1, bytes, bytes, 0,
                                      &attributes));
  ::LocalFree(attributes.lpSecurityDescriptor);
  return pipe;
}

// A pipe that belongs to somebody else is not connected to, whoever may open it: the error names
// the owner, and nothing is said to the server. One of our own is.
TEST(PipeAccessTest, PipeOfSomebodyElse) {
  const std::string mine = FreshPipeName();
  const OwnedHandle own = PipeOf(OwnSid(), mine, 4096);
  ASSERT_TRUE(own.valid());
  EXPECT_TRUE(ConnectLocal(mine, 1000).ok()) << ConnectLocal(mine, 1000).status();
  const std::string theirs = FreshPipeName();
  const OwnedHandle others = PipeOf(kSomebodyElse, theirs, 4096);
  if (!others.valid()) GTEST_SKIP() << "the system gives away no pipe: " << ::GetLastError();
  const auto refused = ConnectLocal(theirs, 1000);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find(kSomebodyElse), std::string::npos) << refused.status();
  DWORD bytes = 0;
  EXPECT_FALSE(::PeekNamedPipe(others.get(), nullptr, 0, nullptr, &bytes, nullptr) && bytes != 0);
}

// A write into a pipe without room waits for its reader: one that reads nothing holds nobody longer
// than was said.
TEST(PipeAccessTest, PipeWithoutRoom) {
  const std::string name = FreshPipeName();
  const OwnedHandle silent = PipeOf(OwnSid(), name, 0);
  ASSERT_TRUE(silent.valid());
  const absl::Status status = ConnectLocal(name, 200).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find(name), absl::string_view::npos) << status;
}

// A connection whose process is gone, because it gave its end away before it greeted, has no peer:
// it is never accepted, and ended; the next client is served.
TEST(PipeAccessTest, EndOfAProcessThatIsGone) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok());
  auto pair = CreateSocketPair();
  ASSERT_TRUE(pair.ok());
  SpawnOptions options = ChildOptions("open-pipe");
  options.arguments.push_back(name);
  options.descriptors = {{pair->second.get(), 3}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  uint64_t number = 0;
  ASSERT_TRUE(WaitReadable(pair->first.get(), 20'000).ok());
  ASSERT_TRUE(ReceiveMessage(pair->first.get(), &number, sizeof(number), nullptr, 0).ok());
  HANDLE taken = nullptr;
  ASSERT_TRUE(::DuplicateHandle(FindDescriptor(child->pidfd())->handle(),
                                reinterpret_cast<HANDLE>(number), ::GetCurrentProcess(), &taken, 0,
                                FALSE, DUPLICATE_SAME_ACCESS));
  const OwnedHandle given(taken);
  child->KillGroup();
  ASSERT_TRUE(child->WaitAndReap(20'000).has_value());
  DWORD written = 0;
  ASSERT_TRUE(::WriteFile(given.get(), "sluice-1", sizeof("sluice-1"), &written, nullptr))
      << ::GetLastError();
  const auto is_open = [&given] {
    DWORD waiting = 0;
    return ::PeekNamedPipe(given.get(), nullptr, 0, nullptr, &waiting, nullptr) != FALSE;
  };
  bool accepted = false;
  for (int tries = 0; tries < 400 && !accepted && is_open(); ++tries) {
    static_cast<void>(WaitReadable(listener->get(), 50));  // The refused make nothing readable.
    accepted = AcceptLocal(listener->get()).ok();
  }
  EXPECT_FALSE(is_open());
  EXPECT_FALSE(accepted);
  const auto honest = ConnectLocal(name, 5000);
  ASSERT_TRUE(honest.ok()) << honest.status();
  ASSERT_TRUE(WaitReadable(listener->get(), 5000).ok());
  EXPECT_TRUE(AcceptLocal(listener->get()).ok());
}

}  // namespace
}  // namespace sluice::os
