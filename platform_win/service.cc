// SPDX-License-Identifier: Apache-2.0
#include "broker/os/service.h"

#include <windows.h>
// After windows.h.
#include <shlobj.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform_win/security/trusted_file.h"
#include "platform_win/service_name.h"
#include "platform_win/stop_signals.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

constexpr DWORD kStartHintMs = 60'000;  // A probe for devices may take half of that.
constexpr DWORD kStopHintMs = 60'000;   // Until it is known how long draining may take.

// The last state that was reported to the service control manager.
class ServiceState {
 public:
  bool Attach(LPHANDLER_FUNCTION_EX handler) {
    handle_ = ::RegisterServiceCtrlHandlerExW(kServiceName, handler, this);
    return handle_ != nullptr;
  }

  bool attached() const { return handle_ != nullptr; }

  // Each report of the same pending state raises the checkpoint: by that the manager knows that we
  // are alive.
  void Report(DWORD state, DWORD exit_code = NO_ERROR) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (handle_ == nullptr || status_.dwCurrentState == SERVICE_STOPPED) return;
    const bool pending = state == SERVICE_START_PENDING || state == SERVICE_STOP_PENDING;
    // After an order to stop, a start does not report that it runs.
    if (status_.dwCurrentState == SERVICE_STOP_PENDING && state != SERVICE_STOPPED) {
      state = SERVICE_STOP_PENDING;
    }
    status_.dwCheckPoint = !pending                          ? 0
                           : status_.dwCurrentState == state ? status_.dwCheckPoint + 1
                                                             : 1;
    status_.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
    status_.dwCurrentState = state;
    status_.dwWaitHint = state == SERVICE_START_PENDING  ? kStartHintMs
                         : state == SERVICE_STOP_PENDING ? kStopHintMs
                                                         : 0;
    // A pause is not offered.
    status_.dwControlsAccepted =
        state == SERVICE_RUNNING
            ? SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_SHUTDOWN | SERVICE_ACCEPT_PARAMCHANGE
            : 0;
    status_.dwWin32ExitCode = exit_code == NO_ERROR ? NO_ERROR : ERROR_SERVICE_SPECIFIC_ERROR;
    status_.dwServiceSpecificExitCode = exit_code;
    ::SetServiceStatus(handle_, &status_);
  }

  // Reports how long the running stop may still take, as a further checkpoint.
  void ExtendStop(int64_t hint_ms) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (handle_ == nullptr || status_.dwCurrentState != SERVICE_STOP_PENDING) return;
    ++status_.dwCheckPoint;
    status_.dwWaitHint = static_cast<DWORD>(std::clamp<int64_t>(hint_ms, 0, MAXLONG));
    ::SetServiceStatus(handle_, &status_);
  }

 private:
  std::mutex mutex_;
  SERVICE_STATUS_HANDLE handle_ = nullptr;
  SERVICE_STATUS status_ = {};
};

ServiceState& TheService() {
  static ServiceState* state = new ServiceState;
  return *state;
}

const std::function<int()>* g_serve = nullptr;
std::atomic<int> g_result = 0;

DWORD WINAPI OnControl(DWORD control, DWORD, void*, void*) {
  switch (control) {
    case SERVICE_CONTROL_STOP:
    case SERVICE_CONTROL_SHUTDOWN:
      TheService().Report(SERVICE_STOP_PENDING);
      RaiseStopSignal(StopSignals::Kind::kStop);
      return NO_ERROR;
    case SERVICE_CONTROL_PARAMCHANGE:
      RaiseStopSignal(StopSignals::Kind::kReload);
      return NO_ERROR;
    case SERVICE_CONTROL_INTERROGATE:
      return NO_ERROR;
    default:
      return ERROR_CALL_NOT_IMPLEMENTED;
  }
}

void WINAPI ServiceMain(DWORD, wchar_t**) {
  if (!TheService().Attach(&OnControl)) return;
  TheService().Report(SERVICE_START_PENDING);
  g_result = (*g_serve)();
  TheService().Report(SERVICE_STOPPED, static_cast<DWORD>(g_result.load()));
}

}  // namespace

int RunUnderServiceManager(bool console, const std::function<int()>& serve) {
  if (console) return serve();
  IgnoreConsole();
  g_serve = &serve;
  std::wstring name(kServiceName);
  const SERVICE_TABLE_ENTRYW services[] = {{name.data(), &ServiceMain}, {nullptr, nullptr}};
  if (::StartServiceCtrlDispatcherW(services)) return g_result;
  if (::GetLastError() == ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
    std::fprintf(stderr,
                 "sluiced: not started by the service manager; `sluiced --console` runs it here, "
                 "`sluicectl install` makes it a service\n");
  } else {
    std::fprintf(stderr, "sluiced: the service manager refuses us: error %lu\n", ::GetLastError());
  }
  return 2;
}

std::string DefaultConfigFile() {
  wchar_t folder[MAX_PATH] = {};
  if (::SHGetFolderPathW(nullptr, CSIDL_COMMON_APPDATA, nullptr, 0, folder) != S_OK) return "";
  return absl::StrCat(FromWide(folder), "\\Sluice\\sluiced.toml");
}

// Checks only an existing file: its reader reports a missing one.
absl::Status CheckConfigOwner(const std::string& file) {
  if (::GetFileAttributesW(ToWide(file).c_str()) == INVALID_FILE_ATTRIBUTES) {
    return absl::OkStatus();
  }
  return CheckOnlyTrustedChange(file, /*or_own_user=*/true);
}

const char* ServiceControlHelp() {
  return "`sc.exe stop Sluice`, or Ctrl+C with --console, drains (no new sessions, running ones\n"
         "may end), a second Ctrl+C stops at once; `sc.exe control Sluice paramchange` has the\n"
         "service read the file again and look for devices anew.\n";
}

// The source is registered by `sluicectl install`; its event 1 is the line itself.
void LogServiceEvent(ServiceEvent kind, const std::string& line) {
  if (!TheService().attached()) return;
  static const HANDLE source = ::RegisterEventSourceW(nullptr, kServiceName);
  if (source == nullptr) return;
  const WORD type = kind == ServiceEvent::kError     ? EVENTLOG_ERROR_TYPE
                    : kind == ServiceEvent::kWarning ? EVENTLOG_WARNING_TYPE
                                                     : EVENTLOG_INFORMATION_TYPE;
  const std::wstring text = ToWide(line);
  const wchar_t* strings[] = {text.c_str()};
  ::ReportEventW(source, type, 0, /*dwEventID=*/1, nullptr, 1, 0, strings, nullptr);
}

bool StderrIsJournal() { return false; }

bool NotifyService(const std::string& state) {
  if (!TheService().attached()) return false;
  if (absl::StartsWith(state, "READY=1")) TheService().Report(SERVICE_RUNNING);
  absl::string_view extension = state;
  int64_t microseconds = 0;
  if (absl::ConsumePrefix(&extension, "EXTEND_TIMEOUT_USEC=") &&
      absl::SimpleAtoi(extension, &microseconds)) {
    TheService().ExtendStop(microseconds / 1000);
  }
  // STOPPING=1 is not passed on. The manager knows of a stop that it has asked for (OnControl).
  // After it for an operator's drain, which may take for ever, the manager would send no stop.
  return true;
}

std::vector<InheritedSocket> TakeInheritedSockets() { return {}; }

}  // namespace sluice::os
