// SPDX-License-Identifier: Apache-2.0
#include "broker/os/process.h"

#include <windows.h>
// After windows.h.
#include <sddl.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/base/check.h"
#include "broker/os/service.h"
#include "platform_win/handles/inherited_handles.h"
#include "platform_win/handles/process_object.h"
#include "platform_win/hidden_child.h"
#include "platform_win/pipe.h"
#include "platform_win/security/account.h"
#include "platform_win/security/restricted_token.h"
#include "platform_win/security/trusted_file.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

// Linux's signal numbers, for the two ways of ending that are distinguished.
constexpr int kSignalKill = 9;
constexpr int kSignalFault = 11;
constexpr DWORD kKilledExitCode = 0x40534b4c;  // KillGroup's exit code: "SLK@".
constexpr DWORD kFirstExceptionCode = 0xc0000000;

constexpr char kLocalService[] = "S-1-5-19";

// The only folder that a child may write: it has low integrity, unlike its user's own folders, and
// a service's user has none. Workers lay out the headers of programs there, and drivers their
// compilers' files. "" if it cannot be made.
std::string MakeWorkFolder() {
  const bool privileged = IsPrivileged();
  std::error_code error;
  std::filesystem::path above = std::filesystem::temp_directory_path(error);
  absl::Status status;
  if (privileged) {
    above = std::filesystem::path(ToWide(DefaultConfigFile())).parent_path();
    status = SecureFolder(FromWide(above.wstring()));
  }
  const std::string folder = FromWide((above / L"sluice-work").wstring());
  if (status.ok()) status = MakeFolderOf(privileged ? kLocalService : OwnSid(), folder);
  if (status.ok()) return folder;
  const std::string warning = absl::StrCat(
      "workers have no folder for files, so that programs lack their headers: ", status.message());
  std::fprintf(stderr, "sluice: %s\n", warning.c_str());
  LogServiceEvent(ServiceEvent::kWarning, warning);
  return "";
}

// The system's libraries look for their own files by the first two.
void AddRequiredVariables(std::vector<std::string>* environment) {
  for (const std::string& own : OwnEnvironment()) {
    const std::string name = absl::AsciiStrToUpper(own.substr(0, own.find('=') + 1));
    if (name != "SYSTEMROOT=" && name != "WINDIR=") continue;
    const auto same = [&name](const std::string& entry) {
      return absl::AsciiStrToUpper(entry.substr(0, name.size())) == name;
    };
    if (std::none_of(environment->begin(), environment->end(), same)) environment->push_back(own);
  }
  static const auto* const folder = new std::string(MakeWorkFolder());
  if (folder->empty()) return;
  for (const char* name : {"TEMP=", "TMP="})
    environment->insert(environment->begin(), absl::StrCat(name, *folder));
}

// Sorted, as the system wants it, each entry with its NUL and one more at the end. Names have no
// case; of two entries of one name the later counts.
std::wstring EnvironmentBlock(std::vector<std::string> entries) {
  AddRequiredVariables(&entries);
  std::map<std::string, std::string> by_name;
  for (std::string& entry : entries) {
    std::string name = absl::AsciiStrToUpper(entry.substr(0, entry.find('=')));
    by_name[std::move(name)] = std::move(entry);
  }
  std::wstring block;
  for (const auto& [name, entry] : by_name) {
    block += ToWide(entry);
    block += L'\0';
  }
  block += L'\0';
  return block;
}

// The job that holds the child and all that it starts, limits them and ends them.
absl::StatusOr<OwnedHandle> CreateJob(const SandboxOptions& sandbox, bool bound_desktop) {
  OwnedHandle job(::CreateJobObjectW(nullptr, nullptr));
  if (!job.valid()) return WindowsStatus(::GetLastError(), "creating a job");
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  // A crash ends the process without a dialog.
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
  if (sandbox.data_bytes != 0) {
    limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
    limits.JobMemoryLimit = sandbox.data_bytes;
  }
  if (sandbox.parent_death_signal != 0) {
    limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  }
  if (!::SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits,
                                 sizeof(limits))) {
    return WindowsStatus(::GetLastError(), "bounding a job");
  }
  if (!bound_desktop) return job;
  // No clipboard, no windows of others, no shutting down. A system without desktops needs no such
  // limit.
  JOBOBJECT_BASIC_UI_RESTRICTIONS no_desktop = {};
  no_desktop.UIRestrictionsClass = JOB_OBJECT_UILIMIT_DESKTOP | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS |
                                   JOB_OBJECT_UILIMIT_EXITWINDOWS | JOB_OBJECT_UILIMIT_GLOBALATOMS |
                                   JOB_OBJECT_UILIMIT_HANDLES | JOB_OBJECT_UILIMIT_READCLIPBOARD |
                                   JOB_OBJECT_UILIMIT_WRITECLIPBOARD |
                                   JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS;
  ::SetInformationJobObject(job.get(), JobObjectBasicUIRestrictions, &no_desktop,
                            sizeof(no_desktop));
  return job;
}

