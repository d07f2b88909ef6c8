// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/doctor.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "broker/base/daemon_places.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/file.h"
#include "broker/os/process.h"
#include "deploy/sluicectl/broker_client.h"
#include "deploy/sluicectl/containers/client_folder.h"
#include "deploy/sluicectl/containers/surroundings.h"
#include "deploy/sluicectl/doctor_helper.h"
#include "deploy/sluicectl/doctor_report.h"
#include "deploy/sluicectl/endpoint.h"
#include "deploy/sluicectl/linux/operators_sockets.h"
#include "deploy/sluicectl/remote_client.h"

extern char** environ;

namespace sluice::ctl {
namespace {

constexpr char kSystemVendors[] = "/etc/OpenCL/vendors";
constexpr int kLoadTimeoutMs = 20'000;
constexpr int kDriversPatience = 4;  // Times --timeout-ms: they may be several.

struct PlatformList {
  std::vector<std::string> names;
  std::vector<std::string>
      contexts;  // Of ours, in the order of the names: kOpened, or a code and why.
  std::string problem;
  std::string driver_says;  // If none of the names is ours.
};

class Examination : private Steps {
 public:
  explicit Examination(const CommonFlags& flags) : flags_(flags) {}

  int Run() {
    if (!container_.empty()) Ok("container", absl::StrCat("this is ", container_));
    CheckEnvironment();
    CheckLoader();
    CheckIcdFile();
    CheckLibrary();
    std::vector<absl::Status> refused;
    const absl::StatusOr<std::vector<EndpointAddress>> endpoints =
        ResolveEndpoints(flags_.endpoint, &refused);
    for (const absl::Status& status : refused) {
      Failed("endpoint", std::string(status.message()), "correct SLUICE_ENDPOINT or --endpoint");
    }
    for (const EndpointAddress& endpoint : *endpoints) {
      if (endpoint.local()) {
        CheckLocal(endpoint);
      } else {
        CheckRemote(endpoint);
      }
    }
    CheckPlatforms();
    return Report(flags_.json, "An application started like this sees Sluice's devices.\n",
                  "An application started like this does not see all of Sluice's devices.\n");
  }

 private:
  // Advice for who gives a container its mounts; "" elsewhere.
  std::string InContainer(absl::string_view advice) const {
    return container_.empty() ? "" : absl::StrCat("; for ", container_, ": ", advice);
  }

  void CheckEnvironment();
  void CheckLoader();
  void CheckIcdFile();
  void CheckLibrary();
  void CheckLocal(const EndpointAddress& endpoint);
  void CheckSocketFile(const EndpointAddress& endpoint, const absl::Status& status);
  void CheckClientsFolder(const EndpointAddress& endpoint);
  void CheckDevices(const std::string& problem, const std::string& snapshot);
  void CheckWorkers(const EndpointAddress& endpoint);
  void CheckQuotas(const Greeting& greeting);
  void CheckRemote(const EndpointAddress& endpoint);
  void CheckPlatforms();
  void CheckContexts(const PlatformList& list);

