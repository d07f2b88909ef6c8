// SPDX-License-Identifier: Apache-2.0
//
// cdi.h: ExamineCdi.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "broker/os/file.h"
#include "deploy/sluicectl/containers/cdi.h"
#include "deploy/sluicectl/containers/client_folder.h"
#include "deploy/sluicectl/containers/elf_file.h"

namespace sluice::ctl {
namespace {

using ParsedJson = nlohmann::json;

constexpr const char* kVersions[] = {"0.3.0", "0.4.0", "0.5.0", "0.6.0",
                                     "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
constexpr char kNewestOfPodman43[] = "0.5.0";

// Edits that not all versions have.
constexpr std::pair<const char*, const char*> kLaterEdits[] = {
    {"intelRdt", "0.7.0"}, {"additionalGids", "0.7.0"}, {"netDevices", "1.1.0"}};

class Examination {
 public:
  std::vector<CdiFinding> Run(const std::string& text);

 private:
  void Wrong(const std::string& field, const std::string& problem) {
    findings_.push_back({field, problem, true});
  }
  void Warn(const std::string& field, const std::string& problem) {
    findings_.push_back({field, problem, false});
  }
  bool IsObject(const ParsedJson& value, const std::string& field);
  void KnownFields(const ParsedJson& object, const std::string& field,
                   std::initializer_list<const char*> names);
  // The text of a field that must be there; "" if it is not, which is said.
  std::string Text(const ParsedJson& object, const std::string& field, const char* name);
  void NeedsVersion(const char* version, const std::string& field);
  void Version(const ParsedJson& document);
  void Kind(const ParsedJson& document);
  void Devices(const ParsedJson& document);
  void Edits(const ParsedJson& edits, const std::string& field);
  void Mounts(const ParsedJson& mounts, const std::string& field);
  void OneMount(const ParsedJson& mount, const std::string& field);
  void OwnEdits(const ParsedJson& edits, const std::string& field);
  void OwnMount(const std::string& host, const std::string& container, const std::string& field);
  void IcdFile();
  std::string HostPathOf(const std::string& container_path) const;

  std::vector<CdiFinding> findings_;
  std::string version_;
  bool ours_ = false;
  struct SeenMount {
    std::string host;
    std::string container;
    std::string field;
  };
  std::vector<SeenMount> mounts_;
};

std::string Join(const std::string& field, const std::string& name) {
  return field.empty() ? name : absl::StrCat(field, ".", name);
}

bool Examination::IsObject(const ParsedJson& value, const std::string& field) {
  if (value.is_object()) return true;
  Wrong(field, absl::StrCat("must be an object, and is ", value.type_name()));
  return false;
}

void Examination::KnownFields(const ParsedJson& object, const std::string& field,
                              std::initializer_list<const char*> names) {
  for (const auto& [name, value] : object.items()) {
    const std::string& written = name;
    if (std::none_of(names.begin(), names.end(), [&](const char* one) { return written == one; }))
      Wrong(Join(field, name),
            "there is no such field, and a runtime refuses the whole file for it");
  }
}

std::string Examination::Text(const ParsedJson& object, const std::string& field,
                              const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) {
    Wrong(Join(field, name), "is missing");
    return "";
  }
  if (!found->is_string() || found->get<std::string>().empty()) {
    Wrong(Join(field, name), "must be a text that is not empty");
    return "";
  }
  return found->get<std::string>();
}

void Examination::NeedsVersion(const char* version, const std::string& field) {
  if (!version_.empty() && IsNewerVersion(version, version_))
    Wrong(field, absl::StrCat("came with version ", version, ", and cdiVersion is ", version_));
}

void Examination::Version(const ParsedJson& document) {
  const std::string version = Text(document, "", "cdiVersion");
  if (version.empty()) return;
  if (std::find(std::begin(kVersions), std::end(kVersions), version) == std::end(kVersions)) {
    return Wrong("cdiVersion",
                 absl::StrCat("\"", version, "\" is none of ", absl::StrJoin(kVersions, ", ")));
  }
  version_ = version;
  if (IsNewerVersion(version, kNewestOfPodman43))
    Warn("cdiVersion", absl::StrCat(version, " is refused by podman 4.3 (Debian 12), which reads ",
                                    kNewestOfPodman43, " and older"));
}

bool IsName(std::string_view name, std::string_view also) {
  return !name.empty() && absl::ascii_isalnum(static_cast<unsigned char>(name.front())) &&
         absl::ascii_isalnum(static_cast<unsigned char>(name.back())) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  also.find(c) != std::string_view::npos;
         });
}

