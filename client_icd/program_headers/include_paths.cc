// SPDX-License-Identifier: Apache-2.0
#include "client_icd/program_headers/include_paths.h"

#include <algorithm>

#include "broker/os/this_process.h"

namespace sluice::client {
namespace {

constexpr int kMostLinks = 40;  // In one path: Linux' own limit.

// The root's text when parts are put behind it.
std::string WithoutRoot(const std::string& folder) { return folder == "/" ? "" : folder; }

}  // namespace

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::optional<IncludePaths::Place> IncludePaths::Find(std::string_view path,
                                                      const std::string& base) {
  Place place{base, base, base};
  links_ = 0;
  if (path.empty() || (path.front() != '/' && base.empty()) || !Walk(path, &place)) return {};
  return place;
}

std::string IncludePaths::Folder(std::string_view path, const std::string& base) {
  Place place{base, base, base};
  links_ = 0;
  if (path.empty() || (path.front() != '/' && base.empty())) return "";
  Walk(path, &place);
  return place.target;
}

// Goes on from place->target. False where it cannot go on; `place` is what it could not go past.
bool IncludePaths::Walk(std::string_view path, Place* place) {
  if (path.front() == '/') *place = {"/", "/", "/"};
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    const std::string folder = place->target;
    if (part == "..") {
      if (!os::LookAtThisHost(folder).is_folder) return false;
      AddStep(folder, "");
      place->path = place->target = DirectoryOf(folder);
      place->spelled.clear();
      continue;
    }
    if (!place->spelled.empty())
      place->spelled = WithoutRoot(place->spelled).append("/").append(part);
    place->path = place->target = WithoutRoot(folder).append("/").append(part);
    const std::string link = os::LookAtThisHost(place->path).link;
    if (!link.empty() && !FollowLink(link, &place->target)) return false;
  }
  return true;
}

// `path` is a link: becomes what it leads to.
bool IncludePaths::FollowLink(std::string_view link, std::string* path) {
  if (++links_ > kMostLinks) return false;
  const std::string folder = DirectoryOf(*path);
  Place target{folder, folder, folder};
  if (!Walk(link, &target)) return false;
  if (os::LookAtThisHost(target.target).is_folder) AddStep(target.target, "");
  AddStep(*path, target.target);
  *path = target.target;
  return true;
}

void IncludePaths::AddStep(const std::string& path, const std::string& link_target) {
  if (path != "/" && known_.insert(path).second) steps_.push_back({path, link_target});
}

}  // namespace sluice::client
