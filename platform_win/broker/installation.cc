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
#include "broker/exit_codes.h"
#include "broker/os/process.h"
#include "broker/os/service.h"
#include "platform_win/broker/installation_lock.h"
#include "platform_win/broker/programs.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/security/trusted_file.h"
#include "platform_win/service_name.h"
#include "platform_win/wide_text.h"
#include "proto/status_macros.h"

namespace sluice::os {
namespace {

constexpr wchar_t kEventSource[] =
    L"SYSTEM\\CurrentControlSet\\Services\\EventLog\\Application\\Sluice";
// Windows' own file, whose messages 1 to 1000 are just the text that comes with the event.
constexpr wchar_t kMessageFile[] = L"%SystemRoot%\\System32\\EventCreate.exe";
constexpr char kDaemon[] = "sluiced.exe";
constexpr DWORD kStopTimeoutMs = 60'000;
constexpr DWORD kPollMs = 100;
constexpr DWORD kTellAfterMs = 2'000;  // A person waits this long without wondering.

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
    return absl::PermissionDeniedError(absl::StrCat(
        what, ": only an administrator may do that, in a prompt that was opened as administrator"));
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

// The full path, in long names if the file exists.
std::wstring PlainPath(const std::wstring& path) {
  std::wstring full(32768, L'\0');
  DWORD length =
      ::GetFullPathNameW(path.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr);
  if (length == 0 || length >= full.size()) return path;
  full.resize(length);
  std::wstring name(32768, L'\0');
  length = ::GetLongPathNameW(full.c_str(), name.data(), static_cast<DWORD>(name.size()));
  return length == 0 || length >= name.size() ? full : name.substr(0, length);
}

bool IsSameFile(const std::wstring& a, const std::wstring& b) {
  return ::CompareStringOrdinal(PlainPath(a).c_str(), -1, PlainPath(b).c_str(), -1, TRUE) ==
         CSTR_EQUAL;
}

// Says how to remove the registrations of another folder's programs.
std::string RemovalAdvice(const std::string& file, const std::string& by_hand) {
  const std::string tool =
      absl::StrCat(file.substr(0, file.find_last_of("\\/") + 1), "sluicectl.exe");
  std::error_code error;
  if (std::filesystem::exists(ToWide(tool), error))
    return absl::StrCat("`\"", tool, "\" uninstall` removes it");
  return absl::StrCat("there is no sluicectl.exe beside it: ", by_hand, " removes it");
}

// OpenCL's loader knows drivers by the names of values, each a path.
class DriverList {
 public:
  DriverList() = default;
  ~DriverList() {
    if (key_ != nullptr) ::RegCloseKey(key_);
  }
  DriverList(const DriverList&) = delete;
  DriverList& operator=(const DriverList&) = delete;

  // Every entry that names a driver of ours, in whatever folder.
  absl::StatusOr<std::vector<std::wstring>> Ours() {
    const LSTATUS result =
        ::RegOpenKeyExW(HKEY_LOCAL_MACHINE, broker::kVendorsKey, 0,
                        KEY_QUERY_VALUE | KEY_SET_VALUE | KEY_WOW64_64KEY, &key_);
    std::vector<std::wstring> entries;
    if (result == ERROR_FILE_NOT_FOUND) return entries;  // No drivers at all.
    ::SetLastError(static_cast<DWORD>(result));
    if (result != ERROR_SUCCESS) return Failed("opening the list of drivers");
    std::wstring name(32768, L'\0');
    for (DWORD index = 0;; ++index) {
      auto length = static_cast<DWORD>(name.size());
      if (::RegEnumValueW(key_, index, name.data(), &length, nullptr, nullptr, nullptr, nullptr) !=
          ERROR_SUCCESS) {
        return entries;
      }
      const std::wstring value(name.data(), length);
      const std::string file = FromWide(value.substr(value.find_last_of(L"\\/") + 1));
      if (absl::EqualsIgnoreCase(file, broker::kDriverFile)) entries.push_back(value);
    }
  }

  absl::Status Remove(const std::wstring& entry) {
    const LSTATUS result = ::RegDeleteValueW(key_, entry.c_str());
    ::SetLastError(static_cast<DWORD>(result));
    return result == ERROR_SUCCESS ? absl::OkStatus() : Failed("removing the driver's entry");
  }