void WarnOfDesktop() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const warning =
        "this process is in a job of somebody else's, so that its children may use windows and the "
        "clipboard";
    std::fprintf(stderr, "sluice: %s\n", warning);
    LogServiceEvent(ServiceEvent::kWarning, warning);
  });
}

// Puts the process into a new job, or ends it. A process that is in another job cannot enter one
// that limits the desktop; our children are in one if we are (a container's, a build's).
absl::StatusOr<OwnedHandle> HoldInJob(const SandboxOptions& sandbox, HANDLE process) {
  DWORD error = ERROR_SUCCESS;
  for (const bool bound_desktop : {true, false}) {
    absl::StatusOr<OwnedHandle> job = CreateJob(sandbox, bound_desktop);
    if (!job.ok()) {
      ::TerminateProcess(process, kKilledExitCode);
      return job;
    }
    if (::AssignProcessToJobObject(job->get(), process)) {
      if (!bound_desktop) WarnOfDesktop();
      return job;
    }
    error = ::GetLastError();
  }
  ::TerminateProcess(process, kKilledExitCode);
  return WindowsStatus(error, "putting a child into its job");
}

OwnedHandle OpenNull() {
  SECURITY_ATTRIBUTES inheritable = {sizeof(inheritable), nullptr, TRUE};
  return OwnedHandle(::CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE,
                                   FILE_SHARE_READ | FILE_SHARE_WRITE, &inheritable, OPEN_EXISTING,
                                   0, nullptr));
}

// Inheritable duplicates of the child's stdin, stdout and stderr.
struct StandardHandles {
  OwnedHandle input = OpenNull();
  OwnedHandle output;

  explicit StandardHandles(int descriptor) {
    HANDLE source = ::GetStdHandle(STD_ERROR_HANDLE);
    const std::shared_ptr<HandleObject> object = FindDescriptor(descriptor, HandleKind::kFile);
    if (object != nullptr) source = object->handle();
    if (source != nullptr && source != INVALID_HANDLE_VALUE) {
      output = DuplicateHandleHere(source, 0, /*inheritable=*/true);
    }
    if (!output.valid()) output = OpenNull();  // A service has no stderr.
  }
};

// The list of all handles that a child inherits: others may be made inheritable at the same time,
// for another child.
class HandleList {
 public:
  explicit HandleList(std::vector<HANDLE> handles) : handles_(std::move(handles)) {
    SIZE_T bytes = 0;
    ::InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
    memory_.resize(bytes);
    auto* list = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data());
    if (!::InitializeProcThreadAttributeList(list, 1, 0, &bytes)) return;
    list_ = list;
    valid_ =
        ::UpdateProcThreadAttribute(list_, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles_.data(),
                                    handles_.size() * sizeof(HANDLE), nullptr, nullptr);
  }
  ~HandleList() {
    if (list_ != nullptr) ::DeleteProcThreadAttributeList(list_);
  }
  HandleList(const HandleList&) = delete;
  HandleList& operator=(const HandleList&) = delete;

  bool valid() const { return valid_; }
  LPPROC_THREAD_ATTRIBUTE_LIST get() const { return list_; }

 private:
  std::vector<HANDLE> handles_;
  std::vector<char> memory_;
  LPPROC_THREAD_ATTRIBUTE_LIST list_ = nullptr;
  bool valid_ = false;
};

std::string FolderOf(const std::string& path) { return path.substr(0, path.find_last_of("\\/")); }

