// SPDX-License-Identifier: Apache-2.0
#include "broker/os/installation.h"

#include <windows.h>
// After windows.h.
#include <shellapi.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/exit_codes.h"
#include "broker/os/process.h"
#include "broker/os/service.h"
#include "platform_win/handle_table.h"
#include "platform_win/service_name.h"
#include "platform_win/trusted_file.h"
#include "platform_win/wide_text.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr wchar_t kVendors[] = L"SOFTWARE\\Khronos\\OpenCL\\Vendors";
constexpr wchar_t kEventSource[] =
    L"SYSTEM\\CurrentControlSet\\Services\\EventLog\\Application\\Sluice";
// Windows' own, whose messages 1 to 1000 are nothing but the text that comes with the event.
constexpr wchar_t kMessageFile[] = L"%SystemRoot%\\System32\\EventCreate.exe";
constexpr char kDriver[] = "sluice_icd.dll";
constexpr DWORD kStopTimeoutMs = 60'000;
constexpr DWORD kPollMs = 100;
constexpr DWORD kTellAfterMs = 2'000;  // As long as one waits without wondering.

// A handle of the service manager's.
class ServiceHandle {
 public:
  explicit ServiceHandle(SC_HANDLE handle) : handle_(handle) {}
  ~ServiceHandle() {
    if (handle_ != nullptr) ::CloseServiceHandle(handle_);
  }
  ServiceHandle(const ServiceHandle&) = delete;
  ServiceHandle& operator=(const ServiceHandle&) = delete;
  SC_HANDLE get() const { return handle_; }
  bool valid() const { return handle_ != nullptr; }

 private:
  SC_HANDLE handle_;
};

absl::Status Failed(const char* what) {
  const DWORD error = ::GetLastError();
  if (error == ERROR_ACCESS_DENIED) {
    return absl::PermissionDeniedError(absl::StrCat(what, ": only an administrator may do that"));
  }
  return WindowsStatus(error, what);
}

absl::StatusOr<std::string> FileBeside(const char* name) {
  ASSIGN_OR_RETURN(const std::string own, OwnExecutablePath());
  return absl::StrCat(own.substr(0, own.find_last_of("\\/") + 1), name);
}

absl::Status SetDword(const wchar_t* key_name, const std::wstring& value, DWORD number) {
  HKEY key = nullptr;
  LSTATUS result = ::RegCreateKeyExW(HKEY_LOCAL_MACHINE, key_name, 0, nullptr, 0,
                                     KEY_SET_VALUE | KEY_WOW64_64KEY, nullptr, &key, nullptr);
  if (result == ERROR_SUCCESS) {
    result = ::RegSetValueExW(key, value.c_str(), 0, REG_DWORD,
                              reinterpret_cast<const BYTE*>(&number), sizeof(number));
    ::RegCloseKey(key);
  }
  ::SetLastError(static_cast<DWORD>(result));
  return result == ERROR_SUCCESS ? absl::OkStatus() : Failed("writing the registry");
}

absl::Status SetText(const wchar_t* key_name, const wchar_t* value, const std::wstring& text) {
  const LSTATUS result =
      ::RegSetKeyValueW(HKEY_LOCAL_MACHINE, key_name, value, REG_EXPAND_SZ, text.c_str(),
                        static_cast<DWORD>((text.size() + 1) * sizeof(wchar_t)));
  ::SetLastError(static_cast<DWORD>(result));
  return result == ERROR_SUCCESS ? absl::OkStatus() : Failed("writing the registry");
}

// Every entry that names our driver, wherever it lay when it was installed.
absl::Status RemoveDriver(std::vector<std::string>* done) {
  HKEY key = nullptr;
  LSTATUS result = ::RegOpenKeyExW(HKEY_LOCAL_MACHINE, kVendors, 0,
                                   KEY_QUERY_VALUE | KEY_SET_VALUE | KEY_WOW64_64KEY, &key);
  if (result == ERROR_FILE_NOT_FOUND) return absl::OkStatus();  // No drivers at all.
  ::SetLastError(static_cast<DWORD>(result));
  if (result != ERROR_SUCCESS) return Failed("opening the list of drivers");
  std::wstring name(32768, L'\0');
  for (DWORD index = 0; result == ERROR_SUCCESS;) {
    auto length = static_cast<DWORD>(name.size());
    if (::RegEnumValueW(key, index, name.data(), &length, nullptr, nullptr, nullptr, nullptr) !=
        ERROR_SUCCESS) {
      break;
    }
    const std::wstring value(name.data(), length);
    const std::string file = FromWide(value.substr(value.find_last_of(L"\\/") + 1));
    if (absl::EqualsIgnoreCase(file, kDriver)) {
      result = ::RegDeleteValueW(key, value.c_str());  // The next one has this index now.
      if (result == ERROR_SUCCESS) {
        done->push_back(absl::StrCat("driver removed: ", FromWide(value)));
      }
    } else {
      ++index;
    }
  }
  ::RegCloseKey(key);
  ::SetLastError(static_cast<DWORD>(result));
  return result == ERROR_SUCCESS ? absl::OkStatus() : Failed("removing the driver's entry");
}