  const CommonFlags& flags_;
  const std::string container_ = ContainerAround();
  std::string library_;  // The file that the .icd file names.
  bool loader_found_ = false;
};

void Examination::CheckEnvironment() {
  const char* worker = std::getenv("SLUICE_WORKER");
  if (worker == nullptr || worker[0] == '\0') return;
  Failed("environment",
         "SLUICE_WORKER is set, which hides Sluice's devices from Sluice's own workers",
         "unset SLUICE_WORKER");
}

void Examination::CheckLoader() {
  absl::StatusOr<os::DynamicLibrary> loader = os::DynamicLibrary::Open(kLoader);
  if (!loader.ok()) {
    return Failed("OpenCL loader", std::string(loader.status().message()),
                  absl::StrCat("install it: apt-get install ocl-icd-libopencl1",
                               InContainer("in its image")));
  }
  loader_found_ = true;
  Dl_info info = {};
  void* entry = loader->Find("clGetPlatformIDs");
  const bool located = entry != nullptr && ::dladdr(entry, &info) != 0;
  const bool ocl_icd = loader->Find("clGetICDLoaderInfoOCLICD") != nullptr;
  Ok("OpenCL loader",
     absl::StrCat(located ? info.dli_fname : kLoader, ocl_icd ? " (ocl-icd or compatible)" : ""));
  loader->KeepForever();
}

struct IcdSearch {
  std::string library;  // That an .icd file names for Sluice; "" if none does.
  std::string problem;  // Why one that may have cannot be read.
};

// ocl-icd takes the name of one file too.
bool NamesFile(const std::string& place) { return absl::EndsWith(place, ".icd"); }

// OCL_ICD_VENDORS names a folder as some loaders do not take it.
bool LacksSlash() {
  const char* vendors = std::getenv("OCL_ICD_VENDORS");
  return vendors != nullptr && vendors[0] != '\0' && !absl::EndsWith(vendors, "/") &&
         !NamesFile(vendors);
}

// The .icd files that a loader reads.
IcdSearch FindNamedLibrary(const std::string& place) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (NamesFile(place)) {
    files.emplace_back(place);
  } else {
    for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
      if (entry.path().extension() == ".icd") files.push_back(entry.path());
    }
  }
  IcdSearch search;
  const bool absent = error == std::errc::no_such_file_or_directory;  // As if it were empty.
  if (error && !absent) search.problem = absl::StrCat(place, ": ", error.message());
  for (const std::filesystem::path& file : files) {
    const absl::StatusOr<std::string> content = os::ReadNamedFile(file.string(), kMaxIcdBytes);
    if (!content.ok()) {
      search.problem = std::string(content.status().message());
      continue;
    }
    const std::string line = content->substr(0, content->find('\n'));
    if (!absl::StrContains(line, "sluice")) continue;
    if (line == absl::StripAsciiWhitespace(line)) return {line, ""};
    search.problem =
        absl::StrCat(file.string(),
                     ": the line begins or ends with a space or a carriage return, which loaders "
                     "take for a part of the library's name");
  }
  return search;
}

void Examination::CheckIcdFile() {
  const char* vendors = std::getenv("OCL_ICD_VENDORS");
  const char* file_names = std::getenv("OCL_ICD_FILENAMES");
  const std::string place = vendors != nullptr && vendors[0] != '\0' ? vendors : kSystemVendors;
  const IcdSearch search = FindNamedLibrary(place);
  library_ = search.library;
  if (!library_.empty()) {
    return Ok("ICD file", absl::StrCat("one in ", place, " names ", library_));
  }
  if (file_names != nullptr && absl::StrContains(file_names, "sluice")) {
    library_ = file_names;
    return Ok("ICD file", absl::StrCat("OCL_ICD_FILENAMES names ", library_));
  }
  const std::string found = absl::StrCat("no .icd file in ", place, " names libsluice_icd.so");
  Failed(
      "ICD file", search.problem.empty() ? found : absl::StrCat(found, " (", search.problem, ")"),
      !search.problem.empty() ? "make that file one line, the library's path, which this user can "
                                "read; or reinstall Sluice"
      : vendors != nullptr
          ? (NamesFile(place)
                 ? "OCL_ICD_VENDORS names one file, and the loader looks at no other: unset it, "
                   "or set it to sluice.icd or to a directory that has it"
                 : "OCL_ICD_VENDORS is set: unset it, or put sluice.icd into that directory")
          : absl::StrCat(
                "install Sluice (cmake --install puts sluice.icd there), or start the program "
                "with `sluicectl run -- PROGRAM`",
                InContainer(absl::StrCat("mount the client's sluice.icd at ", kContainerIcdFile,
                                         ", or use --device sluice.dev/gpu=all"))));
}

// The end of a hidden subcommand in a process of its own, in which drivers may crash or hang.
struct HelperEnd {
  std::string answer = {};   // Its output.
  std::string problem = {};  // It could not be started.
  std::string crash = {};    // How it ended, if by a signal.
  bool hangs = false;
};

HelperEnd RunHelper(std::vector<std::string> arguments, int timeout_ms) {
  const absl::StatusOr<std::string> own = os::OwnExecutablePath();
  int ends[2];
  if (!own.ok() || ::pipe2(ends, O_CLOEXEC) != 0) return {.problem = "cannot start a process"};
  const os::UniqueFd read_end(ends[0]);
  os::UniqueFd write_end(ends[1]);
  os::SpawnOptions options;
  options.path = *own;
  options.arguments = std::move(arguments);
  for (char** entry = environ; *entry != nullptr; ++entry) options.environment.emplace_back(*entry);
  // This program has gRPC itself, whose log the driver then leaves alone.
  if (std::getenv("GRPC_VERBOSITY") == nullptr && std::getenv("SLUICE_LOG") == nullptr)
    options.environment.emplace_back("GRPC_VERBOSITY=NONE");
  options.descriptors = {{write_end.get(), kAnswerFd}};
  absl::StatusOr<os::ChildProcess> child = os::Spawn(options);
  if (!child.ok()) return {.problem = std::string(child.status().message())};
  write_end.reset();
  const std::optional<os::ExitStatus> status = child->WaitAndReap(timeout_ms);
  HelperEnd end;
  end.hangs = !status.has_value();
  if (end.hangs) {
    child->KillGroup();
    child->WaitAndReap(-1);
  }
  if (status.has_value() && status->signal != 0) end.crash = status->Describe();
  char text[16384];
  const ssize_t size = ::read(read_end.get(), text, sizeof(text));
  end.answer.assign(text, size > 0 ? static_cast<size_t>(size) : 0);
  return end;
}

