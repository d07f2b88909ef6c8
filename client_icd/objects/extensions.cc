// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/extensions.h"

#include <algorithm>
#include <cstring>

#include "client_icd/base/api.h"
#include "client_icd/include/CL/cl_sluice.h"

namespace sluice::client {
namespace {

constexpr char kSharedResource[] = "cl_sluice_shared_resource";

}  // namespace

bool IsInteropName(std::string_view extension) {
  for (const InteropExtension* one : InteropExtensions()) {
    for (const InteropExtension::Name& name : one->names) {
      if (extension == name.name) return true;
    }
  }
  return false;
}

bool IsInteropProperty(uint64_t name) {
  const auto all = InteropExtensions();
  return std::any_of(all.begin(), all.end(), [name](const InteropExtension* one) {
    return one->has_context_property != nullptr && one->has_context_property(name);
  });
}

cl_int OpenInterops(const PropertyList& list, std::vector<Interop>* out) {
  for (const InteropExtension* one : InteropExtensions()) {
    if (one->open != nullptr) CL_RETURN_IF_ERROR(one->open(list, out));
  }
  return out->size() > 1 ? CL_INVALID_OPERATION : CL_SUCCESS;
}

std::optional<cl_int> GetInteropInfo(cl_context_info param_name, const InfoSink& sink) {
  for (const InteropExtension* one : InteropExtensions()) {
    if (one->context_info == nullptr) continue;
    if (const std::optional<cl_int> answer = one->context_info(param_name, sink)) return answer;
  }
  return std::nullopt;
}

std::vector<const char*> OwnPlatformExtensions(bool shares_resources, std::string_view passed_on) {
  std::vector<const char*> names = OwnDeviceExtensions(shares_resources, passed_on);
  names.push_back("cl_khr_icd");  // Loaders drop a platform without it.
  return names;
}

std::vector<const char*> OwnDeviceExtensions(bool shares_resources, std::string_view passed_on) {
  // The worker makes queues with properties on a driver of any version.
  std::vector<const char*> names = {"cl_khr_create_command_queue"};
  if (shares_resources) names.push_back(kSharedResource);
  for (const InteropExtension* one : InteropExtensions()) {
    for (const InteropExtension::Name& name : one->names) {
      if (name.needs == nullptr || HasExtensionWord(passed_on, name.needs))
        names.push_back(name.name);
    }
  }
  return names;
}

bool HasExtensionWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::string WithExtensions(const std::vector<const char*>& names, std::string_view list) {
  std::string all;
  for (const char* name : names) {
    if (HasExtensionWord(list, name)) continue;
    if (!all.empty()) all += ' ';
    all += name;
  }
  if (!all.empty() && !list.empty()) all += ' ';
  return all.append(list);
}

std::vector<cl_name_version> WithExtensionVersions(const std::vector<const char*>& names,
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
    if (std::string_view(name) == kSharedResource)
      own.version = CL_SLUICE_SHARED_RESOURCE_EXTENSION_VERSION;
    std::strncpy(own.name, name, CL_NAME_VERSION_MAX_NAME_SIZE - 1);
    all.push_back(own);
  }
  all.insert(all.end(), versions.begin(), versions.end());
  return all;
}

}  // namespace sluice::client