 private:
  HKEY key_ = nullptr;
};

// Registers the driver beside us, in place of any other of ours: two would show each device twice.
absl::Status RegisterDriver(const std::string& driver, std::vector<std::string>* done) {
  RETURN_IF_ERROR(SetDword(broker::kVendorsKey, ToWide(driver), 0));
  done->push_back(absl::StrCat("driver: ", driver));
  DriverList list;
  ASSIGN_OR_RETURN(const std::vector<std::wstring> entries, list.Ours());
  for (const std::wstring& entry : entries) {
    // The same path in another spelling would be loaded twice.
    if (::CompareStringOrdinal(entry.c_str(), -1, ToWide(driver).c_str(), -1, TRUE) == CSTR_EQUAL)
      continue;
    RETURN_IF_ERROR(list.Remove(entry));
    done->push_back(absl::StrCat("driver replaced: ", FromWide(entry)));
  }
  if (std::string missing = broker::MissingLoader(); !missing.empty())
    done->push_back(std::move(missing));
  return absl::OkStatus();
}

// Removes the entry of the driver beside us. Another folder's belongs to another installation.
absl::Status RemoveDriver(std::vector<std::string>* done) {
  ASSIGN_OR_RETURN(const std::string driver, FileBeside(broker::kDriverFile));
  DriverList list;
  ASSIGN_OR_RETURN(const std::vector<std::wstring> entries, list.Ours());
  for (const std::wstring& entry : entries) {
    const std::string file = FromWide(entry);
    if (IsSameFile(entry, ToWide(driver))) {
      RETURN_IF_ERROR(list.Remove(entry));
      done->push_back(absl::StrCat("driver removed: ", file));
      continue;
    }
    const std::string by_hand =
        absl::StrCat("`reg delete HKLM\\", FromWide(broker::kVendorsKey), " /v \"", file, "\" /f`");
    done->push_back(absl::StrCat("driver left: ", file,
                                 ", which this installation did not register; ",
                                 RemovalAdvice(file, by_hand)));
  }
  return absl::OkStatus();
}

// A failure to make or change the service, which another program may remove at any time.
absl::Status ServiceFailed(const char* what) {
  if (::GetLastError() != ERROR_SERVICE_MARKED_FOR_DELETE) return Failed(what);
  return absl::FailedPreconditionError(
      "the service that was there is not gone yet: close what shows it (services.msc, Task "
      "Manager), wait for its process to end, and install again");
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
    return ServiceFailed("setting what happens when the service fails");
  }
  SERVICE_FAILURE_ACTIONS_FLAG also_errors = {TRUE};  // Also if it ends by itself, with an error.
  ::ChangeServiceConfig2W(service, SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, &also_errors);
  std::wstring text = L"Shares this machine's OpenCL devices with other processes.";
  SERVICE_DESCRIPTIONW description = {text.data()};
  ::ChangeServiceConfig2W(service, SERVICE_CONFIG_DESCRIPTION, &description);
  return absl::OkStatus();
}

// Runs `sluiced --check-config` and returns its message as an error.
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
  if (code == broker::kDaemonExitOk) return absl::OkStatus();
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  const absl::string_view words = absl::StripAsciiWhitespace(text);
  return absl::InvalidArgumentError(
      words.empty() ? absl::StrCat("sluiced --check-config ended with exit code ", code)
                    : std::string(words));
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

// OpenCL's loader reads its list in the system's code page. It finds no file for a name with other
// characters, and no program would have the driver.
absl::Status CheckLoaderReads(const std::string& driver) {
  const std::wstring wide = ToWide(driver);
  BOOL changed = FALSE;
  // UTF-8 has all characters, and WideCharToMultiByte takes no flags for it.
  const bool is_utf8 = ::GetACP() == CP_UTF8;
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

// Secures the configuration's folder, and checks the file as the service would.
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

std::string DescribeStart(DWORD start, const std::string& command) {
  return absl::StrCat(start == SERVICE_AUTO_START ? "started with Windows: "
                      : start == SERVICE_DISABLED ? "disabled: "
                                                  : "started by hand: ",
                      command);
}

// The words of the service's command; none if the service manager does not say. `*described` gets
// when and how it is started.
std::vector<std::wstring> CommandOf(SC_HANDLE service, std::string* described = nullptr) {
  alignas(QUERY_SERVICE_CONFIGW) char buffer[8192];  // As large as it ever is.
  auto* const config = reinterpret_cast<QUERY_SERVICE_CONFIGW*>(buffer);
  DWORD needed = 0;
  if (!::QueryServiceConfigW(service, config, sizeof(buffer), &needed)) return {};
  if (described != nullptr)
    *described = DescribeStart(config->dwStartType, FromWide(config->lpBinaryPathName));
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(config->lpBinaryPathName, &count);
  std::vector<std::wstring> command;
  for (int i = 0; words != nullptr && i < count; ++i) command.emplace_back(words[i]);
  ::LocalFree(words);
  return command;
}

// The flags with which the existing service was installed, for --keep; `flags` if there is none.
InstallFlags KeptFlags(InstallFlags flags) {
  const ServiceHandle manager(::OpenSCManagerW(nullptr, nullptr, SC_MANAGER_CONNECT));
  const ServiceHandle service(
      manager.valid() ? ::OpenServiceW(manager.get(), kServiceName, SERVICE_QUERY_CONFIG)
                      : nullptr);
  if (!service.valid()) return flags;
  std::string described;
  const std::vector<std::wstring> words = CommandOf(service.get(), &described);
  const auto flag = std::find(words.begin(), words.end(), L"--config");
  if (flags.config_file.empty() && flag != words.end() && flag + 1 != words.end())
    flags.config_file = FromWide(flag[1]);
  flags.manual =
      flags.manual || absl::StartsWith(described, DescribeStart(SERVICE_DEMAND_START, ""));
  return flags;
}

// The manager replaces %NAME% by the variable, and so would start another program than the one that
// was checked.
absl::Status CheckNotExpanded(const std::string& path, const char* advice) {
  if (path.find('%') == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": a service's path cannot hold a percent sign, since Windows takes it for the begin "
      "of a variable: ",
      advice));
}

absl::Status InstallService(const InstallFlags& flags, std::vector<std::string>* done) {
  ASSIGN_OR_RETURN(const std::string daemon, FileBeside(kDaemon));
  RETURN_IF_ERROR(CheckNotExpanded(
      daemon, "unpack Sluice into a folder without one, and install it from there"));
  std::string command = absl::StrCat("\"", daemon, "\"");
  std::string file;
  if (!flags.config_file.empty()) {
    ASSIGN_OR_RETURN(file, FullPath(flags.config_file));
    RETURN_IF_ERROR(CheckNotExpanded(file, "give --config a file of another name, or folder"));
    absl::StrAppend(&command, " --config \"", file, "\"");
  }
  const ServiceHandle manager(
      ::OpenSCManagerW(nullptr, nullptr, SC_MANAGER_CONNECT | SC_MANAGER_CREATE_SERVICE));
  if (!manager.valid()) return Failed("opening the service manager");
  RETURN_IF_ERROR(PrepareConfig(daemon, file));  // Needs an administrator, who will own the folder.
  const DWORD start = flags.manual ? SERVICE_DEMAND_START : SERVICE_AUTO_START;
  SC_HANDLE handle = ::CreateServiceW(
      manager.get(), kServiceName, L"Sluice", SERVICE_ALL_ACCESS, SERVICE_WIN32_OWN_PROCESS, start,
      SERVICE_ERROR_NORMAL, ToWide(command).c_str(), nullptr, nullptr, nullptr, nullptr, nullptr);
  std::string before;
  if (handle == nullptr && ::GetLastError() == ERROR_SERVICE_EXISTS) {
    handle = ::OpenServiceW(manager.get(), kServiceName, SERVICE_ALL_ACCESS);
    if (handle != nullptr) CommandOf(handle, &before);
    if (handle != nullptr &&
        !::ChangeServiceConfigW(handle, SERVICE_WIN32_OWN_PROCESS, start, SERVICE_NO_CHANGE,
                                ToWide(command).c_str(), nullptr, nullptr, nullptr, nullptr,
                                nullptr, nullptr)) {
      const ServiceHandle closed(handle);
      return ServiceFailed("changing the service");
    }
  }
  const ServiceHandle service(handle);
  if (!service.valid()) return ServiceFailed("creating the service");
  RETURN_IF_ERROR(SetFailureActions(service.get()));
  constexpr DWORD kEventTypes =
      EVENTLOG_ERROR_TYPE | EVENTLOG_WARNING_TYPE | EVENTLOG_INFORMATION_TYPE;
  RETURN_IF_ERROR(SetDword(kEventSource, L"TypesSupported", kEventTypes));
  RETURN_IF_ERROR(SetText(kEventSource, L"EventMessageFile", kMessageFile));
  const std::string now = DescribeStart(start, command);
  const bool changed = !before.empty() && before != now;
  done->push_back(absl::StrCat("service ", FromWide(kServiceName), ", ", now,
                               changed ? absl::StrCat(", instead of ", before) : ""));
  SERVICE_STATUS status = {};
  if (!::QueryServiceStatus(service.get(), &status)) return absl::OkStatus();
  if (status.dwCurrentState == SERVICE_STOP_PENDING) {
    done->push_back("it is stopping; `sc.exe start Sluice` starts it so once it has");
  } else if (status.dwCurrentState != SERVICE_STOPPED) {
    done->push_back(
        "it runs as it was started, and so it does until `sc.exe stop Sluice` and `sc.exe start "
        "Sluice`");
  }
  return absl::OkStatus();
}

// The number of a service's process that has ended without the manager's knowledge: Wine's keeps
// the state that was reported last. 0 if there is none.
DWORD EndedProcessOf(SC_HANDLE service) {
  SERVICE_STATUS_PROCESS status = {};
  DWORD needed = 0;
  if (!::QueryServiceStatusEx(service, SC_STATUS_PROCESS_INFO, reinterpret_cast<BYTE*>(&status),
                              sizeof(status), &needed) ||
      status.dwCurrentState == SERVICE_STOPPED || status.dwProcessId == 0) {
    return 0;
  }
  const OwnedHandle process(::OpenProcess(SYNCHRONIZE, FALSE, status.dwProcessId));
  const bool ended = process.valid()
                         ? ::WaitForSingleObject(process.get(), 0) == WAIT_OBJECT_0
                         : ::GetLastError() == ERROR_INVALID_PARAMETER;  // No such process.
  return ended ? status.dwProcessId : 0;
}

absl::Status StopService(SC_HANDLE service, std::vector<std::string>* done) {
  bool told = false;
  bool refused = false;
  // The manager does not notify us when a service runs or has stopped; it can only be asked.
  for (DWORD waited = 0; waited < kStopTimeoutMs; waited += kPollMs) {
    SERVICE_STATUS status = {};
    if (!::QueryServiceStatus(service, &status)) return Failed("asking for the service");
    if (status.dwCurrentState == SERVICE_STOPPED) return absl::OkStatus();
    if (const DWORD process = EndedProcessOf(service); process != 0) {
      done->push_back(
          absl::StrCat("service not stopped: its process, ", process, ", had ended already"));
      return absl::OkStatus();
    }
    // A starting service takes no controls yet.
    if (!told && status.dwCurrentState == SERVICE_RUNNING) {
      told = ::ControlService(service, SERVICE_CONTROL_STOP, &status) != 0;
      const DWORD error = told ? NO_ERROR : ::GetLastError();
      // It may have begun to stop since. If it still runs then, it takes no stop.
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
      ::OpenServiceW(manager.get(), kServiceName,
                     SERVICE_STOP | SERVICE_QUERY_STATUS | SERVICE_QUERY_CONFIG | DELETE));
  if (!service.valid()) {
    if (::GetLastError() == ERROR_SERVICE_DOES_NOT_EXIST) return absl::OkStatus();
    return Failed("opening the service");
  }
  ASSIGN_OR_RETURN(const std::string daemon, FileBeside(kDaemon));
  const std::vector<std::wstring> command = CommandOf(service.get());
  if (!command.empty() && !IsSameFile(command[0], ToWide(daemon))) {
    const std::string file = FromWide(command[0]);
    done->push_back(
        absl::StrCat("service left: ", FromWide(kServiceName), ", which is ", file,
                     ", not of this installation; ",
                     RemovalAdvice(file, "`sc.exe stop Sluice` and `sc.exe delete Sluice`")));
    return absl::OkStatus();
  }
  // A service that takes no controls is removed all the same.
  absl::Status status = StopService(service.get(), done);
  if (absl::IsDeadlineExceeded(status)) return status;
  // A service that somebody removed while it ran disappears now that it has stopped.
  if (::DeleteService(service.get()) || ::GetLastError() == ERROR_SERVICE_MARKED_FOR_DELETE) {
    done->push_back(absl::StrCat("service removed: ", FromWide(kServiceName)));
  } else {
    status.Update(Failed("removing the service"));
  }
  ::RegDeleteKeyExW(HKEY_LOCAL_MACHINE, kEventSource, KEY_WOW64_64KEY, 0);
  return status;
}

// The file that the service reads.
std::string ConfigFileOf(SC_HANDLE service) {
  const std::vector<std::wstring> words = CommandOf(service);
  const auto flag = std::find(words.begin(), words.end(), L"--config");
  return flag != words.end() && flag + 1 != words.end() ? FromWide(flag[1]) : DefaultConfigFile();
}

std::string DescribeEnd(SC_HANDLE service, const SERVICE_STATUS& status) {
  if (status.dwWin32ExitCode == NO_ERROR || status.dwWin32ExitCode == ERROR_SERVICE_NEVER_STARTED)
    return "the service Sluice is stopped; `sc.exe start Sluice` starts it, as an administrator";
  constexpr char kEventLog[] = "the event log (application, source Sluice) says why";
  if (status.dwWin32ExitCode != ERROR_SERVICE_SPECIFIC_ERROR) {
    return absl::StrCat("the service Sluice has ended with Windows' error ", status.dwWin32ExitCode,
                        "; ", kEventLog);
  }
  switch (status.dwServiceSpecificExitCode) {
    case broker::kDaemonExitUsage:
      return absl::StrCat(
          "the service Sluice does not start with its configuration; `sluiced --check-config \"",
          ConfigFileOf(service), "\"` says what is wrong with it; ", kEventLog);
    case broker::kDaemonExitAlreadyRunning:
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
  if (const DWORD process = EndedProcessOf(service.get()); process != 0) {
    return absl::StrCat("the process of the service Sluice, ", process,
                        ", has ended, though the service manager takes it for running: `sluicectl "
                        "uninstall`, then `sluicectl install` and `sc.exe start Sluice`, as an "
                        "administrator");
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
  ASSIGN_OR_RETURN(const broker::InstallationLock lock, broker::InstallationLock::Take());
  std::string driver;
  std::vector<std::string> programs;
  if (!flags.no_service)
    programs = {kDaemon, "sluice-worker.exe", "sluice-gateway.exe", "sluice-allocator.exe"};
  if (!flags.no_driver) programs.push_back(broker::kDriverFile);
  ASSIGN_OR_RETURN(const std::string own, OwnExecutablePath());
  RETURN_IF_ERROR(broker::CheckPrograms(own.substr(0, own.find_last_of("\\/")), programs));
  if (!flags.no_driver) {
    ASSIGN_OR_RETURN(driver, FileBeside(broker::kDriverFile));
    RETURN_IF_ERROR(CheckLoaderReads(driver));
  }
  if (!flags.no_service)
    RETURN_IF_ERROR(InstallService(flags.keep ? KeptFlags(flags) : flags, done));
  if (flags.no_driver) return absl::OkStatus();
  return RegisterDriver(driver, done);
}

absl::Status Uninstall(const InstallFlags& flags, std::vector<std::string>* done) {
  ASSIGN_OR_RETURN(const broker::InstallationLock lock, broker::InstallationLock::Take());
  // The service first: if sessions keep it from stopping, nothing is removed. If another step
  // fails, the rest is still done.
  absl::Status status = flags.no_service ? absl::OkStatus() : UninstallService(done);
  if (absl::IsDeadlineExceeded(status) || flags.no_driver) return status;
  status.Update(RemoveDriver(done));
  return status;
}

}  // namespace sluice::os
