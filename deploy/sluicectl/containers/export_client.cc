// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/export_client.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "broker/os/file.h"
#include "deploy/sluicectl/containers/client_folder.h"
#include "deploy/sluicectl/containers/written_file.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/linux/operators_sockets.h"
#include "deploy/sluicectl/output.h"
#include "proto/status_macros.h"

namespace sluice::ctl {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;
constexpr char kFlatpakExtension[] = "org.freedesktop.Platform.GL.sluice";
constexpr char kFlatpakIcd[] = "OpenCL/vendors/sluice.icd";

struct Export {
  ClientFiles client;
  std::vector<std::string> written;  // Names in the folder.
};

std::string Architecture() {
  utsname names = {};
  return ::uname(&names) == 0 ? names.machine : "x86_64";
}

// Files that the folder will have, beside the client's own.
std::vector<std::pair<std::string, std::string>> Texts(const ExportFlags& flags) {
  if (!flags.flatpak) {
    const std::string place = flags.place.empty() ? kContainerClientFolder : flags.place;
    return {{kIcdFile, absl::StrCat(place, "/", kDriverFile, "\n")}};
  }
  // By its bare name: the runtime's loader searches the extension's lib/, wherever that lies.
  return {{kFlatpakIcd, absl::StrCat(kDriverFile, "\n")},
          {"metadata", absl::StrCat("[Runtime]\nname=", kFlatpakExtension, "\n")}};
}

std::string NameInFolder(const ExportFlags& flags, const std::string& name) {
  return flags.flatpak ? absl::StrCat("lib/", name) : name;
}

// Names in the folder of all that an export with these flags may have.
std::set<std::string> AllNames(const ExportFlags& flags) {
  std::set<std::string> names;
  for (const auto& [name, text] : Texts(flags)) names.insert(name);
  for (const std::string& name : AllClientFileNames()) names.insert(NameInFolder(flags, name));
  return names;
}

// True if it is one of the names, or a folder of one.
bool IsAmong(const std::set<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& one) {
    return one == name || absl::StartsWith(one, name + "/");
  });
}

absl::Status OtherLayout(const ExportFlags& flags) {
  return absl::FailedPreconditionError(absl::StrCat(
      flags.folder, " is an earlier export ", flags.flatpak ? "without" : "with",
      " --flatpak, which has another layout: name another folder, or remove this one first"));
}

// Only an earlier export is written over: nobody means to fill /usr/lib. An export makes no link,
// and through one of somebody else's it would write elsewhere.
absl::Status CheckFolder(const ExportFlags& flags) {
  const std::string& folder = flags.folder;
  const std::set<std::string> names = AllNames(flags);
  ExportFlags other = flags;
  other.flatpak = !flags.flatpak;
  const std::set<std::string> other_names = AllNames(other);
  bool other_layout = false;
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return absl::OkStatus();
  auto entry = std::filesystem::recursive_directory_iterator(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  for (; entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(folder).string();
    const bool ours = IsAmong(names, name);
    if (entry->is_symlink() || (!ours && !IsAmong(other_names, name))) {
      return absl::FailedPreconditionError(
          absl::StrCat(folder, " has ", name, entry->is_symlink() ? ", a link" : "",
                       ", which no export has put there: name an empty or new folder"));
    }
    other_layout = other_layout || !ours;
  }
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  return other_layout ? OtherLayout(flags) : absl::OkStatus();
}

absl::Status WriteInto(const std::string& folder, const std::string& name, std::string_view bytes,
                       mode_t mode, Export* done) {
  const std::string path = absl::StrCat(folder, "/", name);
  RETURN_IF_ERROR(MakeFolder(path.substr(0, path.rfind('/'))));
  RETURN_IF_ERROR(WriteByRename(path, bytes, mode));
  done->written.push_back(name);
  return absl::OkStatus();
}

absl::StatusOr<Export> ExportClient(const ExportFlags& flags) {
  Export done;
  ASSIGN_OR_RETURN(done.client, FindClientFiles(flags.from));
  RETURN_IF_ERROR(CheckFolder(flags));
  std::error_code error;
  if (std::filesystem::equivalent(flags.folder, done.client.folder, error))
    return absl::FailedPreconditionError(
        absl::StrCat(flags.folder, " is the client's own folder: name another, or mount this one"));
  for (const ClientFile& file : done.client.files) {
    ASSIGN_OR_RETURN(const std::string bytes, os::ReadNamedFile(file.path, kMaxFileBytes));
    RETURN_IF_ERROR(WriteInto(flags.folder, NameInFolder(flags, file.name), bytes,
                              file.program ? 0755 : 0644, &done));
  }
  // Last: what names the driver is there only when the driver is.
  for (const auto& [name, text] : Texts(flags))
    RETURN_IF_ERROR(WriteInto(flags.folder, name, text, 0644, &done));
  // A file that an earlier export had, and this one has not, is of another version.
  for (const std::string& name : AllNames(flags)) {
    if (std::find(done.written.begin(), done.written.end(), name) == done.written.end())
      std::filesystem::remove(absl::StrCat(flags.folder, "/", name), error);
  }
  return done;
}

// As one word of a shell's command.
std::string Quoted(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("/._-+,:=@%", c);
  });
  return plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// The next thing to do with the folder.
