// SPDX-License-Identifier: Apache-2.0
// tests/conformance/harness/child_process.h for Windows.
#include "tests/conformance/harness/child_process.h"

#include <windows.h>

#include <map>
#include <thread>

#include "tests/conformance/harness/harness.h"

namespace sluice::conformance {
namespace {

std::map<std::string, ChildScene>& Scenes() {
  static std::map<std::string, ChildScene> scenes;
  return scenes;
}

// Text mode writes each line's end as two characters.
std::string WithoutReturns(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != '\r') out.push_back(c);
  }
  return out;
}

std::string ReadToEnd(HANDLE pipe) {
  std::string text;
  char bytes[4096];
  DWORD got = 0;
  while (ReadFile(pipe, bytes, sizeof(bytes), &got, nullptr) && got > 0) text.append(bytes, got);
  return text;
}

}  // namespace

bool RegisterChildScene(const char* name, ChildScene scene) {
  return Scenes().emplace(name, scene).second;
}

int RunChildScene(const std::string& name) {
  const auto found = Scenes().find(name);
  return found == Scenes().end() ? 125 : found->second();
}

ChildResult RunInChild(const std::string& name, std::chrono::seconds limit) {
  ChildResult result;
  HANDLE read_end = nullptr;
  HANDLE write_end = nullptr;
  SECURITY_ATTRIBUTES inherited = {sizeof(inherited), nullptr, TRUE};
  if (!CreatePipe(&read_end, &write_end, &inherited, 0)) return result;
  SetHandleInformation(read_end, HANDLE_FLAG_INHERIT, 0);
  char program[MAX_PATH];
  GetModuleFileNameA(nullptr, program, sizeof(program));
  std::string command = std::string("\"") + program + "\" --child=" + name +
                        " \"--platform=" + TheHarness().platform_name + "\"";
  STARTUPINFOA startup = {};
  startup.cb = sizeof(startup);
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  startup.hStdOutput = write_end;
  startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  PROCESS_INFORMATION process = {};
  const bool started = CreateProcessA(program, command.data(), nullptr, nullptr, TRUE, 0, nullptr,
                                      nullptr, &startup, &process);
  CloseHandle(write_end);
  if (started) {
    std::thread reader([&] { result.output = WithoutReturns(ReadToEnd(read_end)); });
    const auto milliseconds = std::chrono::milliseconds(limit).count();
    result.timed_out =
        WaitForSingleObject(process.hProcess, static_cast<DWORD>(milliseconds)) != WAIT_OBJECT_0;
    if (result.timed_out) TerminateProcess(process.hProcess, 1);
    WaitForSingleObject(process.hProcess, INFINITE);
    reader.join();
    DWORD code = 0;
    GetExitCodeProcess(process.hProcess, &code);
    result.exit_code = static_cast<int>(code);
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
  }
  CloseHandle(read_end);
  return result;
}

// abort() waits for a debugger under Wine.
void EndThisProcess() {
  TerminateProcess(GetCurrentProcess(), 3);
  __builtin_unreachable();
}

}  // namespace sluice::conformance