void Examination::Kind(const ParsedJson& document) {
  const std::string kind = Text(document, "", "kind");
  if (kind.empty()) return;
  if (const absl::Status good = CheckCdiKind(kind); !good.ok())
    Wrong("kind", std::string(good.message()));
}

void Examination::Devices(const ParsedJson& document) {
  const auto devices = document.find("devices");
  if (devices == document.end() || !devices->is_array() || devices->empty())
    return Wrong("devices", "must be a list with at least one device");
  std::vector<std::string> names;
  for (size_t i = 0; i < devices->size(); ++i) {
    const std::string field = absl::StrCat("devices[", i, "]");
    const ParsedJson& device = (*devices)[i];
    if (!IsObject(device, field)) continue;
    KnownFields(device, field, {"name", "annotations", "containerEdits"});
    if (device.contains("annotations")) NeedsVersion("0.6.0", field + ".annotations");
    const std::string name = Text(device, field, "name");
    if (!name.empty() && !IsName(name, "-_.:"))
      Wrong(field + ".name",
            absl::StrCat("\"", name,
                         "\" must begin and end with a letter or digit, with -_.: between"));
    if (!name.empty() && std::find(names.begin(), names.end(), name) != names.end())
      Wrong(field + ".name", absl::StrCat("\"", name, "\" is there twice"));
    names.push_back(name);
    if (!device.contains("containerEdits") || device["containerEdits"].empty()) {
      Wrong(field + ".containerEdits",
            "is missing or empty, and runtimes refuse the whole file for such a device");
      continue;
    }
    Edits(device["containerEdits"], field + ".containerEdits");
  }
}

void Examination::Edits(const ParsedJson& edits, const std::string& field) {
  if (!IsObject(edits, field)) return;
  KnownFields(
      edits, field,
      {"env", "deviceNodes", "mounts", "hooks", "additionalGids", "intelRdt", "netDevices"});
  for (const auto& [name, version] : kLaterEdits) {
    if (edits.contains(name)) NeedsVersion(version, Join(field, name));
  }
  if (ours_) OwnEdits(edits, field);
  if (edits.contains("mounts")) Mounts(edits["mounts"], field + ".mounts");
}

// Sluice needs none of these, and each is a way for a file to do more than it says.
void Examination::OwnEdits(const ParsedJson& edits, const std::string& field) {
  for (const char* name : {"env", "deviceNodes", "hooks"}) {
    if (edits.contains(name))
      Warn(Join(field, name), "Sluice's client needs none: what wrote this file?");
  }
}

void Examination::Mounts(const ParsedJson& mounts, const std::string& field) {
  if (!mounts.is_array()) return Wrong(field, "must be a list");
  for (size_t i = 0; i < mounts.size(); ++i) OneMount(mounts[i], absl::StrCat(field, "[", i, "]"));
}

void Examination::OneMount(const ParsedJson& mount, const std::string& field) {
  if (!IsObject(mount, field)) return;
  KnownFields(mount, field, {"hostPath", "containerPath", "type", "options"});
  if (mount.contains("type")) NeedsVersion("0.4.0", field + ".type");
  const std::string host = Text(mount, field, "hostPath");
  const std::string container = Text(mount, field, "containerPath");
  bool paths = true;
  for (const auto& [name, path] :
       {std::pair("hostPath", host), std::pair("containerPath", container)}) {
    if (path.empty() || path[0] == '/') continue;
    Wrong(Join(field, name), absl::StrCat("\"", path, "\" must begin with /"));
    paths = false;
  }
  const auto options = mount.find("options");
  const bool texts =
      options == mount.end() ||
      (options->is_array() && std::all_of(options->begin(), options->end(),
                                          [](const ParsedJson& one) { return one.is_string(); }));
  if (!texts) Wrong(field + ".options", "must be a list of texts");
  if (ours_ && texts &&
      (options == mount.end() ||
       std::find(options->begin(), options->end(), "ro") == options->end()))
    Warn(field + ".options", "has no \"ro\": the container may write there");
  if (paths && ours_ && !host.empty() && !container.empty()) OwnMount(host, container, field);
}