std::string NextStep(const ExportFlags& flags) {
  if (flags.flatpak) {
    return absl::StrCat(
        "Flatpak uses it where it lies in ~/.local/share/flatpak/extension/"
        "org.freedesktop.Platform.GL.host/",
        Architecture(),
        "/1.4\nAn application reaches the daemon after: flatpak override --user --filesystem=",
        kClientSocketFolder, " APPLICATION\n");
  }
  if (!flags.place.empty()) {
    return absl::StrCat("OpenCL's loaders find it by OCL_ICD_VENDORS=", Quoted(flags.place + "/"),
                        ", or by a copy of ", kIcdFile, " in /etc/OpenCL/vendors\n");
  }
  if (absl::StrContains(flags.folder, ':')) {
    return absl::StrCat("podman run -v and the like end a path at a colon: give ",
                        Quoted(flags.folder), " a name without one\n");
  }
  return absl::StrCat(
      "podman run -v ", Quoted(absl::StrCat(flags.folder, ":", kContainerClientFolder, ":ro")),
      " -v ", Quoted(absl::StrCat(flags.folder, "/", kIcdFile, ":", kContainerIcdFile, ":ro")),
      " -v ", kClientSocketFolder, ":", kClientSocketFolder,
      ":ro IMAGE ...\nor with `sluicectl cdi generate`: podman run --device sluice.dev/gpu=all "
      "IMAGE ...\n");
}

void Print(const ExportFlags& flags, const Export& done) {
  if (flags.json) {
    const nlohmann::json answer = {{"folder", flags.folder},
                                   {"from", done.client.folder},
                                   {"files", done.written},
                                   {"glibc", done.client.glibc},
                                   {"self_contained", done.client.self_contained},
                                   {"warnings", done.client.warnings}};
    PrintJson(answer);
    return;
  }
  std::printf("%s: %zu files from %s; they need glibc %s or later\n%s", flags.folder.c_str(),
              done.written.size(), done.client.folder.c_str(), done.client.glibc.c_str(),
              NextStep(flags).c_str());
  for (const std::string& warning : done.client.warnings)
    std::fprintf(stderr, "sluicectl: warning: %s\n", warning.c_str());
}

// Without "/" at the end and the like.
std::string Normal(const std::filesystem::path& path) {
  std::string normal = path.lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

}  // namespace

absl::Status CheckPlace(const std::string& place) {
  if (!absl::StartsWith(place, "/"))
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", place, "\" is no absolute path: loaders look for the driver there, from any folder"));
  if (std::any_of(place.begin(), place.end(),
                  [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }))
    return absl::InvalidArgumentError(
        "has a line's end or another control character, and an .icd file is one line");
  return absl::OkStatus();
}

int ExportClientCommand(const ExportFlags& flags) {
  ExportFlags used = flags;
  std::error_code error;
  used.folder = Normal(std::filesystem::absolute(flags.folder, error));
  if (!used.place.empty()) used.place = Normal(used.place);
  absl::StatusOr<Export> done = ExportClient(used);
  if (done.ok()) {
    // The next step names this folder, which containers are to mount.
    for (const std::string& socket : OperatorsSocketsIn(kClientSocketFolder)) {
      done->client.warnings.push_back(
          absl::StrCat(kClientSocketFolder, " holds ", socket,
                       ": root in a container that has this folder administers the daemon. Give "
                       "that socket another folder, by the daemon's configuration"));
    }
    Print(used, *done);
    return kExitOk;
  }
  const std::string message = absl::StrCat("export-client: ", done.status().message());
  if (flags.json) {
    PrintJson(nlohmann::json({{"error", message}}));
  } else {
    std::fprintf(stderr, "sluicectl: %s\n", message.c_str());
  }
  return kExitFailed;
}

}  // namespace sluice::ctl
