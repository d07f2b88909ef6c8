// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/os/file.h"
#include "broker/os/process.h"
#include "deploy/sluicectl/containers/cdi.h"
#include "deploy/sluicectl/containers/client_folder.h"
#include "deploy/sluicectl/containers/commands.h"
#include "deploy/sluicectl/containers/written_file.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/output.h"
#include "proto/status_macros.h"

namespace sluice::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxCdiBytes = size_t{4} << 20;

int Refuse(const CdiFlags& flags, const std::string& command, const absl::Status& status) {
  const std::string message = absl::StrCat("cdi ", command, ": ", status.message());
  if (flags.json) {
    Print(JsonText(Json({{"error", message}})));
  } else {
    std::fprintf(stderr, "sluicectl: %s\n", message.c_str());
  }
  return kExitFailed;
}

absl::StatusOr<std::string> AbsoluteFolder(const std::string& folder) {
  std::error_code error;
  std::string path = std::filesystem::absolute(folder, error).lexically_normal().string();
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The folder that runtimes are to mount: one that export-client has made, for this place.
absl::StatusOr<std::string> ClientFolder(const std::string& flag) {
  std::string folder = flag;
  if (folder.empty()) {
    ASSIGN_OR_RETURN(const std::string own, os::OwnExecutablePath());
    folder = own.substr(0, own.rfind('/')) + "/../lib/sluice-client";
  }
  ASSIGN_OR_RETURN(folder, AbsoluteFolder(folder));
  const std::string icd = absl::StrCat(folder, "/", kIcdFile);
  const absl::StatusOr<std::string> text = os::ReadNamedFile(icd, kMaxCdiBytes);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(
        text.status().message(),
        "; make the folder with `sluicectl export-client DIR` and name it: --client DIR"));
  }
  const std::string named = absl::StrCat(kContainerClientFolder, "/", kDriverFile);
  if (text->substr(0, text->find('\n')) != named) {
    return absl::FailedPreconditionError(absl::StrCat(
        icd, " does not name ", named,
        ", where containers will have the driver: export without --place and --flatpak"));
  }
  return folder;
}

absl::StatusOr<CdiOptions> Options(const CdiFlags& flags) {
  CdiOptions options;
  if (!flags.kind.empty()) options.kind = flags.kind;
  ASSIGN_OR_RETURN(options.client_folder, ClientFolder(flags.client_folder));
  ASSIGN_OR_RETURN(
      options.socket_folder,
      AbsoluteFolder(flags.socket_folder.empty() ? kClientSocketFolder : flags.socket_folder));
  RETURN_IF_ERROR(CheckSocketFolder(options.socket_folder));
  return options;
}

struct Device {
  std::string file;
  std::string name;  // "sluice.dev/gpu=all"
};

std::vector<Device> DevicesOf(const std::string& file, const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  std::vector<Device> devices;
  if (!document.is_object() || !document.contains("devices")) return devices;
  for (const nlohmann::json& device : document["devices"]) {
    if (device.is_object() && device.contains("name") && device["name"].is_string())
      devices.push_back(
          {file, absl::StrCat(CdiKindOf(text), "=", device["name"].get<std::string>())});
  }
  return devices;
}

// True if this file, of a folder that others share, is ours.
bool IsOfSluice(const std::string& text) { return absl::StrContains(text, "sluice"); }

bool IsYaml(const std::string& file) { return absl::EndsWith(file, ".yaml"); }

struct Verdict {
  std::string file;
  std::vector<CdiFinding> findings;
  std::vector<Device> devices;
};

std::filesystem::path FolderOf(const std::string& file) {
  std::error_code error;
  return std::filesystem::weakly_canonical(file, error).parent_path();
}

// A runtime refuses a device that two files of one folder have; of two folders the later one's
// counts.
void FindConflicts(std::vector<Verdict>* verdicts) {
  for (Verdict& verdict : *verdicts) {
    for (const Verdict& other : *verdicts) {
      if (other.file == verdict.file || FolderOf(other.file) != FolderOf(verdict.file)) continue;
      for (const Device& device : verdict.devices) {
        if (std::none_of(other.devices.begin(), other.devices.end(),
                         [&](const Device& one) { return one.name == device.name; }))
          continue;
        verdict.findings.push_back(
            {"devices",
             absl::StrCat(device.name, " is in ", other.file,
                          ", too, and runtimes refuse a device of two files: remove one"),
             true});
      }
    }
  }
}

// The same, of a file that is about to be written or was.
std::string ConflictOf(const std::string& file, const std::string& text) {
  const std::vector<Device> devices = DevicesOf(file, text);
  for (const std::string& other : CdiFiles({FolderOf(file).string()})) {
    const absl::StatusOr<std::string> there = os::ReadNamedFile(other, kMaxCdiBytes);
    std::error_code error;
    if (!there.ok() || std::filesystem::equivalent(other, file, error)) continue;
    for (const Device& device : DevicesOf(other, *there)) {
      if (std::any_of(devices.begin(), devices.end(),
                      [&](const Device& one) { return one.name == device.name; }))
        return absl::StrCat(other, " has ", device.name,
                            ", too, and runtimes refuse a device of two files: remove one");
    }
  }
  return "";
}

