// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/cdi.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "deploy/sluicectl/containers/client_folder.h"
#include "deploy/sluicectl/linux/operators_sockets.h"

namespace sluice::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kVersion[] = "0.5.0";
constexpr char kSocketName[] = "broker.sock";
constexpr const char* kRuntimeFolders[] = {"/etc/cdi", "/var/run/cdi"};

Json Mount(const std::string& host, const std::string& container) {
  return {{"hostPath", host},
          {"containerPath", container},
          {"options", {"ro", "nosuid", "nodev", "bind"}}};
}

}  // namespace

Json MakeCdi(const CdiOptions& options) {
  // A device whose own edits are empty makes the file invalid: the socket's folder is its own, the
  // client is everyone's.
  const Json device = {
      {"name", "all"},
      {"containerEdits",
       {{"mounts", Json::array({Mount(options.socket_folder, kClientSocketFolder)})}}}};
  return {{"cdiVersion", kVersion},
          {"kind", options.kind},
          {"devices", Json::array({device})},
          {"containerEdits",
           {{"mounts", Json::array({Mount(options.client_folder, kContainerClientFolder),
                                    Mount(absl::StrCat(options.client_folder, "/", kIcdFile),
                                          kContainerIcdFile)})}}}};
}

absl::Status CheckSocketFolder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path socket = std::filesystem::path(folder) / kSocketName;
  if (std::filesystem::is_symlink(socket, error)) {
    const std::filesystem::path named = std::filesystem::weakly_canonical(socket, error);
    return absl::FailedPreconditionError(
        absl::StrCat(socket.string(),
                     " is a link, which leads nowhere in a container: give the folder of the "
                     "socket itself (",
                     named.parent_path().string(), ")"));
  }
  const std::vector<std::string> found = OperatorsSocketsIn(folder);
  if (found.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " holds ", absl::StrJoin(found, ", "),
      ": root in a container that has this folder administers the daemon. Give the folder of the "
      "clients' socket alone (",
      kClientSocketFolder, ")"));
}

std::string SocketFolderDoubt(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return absl::StrCat(folder, " is not there yet; no container with this device starts before");
  if (std::filesystem::is_socket(std::filesystem::path(folder) / kSocketName, error)) return "";
  return absl::StrCat(folder, " holds no clients' socket (", kSocketName,
                      "): programs in a container find no daemon until it does");
}

std::string CdiKindOf(const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("kind") || !document["kind"].is_string())
    return "";
  return document["kind"].get<std::string>();
}

std::vector<std::string> CdiFiles(const std::vector<std::string>& folders) {
  std::vector<std::string> files;
  const std::vector<std::string> searched =
      folders.empty()
          ? std::vector<std::string>(std::begin(kRuntimeFolders), std::end(kRuntimeFolders))
          : folders;
  for (const std::string& folder : searched) {
    std::vector<std::string> here;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".json" || extension == ".yaml") here.push_back(entry.path().string());
    }
    std::sort(here.begin(), here.end());
    files.insert(files.end(), here.begin(), here.end());
  }
  return files;
}

}  // namespace sluice::ctl