// After a crash it is started again, at once twice, then after a minute; the count starts anew
// after a day.
absl::Status SetFailureActions(SC_HANDLE service) {
  SC_ACTION actions[] = {
      {SC_ACTION_RESTART, 1000}, {SC_ACTION_RESTART, 1000}, {SC_ACTION_RESTART, 60'000}};
  SERVICE_FAILURE_ACTIONSW failure = {};
  failure.dwResetPeriod = 24 * 3600;
  failure.cActions = std::size(actions);
  failure.lpsaActions = actions;
  if (!::ChangeServiceConfig2W(service, SERVICE_CONFIG_FAILURE_ACTIONS, &failure)) {
    return Failed("setting what happens when the service fails");
  }
  SERVICE_FAILURE_ACTIONS_FLAG also_errors = {TRUE};  // It ends by itself, with an error.
  ::ChangeServiceConfig2W(service, SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, &also_errors);
  std::wstring text = L"Shares this machine's OpenCL devices with other processes.";
  SERVICE_DESCRIPTIONW description = {text.data()};
  ::ChangeServiceConfig2W(service, SERVICE_CONFIG_DESCRIPTION, &description);
  return absl::OkStatus();
}

// What `sluiced --check-config` says, unless all is well.
absl::Status CheckConfigFile(const std::string& daemon, const std::string& file) {
  SECURITY_ATTRIBUTES inheritable = {sizeof(inheritable), nullptr, TRUE};
  HANDLE read_end = nullptr;
  HANDLE write_end = nullptr;
  if (!::CreatePipe(&read_end, &write_end, &inheritable, 0)) return Failed("creating a pipe");
  const OwnedHandle answer(read_end);
  OwnedHandle said(write_end);
  ::SetHandleInformation(answer.get(), HANDLE_FLAG_INHERIT, 0);
  STARTUPINFOW startup = {};
  startup.cb = sizeof(startup);
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdOutput = startup.hStdError = said.get();
  PROCESS_INFORMATION started = {};
  std::wstring line;
  for (const std::string& word : {daemon, std::string("--check-config"), file})
    AppendQuoted(word, &line);
  if (!::CreateProcessW(ToWide(daemon).c_str(), line.data(), nullptr, nullptr, TRUE, 0, nullptr,
                        nullptr, &startup, &started)) {
    return Failed("starting sluiced.exe");
  }
  const OwnedHandle process(started.hProcess);
  const OwnedHandle thread(started.hThread);
  said.reset();
  std::string text;
  char part[1024];
  DWORD length = 0;
  while (::ReadFile(answer.get(), part, sizeof(part), &length, nullptr) && length != 0) {
    text.append(part, length);
  }
  ::WaitForSingleObject(process.get(), INFINITE);
  DWORD code = 0;
  ::GetExitCodeProcess(process.get(), &code);
  if (code == kDaemonExitOk) return absl::OkStatus();
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  const absl::string_view words = absl::StripAsciiWhitespace(text);
  return absl::InvalidArgumentError(
      words.empty() ? absl::StrCat("sluiced --check-config ended with exit code ", code)
                    : std::string(words));
}

// OpenCL's loader and the service manager load and start by name, which the system takes up to this
// length but from programs that say they know longer ones, as theirs need not.
absl::Status CheckLength(const std::string& path) {
  constexpr size_t kLongest = MAX_PATH - 1;
  const size_t length = ToWide(path).size();
  if (length <= kLongest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", length,
                   " characters, and Windows starts programs and loads drivers from paths "
                   "of ",
                   kLongest,
                   " at most: unpack Sluice into a folder with a shorter path, such as "
                   "C:\\Program Files\\Sluice, and install it from there"));
}

// std::filesystem::absolute makes C:\server\share of \\server\share here.
absl::StatusOr<std::string> FullPath(const std::string& path) {
  const std::wstring wide = ToWide(path);
  std::wstring full(::GetFullPathNameW(wide.c_str(), 0, nullptr, nullptr), L'\0');
  const DWORD length =
      ::GetFullPathNameW(wide.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr);
  if (length == 0 || length >= full.size())
    return absl::InvalidArgumentError(absl::StrCat("--config: no path: ", path));
  full.resize(length);
  return FromWide(full);
}

// What the system, or every program that uses OpenCL, is to run from here on must be nobody's to
// change but the administrators', nor may anybody lay a library beside it or move it away.
absl::Status CheckPrograms(const InstallFlags& flags) {
  ASSIGN_OR_RETURN(const std::string own, OwnExecutablePath());
  const std::string folder = own.substr(0, own.find_last_of("\\/"));
  std::vector<const char*> names;
  if (!flags.no_service)
    names = {"sluiced.exe", "sluice-worker.exe", "sluice-gateway.exe", "sluice-allocator.exe"};
  if (!flags.no_driver) names.push_back(kDriver);
  std::vector<std::string> paths = {folder};
  std::vector<std::string> missing;
  for (const char* name : names) {
    std::error_code error;
    std::string path = absl::StrCat(folder, "\\", name);
    RETURN_IF_ERROR(CheckLength(path));
    if (!std::filesystem::exists(ToWide(path), error)) missing.push_back(name);
    paths.push_back(std::move(path));
  }
  if (!missing.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, " lacks ", absl::StrJoin(missing, ", "),
                     ": unpack all of Sluice there; sluicectl registers what lies beside itself"));
  }
  std::vector<absl::Status> checks;
  for (const std::string& path : paths) {
    checks.push_back(CheckOnlyTrustedChange(path, /*or_own_user=*/false));
  }
  checks.push_back(CheckOnlyTrustedMoveAbove(folder));
  for (const absl::Status& status : checks) {
    if (status.ok()) continue;
    // Its advice is for a file that is read, not for programs.
    const absl::string_view why = status.message().substr(0, status.message().find(": "));
    return absl::Status(
        status.code(), absl::StrCat(why,
                                    ": as an administrator, unpack Sluice into a folder that only "
                                    "administrators change, such as C:\\Program Files\\Sluice, and "
                                    "install it from there"));
  }
  return absl::OkStatus();
}