void Examination::OwnMount(const std::string& host, const std::string& container,
                           const std::string& field) {
  mounts_.push_back({host, container, field});
  struct stat info = {};
  if (::stat(host.c_str(), &info) != 0) {
    return Wrong(field + ".hostPath", absl::StrCat(host, ": ", std::strerror(errno),
                                                   ": no container with this device starts"));
  }
  if (const absl::Status folder = CheckSocketFolder(host); !folder.ok())
    Wrong(field + ".hostPath", std::string(folder.message()));
  if (const std::string doubt = container == kClientSocketFolder ? SocketFolderDoubt(host) : "";
      !doubt.empty())
    Warn(field + ".hostPath", doubt);
  const mode_t wanted = S_ISDIR(info.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
  if ((info.st_mode & wanted) != wanted)
    Wrong(field + ".hostPath",
          absl::StrCat(host,
                       " is not open to other users: containers of theirs, and those with user "
                       "namespaces, cannot read it"));
}

// The place on the host of a container's file; "" if no mount brings it.
std::string Examination::HostPathOf(const std::string& container_path) const {
  for (const SeenMount& mount : mounts_) {
    absl::string_view rest = container_path;
    if (!absl::ConsumePrefix(&rest, mount.container)) continue;
    if (rest.empty() || rest[0] == '/') return absl::StrCat(mount.host, rest);
  }
  return "";
}

// The .icd file that the container's loader reads must name a file that the container has.
void Examination::IcdFile() {
  const auto icd = std::find_if(mounts_.begin(), mounts_.end(), [](const SeenMount& mount) {
    return absl::EndsWith(mount.container, ".icd");
  });
  if (icd == mounts_.end())
    return Wrong("containerEdits.mounts",
                 absl::StrCat("none gives a container ", kContainerIcdFile,
                              ": its OpenCL loader would not look at Sluice"));
  const absl::StatusOr<std::string> text = os::ReadNamedFile(icd->host, kMaxIcdBytes);
  if (!text.ok()) return;  // Said already.
  const std::string driver(absl::StripAsciiWhitespace(*text));
  const std::string host = HostPathOf(driver);
  if (host.empty() && !driver.empty() && driver[0] != '/') return;  // Found by the loader's path.
  if (host.empty()) {
    return Wrong(icd->field + ".hostPath",
                 absl::StrCat(icd->host, " names ", driver, ", which no mount gives a container"));
  }
  const absl::StatusOr<ElfFile> elf = ReadElfAt(host);
  if (!elf.ok())
    return Wrong(icd->field + ".hostPath",
                 absl::StrCat(icd->host, " names ", driver, ", which is ", elf.status().message()));
  const std::vector<std::string> more = NeededBesideGlibc(*elf);
  if (!more.empty())
    Warn(icd->field + ".hostPath", absl::StrCat(host, " needs ", absl::StrJoin(more, ", "),
                                                ", which not every container has"));
}

std::vector<CdiFinding> Examination::Run(const std::string& text) {
  ParsedJson document;
  try {
    document = ParsedJson::parse(text);
  } catch (const ParsedJson::parse_error& error) {
    const std::string what = error.what();
    const size_t code = what.find("] ");
    Wrong("", absl::StrCat("no JSON: ", code == std::string::npos ? what : what.substr(code + 2)));
    return findings_;
  }
  if (!IsObject(document, "")) return findings_;
  ours_ = absl::StrContains(text, "sluice");
  KnownFields(document, "", {"cdiVersion", "kind", "annotations", "devices", "containerEdits"});
  Version(document);
  Kind(document);
  if (document.contains("annotations")) NeedsVersion("0.6.0", "annotations");
  Devices(document);
  if (document.contains("containerEdits")) Edits(document["containerEdits"], "containerEdits");
  if (ours_) IcdFile();
  return findings_;
}

}  // namespace

absl::Status CheckCdiKind(const std::string& kind) {
  const size_t slash = kind.find('/');
  const auto is_part = [](std::string_view part) {
    return IsName(part, "-_.") && absl::ascii_isalpha(static_cast<unsigned char>(part.front()));
  };
  if (slash != std::string::npos && is_part(std::string_view(kind).substr(0, slash)) &&
      is_part(std::string_view(kind).substr(slash + 1)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", kind, "\" is not DOMAIN/CLASS, as ", kCdiKind,
      " is: each begins with a letter, ends with a letter or digit, and has -_. between"));
}

std::vector<CdiFinding> ExamineCdi(const std::string& text) { return Examination().Run(text); }

}  // namespace sluice::ctl