void Examination::CheckLibrary() {
  std::string path = library_;
  std::string origin = "named by the .icd file";
  if (path.empty()) {
    const absl::StatusOr<std::string> own = FindIcdLibrary();
    if (!own.ok()) {
      return Failed("ICD library", std::string(own.status().message()), "build or install Sluice");
    }
    path = *own;
    origin = "beside this sluicectl";
  }
  if (const absl::Status driver = CheckDriver(path); !driver.ok()) {
    return Failed(
        "ICD library", std::string(driver.message()),
        absl::StrCat("install what is missing, or reinstall Sluice: the file may have been copied "
                     "in part; a sandbox must contain the library",
                     InContainer(absl::StrCat("mount the folder that `sluicectl export-client` has "
                                              "made at ",
                                              kContainerClientFolder,
                                              "; its libraries must need glibc alone"))));
  }
  Ok("ICD library", absl::StrCat(path, " loads (", origin, ")"));
}

void Examination::CheckSocketFile(const EndpointAddress& endpoint, const absl::Status& status) {
  const std::string reason(status.message());
  struct stat info = {};
  const bool there = ::stat(endpoint.target.c_str(), &info) == 0;
  if (!there && errno == ENOENT) {
    return Failed(
        "daemon's socket", absl::StrCat(endpoint.target, " does not exist"),
        absl::StrCat(
            "start the daemon (systemctl enable --now sluiced.socket, or sluiced by hand), or "
            "set SLUICE_ENDPOINT to where it listens; a sandbox must contain the socket",
            InContainer(absl::StrCat("mount the machine's folder ", kClientSocketFolder,
                                     " at the same place"))));
  }
  if (there && !S_ISSOCK(info.st_mode)) {
    return Failed("daemon's socket", absl::StrCat(endpoint.target, " is no socket"),
                  "set SLUICE_ENDPOINT to where the daemon listens");
  }
  if (absl::IsPermissionDenied(status)) {
    return Failed("daemon's socket", reason,
                  absl::StrCat("user ", ::getuid(),
                               " is not allowed there: see socket_mode, "
                               "socket_group and [access] users in the daemon's configuration; if "
                               "systemd opens the socket, `systemctl edit sluiced.socket` with "
                               "SocketMode= and SocketGroup="));
  }
  if (absl::IsUnavailable(status)) {
    return Failed("daemon's socket", reason,
                  absl::StrCat("a daemon has left its socket behind: start sluiced again",
                               InContainer("mount the socket's folder, not the socket, which is "
                                           "that of an earlier daemon")));
  }
  if (absl::IsDeadlineExceeded(status)) {
    // Connections to a socket of systemd's wait for the daemon that it starts.
    return Failed("daemon's socket", reason,
                  "the daemon does not start, hangs, or still looks for devices (for "
                  "probe_timeout_ms at most): see `systemctl status sluiced` and journalctl -u "
                  "sluiced; or another program listens there");
  }
  Failed("daemon's socket", reason, "look into the daemon's log (journalctl -u sluiced)");
}

void Examination::CheckClientsFolder(const EndpointAddress& endpoint) {
  constexpr char kName[] = "clients' folder";
  const std::string found = OperatorsSocketBeside(endpoint.target);
  if (found.empty()) return Ok(kName, "no operators' socket can be reached from it");
  Warning(
      kName, found,
      absl::StrCat("leave admin_socket and monitor_socket out of the daemon's configuration, "
                   "which has them in ",
                   std::filesystem::path(AdminNameOf(endpoint.target)).parent_path().string(),
                   ", and mount ", std::filesystem::path(DefaultLocalName()).parent_path().string(),
                   " alone into containers"));
}