bool FileExists(const std::string& path) {
  const DWORD attributes = ::GetFileAttributesW(ToWide(path).c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

}  // namespace

absl::StatusOr<ChildProcess> Spawn(const SpawnOptions& options) {
  std::vector<OwnedHandle> inheritable;
  std::vector<std::string> entries;
  for (const auto& [descriptor, number] : options.descriptors) {
    SLUICE_CHECK(number >= 3 && number < 64);
    const std::shared_ptr<HandleObject> object = FindDescriptor(descriptor);
    if (object == nullptr) return absl::InvalidArgumentError("no such descriptor for a child");
    absl::StatusOr<std::string> entry = DescribeForChild(*object, number, &inheritable);
    if (!entry.ok()) return entry.status();
    entries.push_back(*std::move(entry));
  }
  std::vector<std::string> environment = options.environment;
  if (!entries.empty()) {
    environment.push_back(
        absl::StrCat(FromWide(kInheritedVariable), "=", absl::StrJoin(entries, ";")));
  }
  std::wstring block = EnvironmentBlock(std::move(environment));
  std::wstring line;
  AppendQuoted(options.path, &line);
  for (const std::string& argument : options.arguments) AppendQuoted(argument, &line);

  const StandardHandles standard(options.output);
  std::vector<HANDLE> list = {standard.input.get(), standard.output.get()};
  for (const OwnedHandle& handle : inheritable) list.push_back(handle.get());
  const HandleList handles(std::move(list));
  if (!handles.valid()) return WindowsStatus(::GetLastError(), "listing a child's handles");
  absl::StatusOr<OwnedHandle> token = CreateRestrictedChildToken();
  if (!token.ok()) return token.status();
  if (HiddenProcess() == nullptr) return absl::InternalError("no access list for a child");

  STARTUPINFOEXW startup = {};
  startup.StartupInfo.cb = sizeof(startup);
  startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  startup.StartupInfo.hStdInput = standard.input.get();
  startup.StartupInfo.hStdOutput = standard.output.get();
  startup.StartupInfo.hStdError = standard.output.get();
  startup.lpAttributeList = handles.get();
  PROCESS_INFORMATION started = {};
  const DWORD flags = CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT |
                      CREATE_NO_WINDOW |
                      (options.sandbox.new_session ? CREATE_NEW_PROCESS_GROUP : 0);
  if (!::CreateProcessAsUserW(token->get(), ToWide(options.path).c_str(), line.data(),
                              HiddenProcess(), nullptr, TRUE, flags, block.data(), nullptr,
                              &startup.StartupInfo, &started)) {
    return WindowsStatus(::GetLastError(), absl::StrCat("starting ", options.path, ": exec"));
  }
  OwnedHandle process(started.hProcess);
  const OwnedHandle thread(started.hThread);
  // In the job before its first instruction, so that nothing that it starts escapes.
  absl::StatusOr<OwnedHandle> job = HoldInJob(options.sandbox, process.get());
  if (!job.ok()) return job.status();
  for (const auto& [descriptor, number] : options.descriptors) {
    const std::shared_ptr<HandleObject> object = FindDescriptor(descriptor, HandleKind::kPipe);
    if (object != nullptr) static_cast<PipeEnd&>(*object).MovedTo(process.get());
  }
  ::ResumeThread(thread.get());
  return ChildProcess(
      static_cast<pid_t>(started.dwProcessId),
      AddDescriptor(std::make_shared<ProcessObject>(std::move(process), *std::move(job))));
}

absl::Status ChildProcess::Signal(int signal_number) const {
  const std::shared_ptr<HandleObject> object = FindDescriptor(pidfd_.get(), HandleKind::kProcess);
  if (object == nullptr) return absl::FailedPreconditionError("no such process");
  if (signal_number != kSignalKill) {
    return absl::UnimplementedError("Windows has no signals; a process can only be ended");
  }
  if (!::TerminateProcess(object->handle(), kKilledExitCode)) {
    return WindowsStatus(::GetLastError(), "ending a process");
  }
  return absl::OkStatus();
}

void ChildProcess::KillGroup() const {
  const std::shared_ptr<HandleObject> object = FindDescriptor(pidfd_.get(), HandleKind::kProcess);
  if (object == nullptr) return;
  const auto& process = static_cast<const ProcessObject&>(*object);
  if (process.job() != nullptr) ::TerminateJobObject(process.job(), kKilledExitCode);
  ::TerminateProcess(process.handle(), kKilledExitCode);  // Fails if the job has ended it.
}

std::optional<ExitStatus> ChildProcess::TryReap() { return WaitAndReap(0); }

std::optional<ExitStatus> ChildProcess::WaitAndReap(int timeout_ms) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(pidfd_.get(), HandleKind::kProcess);
  if (object == nullptr) return std::nullopt;
  const DWORD limit = timeout_ms < 0 ? INFINITE : static_cast<DWORD>(timeout_ms);
  if (::WaitForSingleObject(object->handle(), limit) != WAIT_OBJECT_0) return std::nullopt;
  DWORD code = 0;
  ::GetExitCodeProcess(object->handle(), &code);
  pidfd_.reset();
  ExitStatus status;
  status.code = static_cast<int>(code);
  if (code == kKilledExitCode) status.signal = kSignalKill;
  if (code >= kFirstExceptionCode) status.signal = kSignalFault;
  return status;
}