// OpenCL's loader reads its list in the system's code page: of a name with other characters it
// finds no file, and no program would have the driver.
absl::Status CheckLoaderReads(const std::string& driver) {
  const std::wstring wide = ToWide(driver);
  BOOL changed = FALSE;
  const bool is_utf8 = ::GetACP() == CP_UTF8;  // Which has all, and takes no such question.
  if (is_utf8 || (::WideCharToMultiByte(CP_ACP, WC_NO_BEST_FIT_CHARS, wide.c_str(), -1, nullptr, 0,
                                        nullptr, &changed) != 0 &&
                  !changed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      driver, " has characters that are not in Windows' code page ", ::GetACP(),
      ", in which OpenCL's loader reads the names of drivers: unpack Sluice into a folder without "
      "them, such as C:\\Program Files\\Sluice, and install it from there (or leave the driver "
      "out: "
      "--no-driver)"));
}

// The folder for the configuration, and a file that the service would take.
absl::Status PrepareConfig(const std::string& daemon, const std::string& file) {
  const std::string default_file = DefaultConfigFile();
  RETURN_IF_ERROR(SecureFolder(default_file.substr(0, default_file.find_last_of('\\'))));
  std::error_code error;
  if (file.empty() && !std::filesystem::exists(ToWide(default_file), error)) {
    return absl::OkStatus();
  }
  const std::string& read = file.empty() ? default_file : file;
  RETURN_IF_ERROR(CheckConfigFile(daemon, read));
  return CheckOnlyTrustedChange(read, /*or_own_user=*/false);
}