void Examination::CheckLocal(const EndpointAddress& endpoint) {
  Ok("endpoint", endpoint.text);
  CheckClientsFolder(endpoint);
  const absl::StatusOr<Greeting> greeting = Greet(endpoint.target, flags_.timeout_ms);
  if (!greeting.ok()) {
    CheckSocketFile(endpoint, greeting.status());
    Skipped("devices", "no daemon to ask");
    return Skipped("session", "no daemon to ask");
  }
  Ok("daemon's socket", "the daemon answers");
  CheckDevices(greeting->problem, greeting->snapshot);
  CheckWorkers(endpoint);
  CheckQuotas(*greeting);
  const absl::Status session = TrySession(greeting->socket.get(), flags_.timeout_ms);
  if (session.ok()) return Ok("session", "the daemon opened one for this user");
  Failed("session", std::string(session.message()),
         greeting->problem.empty()
             ? "end a session (`sluicectl sessions`), raise [limits], or look into the daemon's log"
             : "mend what the step `devices` says: without a device no session can begin");
}

void Examination::CheckDevices(const std::string& problem, const std::string& snapshot) {
  if (!problem.empty()) {
    return Failed(
        "devices", problem,
        "on the daemon's machine, mend that, or install an OpenCL driver (on Linux, such "
        "as pocl-opencl-icd) if there is none; sluiced looks again within a minute, or at "
        "once on SIGHUP (systemctl reload sluiced); restart it if the device's kernel "
        "driver was loaded after it had started");
  }
  const absl::StatusOr<std::vector<PlatformSummary>> platforms = DecodeSnapshot(snapshot);
  if (!platforms.ok()) {
    return Failed("devices", std::string(platforms.status().message()),
                  "install sluicectl and sluiced of one release");
  }
  std::vector<std::string> names;
  for (const PlatformSummary& platform : *platforms) {
    for (const DeviceSummary& device : platform.devices) {
      names.push_back(absl::StrCat(platform.name, ": ", device.name));
    }
  }
  if (names.empty()) {
    return Failed("devices", "the daemon offers none",
                  "check [devices] allow in the daemon's configuration");
  }
  Ok("devices", absl::StrJoin(names, "; "));
  Ok("turns",
     "where programs take turns at a device, turns and shares are cooperative: nothing outside a "
     "session's worker shows that it waits for its turn. One that does not gains time, and the "
     "others have the driver's own sharing");
}

// Only operators may ask, and mend it.
void Examination::CheckWorkers(const EndpointAddress& endpoint) {
  CommonFlags flags = flags_;
  flags.endpoint = endpoint.text;
  const std::optional<WorkersTold> told = AskAboutWorkers(flags);
  if (!told.has_value()) return;
  if (!told->sandbox.empty()) Ok("sandbox of workers", told->sandbox);
  if (told->groups_advice.empty()) return Ok("control groups", told->groups);
  Warning("control groups", told->groups, told->groups_advice);
}

// Of this user's account, before this opens a session.
void Examination::CheckQuotas(const Greeting& greeting) {
  if (!greeting.tells_quotas) return Skipped("quotas", "the daemon is older, and does not say");
  absl::StatusOr<ToldQuotas> told = AskQuotas(greeting.socket.get(), flags_.timeout_ms);
  if (told.ok()) return Quotas(told->account, std::move(told->quotas));
  Failed("quotas", std::string(told.status().message()),
         "install sluicectl and sluiced of one release");
}

// As the driver asks: what is wrong with name, route, TLS or token is in its words.
void Examination::CheckRemote(const EndpointAddress& endpoint) {
  Ok("endpoint", endpoint.text);
  const absl::StatusOr<std::string> snapshot = DescribeNetwork(endpoint.target, flags_.timeout_ms);
  if (!snapshot.ok() && !absl::IsUnavailable(snapshot.status())) {
    Failed("daemon on the network", std::string(snapshot.status().message()),
           "nothing was asked: install Sluice whole. libsluice_remote.so, which talks to the "
           "network, belongs beside libsluice_icd.so or in sluice/ below it, and what it needs "
           "with it; a sandbox must contain it");
    return Skipped("devices", "no daemon to ask");
  }
  if (!snapshot.ok()) {
    const std::string reason(snapshot.status().message());
    const bool token = reason.find("token") != std::string::npos;
    Failed(
        "daemon on the network", reason,
        token ? "set SLUICE_TOKEN_FILE to a file that holds one of the tokens in the token_file of "
                "that daemon's [[network]] entry, or one that a key in its token_key has signed "
                "and that has not expired"
              : "is sluiced running there with a [[network]] entry, does a firewall let it "
                "through, and "
                "do SLUICE_TLS_CA, SLUICE_TLS_CERT, SLUICE_TLS_KEY and SLUICE_TOKEN_FILE fit that "
                "entry?");
    return Skipped("devices", "no daemon to ask");
  }
  Ok("daemon on the network", "the daemon answers");
  CheckDevices("", *snapshot);
}

