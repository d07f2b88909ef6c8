// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/container_doctor.h"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "broker/os/process.h"
#include "deploy/sluicectl/broker_client.h"
#include "deploy/sluicectl/containers/client_folder.h"
#include "deploy/sluicectl/containers/elf_file.h"
#include "deploy/sluicectl/containers/other_root.h"
#include "deploy/sluicectl/doctor_helper.h"
#include "deploy/sluicectl/doctor_report.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/linux/operators_sockets.h"

namespace sluice::ctl {
namespace {

constexpr char kVendors[] = "/etc/OpenCL/vendors";
constexpr char kUnixScheme[] = "unix:";

class ContainerExamination {
 public:
  ContainerExamination(const CommonFlags& flags, OtherRoot root)
      : flags_(flags), root_(std::move(root)) {}

  int Run() {
    CheckLibc();
    CheckLoader();
    CheckIcdFile();
    CheckDriver();
    CheckSocket();
    CheckOperators();
    return steps_.Report(
        flags_.json, "A program in this container can see Sluice's devices.\n",
        "A program in this container does not see Sluice's devices, or sees too much.\n");
  }

 private:
  void CheckLibc();
  void CheckLoader();
  void CheckIcdFile();
  void CheckDriver();
  void CheckSocket();
  void CheckOperators();
  void FindOperators(const std::string& folder, int depth, std::vector<std::string>* seen);
  void TrySocket(const std::string& path);
  std::vector<std::string> LibraryFolders() const;
  std::string FindLibrary(const std::string& name) const;
  std::optional<std::string> MuslLoader() const;

