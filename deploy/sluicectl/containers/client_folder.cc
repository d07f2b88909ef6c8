// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/client_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/base/client_files.h"
#include "broker/os/process.h"
#include "deploy/sluicectl/containers/elf_file.h"
#include "deploy/sluicectl/endpoint.h"
#include "proto/status_macros.h"

namespace sluice::ctl {
namespace {

struct Part {
  const char* name;
  bool program;
  const char* without;  // Says what a container cannot do without it.
};

constexpr Part kOptionalParts[] = {
    {"libsluice.so.0", false, "share resources"},
    {"sluice/libsluice_remote.so", false, "use daemons on the network"},
    {"sluice/sluice-network-helper", true,
     "use daemons on the network from a program that has a gRPC of its own"},
    {"sluice/sluice-resource-helper", true, "share resources"},
};

absl::StatusOr<std::string> Folder(const std::string& from) {
  if (!from.empty()) return from;
  const absl::StatusOr<std::string> own = os::OwnExecutablePath();
  if (!own.ok()) return own.status();
  const std::string installed =
      absl::StrCat(own->substr(0, own->rfind('/')), "/../lib/sluice-client");
  std::error_code error;
  if (std::filesystem::exists(installed + "/" + kDriverFile, error))
    return std::filesystem::canonical(installed, error).string();
  ASSIGN_OR_RETURN(const std::string driver, FindIcdLibrary());
  return driver.substr(0, driver.rfind('/'));
}

// Adds what the file needs to what all of them do; the libraries that glibc does not bring.
absl::StatusOr<std::vector<std::string>> TakeNeeds(const ClientFile& file, ClientFiles* all) {
  ASSIGN_OR_RETURN(const ElfFile elf, ReadElfAt(file.path));
  const std::string glibc = NewestGlibcNeeded(elf);
  if (all->glibc.empty() || IsNewerVersion(glibc, all->glibc)) all->glibc = glibc;
  return NeededBesideGlibc(elf);
}

absl::Status ExamineNeeds(ClientFiles* client) {
  client->self_contained = true;
  std::vector<std::string> dependent;
  for (const ClientFile& file : client->files) {
    ASSIGN_OR_RETURN(const std::vector<std::string> more, TakeNeeds(file, client));
    if (more.empty()) continue;
    client->self_contained = false;
    const size_t others = more.size() - 1;
    dependent.push_back(absl::StrCat(
        file.name, " needs ", more[0],
        others == 0 ? "" : absl::StrCat(" and ", others, others == 1 ? " other" : " others")));
  }
  if (dependent.empty()) return absl::OkStatus();
  client->warnings.push_back(absl::StrCat(
      absl::StrJoin(dependent, "; "),
      ". Where these are missing, programs see no platform of Sluice's, and no message. A client "
      "that needs glibc alone is made by deploy/portable/build.sh DIR and taken by --from DIR"));
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> AllClientFileNames() {
  std::vector<std::string> names = {kDriverFile};
  for (const Part& part : kOptionalParts) names.emplace_back(part.name);
  names.emplace_back(kCopyrightFile);
  return names;
}

absl::StatusOr<ClientFiles> FindClientFiles(const std::string& from) {
  ClientFiles client;
  ASSIGN_OR_RETURN(client.folder, Folder(from));
  const std::string driver = absl::StrCat(client.folder, "/", kDriverFile);
  std::error_code error;
  if (!std::filesystem::is_regular_file(driver, error)) {
    return absl::NotFoundError(absl::StrCat(
        client.folder, " has no ", kDriverFile,
        "; --from names a folder that deploy/portable/build.sh or export-client has made"));
  }
  client.files.push_back({kDriverFile, driver, false});
  for (const Part& part : kOptionalParts) {
    const std::string name = part.name;
    const absl::StatusOr<std::string> path =
        FindClientFile(client.folder + "/", name.substr(name.rfind('/') + 1));
    if (path.ok()) {
      client.files.push_back({name, *path, part.program});
    } else {
      client.warnings.push_back(absl::StrCat(name, " is not in ", client.folder,
                                             ": programs there cannot ", part.without));
    }
  }
  RETURN_IF_ERROR(ExamineNeeds(&client));
  const std::string copyright = absl::StrCat(client.folder, "/", kCopyrightFile);
  if (std::filesystem::is_regular_file(copyright, error))
    client.files.push_back({kCopyrightFile, copyright, false});
  return client;
}

}  // namespace sluice::ctl