PlatformList ListPlatforms(int timeout_ms) {
  const HelperEnd end = RunHelper({"list-platforms"}, timeout_ms);
  PlatformList list;
  list.problem = end.problem;
  if (end.hangs) {
    list.problem =
        absl::StrCat("the application's calls did not end in ", timeout_ms, " ms: a driver hangs");
  }
  if (!end.crash.empty()) list.problem = absl::StrCat("a driver crashes: ", end.crash);
  for (absl::string_view line : absl::StrSplit(end.answer, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&line, kPlatformLine)) {
      list.names.emplace_back(line);
    } else if (absl::ConsumePrefix(&line, kNoneLine)) {
      list.driver_says = std::string(line);
    } else if (absl::ConsumePrefix(&line, kContextLine)) {
      list.contexts.emplace_back(line);
    }
  }
  return list;
}

void Examination::CheckPlatforms() {
  constexpr char kName[] = "application's view";
  if (!loader_found_) return Skipped(kName, "there is no loader");
  const PlatformList list = ListPlatforms(kDriversPatience * flags_.timeout_ms);
  std::vector<std::string> ours;
  for (const std::string& name : list.names) {
    if (IsOurs(name)) ours.push_back(name);
  }
  if (!ours.empty()) {
    Ok(kName, absl::StrCat("the loader lists ", absl::StrJoin(ours, ", ")));
    return CheckContexts(list);
  }
  const std::string found =
      list.names.empty() ? "the loader lists no platform at all"
                         : absl::StrCat("the loader lists only ", absl::StrJoin(list.names, ", "));
  const std::string driver =
      list.driver_says.empty() ? "" : absl::StrCat("; Sluice's driver says: ", list.driver_says);
  if (!list.problem.empty()) {
    return Failed(kName, list.problem,
                  "it need not be Sluice's driver: `sluicectl run -- PROGRAM` shows a program no "
                  "other; those that loaders read are named by the .icd files beside Sluice's");
  }
  if (list.names.empty() && driver.empty() && !library_.empty() && LacksSlash()) {
    return Failed(kName, found,
                  "end OCL_ICD_VENDORS with a slash: CUDA's loader puts an .icd file's name right "
                  "behind it");
  }
  Failed(kName, absl::StrCat(found, driver),
         "mend the steps that failed above, and what the driver says; if neither tells, set "
         "SLUICE_LOG=debug and run the application again");
}

// Devices are listed without a session, which the daemon may still refuse.
void Examination::CheckContexts(const PlatformList& list) {
  constexpr char kName[] = "application's context";
  size_t next = 0;
  std::vector<std::string> refused;
  for (const std::string& name : list.names) {
    if (!IsOurs(name)) continue;
    const std::string context =
        next < list.contexts.size() ? list.contexts[next] : list.problem;  // At which it ended.
    ++next;
    if (context != kOpened) refused.push_back(absl::StrCat("on ", name, ": ", context));
  }
  if (refused.empty()) return Ok(kName, "a program can open one on each of Sluice's platforms");
  Failed(kName, absl::StrJoin(refused, "; "),
         "on the daemon's machine, end a session (`sluicectl sessions`), raise [limits], or look "
         "into the daemon's log");
}

}  // namespace

int DoctorCommand(const CommonFlags& flags) {
  // The ICD, in the process that lists the platforms, looks where the other steps looked.
  if (!flags.endpoint.empty()) ::setenv("SLUICE_ENDPOINT", flags.endpoint.c_str(), 1);
  return Examination(flags).Run();
}

absl::Status CheckDriver(const std::string& path) {
  const HelperEnd end = RunHelper({"load-library", path}, kLoadTimeoutMs);
  if (!end.problem.empty()) return absl::InternalError(end.problem);
  if (!end.crash.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is damaged: loading it ends with ", end.crash));
  }
  if (end.hangs) return absl::InvalidArgumentError(absl::StrCat(path, " does not load in 20 s"));
  return end.answer == kLoads ? absl::OkStatus() : absl::InvalidArgumentError(end.answer);
}

}  // namespace sluice::ctl