absl::Status InstallService(const InstallFlags& flags, std::vector<std::string>* done) {
  ASSIGN_OR_RETURN(const std::string daemon, FileBeside("sluiced.exe"));
  std::string command = absl::StrCat("\"", daemon, "\"");
  std::string file;
  if (!flags.config_file.empty()) {
    // The manager puts variables in for their names between such signs.
    if (flags.config_file.find('%') != std::string::npos) {
      return absl::InvalidArgumentError("--config: a service's path cannot hold a percent sign");
    }
    ASSIGN_OR_RETURN(file, FullPath(flags.config_file));
    absl::StrAppend(&command, " --config \"", file, "\"");
  }
  const ServiceHandle manager(
      ::OpenSCManagerW(nullptr, nullptr, SC_MANAGER_CONNECT | SC_MANAGER_CREATE_SERVICE));
  if (!manager.valid()) return Failed("opening the service manager");
  RETURN_IF_ERROR(PrepareConfig(daemon, file));  // As an administrator, whose the folder shall be.
  const DWORD start = flags.manual ? SERVICE_DEMAND_START : SERVICE_AUTO_START;
  SC_HANDLE handle = ::CreateServiceW(
      manager.get(), kServiceName, L"Sluice", SERVICE_ALL_ACCESS, SERVICE_WIN32_OWN_PROCESS, start,
      SERVICE_ERROR_NORMAL, ToWide(command).c_str(), nullptr, nullptr, nullptr, nullptr, nullptr);
  if (handle == nullptr && ::GetLastError() == ERROR_SERVICE_EXISTS) {
    handle = ::OpenServiceW(manager.get(), kServiceName, SERVICE_ALL_ACCESS);
    if (handle != nullptr &&
        !::ChangeServiceConfigW(handle, SERVICE_WIN32_OWN_PROCESS, start, SERVICE_NO_CHANGE,
                                ToWide(command).c_str(), nullptr, nullptr, nullptr, nullptr,
                                nullptr, nullptr)) {
      const ServiceHandle closed(handle);
      return Failed("changing the service");
    }
  }
  const ServiceHandle service(handle);
  if (!service.valid()) return Failed("creating the service");
  RETURN_IF_ERROR(SetFailureActions(service.get()));
  constexpr DWORD kEventTypes =
      EVENTLOG_ERROR_TYPE | EVENTLOG_WARNING_TYPE | EVENTLOG_INFORMATION_TYPE;
  RETURN_IF_ERROR(SetDword(kEventSource, L"TypesSupported", kEventTypes));
  RETURN_IF_ERROR(SetText(kEventSource, L"EventMessageFile", kMessageFile));
  done->push_back(absl::StrCat("service ", FromWide(kServiceName), ": ", command));
  SERVICE_STATUS status = {};
  if (::QueryServiceStatus(service.get(), &status) && status.dwCurrentState != SERVICE_STOPPED)
    done->push_back(
        "it runs as it was started, and so it does until `sc stop Sluice` and `sc start Sluice`");
  return absl::OkStatus();
}

absl::Status StopService(SC_HANDLE service) {
  bool told = false;
  bool refused = false;
  // The manager tells nobody when a service has come to run or has stopped; it can only be asked.
  for (DWORD waited = 0; waited < kStopTimeoutMs; waited += kPollMs) {
    SERVICE_STATUS status = {};
    if (!::QueryServiceStatus(service, &status)) return Failed("asking for the service");
    if (status.dwCurrentState == SERVICE_STOPPED) return absl::OkStatus();
    // One that starts takes no controls yet.
    if (!told && status.dwCurrentState == SERVICE_RUNNING) {
      told = ::ControlService(service, SERVICE_CONTROL_STOP, &status) != 0;
      const DWORD error = told ? NO_ERROR : ::GetLastError();
      // It may have begun to stop since; one that still runs then takes no such control.
      const bool once = error == ERROR_INVALID_SERVICE_CONTROL && !std::exchange(refused, true);
      if (!told && error != ERROR_SERVICE_NOT_ACTIVE && error != ERROR_SERVICE_CANNOT_ACCEPT_CTRL &&
          !once) {
        ::SetLastError(error);
        return Failed("stopping the service");
      }
    }
    if (waited == kTellAfterMs) {
      std::fprintf(stderr, "waiting for the service to stop: sessions have time to end\n");
    }
    ::Sleep(kPollMs);
  }
  return absl::DeadlineExceededError(
      "the service has not stopped within a minute: `sluicectl sessions` shows who uses it, "
      "`sluicectl kill` ends them; then uninstall again");
}

absl::Status UninstallService(std::vector<std::string>* done) {
  const ServiceHandle manager(::OpenSCManagerW(nullptr, nullptr, SC_MANAGER_CONNECT));
  if (!manager.valid()) return Failed("opening the service manager");
  const ServiceHandle service(
      ::OpenServiceW(manager.get(), kServiceName, SERVICE_STOP | SERVICE_QUERY_STATUS | DELETE));
  if (!service.valid()) {
    if (::GetLastError() == ERROR_SERVICE_DOES_NOT_EXIST) return absl::OkStatus();
    return Failed("opening the service");
  }
  // One whose process was killed takes no controls; all the same it shall go.
  absl::Status status = StopService(service.get());
  if (absl::IsDeadlineExceeded(status)) return status;
  if (::DeleteService(service.get())) {
    done->push_back(absl::StrCat("service removed: ", FromWide(kServiceName)));
  } else {
    status.Update(Failed("removing the service"));
  }
  ::RegDeleteKeyExW(HKEY_LOCAL_MACHINE, kEventSource, KEY_WOW64_64KEY, 0);
  return status;
}