std::string ExitStatus::Describe() const {
  if (signal == 0) return absl::StrCat("exit code ", code);
  if (signal == kSignalKill) return "ended from outside";
  return absl::StrCat("exception 0x", absl::Hex(static_cast<uint32_t>(code)));
}

absl::StatusOr<std::string> OwnExecutablePath() {
  std::wstring path(32768, L'\0');  // The longest that Windows knows.
  const DWORD length = ::GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size()));
  if (length == 0) return WindowsStatus(::GetLastError(), "asking for our own file");
  path.resize(length);
  return FromWide(path);
}

absl::StatusOr<std::string> FindHelperExecutable(const std::string& name) {
  const absl::StatusOr<std::string> own = OwnExecutablePath();
  if (!own.ok()) return own.status();
  // All programs lie in one folder, which only administrators may change where the service is
  // installed.
  std::string path = absl::StrCat(FolderOf(*own), "\\", name, ".exe");
  if (FileExists(path)) return path;
  return absl::NotFoundError(absl::StrCat(
      "helper program ", path, " is not there; reinstall Sluice, or build its whole tree"));
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  wchar_t* const block = ::GetEnvironmentStringsW();
  for (const wchar_t* entry = block; entry != nullptr && *entry != L'\0';
       entry += std::wstring_view(entry).size() + 1) {
    if (*entry == L'=') continue;  // The shell's current folder of a drive.
    std::string text = FromWide(entry);
    // Names have no case ("Path"): ours are in capitals.
    const size_t name = text.find('=');
    std::transform(text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(name, text.size())),
                   text.begin(), absl::ascii_toupper);
    environment.push_back(std::move(text));
  }
  if (block != nullptr) ::FreeEnvironmentStringsW(block);
  return environment;
}

uint64_t MachineMemoryBytes() {
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof(memory);
  return ::GlobalMemoryStatusEx(&memory) ? memory.ullTotalPhys : 0;
}

bool IsPrivileged() { return IsSystemSid(OwnSid()); }

absl::StatusOr<UserIdentity> LookUpUser(const std::string& name) {
  alignas(SID) char sid[SECURITY_MAX_SID_SIZE];
  DWORD sid_bytes = sizeof(sid);
  wchar_t domain[256];
  DWORD domain_length = std::size(domain);
  SID_NAME_USE use;
  if (name.empty() ||
      !::LookupAccountNameW(nullptr, ToWide(name).c_str(), sid, &sid_bytes, domain, &domain_length,
                            &use) ||
      IsGroup(sid, use)) {
    return absl::NotFoundError(absl::StrCat("this machine has no user \"", name, "\""));
  }
  wchar_t* text = nullptr;
  if (!::ConvertSidToStringSidW(sid, &text))
    return WindowsStatus(::GetLastError(), "writing a SID");
  UserIdentity identity;
  identity.name = name;
  identity.uid = UserOfSid(FromWide(text));
  identity.gid = identity.uid;
  ::LocalFree(text);
  return identity;
}

absl::StatusOr<gid_t> LookUpGroup(const std::string&) {
  return absl::UnimplementedError(
      "on Windows the pipe's access list is the whole machine's, or the daemon's user's");
}

}  // namespace sluice::os
