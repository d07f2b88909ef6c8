// SPDX-License-Identifier: Apache-2.0
#include "client_icd/extensions.h"

#include <algorithm>
#include <cstring>

#include "client_icd/sharing/native_apis.h"

namespace sluice {

// cl_khr_icd is this driver's own: loaders drop a platform without it. The others concern the
// application's process and need nothing of the device but memory (sharing/).
std::span<const char* const> OwnPlatformExtensions() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all = {"cl_khr_icd"};
    const std::span<const char* const> sharing = sharing::SharingExtensions();
    all.insert(all.end(), sharing.begin(), sharing.end());
    return all;
  }();
  return names;
}
std::span<const char* const> OwnDeviceExtensions() { return sharing::SharingExtensions(); }

std::span<const char* const> LocalExtensions(bool local) {
  static constexpr const char* kNames[] = {"cl_sluice_shared_resource"};
  return local ? std::span<const char* const>(kNames) : std::span<const char* const>();
}

bool HasExtensionWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::string WithExtensions(std::span<const char* const> names, std::string_view list) {
  std::string all;
  for (const char* name : names) {
    if (HasExtensionWord(list, name)) continue;
    if (!all.empty()) all += ' ';
    all += name;
  }
  if (!all.empty() && !list.empty()) all += ' ';
  return all.append(list);
}

std::vector<cl_name_version> WithExtensionVersions(std::span<const char* const> names,
                                                   std::string_view array) {
  std::vector<cl_name_version> versions(array.size() / sizeof(cl_name_version));
  array.copy(reinterpret_cast<char*>(versions.data()), versions.size() * sizeof(cl_name_version));
  for (cl_name_version& one : versions) one.name[CL_NAME_VERSION_MAX_NAME_SIZE - 1] = '\0';
  std::vector<cl_name_version> all;
  for (const char* name : names) {
    const bool known = std::any_of(
        versions.begin(), versions.end(),
        [name](const cl_name_version& one) { return std::string_view(one.name) == name; });
    if (known) continue;
    cl_name_version own = {CL_MAKE_VERSION(1, 0, 0), {}};
    std::strncpy(own.name, name, CL_NAME_VERSION_MAX_NAME_SIZE - 1);
    all.push_back(own);
  }
  all.insert(all.end(), versions.begin(), versions.end());
  return all;
}

std::vector<cl_name_version> WithLocalVersions(bool local, std::span<const char* const> names,
                                               std::string_view array) {
  const std::vector<cl_name_version> own = WithExtensionVersions(names, array);
  const std::string_view bytes(reinterpret_cast<const char*>(own.data()),
                               own.size() * sizeof(cl_name_version));
  return WithExtensionVersions(LocalExtensions(local), bytes);
}

}  // namespace sluice