std::vector<Verdict> Examine(const CdiFlags& flags) {
  const bool named = !flags.files.empty();
  std::vector<Verdict> verdicts;
  for (const std::string& file : named ? flags.files : CdiFiles(flags.folders)) {
    const absl::StatusOr<std::string> text = os::ReadNamedFile(file, kMaxCdiBytes);
    if (!text.ok()) {
      if (named) verdicts.push_back({file, {{"", std::string(text.status().message()), true}}, {}});
      continue;
    }
    if (!named && !IsOfSluice(*text)) continue;
    Verdict verdict{file, {}, DevicesOf(file, *text)};
    if (!IsYaml(file) || absl::StartsWith(*text, "{")) {
      verdict.findings = ExamineCdi(*text);
    } else {
      verdict.findings.push_back(
          {"", "was not examined: it is YAML, and sluicectl reads JSON, which it writes", true});
    }
    std::error_code error;
    const auto mode = std::filesystem::status(file, error).permissions();
    if (!error && (mode & std::filesystem::perms::others_read) == std::filesystem::perms::none)
      verdict.findings.push_back(
          {"", "other users cannot read it: chmod 0644, or rootless runtimes do not see it", true});
    verdicts.push_back(std::move(verdict));
  }
  FindConflicts(&verdicts);
  return verdicts;
}

int PrintVerdicts(const CdiFlags& flags, const std::vector<Verdict>& verdicts) {
  bool good = true;
  Json files = Json::array();
  for (const Verdict& verdict : verdicts) {
    Json list = Json::array();
    for (const CdiFinding& finding : verdict.findings) {
      good = good && !finding.is_error;
      const char* level = finding.is_error ? "error" : "warning";
      list.push_back({{"level", level}, {"field", finding.field}, {"problem", finding.problem}});
      if (flags.json) continue;
      std::printf("%s: %s%s%s: %s\n", verdict.file.c_str(), finding.field.c_str(),
                  finding.field.empty() ? "" : ": ", level, finding.problem.c_str());
    }
    if (!flags.json && verdict.findings.empty()) std::printf("%s: valid\n", verdict.file.c_str());
    files.push_back({{"file", verdict.file}, {"findings", list}});
  }
  if (flags.json) Print(JsonText(Json({{"valid", good}, {"files", files}})));
  return good ? kExitOk : kExitFailed;
}

absl::Status CheckFolders(const CdiFlags& flags) {
  for (const std::string& folder : flags.folders) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) continue;
    return absl::NotFoundError(absl::StrCat(
        "--folder ", folder, ": ", error ? error.message() : std::string("it is no folder")));
  }
  return absl::OkStatus();
}

absl::Status NoFile(const CdiFlags& flags) {
  return absl::NotFoundError(absl::StrCat(
      "no file of Sluice's in ", flags.folders.empty() ? "/etc/cdi or /var/run/cdi" : "that folder",
      "; make one: sluicectl cdi generate --output /etc/cdi/sluice.json"));
}

}  // namespace

int CdiGenerateCommand(const CdiFlags& flags) {
  const absl::StatusOr<CdiOptions> options = Options(flags);
  if (!options.ok()) return Refuse(flags, "generate", options.status());
  const std::string text = JsonText(MakeCdi(*options));
  if (flags.output.empty()) {
    Print(text);
    return kExitOk;
  }
  if (!absl::EndsWith(flags.output, ".json") && !IsYaml(flags.output)) {
    return Refuse(flags, "generate",
                  absl::InvalidArgumentError(absl::StrCat(
                      flags.output, ": runtimes read only files that end in .json or .yaml")));
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(flags.output, error).parent_path();
  absl::Status written = MakeFolder(folder.string());
  if (written.ok()) written = WriteByRename(flags.output, text, 0644);
  if (!written.ok()) return Refuse(flags, "generate", written);
  if (flags.json) Print(JsonText(Json({{"output", flags.output}})));
  if (const std::string conflict = ConflictOf(flags.output, text); !conflict.empty())
    std::fprintf(stderr, "sluicectl: warning: %s\n", conflict.c_str());
  if (const std::string doubt = SocketFolderDoubt(options->socket_folder); !doubt.empty())
    std::fprintf(stderr, "sluicectl: warning: %s\n", doubt.c_str());
  return kExitOk;
}

int CdiListCommand(const CdiFlags& flags) {
  if (const absl::Status there = CheckFolders(flags); !there.ok())
    return Refuse(flags, "list", there);
  std::vector<Device> devices;
  for (const std::string& file : CdiFiles(flags.folders)) {
    const absl::StatusOr<std::string> text = os::ReadNamedFile(file, kMaxCdiBytes);
    if (!text.ok() || !IsOfSluice(*text)) continue;
    const std::vector<Device> more = DevicesOf(file, *text);
    devices.insert(devices.end(), more.begin(), more.end());
  }
  if (flags.json) {
    Json list = Json::array();
    for (const Device& device : devices)
      list.push_back({{"device", device.name}, {"file", device.file}});
    Print(JsonText(Json({{"devices", list}})));
    return devices.empty() ? kExitFailed : kExitOk;
  }
  if (devices.empty()) return Refuse(flags, "list", NoFile(flags));
  for (const Device& device : devices)
    std::printf("%s\t%s\n", device.name.c_str(), device.file.c_str());
  return kExitOk;
}

int CdiValidateCommand(const CdiFlags& flags) {
  if (const absl::Status there = CheckFolders(flags); !there.ok())
    return Refuse(flags, "validate", there);
  const std::vector<Verdict> verdicts = Examine(flags);
  if (verdicts.empty()) return Refuse(flags, "validate", NoFile(flags));
  return PrintVerdicts(flags, verdicts);
}

}  // namespace sluice::ctl