// The file that the service reads.
std::string ConfigFileOf(SC_HANDLE service) {
  alignas(QUERY_SERVICE_CONFIGW) char buffer[8192];  // As large as it ever is.
  auto* const config = reinterpret_cast<QUERY_SERVICE_CONFIGW*>(buffer);
  DWORD needed = 0;
  std::string file = DefaultConfigFile();
  if (!::QueryServiceConfigW(service, config, sizeof(buffer), &needed)) return file;
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(config->lpBinaryPathName, &count);
  for (int i = 1; words != nullptr && i + 1 < count; ++i) {
    if (std::wstring_view(words[i]) == L"--config") file = FromWide(words[i + 1]);
  }
  ::LocalFree(words);
  return file;
}

std::string DescribeEnd(SC_HANDLE service, const SERVICE_STATUS& status) {
  if (status.dwWin32ExitCode == NO_ERROR || status.dwWin32ExitCode == ERROR_SERVICE_NEVER_STARTED)
    return "the service Sluice is stopped; `sc start Sluice` starts it, as an administrator";
  constexpr char kEventLog[] = "the event log (application, source Sluice) says why";
  if (status.dwWin32ExitCode != ERROR_SERVICE_SPECIFIC_ERROR) {
    return absl::StrCat("the service Sluice has ended with Windows' error ", status.dwWin32ExitCode,
                        "; ", kEventLog);
  }
  switch (status.dwServiceSpecificExitCode) {
    case kDaemonExitUsage:
      return absl::StrCat(
          "the service Sluice does not start with its configuration; `sluiced --check-config \"",
          ConfigFileOf(service), "\"` says what is wrong with it; ", kEventLog);
    case kDaemonExitAlreadyRunning:
      return absl::StrCat(
          "the service Sluice does not start, since another daemon, or a program that is none, has "
          "the name of its pipe; ",
          kEventLog);
    default:
      return absl::StrCat("the service Sluice has ended with exit code ",
                          status.dwServiceSpecificExitCode, "; ", kEventLog);
  }
}

}  // namespace

std::string DescribeService() {
  const ServiceHandle manager(::OpenSCManagerW(nullptr, nullptr, SC_MANAGER_CONNECT));
  if (!manager.valid()) return "";
  const ServiceHandle service(
      ::OpenServiceW(manager.get(), kServiceName, SERVICE_QUERY_STATUS | SERVICE_QUERY_CONFIG));
  SERVICE_STATUS status = {};
  if (!service.valid() || !::QueryServiceStatus(service.get(), &status)) {
    return ::GetLastError() == ERROR_SERVICE_DOES_NOT_EXIST
               ? "there is no service Sluice: `sluicectl install` makes one, `sluiced --console` "
                 "runs without"
               : "";
  }
  switch (status.dwCurrentState) {
    case SERVICE_STOPPED:
      return DescribeEnd(service.get(), status);
    case SERVICE_START_PENDING:
      return "the service Sluice is starting";
    case SERVICE_STOP_PENDING:
      return "the service Sluice is stopping";
    default:
      return "the service Sluice runs; does its configuration name another socket?";
  }
}

absl::Status Install(const InstallFlags& flags, std::vector<std::string>* done) {
  std::string driver;
  RETURN_IF_ERROR(CheckPrograms(flags));
  if (!flags.no_driver) {
    ASSIGN_OR_RETURN(driver, FileBeside(kDriver));
    RETURN_IF_ERROR(CheckLoaderReads(driver));
  }
  if (!flags.no_service) RETURN_IF_ERROR(InstallService(flags, done));
  if (flags.no_driver) return absl::OkStatus();
  std::vector<std::string> replaced;
  RETURN_IF_ERROR(RemoveDriver(&replaced));  // One that was installed from elsewhere.
  RETURN_IF_ERROR(SetDword(kVendors, ToWide(driver), 0));
  done->push_back(absl::StrCat("driver: ", driver));
  return absl::OkStatus();
}

absl::Status Uninstall(const InstallFlags& flags, std::vector<std::string>* done) {
  // The service first: if sessions keep it from stopping, nothing is taken away. Whatever else
  // fails, the other steps are done.
  absl::Status status = flags.no_service ? absl::OkStatus() : UninstallService(done);
  if (absl::IsDeadlineExceeded(status) || flags.no_driver) return status;
  status.Update(RemoveDriver(done));
  return status;
}

}  // namespace sluice
