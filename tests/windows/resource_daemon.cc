// SPDX-License-Identifier: Apache-2.0
#include "tests/windows/resource_daemon.h"

#include <tlhelp32.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

namespace sluice::tests {
namespace {

std::string OwnFolder() {
  char path[32768];
  const std::string own(path, ::GetModuleFileNameA(nullptr, path, sizeof(path)));
  return own.substr(0, own.rfind('\\') + 1);
}

std::string Quoted(const std::string& argument) { return "\"" + argument + "\""; }

}  // namespace

Process::Process(const std::vector<std::string>& arguments) {
  SECURITY_ATTRIBUTES inheritable = {sizeof(inheritable), nullptr, TRUE};
  HANDLE child_in = nullptr;
  HANDLE child_out = nullptr;
  EXPECT_TRUE(::CreatePipe(&child_in, &to_, &inheritable, 0));
  EXPECT_TRUE(::CreatePipe(&from_, &child_out, &inheritable, 0));
  ::SetHandleInformation(to_, HANDLE_FLAG_INHERIT, 0);
  ::SetHandleInformation(from_, HANDLE_FLAG_INHERIT, 0);
  std::string line;
  for (const std::string& argument : arguments) line += Quoted(argument) + " ";
  STARTUPINFOA startup = {};
  startup.cb = sizeof(startup);
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdInput = child_in;
  startup.hStdOutput = child_out;
  startup.hStdError = ::GetStdHandle(STD_ERROR_HANDLE);
  EXPECT_TRUE(::CreateProcessA(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr,
                               &startup, &process_))
      << line << ": " << ::GetLastError();
  ::CloseHandle(child_in);
  ::CloseHandle(child_out);
}

Process::~Process() {
  Kill();
  for (HANDLE handle : {process_.hProcess, process_.hThread, to_, from_}) ::CloseHandle(handle);
}

void Process::Kill() {
  ::TerminateProcess(process_.hProcess, 99);
  ::WaitForSingleObject(process_.hProcess, kTestTimeoutMs);
}

int Process::Wait() {
  if (::WaitForSingleObject(process_.hProcess, kTestTimeoutMs) != WAIT_OBJECT_0) return 124;
  DWORD code = 0;
  ::GetExitCodeProcess(process_.hProcess, &code);
  return static_cast<int>(code);
}

std::string Process::ReadLine() {
  std::string line;
  char one = 0;
  DWORD got = 0;
  while (::ReadFile(from_, &one, 1, &got, nullptr) && got == 1 && one != '\n') {
    if (one != '\r') line += one;
  }
  return line;
}

void Process::WriteLine() {
  DWORD written;
  ::WriteFile(to_, "\n", 1, &written, nullptr);
}

ResourceDaemon::ResourceDaemon() {
  static std::atomic<int> number = 0;
  endpoint_ = "pipe:sluice-resources-" + std::to_string(::GetCurrentProcessId()) + "-" +
              std::to_string(++number);
  process_ = std::make_unique<Process>(
      std::vector<std::string>{OwnFolder() + "sluiced.exe", "--console", "--socket", pipe_name()});
  // Before it has its pipe, there is nobody there; its probe takes its time afterwards.
  EXPECT_TRUE(broker::Becomes([this] {
    sluice_connection* connection = nullptr;
    const sluice_status status = sluice_connect(endpoint_.c_str(), &connection);
    sluice_disconnect(connection);
    return status == SLUICE_OK;
  })) << sluice_error_text();
}

HANDLE ResourceDaemon::OpenChild(const char* executable) const {
  HANDLE found = nullptr;
  HANDLE all = ::CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
  PROCESSENTRY32 entry = {};
  entry.dwSize = sizeof(entry);
  for (BOOL more = ::Process32First(all, &entry); more; more = ::Process32Next(all, &entry)) {
    if (entry.th32ParentProcessID != process_->pid()) continue;
    if (std::strcmp(entry.szExeFile, executable) != 0) continue;
    // Its list lets nobody end it; under Wine its owner may change that (platform_win/WINE.md).
    SECURITY_DESCRIPTOR everything;
    ::InitializeSecurityDescriptor(&everything, SECURITY_DESCRIPTOR_REVISION);
    ::SetSecurityDescriptorDacl(&everything, TRUE, nullptr, FALSE);
    HANDLE list = ::OpenProcess(WRITE_DAC, FALSE, entry.th32ProcessID);
    ::SetKernelObjectSecurity(list, DACL_SECURITY_INFORMATION, &everything);
    ::CloseHandle(list);
    found = ::OpenProcess(PROCESS_TERMINATE | SYNCHRONIZE, FALSE, entry.th32ProcessID);
  }
  ::CloseHandle(all);
  return found;
}

ResourceDaemon& SharedDaemon() {
  static ResourceDaemon daemon;
  return daemon;
}

std::string TextOf(const sluice_capability& capability) {
  char text[SLUICE_CAPABILITY_TEXT_SIZE];
  sluice_capability_to_text(&capability, text);
  return text;
}

}  // namespace sluice::tests

int main(int argc, char** argv) {
  const std::string child = "--child=";
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.starts_with(child)) {
    return sluice::tests::RunChildPart(first.substr(child.size()), argc, argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