  const CommonFlags& flags_;
  const OtherRoot root_;
  Steps steps_;
  std::string glibc_;   // "2.31"
  std::string driver_;  // As the .icd file names it.
  std::string socket_;  // The path of the clients' socket.
  int entries_ = 0;     // That FindOperators has looked at.
};

std::string Machine() {
  utsname names = {};
  return ::uname(&names) == 0 ? names.machine : "x86_64";
}

// Where a loader looks, as far as can be said without its cache.
std::vector<std::string> ContainerExamination::LibraryFolders() const {
  std::vector<std::string> folders =
      absl::StrSplit(root_.Variable("LD_LIBRARY_PATH"), ':', absl::SkipEmpty());
  const std::string multiarch = absl::StrCat(Machine(), "-linux-gnu");
  for (const char* above : {"/usr/local/lib", "/lib", "/usr/lib"}) {
    folders.push_back(absl::StrCat(above, "/", multiarch));
    folders.emplace_back(above);
  }
  folders.insert(folders.end(), {"/lib64", "/usr/lib64", "/usr/local/lib64"});
  return folders;
}

std::string ContainerExamination::FindLibrary(const std::string& name) const {
  for (const std::string& folder : LibraryFolders()) {
    std::string path = absl::StrCat(folder, "/", name);
    if (root_.Has(path)) return path;
  }
  return "";
}

// The loader of musl, if that is what the program or the image has.
std::optional<std::string> ContainerExamination::MuslLoader() const {
  const absl::StatusOr<os::UniqueFd> program = root_.Program();
  if (program.ok()) {
    const absl::StatusOr<ElfFile> elf = ReadElf(program->get());
    if (elf.ok() && absl::StrContains(elf->interpreter, "ld-musl")) return elf->interpreter;
    if (elf.ok() && !elf->interpreter.empty()) return std::nullopt;
  }
  if (!FindLibrary("libc.so.6").empty()) return std::nullopt;
  for (const std::string& name : root_.List("/lib")) {
    if (absl::StartsWith(name, "ld-musl-")) return "/lib/" + name;
  }
  return std::nullopt;
}

void ContainerExamination::CheckLibc() {
  constexpr char kName[] = "C library";
  if (const std::optional<std::string> musl = MuslLoader(); musl.has_value()) {
    return steps_.Failed(
        kName, absl::StrCat("musl (", *musl, "): a driver for glibc does not load there"),
        "use an image with glibc, of Debian, Ubuntu or Fedora say; Alpine has musl");
  }
  const std::string path = FindLibrary("libc.so.6");
  if (path.empty())
    return steps_.Failed(kName, "there is no libc.so.6",
                         "use an image with glibc: the driver needs it, a static program has none");
  const absl::StatusOr<os::UniqueFd> file = root_.OpenFile(path);
  const absl::StatusOr<ElfFile> elf = file.ok() ? ReadElf(file->get()) : file.status();
  if (!elf.ok())
    return steps_.Failed(kName, absl::StrCat(path, ": ", elf.status().message()),
                         "reinstall the image's libc");
  glibc_ = NewestGlibcDefined(*elf);
  steps_.Ok(kName, absl::StrCat("glibc ", glibc_));
}

void ContainerExamination::CheckLoader() {
  const std::string path = FindLibrary(kLoader);
  if (!path.empty()) return steps_.Ok("OpenCL loader", path);
  steps_.Failed("OpenCL loader",
                absl::StrCat(kLoader, " is in none of ", absl::StrJoin(LibraryFolders(), ", ")),
                "install it in the image: ocl-icd-libopencl1 (Debian, Ubuntu), ocl-icd (Fedora)");
}

void ContainerExamination::CheckIcdFile() {
  constexpr char kName[] = "ICD file";
  const std::string chosen = root_.Variable("OCL_ICD_VENDORS");
  const std::string place = chosen.empty() ? kVendors : chosen;
  std::vector<std::string> files;
  if (absl::EndsWith(place, ".icd")) {
    files.push_back(place);
  } else {
    for (const std::string& name : root_.List(place)) {
      if (absl::EndsWith(name, ".icd")) files.push_back(absl::StrCat(place, "/", name));
    }
  }
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = root_.ReadFile(file, kMaxIcdBytes);
    if (!text.ok()) continue;
    const std::string line = text->substr(0, text->find('\n'));
    if (!absl::StrContains(line, "sluice")) continue;
    driver_ = line;
    return steps_.Ok(kName, absl::StrCat(file, " names ", driver_));
  }
  steps_.Failed(kName, absl::StrCat("no .icd file in ", place, " names libsluice_icd.so"),
                chosen.empty()
                    ? absl::StrCat("mount the client's ", kIcdFile, " at ", kContainerIcdFile,
                                   ", or use --device sluice.dev/gpu=all")
                    : "OCL_ICD_VENDORS is set in the container: unset it, or put "
                      "sluice.icd there");
}

void ContainerExamination::CheckDriver() {
  constexpr char kName[] = "ICD library";
  if (driver_.empty()) return steps_.Skipped(kName, "no .icd file names it");
  const bool absolute = absl::StartsWith(driver_, "/");
  const std::string path = absolute ? driver_ : FindLibrary(driver_);
  const absl::StatusOr<os::UniqueFd> file =
      path.empty() ? absl::NotFoundError("in no folder of libraries") : root_.OpenFile(path);
  if (!file.ok()) {
    return steps_.Failed(
        kName, absl::StrCat("cannot open ", driver_, ": ", file.status().message()),
        absl::StrCat("mount the folder that `sluicectl export-client` has made at ",
                     kContainerClientFolder));
  }
  const absl::StatusOr<ElfFile> elf = ReadElf(file->get());
  if (!elf.ok())
    return steps_.Failed(kName, absl::StrCat(path, ": ", elf.status().message()),
                         "export the client again: sluicectl export-client");
  std::vector<std::string> missing;
  for (const std::string& name : elf->needed) {
    const bool loader = absl::StartsWith(name, "ld-linux");  // It runs already.
    if (!loader && FindLibrary(name).empty()) missing.push_back(name);
  }
  if (!missing.empty()) {
    return steps_.Failed(
        kName, absl::StrCat(path, " does not load: ", absl::StrJoin(missing, ", "), " missing"),
        "export a client that needs glibc alone (deploy/portable/build.sh makes one), or install "
        "these in the image");
  }
  const std::string needed = NewestGlibcNeeded(*elf);
  if (!glibc_.empty() && IsNewerVersion(needed, glibc_)) {
    return steps_.Failed(
        kName,
        absl::StrCat(path, " does not load: it needs glibc ", needed, ", and the container has ",
                     glibc_),
        "export a client that was built for an older glibc (deploy/portable/build.sh makes one), "
        "or use a newer image");
  }
  steps_.Ok(kName, absl::StrCat(path, " has all that it needs"));
}

void ContainerExamination::CheckSocket() {
  constexpr char kName[] = "daemon's socket";
  std::vector<std::string> paths;
  const std::string endpoints = root_.Variable("SLUICE_ENDPOINT");
  for (absl::string_view endpoint : absl::StrSplit(endpoints, ',', absl::SkipWhitespace())) {
    endpoint = absl::StripAsciiWhitespace(endpoint);
    if (absl::ConsumePrefix(&endpoint, kUnixScheme)) paths.emplace_back(endpoint);
  }
  if (!endpoints.empty() && paths.empty())
    return steps_.Skipped(kName, absl::StrCat("SLUICE_ENDPOINT names the network: ", endpoints));
  if (paths.empty()) {
    const std::string runtime = root_.Variable("XDG_RUNTIME_DIR");
    if (!runtime.empty()) paths.push_back(absl::StrCat(runtime, "/sluice/clients/broker.sock"));
    paths.push_back(absl::StrCat(kClientSocketFolder, "/broker.sock"));
    paths.emplace_back("/run/sluice/broker.sock");  // Of a client of 0.1 and older.
  }
  for (const std::string& path : paths) {
    if (root_.Has(path)) return TrySocket(path);
  }
  steps_.Failed(kName, absl::StrCat(absl::StrJoin(paths, ", "), ": the container has none of it"),
                absl::StrCat("mount the host's folder ", kClientSocketFolder,
                             " at the same place, or use --device sluice.dev/gpu=all"));
}

void ContainerExamination::TrySocket(const std::string& path) {
  constexpr char kName[] = "daemon's socket";
  socket_ = path;
  const absl::StatusOr<os::UniqueFd> found = root_.Find(path);
  const absl::StatusOr<Greeting> greeting =
      found.ok() ? Greet(absl::StrCat("/proc/self/fd/", found->get()), flags_.timeout_ms)
                 : found.status();
  if (greeting.ok() && greeting->problem.empty())
    return steps_.Ok(kName, absl::StrCat(path, ": the daemon answers"));
  if (greeting.ok())
    return steps_.Failed(kName, absl::StrCat("the daemon has no devices: ", greeting->problem),
                         "run `sluicectl doctor` outside of the container");
  steps_.Failed(kName, absl::StrCat(path, ": ", greeting.status().message()),
                "start the daemon. If it runs, the socket itself was mounted, and is that of an "
                "earlier daemon: mount its folder");
}

// Of all that is below a folder, some levels deep.
void ContainerExamination::FindOperators(const std::string& folder, int depth,
                                         std::vector<std::string>* seen) {
  constexpr int kDeepest = 3;
  constexpr int kMostEntries = 512;  // The container may have made any number.
  for (const std::string& name : root_.List(folder)) {
    if (name == "." || name == "..") continue;
    if (++entries_ > kMostEntries) return;
    std::string path = absl::StrCat(folder, "/", name);
    const absl::StatusOr<os::UniqueFd> found = root_.Find(path);
    struct stat info = {};
    if (!found.ok() || ::fstat(found->get(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      if (depth < kDeepest) FindOperators(path, depth + 1, seen);
    } else if (path != socket_ && S_ISSOCK(info.st_mode) &&
               IsOperatorsSocket(absl::StrCat("/proc/self/fd/", found->get()), name) &&
               std::find(seen->begin(), seen->end(), path) == seen->end()) {
      seen->push_back(std::move(path));
    }
  }
}

void ContainerExamination::CheckOperators() {
  constexpr char kName[] = "operators' sockets";
  if (root_.IsOurs()) return steps_.Skipped(kName, "the process sees this machine's own files");
  std::vector<std::string> seen;
  std::vector<std::string> folders = {"/run/sluice-admin", "/run/sluice"};
  if (!socket_.empty()) folders.push_back(socket_.substr(0, socket_.rfind('/')));
  for (const std::string& folder : folders) FindOperators(folder, 0, &seen);
  if (seen.empty()) return steps_.Ok(kName, "the container has none");
  steps_.Failed(
      kName,
      absl::StrCat(absl::StrJoin(seen, ", "),
                   ": who is root in the container administers the daemon, or watches it"),
      absl::StrCat("mount ", kClientSocketFolder, " alone"));
}

}  // namespace

int ContainerDoctorCommand(const CommonFlags& flags, pid_t pid) {
  absl::StatusOr<OtherRoot> root = OtherRoot::Open(pid);
  if (root.ok()) return ContainerExamination(flags, *std::move(root)).Run();
  Steps steps;
  steps.Failed(
      "container", std::string(root.status().message()),
      absl::IsNotFound(root.status())
          ? "name a process that runs in it: podman inspect -f '{{.State.Pid}}' NAME"
      : os::IsPrivileged()
          ? "this process may not look into that one: run sluicectl outside of any container, "
            "with CAP_SYS_PTRACE"
          : "run this as root, or as the user whose container it is");
  return steps.Report(flags.json, "", "The container cannot be examined.\n");
}

}  // namespace sluice::ctl
