// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/platform_win/child.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/os/daemon_process.h"
#include "broker/os/doorbell.h"
#include "broker/os/file.h"
#include "broker/os/graphics_handle.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "broker/os/threads.h"
#include "daemon/helpers/helper_process.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/stop_signals.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::os {
namespace {

constexpr size_t kSharedBytes = 64 * 1024;

// Takes memory on `channel`, changes it, and sends memory of its own back.
int ExchangeMemory(int channel) {
  char buffer[64];
  std::vector<UniqueFd> fds;
  const auto size = ReceiveMessage(channel, buffer, sizeof(buffer), &fds, 1);
  if (!size.ok() || *size != 5 || fds.size() != 1) return 10;
  if (!VerifySharedMemory(fds[0].get(), kSharedBytes).ok()) return 11;
  const auto mapping = SharedMapping::Map(fds[0].get(), kSharedBytes, true);
  if (!mapping.ok() || mapping->data()[0] != 1) return 12;
  mapping->data()[kSharedBytes - 1] = 2;
  const auto own = CreateSharedMemory("child", kSharedBytes);
  if (!own.ok()) return 13;
  const auto own_mapping = SharedMapping::Map(own->get(), kSharedBytes, true);
  own_mapping->data()[7] = 3;
  const int fd = own->get();
  if (!SendMessage(channel, "there", 5, &fd, 1).ok()) return 14;
  // Stays until the other side has it: it is pulled out of this process.
  return ReceiveMessage(channel, buffer, sizeof(buffer), nullptr, 0).ok() ? 0 : 15;
}

// Sets the event that comes on descriptor 3 as a graphics object's handle: no memory, though.
int SetGraphicsHandle() {
  char byte;
  std::vector<UniqueFd> fds;
  if (!ReceiveMessage(3, &byte, 1, &fds, 1).ok() || fds.size() != 1) return 10;
  if (VerifySharedMemory(fds[0].get(), kSharedBytes).ok()) return 11;
  const auto handle = GraphicsHandleOf(fds[0].get());
  if (!handle.ok()) return 12;
  return ::SetEvent(reinterpret_cast<HANDLE>(*handle)) ? 0 : 13;
}

// Wakes the sleeper on the first word of the memory that comes on descriptor 3, and sleeps on the
// next word in turn.
int AnswerDoorbell() {
  char byte;
  std::vector<UniqueFd> fds;
  if (!ReceiveMessage(3, &byte, 1, &fds, 1).ok() || fds.size() != 1) return 10;
  const auto mapping = SharedMapping::Map(fds[0].get(), kSharedBytes, true);
  if (!mapping.ok()) return 11;
  auto* ping = reinterpret_cast<std::atomic<uint32_t>*>(mapping->data());
  auto* pong = reinterpret_cast<std::atomic<uint32_t>*>(mapping->data() + 64);
  for (uint32_t i = 0; i < 100; ++i) {
    while (ping->load() == i) {
      if (!FutexWait(ping, i, 1, 10'000'000'000)) return 12;
    }
    pong->store(i + 1);
    FutexWake(pong, 1, 2);
  }
  return 0;
}

// The use of the administrators' group in this token.
std::string Administrators(HANDLE token) {
  alignas(SID) BYTE administrators[SECURITY_MAX_SID_SIZE];
  DWORD length = sizeof(administrators);
  ::CreateWellKnownSid(WinBuiltinAdministratorsSid, nullptr, administrators, &length);
  alignas(TOKEN_GROUPS) char buffer[8192];
  if (!::GetTokenInformation(token, TokenGroups, buffer, sizeof(buffer), &length)) return "unknown";
  const auto* all = reinterpret_cast<const TOKEN_GROUPS*>(buffer);
  for (DWORD i = 0; i < all->GroupCount; ++i) {
    if (!::EqualSid(all->Groups[i].Sid, administrators)) continue;
    const DWORD attributes = all->Groups[i].Attributes;
    if ((attributes & SE_GROUP_ENABLED) != 0) return "allowed";
    return (attributes & SE_GROUP_USE_FOR_DENY_ONLY) != 0 ? "denied" : "disabled";
  }
  return "none";
}

// Says on descriptor 4 what it is and has.
int Describe() {
  HANDLE token = nullptr;
  ::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &token);
  alignas(8) char buffer[4096];
  DWORD length = 0;
  const int descriptors = CountDescriptors();  // The first look at them.
  std::string text = absl::StrJoin(OwnEnvironment(), "\n");
  if (::GetTokenInformation(token, TokenPrivileges, buffer, sizeof(buffer), &length)) {
    absl::StrAppend(&text,
                    "\nprivileges=", reinterpret_cast<TOKEN_PRIVILEGES*>(buffer)->PrivilegeCount);
  }
  absl::StrAppend(&text, "\nadministrators=", Administrators(token));
  absl::StrAppend(&text, "\ndescriptors=", descriptors, "\n");
  return WriteWhole(4, text).ok() ? 0 : 10;
}

// A process that plays a client is no child of its daemon's, and so not hidden from its start.
void ShowToOthers() {
  SECURITY_DESCRIPTOR everything;
  ::InitializeSecurityDescriptor(&everything, SECURITY_DESCRIPTOR_REVISION);
  ::SetSecurityDescriptorDacl(&everything, TRUE, nullptr, FALSE);
  ::SetKernelObjectSecurity(::GetCurrentProcess(), DACL_SECURITY_INFORMATION, &everything);
}

// Connects, offers memory, and waits until the other side is done.
int ConnectAndOffer(const std::string& name) {
  ShowToOthers();
  const auto socket = ConnectLocal(name, 5000);
  if (!socket.ok()) {
    std::fprintf(stderr, "%s\n", socket.status().ToString().c_str());
    return 10;
  }
  const auto memory = CreateSharedMemory("offer", kSharedBytes);
  const int fd = memory->get();
  if (!SendMessage(socket->get(), "offer", 5, &fd, 1).ok()) return 11;
  char byte;
  const auto end = ReceiveMessage(socket->get(), &byte, 1, nullptr, 0);
  return end.ok() ? 0 : 12;
}

// Connects, gets a channel there, and exchanges memory on that.
int ExchangeOnChannel(const std::string& name) {
  ShowToOthers();
  const auto socket = ConnectLocal(name, 5000);
  if (!socket.ok()) return 20;
  char byte;
  std::vector<UniqueFd> fds;
  const auto size = ReceiveMessage(socket->get(), &byte, 1, &fds, 1);
  if (!size.ok() || fds.size() != 1) return 21;
  return ExchangeMemory(fds[0].get());
}

// Names a handle that is no memory, past SendMessage's own checks.
int ConnectAndLie(const std::string& name, uint64_t value, uint32_t kind, uint16_t flags) {
  ShowToOthers();
  const auto socket = ConnectLocal(name, 5000);
  if (!socket.ok()) return 10;
  struct {
    uint32_t magic = 0x50434c53;
    uint16_t flags;
    uint16_t objects = 1;
    uint32_t kind;
    uint32_t handles = 1;
    uint64_t values[8] = {};
    char data[5] = {'o', 'f', 'f', 'e', 'r'};
  } packet;
  packet.flags = flags;
  packet.kind = kind;
  packet.values[0] = value;
  DWORD written;
  OVERLAPPED overlapped = {};
  const HANDLE pipe = FindDescriptor(socket->get())->handle();
  overlapped.hEvent = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
  ::WriteFile(pipe, &packet, 16 + 64 + 5, nullptr, &overlapped);
  if (!::GetOverlappedResult(pipe, &overlapped, &written, TRUE)) return 11;
  char byte;
  return ReceiveMessage(socket->get(), &byte, 1, nullptr, 0).ok() ? 0 : 12;
}

// Hides, and says on descriptor 3 what there is to find: itself, its first thread, and a later one.
int Hide() {
  HideFromOthers();
  HideThreadsFromOthers();
  DWORD later = 0;
  const OwnedHandle thread(::CreateThread(
      nullptr, 0, [](void*) -> DWORD { return ::SleepEx(INFINITE, FALSE); }, nullptr, 0, &later));
  const std::string found =
      absl::StrCat(::GetCurrentProcessId(), " ", ::GetCurrentThreadId(), " ", later);
  if (!SendMessage(3, found.data(), found.size()).ok()) return 11;
  ::Sleep(INFINITE);
  return 0;
}

// Rights that a process of the same token can open another with: its memory and handles (1), the
// power over its access list (2), its threads (4), and sight of it at all (8).
int LookInto(const std::string& process, const std::vector<std::string>& threads) {
  const auto pid = static_cast<DWORD>(std::stoul(process));
  int seen = 0;
  for (const DWORD access : {PROCESS_VM_READ, PROCESS_DUP_HANDLE, PROCESS_CREATE_THREAD}) {
    if (OwnedHandle(::OpenProcess(access, FALSE, pid)).valid()) seen |= 1;
  }
  if (OwnedHandle(::OpenProcess(WRITE_DAC, FALSE, pid)).valid()) seen |= 2;
  int bit = 4;
  for (const std::string& thread : threads) {
    const auto tid = static_cast<DWORD>(std::stoul(thread));
    if (OwnedHandle(::OpenThread(THREAD_SET_CONTEXT, FALSE, tid)).valid()) seen |= bit;
    bit = 16;
  }
  if (OwnedHandle(::OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid)).valid()) seen |= 8;
  return seen;
}

int Hold() {
  ::Sleep(INFINITE);
  return 0;
}

// Is open to others, and says so on descriptor 3.
int Show() {
  ShowToOthers();
  return SendMessage(3, "x", 1).ok() ? Hold() : 10;
}

int WriteToStderr(const std::string& text) {
  DWORD written = 0;
  const BOOL done = ::WriteFile(::GetStdHandle(STD_ERROR_HANDLE), text.data(),
                                static_cast<DWORD>(text.size()), &written, nullptr);
  return done && written == text.size() ? 0 : 10;
}

// Says something on stdout and on stderr, then more at once than a pipe holds, and holds on.
int Say() {
  std::printf("out\n");
  std::fflush(stdout);
  std::fprintf(stderr, "err\n");
  WriteToStderr(std::string(1 << 20, 'x'));
  return Hold();
}

int Flood() {
  std::string lines;
  for (int i = 0; i < kFloodLines; ++i) lines += "a line of many\r\n";
  return WriteToStderr(lines);
}

int Forge() {
  return WriteToStderr("2026-11-22T00:00:00.000Z error broker msg=forged\n" +
                       std::string(100'000, 'x'));
}

// Starts one that holds on to descriptor 3, says so there, and holds on as well.
int HoldWithGrandchild() {
  SpawnOptions options = ChildOptions("hold");
  const auto child = Spawn(options);
  if (!child.ok()) return 10;
  const std::string pid = std::to_string(child->pid());
  if (!SendMessage(3, pid.data(), pid.size()).ok()) return 11;
  return Hold();
}

// As a daemon begins, and then loads a library that lies in this folder or beside this program.
int LoadAsDaemon(const std::string& library) {
  PrepareDaemonProcess();
  return ::LoadLibraryA(library.c_str()) == nullptr ? 0 : 10;
}

// The same without that, which finds it: else the other would show nothing.
int LoadAsStranger(const std::string& library) {
  return ::LoadLibraryA(library.c_str()) != nullptr ? 0 : 10;
}

// A console's events: somebody logs off, and closing, after which a system ends the process as soon
// as it is answered. Ends well before that.
int ConsoleIsClosed() {
  const auto signals = StopSignals::Open();
  if (!signals.ok()) return 10;
  OnConsoleEvent(CTRL_LOGOFF_EVENT);
  if ((*signals)->Next().has_value()) return 11;
  StartDetached([] {
    OnConsoleEvent(CTRL_CLOSE_EVENT);
    ::TerminateProcess(::GetCurrentProcess(), 12);
  });
  if (!WaitReadable((*signals)->fd(), 20'000).ok()) return 13;
  return (*signals)->Next() == StopSignals::Kind::kStop ? 0 : 14;
}

// The same of a service, whom no console tells anything.
int ServiceHasNoConsole() {
  const auto signals = StopSignals::Open();
  if (!signals.ok()) return 10;
  IgnoreConsole();
  for (const DWORD event :
       {CTRL_C_EVENT, CTRL_BREAK_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT}) {
    OnConsoleEvent(event);
    if ((*signals)->Next().has_value()) return 11;
  }
  return 0;
}

// Opens a pipe, without greeting, and tells on descriptor 3 by what handle.
int OpenPipeAndHold(const std::string& name) {
  const HANDLE pipe = ::CreateFileA(name.c_str(), GENERIC_READ | FILE_WRITE_DATA, 0, nullptr,
                                    OPEN_EXISTING, 0, nullptr);
  const uint64_t number = reinterpret_cast<uintptr_t>(pipe);
  if (pipe == INVALID_HANDLE_VALUE || !SendMessage(3, &number, sizeof(number)).ok()) return 10;
  return Hold();
}

}  // namespace

SpawnOptions ChildOptions(const std::string& part) {
  SpawnOptions options;
  options.path = *OwnExecutablePath();
  options.arguments = {"--child=" + part};
  for (const std::string& entry : OwnEnvironment()) {
    for (const char* name : {"SYSTEMROOT=", "WINDIR=", "PATH="}) {
      if (entry.starts_with(name)) options.environment.push_back(entry);
    }
  }
  return options;
}

int RunChildPart(const std::string& part, int argc, char** argv) {
  const std::string name = argc > 2 ? argv[2] : "";
  if (part == "exit7") return 7;
  if (part == "crash") {
    int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  if (part == "hold") return Hold();
  if (part == "say") return Say();
  if (part == "tell-output") return TellOutputOf(name);
  if (part == "flood") return Flood();
  if (part == "forge") return Forge();
  if (part == "hold-with-grandchild") return HoldWithGrandchild();
  if (part == "hide") return Hide();
  if (part == "show") return Show();
  if (part == "look") {
    const std::vector<std::string> threads(argv + 3, argv + argc);
    return LookInto(name, threads);
  }
  if (part == "console-closed") return ConsoleIsClosed();
  if (part == "console-service") return ServiceHasNoConsole();
  if (part == "open-pipe") return OpenPipeAndHold(name);
  if (part == "graphics") return SetGraphicsHandle();
  if (part == "memory") return ExchangeMemory(3);
  if (part == "doorbell") return AnswerDoorbell();
  if (part == "describe") return Describe();
  if (part == "load-as-daemon") return LoadAsDaemon(name);
  if (part == "load-as-stranger") return LoadAsStranger(name);
  if (part == "argument") return name == "a \"b\\\" c\\" ? 0 : 10;
  if (part == "offer") return ConnectAndOffer(name);
  if (part == "channel") return ExchangeOnChannel(name);
  // NtCurrentProcess(), which would be the puller's own if it were pulled carelessly.
  if (part == "lie-pseudo") return ConnectAndLie(name, ~uint64_t{0}, 3, 0);
  if (part == "lie-type") {
    return ConnectAndLie(name, reinterpret_cast<uintptr_t>(::CreateEventW(nullptr, 0, 0, nullptr)),
                         3, 0);
  }
  if (part == "lie-kind") {
    return ConnectAndLie(name, reinterpret_cast<uintptr_t>(::CreateEventW(nullptr, 0, 0, nullptr)),
                         2, 0);
  }
  if (part == "lie-graphics") {
    return ConnectAndLie(name, reinterpret_cast<uintptr_t>(::CreateEventW(nullptr, 0, 0, nullptr)),
                         static_cast<uint32_t>(HandleKind::kGraphics), 0);
  }
  if (part == "lie-place") return ConnectAndLie(name, 4, 3, 1);
  if (part == "lie-none") return ConnectAndLie(name, 0x7ffffffc, 3, 0);
  return 100;
}

std::string FreshPipeName() {
  static std::atomic<int> number = 0;
  return absl::StrCat(R"(\\.\pipe\sluice-test-)", ::GetCurrentProcessId(), "-", ++number);
}

}  // namespace sluice::os

int main(int argc, char** argv) {
  constexpr std::string_view kChild = "--child=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kChild)) {
    return sluice::os::RunChildPart(argv[1] + kChild.size(), argc, argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
